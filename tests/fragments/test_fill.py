import json
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Text
from promptkit.fragments import bullets, code_block, dedent, fill

NAMES = ("a", "b", "code")

#: Text with placeholders, braces and indentation.
LITERALS = st.lists(
    st.sampled_from(["{{a}}", "{{ b }}", "{{code}}", "{{x}}", "{", "}", "{{", "}}", "  ", "\t", "\n", "word"])
).map("".join)
VALUES = st.text(st.sampled_from("ab{} \n")) | st.just("{{a}}")


def find_placeholders(text, *names):
    """Return the *names* that have a placeholder in the text, with the placeholder as their value."""
    return {name: f"{{{{{name}}}}}" for name in names if f"{{{{{name}}}}}" in text}


class TestPlaceholders:
    def test_the_documented_example(self):
        """The documented example is dedented and filled, and a line without content is dropped."""
        code = "def f():\n    return 1"
        filled = fill(
            """
            Review this change:
              {{code}}
            Scope: {{scope}}
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
        with pytest.raises(ValueError, match=r"has no placeholder \{\{a\}\}; its placeholders: none"):
            fill("x", a=1)


class TestValues:
    @pytest.mark.parametrize(
        ("value", "text"),
        [(3, "3"), (1.5, "1.5"), (Decimal("1.10"), "1.10"), (date(2026, 1, 31), "2026-01-31"), ("", "")],
    )
    def test_scalars_are_inserted(self, value, text):
        """Numbers, dates and texts are inserted; an empty text keeps its line."""
        assert fill("<{{a}}>", a=value) == Text(f"<{text}>")

    @pytest.mark.parametrize("value", [None, False])
    def test_a_line_without_values_is_dropped(self, value):
        """A line is dropped only if all its placeholders have no value."""
        assert fill("x\n{{a}} {{b}}\ny", a=value, b=value) == Text("x\ny")
        assert fill("x\n{{a}}-{{b}}\ny", a=value, b="b") == Text("x\n-b\ny")
        assert fill("x\n{{a}}\ny", a="") == Text("x\n\ny")
        assert fill("x\n{{a}}", a="") == Text("x\n")

    def test_blank_lines_at_the_ends_are_dropped(self):
        """At either end of the text, blank lines are dropped together with the line next to them."""
        assert fill("{{a}}\n\nx\n\n{{a}}", a=None) == Text("x")
        assert fill("{{a}}", a=None) == Text("")
        assert fill("{{a}}\n\n{{b}}", a=None, b="x\n") == Text("x\n")

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (True, "fill(...): a is True: give the text to insert, or None"),
            (
                ["x"],
                "fill(...): a: expected text, not list; convert it to text with bullets(...) or inline(*...)",
            ),
        ],
    )
    def test_invalid_values_are_rejected(self, value, message):
        """An invalid value raises an error that names the placeholder."""
        with pytest.raises(TypeError) as caught:
            fill("{{a}}", a=value)

        assert str(caught.value) == message

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

    @pytest.mark.parametrize(
        ("text", "filled"),
        [
            ("A\n\n{{a}}\n\nB", "A\n\nB"),
            ("A\n\n{{a}}\n\n{{a}}\n\nB", "A\n\nB"),
            ("A\n\n{{a}}\n\n{{b}}\n\n{{a}}\n\nB", "A\n\nb\n\nB"),
            ("A\n{{a}}\n\nB", "A\n\nB"),
            ("A\n\n{{a}}\nB", "A\n\nB"),
            ("A\n\n{{b}}\n\n\nB", "A\n\nb\n\n\nB"),
        ],
    )
    def test_blank_lines_after_a_dropped_line_are_dropped(self, text, filled):
        """When a line between blank lines is dropped, so are the blank lines after it."""
        values = {name: value for name, value in (("a", None), ("b", "b")) if name in text}

        assert fill(text, **values) == Text(filled)

    def test_placeholders_within_values_are_not_filled(self):
        """Placeholders within values are not filled."""
        assert fill("{{a}} {{b}}", a="{{b}}", b="{{a}}") == Text("{{b}} {{a}}")

    def test_the_result_has_the_annotations_of_its_parts(self):
        """The result has the annotations of its parts; different ones are rejected."""
        assert fill("{{a}}", a=Text("x", priority=1)) == Text("x", priority=1)
        assert fill(Text("{{a}}", priority=1), a="x") == Text("x", priority=1)
        with pytest.raises(ValueError, match="different annotations"):
            fill("{{a}}{{b}}", a=Text("x", priority=1), b=Text("y"))

    def test_values_can_be_fragments(self):
        """Values can be made by other fragments."""
        filled = fill(
            "Look:\n\n{{code}}\n\n  {{list}}", code=code_block("x = 1", "python"), list=bullets(["a", "b"])
        )

        assert filled == Text("Look:\n\n```python\nx = 1\n```\n\n  - a\n  - b")


class TestLaws:
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
