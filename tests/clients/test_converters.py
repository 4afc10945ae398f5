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
from promptkit.types.parsing import reader_for
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
    values: list[Any] = []

    @settings(max_examples=SAMPLES, derandomize=True, database=None)
    @given(TYPES[annotation])
    def collect(value):
        values.append(value)

    collect()
    return values[:SAMPLES]


def to_json(value: Any) -> Any:
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


def find_differences(case: Case) -> Iterator[str]:
    """Yield the differences between a type and its conversion."""
    if "error" in case.converted:
        yield "not converted"
        return
    schema = case.converted["schema"]
    if schema.pop("strict", True) is False:
        yield "not strict"
    converted = jsonschema.Draft202012Validator(convert_from_gemini(schema))
    for value, call in zip(case.values, case.converted["calls"], strict=True):
        if not converted.is_valid({"value": to_json(value)}):
            yield "a value is invalid"
        if "error" in call:
            yield "a value is rejected"
        elif parse(case.annotation, call["sent"]["value"]) != value:
            yield "a value is changed"
    served = jsonschema.Draft202012Validator({"properties": {"value": reduce_to_types(case.schema)}})
    if any(
        converted.is_valid({"value": probe}) and not served.is_valid({"value": probe}) for probe in PROBES
    ):
        yield "other values are valid"
    if not all(isinstance(choice, str) for choice in choices_for_gemini(schema)):
        yield "choices are not strings"
    if not any(description.startswith(case.schema["description"]) for description in descriptions(schema)):
        yield "its description is lost"


def parse(annotation: Any, sent: Any) -> Any:
    """
    Return the value that the server reads; None for null, which omits the argument, and for invalid values.
    """
    with suppress(ConversionError):
        return None if sent is None else reader_for(annotation).read(sent)


def convert_from_gemini(schema: Any) -> Any:
    """Convert Gemini's form of a schema to JSON Schema; other schemas stay as they are."""
    if isinstance(schema, list):
        return [convert_from_gemini(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {
        "anyOf" if key == "any_of" else key: convert_from_gemini(value) for key, value in schema.items()
    }
    if isinstance(kind := converted.get("type"), str):
        converted["type"] = kind.lower()
    if converted.pop("nullable", None) is True:
        return {"anyOf": [converted, {"type": "null"}]}
    return converted


def reduce_to_types(schema: Any) -> Any:
    """Return a schema reduced to its types, without limits and references."""
    if not isinstance(schema, dict):
        return schema
    reduced = {key: schema[key] for key in ("type", "enum") if key in schema}
    reduced |= {
        key: reduce_to_types(schema[key]) for key in ("items", "additionalProperties") if key in schema
    }
    if "anyOf" in schema:
        reduced["anyOf"] = [reduce_to_types(part) for part in schema["anyOf"]]
    if "properties" in schema:
        reduced["properties"] = {name: reduce_to_types(part) for name, part in schema["properties"].items()}
    return reduced


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


def has_arbitrary_members(case: Case) -> bool:
    """Return whether a type has members with arbitrary names."""
    return "additionalProperties" in case.schema


def is_recursive(case: Case) -> bool:
    """Return whether a type is recursive."""
    return "$ref" in case.schema


def has_choices_other_than_text(case: Case) -> bool:
    """Return whether a type has choices that are not strings."""
    members = case.schema.get("anyOf", [case.schema])
    return any("enum" in member and member["type"] != "string" for member in members)


def has_type(*annotations: Any) -> Callable[[Case], bool]:
    """Return a predicate: whether a case's type is one of *annotations*."""
    return lambda case: case.annotation in annotations


#: The known losses: the converters, the difference, the types that have it, and the reason.
KNOWN_LOSSES: list[tuple[set[str], str, Callable[[Case], bool], str]] = [
    (
        {"openai-agents"},
        "not strict",
        lambda case: is_recursive(case) or '"additionalProperties"' in json.dumps(case.schema),
        "The strict form supports neither arbitrary members nor recursion: the schema is sent unchanged.",
    ),
    (
        {"openai-agents"},
        "a value is invalid",
        has_type(Options),
        "In the strict form every member is required, including optional ones.",
    ),
    (
        {"google-genai", "litellm", "autogen", "crewai"},
        "other values are valid",
        has_arbitrary_members,
        "They list the names of an object's members, or nothing: the description has the rest.",
    ),
    (
        {"google-genai", "litellm", "crewai"},
        "its description is lost",
        is_recursive,
        "They replace a reference, and everything next to it, with its target.",
    ),
    (
        {"litellm"},
        "other values are valid",
        has_choices_other_than_text,
        "Gemini's choices must be strings. The description lists other choices.",
    ),
    (
        {"google-genai"},
        "choices are not strings",
        has_choices_other_than_text,
        "Gemini's choices must be strings, and this converter leaves numbers: serve strings to it.",
    ),
    (
        {"autogen"},
        "not converted",
        is_recursive,
        "It converts a recursive type to a circular schema.",
    ),
    (
        {"autogen"},
        "its description is lost",
        lambda case: "properties" in case.schema,
        "It converts a class without the description of the argument.",
    ),
    *(
        (
            {"autogen"},
            difference,
            has_type(tuple[int, str], Pair, Row, list[Tone | None]),
            "It converts items of several types to text.",
        )
        for difference in ("a value is invalid", "a value is rejected")
    ),
    (
        {"autogen"},
        "other values are valid",
        has_type(list[Tone], list[Tone | None], list[Literal["b", "a"]], Optional[Point]),  # noqa: UP045
        "It keeps only the JSON type of items and of optional values.",
    ),
]

ANNOTATIONS = [*TYPES, *MORE_TYPES]


@pytest.fixture(scope="module")
def tools():
    """A tool for each type, with sample values."""
    values_by_type = [samples(annotation) for annotation in ANNOTATIONS]
    return [
        {
            "name": f"type_{number}",
            "inputSchema": compiled(annotation).schema,
            "values": values,
            "samples": [{"value": to_json(value)} for value in values],
        }
        for number, (annotation, values) in enumerate(zip(ANNOTATIONS, values_by_type, strict=True))
    ]


@pytest.fixture(scope="module", params=CONVERTERS)
def cases(request, tools, installations):
    """The name of a converter, and its result for each type."""
    python = install_packages(FRAMEWORKS / "mcp_1.txt", installations)
    completed = subprocess.run(
        [str(python), str(FRAMEWORKS / "convert.py"), request.param],
        input=json.dumps([{key: tool[key] for key in ("name", "inputSchema", "samples")} for tool in tools]),
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        encoding="utf-8",
        timeout=RUNNING,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    outcomes = json.loads(completed.stdout.splitlines()[-1])
    return request.param, [
        Case(annotation, tool["inputSchema"]["properties"]["value"], tool["values"], outcome)
        for annotation, tool, outcome in zip(ANNOTATIONS, tools, outcomes, strict=True)
    ]


def test_types_are_converted_unchanged_except_for_known_losses(cases):
    """
    Each type's values are valid and arrive unchanged, other values are invalid, and its description is kept,
    except for the known losses.
    """
    converter, converted = cases
    differences = {str(case.annotation): set(find_differences(case)) for case in converted}
    expected = {
        str(case.annotation): {
            difference
            for converters, difference, applies, _ in KNOWN_LOSSES
            if converter in converters and applies(case)
        }
        for case in converted
    }

    assert differences == expected
