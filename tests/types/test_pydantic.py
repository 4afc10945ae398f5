"""Pydantic classes as arguments: parsed, described and serialized by pydantic."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Literal

import jsonschema
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel

from promptkit import ArgumentsError, prompt
from promptkit.errors.rules import Rule
from promptkit.testing import Client, call_arguments
from promptkit.types.kinds import surrogate_of
from promptkit.types.parsing import reader_for
from promptkit.types.pydantic import clear_type_cache
from promptkit.types.schemas import Definitions, type_schema
from promptkit.types.unstructuring import text_of


class Tone(Enum):
    WARM = "warm"
    COLD = "cold"


class Item(BaseModel):
    """Something to buy."""

    name: str
    count: int = Field(1, ge=1, description="How many")


class Order(BaseModel):
    customer: str = Field(min_length=2)
    items: list[Item] = []
    tone: Tone = Tone.WARM
    due: date | None = None
    speed: Literal["slow", "fast"] = Field("slow", alias="howFast")


class Folder(BaseModel):
    name: str
    inside: "list[Folder]" = []


class Range(BaseModel):
    low: int
    high: int

    @pydantic.model_validator(mode="after")
    def _check(self) -> "Range":
        if self.low > self.high:
            msg = "low is above high"
            raise ValueError(msg)
        return self


class Even(BaseModel):
    number: int = Field(multiple_of=2)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str


class Holder(BaseModel):
    held: Open


class Careless(BaseModel):
    model_config = ConfigDict(extra="ignore")

    x: int


class Color(RootModel[Literal["red", "green"]]):
    """A color."""


class Numbers(RootModel[list[int]]):
    """Some numbers."""


class Called(BaseModel):
    call: Callable[[int], int]


@pydantic.dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


@dataclass
class Basket:
    owner: str
    orders: list[Order]
    corner: Point | None = None


def make_prompt(annotation):
    def ask(order) -> str:
        """Ask."""
        return repr(order)

    ask.__annotations__["order"] = annotation
    return prompt(ask)


def read(annotation, sent):
    return make_prompt(annotation).compiled.arguments.read({"order": sent})["order"]


def collect_errors(annotation, sent):
    with pytest.raises(ArgumentsError) as caught:
        read(annotation, sent if isinstance(sent, str) else json.dumps(sent))
    return [str(error) for error in caught.value.errors]


VALUES = [
    (
        Order,
        {"customer": "Ann", "items": [{"name": "tea", "count": 2}], "tone": "cold", "howFast": "fast"},
        Order(customer="Ann", items=[Item(name="tea", count=2)], tone=Tone.COLD, howFast="fast"),
    ),
    (Order, {"customer": "Ann", "due": "2026-01-31"}, Order(customer="Ann", due=date(2026, 1, 31))),
    (Folder, {"name": "a", "inside": [{"name": "b"}]}, Folder(name="a", inside=[Folder(name="b")])),
    (Point, {"x": 1}, Point(1)),
    (Order | None, {"customer": "Ann"}, Order(customer="Ann")),
    (list[Point], [{"x": 1}, {"x": 2}], [Point(1), Point(2)]),
    (dict[str, Item], {"a": {"name": "tea"}}, {"a": Item(name="tea")}),
    (Item | Point, {"x": 1}, Point(1)),
    (
        Basket,
        {"owner": "Ann", "orders": [{"customer": "Ann"}], "corner": {"x": 1}},
        Basket("Ann", [Order(customer="Ann")], Point(1)),
    ),
    (Numbers, [1, 2], Numbers([1, 2])),
    (Color, "red", Color("red")),
    (Open, {"name": "a", "more": 1}, Open(name="a", more=1)),
    (Holder, {"held": {"name": "a", "more": 1}}, Holder(held=Open(name="a", more=1))),
    (Careless, {"x": 1, "more": 2}, Careless(x=1)),
]


@pytest.mark.parametrize(("annotation", "sent", "value"), VALUES, ids=lambda part: str(part)[:40])
@pytest.mark.parametrize("encode", [json.dumps, lambda value: value], ids=["text", "JSON"])
def test_values_are_converted_by_pydantic(annotation, sent, value, encode):
    """Text and JSON are converted to pydantic's values, alone and inside other types."""
    parsed = read(annotation, sent if isinstance(sent, str) else encode(sent))

    assert (type(parsed), parsed) == (type(value), value)


@pytest.mark.parametrize(
    ("annotation", "sent", "errors"),
    [
        (Order, {}, ["'order.customer' is missing"]),
        (
            Order,
            {"customer": "Ann", "items": [{"name": "tea"}, {"count": "x"}], "tone": "wram"},
            [
                "'order.items[1].name' is missing",
                ("'order.items[1].count' is 'x', not a valid integer, unable to parse string as an integer"),
                "'order.tone' is 'wram', not 'warm' or 'cold' (did you mean 'warm'?)",
            ],
        ),
        (Order, {"customer": "A"}, ["'order.customer' is invalid: String should have at least 2 characters"]),
        (
            Order,
            {"customer": "Ann", "itms": []},
            ["'order.itms' is not a member of this object (did you mean 'items'?)"],
        ),
        (
            Basket,
            {"owner": "Ann", "orders": [{"customer": "Ann", "items": [{"nme": "tea"}]}]},
            [
                "'order.orders[0].items[0].name' is missing",
                "'order.orders[0].items[0].nme' is not a member of this object (did you mean 'name'?)",
            ],
        ),
        (Range, {"low": 2, "high": 1}, ["'order' is invalid: low is above high"]),
        (Point, {"x": 1, "z": 2}, ["'order.z' is not a member of this object"]),
        (Order, "tea", ["'order' is 'tea', not a JSON object with customer, items, tone, due, howFast"]),
        (Order, "{", ["'order' is not valid JSON at line 1, column 2: it ends too early"]),
        (Color, "gren", ["'order' is 'gren', not 'red' or 'green' (did you mean 'green'?)"]),
    ],
    ids=lambda part: str(part)[:40],
)
def test_all_errors_are_reported(annotation, sent, errors):
    """All errors are reported, each with its path and, for a misspelt name, the nearest one."""
    assert collect_errors(annotation, sent) == errors


def test_the_hint_has_a_valid_example():
    """A form's hint lists the fields in order, with a valid example."""
    reader = reader_for(Order)

    assert reader.expected == "a JSON object with customer, items, tone, due, howFast"
    assert reader.hint == 'JSON, for example {"customer":"text"}'
    assert read(Order, reader.hint.partition("example ")[2])
    assert reader_for(Even).hint == "a JSON object with number"  # no valid example is found


def test_choices_are_completed():
    """A root model of a Literal is completed with its choices."""
    assert Client(make_prompt(Color)).complete("ask", "order", "g").values == ("green",)


class TestSchemas:
    def test_the_schema_is_pydantics_with_classes_inlined(self):
        """The schema is pydantic's, with classes inlined and without generated titles."""
        schema = make_prompt(Order).compiled.schema
        order = schema["properties"]["order"]

        assert "$defs" not in schema
        assert order["properties"]["items"]["items"] == {
            "description": "Something to buy.",
            "properties": {
                "name": {"type": "string"},
                "count": {"default": 1, "description": "How many", "minimum": 1, "type": "integer"},
            },
            "required": ["name"],
            "title": "Item",
            "type": "object",
        }
        assert order["properties"]["howFast"] == {
            "default": "slow",
            "enum": ["slow", "fast"],
            "type": "string",
        }

    def test_a_recursive_class_is_a_reference(self):
        """A recursive class has one definition, even if it is used inside other types."""
        definitions = Definitions({})
        first, _ = type_schema(Folder, definitions)
        second, _ = type_schema(dict[str, Folder], definitions)
        (name,) = definitions.schemas

        assert name == "Folder"
        assert first == second["additionalProperties"] == {"$ref": f"#/$defs/{name}"}
        assert definitions.schemas[name]["properties"]["inside"]["items"] == first

    def test_classes_with_the_same_name_are_separate(self):
        """Two classes with the same name have separate definitions."""
        other = pydantic.create_model("Folder", size=int, inside=(list["Folder"], []))
        other.model_rebuild(_types_namespace={"Folder": other})
        definitions = Definitions({})
        type_schema(Folder, definitions)
        schema, _ = type_schema(other, definitions)

        assert schema == {"$ref": "#/$defs/Folder_"}
        assert list(definitions.schemas["Folder_"]["properties"]) == ["size", "inside"]
        assert list(definitions.schemas["Folder"]["properties"]) == ["name", "inside"]

    def test_a_field_can_have_the_name_of_a_keyword(self):
        """A field named `$ref` is not treated as a reference."""
        schema, _ = type_schema(pydantic.create_model("Odd", ref=(int, Field(alias="$ref"))), Definitions({}))

        assert schema["properties"] == {"$ref": {"type": "integer"}}

    @pytest.mark.parametrize(("annotation", "sent", "value"), VALUES, ids=lambda part: str(part)[:40])
    def test_accepted_values_match_the_schema(self, annotation, sent, value):
        """The values that are accepted are valid against the schema."""
        schema = make_prompt(annotation).compiled.schema

        jsonschema.validate({"order": sent}, schema)
        assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize("annotation", [Called, list[Called], Called | None], ids=str)
def test_a_class_that_no_client_can_fill_is_reported(annotation):
    """A class with a field that no client can fill is reported when it is compiled."""
    compiled, (diagnostic,) = make_prompt(annotation).compile()

    assert compiled is None
    assert diagnostic.rule is Rule.UNSUPPORTED_TYPE


@pytest.mark.parametrize(
    "kind", [Order, Folder, Basket, Point, Numbers, Color], ids=lambda kind: kind.__name__
)
def test_call_arguments_generates_valid_values(kind):
    """`call_arguments` generates valid values, which survive serializing and reading."""
    declared = make_prompt(kind)

    @settings(max_examples=5, deadline=None)
    @given(st.data())
    def check(data):
        arguments = data.draw(call_arguments(declared))
        assert declared.render(**arguments)
        assert reader_for(kind).read(text_of(arguments["order"])) == arguments["order"]

    check()


def test_a_default_is_serialized_by_pydantic():
    """A default is serialized by pydantic, with aliases."""

    @prompt
    def ask(order: Order = Order(customer="Ann")) -> str:  # noqa: B008 (each call has its own)
        """Ask."""
        return order.customer

    default = ask.compiled.schema["properties"]["order"]["default"]
    assert default["howFast"] == "slow"
    assert Client(ask).get_prompt("ask", {"order": Order(customer="Bob")})[0].text == "Bob"


def test_types_are_described_again_after_the_cache_is_cleared():
    """After `clear_type_cache`, the description of a class is built again."""
    assert surrogate_of(Order) is surrogate_of(Order)
    before = surrogate_of(Order)
    clear_type_cache()

    assert surrogate_of(Order) is not before
    assert reader_for(Order).expected == before.expected


def test_pydantic_is_imported_only_if_it_is_used():
    """Without pydantic types, no module of pydantic is imported."""
    code = (
        "import sys\n"
        "from dataclasses import dataclass\n"
        "from promptkit import prompt\n"
        "@dataclass\nclass A:\n    x: int\n"
        "@prompt\ndef ask(a: A, b: list[str], c: int = 1) -> str:\n    return 'x'\n"
        "ask.render_wire({'a': '{\"x\": 1}', 'b': 'a'})\n"
        "ask.compiled.schema\n"
        "print([name for name in sys.modules if 'pydantic' in name])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert result.stdout.strip() == "[]"
