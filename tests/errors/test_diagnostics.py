import json
import os
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from promptkit.compiler.compilation import compile
from promptkit.errors.diagnostics import Diagnostic, Location, Owner, Report, Severity
from promptkit.errors.rules import IGNORABLE, RETIRED, WARNINGS, Rule
from promptkit.foreign.lints import lint_listing, lint_replies
from promptkit.foreign.listing import RequestError, read_listing
from promptkit.lints.clients import lint_client
from promptkit.loader.loader import load
from promptkit.loader.targets import display_path
from tests.foreign.replies import UNKNOWN, ScriptedConnection

PAGE = Path(__file__).parents[2].joinpath("docs", "diagnostics.md").read_text(encoding="utf-8")

#: The documented example of each rule: a recipe that breaks only this rule, and the printed diagnostic.
CASES = {
    Rule(code): (source, printed)
    for code, source, printed in re.findall(
        r"^## (PK\d+)\n.*?^```(?:python|markdown)[^\n]*\n(.*?)^```\n\n^```text\n(.*?)^```$",
        PAGE,
        re.MULTILINE | re.DOTALL,
    )
}

#: The file name of each example.
FILES = {
    Rule(code): name
    for code, name in re.findall(
        r'^## (PK\d+)\n(?:(?!^## ).)*?^```\w+ title="recipes/([\w./-]+)"$', PAGE, re.MULTILINE | re.DOTALL
    )
}

#: Additional recipes for examples, because a folder without any served prompt breaks another rule.
ADDITIONAL = {
    Rule.NOT_SERVED: {
        "served.py": "from promptkit import prompt\n\n\n@prompt\ndef served():\n    return 'x'\n"
    }
}

#: The client that an example is checked for, for rules about clients.
CLIENTS = {
    Rule(code): client
    for code, client in re.findall(
        r"^## (PK\d+)\n(?:(?!^## ).)*?check --client ([a-z-]+)`", PAGE, re.MULTILINE | re.DOTALL
    )
}

#: Rules that only `check --render` finds, tested in tests/cli/test_check.py, and two that only `check` finds,
#: because it starts another process, or has a budget, tested in tests/cli/test_skills.py.
RENDERED = {
    Rule.EXAMPLE_FAILS,
    Rule.TOO_MANY_TOKENS,
    Rule.CASE_FAILS,
    Rule.RESOURCE_FAILS,
    Rule.UNSTABLE_SKILL,
    Rule("PK612"),
}

#: The replies of a server that break only a rule about servers, and the printed diagnostic.
SERVERS = {
    Rule(code): (json.loads(replies), printed)
    for code, replies, printed in re.findall(
        r"^## (PK8\d+)\n(?:(?!^## ).)*?^```json\n(.*?)^```\n\n^```text\n(.*?)^```$",
        PAGE,
        re.MULTILINE | re.DOTALL,
    )
}

#: Rules that compare skills. In one folder, the examples of other rules break them as well.
COMPARED = {Rule("PK611"), Rule("PK613")}

COMPILED = [rule for rule in CASES if rule not in RENDERED]

#: The replacement in each example that follows the hint.
FIXES = {
    "PK101": ("@promtp", "@prompt"),
    "PK102": ("def no", "from promptkit import prompt\n\n\n@prompt\ndef no"),
    "PK103": ("langauge", "language"),
    "PK105": ('Path("style.md")', '(Path(__file__).parent / "style.md")'),
    "PK106": ("  # promptkit: ignore[pk207]", ""),
    "PK107": ("@prompt", "@prompt"),  # only the file is renamed
    "PK108": ("from typing import Text\n\nfrom promptkit import", "from promptkit import Text,"),
    "PK201": ("bad name", "bad-name"),
    "PK202": ('name="duplicate_name"', 'name="duplicate_name-2"'),
    "PK203": ("object()", '"me"'),
    "PK205": ("    user(", "    return user("),
    "PK206": ('yield "user", diff', "yield diff"),
    "PK207": ('"Review', 'f"Review'),
    "PK208": ('"Review this {{ language }}', 'f"Review this {language}'),
    "PK209": ("{(name.title() for name in languages)}", "{', '.join(name.title() for name in languages)}"),
    "PK211": ('assistant("What', 'user("What'),
    "PK212": ('Image.from_path("diagram.png")', '"It shows two boxes."'),
    "PK404": ('"answered://{name}"', '"answered://{name}", scopes=["oncall"]'),
    "PK213": ('scopes="oncall"', 'scopes=["oncall"]'),
    "PK214": ("The diff: {", "The diff:\\n\\n{"),
    "PK215": ("answer=object", "answer=str"),
    "PK216": ('Text.from_path("specify.md", feature=feature)', 'Text(f"Specify {feature}.")'),
    "PK217": ("cod=code, ", ""),
    "PK218": (" in {{scope}}", ""),
    "PK219": ("{code}", "{len(code)}"),
    "PK223": ("{{#rules}} Follow {{rules}}. {{/rules}}", "Follow {{rules?}}."),
    "PK224": ("{{scope}}", "{{scope?}}"),
    "PK225": (
        '"""\n        Review the change.\n\n        List each problem.\n        """',
        '"Review the change."',
    ),
    "PK228": ("{}", "{code}"),
    "PK229": ("* 600", "* 6"),
    "PK230": ('"three"', "3"),
    "PK301": ("    diff,", "    diff: str,"),
    "PK302": ("*diffs: str", "diffs: list[str]"),
    "PK303": (", /", ""),
    "PK304": ("complex", "float"),
    "PK305": ('"all"', "10"),
    "PK306": ('"Tone"', '"str"'),
    "PK307": (", two: Context", ""),
    "PK308": ("complete=3", 'complete=["3"]'),
    "PK309": ("Arg]", 'Arg("The change")]'),
    "PK310": ('Arg("The change"), Arg(secret=True)', 'Arg("The change", secret=True)'),
    "PK312": ("Gt(0)", '"More than 0"'),
    "PK313": ('"cold"', '"warm"'),
    "PK321": ("TEAM=core", "TEAM"),
    "PK330": ('revision, "--"', '"--end-of-options", revision, "--"'),
    "PK331": ("{(workspace() / path).read_text()}", "{Text.below(workspace(), path)}"),
    "PK401": ("recent logs", "logs://recent"),
    "PK402": ("template_mismatch() -> str:\n", "template_mismatch(lines: int = 1) -> str:\n"),
    "PK403": ('"logs://recent")\ndef dup', '"logs://old")\ndef dup'),
    "PK501": (
        'language: str, diff: str) -> str:\n    return f"Review this {language}',
        'diff: str) -> str:\n    return f"Review this',
    ),
    "PK502": ('    yield user("Review this.")\n    yield user(diff)', '    yield user("Review this.", diff)'),
    "PK503": ("(elicit=False)", ""),
    "PK504": ("service", "service_name"),
    "PK601": ('"Bad Skill"', '"bad-skill"'),
    "PK602": ('"../rules.md"', '"rules.md"'),
    "PK603": ('print("Read the change.")', 'return "Read the change."'),
    "PK604": ('name="duplicate-skill"', 'name="another"'),
    "PK606": ("@skill\n", '@skill(files={"references/rules.md": "Name the input that fails."})\n'),
    "PK607": ("* 700", "* 7"),
    "PK608": ('"Read the change."', '"Read the change, and rules.md."'),
    "PK609": ('name="same-skill-name", ', ""),
    "PK610": ("changes.", "changes. Use it before a commit."),
    "PK611": (
        "Find bugs and missing tests in a change. Use it when asked for a review.",
        "Use it to write a poem.",
    ),
    "PK613": ("wants to release", "wants to ship a release"),
    "PK614": (", and references/rules.md", ""),
    "PK615": ("2026-11-02", '"2026-11-02"'),
    "PK701": ("titel", "title"),
    "PK702": ("Review", "[user]\nReview"),
    "PK703": ("model: gpt-5\n", ""),
    "PK704": ("change.", "change, {{depth}}."),
    "PK705": ("\nReview changes", ""),
}

#: JSON schema of a diagnostic.
SCHEMA = {
    "type": "object",
    "required": [
        "code",
        "rule",
        "severity",
        "message",
        "hint",
        "file",
        "line",
        "column",
        "end_column",
    ],
    "properties": {
        "code": {"pattern": "^PK[1-8][0-9]{2}$"},
        "rule": {"pattern": "^[a-z]+(-[a-z]+)+$"},
        "severity": {"enum": ["error", "warning"]},
        "message": {"type": "string", "minLength": 1},
        "hint": {"type": "string", "minLength": 1},
        "file": {"type": "string", "pattern": "^/|^[A-Z]:"},
        "line": {"type": "integer", "minimum": 0},
        "column": {"type": "integer", "minimum": 0},
        "end_column": {"type": "integer", "minimum": 0},
    },
    "additionalProperties": False,
}


def _convert_reply(reply):
    """
    Return the result of a JSON-RPC reply, or its error as a `RequestError`, as a test connection expects it.
    """
    return RequestError(**reply["error"]) if "error" in reply else reply


def write_files(folder, files):
    """Write files into a folder, and return it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def join_lines(*diagnostics):
    return "\n".join(map(str, diagnostics))


@pytest.fixture
def diagnose(recipes, tmp_path, monkeypatch):
    """A function that writes recipes and returns all diagnostics, including those for a client."""
    monkeypatch.chdir(tmp_path)

    def diagnose(files, client=None):
        catalog = compile(load(write_files(recipes(), files)), lint=True)
        return (*catalog.diagnostics, *(lint_client(client, catalog) if client else ()))

    return diagnose


def get_files(rule):
    """Return the files that break only this rule."""
    return {FILES[rule]: CASES[rule][0], **ADDITIONAL.get(rule, {})}


def get_expected(rule):
    return CASES[rule][1].strip()


class TestRules:
    def test_every_rule_is_in_the_table(self):
        """Every rule has a documented example."""
        too_long = {Rule.LONG_DESCRIPTION}  # for a page, see tests/foreign/test_lints.py
        assert set(CASES) | set(SERVERS) | too_long == set(Rule)

    @pytest.mark.parametrize("rule", SERVERS, ids=lambda rule: rule.value)
    def test_the_replies_of_each_server_give_their_diagnostic(self, rule):
        """For each example of a server's replies, the diagnostics are exactly the documented one."""
        replies, printed = SERVERS[rule]
        unknown = dict.fromkeys(("prompts/get", "resources/read"), UNKNOWN)
        connection = ScriptedConnection()
        connection.results = {
            **unknown,
            **{method: _convert_reply(reply) for method, reply in replies.items()},
        }
        declared = {method.partition("/")[0]: {} for method in replies}

        listing = read_listing(connection, declared)
        diagnostics = [
            *listing.diagnostics,
            *lint_listing(listing),
            *lint_replies(listing, connection, "2026-07-28"),
        ]

        assert join_lines(*diagnostics) == printed.strip()

    @pytest.mark.parametrize("rule", COMPILED, ids=lambda rule: rule.value)
    def test_each_example_gives_its_diagnostic(self, rule, diagnose):
        """Each example gives exactly the documented diagnostic."""
        assert join_lines(*diagnose(get_files(rule), CLIENTS.get(rule))) == get_expected(rule)

    def test_every_rule_has_a_fix(self):
        """Every rule that compiling finds has a fix here."""
        assert {Rule(code) for code in FIXES} == {*COMPILED}

    @pytest.mark.parametrize("rule", COMPILED, ids=lambda rule: rule.value)
    def test_following_the_hint_fixes_the_diagnostic(self, rule, diagnose):
        """Following the hint fixes the diagnostic without causing another."""
        old, new = FIXES[rule.value]
        source = CASES[rule][0]
        assert old in source

        file = FILES[rule]
        name = file if "/" in file else f"{rule.name.lower()}.{file.partition('.')[2]}"
        assert diagnose({name: source.replace(old, new)}, CLIENTS.get(rule)) == ()

    def test_one_pass_reports_every_diagnostic(self, diagnose):
        """If all rules are broken in one folder, one pass reports every diagnostic."""
        left_out = {Rule.NO_PROMPTS, *CLIENTS, *COMPARED}
        rules = [rule for rule in COMPILED if rule not in left_out]

        diagnostics = diagnose({FILES[rule]: CASES[rule][0] for rule in rules})
        diagnostics = [diagnostic for diagnostic in diagnostics if diagnostic.rule not in COMPARED]

        by_file = sorted(rules, key=FILES.__getitem__)
        assert join_lines(*diagnostics) == "\n".join(map(get_expected, by_file))

    @pytest.mark.parametrize("rule", COMPILED, ids=lambda rule: rule.value)
    def test_a_diagnostic_serializes_to_json(self, rule, diagnose):
        """The JSON of a diagnostic matches the schema and the printed text."""
        (diagnostic,) = diagnose(get_files(rule), CLIENTS.get(rule))

        data = json.loads(json.dumps(diagnostic.as_data()))

        Draft202012Validator(SCHEMA).validate(data)
        assert (data["code"], data["severity"]) == (rule.value, diagnostic.severity.value)
        assert f"{data['message']}\n    {data['hint']}" in get_expected(rule)
        assert data["end_column"] > data["column"] or data["column"] == 0

    @pytest.mark.parametrize("rule", COMPILED, ids=lambda rule: rule.value)
    def test_prompts_that_break_ignorable_rules_are_served(self, rule, recipes):
        """A prompt that breaks only an ignorable rule is served, without a diagnostic."""
        catalog = compile(load(write_files(recipes(), {FILES[rule]: CASES[rule][0]})))

        assert catalog.healthy == (rule in IGNORABLE - {Rule.NO_PROMPTS, Rule.NOT_SERVED})
        if catalog.healthy:
            names = {*catalog, *(skill.name.replace("-", "_") for skill in catalog.skills)}
            assert rule.name.lower() in {name.casefold() for name in names}
            assert catalog.diagnostics == ()

    def test_codes_are_unique_and_sorted(self):
        """Codes are unique and sorted, and codes of removed rules are not used again."""
        codes = [rule.value for rule in Rule]

        assert codes == sorted(set(codes) - RETIRED)
        assert Rule("PK201") is Rule.BAD_NAME

    def test_rules_about_clients_have_codes_from_500(self):
        """The examples for PK5xx, and no others, are checked for a client."""
        codes = {rule.value for rule in Rule if rule.value.startswith("PK5")}
        assert {rule.value for rule in CLIENTS} == codes

    def test_the_documented_table_has_every_rule(self):
        """The documented table has the code, severity and title of every rule."""
        table = re.findall(r"^\| (PK\d+) \| (\w+) \| (.+) \|$", PAGE, re.MULTILINE)

        assert table == [
            (rule.value, "warning" if rule in WARNINGS else "error", rule.title) for rule in Rule
        ]


def test_the_severity_depends_on_the_rule():
    """The severity depends only on the rule."""
    severities = {rule: Diagnostic(rule, "", "", Location("")).severity for rule in Rule}

    assert {rule for rule, severity in severities.items() if severity is Severity.WARNING} == WARNINGS


def test_a_path_is_shown_relative_to_the_current_folder(tmp_path, monkeypatch):
    """A path is shown relative to the current folder, or absolute if the current folder is the root."""
    location, text = Location(str(tmp_path / "srv" / "a.py"), 7), str(Path("srv", "a.py"))

    monkeypatch.chdir(tmp_path)
    assert (str(location), display_path(str(tmp_path / "srv"))) == (f"{text}:7", f"srv{os.sep}")
    monkeypatch.chdir(tmp_path.anchor)
    absolute = (f"{tmp_path / text}:7", f"{tmp_path / 'srv'}{os.sep}")
    assert (str(location), display_path(str(tmp_path / "srv"))) == absolute


def test_a_diagnostic_is_located(tmp_path):
    """A diagnostic is located at a part, at a given location or at the definition."""
    file = tmp_path / "recipe.py"
    file.write_text("def f(a): ...\n")
    here, there = Location(str(file), 1), Location("other.py", 3)
    report = Report("prompt 'f'", here)

    for part in (None, "a", there):
        report.add(Rule.BAD_NAME, "is bad", "fix it", part)

    assert report.diagnostics == [
        Diagnostic(Rule.BAD_NAME, "prompt 'f': is bad", "fix it", location, Owner("prompt 'f'", here))
        for location in (here, Location(str(file), 1, 7, 8), there)
    ]


def test_the_first_of_duplicate_diagnostics_is_kept():
    """Removing duplicates keeps the first of each and the order."""
    report = Report("prompt 'f'", Location("recipe.py"))

    for problem in ("is bad", "is worse", "is bad"):
        report.add(Rule.BAD_NAME, problem, "fix it", None)

    assert [diagnostic.message for diagnostic in report.without_duplicates()] == [
        "prompt 'f': is bad",
        "prompt 'f': is worse",
    ]
