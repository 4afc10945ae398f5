import ast
from pathlib import Path

import pytest

import promptkit
from promptkit import fragments, workspace
from tests.structure import MODULES, RANK, imported, imports_from_above, layer, tree_of

ROOT = Path(__file__).parents[1]

BELOW = [name for name in MODULES if name != "promptkit"]


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
