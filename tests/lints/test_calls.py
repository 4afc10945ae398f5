"""Lints of calls that Python accepts, although a name or an argument is not the intended one."""

import pytest

from promptkit.errors.rules import Rule

FORMAT = Rule.FORMAT_FIELDS


@pytest.fixture
def check_body(collect_diagnostics):
    """A function that returns the rules and hints for the body of a helper function."""

    def check_body(body):
        source = f"""
from promptkit import prompt

REVIEW = "Review {{code}} in {{language}}."

def helper(code: str, language: str = "python", more: dict = {{}}):
    return {body}

@prompt
def subject(code: str):
    return helper(code)
"""
        return [(diagnostic.rule, diagnostic.hint) for diagnostic in collect_diagnostics(subject=source)]

    return check_body


class TestFormat:
    @pytest.mark.parametrize(
        ("body", "hints"),
        [
            ("'{code}'.format(code=code)", []),
            ("REVIEW.format(code=code, language=language)", []),
            ("REVIEW.format(**more)", []),
            ("REVIEW.format(code=code, **more)", []),
            ("'{0} {}'.format(code)", []),
            ("'{code.name} {code[0]} {code:{language}}'.format(code=code, language=3)", []),
            ("code.format(language=language)", []),
            ("'{'.format(code=code)", []),
            ("'Review this.'.format(code=code)", ["write {code} where the value belongs"]),
            ("'{}'.format(code=code)", ["write {code} where the value belongs"]),
            (
                "'{{code}}'.format(code=code)",
                ["write {code}, or insert the value with promptkit.fragments.fill(...)"],
            ),
            ("'{cod}'.format(code=code)", ["did you mean 'cod'?", "did you mean 'code'?"]),
            ("REVIEW.format(code=code)", ["pass language=..., or double the braces of text"]),
            ("'{code}'.format(code)", ["pass code=..., or double the braces of text"]),
        ],
        ids=str,
    )
    def test_values_and_fields_without_a_counterpart_are_reported(self, check_body, body, hints):
        """A value without a field, and a field without a value, are reported if the text is known."""
        assert check_body(body) == [(FORMAT, hint) for hint in hints]


class TestTypingText:
    @pytest.mark.parametrize(
        ("source", "is_reported"),
        [
            ("from typing import Text\n@prompt\ndef subject(x: Text): return Text('a') + x", True),
            ("from typing import Any, Text as T\n@prompt\ndef subject(x: str): return T.join('a', x)", True),
            ("from typing import Text\n@prompt\ndef subject(x: Text): return f'a {x}'", False),
            ("from promptkit import Text\n@prompt\ndef subject(x: str): return Text('a') + x", False),
            (
                "from promptkit import Text\nfrom typing import Any\n@prompt\ndef subject(x: str): return x",
                False,
            ),
        ],
        ids=["call", "attribute", "annotations", "ours", "other name"],
    )
    def test_a_used_import_is_reported_at_its_line(self, collect_diagnostics, source, is_reported):
        """An import of `typing.Text` is an error unless only annotations use it."""
        diagnostics = collect_diagnostics(subject=f"from promptkit import prompt\n{source}\n")

        expected = [(Rule.TYPING_TEXT, "write 'from promptkit import Text'", 2)] * is_reported
        assert [(each.rule, each.hint, each.location.line) for each in diagnostics] == expected

    def test_a_failed_import_names_the_right_one(self, collect_diagnostics):
        """The error for a method of promptkit's `Text` says where to import it from."""
        source = "from typing import Text\nfrom promptkit import prompt\nSTYLE = Text.from_path('style.md')\n"

        (diagnostic,) = collect_diagnostics(subject=source)

        assert diagnostic.rule is Rule.IMPORT_FAILED
        assert diagnostic.hint == "write 'from promptkit import Text': typing.Text is another name for str"
