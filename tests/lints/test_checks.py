"""Comments that suppress a warning on their line."""

import pytest

from promptkit.errors.rules import WARNINGS, Rule, rule_of

HEAD = "from promptkit import prompt\n\n@prompt\n"


def codes(diagnostics):
    return [diagnostic.rule.value for diagnostic in diagnostics]


#: A function without content and a string that lacks an f, each with room for a comment on its line.
SILENT = "def silent():{}\n    pass\n"
F_STRING = 'def plain(name: str) -> str:\n    return (\n        name\n        + "Hello {{name}}."{}\n    )\n'


class TestSuppression:
    @pytest.mark.parametrize(
        ("source", "code"),
        [(SILENT, "PK205"), (F_STRING, "PK207")],
        ids=["def", "f"],
    )
    @pytest.mark.parametrize(
        "comment",
        ["# promptkit: ignore[{}]", "#promptkit:ignore[PK105, {}]", "# why  # promptkit: ignore[{}]"],
    )
    def test_a_comment_takes_back_what_is_said_of_its_line(self, source, code, comment, found):
        """The comment suppresses the warning of its line."""
        quiet = f"  {comment.format(code)}"

        assert codes(found(it=HEAD + source.format(""))) == [code]
        assert found(it=HEAD + source.format(quiet)) == ()

    def test_other_lines_and_other_codes_stay(self, found):
        """A comment applies only to its line and to its codes."""
        elsewhere = f"# promptkit: ignore[PK205]\n{HEAD}" + SILENT.format("")
        other = HEAD + SILENT.format("  # promptkit: ignore[PK207]")

        assert codes(found(it=elsewhere)) == codes(found(it=other)) == ["PK205"]

    def test_text_is_no_comment(self, found):
        """A comment inside a string suppresses nothing and is not reported."""
        source = HEAD + 'def p() -> str:\n    return "# promptkit: ignore[PK999]"\n'

        assert found(it=source) == ()

    def test_an_error_stays(self, found):
        """An error cannot be suppressed, and the comment is reported."""
        error, warning = sorted(found(it=f"{HEAD}def p(x): return x  # promptkit: ignore[PK301]\n"), key=str)

        assert error.rule is Rule.MISSING_ANNOTATION
        assert warning.rule is Rule.BAD_SUPPRESSION
        assert warning.hint == "PK301 is an error that cannot be ignored: fix its cause"

    @pytest.mark.parametrize(
        ("comment", "hint"),
        [
            ("# promptkit: ignore[PK2077]", "there is no code 'PK2077'; did you mean 'PK207'?"),
            ("# promptkit: ignore[zzz]", "there is no code 'zzz': write one that promptkit check prints"),
            ("# promptkit: ignore", "name the codes that it is about, as in # promptkit: ignore[PK207]"),
            ("# promptkit: ignore[]", "name the codes that it is about, as in # promptkit: ignore[PK207]"),
        ],
    )
    def test_a_comment_that_ignores_nothing(self, comment, hint, found):
        """An ineffective comment is a warning at its location, with the nearest code."""
        (told,) = found(it=f"{HEAD}def p() -> str:\n    return 'x'  {comment}\n")

        assert (told.rule, told.hint) == (Rule.BAD_SUPPRESSION, hint)
        assert (told.location.line, told.location.column) == (5, 17)
        assert told.location.end == 17 + len(comment)


@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.value)
def test_what_keeps_nothing_from_being_served_can_be_ignored(rule):
    """Warnings, and errors that are detected in the source only, can be suppressed."""
    ignorable = ["PK102", "PK103", "PK205", "PK206", "PK216", "PK217", "PK230", "PK605", "PK606"]
    if rule in WARNINGS or rule.value in ignorable:
        assert rule_of(rule.value) is rule
    else:
        with pytest.raises(ValueError, match="is an error"):
            rule_of(rule.value)
