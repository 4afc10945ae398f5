"""How authors declare scopes, and what is reported at compile time."""

import pytest

from promptkit import prompt, resource
from promptkit.errors.exceptions import CompileError
from promptkit.errors.rules import Rule


def greeting(scopes):
    """Return a prompt and a resource with these scopes."""

    @prompt(name="greet", scopes=scopes)
    def greet():
        return "Hello."

    @resource("docs://greeting", name="greet", scopes=scopes)
    def read() -> str:
        return "Hello."

    return greet, read


@pytest.mark.parametrize("scopes", [["read"], ("read",), {"read"}, frozenset({"read"}), ["read", "read"]])
def test_several_texts(scopes):
    """Scopes can be given in any collection."""
    for one in greeting(scopes):
        compiled, found = one.compile()
        assert (compiled.scopes, found) == (frozenset({"read"}), ())


def test_none_are_needed_without_them():
    """By default, a prompt needs no scopes."""
    for one in greeting(()):
        assert one.compile()[0].scopes == frozenset()


@pytest.mark.parametrize(
    ("scopes", "message", "hint"),
    [
        ("admin", "scopes takes several, not the text 'admin'", "scopes=['admin']"),
        ("a b", "scopes takes several, not the text 'a b'", "scopes=['a', 'b']"),
        ("", "scopes takes several, not the text ''", "scopes=['reviews:read']"),
        (None, "scopes takes a list of texts, not None", "scopes=['reviews:read']"),
        (
            ["a b"],
            "'a b' is not a scope: a scope has ASCII characters without blanks, quotes and backslashes",
            "scopes=['a', 'b']",
        ),
        (
            ['"'],
            "'\"' is not a scope: a scope has ASCII characters without blanks, quotes and backslashes",
            "['reviews:read']",
        ),
        (["é"], "'é' is not a scope", "scopes=['reviews:read']"),
        ([""], "'' is not a scope", "scopes=['reviews:read']"),
        ([1], "1 is not a scope", "scopes=['1']"),
        ({"a": 1}, "scopes takes a list of texts, not", "scopes=['reviews:read']"),
    ],
)
def test_what_is_no_scope(scopes, message, hint):
    """An invalid scope is an error with a hint, so that a restricted prompt is never served to everyone."""
    for one in greeting(scopes):
        compiled, (found,) = one.compile()
        assert compiled is None
        assert found.rule is Rule.BAD_SCOPE
        assert message in found.message
        assert hint in found.hint


def test_scopes_that_are_made_by_a_generator():
    """An iterator that can be read only once is rejected."""
    with pytest.raises(CompileError, match="scopes takes a list of texts, not"):
        _ = greeting(scope for scope in ["read"])[0].compiled
