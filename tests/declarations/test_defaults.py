"""Mutable defaults are copied for each call, so that values from one client never reach another."""

import inspect
from dataclasses import dataclass, field
from enum import Enum
from threading import Lock
from typing import Annotated

import pytest

from promptkit import Arg, Context, prompt, resource
from promptkit.types.functions import copy_mutable_defaults


@prompt
def joined(name: str, names: list[str] = [], depth: dict[str, list[str]] = {"all": []}):  # noqa: B006
    """Return the names that a call has collected."""
    names.append(name)
    depth["all"].append(name)
    return f"{names} {depth}"


@prompt
async def joined_later(name: str, names: set[str] = {"first"}):  # noqa: B006
    """Return the names, on an event loop."""
    names.add(name)
    return ", ".join(sorted(names))


@prompt
def joined_in_turns(name: str, *, names: list[str] = []):  # noqa: B006
    """Yield the names."""
    names.append(name)
    yield str(names)


def test_client_calls_get_copies_of_defaults():
    """Each rendering gets its own copy of a default list, nested list or set."""
    for name in ("x", "y"):
        arguments = {"name": name}
        assert joined.render_wire(arguments)[0].content.text == f"['{name}'] {{'all': ['{name}']}}"
        assert joined_later.render_wire(arguments)[0].content.text == ", ".join(sorted(["first", name]))
        assert joined_in_turns.render_wire(arguments)[0].content.text == f"['{name}']"


def test_direct_calls_get_copies_of_defaults():
    """Direct calls and `render` also copy defaults, whichever arguments are positional."""
    for name in ("x", "y"):
        assert joined(name) == f"['{name}'] {{'all': ['{name}']}}"
        assert joined(name, ["given"]) == f"['given', '{name}'] {{'all': ['{name}']}}"
        assert joined.render(name)[0].content.text.startswith(f"['{name}']")


def test_a_passed_list_is_not_copied():
    """A list that the caller passes is not copied, so the function changes it, as in plain Python."""
    names = []
    joined("x", names)
    assert names == ["x"]


def test_resources_and_completers_get_copies_of_defaults():
    """Each call of a resource or a completer gets its own copy of the defaults."""

    @resource("notes://all{?name}")
    def notes(name: str, names: list[str] = []) -> str:  # noqa: B006
        names.append(name)
        return str(names)

    def offers(seen=[]):  # noqa: B006
        seen.append(f"value{len(seen)}")
        return seen

    @prompt
    def completed(name: Annotated[str, Arg("a name", complete=offers)]):
        return name

    completer = completed.compiled.arguments.completer("name")
    for _ in range(2):
        assert notes("x") == "['x']"
        assert completer.complete("").values == ("value0",)


def test_immutable_and_uncopyable_defaults_are_not_wrapped():
    """A function is not wrapped if its defaults are immutable or cannot be copied."""

    class Tone(Enum):
        PLAIN = "plain"

    lock = Lock()

    def constant(
        text: str = "x", numbers: tuple[int, ...] = (1, 2), tone: Tone = Tone.PLAIN, *, flag: bool = True
    ):
        return text, numbers, tone, flag

    def uncopied(context: Context = Context(), mutex: object = lock):  # noqa: B008
        return context, mutex

    assert copy_mutable_defaults(constant) is constant
    assert copy_mutable_defaults(uncopied) is uncopied


def test_the_wrapper_keeps_the_signature():
    """The wrapper keeps the parameters, defaults and docstring of the author's function."""

    @dataclass
    class Options:
        names: list[str] = field(default_factory=list)

    def function(first: str, options: Options = Options()) -> str:  # noqa: B008
        """Say something."""
        options.names.append(first)
        return str(options.names)

    wrapper = copy_mutable_defaults(function)
    assert wrapper is not function
    assert inspect.signature(wrapper) == inspect.signature(function)
    assert wrapper.__doc__ == "Say something."
    assert [wrapper("x"), wrapper("y")] == ["['x']", "['y']"]


def test_a_wrong_call_is_pythons_own_error():
    """Too many arguments raise Python's own TypeError."""
    with pytest.raises(TypeError, match="too many positional arguments"):
        joined("x", [], {}, "too many")
