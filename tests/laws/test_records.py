"""Classes whose fields are qualified in every way, with and without evaluated annotations."""

import sys
from itertools import count
from types import ModuleType

import jsonschema
import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

from promptkit.types.errors import ConversionError
from promptkit.types.schemas import answer_schema
from promptkit.types.structuring import structurer
from promptkit.types.unstructuring import json_of
from tests.laws.test_types import close_schema

HEAD = """\
from dataclasses import InitVar, dataclass, field
from enum import IntEnum
from typing import Annotated, Literal, NotRequired, Required, TypedDict

import attrs
import msgspec


class Level(IntEnum):
    LOW = 71
    HIGH = 72


@dataclass
class Inner:
    x: int
    y: str = "y"
"""

#: Types as authors write them, each with a default, and with JSON that they accept.
TYPES = {
    "int": ("7", st.integers(-5, 5) | st.just(2.0)),
    "str": ("'s'", st.sampled_from(["", "a", "LOW"])),
    "bool": ("True", st.booleans()),
    "float": ("0.5", st.sampled_from([1, 1.5])),
    "int | None": ("None", st.sampled_from([1, None])),
    "int | str": ("'1'", st.sampled_from([1, "007"])),
    "list[int]": ("[]", st.lists(st.integers(0, 3), max_size=2)),
    "dict[Level, int]": (
        "{}",
        st.dictionaries(st.sampled_from(["LOW", "HIGH"]), st.integers(0, 3), max_size=2),
    ),
    "Annotated[int, msgspec.Meta(ge=1, le=3)]": ("2", st.integers(1, 3)),
    "Literal['a', 1]": ("'a'", st.sampled_from(["a", 1])),
    "Level": ("Level.LOW", st.sampled_from(["LOW", "HIGH"])),
    "Inner": ("Inner(1)", st.fixed_dictionaries({"x": st.integers(0, 3)}, optional={"y": st.just("z")})),
    "'Inner | None'": ("None", st.fixed_dictionaries({"x": st.integers(0, 3)}) | st.none()),
}

#: Types whose default must come from a function.
MUTABLE = ("list[int]", "dict[Level, int]", "Inner")

#: How each library declares a class, and a member of a type.
KINDS = {
    "dataclass": (
        "@dataclass(kw_only=True)\nclass Record:\n    def __post_init__(self, *_): pass",
        [
            "{type}",
            "{type} = {default}",
            "{type} = field(default_factory=lambda: {default})",
            "{type} = field(init=False, default=None)",
            "InitVar[{type}]",
            "InitVar[{type}] = None",
        ],
    ),
    "attrs": (
        "@attrs.define(kw_only=True)\nclass Record:\n    pass",
        [
            "{type}",
            "{type} = {default}",
            "{type} = attrs.field(factory=lambda: {default}, alias='alias_{name}')",
            "{type} = attrs.field(init=False, default=None)",
        ],
    ),
    "msgspec": (
        "class Record(msgspec.Struct, kw_only=True):\n    pass",
        [
            "{type}",
            "{type} = {default}",
            "{type} = msgspec.field(default_factory=lambda: {default})",
            "{type} = msgspec.field(name='json_{name}')",
        ],
    ),
    "TypedDict": (
        "class Record(TypedDict):\n    pass",
        ["{type}", "Required[{type}]", "NotRequired[{type}]", "Annotated[NotRequired[{type}], 'words']"],
    ),
    "partial TypedDict": (
        "class Record(TypedDict, total=False):\n    pass",
        ["{type}", "Required[{type}]", "NotRequired[{type}]", "Annotated[Required[{type}], 'words']"],
    ),
}

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "x", "MID"]) | st.just(1.5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2),
    max_leaves=3,
)

_names = count()


def define(source):
    """Return the class `Record` of a new module."""
    module = ModuleType(f"records_{next(_names)}")
    sys.modules[module.__name__] = module
    exec(source, vars(module))  # noqa: S102 (the source is that of this module)
    return module.Record


@st.composite
def records(draw, kind):
    """Return a class, its source, and the type of each field by its name in JSON."""
    head, declarations = KINDS[kind]
    lines, types = [], {}
    for name in "abcd"[: draw(st.integers(1, 4))]:
        type_ = draw(st.sampled_from(list(TYPES)))
        possible = [each for each in declarations if type_ not in MUTABLE or "= {default}" not in each]
        declaration = draw(st.sampled_from(possible))
        types[f"json_{name}" if "json_" in declaration else name] = type_
        lines.append(f"    {name}: {declaration.format(type=type_, name=name, default=TYPES[type_][0])}")
    future = draw(st.sampled_from(["", "from __future__ import annotations\n"]))
    source = "\n".join([f"{future}{HEAD}", head, *lines, ""])
    return define(source), source, types


@st.composite
def objects(draw, types):
    """
    A JSON object: in half of the examples, all fields have their types; in the other half, one field differs.
    """
    sent = {name: draw(TYPES[type_][1]) for name, type_ in types.items()}
    name, change = draw(st.sampled_from([*types, "more"])), draw(st.sampled_from(["", "", "removed", "junk"]))
    if change == "removed":
        sent.pop(name, None)
    return sent | ({name: draw(JUNK)} if change == "junk" else {})


@pytest.fixture(autouse=True)
def _remove_modules():
    yield
    for name in [name for name in sys.modules if name.startswith("records_")]:
        del sys.modules[name]


@pytest.mark.parametrize("kind", KINDS)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_schema_and_conversion_agree(kind, data):
    """
    An object is converted if and only if the schema allows it, and is written as JSON that is read back.
    """
    record, source, types = data.draw(records(kind))
    sent = data.draw(objects(types))
    validator = jsonschema.Draft202012Validator(close_schema(answer_schema(record)))
    is_valid = validator.is_valid(sent)
    event(f"valid: {is_valid}")
    note(source)

    try:
        value = structurer(record)(sent)
    except ConversionError:
        assert not is_valid
        return

    assert is_valid
    if "InitVar[" not in source.partition("class Record")[2]:
        assert validator.is_valid(json_of(value))
        assert structurer(record)(json_of(value)) == value
