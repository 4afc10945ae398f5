import ast
import subprocess
import sys
from pathlib import Path

import pytest

import promptkit
from promptkit import fragments
from tests.structure import MODULES, RANK, imported, imports_from_above, layer, tree_of
from tests.wire import initialize, line, request

ROOT = Path(__file__).parents[1]

BELOW = [name for name in MODULES if name != "promptkit"]

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
    "argparse",
    "logging",
    "promptkit.cli.parser",
    "promptkit.fragments",
    "promptkit.compiler.lints.prompts",
    "promptkit.server.elicitation.forms",
    "promptkit.protocol.http",
    "promptkit.protocol.principals",
    "promptkit.protocol.key_ring",
    "promptkit.protocol.request_state",
    "promptkit.catalog.redaction",
    "promptkit.catalog.search",
    "promptkit.catalog.tools",
    "promptkit.conversion.exact",
    "promptkit.language.tool",
    "promptkit.protocol.tools",
    "promptkit.protocol.wire.completion",
    "promptkit.protocol.wire.notifications",
    "promptkit.protocol.wire.tools",
    "promptkit.server.methods.tools",
    "promptkit.server.audit",
    "promptkit.server.telemetry",
    "opentelemetry",
    "promptkit.server.scheduling.event_loop",
    "promptkit.compiler.lints.files",
    "promptkit.server.scheduling.loops",
    "promptkit.errors.sources",
    "promptkit.catalog.examples",
    "promptkit.compiler.loading.configuration",
    "promptkit.preview",
    "promptkit.testing",
    "promptkit.transports.authorization",
    "promptkit.transports.secret_files",
    "promptkit.transports.state_keys",
    "promptkit.catalog.spellings",
    "promptkit.conversion.collisions",
    "promptkit.conversion.descriptions",
    "promptkit.conversion.json_extent",
    "promptkit.conversion.leaves",
    "promptkit.conversion.offsets",
    "promptkit.conversion.registry",
    "promptkit.conversion.structuring",
    "promptkit.compiler.time_zones",
    "zoneinfo",
    "promptkit.fragments.invisible",
    "pybase64",
    "random",
    "rich",
    "shutil",
    "signal",
    "tempfile",
    "tomllib",
    "typeguard",
    "unittest",
    "uritemplate",
    "watchfiles",
    "promptkit.catalog.completion",
    "promptkit.catalog.resources",
    "promptkit.catalog.uri_expressions",
    "promptkit.catalog.uri_positions",
    "promptkit.catalog.uri_templates",
    "promptkit.compiler.last_good",
    "promptkit.compiler.loading.reuse",
    "promptkit.compiler.loading.watcher",
    "promptkit.compiler.resources",
    "promptkit.conversion.choices",
    "promptkit.errors.tracebacks",
    "promptkit.language.audio",
    "promptkit.language.base64",
    "promptkit.language.context",
    "promptkit.language.icons",
    "promptkit.language.image",
    "promptkit.language.media",
    "promptkit.language.mime",
    "promptkit.language.showable",
    "promptkit.protocol.limit_checks",
    "promptkit.protocol.partial_decoding",
    "promptkit.server.lookup",
    "promptkit.server.views",
    "promptkit.server.updates",
    "promptkit.language.scopes",
    "promptkit.server.read_history",
}

#: What a listing out of a compiled set takes, beyond what msgspec takes.
LISTING = """
    promptkit promptkit.cli promptkit.cli.option_types promptkit.cli.options promptkit.cli.serve
    promptkit.compiler promptkit.compiler.loading promptkit.compiler.loading.targets promptkit.errors
    promptkit.errors.background_writer promptkit.errors.exceptions
    promptkit.errors.interruptions promptkit.errors.pending_output promptkit.errors.regular_files
    promptkit.errors.standard_error promptkit.protocol promptkit.protocol.capabilities
    promptkit.protocol.connection promptkit.protocol.digests promptkit.protocol.events
    promptkit.protocol.jsonrpc promptkit.protocol.limits
    promptkit.protocol.methods promptkit.protocol.results promptkit.protocol.revisions
    promptkit.protocol.session promptkit.protocol.subscriptions promptkit.protocol.wire
    promptkit.protocol.wire.requests promptkit.protocol.wire.session promptkit.transports
    promptkit.transports.startup_cache
    promptkit.transports.startup_cache.compiled_set promptkit.transports.startup_cache.early
    promptkit.transports.startup_cache.fingerprints promptkit.transports.startup_cache.store
    promptkit.transports.stdio promptkit.version
    argparse gettext locale gc threading _blake2 _locale _weakrefset atexit errno math
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


@pytest.mark.parametrize("module", BELOW)
def test_imports_point_down(module):
    """
    A module imports only from the layers below its own, also inside functions.
    """
    assert imports_from_above(module) == []


@pytest.mark.parametrize("module", BELOW)
def test_imports_are_absolute(module):
    """
    Every import says in full what it imports, so that the test above sees it.
    """
    nodes = ast.walk(tree_of(module))

    assert [node.lineno for node in nodes if isinstance(node, ast.ImportFrom) and node.level] == []


def test_every_module_has_a_layer():
    """
    A module that is added is given its place in the order.
    """
    assert {layer(module) for module in BELOW} == set(RANK)


def test_the_protocol_and_the_compiler_do_not_know_each_other():
    """
    They meet in the catalog.
    """
    protocol = [module for module in BELOW if layer(module) == "protocol"]

    assert "compiler" not in {layer(name) for module in protocol for name in imported(module, deep=True)}


def test_a_revision_is_dated_in_one_module():
    """
    No module but `revisions` holds a revision's date, so that no other can ask for one.
    """
    from promptkit.protocol.revisions import REVISIONS

    constants = {
        module: {node.value for node in ast.walk(tree_of(module)) if isinstance(node, ast.Constant)}
        for module in BELOW
        if module != "promptkit.protocol.revisions"
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


def test_recipes_import_what_authors_may():
    """
    Our own recipes need no name that is not public: everything that they do, any author can do.
    """
    public = {"promptkit": set(promptkit.__all__), "promptkit.fragments": set(fragments.__all__)}
    recipes = [file for file in (ROOT / "recipes").glob("*.py") if not file.name.startswith("test_")]
    used = [
        (node.module, name.name)
        for file in recipes
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("promptkit")
        for name in node.names
    ]

    assert len(recipes) > 13
    assert [(module, name) for module, name in used if name not in public.get(module, ())] == []
