import pytest

from promptkit.errors.rules import Rule

RETURNS = """
from collections.abc import (
    AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping,
    Sequence,
)
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import (
    Annotated, Any, Literal, NamedTuple, NewType, Never, Optional, Protocol, TypedDict, TypeVar, Union,
)
from promptkit import Image, Message, Text, Workflow, prompt

T = TypeVar("T")
Number = NewType("Number", int)
Words = NewType("Words", str)

class Tone(Enum):
    WARM = 1

class Choice(str, Enum):
    A = "a"

@dataclass
class Record:
    text: str

class Table(TypedDict):
    text: str

class Turn(NamedTuple):
    role: str
    text: str

class Figure:
    def savefig(self, file): ...

class Shown(Protocol):
    text: str

@prompt
def p() -> {annotation}:
    return ""
"""


class TestReturns:
    @pytest.mark.parametrize(
        "annotation",
        [
            "int",
            "bool",
            "float",
            "bytes",
            "dict",
            "dict[str, str]",
            "set[str]",
            "Path",
            "Decimal",
            "type",
            "type[str]",
            "Callable[[], str]",
            "Literal[3]",
            "Tone",
            "Record",
            "Table",
            "Number",
            "int | None",
            "Optional[bytes]",
            "Union[str, int]",
            "list[int]",
            "list[str | bytes]",
            "tuple[str, int]",
            "Sequence[Mapping[str, str]]",
            "Iterator[int]",
            "Annotated[int, 'x']",
            "'int'",
            "list['int']",
        ],
    )
    def test_an_unsupported_return_type_is_reported(self, annotation, collect_diagnostics):
        """An unsupported return annotation is reported at compile time, with its exact location."""
        (diagnostic,) = collect_diagnostics(returns=RETURNS.format(annotation=annotation))

        assert diagnostic.rule is Rule.BAD_RETURN
        line = RETURNS.format(annotation=annotation).lstrip("\n").splitlines()[diagnostic.location.line - 1]
        assert line[diagnostic.location.column - 1 : diagnostic.location.end - 1] == annotation

    @pytest.mark.parametrize(
        "annotation",
        [
            "str",
            "None",
            "Any",
            "object",
            "T",
            "Never",
            "Text",
            "Image",
            "Message",
            "Workflow",
            "str | None",
            "Optional[Workflow]",
            "Literal['a', None, False]",
            "Words",
            "Choice",
            "Figure",
            "Shown",
            "list",
            "list[str | Message]",
            "tuple[str, ...]",
            "tuple[str, Text]",
            "tuple[str, str, str]",
            "tuple[()]",
            "Sequence[Message]",
            "Iterable[str]",
            "Iterator[str]",
            "Generator[str, None, Workflow]",
            "Awaitable[str]",
            "AsyncIterator[str]",
            "AsyncGenerator[str, None]",
            "Annotated[str, 'x']",
            "'Workflow'",
            "'Nowhere'",
            "list['Nowhere']",
            "'1 / 0'",
            "3",
        ],
    )
    def test_a_supported_or_unresolved_return_type_is_not_reported(self, annotation, collect_diagnostics):
        """A return annotation that is supported, may be, or cannot be resolved is not reported."""
        assert collect_diagnostics(returns=RETURNS.format(annotation=annotation)) == ()

    @pytest.mark.parametrize(
        ("head", "promised"),
        [
            ("def p() -> Iterator[int]:", "int"),
            ("def p() -> Generator[str, None, bytes]:", "bytes"),
            ("async def p() -> AsyncIterator[int]:", "int"),
        ],
    )
    def test_the_items_of_a_generator_are_checked(self, head, promised, collect_diagnostics):
        """The types in a generator's annotation are checked."""
        recipe = RETURNS.partition("def p()")[0] + f"{head}\n    yield 'x'\n"

        diagnostics = collect_diagnostics(returns=recipe)

        assert [f"includes {promised}," in d.message for d in diagnostics] == ([True] if promised else [])

    def test_the_return_type_of_a_decorated_function_is_ignored(self, collect_diagnostics):
        """The annotation of a decorated function is ignored, because the decorator may convert its result."""
        recipe = """
            from functools import wraps
            from promptkit import prompt

            def shown(function):
                @wraps(function)
                def wrapper() -> str:
                    return str(function())
                return wrapper

            @prompt
            @shown
            def numbers() -> int:
                return 3
        """

        assert collect_diagnostics(numbers=recipe) == ()
