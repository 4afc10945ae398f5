from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Literal

import attrs
import msgspec
import pytest

from promptkit import Text
from promptkit.fragments import answer_format
from promptkit.types.schemas import answer_schema

HEAD = "Answer with JSON in this form, and nothing else:\n"


class Severity(Enum):
    LOW = "low"
    HIGH = "high"


@dataclass
class Finding:
    """A problem at one location."""

    file: str
    line: int | None
    severity: Severity
    sure: Annotated[float, msgspec.Meta(ge=0, le=1, description="How sure you are")] = 1.0


class Review(msgspec.Struct):
    summary: Annotated[str, msgspec.Meta(description="In one\nsentence.")]
    verdict: Literal["approve", "reject"]
    findings: list[Finding]


@dataclass
class Tree:
    name: str
    below: "list[Tree]"


@attrs.define
class Span:
    place: tuple[int, int]
    until: date
    notes: dict[str, str]


def test_the_outline_of_a_class():
    """Fields are in order, with descriptions as comments and all choices."""
    assert answer_format(Review) == Text(
        HEAD
        + """{
  // In one sentence.
  summary: string,
  verdict: "approve" or "reject",
  findings: [{
    file: string,
    line: int or null,
    severity: "low" or "high",
    // How sure you are (a number from 0 to 1)
    sure?: float,
  }, ...],
}"""
    )


def test_an_outline_is_shorter_than_a_schema():
    """An outline is less than a third as long as the JSON schema."""
    assert len(answer_format(Review).text) * 3 < len(
        msgspec.json.format(msgspec.json.encode(answer_schema(Review)))
    )


@pytest.mark.parametrize(
    ("answer", "outline"),
    [
        (str, "string"),
        (bool, "bool"),
        (Literal["a", 1] | None, '"a" or 1 or null'),
        (list[int], "[int, ...]"),
        (dict[str, float], "{string: float, ...}"),
        (
            Tree,
            """Tree = {
  name: string,
  below: [Tree, ...],
}
{
  name: string,
  below: [Tree, ...],
}""",
        ),
        (
            Span,
            """{
  place: [int, int],
  // a date, as in 2026-01-31
  until: string,
  notes: {string: string, ...},
}""",
        ),
    ],
)
def test_outlines_of_other_types(answer, outline):
    """Scalars, collections, recursive classes and dates have an outline."""
    assert answer_format(answer).text == HEAD + outline


@pytest.mark.parametrize(
    ("bounds", "comment"),
    [
        (msgspec.Meta(min_length=5, max_length=10, description="Findings."), "Findings. (5 to 10 items)"),
        (msgspec.Meta(min_length=1), "(at least 1 item)"),
        (msgspec.Meta(max_length=3), "(0 to 3 items)"),
        (msgspec.Meta(min_length=2, max_length=2), "(2 items)"),
    ],
)
def test_the_bounds_of_a_list_are_in_its_comment(bounds, comment):
    """The length limits of a list are in its comment."""
    report = dataclass(type("Report", (), {"__annotations__": {"findings": Annotated[list[str], bounds]}}))

    assert answer_format(report).text == f"{HEAD}{{\n  // {comment}\n  findings: [string, ...],\n}}"


def test_an_example_is_appended_as_json():
    """An example is appended as JSON; one that cannot be encoded raises a TypeError."""
    assert answer_format(list[Severity], [Severity.LOW]).text == (
        f'{HEAD}["low" or "high", ...]\nFor example:\n[\n  "low"\n]'
    )
    with pytest.raises(TypeError, match=r"answer_format\(example\): .*; pass a value of the type"):
        answer_format(int, object())


def test_an_unsupported_type_is_rejected():
    """The error about an unsupported type suggests a supported one."""
    with pytest.raises(TypeError, match="object cannot be the type of an answer: use a dataclass"):
        answer_format(object)
