"""
Frameworks convert tool schemas for models without changing any type, except for the known losses.

Each converter runs in a separate environment with its framework, and is skipped if that cannot be installed.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Optional

import attrs
import jsonschema
import pytest
from hypothesis import given, settings

from promptkit.types.errors import ConversionError
from promptkit.types.parsing import reader_of
from promptkit.types.unstructuring import json_of
from tests.clients.python_packages import INSTALLING, install_packages
from tests.laws.test_types import TYPES, compiled
from tests.sample_types import Corner, Options, Pair, Point, Row, Tone

FRAMEWORKS = Path(__file__).parent / "frameworks"

#: Timeout for one framework, in seconds; importing it takes most of the time.
RUNNING = 120

#: How many values of each type are sent.
SAMPLES = 4

pytestmark = [pytest.mark.slow, pytest.mark.installs, pytest.mark.timeout(INSTALLING + RUNNING)]

CONVERTERS = ["openai-agents", "google-genai", "litellm", "langchain", "autogen", "crewai"]

MORE_TYPES = {
    Optional[Point]: [None],  # noqa: UP045 (authors write it)
    Corner: [Corner.LEFT],
    Literal["b", "a"]: ["b"],
    Literal[True, "auto"]: [True, "auto"],
    list[Literal["b", "a"]]: [["b", "a"]],
    list[Tone | None]: [[None]],
    tuple[()]: [()],
}


def samples(annotation: Any) -> list[Any]:
    """Return sample values of a type, the same in each run."""
    if annotation in MORE_TYPES:
        return MORE_TYPES[annotation]
    found: list[Any] = []

    @settings(max_examples=SAMPLES, derandomize=True, database=None)
    @given(TYPES[annotation])
    def collect(value):
        found.append(value)

    collect()
    return found[:SAMPLES]


def as_json(value: Any) -> Any:
    """Return a value as a client sends it."""
    return json.loads(json.dumps(json_of(value)))


@attrs.frozen
class Case:
    """
    A type, and the result of a converter for it.

    Args:
        annotation:
            The type.

        schema:
            The schema of the argument, as served.

        values:
            Sample values of the type.

        converted:
            The converter's output.
    """

    annotation: Any
    schema: dict[str, Any]
    values: list[Any]
    converted: dict[str, Any]


#: Values that are valid for no type, or for few.
PROBES = [
    True,
    False,
    5,
    1.5,
    "zz",
    [],
    [5],
    ["zz"],
    [[5]],
    {},
    {"zz": 5},
    {"zz": "zz"},
    {"zz": ["zz"]},
    {"x": "zz"},
]


def findings(case: Case) -> Iterator[str]:
    """Yield the differences between a type and its conversion."""
    if "error" in case.converted:
        yield "not converted"
        return
    schema = case.converted["schema"]
    if schema.pop("strict", True) is False:
        yield "not strict"
    wide = jsonschema.Draft202012Validator(plain(schema))
    for value, call in zip(case.values, case.converted["calls"], strict=True):
        if not wide.is_valid({"value": as_json(value)}):
            yield "a value does not fit"
        if "error" in call:
            yield "a value is refused"
        elif read(case.annotation, call["sent"]["value"]) != value:
            yield "a value is changed"
    narrow = jsonschema.Draft202012Validator({"properties": {"value": types_of(case.schema)}})
    if any(wide.is_valid({"value": probe}) and not narrow.is_valid({"value": probe}) for probe in PROBES):
        yield "other values fit"
    if not all(isinstance(choice, str) for choice in choices_for_gemini(schema)):
        yield "choices are no text"
    if not any(said.startswith(case.schema["description"]) for said in descriptions(schema)):
        yield "its words are lost"


def read(annotation: Any, sent: Any) -> Any:
    """Return the value that the server reads; null means that the argument is omitted."""
    with suppress(ConversionError):
        return None if sent is None else reader_of(annotation).read(sent)


def plain(schema: Any) -> Any:
    """Convert Gemini's form of a schema to JSON Schema; other schemas stay as they are."""
    if isinstance(schema, list):
        return [plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {"anyOf" if word == "any_of" else word: plain(value) for word, value in schema.items()}
    if isinstance(kind := found.get("type"), str):
        found["type"] = kind.lower()
    if found.pop("nullable", None) is True:
        return {"anyOf": [found, {"type": "null"}]}
    return found


def types_of(schema: Any) -> Any:
    """Return a schema reduced to its types, without limits and references."""
    if not isinstance(schema, dict):
        return schema
    found = {word: schema[word] for word in ("type", "enum") if word in schema}
    found |= {word: types_of(schema[word]) for word in ("items", "additionalProperties") if word in schema}
    if "anyOf" in schema:
        found["anyOf"] = [types_of(one) for one in schema["anyOf"]]
    if "properties" in schema:
        found["properties"] = {name: types_of(one) for name, one in schema["properties"].items()}
    return found


def choices_for_gemini(schema: Any) -> Iterator[Any]:
    """Yield the choices in Gemini's form of a schema, which has upper-case types."""
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    if isinstance(schema, dict) and str(schema.get("type")).isupper():
        yield from schema.get("enum", ())
    for part in parts:
        yield from choices_for_gemini(part)


def descriptions(schema: Any) -> Iterator[str]:
    """Yield all descriptions in a schema."""
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    if isinstance(schema, dict) and isinstance(schema.get("description"), str):
        yield schema["description"]
    for part in parts:
        yield from descriptions(part)


def names_any(case: Case) -> bool:
    """Whether a type has members with arbitrary names."""
    return "additionalProperties" in case.schema


def holds_itself(case: Case) -> bool:
    """Whether a type is recursive."""
    return "$ref" in case.schema


def has_choices_of_no_text(case: Case) -> bool:
    """Whether a type has choices that are not strings."""
    members = case.schema.get("anyOf", [case.schema])
    return any("enum" in one and one["type"] != "string" for one in members)


def one_of(*annotations: Any) -> Callable[[Case], bool]:
    """Return a predicate: whether a case's type is one of *annotations*."""
    return lambda case: case.annotation in annotations


#: The known losses: which converters, which finding, for which types, and why.
LOST: list[tuple[set[str], str, Callable[[Case], bool], str]] = [
    (
        {"openai-agents"},
        "not strict",
        lambda case: holds_itself(case) or '"additionalProperties"' in json.dumps(case.schema),
        "The strict form has neither members of any names nor what holds itself: the schema goes as it is.",
    ),
    (
        {"openai-agents"},
        "a value does not fit",
        one_of(Options),
        "In the strict form every member is required, also one that may be left out.",
    ),
    (
        {"google-genai", "litellm", "autogen", "crewai"},
        "other values fit",
        names_any,
        "They say of an object what its members are called, or nothing: its words say the rest.",
    ),
    (
        {"google-genai", "litellm", "crewai"},
        "its words are lost",
        holds_itself,
        "They put what is referred to in the place of the reference, and of all next to it.",
    ),
    (
        {"litellm"},
        "other values fit",
        has_choices_of_no_text,
        "Gemini has text alone as choices. The words of others list them.",
    ),
    (
        {"google-genai"},
        "choices are no text",
        has_choices_of_no_text,
        "Gemini has text alone as choices, and this leaves numbers there. Use texts for a server for it.",
    ),
    (
        {"autogen"},
        "not converted",
        holds_itself,
        "The schema of a type that holds itself is a circle there.",
    ),
    (
        {"autogen"},
        "its words are lost",
        lambda case: "properties" in case.schema,
        "A class is shown without what is said of the argument.",
    ),
    *(
        (
            {"autogen"},
            what,
            one_of(tuple[int, str], Pair, Row, list[Tone | None]),
            "Items of several types are text.",
        )
        for what in ("a value does not fit", "a value is refused")
    ),
    (
        {"autogen"},
        "other values fit",
        one_of(list[Tone], list[Tone | None], list[Literal["b", "a"]], Optional[Point]),  # noqa: UP045
        "Of items, and of what may be null, only the JSON type is kept.",
    ),
]

ANNOTATIONS = [*TYPES, *MORE_TYPES]


@pytest.fixture(scope="module")
def tools():
    """A tool for each type, with sample values."""
    values = [samples(annotation) for annotation in ANNOTATIONS]
    return [
        {
            "name": f"type_{number}",
            "inputSchema": compiled(annotation).schema,
            "values": found,
            "samples": [{"value": as_json(value)} for value in found],
        }
        for number, (annotation, found) in enumerate(zip(ANNOTATIONS, values, strict=True))
    ]


@pytest.fixture(scope="module", params=CONVERTERS)
def cases(request, tools, installations):
    """The name of a converter, and its result for each type."""
    python = install_packages(FRAMEWORKS / "mcp_1.txt", installations)
    ran = subprocess.run(
        [str(python), str(FRAMEWORKS / "convert.py"), request.param],
        input=json.dumps([{key: one[key] for key in ("name", "inputSchema", "samples")} for one in tools]),
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        encoding="utf-8",
        timeout=RUNNING,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    outcomes = json.loads(ran.stdout.splitlines()[-1])
    return request.param, [
        Case(annotation, tool["inputSchema"]["properties"]["value"], tool["values"], outcome)
        for annotation, tool, outcome in zip(ANNOTATIONS, tools, outcomes, strict=True)
    ]


def test_every_type_is_as_it_was_but_for_what_is_known_to_be_lost(cases):
    """
    Each type's values are valid and arrive unchanged, other values are invalid, and its description is kept,
    except for the known losses.
    """
    converter, converted = cases
    found = {str(case.annotation): set(findings(case)) for case in converted}
    expected = {
        str(case.annotation): {what for who, what, where, _ in LOST if converter in who and where(case)}
        for case in converted
    }

    assert found == expected
