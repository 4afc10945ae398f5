import subprocess
import sys

import pytest

from promptkit import prompt
from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.loader.loader import load
from promptkit.loader.recipes import Recipes


class TestFunctionsWithoutContent:
    @pytest.mark.parametrize(
        "body",
        [
            "pass",
            "...",
            "'Only a docstring.'",
            "return",
            "return None",
            "text = f'Review {diff}.'",
            "user(diff)",
            "if diff:\n        raise ValueError",
            "def inner():\n        return 'x'",
            "inner = lambda: (yield 'x')",
            "try:\n        raise ValueError\n    except ValueError:\n        pass",
        ],
    )
    def test_function_without_content_is_reported(self, body, collect_diagnostics):
        """A function that never returns or yields anything is reported."""
        (diagnostic,) = collect_diagnostics(silent=SILENT.format(body=body))

        assert diagnostic.rule is Rule.NO_MESSAGE

    @pytest.mark.parametrize(
        "body",
        [
            "return diff",
            "return diff or None",
            "if diff:\n        return diff",
            "with open(__file__):\n        return diff",
            "match diff:\n        case _:\n            return diff",
            "yield diff",
            "yield from [diff]",
            "text = yield diff",
            "raise ValueError(diff)",
            "user(diff)\n    raise ValueError",
            "if diff:\n        raise ValueError\n    else:\n        raise TypeError",
            "with open(__file__):\n        raise ValueError",
            "try:\n        diff()\n    except TypeError:\n        raise\n    else:\n        raise TypeError",
        ],
    )
    def test_function_with_content_is_not_reported(self, body, collect_diagnostics):
        """A function that yields, returns a value somewhere or always raises is not reported."""
        assert collect_diagnostics(spoken=SILENT.format(body=body)) == ()

    @pytest.mark.parametrize(
        ("body", "located_text", "hint"),
        [
            ("user(diff)", "user(diff)", "start this line with 'return'"),
            ("f'Review {diff}.'", "f'Review {diff}.'", "start this line with 'return'"),
            ("print(diff)", "print(diff)", "return the text: clients do not see printed text"),
            ("text = diff", "silent", "return text or messages, or yield them"),
            ("'A docstring.'", "silent", "return text or messages, or yield them"),
        ],
    )
    def test_location_is_the_discarded_value(self, body, located_text, hint, collect_diagnostics, recipes):
        """The location is the discarded value, or the function's name."""
        source = SILENT.format(body=body)

        (diagnostic,) = collect_diagnostics(silent=source)

        location = diagnostic.location
        line = source.lstrip("\n").splitlines()[location.line - 1]
        assert (line[location.column - 1 : location.end - 1], diagnostic.hint) == (located_text, hint)

    def test_wrapped_function_is_not_reported(self, collect_diagnostics):
        """A function that is wrapped by a decorator is not reported."""
        recipe = """
            from functools import wraps
            from promptkit import prompt

            def from_docstring(function):
                @wraps(function)
                def wrapper() -> str:
                    return function.__doc__
                return wrapper

            @prompt
            @from_docstring
            def plan():
                "Make a plan."
        """

        assert collect_diagnostics(plan=recipe) == ()

    def test_function_without_a_source_is_not_checked(self):
        """A function without a source is not checked."""
        names = {}
        exec("def gone():\n    pass\n", names)  # noqa: S102 (a function without a file)

        assert compile(Recipes(prompts=(prompt(names["gone"]),)), lint=True).diagnostics == ()


SILENT = """
from promptkit import prompt, user

@prompt
def silent(diff: str):
    {body}
"""


class TestDocstrings:
    def test_parameters_can_share_a_description(self, recipes):
        """A NumPy docstring can describe several parameters together (`a, b : str`)."""
        docstring = "Parameters\n    ----------\n    diff, tone : str\n        Text."
        catalog = compile(load(recipes(described=DESCRIBED.format(docstring=docstring))))

        assert catalog["described"].arguments.by_name["diff"].description == "Text."


DESCRIBED = '''
from promptkit import Context, prompt

@prompt
def described(diff: str, context: Context = Context()) -> str:
    """
    Review a change.

    {docstring}
    """
    return diff
'''


#: A datetime as messages show it.
SHORT = "datetime.date...6, 1, 1, 0, 0)"


class TestExamples:
    @pytest.mark.parametrize(
        ("annotation", "options", "invalid_values"),
        [
            ("int", "examples=[3, '3', 'three']", ["example 'three'"]),
            ("str", "examples=['a', 3.5]", ["example 3.5"]),
            ("bool", "examples=['yes', True]", []),
            ("list[int]", "examples=['1, 2', [1], '[1]', 'x']", ["example 'x'"]),
            ("Literal['a', 'b']", "complete=['a', 'B', 'c']", ["completion 'c'"]),
            ("Literal['a', 'b']", "complete=lambda typed: ['c']", []),
            ("Literal['a', 'b']", "examples=['c'], complete=('d',)", ["completion 'd'", "example 'c'"]),
            ("int", "examples=['s3cret'], secret=True", ["example"]),
            ("datetime", "examples=[NAIVE, AWARE, None], complete=[NAIVE]", ["example None"]),
            ("Annotated[datetime, Meta(tz=True)]", "examples=[AWARE]", []),
            ("Annotated[datetime, Meta(tz=True)]", "examples=[NAIVE]", [f"example {SHORT}"]),
            ("list[Annotated[datetime, Meta(tz=False)]]", "complete=[[NAIVE]]", []),
            ("Annotated[int, Meta(ge=1)]", "examples=[0, 1]", ["example 0"]),
            ("Annotated[str, Meta(max_length=2)]", "complete=['ab', 'abc']", ["completion 'abc'"]),
            ("int | None", "examples=[None, 3]", []),
        ],
    )
    def test_invalid_examples_are_reported(self, annotation, options, invalid_values, collect_diagnostics):
        """Invalid examples and completions are reported, without repeating secrets."""
        recipe = f"""
            from datetime import UTC, datetime
            from typing import Annotated, Literal
            from msgspec import Meta
            from promptkit import Arg, prompt

            NAIVE, AWARE = datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)

            @prompt
            def offer(a: Annotated[{annotation}, Arg({options})]) -> str:
                return "x"
        """

        messages = [diagnostic.message for diagnostic in collect_diagnostics(offer=recipe)]

        assert messages == [
            f"prompt 'offer': parameter 'a' does not accept its {value}" for value in invalid_values
        ]


class TestAnnotatedMetadata:
    @pytest.mark.parametrize(
        ("annotation", "rules"),
        [
            ("Annotated[str, Arg]", [Rule.BARE_ARG]),
            ("Annotated[str, Arg] | None", [Rule.BARE_ARG]),
            ("Annotated[str, Arg, Arg('x')]", [Rule.BARE_ARG]),
            ("Annotated[str | None, Arg('x')]", []),
            ("Annotated[Annotated[str, Arg('x')], 'y']", []),
            ("Annotated[Annotated[str, Arg('x')], Arg('y')]", [Rule.SECOND_ARG]),
            ("Annotated[Annotated[str, Arg('x')] | None, Arg('y')]", [Rule.SECOND_ARG]),
            ("Annotated[str, Arg('x')] | Annotated[int, Arg('y')]", [Rule.SECOND_ARG]),
            ("Annotated[int, Gt(0), Field(le=3)]", [Rule.FOREIGN_METADATA] * 2),
            ("Annotated[int, msgspec.Meta(gt=0)]", []),
            ("Annotated[str, object()]", []),
            ("Annotated[str, Equal()]", []),
        ],
    )
    @pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"], ids=["plain", "future"])
    def test_annotated_metadata_is_checked(self, annotation, rules, future, collect_diagnostics):
        """`Annotated` with a bare `Arg`, a second `Arg` or another library's constraints is reported."""
        recipe = f"""{future}
from typing import Annotated
import msgspec
from annotated_types import Gt
from pydantic import Field
from promptkit import Arg, prompt

class Equal:
    def __eq__(self, other):
        raise ValueError("must not be compared")

@prompt
def noted(a: {annotation}) -> str:
    return "x"
"""

        assert [diagnostic.rule for diagnostic in collect_diagnostics(noted=recipe)] == rules


def test_lints_are_not_imported_for_serving(recipes):
    """The lints are not imported when a valid recipe is served."""
    folder = recipes(plan="from promptkit import prompt\n\n@prompt\ndef plan() -> str:\n    return 'x'\n")
    script = (
        "import sys\nfrom promptkit.compiler import compile\n"
        "from promptkit.loader.loader import load\n"
        f"assert list(compile(load({str(folder)!r}))) == ['plan']\nprint(*sys.modules)"
    )

    completed = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )

    assert set(completed.stdout.split()) & {"promptkit.lints.prompts", "rich", "docstring_parser"} == set()
