"""The JSON Schemas of types use only keywords that clients can convert for their models."""

import json
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar
from uuid import UUID

import msgspec
import pytest
from msgspec import Meta

from promptkit import Arg, prompt
from promptkit.types.kinds import unwrap_type
from promptkit.types.schemas import Definitions, type_schema
from tests.laws.test_types import TYPES, compiled
from tests.sample_types import Corner, Level, Node, Pair, Place, Point, Tone

T = TypeVar("T")


class Shade(Enum):
    """How dark."""

    DARK = "dark"
    BRIGHT = "bright"


class Mixed(Enum):
    TWO = 2
    AUTO = "auto"


@dataclass
class Week:
    """When to meet."""

    start: Annotated[date, Meta(description="The first day")]
    length: timedelta = timedelta(days=7)
    days: list[Literal["tue", "mon"]] = field(default_factory=list)


class Box(NamedTuple, Generic[T]):
    inside: T


class Left(msgspec.Struct, tag="left"):
    right: "Right | None" = None


class Right(msgspec.Struct, tag="right"):
    left: Left | None = None


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    number: int


class Open(TypedDict):
    anything: Any
    items: list


def get_schema(annotation):
    """Return the schema of a type."""
    return type_schema(annotation, Definitions({}))[0]


def describe(annotation, default=msgspec.NODEFAULT, arg=None):
    """Return the description of an argument."""

    def ask(value):
        return "x"

    ask.__annotations__["value"] = Annotated[annotation, arg or Arg()]
    if default is not msgspec.NODEFAULT:
        ask.__defaults__ = (default,)
    return prompt(ask).compiled.schema["properties"]["value"].get("description")


def walk(schema):
    """Yield a schema and all its subschemas."""
    if isinstance(schema, dict):
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from walk(part)


EVERY = pytest.mark.parametrize(
    "annotation", [*TYPES, Mixed, Corner, Week, Left, Closed, Open, tuple[()]], ids=str
)


class TestEveryType:
    @EVERY
    def test_no_keyword_that_clients_reject_is_used(self, annotation):
        """Types are single strings, arrays have `items`, and objects are not closed."""
        schema = compiled(annotation).schema

        for part in walk(schema):
            assert "prefixItems" not in part
            assert part.get("additionalProperties") is not False
            assert part.get("type") != "array" or "items" in part
            assert part.get("format") not in ("decimal", "duration", "uuid")
            assert "enum" not in part or "type" in part
            if "$ref" in part:
                assert part["$ref"].rpartition("/")[2] in schema["$defs"]
        assert not any(isinstance(part.get("type"), list) for part in walk(schema))

    @EVERY
    def test_the_schema_is_deterministic(self, annotation):
        """The same type always has the same schema."""
        assert json.dumps(compiled(annotation).schema) == json.dumps(compiled(annotation).schema)


class TestChoices:
    @pytest.mark.parametrize(
        ("annotation", "expected"),
        [
            (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
            (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
            (Shade, {"type": "string", "enum": ["dark", "bright"]}),
            (Level, {"type": "string", "enum": ["LOW", "HIGH"]}),
            (Corner, {"type": "string", "enum": ["LEFT", "RIGHT"]}),
            (list[Literal["b", "a"]], {"type": "array", "items": {"type": "string", "enum": ["b", "a"]}}),
            (
                dict[Literal["b", "a"], Any],
                {
                    "type": "object",
                    "propertyNames": {"type": "string", "enum": ["b", "a"]},
                    "additionalProperties": {},
                },
            ),
            (Mixed, {"type": "string", "enum": ["TWO", "auto"]}),
            (
                Literal[None, "b", 3, True],  # noqa: PYI061 (null comes last)
                {
                    "anyOf": [
                        {"type": "string", "enum": ["b"]},
                        {"type": "integer", "enum": [3]},
                        {"type": "boolean", "enum": [True]},
                        {"type": "null"},
                    ]
                },
            ),
            # These names occur nowhere else: typing caches the first union of equal literals, whatever their
            # order.
            (Literal["n", "m"] | None, {"anyOf": [{"type": "string", "enum": ["n", "m"]}, {"type": "null"}]}),
            (Literal[Tone.COLD, Tone.WARM], {"type": "string", "enum": ["Cold", "warm"]}),
        ],
        ids=str,
    )
    def test_choices_have_a_type_and_the_authors_order(self, annotation, expected):
        """Choices have a type and the author's order; choices of several types are alternatives."""
        assert get_schema(annotation) == expected

    def test_choices_in_a_class_keep_their_order(self):
        """Choices in a class keep their order, even through a type parameter."""
        (days,) = [part for part in walk(get_schema(Week)) if "enum" in part]

        assert days["enum"] == ["tue", "mon"]
        assert get_schema(Box[Literal["z", "y"]])["items"]["enum"] == ["z", "y"]


class TestClasses:
    def test_classes_are_inlined(self):
        """Classes are inlined, with their docstrings and the descriptions of their fields."""
        assert get_schema(list[Week]) == {
            "type": "array",
            "items": {
                "description": "When to meet.",
                "type": "object",
                "properties": {
                    "start": {
                        "type": "string",
                        "format": "date",
                        "description": "The first day (a date such as 2026-01-31)",
                    },
                    "length": {**get_schema(timedelta), "description": describe(timedelta), "default": "P7D"},
                    "days": {
                        "type": "array",
                        "items": {"type": "string", "enum": ["tue", "mon"]},
                        "default": [],
                    },
                },
                "required": ["start"],
            },
        }

    def test_only_recursive_classes_are_references(self):
        """Only recursive classes are references, with one definition each."""
        definitions = Definitions({})

        assert (
            type_schema(Node, definitions)[0] == type_schema(Node, definitions)[0] == {"$ref": "#/$defs/Node"}
        )
        assert type_schema(list[Place], definitions)[0]["items"]["type"] == "object"
        assert definitions.schemas.keys() == {"Node"}
        assert definitions.schemas["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}

    def test_the_outer_of_mutually_recursive_classes_is_a_reference(self):
        """Of classes that refer to each other, only the outer one is a reference."""
        definitions = Definitions({})

        assert type_schema(Left, definitions)[0] == {"$ref": "#/$defs/Left"}
        (right, _) = definitions.schemas["Left"]["properties"]["right"]["anyOf"]
        assert right["properties"]["type"]["enum"] == ["right"]
        assert {"$ref": "#/$defs/Left"} in list(walk(right))

    def test_classes_with_the_same_name_have_separate_definitions(self):
        """Two classes with the same name have different names in the definitions."""
        definitions = Definitions({})

        def make_tree():
            class Tree(msgspec.Struct):
                below: "list[Tree]"

            Tree.__annotations__["below"] = list[Tree]
            return Tree

        names = [type_schema(make_tree(), definitions)[0]["$ref"] for _ in range(2)]

        assert len(set(names)) == 2
        assert {f"#/$defs/{name}" for name in definitions.schemas} == set(names)


class TestArrays:
    @pytest.mark.parametrize(
        ("annotation", "expected"),
        [
            (
                tuple[int, str],
                {
                    "type": "array",
                    "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "minItems": 2,
                    "maxItems": 2,
                },
            ),
            (tuple[int, int], {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
            (tuple[()], {"type": "array", "items": {}, "minItems": 0, "maxItems": 0}),
            (
                Pair,
                {
                    "type": "array",
                    "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "minItems": 1,
                    "maxItems": 2,
                },
            ),
            (list, {"type": "array", "items": {}}),
            (
                Annotated[list[int], Meta(max_length=2)],
                {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
            ),
        ],
        ids=str,
    )
    def test_arrays_have_their_items_and_length(self, annotation, expected):
        """Arrays have the schema of their items and their length."""
        assert get_schema(unwrap_type(annotation)) == expected


class TestDescriptions:
    @pytest.mark.parametrize(
        ("annotation", "default", "expected"),
        [
            (str, msgspec.NODEFAULT, None),
            (int, 3, "default 3"),
            (bool, True, "default true"),
            (list[str], ["a", "b"], 'default ["a","b"]'),
            (list[str], [], None),
            (str, "", None),
            (date, msgspec.NODEFAULT, "a date such as 2026-01-31"),
            (date, date(2026, 2, 3), "a date such as 2026-01-31; default 2026-02-03"),
            (timedelta, msgspec.NODEFAULT, "a duration such as PT1H30M for 1h 30m"),
            (datetime, msgspec.NODEFAULT, "a date and time such as 2026-01-31T12:00:00Z"),
            (Annotated[int, Meta(ge=1, le=9)], 3, "a whole number from 1 to 9; default 3"),
            (Annotated[str, Meta(max_length=9)], msgspec.NODEFAULT, "text of at most 9 characters"),
            (
                Annotated[list[int], Meta(min_length=1)],
                msgspec.NODEFAULT,
                "a list of at least 1 items, each a whole number",
            ),
            (tuple[int, str], msgspec.NODEFAULT, "a list of 2 items: a whole number, text"),
            (Pair, msgspec.NODEFAULT, "a list of left, right"),
            (
                dict[str, list[date]],
                msgspec.NODEFAULT,
                "a JSON object, each value a list, each a date such as 2026-01-31",
            ),
            (Literal["a", "b"], "a", "default a"),
            (Level, msgspec.NODEFAULT, None),
            (Literal["auto", 3], msgspec.NODEFAULT, "one of auto, 3"),
            (Point, msgspec.NODEFAULT, None),
            (Shade, msgspec.NODEFAULT, None),
            (Week, msgspec.NODEFAULT, "When to meet."),
            (Point | Place, msgspec.NODEFAULT, None),
        ],
        ids=str,
    )
    def test_descriptions_complement_the_json_types(self, annotation, default, expected):
        """A description states the format, the bounds and the default, where JSON types do not."""
        assert describe(annotation, default) == expected

    @pytest.mark.parametrize(
        ("annotation", "expected"),
        [
            (date | str, "a date such as 2026-01-31 or text"),
            (date | str | None, "a date such as 2026-01-31 or text"),
            (date | Literal["b", "a"], "a date such as 2026-01-31 or one of b, a"),
            (date | Corner, "a date such as 2026-01-31 or one of LEFT, RIGHT"),
            (date | bool | str, "a date such as 2026-01-31 or true or false or text"),
            (list[date | str], "a list, each a date such as 2026-01-31 or text"),
            (tuple[date | str, ...], "a list, each a date such as 2026-01-31 or text"),
            (
                list[int] | tuple[str, str],
                "a list, each a whole number or a list of 2 items: text, text",
            ),
            (date | list[Corner], "a date such as 2026-01-31 or a list, each one of LEFT, RIGHT"),
            (
                dict[str, int] | Point,
                "a JSON object, each value a whole number or a JSON object with x, y",
            ),
            (Annotated[int, Meta(ge=1)] | str, "a whole number of at least 1 or text"),
        ],
        ids=str,
    )
    def test_all_alternatives_are_described(self, annotation, expected):
        """If one alternative of a union needs a description, all are described."""
        assert describe(annotation) == expected

    @pytest.mark.parametrize(
        ("annotation", "expected"),
        [
            (Literal[3, 1, 2] | None, "one of 3, 1, 2"),
            (Literal[3, 1] | date, "one of 3, 1 or a date such as 2026-01-31"),
            (Literal[3, 1] | date | str, "one of 3, 1 or a date such as 2026-01-31 or text"),
            (list[Literal["b", 2, "a"]], "a list, each one of b, 2, a"),
            (list[Literal[True, False]], "a list, each one of true, false"),
            (tuple[Literal[2, 1], date], "a list of 2 items: one of 2, 1, a date such as 2026-01-31"),
            (dict[str, list[Literal[2, 1]]], "a JSON object, each value a list, each one of 2, 1"),
            (
                list[Literal[2, 1]] | tuple[str, str],
                "a list, each one of 2, 1 or a list of 2 items: text, text",
            ),
        ],
        ids=str,
    )
    def test_choices_are_in_the_authors_order(self, annotation, expected):
        """The description lists choices in the author's order, at every depth."""
        assert describe(annotation) == expected

    def test_choices_of_members_are_in_the_authors_order(self):
        """Fields of a class list choices in the author's order."""

        @dataclass
        class Order:
            size: Literal[3, 1, 2] | None
            extras: list[Literal["b", 2, "a"]]

        members = get_schema(Order)["properties"]

        assert members["size"]["description"] == "one of 3, 1, 2"
        assert members["extras"]["description"] == "a list, each one of b, 2, a"

    def test_generated_descriptions_follow_the_authors(self):
        """The generated description follows the author's in brackets."""
        arg = Arg("The day", examples=[date(2026, 2, 3)])

        assert describe(date, date(2026, 3, 4), arg) == (
            "The day (a date such as 2026-01-31; for example 2026-02-03; default 2026-03-04)"
        )

    def test_the_alternative_to_null_is_described(self):
        """The alternative to null has a description, because some clients show only that alternative."""

        def ask(value: Annotated[date | None, Arg("The day")] = None):
            return "x"

        schema = prompt(ask).compiled.schema["properties"]["value"]

        assert schema["description"] == "The day (a date such as 2026-01-31)"
        assert schema["anyOf"] == [
            {"type": "string", "format": "date", "description": schema["description"]},
            {"type": "null"},
        ]


class TestPatterns:
    @pytest.mark.parametrize("pattern", ["^[a-z]+$", "(?:a|b)", r"\d{4}"])
    def test_an_authors_pattern_is_in_the_schema(self, pattern):
        """A pattern is in the schema if every client can read it."""
        assert get_schema(Annotated[str, Meta(pattern=pattern)])["pattern"] == pattern

    @pytest.mark.parametrize("pattern", ["(?!a)b", "(?<=a)b", "(?P<n>a)", r"(a)\1", r"\Aa\Z"])
    def test_a_pattern_that_only_python_reads_is_in_the_description(self, pattern):
        """
        A pattern that only Python reads is in the description, because some clients reject schemas that
        contain it.
        """
        annotation = Annotated[str, Meta(pattern=pattern)]

        assert get_schema(annotation) == {"type": "string"}
        assert pattern in describe(annotation)

    def test_decimals_are_strings_or_numbers(self):
        """A Decimal is a string or a number, as separate alternatives."""
        assert [alternative["type"] for alternative in get_schema(Decimal)["anyOf"]] == ["string", "number"]
        assert get_schema(UUID).keys() == {"type", "pattern"}
