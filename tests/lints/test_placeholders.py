import pytest

from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.loader.loader import load

HEAD = """
import textwrap
from typing import Annotated, Literal

from promptkit import Arg, Text, prompt
from promptkit.fragments import bullets, code_block, dedent, fill

GUIDE = "Look at {{code}}."


@prompt
def review(
    code: str, kind: Literal["a", "b"] = "a", count: int = 1, note: Annotated[str | None, Arg("n")] = None
):
    values = {"code": code}
"""


@pytest.fixture
def check_body(recipes):
    """A function that returns the rule, message and hint of each diagnostic for a body."""

    def check(body):
        lines = "\n".join(f"    {line}" for line in body.split("\n"))
        folder = recipes(review=f"{HEAD}{lines}\n")
        (folder / "guide.md").write_text("Look at {{code}}, {{ note }}.")
        return [
            (diagnostic.rule, diagnostic.message, diagnostic.hint)
            for diagnostic in compile(load(folder), lint=True).diagnostics
        ]

    return check


def prefix_message(message):
    return f"prompt 'review': {message}"


@pytest.mark.parametrize(
    "call",
    [
        'fill("{{code}}", code=code)',
        "fill(GUIDE, code=code)",
        "fill(GUIDE, **values)",
        'fill(note or "x", code=code)',
        'Text.from_path("guide.md", code=code, note=note)',
        'Text.from_path("guide.md", **values)',
        'Text.from_path(f"{kind}.md", code=code)',
        'fill("{{ no name }} {{}} {code}", **values)',
    ],
)
def test_matching_values_are_not_reported(call, check_body):
    """Values that match the placeholders, and values that the source does not show, are not reported."""
    assert check_body(f"return {call}") == []


@pytest.mark.parametrize(
    ("call", "rule", "message", "hint"),
    [
        (
            "fill(GUIDE, cod=code, **values)",
            Rule.UNKNOWN_PLACEHOLDER,
            "the text has no placeholder {{cod}}",
            "did you mean 'code'?",
        ),
        (
            'fill("{{code}}", code=code, xyz=1)',
            Rule.UNKNOWN_PLACEHOLDER,
            "the text has no placeholder {{xyz}}",
            "write {{xyz}} where the value belongs",
        ),
        (
            'Text.from_path("guide.md", code=code)',
            Rule.UNFILLED_PLACEHOLDER,
            "{{note}} in guide.md:1 gets no value and is sent literally",
            "give it a value: note=..., or note='{{note}}' to send the placeholder itself",
        ),
        (
            'text = "{{code}} {{x}}"\nreturn fill(text, code=code)',
            Rule.UNFILLED_PLACEHOLDER,
            "{{x}} gets no value and is sent literally",
            "give it a value: x=..., or x='{{x}}' to send the placeholder itself",
        ),
        (
            'Text.from_path("nope.md")',
            Rule.MISSING_TEXT,
            "there is no file 'nope.md' in 'recipes'",
            "use Text.below(...) for other folders",
        ),
    ],
)
def test_mismatch_is_reported(call, rule, message, hint, check_body):
    """Calls with literal texts and files are checked."""
    body = call if "\n" in call else f"return {call}"
    ((reported_rule, reported_message, reported_hint),) = check_body(body)

    assert (reported_rule, reported_message) == (rule, prefix_message(message))
    assert reported_hint.endswith(hint)


@pytest.mark.parametrize(
    "syntax",
    [
        *("{% if note %}", "{%- for x in code %}", "{{#if code}}", "{{/if}}", "{{> part}}"),
        *("{{code.name}}", "{{ code | upper }}", "$ARGUMENTS", "!{git diff}", "${input:scope:What?}"),
    ],
)
def test_syntax_of_other_template_systems_is_reported(syntax, check_body):
    """Syntax of other template systems left in the text is reported."""
    ((rule, message, _),) = check_body(f"return fill({syntax + ' {{code}}'!r}, code=code)")

    assert (rule, message) == (Rule.TEMPLATE_SYNTAX, prefix_message(f"{syntax!r} is sent literally"))


def test_location_is_that_of_the_placeholder(recipes):
    """The location in the file is that of the placeholder, not of an earlier use of its name."""
    folder = recipes(review=f'{HEAD}    return Text.from_path("guide.md", code=code)\n')
    (folder / "guide.md").write_text("---\nfor: note\n---\n{{code}}\nA note:\n{{ note }}, {{notes}}")

    messages = {diagnostic.message for diagnostic in compile(load(folder), lint=True).diagnostics}

    assert messages == {
        prefix_message(f"{{{{{placeholder}}}}} in guide.md:6 gets no value and is sent literally")
        for placeholder in ("note", "notes")
    }


class TestShiftedLines:
    @pytest.mark.parametrize("value", ["code", "note", "code_block(code)", "note or code"])
    def test_multi_line_value_is_reported(self, value, check_body):
        """A value that may have several lines is reported in `dedent`, because its lines would shift."""
        rules = [rule for rule, *_ in check_body(f'return dedent(f"""\n    Look:\n\n    {{{value}}}\n""")')]

        assert set(rules) == {Rule.SHIFTED_LINES}

    @pytest.mark.parametrize(
        "text",
        [
            'dedent(f"""\n    Look: {kind} {count} {code!r} {code:>10}\n""")',
            'dedent(f"Look: {code}")',
            'dedent("""\n    Look\n""")',
            'f"""\nLook: {code}\n"""',
        ],
    )
    def test_single_line_value_is_not_reported(self, text, check_body):
        """Values of one line, and texts without indentation, are not reported."""
        assert check_body(f"return {text}") == []
