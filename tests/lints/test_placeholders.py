from itertools import pairwise

import pytest

from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.loader.loader import load

HEAD = """
import textwrap
from typing import Annotated, Final, Literal

from promptkit import Arg, Text, prompt
from promptkit.fragments import bullets, code_block, dedent, fill

GUIDE = "Look at {{code}}."
PATH: Final = "a.md"


@prompt
def review(
    code: str, kind: Literal["a", "b"] = "a", count: int = 1, note: Annotated[str | None, Arg("n")] = None,
    is_new: bool = False,
):
    values = {"code": code}
"""

CONDITIONS = (
    "{% if note %}",
    "{%- elif x -%}",
    "{{#if code}}",
    "{{#unless x}}",
    "{{else}}",
    "{{else if x}}",
    "{{/if}}",
)
LOOPS = (
    "{%- for x in code %}",
    "{{#each code}}",
    "{{/each}}",
    "{{this}}",
    "{{this.name}}",
    "{{.}}",
    "{{@index}}",
)
OTHERS = (
    *(
        "{{> part}}",
        "{{code.name}}",
        "{{ code | upper }}",
        "{{ code or 'none' }}",
        '{{ "s" if code else "" }}',
    ),
    *('{{role "system"}}', "{% set x = 1 %}", "$ARGUMENTS", "!{git diff}", "${input:scope:What?}"),
)


@pytest.fixture
def check_body(recipes):
    """A function that returns the rule, message and hint of each diagnostic for a body."""

    def check(body):
        lines = "\n".join(f"    {line}" for line in body.split("\n"))
        folder = recipes(review=f"{HEAD}{lines}\n")
        (folder / "guide.md").write_text("Look at {{code}}, {{ note? }}.")
        (folder / "a.md").write_text("A {{code}}")
        (folder / "b.md").write_text("B {{code}}")
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
        'Text.from_path("a.md" if count else "b.md", code=code)',
        "Text.from_path(PATH, code=code)",
        'fill("{{#note}}\\n{{note}}\\n{{/note}}", note=note)',
        'fill("{{^note}}\\n{{code}}\\n{{/note}}", note=note, code=code)',
        'fill("{{note?}}", note=note)',
        'fill("{{x}}", x=note or "none")',
        'fill("{{x}}", x=code and bullets([code]))',
        'fill("{{x?}}", x=count > 1 and code)',
        'fill("{{a?}} {{b}}", a=note, b=code if note else None)',
        'fill("{{#x}}\\nx\\n{{/x}}", x=is_new)',
        'fill("{{x}}", x=note if note else "none")',
        'fill("{{#a}}\\n{{b}}\\n{{/a}}", a=note is not None, b=note)',
        'fill("{{#a}}\\n{{b}}\\n{{/a}}", a=bool(note), b=note and note.title)',
        'fill("{{#a}}\\n{{b}}\\n{{/a}}", a=note and note.lower(), b=code if note is not None else None)',
        """b = code if note and count > 1 else None
return fill("{{#a}}\\n{{#c}}\\n{{b}}\\n{{/c}}\\n{{/a}}", a=note, c=count > 1, b=b)""",
        """is_long = count > 1
return fill("{{#a}}\\n{{b}}\\n{{/a}}", a=is_long and code, b=code if is_long else None)""",
    ],
)
def test_matching_values_are_not_reported(call, check_body):
    """Neither matching values nor values that the source does not determine are reported."""
    assert check_body(call if "\n" in call else f"return {call}") == []


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
            'Text.from_path("a.md" if count else "guide.md", code=code)',
            Rule.UNFILLED_PLACEHOLDER,
            "{{note}} in guide.md:1 gets no value and is sent literally",
            "give it a value: note=..., or note='{{note}}' to send the placeholder itself",
        ),
        (
            'Text.from_path(f"{kind}.md", cod=code, **values)',
            Rule.UNKNOWN_PLACEHOLDER,
            ("'a.md' has no placeholder {{cod}}", "'b.md' has no placeholder {{cod}}"),
            "did you mean 'code'?",
        ),
        (
            'fill("{{#x}}\\n{{code}}\\n{{/x}}", code=code)',
            Rule.UNFILLED_PLACEHOLDER,
            "{{#x}} gets no value and is sent literally",
            "give it a value: x=..., or x='{{#x}}' to send the placeholder itself",
        ),
        (
            'fill("{{#code}} x\\n{{/code}}", code=code)',
            Rule.MISPLACED_MARK,
            "{{#code}} is not alone on its line",
            "to make part of a line optional, insert the part as a value, which can be ''",
        ),
        (
            'fill("{{#code}}", code=code)',
            Rule.MISPLACED_MARK,
            "{{#code}} is not closed",
            "write {{/code}} on a line below it",
        ),
        (
            'fill(f"{{#code}}\\n{note}\\n{{/code}}", code=code)',
            Rule.UNKNOWN_PLACEHOLDER,
            "the text has no placeholder {{code}}",
            "an f-string turns {{#code}} into {#code}: remove the f prefix",
        ),
        (
            'fill(f"{{code?}} {GUIDE}", code=code, x=1)',
            Rule.UNKNOWN_PLACEHOLDER,
            "the text has no placeholder {{x}}",
            "write {{x}} where the value belongs",
        ),
        (
            'fill("{{code}} {{cod}}", code=code)',
            Rule.UNFILLED_PLACEHOLDER,
            "{{cod}} gets no value and is sent literally",
            "or cod='{{cod}}' to send the placeholder itself",
        ),
        (
            'fill("{{#code?}}\\n{{/code}}", code=code)',
            Rule.MISPLACED_MARK,
            "{{#code?}} has a '?'",
            "write {{#code}}",
        ),
        *(
            (
                f'fill("{{{{x}}}}", x={value})',
                Rule.ABSENT_VALUE,
                f"'x' can be {rejected}, which {{{{x}}}} does not accept",
                "write {{x?}} if its line should be omitted, or pass a text for each case",
            )
            for value, rejected in (
                ("note", "None"),
                ("None", "None"),
                ("code if count else None", "None"),
                ("count > 1 and code", "False"),
                ("code or note", "None"),
                ("count > 1 and note", "False or None"),
            )
        ),
        *(
            (
                f'fill("{{{{{placeholder}}}}}", x={value})',
                Rule.ABSENT_VALUE,
                f"'x' can be {rejected}, which {{{{x}}}} does not accept",
                "write {{#x}} and {{/x}} around the lines that depend on it, or pass a text for each case",
            )
            for placeholder, value, rejected in (
                ("x", "not code", "False or True"),
                ("x", "True", "True"),
                ("x", "is_new", "False or True"),
                ("x", "count > 1 or code", "True"),
                ("x", "note or count > 1", "False or True"),
                ("x?", "not code", "True"),
                ("x?", "count > 1", "True"),
                ("x?", "is_new", "True"),
                ("x?", "note and count > 1", "True"),
            )
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
    """Placeholders and values that do not match are reported, for string literals and for files."""
    body = call if "\n" in call else f"return {call}"
    messages = message if isinstance(message, tuple) else (message,)

    reported = check_body(body)

    assert [(rule, message) for rule, message, _ in reported] == [
        (rule, prefix_message(message)) for message in messages
    ]
    assert all(reported_hint.endswith(hint) for *_, reported_hint in reported)


@pytest.mark.parametrize(
    "form", ["{0} and {0}", "{0} if count else {0}", "{0} or {0}", "{0} if {0} else None"]
)
def test_chains_of_values_are_checked_quickly(form, check_body):
    """Chains of assignments do not take exponential time."""
    names = ["code", *(f"value{number}" for number in range(60))]
    lines = "".join(f"{name} = {form.format(before)}\n" for before, name in pairwise(names))
    call = f'fill("{{{{#a}}}}\\n{{{{b}}}}\\n{{{{/a}}}}", a={names[-1]}, b={names[-1]})'

    assert check_body(f"{lines}return {call}") == []


@pytest.mark.parametrize(
    ("syntax", "hint"),
    [
        *((syntax, "write {{#name}} and {{/name}}") for syntax in CONDITIONS),
        *((syntax, "text is never repeated") for syntax in LOOPS),
        *(
            (syntax, "remove the comment")
            for syntax in ("{# why #}", "{{! why }}", "{{!why}}", "{{!-- why --}}")
        ),
        *((syntax, "write {{name}}: values are never escaped") for syntax in ("{{{code}}}", "{{&code}}")),
        *((syntax, "write {{name}} instead") for syntax in (*OTHERS, "{{?code}}")),
    ],
)
def test_syntax_of_other_template_systems_is_reported(syntax, hint, check_body):
    """Syntax of other template systems left in the text is reported, with the hint for its kind."""
    ((rule, message, reported_hint),) = check_body(f"return fill({syntax + ' {{code}}'!r}, code=code)")

    assert (rule, message) == (Rule.TEMPLATE_SYNTAX, prefix_message(f"{syntax!r} is sent literally"))
    assert reported_hint.startswith(hint)


def test_each_kind_of_other_syntax_is_reported_once(check_body):
    """One diagnostic is reported for conditions, and one for loops."""
    text = "{% if a %}{% for x in a %}{{code}}{% endfor %}{% else %}{% for y in b %}{% endfor %}{% endif %}"

    messages = {message for _, message, _ in check_body(f"return fill({text!r}, code=code)")}

    assert messages == {
        prefix_message(f"{syntax!r} is sent literally") for syntax in ("{% if a %}", "{% for x in a %}")
    }


@pytest.mark.parametrize(
    "text", ['{"a": {{{code}}}}', r"\section{{{code}}}", "{#anchor} {{ two words }} {{'a': 1}} {%}"]
)
def test_similar_braces_are_not_reported(text, check_body):
    """Braces of JSON, LaTeX and Markdown are not template syntax."""
    values = "code=code" if "code" in text else ""

    assert check_body(f"return fill({text!r}, {values})") == []


def test_location_is_the_placeholder(recipes):
    """The location in the file is the placeholder, not an earlier use of its name."""
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
            'f"Look: {code}\\n"',
        ],
    )
    def test_single_line_value_is_not_reported(self, text, check_body):
        """Values of one line, and strings without indentation, are not reported."""
        assert check_body(f"return {text}") == []


class TestIndentation:
    @pytest.mark.parametrize(
        "text",
        [
            '"""\n    Look at the code.\n\n    Then stop.\n"""',
            '"""Look at the code.\n    Then stop."""',
            'Text(f"""\n    Look at {code}.\n    """)',
            'Text("""\n    Look at the code.\n    """.strip())',
        ],
    )
    def test_indentation_of_the_code_is_reported(self, text, check_body):
        """A triple-quoted string is reported if all its lines are indented like the code."""
        assert [rule for rule, *_ in check_body(f"return {text}")] == [Rule.INDENTED_TEXT]

    @pytest.mark.parametrize(
        "text",
        [
            'dedent("""\n    Look at the code.\n    """)',
            'textwrap.dedent("""\n    Look at the code.\n    """)',
            'fill("""\n    Look at {{code}}.\n    """, code=code)',
            '"Look:\\n    at\\n    the code"',
            '("Look:\\n"\n    "    code")',
        ],
    )
    def test_other_indentation_is_not_reported(self, text, check_body):
        """A dedented string, and indentation that is written as an escape, are not reported."""
        assert check_body(f"return {text}") == []
