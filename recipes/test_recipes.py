"""Tests of all recipes together. `pytest --promptkit` tries each of them besides."""

from pathlib import Path

from promptkit.catalog.catalog import Catalog
from promptkit.testing import Client

FOLDER = Path(__file__).parent


def test_each_file_holds_the_prompt_of_its_name(promptkit_catalog: Catalog) -> None:
    """Everything compiles without a complaint, one prompt, or one skill, to a file."""
    files = {file.stem for file in FOLDER.glob("*.py")}
    recipes = {name for name in files if not name.startswith(("_", "test_", "conftest", "cases_"))}

    assert promptkit_catalog.diagnostics == ()
    skills = {skill.name.replace("-", "_") for skill in promptkit_catalog.skills}
    assert {*promptkit_catalog, *skills} == {*recipes, "write_changelog"}


def test_people_are_told_what_to_enter(promptkit_catalog: Catalog) -> None:
    """Every prompt has a description, and so has each of its arguments, in its author's own words."""
    silent = [
        f"{prompt.name}({argument.name})"
        for prompt in promptkit_catalog.prompts
        for argument in prompt.arguments.ordered
        if not (prompt.description and argument.arg.description)
    ]

    assert silent == []


def test_clients_are_shown_what_is_required(promptkit_client: Client) -> None:
    """The list says of every prompt what it cannot do without, and that comes first."""
    listed = {one.name: [each.required for each in one.arguments] for one in promptkit_client.list_prompts()}
    required = listed.values()

    assert [name for name, one in listed.items() if not any(one)] == ["git_commit"]  # which finds it itself
    assert all(one == sorted(one, reverse=True) for one in required)
