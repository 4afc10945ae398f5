"""Comments that suppress a warning on their line."""

import pytest

from promptkit.errors.rules import WARNINGS, Rule, find_ignorable_rule

HEAD = "from promptkit import prompt\n\n@prompt\n"


def list_codes(diagnostics):
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
        ["# promptkit: ignore[{}]", "#promptkit:ignore[{}]", "# why  # promptkit: ignore[{}]"],
    )
    def test_comment_suppresses_the_warning_of_its_line(self, source, code, comment, collect_diagnostics):
        """The comment suppresses the warning of its line."""
        suppression = f"  {comment.format(code)}"

        assert list_codes(collect_diagnostics(recipe=HEAD + source.format(""))) == [code]
        assert collect_diagnostics(recipe=HEAD + source.format(suppression)) == ()

    def test_other_lines_and_codes_are_still_reported(self, collect_diagnostics):
        """A comment applies only to its line and to its codes."""
        on_other_line = f"# promptkit: ignore[PK205]\n{HEAD}" + SILENT.format("")
        of_other_code = HEAD + SILENT.format("  # promptkit: ignore[PK207]")

        assert (
            list_codes(collect_diagnostics(recipe=on_other_line))
            == list_codes(collect_diagnostics(recipe=of_other_code))
            == ["PK205"]
        )

    @pytest.mark.parametrize("line", range(4))
    def test_comment_counts_anywhere_within_the_call(self, line, collect_diagnostics):
        """A comment on any line of a call suppresses the diagnostics of that call only."""
        lines = ["    return fill(", '        "{{name}} {{x}}",', "        name=name,", "    )"]
        source = "from promptkit import prompt\nfrom promptkit.fragments import fill\n\n@prompt\n"
        source += "def p(name: str):\n"
        commented = [
            f"{text}  # promptkit: ignore[PK218]" if n == line else text for n, text in enumerate(lines)
        ]

        assert list_codes(collect_diagnostics(recipe=source + "\n".join(lines))) == ["PK218"]
        assert collect_diagnostics(recipe=source + "\n".join(commented)) == ()
        nested = (
            f"    return blocks(\n        {lines[0].split()[1]}'{{{{y}}}} {{{{x}}}}', y=name),\n        name,"
        )
        nested = nested + "  # promptkit: ignore[PK218]\n    )"
        assert list_codes(
            collect_diagnostics(recipe=source.replace("fill\n", "blocks, fill\n", 1) + nested)
        ) == ["PK218"]

    def test_comment_inside_a_string_is_ignored(self, collect_diagnostics):
        """A comment inside a string suppresses nothing and is not reported."""
        source = HEAD + 'def p() -> str:\n    return "# promptkit: ignore[PK999]"\n'

        assert collect_diagnostics(recipe=source) == ()

    def test_error_cannot_be_suppressed(self, collect_diagnostics):
        """An error cannot be suppressed, and the comment is reported."""
        error, warning = sorted(
            collect_diagnostics(recipe=f"{HEAD}def p(x): return x  # promptkit: ignore[PK301]\n"), key=str
        )

        assert error.rule is Rule.MISSING_ANNOTATION
        assert warning.rule is Rule.BAD_SUPPRESSION
        assert warning.hint == "PK301 is an error that cannot be ignored: fix its cause"

    @pytest.mark.parametrize(
        ("comment", "hint"),
        [
            ("# promptkit: ignore[PK2077]", "unknown code 'PK2077'; did you mean 'PK207'?"),
            ("# promptkit: ignore[zzz]", "unknown code 'zzz': use a code that 'promptkit check' prints"),
            ("# promptkit: ignore", "name the codes to ignore, for example # promptkit: ignore[PK207]"),
            ("# promptkit: ignore[]", "name the codes to ignore, for example # promptkit: ignore[PK207]"),
        ],
    )
    def test_ineffective_comment_is_reported(self, comment, hint, collect_diagnostics):
        """An ineffective comment is a warning at its location, with the nearest code."""
        (diagnostic,) = collect_diagnostics(recipe=f"{HEAD}def p() -> str:\n    return 'x'  {comment}\n")

        assert (diagnostic.rule, diagnostic.hint) == (Rule.BAD_SUPPRESSION, hint)
        assert (diagnostic.location.line, diagnostic.location.column) == (5, 17)
        assert diagnostic.location.end == 17 + len(comment)


@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.value)
def test_suppressible_rules(rule):
    """Warnings, and errors that do not prevent serving, can be suppressed."""
    ignorable = ["PK102", "PK103", "PK108", "PK205", "PK206", "PK216", "PK217", "PK223", "PK226", "PK228"]
    ignorable += ["PK230"]
    ignorable += ["PK605", "PK606", "PK801", "PK802", "PK803"]
    if rule in WARNINGS or rule.value in ignorable:
        assert find_ignorable_rule(rule.value) is rule
    else:
        with pytest.raises(ValueError, match="is an error"):
            find_ignorable_rule(rule.value)
