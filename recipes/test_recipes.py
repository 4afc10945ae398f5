"""Tests of all recipes together."""

from pathlib import Path

import pytest

from promptkit import compiler
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.loading.loader import load

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """Compile the folder as `promptkit serve` does."""
    return compiler.compile(load(FOLDER))


def test_each_file_holds_the_prompt_of_its_name(catalog: Catalog) -> None:
    """Everything compiles without a complaint, one prompt to a file."""
    names = {file.stem for file in FOLDER.glob("*.py") if not file.name.startswith(("_", "test_"))}

    assert catalog.diagnostics == ()
    assert set(catalog) == names


def test_people_are_told_what_to_enter(catalog: Catalog) -> None:
    """Every prompt has a description, and so has each of its arguments, in its author's own words."""
    silent = [
        f"{prompt.name}({argument.name})"
        for prompt in catalog.prompts
        for argument in prompt.arguments.ordered
        if not (prompt.description and argument.arg.description)
    ]

    assert silent == []
