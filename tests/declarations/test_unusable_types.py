"""Parameter types that no client can fill: content classes, non-types, and types without a text form."""

import datetime as dt
import decimal
import pathlib
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Generic, NamedTuple, NotRequired, Optional, TypedDict, TypeVar

import attrs
import msgspec
import pytest

from promptkit import (
    Arg,
    Content,
    Context,
    EmbeddedResource,
    Image,
    ResourceLink,
    Text,
    Workflow,
    prompt,
    resource,
)
from promptkit.errors.rules import Rule
from promptkit.types.parsing import reader_of

T = TypeVar("T")

OWN = (Text, EmbeddedResource, ResourceLink, Content)


@attrs.frozen
class Line:
    what: str
    note: Text | None = None


@dataclass
class Order:
    number: int
    lines: "list[Line]"


class Asked(TypedDict):
    parts: NotRequired[list[Content]]


class Titled(NamedTuple):
    number: int
    title: Text


class Held(msgspec.Struct):
    link: ResourceLink | None = None


@dataclass
class Box(Generic[T]):
    held: T


@dataclass
class Tree:
    children: "list[Tree]"
    weight: complex


@dataclass
class Unknown:
    part: "Nowhere"  # noqa: F821 (undefined on purpose)


class Scan(Image):
    """An author's subclass of Image."""


class Talk(Workflow):
    """An author's subclass of Workflow."""


def found_in(annotation: Any) -> tuple[Any, ...]:
    """Return the type in the message and the hint, which must be the same for a prompt and a resource."""

    def made(order) -> str:
        return ""

    made.__annotations__["order"] = annotation
    as_prompt, (told,) = prompt(made).compile()
    as_resource, (told_again,) = resource("order:{order}")(made).compile()
    assert as_prompt is as_resource is None
    assert told.rule is told_again.rule is Rule.UNSUPPORTED_TYPE
    assert told.hint == told_again.hint
    return told.message.partition("of type ")[2], told.hint


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize(
    "around",
    [
        lambda kind: kind,
        lambda kind: Optional[kind],  # noqa: UP045 (authors write it)
        lambda kind: Annotated[kind, Arg("What to look at")],
        lambda kind: list[kind],
        lambda kind: dict[str, kind | None],
        lambda kind: tuple[int, kind],
        lambda kind: int | list[kind],
        lambda kind: Box[kind],
        lambda kind: attrs.make_class("Made", {"part": attrs.field(type=kind)}),
    ],
    ids=["itself", "or none", "annotated", "list", "dict", "tuple", "union", "generic", "member"],
)
def test_values_of_promptkit_are_no_arguments(kind, around):
    """The content classes of promptkit are rejected wherever they are in a parameter's type."""
    _, hint = found_in(around(kind))

    assert hint.startswith("take ")
    assert hint.endswith(" in the function")


@pytest.mark.parametrize(
    ("annotation", "message", "hint"),
    [
        (Scan, "Scan", "take that class of promptkit itself, "),
        (list[Talk], f"{list[Talk]}: order[...] is of type Talk", "take that class of promptkit itself, "),
        (Order, "Order: order.lines[...].note is of type Text", "take a str, "),
        (Asked, "Asked: order.parts[...] is of type Content", "take a str, or bytes, "),
        (Titled, "Titled: order.title is of type Text", "take a str, "),
        (dict[str, Held], f"{dict[str, Held]}: order[...].link is of type ResourceLink", "take its URI "),
        (
            list[Context],
            f"{list[Context]}: order[...] is of type Context",
            "annotate a parameter with Context ",
        ),
        (Tree, "Tree: order.weight is of type complex", "use a type that can be written as text or JSON, "),
        (Unknown, "Unknown", "use a type that can be written as text or JSON, "),
        (Iterable[str], "Iterable[str]", "write Sequence[...] or list[...] in its place: "),
        (Iterator[str], "Iterator[str]", "write Sequence[...] or list[...] in its place: "),
        (deque[str], "collections.deque[str]", "write Sequence[...] or list[...] in its place: "),
        (list[Iterable[int]], None, "write Sequence[...] or list[...] in its place: "),
        (OrderedDict[str, int], "collections.OrderedDict[str, int]", "write dict[...] in its place, "),
        (Callable[[int], str], None, "use a type that can be written as text or JSON, "),
    ],
    ids=lambda part: str(part)[:40],
)
def test_the_part_that_cannot_be_read_is_named(annotation, message, hint):
    """The message has the path of the unsupported part, and the hint a replacement."""
    told, what_to_do = found_in(annotation)

    assert message is None or told.removeprefix("collections.abc.") == message
    assert what_to_do.startswith(hint)


def test_what_an_author_teaches_is_read():
    """An author's class without content of promptkit's is supported."""
    assert reader_of(list[Box[int]]) is not None


def test_a_context_alone_is_no_argument():
    """An optional Context is not an argument."""

    @prompt
    def asked(context: Context | None = None) -> str:
        return ""

    assert asked.compiled.arguments.ordered == ()


class Kind(Enum):
    WARM = "warm"


def helper() -> str:
    return ""


@prompt
def another() -> str:
    return ""


FOR_TEXT = "write the intended type: str takes any text"


@pytest.mark.parametrize(
    ("annotation", "what", "hint"),
    [
        (any, "is annotated with the function 'any'", FOR_TEXT),
        (list[any], "has the function 'any' at order[...]", "write typing.Any"),
        (dict[str, any], "has the function 'any' at order[...]", "write typing.Any"),
        (callable, "is annotated with the function 'callable'", FOR_TEXT),
        (helper, "is annotated with the function 'helper'", FOR_TEXT),
        (dt, "is annotated with the module datetime", "write a class of it, as in datetime.datetime"),
        (decimal, "is annotated with the module decimal", "write a class of it, as in decimal.Decimal"),
        (pathlib, "is annotated with the module pathlib", "write a class of it"),
        (list[dt], "has the module datetime at order[...]", "write a class of it, "),
        (another, "is annotated with a Prompt (", FOR_TEXT),
        (3, "is annotated with an int (3)", "write its type, int; a default follows '='"),
        (Kind.WARM, "is annotated with a Kind (<Kind.WARM: 'warm'>)", FOR_TEXT),
        (["a", "b"], "is annotated with a list (['a', 'b'])", "write a type, such as list[...]"),
        ([str], "is annotated with a list ([<class 'str'>])", "write a type, such as list[...]"),
        ((str, int), "is annotated with a tuple (", "write a type, such as tuple[...]"),
        ({"a": 1}, "is annotated with a dict ({'a': 1})", "write a type, such as dict[...]"),
        (list[[1]], "has a list ([1]) at order[...]", "write a type, such as list[...]"),
    ],
    ids=lambda part: part if isinstance(part, str) else type(part).__name__,
)  # fmt: skip
def test_what_is_no_type(annotation, what, hint):
    """A function, module or value as annotation is reported with the type that was probably meant."""

    def made(order) -> str:
        return ""

    made.__annotations__["order"] = annotation
    _, (told,) = prompt(made).compile()

    assert told.rule is Rule.UNSUPPORTED_TYPE
    assert told.message.startswith(f"prompt 'made': parameter 'order' {what}")
    assert told.message.endswith(", which is not a type")
    assert told.hint.startswith(hint)


@pytest.mark.parametrize(
    ("annotation", "hint"),
    [
        ("any | None", "a function is no type: write the type that is meant, as in str | None"),
        ("str | dt", "a module is no type: write a class of it, as in datetime.datetime"),
    ],
)
def test_what_is_no_type_beside_others(annotation, hint):
    """A non-type in a union is reported as unresolved, because Python cannot evaluate the union."""

    def made(order) -> str:
        return ""

    made.__annotations__["order"] = annotation
    _, (told,) = prompt(made).compile()

    assert told.rule is Rule.UNRESOLVED_ANNOTATION
    assert told.hint.startswith(hint)


@pytest.mark.parametrize("annotation", [Any, object, Any | None, list[object]], ids=str)
def test_what_may_be_anything(annotation):
    """Any and object are rejected, because a client can send only text or JSON."""
    assert found_in(annotation)[1] == FOR_TEXT


LEAVE = "leave out {} and check the value in the function, or take "


@pytest.mark.parametrize(
    ("annotation", "fault", "hint"),
    [
        (
            Annotated[decimal.Decimal, msgspec.Meta(ge=0, le=30)],
            "has bounds that Decimal does not take: ge, le",
            f"{LEAVE}int or float",
        ),
        (
            Annotated[dt.date, msgspec.Meta(gt=0)],
            "has bounds that date does not take: gt",
            f"{LEAVE}int or float",
        ),
        (
            Annotated[str, msgspec.Meta(lt=0)],
            "has bounds that str does not take: lt",
            f"{LEAVE}int or float",
        ),
        (
            Annotated[int, msgspec.Meta(pattern="x")],
            "has bounds that int does not take: pattern",
            f"{LEAVE}str",
        ),
        (
            Annotated[dt.date, msgspec.Meta(tz=True)],
            "has bounds that date does not take: tz",
            f"{LEAVE}datetime or time",
        ),
        (
            list[Annotated[decimal.Decimal, msgspec.Meta(ge=0)]],
            "has bounds at order[...] that Decimal does not take: ge",
            f"{LEAVE}int or float",
        ),
        (
            Annotated[int | None, msgspec.Meta(ge=0)],
            "has bounds that int | None does not take: ge",
            "constrain the intended member, as in Annotated[int, ...] | ...",
        ),
    ],
    ids=str,
)
def test_bounds_that_a_type_does_not_take(annotation, fault, hint):
    """Bounds that do not apply to the type are reported."""

    def made(order) -> str:
        return ""

    made.__annotations__["order"] = annotation
    _, (told,) = prompt(made).compile()

    assert told.rule is Rule.UNSUPPORTED_TYPE
    assert told.message == f"prompt 'made': parameter 'order' {fault}"
    assert told.hint == hint.format(fault.partition(": ")[2])
