"""Sample arguments that are made up from the types of parameters."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from promptkit import Arg, prompt
from promptkit.catalog.samples import sample_calls, sample_text
from promptkit.language.annotations import NO_DEFAULT
from tests.ids import stable_repr
from tests.types.test_type_table import VALUES, Even

#: Each type of the table of types, once.
ANNOTATIONS = list({repr(annotation): annotation for annotation, *_ in VALUES}.values())


def compiled(annotation, default=NO_DEFAULT):
    """Return the arguments of a prompt with one parameter."""

    def sampled(x):
        return str(x)

    sampled.__annotations__ = {"x": annotation, "return": str}
    sampled.__defaults__ = None if default is NO_DEFAULT else (default,)
    return prompt(sampled).compiled.arguments


@pytest.mark.parametrize("annotation", [each for each in ANNOTATIONS if each is not Even], ids=stable_repr)
def test_every_type_has_a_sample_that_it_accepts(annotation):
    """Every supported type has a sample that the parameter accepts and that is the same each time."""
    arguments = compiled(annotation)

    (call,) = sample_calls(arguments)

    arguments.read(call)
    assert sample_calls(arguments) == [call]


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[int, msgspec.Meta(ge=1000, multiple_of=7)],
        Annotated[float, msgspec.Meta(gt=0, lt=0.5)],
        Annotated[str, msgspec.Meta(min_length=40)],
        Annotated[str, msgspec.Meta(max_length=2)],
        Annotated[str, msgspec.Meta(pattern=r"^[A-Z]+-\d+$")],
        Annotated[list[str], msgspec.Meta(min_length=3)],
        Annotated[set[int], msgspec.Meta(min_length=3)],
    ],
    ids=stable_repr,
)
def test_constraints_are_satisfied(annotation):
    """A sample is within the bounds of its type."""
    arguments = compiled(annotation)

    (call,) = sample_calls(arguments)

    arguments.read(call)


def test_optional_arguments_are_omitted_and_given():
    """One call has the required arguments, and one has all, with values that differ from the defaults."""

    @prompt
    def review(code: str, path: Path, *, tone: Literal["plain", "warm"] = "plain", strict: bool = True):
        return code

    assert sample_calls(review.compiled.arguments) == [
        {"code": "sample", "path": "sample"},
        {"code": "sample", "path": "sample", "tone": "warm", "strict": "false"},
    ]


def test_examples_come_first():
    """The author's example is used where there is one."""
    assert sample_calls(compiled(Annotated[str, Arg(examples=["x = 1"])])) == [{"x": "x = 1"}]


@pytest.mark.parametrize(
    "annotation", [Even, Annotated[str, msgspec.Meta(pattern="^(?:zebra|gnu)$")]], ids=stable_repr
)
def test_type_without_a_sample(annotation):
    """There is no call if no value is known for a required argument; an optional argument is omitted."""
    arguments = compiled(annotation)

    assert sample_calls(arguments) == []
    assert sample_text(arguments.ordered[0]) is None
    assert sample_calls(compiled(annotation | None, None)) == [{}]
