"""The table of scalar types: one entry defines everything about a type."""

import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated
from uuid import UUID

import jsonschema
import msgspec
import pytest
from msgspec import Meta

from promptkit import ArgumentsError, prompt, register_type
from promptkit.catalog.arguments import schema_of
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.types.kinds import Constraints, split_constraints
from promptkit.types.parsing import reader_for
from promptkit.types.scalar_types import SCALARS, ScalarType, text_scalar
from promptkit.types.structuring import structurer
from promptkit.types.unstructuring import json_of, text_of
from tests.wire import MODERN, Client

LOCAL = IPv4Address("127.0.0.1")
NO_LIMITS = Constraints()

#: The entry of a type that promptkit does not have.
RECORD = msgspec.structs.replace(
    text_scalar(
        IPv4Address,
        expected="an IPv4 address",
        schema={"type": "string", "format": "ipv4"},
        write=lambda address: address.exploded,
    ),
    values=("127.0.0.1", "0.0.0.0"),  # noqa: S104 (offered as a completion)
    example="10.0.0.1",
    is_inline=True,
)

#: A value of each built-in scalar type.
VALUES = {
    str: "a, b",
    bool: True,
    int: 5,
    float: 2.5,
    bytes: b"hello",
    Decimal: Decimal("2.50"),
    date: date(2026, 1, 31),
    datetime: datetime(2026, 1, 31, 12, tzinfo=UTC),
    time: time(12, 30),
    timedelta: timedelta(hours=1, minutes=30),
    UUID: UUID(int=5),
    Path: Path("notes/today.md"),
}
EVERY = pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)


@pytest.fixture
def address(monkeypatch):
    """The additional type, with an entry in the table."""
    monkeypatch.setitem(SCALARS, IPv4Address, RECORD)
    return IPv4Address


def make_prompt(annotation, **options):
    """Return a prompt with one parameter of the given type."""

    def typed(value) -> str:
        return str(value)

    typed.__annotations__["value"] = annotation
    typed.__defaults__ = tuple(options.values())
    return prompt(typed)


def get_schema(annotation):
    """Return the JSON Schema of a type and its definitions."""
    schema = schema_of(make_prompt(annotation).compiled.arguments.ordered)
    return schema["properties"]["value"], schema.get("$defs", {})


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(seconds=1800), "30m"),
        (timedelta(hours=1, minutes=30), "1h 30m"),
        (timedelta(days=7), "7d"),
        (timedelta(seconds=10, microseconds=500), "10.0005s"),
        (timedelta(), "0s"),
        (-timedelta(hours=2), "-2h"),
        (timedelta.max, "999999999d 23h 59m 59.999999s"),
        (timedelta.min, "-999999999d"),
    ],
    ids=str,
)
def test_a_duration_is_written_in_hours_minutes_and_seconds(duration, text):
    """A duration is written in hours, minutes and seconds, and can be read back."""
    assert text_of(duration) == text
    assert reader_for(timedelta).read(text) == duration


class TestOneEntry:
    def test_without_an_entry_the_type_is_not_supported(self):
        """Without an entry in the table, the type is not supported."""
        assert reader_for(IPv4Address) is None

    def test_the_type_is_read(self, address):
        """The type is read alone, as optional, in a union, and in lists and sets."""
        for annotation in (address, address | None, address | int):
            assert reader_for(annotation).read("127.0.0.1") == LOCAL
        assert reader_for(list[address]).read("127.0.0.1, 127.0.0.1") == [LOCAL, LOCAL]
        assert reader_for(set[address]).read("127.0.0.1\n127.0.0.1") == {LOCAL}

    def test_the_type_is_structured(self, address):
        """The type is converted as a field, an item, a key and a value."""

        @dataclass
        class Host:
            at: address
            names: dict[address, list[address]]

        sent = {"at": "127.0.0.1", "names": {"127.0.0.1": ["127.0.0.1"]}}

        assert structurer(Host)(sent) == Host(LOCAL, {LOCAL: [LOCAL]})

    def test_the_type_is_written(self, address):
        """A value is serialized as text and in JSON, and can be read back."""
        assert (text_of(LOCAL), json_of([LOCAL])) == ("127.0.0.1", ["127.0.0.1"])
        assert reader_for(dict[str, address]).read(text_of({"a": LOCAL})) == {"a": LOCAL}

    @pytest.mark.parametrize(
        ("wrap", "sent", "message"),
        [
            (lambda kind: kind, "x", "'value' is 'x', not an IPv4 address"),
            (lambda kind: kind | int, "x", "'value' is 'x', not an IPv4 address or a whole number"),
            (lambda kind: list[kind], "127.0.0.1, x", "'value[1]' is 'x', not an IPv4 address"),
            (lambda kind: dict[str, kind], '{"a": 5}', "\"value['a']\" is 5, not an IPv4 address"),
        ],
        ids=["alone", "union", "list", "dict"],
    )
    def test_errors_describe_the_type(self, address, wrap, sent, message):
        """Errors describe the type in the words of its entry, at every depth."""
        with pytest.raises(ArgumentsError) as caught:
            make_prompt(wrap(address)).compiled.arguments.read({"value": sent})

        assert str(caught.value) == f"prompt 'typed': {message}"

    def test_the_schema_of_the_type_is_used(self, address):
        """The type's schema is used for values, items and keys."""
        text = {"type": "string", "format": "ipv4"}

        assert get_schema(address) == ({**text, "description": "an IPv4 address"}, {})
        assert get_schema(list[address])[0]["items"] == text
        assert get_schema(dict[address, address])[0]["propertyNames"] == text
        assert get_schema(dict[address, address])[0]["additionalProperties"] == text

    def test_the_type_is_described_in_the_listing(self, address):
        """The listing has the type's description, its default as text, and an example for JSON."""
        annotations = {"single": address, "several": list[address], "named": dict[str, address]}
        prompts = [make_prompt(annotation) for annotation in annotations.values()]
        descriptions = [declared.compiled.arguments.ordered[0].description for declared in prompts]
        client = Client(compile(Recipes(prompts=(make_prompt(address, value=LOCAL),))), MODERN)

        (listed,) = client.ask("prompts/list")["result"]["prompts"]

        assert listed["arguments"][0]["description"] == "an IPv4 address; default 127.0.0.1"
        assert descriptions == [
            "an IPv4 address",
            "several, separated by commas; each an IPv4 address",
            'JSON, for example {"text":"10.0.0.1"}',
        ]

    def test_a_default_list_is_shown_with_commas(self, address):
        """A default list is shown separated by commas, as it would be entered."""
        argument = make_prompt(list[address], value=[LOCAL, LOCAL]).compiled.arguments.ordered[0]

        assert argument.description.endswith("; default 127.0.0.1, 127.0.0.1")

    def test_the_values_of_the_type_are_completed(self, address):
        """The type's values are offered as completions."""
        client = Client(compile(Recipes(prompts=(make_prompt(address),))), MODERN)
        params = {
            "ref": {"type": "ref/prompt", "name": "typed"},
            "argument": {"name": "value", "value": "127"},
        }

        assert client.ask("completion/complete", params)["result"]["completion"]["values"] == ["127.0.0.1"]


class TestEveryRecord:
    def test_every_built_in_type_has_a_value_here(self):
        """Every built-in type has a value in these tests."""
        code = (
            "from promptkit.types.scalar_types import SCALARS; "
            "print(*(kind.__qualname__ for kind in SCALARS))"
        )
        # A separate process, because other tests register types.
        built_in = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

        assert sorted(built_in.stdout.split()) == sorted(kind.__qualname__ for kind in VALUES)

    @EVERY
    def test_an_entry_has_every_field(self, kind):
        """Every entry has every field, with the right type."""
        record = SCALARS[kind]

        assert isinstance(record, ScalarType)
        for name in ("read", "convert", "write", "convert_key"):
            assert callable(getattr(record, name))
        assert record.expected
        assert record.hint.startswith(record.expected) or kind is str
        assert all(
            isinstance(alternative["type"], str)
            for alternative in record.schema.get("anyOf", [record.schema])
        )
        assert record.show is None or record.show(VALUES[kind])
        assert record.describe(NO_LIMITS)

    @EVERY
    def test_the_reader_is_the_entry(self, kind):
        """The reader of a scalar type is its entry."""
        assert reader_for(kind) is SCALARS[kind]

    @EVERY
    def test_a_serialized_value_is_read_back(self, kind):
        """A serialized value can be read back from text and JSON."""
        record, value = SCALARS[kind], VALUES[kind]

        assert record.read(record.write(value)) == value
        assert record.convert(json_of(value), kind) == value

    @EVERY
    def test_the_example_is_valid(self, kind):
        """The example is valid against the schema and can be converted."""
        record = SCALARS[kind]
        example = record.example_of(NO_LIMITS)

        jsonschema.Draft202012Validator({**record.schema, **record.extra_keywords_for(NO_LIMITS)}).validate(
            example
        )
        assert isinstance(record.convert(example, kind), kind)

    @pytest.mark.parametrize(
        "bounds",
        [
            {"ge": 10, "multiple_of": 7},
            {"gt": 7, "multiple_of": 7},
            {"le": 10, "multiple_of": 7},
            {"lt": 7, "multiple_of": 7},
            {"multiple_of": 7},
            {"gt": -3, "lt": 0},
            {"gt": 2},
            {"lt": -2},
            {"ge": 3, "le": 3},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("kind", [int, float])
    def test_the_example_satisfies_constraints(self, kind, bounds):
        """The example of a number satisfies its constraints."""
        annotation = Annotated[kind, Meta(**bounds)]

        example = SCALARS[kind].example_of(split_constraints(annotation)[1])

        assert msgspec.convert(example, annotation) == example

    @pytest.mark.parametrize(
        "bounds", [{"gt": 0, "lt": 1}, {"gt": 0, "le": 0.5}, {"ge": 0.5, "lt": 1}], ids=str
    )
    def test_the_example_is_between_open_bounds(self, bounds):
        """Between open bounds, the example is in the middle."""
        assert SCALARS[float].example_of(Constraints(**bounds)) == 0.5

    @EVERY
    def test_no_pattern_has_lookaround(self, kind):
        """No pattern has lookaround, because some clients cannot read tools with such schemas."""
        record = SCALARS[kind]
        extra_keywords, key = record.extra_keywords_for(NO_LIMITS), record.key_schema_of(NO_LIMITS)

        schemas = {"value": {**record.schema, **extra_keywords}, "key": key}

        assert not re.search(r"\(\?[^:]", msgspec.json.encode(schemas).decode())

    @EVERY
    def test_keys_match_the_schema(self, kind):
        """A key matches its schema's pattern; a type that cannot be a key is not supported as one."""
        record = SCALARS[kind]

        if record.key_schema is None:
            assert reader_for(dict[kind, int]) is None
            return
        (key,) = json_of({VALUES[kind]: None})
        assert record.convert_key(key, kind) == VALUES[kind]
        assert re.match(record.key_schema_of(NO_LIMITS).get("pattern", ""), key)

    def test_a_registered_class_with_members_is_text_everywhere(self):
        """A dataclass that is registered is written as text, also within other values, and read back."""

        @dataclass(frozen=True)
        class Amount:
            cents: int

        register_type(
            Amount,
            lambda text: Amount(int(text)),
            expected="an amount in cents",
            write=lambda amount: str(amount.cents),
        )

        assert json_of({"prices": [Amount(3)]}) == {"prices": ["3"]}
        assert reader_for(list[Amount]).read(json_of([Amount(3)])) == [Amount(3)]
        assert structurer(dict[str, Amount])({"a": "3"}) == {"a": Amount(3)}

    def test_registering_a_built_in_type_does_not_replace_its_entry(self):
        """Registering a built-in type does not replace its entry."""
        before = SCALARS[date]
        register_type(date, date.fromisoformat, expected="a day")

        assert SCALARS[date] is before
