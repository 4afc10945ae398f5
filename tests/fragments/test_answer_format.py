import gc
import weakref
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import attrs
import msgspec
import pydantic
import pytest

from promptkit import Text
from promptkit.fragments import answer_format, answers
from promptkit.types.caching import clear_type_cache
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
class Answer:
    x: int


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
    """Fields are in order, with descriptions as comments and all choices, but without docstrings."""
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
  // a date such as 2026-01-31
  until: string,
  notes: {string: string, ...},
}""",
        ),
    ],
)
def test_outlines_of_other_types(answer, outline):
    """Scalars, collections, recursive classes and dates have an outline."""
    assert answer_format(answer).text == HEAD + outline


class Settings(pydantic.BaseModel):
    """Not for models."""

    values: dict[str, Any]


class Query(pydantic.BaseModel):
    """Not for models."""

    kind: Literal["query"]
    settings: Annotated[Settings, pydantic.Field(description="Optional settings")]


class Stop(pydantic.BaseModel):
    """Not for models."""

    kind: Literal["stop", "end"]


class Step(pydantic.BaseModel):
    """Not for models."""

    step: Annotated[Query | Stop, pydantic.Field(discriminator="kind")]


def test_the_outline_of_a_pydantic_model():
    """
    A model can have a dictionary of any values, a single choice, and alternatives; docstrings are omitted.
    """
    assert (
        answer_format(Step, lead="").text
        == """{
  step: {
    kind: "query",
    // Optional settings
    settings: {
      values: {string: any, ...},
    },
  } or {
    kind: "stop" or "end",
  },
}"""
    )


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


def test_another_lead_or_none():
    """The sentence before the outline can be replaced or omitted; it must be text."""
    assert (
        answer_format(int, 1, "JSONで答えてください。").text == "JSONで答えてください。\nint\nFor example:\n1"
    )
    assert answer_format(bool, lead="").text == "bool"
    with pytest.raises(TypeError, match=r"answer_format\(lead\): expected text"):
        answer_format(bool, lead=None)


class TestCache:
    @pytest.fixture
    def described(self, monkeypatch):
        """The types whose schemas are created."""
        described: list[Any] = []
        make = answers.answer_schema
        monkeypatch.setattr(
            answers,
            "answer_schema",
            lambda answer, **options: described.append(answer) or make(answer, **options),
        )
        return described

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Answer,
            lambda: list[Answer],
            lambda: Literal["x", "y"],
            lambda: Answer | None,
            lambda: Annotated[list[Answer], msgspec.Meta(min_length=1)],
        ],
        ids=["class", "list", "Literal", "union", "Annotated"],
    )
    def test_a_type_is_described_once(self, described, make):
        """The outline of a type is made once, even if the type is a new object in each call."""
        clear_type_cache()

        texts = {answer_format(make(), example).text for example in (None, [], None)}

        assert (len(described), len(texts)) == (1, 2)

    def test_another_class_with_the_same_name(self):
        """A class that replaces another one, as after a reload, has its own outline."""
        old, new = (dataclass(type("Answer", (), {"__annotations__": {"x": kind}})) for kind in (int, str))

        assert [answer_format(kind, lead="").text for kind in (list[old], list[new])] == [
            "[{\n  x: int,\n}, ...]",
            "[{\n  x: string,\n}, ...]",
        ]

    def test_the_order_of_choices(self):
        """Types that are equal but list their members in another order have their own outlines."""
        kinds = (Literal["a", "b"], Literal["b", "a"], list[int | str], list[str | int])

        assert [answer_format(kind, lead="").text for kind in kinds] == [
            '"a" or "b"',
            '"b" or "a"',
            "[int or string, ...]",
            "[string or int, ...]",
        ]

    def test_unhashable_metadata(self):
        """A type with metadata that cannot be hashed is described again in each call."""
        assert answer_format(Annotated[int, ["x"]], lead="").text == "int"

    def test_a_class_is_freed_after_a_reload(self):
        """`clear_type_cache`, which reloading calls, drops the cached types."""
        kind = dataclass(type("Answer", (), {"__annotations__": {"x": int}}))
        answer_format(kind)
        reference = weakref.ref(kind)

        del kind
        clear_type_cache()
        gc.collect()

        assert reference() is None


def test_an_unsupported_type_is_rejected():
    """The error about an unsupported type suggests a supported one."""
    with pytest.raises(TypeError, match="object cannot be the type of an answer: use a dataclass"):
        answer_format(object)
