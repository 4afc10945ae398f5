"""Rules for the whole package; import-linter checks the rules for imports."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import promptkit
from promptkit import fragments, workspace
from promptkit.protocol.revisions import REVISIONS
from tests.package import MODULES, tree_of

ROOT = Path(__file__).parents[1]

#: Modules that users import from, whose exports must have complete docstrings.
PUBLIC_MODULES = (
    *("promptkit", "promptkit.fragments", "promptkit.errors", "promptkit.exports", "promptkit.workspace"),
    *("promptkit.answers", "promptkit.batch", "promptkit.bridges.inspect_ai", "promptkit.bridges.langchain"),
    *("promptkit.bridges.langfuse", "promptkit.bridges.mlflow", "promptkit.exports.templates"),
)

#: Classes that only decorators create, so that authors never pass their parameters.
MADE_BY_DECORATORS = {
    *("promptkit.AnsweredPrompt", "promptkit.Prompt", "promptkit.Resource", "promptkit.Skill")
}


def test_public_names_are_documented():
    """Each public name has a docstring with a sentence, and `Args` names each of its parameters."""
    assert incomplete_docstrings() == []


def test_dates_of_revisions_are_in_one_module():
    """Only `revisions` contains the dates of revisions, so no other module compares revisions by date."""
    constants = {
        module: {node.value for node in ast.walk(tree_of(module)) if isinstance(node, ast.Constant)}
        for module in MODULES
        if module != "promptkit.protocol.revisions"
    }

    assert [name for name, values in constants.items() if values & REVISIONS.keys()] == []


def test_recipes_import_only_public_names():
    """Our own recipes only use public names, so any author can do the same."""
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


def incomplete_docstrings():
    """
    Return a message for each export without a summary sentence, and each parameter missing in `Args`.

    A class need not repeat the parameters that its base classes document.
    """
    return [
        f"{module}.{name}: {missing}"
        for module in PUBLIC_MODULES
        for name in import_module(module).__all__
        for missing in _missing(f"{module}.{name}", getattr(import_module(module), name))
    ]


def _missing(name, exported):
    if not (inspect.isclass(exported) or inspect.isfunction(exported)):
        return  # versions and type aliases have no separate docstring
    if not re.match(r"[A-Z`].*[.:]$", _text(exported).partition("\n\n")[0], re.DOTALL):
        yield "no summary sentence"
    if name in MADE_BY_DECORATORS:
        return
    bases = inspect.getmro(exported) if inspect.isclass(exported) else [exported]
    described = {parameter for base in bases for parameter in _described(base)}
    for parameter in _parameters(exported):
        if parameter not in described:
            yield f"Args does not name {parameter!r}"


def _text(documented):
    return inspect.cleandoc(documented.__doc__ or "")


def _described(documented):
    section = re.search(r"^Args:\n((?:[ ]+.*\n?|\n)*)", _text(documented), re.MULTILINE)
    return re.findall(r"^ {4}\**(\w+)(?: \(.*\))?:", section[1], re.MULTILINE) if section else []


def _parameters(exported):
    try:
        return list(inspect.signature(exported).parameters)
    except ValueError:  # an exception without its own constructor
        return []
