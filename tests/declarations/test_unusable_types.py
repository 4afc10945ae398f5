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
from promptkit.types.parsing import reader_for

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


class Request(TypedDict):
    parts: NotRequired[list[Content]]


class Titled(NamedTuple):
    number: int
    title: Text


class Linked(msgspec.Struct):
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


def find_type_and_hint(annotation: Any) -> tuple[Any, ...]:
    """
    Return the type that the message names, and the hint, which must be the same for a prompt and a resource.
    """

    def place_order(order) -> str:
        return ""

    place_order.__annotations__["order"] = annotation
    as_prompt, (diagnostic,) = prompt(place_order).compile()
    as_resource, (resource_diagnostic,) = resource("order:{order}")(place_order).compile()
    assert as_prompt is as_resource is None
    assert diagnostic.rule is resource_diagnostic.rule is Rule.UNSUPPORTED_TYPE
    assert diagnostic.hint == resource_diagnostic.hint
    return diagnostic.message.partition("of type ")[2], diagnostic.hint


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
def test_content_classes_are_rejected(kind, around):
    """The content classes of promptkit are rejected wherever they are in a parameter's type."""
    _, hint = find_type_and_hint(around(kind))

    assert hint.startswith("take ")
    assert hint.endswith(" in the function")


@pytest.mark.parametrize(
    ("annotation", "expected_message", "expected_hint"),
    [
        (Scan, "Scan", "take promptkit's own class, "),
        (list[Talk], f"{list[Talk]}: order[...] is of type Talk", "take promptkit's own class, "),
        (Order, "Order: order.lines[...].note is of type Text", "take a str, "),
        (Request, "Request: order.parts[...] is of type Content", "take a str or bytes, "),
        (Titled, "Titled: order.title is of type Text", "take a str, "),
        (dict[str, Linked], f"{dict[str, Linked]}: order[...].link is of type ResourceLink", "take its URI "),
        (
            list[Context],
            f"{list[Context]}: order[...] is of type Context",
            "annotate the parameter with Context ",
        ),
        (Tree, "Tree: order.weight is of type complex", "use a type that can be written as text or JSON, "),
        (Unknown, "Unknown", "use a type that can be written as text or JSON, "),
        (Iterable[str], "Iterable[str]", "write Sequence[...] or list[...] instead: "),
        (Iterator[str], "Iterator[str]", "write Sequence[...] or list[...] instead: "),
        (deque[str], "collections.deque[str]", "write Sequence[...] or list[...] instead: "),
        (list[Iterable[int]], None, "write Sequence[...] or list[...] instead: "),
        (OrderedDict[str, int], "collections.OrderedDict[str, int]", "write dict[...] instead, "),
        (Callable[[int], str], None, "use a type that can be written as text or JSON, "),
    ],
    ids=lambda part: str(part)[:40],
)
def test_the_message_has_the_path_of_the_unsupported_part(annotation, expected_message, expected_hint):
    """The message has the path of the unsupported part, and the hint a replacement."""
    message, hint = find_type_and_hint(annotation)

    assert expected_message is None or message.removeprefix("collections.abc.") == expected_message
    assert hint.startswith(expected_hint)


def test_an_authors_own_class_is_supported():
    """An author's class that contains no promptkit content is supported."""
    assert reader_for(list[Box[int]]) is not None


def test_an_optional_context_is_not_an_argument():
    """An optional Context is not an argument."""

    @prompt
    def greet(context: Context | None = None) -> str:
        return ""

    assert greet.compiled.arguments.ordered == ()


class Kind(Enum):
    WARM = "warm"


def helper() -> str:
    return ""


@prompt
def another() -> str:
    return ""


FOR_TEXT = "write the intended type, such as str for any text"


@pytest.mark.parametrize(
    ("annotation", "problem", "hint"),
    [
        (any, "is annotated with the function 'any'", FOR_TEXT),
        (list[any], "has the function 'any' at order[...]", FOR_TEXT),
        (dict[str, any], "has the function 'any' at order[...]", FOR_TEXT),
        (callable, "is annotated with the function 'callable'", FOR_TEXT),
        (helper, "is annotated with the function 'helper'", FOR_TEXT),
        (dt, "is annotated with the module datetime", "write one of its classes"),
        (decimal, "is annotated with the module decimal", "write one of its classes"),
        (pathlib, "is annotated with the module pathlib", "write one of its classes"),
        (list[dt], "has the module datetime at order[...]", "write one of its classes"),
        (another, "is annotated with a Prompt (", FOR_TEXT),
        (3, "is annotated with an int (3)", FOR_TEXT),
        (Kind.WARM, "is annotated with a Kind (<Kind.WARM: 'warm'>)", FOR_TEXT),
        (["a", "b"], "is annotated with a list (['a', 'b'])", FOR_TEXT),
        ([str], "is annotated with a list ([<class 'str'>])", FOR_TEXT),
        ((str, int), "is annotated with a tuple (", FOR_TEXT),
        ({"a": 1}, "is annotated with a dict ({'a': 1})", FOR_TEXT),
        (list[[1]], "has a list ([1]) at order[...]", FOR_TEXT),
    ],
    ids=lambda part: part if isinstance(part, str) else type(part).__name__,
)  # fmt: skip
def test_an_annotation_that_is_not_a_type_is_reported(annotation, problem, hint):
    """A function, module or value as annotation is reported with the type that was probably meant."""

    def place_order(order) -> str:
        return ""

    place_order.__annotations__["order"] = annotation
    _, (diagnostic,) = prompt(place_order).compile()

    assert diagnostic.rule is Rule.UNSUPPORTED_TYPE
    assert diagnostic.message.startswith(f"prompt 'place_order': parameter 'order' {problem}")
    assert diagnostic.message.endswith(", which is not a type")
    assert diagnostic.hint.startswith(hint)


@pytest.mark.parametrize(
    ("annotation", "hint"),
    [
        ("any | None", "a function is not a type: write the intended type, for example str | None"),
        ("str | dt", "a module is not a type: write one of its classes, for example datetime.datetime"),
    ],
)
def test_a_union_with_a_non_type_is_unresolved(annotation, hint):
    """A non-type in a union is reported as unresolved, because Python cannot evaluate the union."""

    def place_order(order) -> str:
        return ""

    place_order.__annotations__["order"] = annotation
    _, (diagnostic,) = prompt(place_order).compile()

    assert diagnostic.rule is Rule.UNRESOLVED_ANNOTATION
    assert diagnostic.hint.startswith(hint)


@pytest.mark.parametrize("annotation", [Any, object, Any | None, list[object]], ids=str)
def test_any_and_object_are_rejected(annotation):
    """Any and object are rejected, because a client can send only text or JSON."""
    assert find_type_and_hint(annotation)[1] == FOR_TEXT


LEAVE = "remove {} and check the value in the function"


@pytest.mark.parametrize(
    ("annotation", "problem", "hint"),
    [
        (
            Annotated[decimal.Decimal, msgspec.Meta(ge=0, le=30)],
            "has a constraint that Decimal does not support: ge",
            LEAVE,
        ),
        (
            Annotated[dt.date, msgspec.Meta(gt=0)],
            "has a constraint that date does not support: gt",
            LEAVE,
        ),
        (
            Annotated[str, msgspec.Meta(lt=0)],
            "has a constraint that str does not support: lt",
            LEAVE,
        ),
        (
            Annotated[int, msgspec.Meta(pattern="x")],
            "has a constraint that int does not support: pattern",
            LEAVE,
        ),
        (
            Annotated[dt.date, msgspec.Meta(tz=True)],
            "has a constraint that date does not support: tz",
            LEAVE,
        ),
        (
            list[Annotated[decimal.Decimal, msgspec.Meta(ge=0)]],
            "has a constraint at order[...] that Decimal does not support: ge",
            LEAVE,
        ),
        (
            Annotated[int | None, msgspec.Meta(ge=0)],
            "has a constraint that int | None does not support: ge",
            "constrain the intended member, for example Annotated[int, ...] | ...",
        ),
    ],
    ids=str,
)
def test_bounds_that_do_not_apply_are_reported(annotation, problem, hint):
    """Bounds that do not apply to the type are reported."""

    def place_order(order) -> str:
        return ""

    place_order.__annotations__["order"] = annotation
    _, (diagnostic,) = prompt(place_order).compile()

    assert diagnostic.rule is Rule.UNSUPPORTED_TYPE
    assert diagnostic.message == f"prompt 'place_order': parameter 'order' {problem}"
    assert diagnostic.hint == hint.format(problem.partition(": ")[2])
