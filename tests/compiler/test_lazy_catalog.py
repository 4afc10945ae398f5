"""
Tests of a catalog whose recipes are still being imported.
"""

import pytest

from promptkit import prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.compiler.lazy_import import LazyCatalog
from promptkit.compiler.loading.loader import Recipes
from promptkit.errors.exceptions import UnknownPrompt, UnknownResource


@prompt
def greet(name: str = "you") -> str:
    return f"Hello, {name}."


@resource("notes://{day}")
def notes(day: str) -> str:
    return day


WHOLE = compile(Recipes([greet], [notes]))


class NotYetError(Exception):
    """The recipes are not imported yet."""


def not_yet():
    raise NotYetError


def test_a_prompt_does_not_wait_for_the_whole_catalog():
    """
    It is found, rendered and completed as soon as it is known.
    """
    lazy = LazyCatalog(WHOLE.__getitem__, not_yet)

    assert lazy["greet"] is WHOLE["greet"]
    assert lazy.render("greet", {"name": "Ada"}) == WHOLE.render("greet", {"name": "Ada"})
    assert lazy.complete("greet", "name", "A") == WHOLE.complete("greet", "name", "A")
    with pytest.raises(UnknownPrompt, match="did you mean 'greet'"):
        lazy["great"]


@pytest.mark.parametrize(
    "look",
    [
        list,
        len,
        lambda catalog: catalog.prompts,
        lambda catalog: catalog.resources,
        lambda catalog: catalog.diagnostics,
        lambda catalog: catalog.healthy,
        lambda catalog: catalog.read("notes://today"),
        lambda catalog: catalog.template("notes://{day}"),
        lambda catalog: catalog.complete("notes://{day}", "day", ""),
    ],
    ids="names number prompts resources diagnostics healthy read template complete".split(),  # noqa: SIM905 (ids)
)
def test_all_else_is_what_the_whole_catalog_says(look):
    """
    It waits for that.
    """
    assert look(LazyCatalog(not_yet, lambda: WHOLE)) == look(WHOLE)
    with pytest.raises(NotYetError):
        look(LazyCatalog(WHOLE.__getitem__, not_yet))


def test_a_resource_that_does_not_exist_is_unknown():
    """
    Once all is imported.
    """
    with pytest.raises(UnknownResource):
        LazyCatalog(not_yet, lambda: WHOLE).resource("other://today")
