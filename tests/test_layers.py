import ast
import subprocess
import sys
from pathlib import Path

import pytest

import promptkit
from promptkit import fragments, workspace
from tests.structure import MODULES, RANK, imported, imports_from_above, layer, tree_of
from tests.wire import initialize, line, request

ROOT = Path(__file__).parents[1]

BELOW = [name for name in MODULES if name != "promptkit"]

#: Too slow to import before the first reply, or of no use to a server.
LAZY = {
    "argparse",
    "asyncio",
    "cattrs",
    "concurrent.futures",
    "docstring_parser",
    "filetype",
    "hashlib",
    "hmac",
    "imagesize",
    "importlib.abc",
    "logging",
    "mimetypes",
    "opentelemetry",
    "prometheus_client",
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
    "zoneinfo",
}

#: What a listing out of a compiled set takes of others, beyond what msgspec takes.
LISTING = {
    *("_blake2", "_locale", "_weakrefset", "argparse", "atexit", "errno", "gc", "math"),
    "threading",
    *("attr.validators", "attrs.validators"),  # what stands for them until somebody takes one
}
if sys.version_info >= (3, 14):  # argparse takes more
    LISTING |= {"_colorize", "copy", "dataclasses"}
if sys.version_info >= (3, 15):  # math does
    LISTING |= {"_math_integer", "math.integer"}

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
    When the first list leaves that was made before, no more of others is loaded than what stands here.
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
    assert {name for name in second - floor if not name.startswith("promptkit")} <= LISTING


@pytest.mark.parametrize(
    "taken",
    [
        "attrs.validators.instance_of(int)",
        "attr.validators.instance_of(int)",
        "__import__('attrs.validators').validators.instance_of(int)",
        "first.instance_of(int)",
    ],
)
def test_validators_are_imported_when_a_recipe_takes_one(recipes, taken):
    """
    Wherever it takes it from, it is the one of attrs; without that, a listing imports none.
    """
    head = "import attr, attrs\nfrom attrs import validators as first\nfrom promptkit import prompt\n"
    source = f"{head}validator = {taken}\nprompt(name='greet')(lambda: type(validator).__module__)\n"
    script = (
        "import sys\nfrom promptkit.cli import main\nmain(['render', sys.argv[1], 'greet'])\n"
        "print('_InstanceOfValidator' in vars(sys.modules['attr.validators']))"
    )

    def ran(**files):
        command = [sys.executable, "-c", script, str(recipes(**files))]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout

    assert ran(greet=source) == "[user]\nattr.validators\nTrue\n"
    assert ran(greet=f"{head}prompt(name='greet')(lambda: 'Hello.')\n") == "[user]\nHello.\nFalse\n"


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
    public = {module.__name__: {*module.__all__} for module in (promptkit, fragments, workspace)}
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
