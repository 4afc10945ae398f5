import datetime as dt
import json
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Optional
from uuid import UUID

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from promptkit import Arg, Image, Message, Workflow, prompt
from promptkit.types.errors import ConversionError
from promptkit.types.parsing import reader_for
from promptkit.types.structuring import structurer
from promptkit.types.unstructuring import json_of, text_as_entered, text_of
from tests.sample_types import Board, Circle, Level, Node, Options, Pair, Place, Point, Row, Shelf, Tone


def share(number):
    """
    Return the number of examples: *number* in CI, half of it elsewhere, ten times *number* with `--whole`.
    """
    return number * settings().max_examples // 100


AWARE = st.datetimes(timezones=st.just(dt.UTC))
NUMBERS = st.decimals(-(10**9), 10**9, places=2)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
POINTS = st.builds(Point, st.integers(), st.floats(allow_nan=False, allow_infinity=False))
NODES = st.recursive(
    st.builds(Node, st.integers()),
    lambda nodes: st.builds(Node, st.integers(), st.lists(nodes, max_size=3)),
    max_leaves=5,
)

MESSAGES = st.builds(Message, st.sampled_from(["user", "assistant"]), TEXT.map(lambda text: f"{text}."))
PIXEL = Image(b64decode("R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs="))


class Order(BaseModel):
    customer: str
    count: int = Field(1, ge=1)


#: Every supported type, with a strategy for its values.
TYPES: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False),
    dt.date: st.dates(),
    dt.datetime: st.datetimes(timezones=st.sampled_from([None, dt.UTC])),
    dt.time: st.times(),
    dt.timedelta: st.timedeltas(),
    UUID: st.uuids(),
    bytes: st.binary(max_size=40),
    Path: st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?", fullmatch=True).map(Path),
    Tone: st.sampled_from(Tone),
    Level: st.sampled_from(Level),
    Literal["a", "b c", 3]: st.sampled_from(["a", "b c", 3]),
    Optional[int]: st.integers(),  # noqa: UP045 (authors write it)
    int | str: st.integers() | st.from_regex(r"[a-z]{1,5}", fullmatch=True),
    Annotated[int, msgspec.Meta(ge=0, le=9)]: st.integers(0, 9),
    Annotated[str, msgspec.Meta(min_length=2)]: st.text("abc", min_size=2, max_size=5),
    list[str]: st.lists(TEXT),
    list[int]: st.lists(st.integers()),
    list[Tone]: st.lists(st.sampled_from(Tone)),
    set[int]: st.sets(st.integers()),
    frozenset[str]: st.frozensets(TEXT),
    tuple[int, ...]: st.lists(st.integers()).map(tuple),
    Sequence[int]: st.lists(st.integers()).map(tuple),
    tuple[int, str]: st.tuples(st.integers(), TEXT),
    dict[str, int]: st.dictionaries(TEXT, st.integers()),
    dict[int, str]: st.dictionaries(st.integers(-(10**17), 10**17), TEXT),
    dict[str, dict[int, list[Pair]]]: st.dictionaries(
        TEXT, st.dictionaries(st.integers(-9, 9), st.lists(st.builds(Pair, st.integers(), TEXT))), max_size=2
    ),
    dict[Literal["a", "b"], int]: st.dictionaries(st.sampled_from("ab"), st.integers()),
    list[list[int]]: st.lists(st.lists(st.integers(), max_size=3), max_size=3),
    dict[str, list[Point]]: st.dictionaries(TEXT, st.lists(POINTS, max_size=3), max_size=3),
    Point: POINTS,
    Place: st.builds(Place, TEXT, st.lists(POINTS, max_size=3), st.sampled_from(Tone)),
    Board: st.builds(Board, st.dictionaries(TEXT, st.lists(POINTS, max_size=2), max_size=2)),
    Node: NODES,
    Options: st.fixed_dictionaries({"depth": st.integers()}, optional={"tags": st.lists(TEXT)}),
    Pair: st.builds(Pair, st.integers(), TEXT),
    dict[str, dt.date]: st.dictionaries(TEXT, st.dates()),
    dict[str, dt.datetime]: st.dictionaries(TEXT, st.datetimes(timezones=st.just(dt.UTC))),
    dict[str, dt.time]: st.dictionaries(TEXT, st.times()),
    dict[str, dt.timedelta]: st.dictionaries(TEXT, st.timedeltas()),
    dict[str, UUID]: st.dictionaries(TEXT, st.uuids()),
    dict[str, Decimal]: st.dictionaries(TEXT, st.decimals(allow_nan=False, allow_infinity=False)),
    dict[str, bytes]: st.dictionaries(TEXT, st.binary(max_size=9)),
    dict[str, Path]: st.dictionaries(TEXT, st.just(Path("a"))),
    Circle: st.builds(Circle, st.integers(-(2**62), 2**62), TEXT),
    Row: st.builds(Row, st.sets(NUMBERS), TEXT),
    Shelf: st.builds(Shelf, st.sets(NUMBERS), st.dictionaries(NUMBERS, st.integers(-(2**62), 2**62))),
    set[Decimal]: st.sets(NUMBERS),
    dict[Decimal, int]: st.dictionaries(NUMBERS, st.integers()),
    dict[str, Annotated[dt.datetime, msgspec.Meta(tz=True)]]: st.dictionaries(TEXT, AWARE),
    dict[str, Annotated[dt.datetime, msgspec.Meta(tz=False)]]: st.dictionaries(TEXT, st.datetimes()),
    dict[Annotated[dt.datetime, msgspec.Meta(tz=True)], int]: st.dictionaries(AWARE, st.integers()),
    dict[str, Annotated[dt.time, msgspec.Meta(tz=True)]]: st.dictionaries(
        TEXT, st.times(timezones=st.just(dt.UTC))
    ),
    Annotated[dt.datetime, msgspec.Meta(tz=True)]: AWARE,
    Workflow: st.lists(MESSAGES, max_size=3).map(Workflow),
    list[Message]: st.lists(MESSAGES, max_size=3),
    Image: st.just(PIXEL),
    Order: st.builds(Order, customer=TEXT, count=st.integers(1, 9)),
    dict[str, Order]: st.dictionaries(TEXT, st.builds(Order, customer=TEXT), max_size=2),
}
ALL = pytest.mark.parametrize("annotation", TYPES, ids=str)

#: Cached for each type, because building a reader takes longer than reading a value.
reader = cache(reader_for)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(-1e9, 1e9) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT | st.sampled_from("xy"), inner, max_size=4)
    ),
    max_leaves=8,
)


@ALL
@settings(max_examples=share(60))
@given(st.data())
def test_written_text_can_be_parsed(annotation, data):
    """For every type, the text of a value, and its text as a default, are parsed to the same value."""
    value = data.draw(TYPES[annotation])

    assert reader(annotation).read(text_of(value)) == value
    assert reader(annotation).read(text_as_entered(value)) == value


@given(
    st.sampled_from(
        [int | str, str | float, bool | str, Decimal | str, dt.date | str, Tone | str, UUID | str]
    ),
    st.text(max_size=9)
    | st.from_regex(r"-?0*[0-9]{1,3}(\.[0-9]{0,3})?|no|true|2026-?01-?3[0-9]", fullmatch=True),
)
def test_text_in_a_union_with_text_is_never_changed(annotation, text):
    """In a union with text, text is read as itself, or as a value that is written as the same text."""
    assert text_of(reader(annotation).read(text)) == text
    assert json_of(structurer(annotation)(text)) == text


#: Text that an attacker might send.
HOSTILE = [
    "9" * 5000,
    "1e999999999",
    "-1e999999999",
    "[" * 5000,
    '{"a":' * 5000,
    "[" * 990 + "]" * 990,
    "1 " * 5000,
    "1d" * 5000,
    "1" * 3000 + "d",
    "P" + "1" * 3000 + "D",
    "9" * 400 + " weeks",
    "99999999999 days",
    "1:" * 3000,
    "\0",
    "\ud800",
    "٣",
    "Infinity",
    "0x10",
    "--1",
    "2026-13-45",
    "data:",
    "data:;base64",
    "data:,%zz",
    "=" * 999,
    '{"x": 1e400}',
    '{"x": NaN}',
    '["\ud800"]',
]


@settings(deadline=1000, max_examples=share(2000), suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(list(TYPES)), st.text(max_size=60) | JSON)
def test_anything_is_a_value_or_a_conversion_error(annotation, sent):
    """Any text or other JSON quickly gives a value or a `ConversionError`, and never another exception."""
    with suppress(ConversionError):
        reader(annotation).read(sent)


@ALL
def test_hostile_text_is_a_value_or_a_conversion_error(annotation):
    """Even text that is made to break a parser gives a value or a `ConversionError`."""
    for text in ("", *HOSTILE):
        with suppress(ConversionError):
            reader(annotation).read(text)


def compiled(annotation):
    """Return a compiled prompt with one parameter of a type."""

    def typed(value) -> str:
        return str(value)

    typed.__annotations__["value"] = Annotated[annotation, Arg("What it is", title="Value")]
    return prompt(typed).compiled


@ALL
def test_schemas_are_valid(annotation):
    """The schema of every type is valid under 2020-12, and its description starts with the author's."""
    schema = compiled(annotation).schema

    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema
    assert schema["required"] == ["value"]
    assert schema["properties"]["value"]["title"] == "Value"
    assert schema["properties"]["value"]["description"].partition(" (")[0] == "What it is"


#: Where the reader accepts what the schema does not, or the reverse:
#: - Every type reads top-level text leniently, because most clients send only text.
#: - Items of a list of plain values can be text, as people also write them in JSON.
#: - null means "omitted", before the type is considered.
#: - pydantic converts "5" to 5, and true to 1.
#: - Enums accept values that are numbers, while the schema has the names.
#: - Named tuples can be objects, while the schema is that of an array.
#: - The order of a tuple's items is only in the description, because many clients drop schemas of positions.
LENIENT_ITEMS = {list[int], list[Tone], set[int], set[Decimal], tuple[int, ...], Sequence[int]}
OF_TEXT = {str, Annotated[str, msgspec.Meta(min_length=2)], list[str], frozenset[str]}
OF_PYDANTIC = {Order, dict[str, Order]}
#: Types whose schemas do not describe all errors: items in their order, and messages with one block each.
BEYOND_SCHEMAS = {list[Message], tuple[int, str], Pair, Row, dict[str, dict[int, list[Pair]]]}


def is_beyond_schemas(annotation, value):
    """
    Return whether only the reader can detect an error, as in the order of a tuple or the bytes of an image.
    """
    return annotation in BEYOND_SCHEMAS or (annotation is Image and value != "")


def is_lenient(annotation, value):
    """Return whether the documented leniency covers *value*."""
    if isinstance(value, str) or value is None or annotation in OF_PYDANTIC:
        return True
    if annotation is Level and value in [*Level]:
        return True
    if annotation in OF_TEXT and any(type(i) is int for i in (value if isinstance(value, list) else [value])):
        return True
    return annotation in LENIENT_ITEMS and isinstance(value, list) and any(isinstance(i, str) for i in value)


def close_schema(schema):
    """Return a schema that rejects unknown members of records, as the reader does."""
    if isinstance(schema, list):
        return [close_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    members = {key: close_schema(part) for key, part in schema.items()}
    return (
        {"additionalProperties": False, **members} if isinstance(schema.get("properties"), dict) else members
    )


@cache
def validator_of(annotation):
    """Return the validator for the schema of a type."""
    checker = jsonschema.FormatChecker(["date", "uuid", "duration"])
    return jsonschema.Draft202012Validator(close_schema(compiled(annotation).schema), format_checker=checker)


def values_near(value):
    """A strategy for JSON that is *value*, or *value* with one part changed."""
    if isinstance(value, dict) and value:
        changed = st.sampled_from(sorted(value)).flatmap(
            lambda key: (JSON | values_near(value[key])).map(lambda new: {**value, key: new})
        )
        dropped = st.sampled_from(sorted(value)).map(lambda key: {k: v for k, v in value.items() if k != key})
        return st.just(value) | changed | dropped | st.just({**value, "more": 1})
    if isinstance(value, list) and value:
        changed = st.integers(0, len(value) - 1).flatmap(
            lambda at: (JSON | values_near(value[at])).map(lambda new: [*value[:at], new, *value[at + 1 :]])
        )
        return st.just(value) | changed | st.just(value[1:]) | st.just([*value, value[0]])
    return st.just(value) | JSON


@ALL
@settings(max_examples=share(80), suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_schema_and_reader_agree(annotation, data):
    """The schema and the reader accept the same JSON values, apart from the documented leniency."""
    sample = json.loads(msgspec.json.encode(json_of(data.draw(TYPES[annotation]))))
    value = data.draw(values_near(sample) | JSON)
    if is_lenient(annotation, value):
        return
    try:
        reader(annotation).read(value)
    except ConversionError:
        is_accepted = False
    else:
        is_accepted = True

    is_valid = validator_of(annotation).is_valid({"value": value})
    assert is_accepted == is_valid or (is_valid and is_beyond_schemas(annotation, value))
