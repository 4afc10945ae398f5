import json
import re
from pathlib import Path
from textwrap import dedent

import pytest
from jsonschema import Draft202012Validator

from promptkit.compiler import compile
from promptkit.diagnostics import WARNINGS, Diagnostic, Location, Report, Rule, Severity
from promptkit.loader import load

# ruff: noqa: E501 (what is printed is one line)

README = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")

#: Every rule once: a recipe that breaks it and nothing else, and what is printed.
CASES = {
    Rule.IMPORT_FAILED: (
        """
        from promptkit import prompt

        @promtp
        def import_failed() -> str:
            return "x"
        """,
        """
        recipes/import_failed.py:3: error PK101: recipe 'import_failed' cannot be imported: NameError: name 'promtp' is not defined
            did you mean 'prompt'?
        """,
    ),
    Rule.NO_PROMPTS: (
        """
        def no_prompts() -> str:
            return "x"
        """,
        """
        recipes: warning PK102: there is no prompt here
            decorate a function with @prompt, in a *.py file that begins with neither '_' nor 'test_'
        """,
    ),
    Rule.UNDEFINED_NAME: (
        """
        from promptkit import prompt

        @prompt
        def undefined_name(language: str) -> str:
            return f"Review this {langauge}."
        """,
        """
        recipes/undefined_name.py:5: warning PK103: undefined_name.py: nothing defines 'langauge'
            did you mean 'language'?
        """,
    ),
    Rule.FAILING_IMPORT: (
        """
        from promptkit import prompt

        @prompt
        def failing_import(diff: str) -> str:
            from promptkit.fragments import codeblock
            return codeblock(diff)
        """,
        """
        recipes/failing_import.py:5: warning PK104: failing_import.py: promptkit.fragments has no 'codeblock'
            did you mean 'code_block'?
        """,
    ),
    Rule.RELATIVE_PATH: (
        """
        from pathlib import Path

        from promptkit import prompt

        @prompt
        def relative_path() -> str:
            return Path("style.md").read_text()
        """,
        """
        recipes/relative_path.py:7: warning PK105: relative_path.py: 'style.md' has no folder: it is looked for in whatever folder a client starts the server in
            name it from the recipe's folder: Path(__file__).parent / 'style.md'
        """,
    ),
    Rule.BAD_NAME: (
        """
        from promptkit import prompt

        @prompt(name="bad name")
        def bad_name() -> str:
            return "x"
        """,
        """
        recipes/bad_name.py:3: error PK201: prompt 'bad name': a name has 1 to 64 of the letters A-Z and a-z, digits, '_' and '-'
            call it 'bad-name'
        """,
    ),
    Rule.DUPLICATE_NAME: (
        """
        from promptkit import prompt

        @prompt
        def duplicate_name() -> str:
            return "x"

        @prompt(name="duplicate_name")
        def another() -> str:
            return "y"
        """,
        """
        recipes/duplicate_name.py:7: error PK202: prompt 'duplicate_name': already defined at recipes/duplicate_name.py:3
            rename one of the two, or give it a name with @prompt(name='duplicate_name-2')
        """,
    ),
    Rule.BAD_METADATA: (
        """
        from promptkit import prompt

        @prompt(meta={"owner": object()})
        def bad_metadata() -> str:
            return "x"
        """,
        """
        recipes/bad_metadata.py:3: error PK203: prompt 'bad_metadata': its title, description, tags or meta cannot be sent: Encoding objects of type object is unsupported
            use text, numbers, booleans, None, and lists and dicts of these
        """,
    ),
    Rule.BAD_RETURN: (
        """
        from promptkit import prompt

        @prompt
        def bad_return() -> dict[str, str]:
            return {"role": "user", "content": "x"}
        """,
        """
        recipes/bad_return.py:4: error PK204: prompt 'bad_return': its return annotation promises dict[str, str], which no message can hold
            return user(...) for a turn, or text, with promptkit.fragments.json_block(...)
        """,
    ),
    Rule.SAYS_NOTHING: (
        """
        from promptkit import prompt, user

        @prompt
        def says_nothing(diff: str):
            user("Review this.", diff)
        """,
        """
        recipes/says_nothing.py:5: warning PK205: prompt 'says_nothing': it never returns or yields anything
            put 'return' in front of what it should say
        """,
    ),
    Rule.UNSENDABLE_VALUE: (
        """
        from promptkit import prompt

        @prompt
        def unsendable_value(diff: str):
            yield "Review this."
            yield "user", diff
        """,
        """
        recipes/unsendable_value.py:6: warning PK206: prompt 'unsendable_value': it yields a pair of strings, which no message can hold
            write user(...) or assistant(...) for a turn, or a list for several parts
        """,
    ),
    Rule.FORGOTTEN_F: (
        """
        from promptkit import prompt

        @prompt
        def forgotten_f(language: str) -> str:
            return "Review this {language}."
        """,
        """
        recipes/forgotten_f.py:5: warning PK207: prompt 'forgotten_f': '{language}' is sent as it is: its string has no f in front
            write f in front of the string, and double the braces that are to be sent: {{ }}
        """,
    ),
    Rule.TEMPLATE_SYNTAX: (
        """
        from promptkit import prompt

        @prompt
        def template_syntax(language: str) -> str:
            return "Review this {{ language }}."
        """,
        """
        recipes/template_syntax.py:5: warning PK208: prompt 'template_syntax': '{{ language }}' is sent as it is: text is never read as a template
            write an f-string, with Python's own if and for around it
        """,
    ),
    Rule.OBJECT_IN_TEXT: (
        """
        from promptkit import prompt

        @prompt
        def object_in_text(languages: list[str]) -> str:
            return f"Review this {(name.title() for name in languages)}."
        """,
        """
        recipes/object_in_text.py:5: warning PK209: prompt 'object_in_text': '{(name.title() for name in languages)}' in an f-string shows a generator, not its items
            join them: ', '.join(...)
        """,
    ),
    Rule.MISSING_ANNOTATION: (
        """
        from promptkit import prompt

        @prompt
        def missing_annotation(
            tone: str,
            diff,
        ) -> str:
            return diff
        """,
        """
        recipes/missing_annotation.py:6: error PK301: prompt 'missing_annotation': parameter 'diff' has no annotation
            write its type, as in 'diff: str'
        """,
    ),
    Rule.VARIADIC_PARAMETER: (
        """
        from promptkit import prompt

        @prompt
        def variadic_parameter(*diffs: str) -> str:
            return " ".join(diffs)
        """,
        """
        recipes/variadic_parameter.py:4: error PK302: prompt 'variadic_parameter': parameter '*diffs' has no fixed name
            name each parameter; clients fill them one by one
        """,
    ),
    Rule.POSITIONAL_ONLY: (
        """
        from promptkit import prompt

        @prompt
        def positional_only(diff: str, /) -> str:
            return diff
        """,
        """
        recipes/positional_only.py:4: error PK303: prompt 'positional_only': parameter 'diff' is positional-only
            remove the '/' from the signature; clients fill parameters by name
        """,
    ),
    Rule.UNSUPPORTED_TYPE: (
        """
        from promptkit import prompt

        @prompt
        def unsupported_type(phase: complex) -> str:
            return str(phase)
        """,
        """
        recipes/unsupported_type.py:4: error PK304: prompt 'unsupported_type': no client can fill parameter 'phase' of type complex
            use a type that text or JSON can write, or teach this one with promptkit.register_type
        """,
    ),
    Rule.DEFAULT_MISFIT: (
        """
        from promptkit import prompt

        @prompt
        def default_misfit(lines: int = "all") -> str:
            return str(lines)
        """,
        """
        recipes/default_misfit.py:4: error PK305: prompt 'default_misfit': parameter 'lines' has the default 'all', which is not int
            correct the default, or widen the annotation
        """,
    ),
    Rule.UNRESOLVED_ANNOTATION: (
        """
        from promptkit import prompt

        @prompt
        def unresolved_annotation(tone: "Tone") -> str:
            return str(tone)
        """,
        """
        recipes/unresolved_annotation.py:4: error PK306: prompt 'unresolved_annotation': the annotation of parameter 'tone' cannot be resolved: name 'Tone' is not defined
            define or import what it names in the recipe, outside of `if TYPE_CHECKING:`
        """,
    ),
    Rule.SECOND_CONTEXT: (
        """
        from promptkit import Context, prompt

        @prompt
        def second_context(one: Context, two: Context) -> str:
            return one.client or "x"
        """,
        """
        recipes/second_context.py:4: error PK307: prompt 'second_context': parameter 'two' is a Context, and so is 'one'
            keep one of them; both would be the same
        """,
    ),
    Rule.BAD_COMPLETION: (
        """
        from typing import Annotated

        from promptkit import Arg, prompt

        @prompt
        def bad_completion(tone: Annotated[str, Arg(complete=3)]) -> str:
            return tone
        """,
        """
        recipes/bad_completion.py:6: error PK308: prompt 'bad_completion': parameter 'tone' cannot be completed: complete= is given int, not several values
            write ['a', 'b'], or name a function without calling it
        """,
    ),
    Rule.BARE_ARG: (
        """
        from typing import Annotated

        from promptkit import Arg, prompt

        @prompt
        def bare_arg(diff: Annotated[str, Arg]) -> str:
            return diff
        """,
        """
        recipes/bare_arg.py:6: error PK309: prompt 'bare_arg': parameter 'diff' has Arg itself in its annotation, which says nothing
            call it: Arg('what to enter')
        """,
    ),
    Rule.SECOND_ARG: (
        """
        from typing import Annotated

        from promptkit import Arg, prompt

        @prompt
        def second_arg(diff: Annotated[str, Arg("The change"), Arg(secret=True)]) -> str:
            return diff
        """,
        """
        recipes/second_arg.py:6: error PK310: prompt 'second_arg': parameter 'diff' has two Arg(...)
            say it all in one; to describe an alias anew, put a plain string beside it
        """,
    ),
    Rule.STRAY_DESCRIPTION: (
        '''
        from promptkit import prompt

        @prompt
        def stray_description(diff: str) -> str:
            """
            Review a change.

            Args:
                dif:
                    The change to review.
            """
            return diff
        ''',
        """
        recipes/stray_description.py:9: warning PK311: prompt 'stray_description': the docstring describes 'dif', which is no parameter
            did you mean 'diff'?
        """,
    ),
    Rule.FOREIGN_NOTE: (
        """
        from typing import Annotated

        from annotated_types import Gt
        from promptkit import prompt

        @prompt
        def foreign_note(lines: Annotated[int, Gt(0)]) -> str:
            return str(lines)
        """,
        """
        recipes/foreign_note.py:7: warning PK312: prompt 'foreign_note': parameter 'lines' has Gt(...) of annotated_types, which is not read
            describe it with Arg('...'), and limit it with msgspec.Meta(ge=..., pattern=..., ...)
        """,
    ),
    Rule.BAD_EXAMPLE: (
        """
        from typing import Annotated, Literal

        from promptkit import Arg, prompt

        @prompt
        def bad_example(tone: Annotated[Literal["plain", "warm"], Arg(examples=["cold"])]) -> str:
            return tone
        """,
        """
        recipes/bad_example.py:6: warning PK313: prompt 'bad_example': parameter 'tone' would refuse its example 'cold'
            give what it takes: one of plain, warm
        """,
    ),
    Rule.BAD_TIMEZONE: (
        """
        from datetime import datetime
        from typing import Annotated

        from promptkit import Arg, prompt

        @prompt
        def bad_timezone(when: Annotated[datetime, Arg(timezone="Europe/Berln")]) -> str:
            return f"{when}"
        """,
        """
        recipes/bad_timezone.py:7: error PK320: prompt 'bad_timezone': parameter 'when' has the timezone 'Europe/Berln', which does not exist
            did you mean 'Europe/Berlin'?
        """,
    ),
    Rule.BAD_TEMPLATE: (
        """
        from promptkit import prompt, resource

        @resource("recent logs")
        def bad_template() -> str:
            return "x"

        @prompt
        def reads_bad_template() -> str:
            return "x"
        """,
        """
        recipes/bad_template.py:3: error PK401: resource 'bad_template': the template 'recent logs' has no scheme
            begin it as a URI begins, as in 'logs://recent{?timeframe}'
        """,
    ),
    Rule.TEMPLATE_MISMATCH: (
        """
        from promptkit import prompt, resource

        @resource("logs://recent{?lines}")
        def template_mismatch() -> str:
            return "x"

        @prompt
        def reads_template_mismatch() -> str:
            return "x"
        """,
        """
        recipes/template_mismatch.py:3: error PK402: resource 'template_mismatch': the template's variable 'lines' is no parameter of the function
            add a parameter 'lines', or take it out of the template
        """,
    ),
    Rule.DUPLICATE_TEMPLATE: (
        """
        from promptkit import prompt, resource

        @resource("logs://recent")
        def recent() -> str:
            return "x"

        @resource("logs://recent")
        def duplicate_template() -> str:
            return "y"

        @prompt
        def reads_duplicate_template() -> str:
            return "x"
        """,
        """
        recipes/duplicate_template.py:7: error PK403: resource 'duplicate_template': 'logs://recent' is already defined at recipes/duplicate_template.py:3
            change the URI of one of the two, or remove it
        """,
    ),
}

#: What a diagnostic is for machines.
SHAPE = {
    "type": "object",
    "required": [
        "code",
        "rule",
        "severity",
        "message",
        "remedy",
        "file",
        "line",
        "column",
        "end_column",
    ],
    "properties": {
        "code": {"pattern": "^PK[1-4][0-9]{2}$"},
        "rule": {"pattern": "^[a-z]+(-[a-z]+)+$"},
        "severity": {"enum": ["error", "warning"]},
        "message": {"type": "string", "minLength": 1},
        "remedy": {"type": "string", "minLength": 1},
        "file": {"type": "string", "pattern": "^/|^[A-Z]:"},
        "line": {"type": "integer", "minimum": 0},
        "column": {"type": "integer", "minimum": 0},
        "end_column": {"type": "integer", "minimum": 0},
    },
    "additionalProperties": False,
}


def lines(*diagnostics):
    return "\n".join(map(str, diagnostics))


def expected(rule):
    return dedent(CASES[rule][1]).strip()


class TestRules:
    def test_every_rule_is_in_the_table(self):
        """
        A rule that is added is shown here.
        """
        assert set(CASES) == set(Rule)

    @pytest.mark.parametrize("rule", CASES, ids=lambda rule: rule.value)
    def test_what_it_says(self, rule, found):
        """
        One mistake is one diagnostic: place, severity, code, what is wrong, and what to do.
        """
        source, _ = CASES[rule]

        assert lines(*found(**{rule.name.lower(): source})) == expected(rule)

    def test_one_pass_finds_them_all(self, found):
        """
        Every rule but that for empty folders is broken in one folder, and all is said at once.
        """
        rules = [rule for rule in CASES if rule is not Rule.NO_PROMPTS]

        diagnostics = found(**{rule.name.lower(): CASES[rule][0] for rule in rules})

        by_file = sorted(rules, key=lambda rule: rule.name.lower())
        assert lines(*diagnostics) == "\n".join(map(expected, by_file))

    @pytest.mark.parametrize("rule", CASES, ids=lambda rule: rule.value)
    def test_it_is_data_for_machines(self, rule, found):
        """
        What is printed is in the JSON, under names that do not change.
        """
        (diagnostic,) = found(**{rule.name.lower(): CASES[rule][0]})

        data = json.loads(json.dumps(diagnostic.as_data()))

        Draft202012Validator(SHAPE).validate(data)
        assert (data["code"], data["severity"]) == (rule.value, diagnostic.severity.value)
        assert f"{data['message']}\n    {data['remedy']}" in expected(rule)
        assert data["end_column"] > data["column"] or data["column"] == 0

    @pytest.mark.parametrize("rule", CASES, ids=lambda rule: rule.value)
    def test_only_errors_keep_a_prompt_from_being_served(self, rule, recipes):
        """
        What is only probably wrong is served, and nobody looks for it then.
        """
        catalog = compile(load(recipes(**{rule.name.lower(): CASES[rule][0]})))

        assert catalog.healthy == (rule in WARNINGS)
        if rule in WARNINGS - {Rule.NO_PROMPTS}:
            assert list(catalog) == [rule.name.lower()]
            assert catalog.diagnostics == ()

    def test_codes_are_of_one_form(self):
        """
        They are unique, and in order within their range.
        """
        codes = [rule.value for rule in Rule]

        assert codes == sorted(set(codes))
        assert Rule("PK201") is Rule.BAD_NAME

    def test_the_readme_lists_them_all(self):
        """
        Code, severity and title stand in the README as they stand here.
        """
        table = re.findall(r"^\| (PK\d+) \| (\w+) \| (.+) \|$", README, re.MULTILINE)

        assert table == [
            (rule.value, "warning" if rule in WARNINGS else "error", rule.title) for rule in Rule
        ]


def test_severities_follow_from_the_rule():
    """
    Two severities, and each rule has one.
    """
    severities = {rule: Diagnostic(rule, "", "", Location("")).severity for rule in Rule}

    assert {rule for rule, severity in severities.items() if severity is Severity.WARNING} == WARNINGS


def test_a_report_says_where(tmp_path):
    """
    A stage of the compiler names a part, a place of its own, or nothing.
    """
    file = tmp_path / "recipe.py"
    file.write_text("def f(a): ...\n")
    here, there = Location(str(file), 1), Location("other.py", 3)
    report = Report("prompt 'f'", here)

    for at in (None, "a", there):
        report.add(Rule.BAD_NAME, "is bad", "mend it", at)

    assert report.found == [
        Diagnostic(Rule.BAD_NAME, "prompt 'f': is bad", "mend it", place)
        for place in (here, Location(str(file), 1, 7, 8), there)
    ]
