import ast
import subprocess
import sys
from pathlib import Path

import pytest

import promptkit
from tests.wire import initialize, line, request

PACKAGE = Path(promptkit.__file__).parent

#: Lowest first. Modules in one row do not import each other.
ORDER = (
    "errors|version",
    "conversion|language",
    "catalog|fragments",
    "compiler|protocol",
    "server",
    "transports",
    "cli|testing",
    "__main__",
)
RANK = {name: rank for rank, row in enumerate(ORDER) for name in row.split("|")}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")

#: Too slow to import before the first reply, or of no use to a server.
LAZY = {
    "asyncio",
    "cattrs",
    "concurrent.futures",
    "docstring_parser",
    "filetype",
    "imagesize",
    "hashlib",
    "hmac",
    "importlib.abc",
    "logging",
    "promptkit.fragments",
    "promptkit.compiler.lints.lints",
    "promptkit.server.elicitation.forms",
    "promptkit.protocol.request_state",
    "promptkit.catalog.redaction",
    "promptkit.server.audit",
    "promptkit.server.scheduling.event_loop",
    "promptkit.compiler.lints.source",
    "promptkit.server.scheduling.loops",
    "promptkit.errors.sources",
    "promptkit.catalog.examples",
    "promptkit.compiler.loading.configuration",
    "promptkit.testing",
    "promptkit.catalog.spellings",
    "promptkit.conversion.structuring",
    "promptkit.compiler.time_zones",
    "zoneinfo",
    "promptkit.fragments.invisible",
    "pybase64",
    "pyflakes",
    "random",
    "rich",
    "shutil",
    "tempfile",
    "tomllib",
    "typeguard",
    "unittest",
    "uritemplate",
    "watchfiles",
}

#: What a listing out of a compiled set takes, beyond what msgspec takes.
LISTING = """
    promptkit promptkit.cli promptkit.cli.options promptkit.cli.serve promptkit.compiler
    promptkit.compiler.loading promptkit.compiler.loading.targets promptkit.errors
    promptkit.errors.background_writer promptkit.errors.descriptors promptkit.errors.exceptions
    promptkit.errors.standard_error promptkit.protocol promptkit.protocol.connection
    promptkit.protocol.digests promptkit.protocol.envelope promptkit.protocol.events
    promptkit.protocol.framing promptkit.protocol.glances promptkit.protocol.jsonrpc
    promptkit.protocol.limits promptkit.protocol.methods promptkit.protocol.results
    promptkit.protocol.revisions promptkit.protocol.sizes promptkit.protocol.subscriptions
    promptkit.protocol.wire promptkit.protocol.wire.content promptkit.protocol.wire.requests
    promptkit.protocol.wire.results promptkit.transports promptkit.transports.startup_cache
    promptkit.transports.startup_cache.compiled_set promptkit.transports.startup_cache.early
    promptkit.transports.startup_cache.fingerprints promptkit.transports.startup_cache.listings
    promptkit.transports.startup_cache.store promptkit.transports.stdio promptkit.version
    argparse gettext locale gc signal threading importlib.util importlib._abc _blake2 _locale
    _weakrefset atexit errno
""".split()  # noqa: SIM905 (names, not lines)

#: Serves like the console script, and says what is loaded when the list of prompts is written.
LOOKING = """
import sys
from promptkit.transports.stdio import Wire

def write(wire, data, write=Wire.write):
    if b'"prompts":[' in data:
        sys.stderr.write(" ".join(sys.modules))
        sys.stderr.flush()
    write(wire, data)

Wire.write = write
from promptkit.cli import main
main(["serve", sys.argv[1]])
"""


def layer(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(path):
    """The modules of promptkit that a file imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "promptkit":
            names += [f"promptkit.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return {name.split(".")[1] for name in names if name.startswith("promptkit.")}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    """
    A module imports only from the layers below its own, also inside functions.
    """
    above = {other for other in imported(path) - {layer(path)} if RANK[other] >= RANK[layer(path)]}

    assert set() == above


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_are_absolute(path):
    """
    Every import says in full what it imports, so that the test above sees it.
    """
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))

    assert [node.lineno for node in nodes if isinstance(node, ast.ImportFrom) and node.level] == []


def test_every_module_has_a_layer():
    """
    A module that is added is given its place in the order.
    """
    assert {layer(path) for path in MODULES} == set(RANK)


def test_the_protocol_and_the_compiler_do_not_know_each_other():
    """
    They meet in the catalog.
    """
    protocol = [path for path in MODULES if layer(path) == "protocol"]

    assert set() == {"compiler"} & {name for path in protocol for name in imported(path)}


def test_a_revision_is_dated_in_one_module():
    """
    No module but `revisions` holds a revision's date, so that no other can ask for one.
    """
    from promptkit.protocol.revisions import REVISIONS

    constants = {
        path.name: {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant)
        }
        for path in MODULES
        if path.name != "revisions.py"
    }

    assert [name for name, values in constants.items() if values & REVISIONS.keys()] == []


def test_a_listing_imports_only_what_it_needs(recipes, monkeypatch):
    """
    When the first list leaves that was made before, nothing else is loaded than what stands here.
    """
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    folder = recipes(greet="from promptkit import prompt\nprompt(name='greet')(lambda: 'Hello.')\n")
    session = line(initialize("2025-11-25")) + line(request(1, "prompts/list"))

    def loaded(code, *arguments):
        command = [sys.executable, "-c", code, *arguments]
        ran = subprocess.run(command, input=session, capture_output=True, check=True)
        return set(ran.stderr.decode().split())

    floor = loaded("import sys, msgspec; sys.stderr.write(' '.join(sys.modules))")
    first, second = loaded(LOOKING, str(folder)), loaded(LOOKING, str(folder))

    assert "attrs" in first
    assert second - floor - set(LISTING) == set()


def test_serving_imports_only_what_it_needs(recipes):
    """
    When the first reply leaves, nothing has been loaded that only other work needs.
    """
    folder = recipes(
        greet='''
        from promptkit import prompt, user

        @prompt
        def greet(name: str = "you"):
            """Say hello."""
            return user(f"Hello, {name}.")
        ''',
    )
    script = f"""
import os, sys
from promptkit.compiler.compilation import compile
from promptkit.compiler.loading.loader import load
from promptkit.server import Server
sent = []
server = Server(compile(load({str(folder)!r})), sent.append)
hello = b'{{"protocolVersion":"2025-06-18","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}'
server.receive_data(b'{{"jsonrpc":"2.0","id":0,"method":"initialize","params":%b}}\\n' % hello)
server.receive_data(b'{{"jsonrpc":"2.0","id":1,"method":"prompts/list"}}\\n')
server.receive_data(b'{{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{{"name":"greet"}}}}\\n')
assert b"Hello, you." in sent[-1]
print(*sys.modules)
"""
    ran = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)

    assert set() == LAZY & set(ran.stdout.split())
