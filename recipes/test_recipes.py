"""Tests of all recipes together. `pytest --promptkit` also tests each recipe."""

from pathlib import Path

from promptkit.catalog.catalog import Catalog
from promptkit.testing import Client

FOLDER = Path(__file__).parent


def test_each_file_defines_the_prompt_of_its_name(promptkit_catalog: Catalog) -> None:
    """The recipes compile without diagnostics, and each file defines one prompt or skill with its name."""
    files = (*FOLDER.glob("*.py"), *FOLDER.glob("skills/*.py"), *FOLDER.glob("*.prompt.md"))
    stems = {file.name.partition(".")[0] for file in files}
    recipes = {stem for stem in stems if not stem.startswith(("_", "test_", "conftest", "cases_"))}
    skills = {skill.name.replace("-", "_") for skill in promptkit_catalog.skills}

    assert promptkit_catalog.diagnostics == ()
    assert {*promptkit_catalog, *skills} == {*recipes, "write_changelog"}


def test_prompts_and_arguments_have_descriptions(promptkit_catalog: Catalog) -> None:
    """Every prompt and each of its arguments has a description."""
    undescribed = [
        f"{prompt.name}({argument.name})"
        for prompt in promptkit_catalog.prompts
        for argument in prompt.arguments.ordered
        if not (prompt.description and argument.arg.description)
    ]

    assert undescribed == []


def test_required_arguments_are_listed_first(promptkit_client: Client) -> None:
    """Every prompt but `git_commit` has required arguments, and lists them before the optional ones."""
    required = {
        prompt.name: [argument.required for argument in prompt.arguments]
        for prompt in promptkit_client.list_prompts()
    }

    assert [name for name, flags in required.items() if not any(flags)] == ["git_commit"]
    assert all(flags == sorted(flags, reverse=True) for flags in required.values())
