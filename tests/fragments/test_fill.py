import json
from base64 import b64decode
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, auto
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Image, Text, user
from promptkit.catalog import samples
from promptkit.fragments import bullets, code_block, dedent, fill
from promptkit.language.placeholders import MarkError, placeholders_in

NAMES = ("a", "b", "code")

PIXEL = b64decode(samples.PNG)

#: Text with placeholders, braces and indentation.
LITERALS = st.lists(
    st.sampled_from(["{{a}}", "{{ b }}", "{{code}}", "{{x}}", "{", "}", "{{", "}}", "  ", "\t", "\n", "word"])
).map("".join)
VALUES = st.text(st.sampled_from("ab{} \n")) | st.just("{{a}}")


@dataclass
class Point:
    x: int


class Colour(Enum):
    RED = "red"


class Size(Enum):
    LARGE = auto()


def find_placeholders(text, *names):
    """Return the *names* that have a placeholder in the text, each with its placeholder as the value."""
    return {name: f"{{{{{name}}}}}" for name in names if f"{{{{{name}}}}}" in text}


class TestPlaceholders:
    def test_the_documented_example(self):
        """The documented example is dedented and filled, and a line without content is dropped."""
        code = "def f():\n    return 1"
        filled = fill(
            """
            Review this change:
              {{code}}
            Scope: {{scope?}}
            """,
            code=code,
            scope=None,
        )

        assert filled == Text("Review this change:\n  def f():\n      return 1")

    def test_other_braces_are_kept(self):
        """Braces without a given name are kept, so JSON needs no escapes."""
        assert (
            fill('{"a": {"b": {{a}}}, "c": {{d}}, {{{a}}}}', a=1).text == '{"a": {"b": 1}, "c": {{d}}, {1}}'
        )

    def test_spaces_are_allowed_within_braces(self):
        """Spaces and tabs are allowed within the braces; line ends are not."""
        assert fill("{{ a }}{{\ta}}{{\na}}", a="x") == Text("xx{{\na}}")

    def test_a_placeholder_can_occur_several_times(self):
        """A placeholder can occur several times."""
        assert fill("{{a}} and {{a}}\n{{a}}", a="x") == Text("x and x\nx")

    def test_a_placeholder_can_have_the_name_of_a_parameter(self):
        """A placeholder can have the name of a parameter of `fill`."""
        assert fill("{{text}}", text="x") == Text("x")

    def test_an_unknown_placeholder_is_rejected(self):
        """The error about an unknown placeholder lists those in the text."""
        with pytest.raises(ValueError, match="no placeholder") as caught:
            fill("{{ code }}, {{scope}}, {{code}}", cod=1)

        assert (
            str(caught.value)
            == "fill(...): the text has no placeholder {{cod}}; its placeholders: {{code}}, {{scope}}"
        )
        with pytest.raises(ValueError, match=r"has no placeholder \{\{a\}\}; its placeholders: none$"):
            fill("x", a=1)

    @pytest.mark.parametrize("tag", ["{{a}}", "{{ #a }}", "{{a?}}"])
    def test_an_f_string_is_explained(self, tag):
        """The error about an unknown placeholder explains the single braces of an f-string."""
        with pytest.raises(ValueError, match="no placeholder") as caught:
            fill(tag.format(), a=1)

        assert str(caught.value).endswith(
            f"; it has {tag.format()}: an f-string and str.format turn {tag} into {tag.format()}"
        )


class TestValues:
    @pytest.mark.parametrize(
        ("value", "text"),
        [(3, "3"), (1.5, "1.5"), (Decimal("1.10"), "1.10"), (date(2026, 1, 31), "2026-01-31"), ("", "")],
    )
    def test_scalars_are_inserted(self, value, text):
        """Numbers, dates and strings are inserted; an empty string keeps its line."""
        assert fill("<{{a}}>", a=value) == Text(f"<{text}>")

    def test_lists_are_joined_and_other_values_become_json(self):
        """Lists of scalars are joined with commas, members of an Enum have names, and JSON is compact."""
        assert fill("{{a}}", a=["x", 1, Text("y")]) == Text("x, 1, y")
        assert fill("<{{a}}>", a=[]) == Text("<>")
        assert fill("{{a}}", a=[{"x": None}]) == Text('[{"x":null}]')
        assert fill("{{a}}", a=[1, None]) == Text("[1,null]")
        assert fill("{{a}}", a=Point(1)) == Text('{"x":1}')
        assert fill("{{a}} {{b}}", a=Colour.RED, b=Size.LARGE) == Text("red LARGE")
        assert fill("{{a}}", a=UUID(int=0)) == Text("00000000-0000-0000-0000-000000000000")

    @pytest.mark.parametrize(
        "text", ["{{a}}", "{{^b}}\n{{a}}\n{{/b}}", "{{a}} {{b?}}", "{{#b}}\n{{/b}}\n{{a}}"]
    )
    @pytest.mark.parametrize(
        ("value", "hint"),
        [
            (None, "write {{a?}} if its line should be omitted, or pass an empty string"),
            (False, "write {{#a}} and {{/a}} around the lines that depend on it, or pass text"),
            (True, "write {{#a}} and {{/a}} around the lines that depend on it, or pass text"),
        ],
    )
    def test_a_required_value_is_not_none_or_a_bool(self, text, value, hint):
        """A required value must not be None or a bool; the error names the fix."""
        values = {"b": "" if "^" in text else "1"} if "b" in text else {}

        with pytest.raises(TypeError) as caught:
            fill(text, a=value, **values)

        assert str(caught.value) == f"fill(...): 'a' is {value}: {hint}"

    def test_an_optional_value_is_not_true(self):
        """A line with ``?`` cannot insert True."""
        with pytest.raises(TypeError, match="'a' is True"):
            fill("{{a?}}", a=True)

    @pytest.mark.parametrize(
        "value", [object(), b"x", {"x"}, Image(PIXEL), user("x"), [object()], [Image(PIXEL)]]
    )
    def test_values_without_a_text_form_are_rejected(self, value):
        """
        A value that cannot be written as text is an error that names the placeholder, unless it is used only
        in marks.
        """
        with pytest.raises(TypeError, match=r"^fill\(\.\.\.\): a: expected text, not \w+; "):
            fill("{{a}}", a=value)
        assert fill("{{#a}}\nx\n{{/a}}", a=value) == Text("x")

    def test_all_lines_of_a_value_are_indented(self):
        """All lines of a value have the indentation of the placeholder's line; blank lines stay empty."""
        assert fill("x\n  {{a}}: {{b}}", a="1\n2", b="x\n\ny") == Text("x\n  1\n  2: x\n\n  y")
        assert fill("The person says: {{a}}", a="1\n2") == Text("The person says: 1\n2")

    @pytest.mark.parametrize(
        ("marker", "indentation"),
        [("- ", "  "), ("  * ", "    "), ("10. ", "    "), ("1) - ", "     "), ("> ", "> ")],
    )
    def test_lines_stay_in_lists_and_quotations(self, marker, indentation):
        """All lines of a value stay in their Markdown list item or quotation."""
        filled = fill(f"x\n{marker}Said: {{{{a}}}}", a="1\n2")

        assert filled == Text(f"x\n{marker}Said: 1\n{indentation}2")

    def test_placeholders_within_values_are_not_filled(self):
        """Placeholders within values are not filled."""
        assert fill("{{a}} {{b}}", a="{{b}}", b="{{a}}") == Text("{{b}} {{a}}")

    def test_the_result_has_the_annotations_of_its_parts(self):
        """The result has the annotations of its parts; different annotations are rejected."""
        assert fill("{{a}}", a=Text("x", priority=1)) == Text("x", priority=1)
        assert fill(Text("{{a}}", priority=1), a="x") == Text("x", priority=1)
        with pytest.raises(ValueError, match="different annotations"):
            fill("{{a}}{{b}}", a=Text("x", priority=1), b=Text("y"))

    def test_values_can_be_fragments(self):
        """Values can be results of other fragments."""
        filled = fill(
            "Look:\n\n{{code}}\n\n  {{list}}", code=code_block("x = 1", "python"), list=bullets(["a", "b"])
        )

        assert filled == Text("Look:\n\n```python\nx = 1\n```\n\n  - a\n  - b")


ABSENT = (None, False, "", [], (), {}, Text(""))
PRESENT = (True, 0, 0.0, " ", "x", [None], Text(" "), Text("x"))


class TestOptionalLines:
    @pytest.mark.parametrize("value", ABSENT)
    def test_lines_of_absent_values_are_omitted(self, value):
        """Lines with ``?`` and lines between marks are omitted if a value is None, False or of length 0."""
        assert fill("x\n<{{a?}}>\ny", a=value) == Text("x\ny")
        assert fill("x\n{{#a}}\ny\n{{/a}}\nz", a=value) == Text("x\nz")
        assert fill("x\n{{^a}}\ny\n{{/a}}\nz", a=value) == Text("x\ny\nz")

    @pytest.mark.parametrize("value", PRESENT)
    def test_lines_of_present_values_are_kept(self, value):
        """Lines are kept for all other values, including 0 and blank text."""
        assert fill("x\n{{#a}}\ny\n{{/a}}\nz", a=value) == Text("x\ny\nz")
        assert fill("x\n{{^a}}\ny\n{{/a}}\nz", a=value) == Text("x\nz")
        if value is not True and value != [None]:
            assert fill("x\n<{{a?}}>\ny", a=value) == Text(f"x\n<{value}>\ny")

    def test_a_line_is_omitted_for_one_of_its_values(self):
        """A line is omitted if one of its optional values is absent, whatever its other values are."""
        text = "x\n{{a?}} {{b?}} {{c}}\ny"

        assert fill(text, a="1", b=None, c=None) == Text("x\ny")
        assert fill(text, a="1", b="2", c="3") == Text("x\n1 2 3\ny")

    def test_blocks_nest(self):
        """Blocks nest, and placeholders in them are filled."""
        text = "{{#a}}\na {{a}}\n{{#b}}\nb {{b}}\n{{/b}}\n{{^b}}\nno b\n{{/b}}\n{{/a}}\nend"

        assert fill(text, a="1", b="2") == Text("a 1\nb 2\nend")
        assert fill(text, a="1", b=None) == Text("a 1\nno b\nend")
        assert fill(text, a=None, b="2") == Text("end")

    def test_marks_can_be_indented_and_padded(self):
        """Marks can be indented, padded, and inside a code fence."""
        text = "```\n  {{ #a }}\n  x\n\t{{/ a}} \n```"

        assert fill(text, a=True) == Text("```\n  x\n```")
        assert fill(text, a=None) == Text("```\n```")

    @pytest.mark.parametrize(
        ("text", "filled"),
        [
            ("A\n\n{{a?}}\n\nB", "A\n\nB"),
            ("A\n\n\n{{a?}}\n\n\nB", "A\n\nB"),
            ("A\n\n{{a?}}\n\n{{a?}}\n\nB", "A\n\nB"),
            ("A\n\n{{a?}}\n\n{{b}}\n\n{{a?}}\n\nB", "A\n\nb\n\nB"),
            ("A\n{{a?}}\n\nB", "A\n\nB"),
            ("A\n\n{{a?}}\nB", "A\n\nB"),
            ("A\n\n{{b}}\n\n\nB", "A\n\nb\n\n\nB"),
            ("A\n\n{{#a}}\n## A\n\n{{a}}\n{{/a}}\n\nB", "A\n\nB"),
            ("A\n\n{{#b}}\nB\n\n{{/b}}\n\nC", "A\n\nB\n\nC"),
            ("{{a?}}\n\nx\n\n{{a?}}", "x"),
            ("{{#b}}\n\nx\n\n{{/b}}", "x"),
            ("{{b}}\n{{a?}}", "b"),
            ("{{a?}}", ""),
        ],
    )
    def test_one_blank_line_remains(self, text, filled):
        """Where lines are omitted between paragraphs, one blank line remains; at an end of the text, none."""
        values = {name: value for name, value in (("a", None), ("b", "b")) if name in placeholders_in(text)}

        assert fill(text, **values) == Text(filled)

    def test_values_keep_their_blank_lines(self):
        """Blank lines of a value remain next to omitted lines."""
        assert fill("{{b}}\n\n{{a?}}\n\nx", a=None, b="1\n\n") == Text("1\n\n\n\nx")
        assert fill("{{b}}\n{{a?}}", a=None, b="x\n") == Text("x\n")

    def test_only_given_names_are_marks(self):
        """Marks with other names, or with more than a name, are text."""
        text = "{{#if a}}\n{{#x}}\n{{a}}\n{{/x}}\n{{/if}}"

        assert fill(text, a="1") == Text("{{#if a}}\n{{#x}}\n1\n{{/x}}\n{{/if}}")

    @pytest.mark.parametrize(
        ("text", "line", "problem"),
        [
            ("x\n{{#a}} y", 2, "{{#a}} is not alone on its line"),
            ("- {{#a}}\n{{/a}}", 1, "{{#a}} is not alone on its line"),
            ("{{#a}}{{/a}}", 1, "{{#a}} is not alone on its line"),
            ("{{#a?}}\n{{/a}}", 1, "{{#a?}} has a '?'"),
            ("x\n\n{{^a}}\nx", 3, "{{^a}} is not closed"),
            ("x\n{{/a}}", 2, "{{/a}} has no opening mark"),
            ("{{#b}}\n{{#a}}\n{{/b}}\n{{/a}}", 3, "{{/b}} is above {{/a}}"),
        ],
    )
    def test_misplaced_marks_are_rejected(self, text, line, problem):
        """A mark that shares its line or has no counterpart is an error with the line, and never sent."""
        values = dict.fromkeys(placeholders_in(text), "1")

        with pytest.raises(MarkError) as caught:
            fill(text, **values)

        error = caught.value
        assert (error.line, error.problem) == (line, problem)
        assert str(error) == f"fill(...): line {line}: {problem}: {error.hint}"

    def test_many_lines_and_marks_take_linear_time(self):
        """Deeply nested marks and very long strings take linear time."""
        text = "{{#a}}\n" * 20_000 + "x\n\n" * 20_000 + "{{/a}}\n" * 20_000

        assert fill(text, a=True).text == ("x\n\n" * 20_000).strip()
        assert fill(text, a=None).text == ""


#: Lines of a text with blocks, which `_text` nests correctly.
LINES = st.recursive(
    st.lists(
        st.sampled_from(["", "word", "- {{b}}", "{{a?}}", "<{{b}}> {{a?}}", "  {{x}}", "{"]), max_size=5
    ),
    lambda lines: st.lists(
        lines | st.tuples(st.sampled_from(["#a", "^a", "#b", "#c", "^c"]), lines), max_size=4
    ),
    max_leaves=6,
)


def _text(lines):
    """Return the text of nested lines."""
    if isinstance(lines, tuple):
        mark, inner = lines
        return f"{{{{{mark}}}}}\n{_text(inner)}{{{{/{mark[1:]}}}}}\n"
    return "".join(f"{line}\n" if isinstance(line, str) else _text(line) for line in lines)


def _expected(lines, values):
    """Return the lines that are kept, without blank lines, by a direct definition of the rules."""
    kept = []
    for line in lines:
        if isinstance(line, tuple):
            (sign, *name), inner = line
            kept += _expected(inner, values) if bool(values["".join(name)]) is (sign == "#") else []
        elif not isinstance(line, str):
            kept += _expected(line, values)
        elif line and not ("{{a?}}" in line and not values["a"]):
            kept.append(line.replace("{{b}}", values["b"]).replace("{{a?}}", str(values["a"])))
    return kept


class TestLaws:
    @given(LINES, st.sampled_from([None, "", "A"]), st.sampled_from(["", "B", "{{a}}"]), st.booleans())
    def test_lines_are_kept_or_omitted(self, lines, a, b, c):
        """Apart from blank lines, the result has the lines whose conditions hold."""
        text, values = _text(lines), {"a": a, "b": b, "c": c}
        used = {name: values[name] for name in placeholders_in(text) if name in values}

        filled = fill(text, **used).text

        nonblank = [line.strip() for line in filled.split("\n") if line.strip()]
        assert nonblank == [line.strip() for line in _expected(lines, values) if line.strip()]

    @given(LINES, st.sampled_from([None, "", "A"]), st.sampled_from(["", "B"]), st.booleans())
    def test_line_endings_do_not_matter(self, lines, a, b, c):
        """Text with CRLF gives the same lines as text with LF, and keeps CRLF."""
        text, values = _text(lines), {"a": a, "b": b, "c": c}
        used = {name: values[name] for name in placeholders_in(text) if name in values}

        assert fill(text.replace("\n", "\r\n"), **used).text == fill(text, **used).text.replace("\n", "\r\n")

    @given(st.text(st.sampled_from("{}#^/a? \n")) | st.sampled_from(["{{#b}}", "{{/a}}", "{{b}}"]))
    def test_values_are_never_parsed(self, value):
        """A value is inserted as it is, whatever marks and placeholders it contains."""
        text = "{{#b}}\n<{{a}}>\n{{/b}}"

        assert fill(text, a=value, b=True) == Text(f"<{value}>")

    @given(LITERALS)
    def test_filling_placeholders_with_themselves(self, literal):
        """Filling each placeholder with itself gives the dedented text."""
        plain = literal.replace("{{ b }}", "{{b}}")

        assert fill(plain, **find_placeholders(plain, *NAMES)) == dedent(plain)

    @given(LITERALS, st.fixed_dictionaries(dict.fromkeys(NAMES, VALUES)))
    def test_the_order_of_values_does_not_matter(self, literal, drawn_values):
        """The order of the values does not matter."""
        values = {name: drawn_values[name] for name in find_placeholders(literal, *NAMES)}

        assert fill(literal, **values) == fill(literal, **dict(reversed(values.items())))

    @given(st.text().filter(lambda text: "{{" not in text), st.text())
    def test_a_value_on_its_own_line_is_unchanged(self, before, value):
        """On a line by itself, a value is inserted unchanged."""
        text = fill(f"{json.dumps(before)}\n{{{{a}}}}\nend", a=value).text

        assert text == f"{json.dumps(before)}\n{value}\nend"
