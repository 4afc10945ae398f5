"""Only the modules of `promptkit.files` open, write, create or remove files."""

import ast
from collections.abc import Iterator
from typing import Final

import pytest

from tests.package import MODULES, tree_of

#: Functions that open, read, write, create or remove files, by module.
FUNCTIONS: Final = {
    "os": {
        *("fdopen", "link", "makedirs", "mkdir", "mkfifo", "mknod", "open", "remove", "removedirs", "rename"),
        *("renames", "replace", "rmdir", "symlink", "truncate", "unlink"),
    },
    "shutil": {"copy", "copy2", "copyfile", "copystat", "copytree", "make_archive", "move", "rmtree"},
    "tempfile": {
        *("NamedTemporaryFile", "SpooledTemporaryFile", "TemporaryDirectory", "TemporaryFile", "mkdtemp"),
        *("mkstemp", "mktemp"),
    },
    "io": {"FileIO", "open", "open_code"},
    "codecs": {"open"},
    "tokenize": {"open"},
    "zipfile": {"ZipFile"},
    "tarfile": {"TarFile"},
    "gzip": {"GzipFile"},
}

#: Methods that do the same, on any object.
METHODS: Final = {
    *("hardlink_to", "mkdir", "open", "read_bytes", "read_text", "rename", "rmdir", "symlink_to", "touch"),
    *("unlink", "write_bytes", "write_text"),
}

#: Allowed uses by module, each with its reason.
EXCEPTIONS: Final = {
    "promptkit.cli": {"os.open": "the null device takes the place of a closed standard stream"},
    "promptkit.cli.dev": {"webbrowser.open": "it opens a page"},
    "promptkit.cli.package_bundles": {"zipfile.ZipFile": "an archive in memory"},
    "promptkit.cli.output": {
        "FileIO": "the descriptor of standard output",
        "open": "the descriptor of standard output",
    },
    "promptkit.batch.shards": {"….open": "the null device"},
    "promptkit.lints.files": {"open": "the lint looks for it in recipes"},
    "promptkit.lints.calls": dict.fromkeys(
        (
            *("open", "os.open", "os.remove", "os.unlink"),
            *("shutil.copy", "shutil.copyfile", "shutil.copytree", "shutil.move", "shutil.rmtree"),
        ),
        "the lint looks for it in recipes",
    ),
    "promptkit.errors.distribution": {"distribution.read_text": "metadata of the installed package"},
    "promptkit.standard_error": {
        "FileIO": "the descriptor of standard error",
        "open": "the descriptor of standard error",
    },
    "promptkit.protocol.http.endpoint": {"self._sessions.open": "a sealed session"},
    "promptkit.protocol.key_ring": {"self._ring.open": "a sealed token"},
    "promptkit.transports.auth.issuer": {"….open": "a URL"},
    "promptkit.transports.http.sockets": {
        "self._path.unlink": "a socket that this process has bound",
        "….unlink": "a socket that no process listens to",
    },
    "promptkit.transports.stdio": {
        "os.fdopen": "the descriptor of standard error",
        "os.open": "the null device",
    },
}

CHECKED: Final = [name for name in MODULES if not name.startswith("promptkit.files")]


def uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each use of a function or method that accesses files."""
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in FUNCTIONS.get(node.module or "", ())
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name("open") | ast.Name("FileIO"):
                yield node.lineno, node.id
            case ast.Name(name) if name in imported:
                yield node.lineno, imported[name]
            case ast.Attribute(ast.Name(module), name) if module in FUNCTIONS:
                if name in FUNCTIONS[module]:
                    yield node.lineno, f"{module}.{name}"
            case ast.Attribute(of, name) if name in METHODS:
                holder = ast.unparse(of) if isinstance(of, ast.Name | ast.Attribute) else "…"
                yield node.lineno, f"{holder}.{name}"


def test_other_modules_do_not_access_files():
    """Other modules access files only through `promptkit.files`, which handles links, pipes and devices."""
    forbidden = [
        (module, line, use)
        for module in CHECKED
        for line, use in uses(tree_of(module))
        if use not in EXCEPTIONS.get(module, {})
    ]

    assert forbidden == []


def test_each_exception_is_used():
    """Every listed exception is still needed."""
    unused = {
        (module, use)
        for module, reasons in EXCEPTIONS.items()
        for use in reasons.keys() - {use for _, use in uses(tree_of(module))}
    }

    assert unused == set()


@pytest.mark.parametrize(
    ("source", "use"),
    [
        ("open(path)", "open"),
        ("read = open", "open"),
        ("io.open(path)", "io.open"),
        ("FileIO(path)", "FileIO"),
        ("os.unlink(path)", "os.unlink"),
        ("from os import replace as move\nmove(a, b)", "os.replace"),
        ("map(os.mkdir, paths)", "os.mkdir"),
        ("Path(path).write_text('')", "….write_text"),
        ("self.path.read_bytes()", "self.path.read_bytes"),
        ("(folder / name).open('rb')", "….open"),
        ("folder.mkdir()", "folder.mkdir"),
        ("shutil.copyfile(a, b)", "shutil.copyfile"),
        ("from tempfile import mkstemp\nmkstemp()", "tempfile.mkstemp"),
        ("def inner():\n    with zipfile.ZipFile(path): pass", "zipfile.ZipFile"),
    ],
)
def test_a_use_is_found(source, use):
    """Uses are found in any position and under another name."""
    assert [name for _, name in uses(ast.parse(source))] == [use]


@pytest.mark.parametrize(
    "source", ["text.replace(a, b)", "shutil.which(name)", "os.path.exists(path)", "reads()"]
)
def test_other_calls_are_allowed(source):
    """String methods and functions that only look up paths are allowed."""
    assert list(uses(ast.parse(source))) == []
