"""Laws of reloading: a catalog reloaded after each edit equals one that is compiled from scratch."""

import os
import sys
from itertools import count, product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit.compiler import reloading
from promptkit.compiler.compilation import compile, compile_files
from promptkit.compiler.linking import link, merge
from promptkit.compiler.reloading import Reloader
from promptkit.loader.loader import load
from promptkit.loader.packages import ImportSnapshot
from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.pagination import LISTS
from promptkit.protocol.revisions import REVISIONS
from promptkit.server.snapshot import Snapshot

SERVER_INFO = ServerInfo("law", "1")

#: Recipes, helpers (one of them rare), a package, and a module in it.
NAMES = ["a", "b", "c", "_g", "_h", "_sub/__init__", "_sub/part"]
MODULES = ["a", "b", "c", "_g", "_h", "_sub", "_sub.part"]

#: Ways to import a module, each of which binds its text to a separate name.
FORMS = {
    "relative": "from .{dots}{name} import TEXT as t{n}",
    "sibling": "from {name} import TEXT as t{n}",
    "absolute": "from {package}.{name} import TEXT as t{n}",
    "module": "import {package}.{name} as m{n}\nt{n} = m{n}.TEXT",
    "dynamic": "from importlib import import_module\nt{n} = import_module('{package}.{name}').TEXT",
    "star": "from .{dots}{name} import *\nt{n} = TEXT",
    "fallback": "try:\n    from .{dots}{name} import TEXT as t{n}\nexcept ImportError:\n    t{n} = 'none'",
    "whatever": "try:\n    from .{dots}{name} import TEXT as t{n}\nexcept Exception:\n    t{n} = 'no'",
    "factory": "from .{dots}{name} import make\nt{n} = ''\nmade{n} = make({own!r})",
    "prompts": "from .{dots}{name} import one\nt{n} = 'again'",
}

END = {
    "fine": "",
    "raises": "1 / 0",
    "syntax": "def broken(:",
    "missing": "from . import nowhere",
    "unusable": "@prompt\ndef unusable(x: object()): return ''",
}

BODY = """
TEXT = "-".join([{value!r}, {texts}])

def make(name):
    @prompt(name=name)
    def made() -> str:
        return TEXT + name
    return made

@prompt(name={prompt!r}, description=TEXT)
def one() -> str:
    return TEXT
"""

modules = st.fixed_dictionaries(
    {
        "imports": st.lists(st.tuples(st.sampled_from(sorted(FORMS)), st.sampled_from(MODULES)), max_size=2),
        "value": st.sampled_from(["x", "y", "z"]),
        "prompt": st.sampled_from("pqrstuvw"),
        "end": st.sampled_from([*["fine"] * 12, *END]),
        "reads": st.sampled_from([*[False] * 5, True]),
    }
)
edits = st.one_of(
    *[st.tuples(st.just("write"), st.sampled_from(NAMES), modules)] * 3,
    st.tuples(st.just("write"), st.sampled_from(NAMES), modules),
    st.tuples(st.just("remove"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("data"), st.just(""), st.sampled_from(["one", "two"])),
)


def source(package, file, module):
    """Return the source of a module."""
    dots = "." * file.count("/")
    lines = ["from promptkit import prompt"]
    lines += [
        FORMS[form].format(name=name, n=n, package=package, dots=dots, own=f"{file}-{n}")
        for n, (form, name) in enumerate(module["imports"])
    ]
    texts = [f"t{n}" for n, _ in enumerate(module["imports"])]
    if module["reads"]:
        lines.append("from pathlib import Path")
        texts.append(f"(Path({package!r}) / 'data.txt').read_text()")
    body = BODY.format(value=module["value"], texts=", ".join(texts), prompt=module["prompt"])
    return "\n".join(lines) + body + END[module["end"]] + "\n"


class Folder:
    """
    A folder whose edits have increasing modification times in the past, as if they had been made slowly.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seconds = count(1_000_000_000)

    def edit(self, kind, name, content):
        """Apply one edit, if its file exists."""
        path = self.path / f"{name}.py"
        if kind == "data":
            self._write(self.path / "data.txt", content)
        elif kind == "write":
            self._write(path, source(str(self.path.name), name, content))
        elif path.exists() and kind == "remove":
            path.unlink()
        elif path.exists() and content != name:
            self._write(self.path / f"{content}.py", path.read_text())
            path.unlink()

    def _write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        moment = next(self._seconds)
        os.utime(path, (moment, moment))


def visible_state(catalog):
    """Return everything that clients can see of a catalog without arguments, by revision."""
    state = {}
    if catalog is None:
        return state
    snapshot = Snapshot(catalog, SERVER_INFO, 50, Capabilities(changes=True))
    for method, revision in product(LISTS, REVISIONS.values()):
        pages = snapshot.pages(method, revision)
        state[method, revision] = [pages.page(cursor) for cursor in pages.cursors]
    for revision in REVISIONS.values():
        lowering = lowering_for(revision, SERVER_INFO)
        for name, prompt in catalog.items():
            state[revision, name] = lowering.result(prompt, prompt.render())
    return state


class Fresh:
    """The catalog that results if everything is imported and compiled again after each edit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files, self._owners = [], {}
        self.seen, self.diagnostics = {}, ()

    def load(self):
        """Load the current files, and unload all their modules afterwards."""
        before = ImportSnapshot()
        for name in self._modules():
            del sys.modules[name]
        recipes = load(self._folder)
        files = compile_files(recipes)
        merged = merge(self._files, files, self._owners)
        linked = link(merged, owners=self._owners, root=recipes.root)
        catalog = linked.catalog
        self.diagnostics = catalog.diagnostics
        lost = not any(file.served_keys for file in merged) and any(file.served_keys for file in self._files)
        if not lost:
            self._files, self._owners = merged, linked.owners
            self.seen = visible_state(catalog)
            assert not catalog.healthy or visible_state(compile(recipes)) == self.seen
        for name in self._modules():
            del sys.modules[name]
        before.restore()

    def _modules(self):
        package = self._folder.name
        return [name for name in sys.modules if name == package or name.startswith(f"{package}.")]


class Reloaded:
    """The catalog of a reloader that runs without its watcher thread."""

    def __init__(self, folder: Path) -> None:
        self._reloader = Reloader(folder, lambda _: None)
        self.catalog = self._reloader.load()
        self._reloader._publish = self._publish

    def _publish(self, catalog):
        self.catalog = catalog

    def reload(self):
        """Load the current files."""
        self._reloader._reload()
        assert self._reloader._is_settled


@settings(max_examples=15)
@given(
    st.fixed_dictionaries(dict.fromkeys(NAMES[:5], modules), optional=dict.fromkeys(NAMES[5:], modules)),
    st.lists(st.lists(edits, min_size=1, max_size=2), min_size=3, max_size=6),
)
def test_reloaded_catalog_equals_a_fresh_one(first, steps):
    """
    After any edits, additions, removals and renames, the served catalog equals the catalog of a new process.
    In both, a broken file keeps its last good prompts.
    """
    with TemporaryDirectory(prefix="law_") as temporary, pytest.MonkeyPatch.context() as monkeypatch:
        root = Path(os.path.realpath(temporary))
        (root / "pyproject.toml").touch()  # the project ends here, whatever is next to it
        folder = Folder(root / root.name)  # a name that no other example uses
        monkeypatch.chdir(root)
        monkeypatch.setattr(reloading, "free_unused_versions", lambda: None)  # slow with millions of objects
        folder.edit("data", "", "zero")
        for name, module in first.items():
            folder.edit("write", name, module)
        fresh, reloaded = Fresh(folder.path), Reloaded(folder.path)
        fresh.load()
        assert visible_state(reloaded.catalog) == fresh.seen
        for step in steps:
            for edit in step:
                folder.edit(*edit)
            fresh.load()
            reloaded.reload()
            assert visible_state(reloaded.catalog) == fresh.seen, fresh.diagnostics
