"""How authors declare scopes, and which scopes are reported at compile time."""

import pytest

from promptkit import prompt, resource
from promptkit.errors.exceptions import CompileError
from promptkit.errors.rules import Rule


def make_greetings(scopes):
    """Return a prompt and a resource with these scopes."""

    @prompt(name="greet", scopes=scopes)
    def greet():
        return "Hello."

    @resource("docs://greeting", name="greet", scopes=scopes)
    def read() -> str:
        return "Hello."

    return greet, read


@pytest.mark.parametrize("scopes", [["read"], ("read",), {"read"}, frozenset({"read"}), ["read", "read"]])
def test_scopes_are_taken_from_any_collection(scopes):
    """Scopes can be given in any collection."""
    for declaration in make_greetings(scopes):
        compiled, diagnostics = declaration.compile()
        assert (compiled.scopes, diagnostics) == (frozenset({"read"}), ())


def test_no_scopes_are_needed_by_default():
    """By default, a prompt needs no scopes."""
    for declaration in make_greetings(()):
        assert declaration.compile()[0].scopes == frozenset()


@pytest.mark.parametrize(
    ("scopes", "message", "hint"),
    [
        ("admin", "scopes must be a list of strings, not a str ('admin')", "scopes=['admin']"),
        ("a b", "scopes must be a list of strings, not a str ('a b')", "scopes=['a', 'b']"),
        ("", "scopes must be a list of strings, not a str ('')", "scopes=['reviews:read']"),
        (None, "scopes must be a list of strings, not None", "scopes=['reviews:read']"),
        (
            ["a b"],
            (
                "'a b' is not a scope: a scope consists of ASCII characters other than spaces, double "
                "quotes and backslashes"
            ),
            "scopes=['a', 'b']",
        ),
        (
            ['"'],
            (
                "'\"' is not a scope: a scope consists of ASCII characters other than spaces, double "
                "quotes and backslashes"
            ),
            "['reviews:read']",
        ),
        (["é"], "'é' is not a scope", "scopes=['reviews:read']"),
        ([""], "'' is not a scope", "scopes=['reviews:read']"),
        ([1], "1 is not a scope", "scopes=['1']"),
        ({"a": 1}, "scopes must be a list of strings, not", "scopes=['reviews:read']"),
    ],
)
def test_an_invalid_scope_is_an_error(scopes, message, hint):
    """An invalid scope is an error with a hint, so that a restricted prompt is never served to everyone."""
    for declaration in make_greetings(scopes):
        compiled, (diagnostic,) = declaration.compile()
        assert compiled is None
        assert diagnostic.rule is Rule.BAD_SCOPE
        assert message in diagnostic.message
        assert hint in diagnostic.hint


def test_scopes_from_a_generator_are_rejected():
    """An iterator that can be read only once is rejected."""
    with pytest.raises(CompileError, match="scopes must be a list of strings, not"):
        _ = make_greetings(scope for scope in ["read"])[0].compiled
