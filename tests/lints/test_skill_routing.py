"""Lints for the choice of skills: trigger phrases, overlaps, the size of the list, and cases."""

import pytest

from promptkit import skill
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.lints.skills import lint_listing

#: Ten skills.
SKILLS = dict(
    line.split(": ", 1)
    for line in """\
code-review: Review a diff for bugs, style and missing tests. Use it before a commit or a pull request.
release-notes: Write release notes and the changelog from git history. Use it when a version is tagged.
sql-tuning: Make slow SQL queries fast with indexes and plans. Use it when a database query is slow.
incident-report: Write the postmortem of an outage with its timeline. Use it after an incident.
meeting-minutes: Summarize a meeting into decisions and action items. Use it when given a transcript.
api-docs: Document REST endpoints as OpenAPI with examples. Use it when an endpoint is added or changed.
accessibility: Audit web pages for WCAG: contrast, keyboard, screen readers. Use it for UI changes.
translation: Translate user interface strings and keep placeholders. Use it when a language is added.
expense-report: Collect receipts into a travel expense sheet. Use it after a business trip.
terraform-plan: Explain a Terraform plan and its risks. Use it before infrastructure is applied.
""".splitlines()
)

#: Three requests for each skill, written before the ranking was first run.
REQUESTS = {
    name: requests.split(" / ")
    for name, requests in (
        line.split(": ", 1)
        for line in """\
code-review: can you review my diff? / look for bugs in this pull request / what tests are missing here
release-notes: write the changelog for 2.1 / what goes into the release notes / summarize git history
sql-tuning: this query takes ten seconds / which indexes does the database need / explain this slow sql
incident-report: draft the postmortem / we had an outage last night / timeline of the incident
meeting-minutes: summarize the meeting / list our action items / which decisions are in it
api-docs: document the new endpoint / generate openapi for our rest service / api examples please
accessibility: is the contrast good enough / check keyboard navigation / audit this page for wcag
translation: translate the strings to french / add a language / keep the placeholders intact
expense-report: here are my receipts / expenses for my trip to oslo / fill in the travel sheet
terraform-plan: what does this terraform plan do / risks before we apply / explain infrastructure changes
""".splitlines()
    )
}


def make_skill(name, description):
    """Return a skill with a description."""
    return skill(name=name, description=description)(lambda: "Do it.")


def rules_of(descriptions):
    """Return the rules of the diagnostics of skills."""
    skills = [make_skill(name, text) for name, text in descriptions.items()]
    return [diagnostic.rule for diagnostic in compile(skills, lint=True).diagnostics]


def test_cases_rank_the_expected_skill_first():
    """All of thirty made-up requests for ten skills rank the expected skill first."""
    skills = {name: make_skill(name, text) for name, text in SKILLS.items()}
    for name, requests in REQUESTS.items():
        for request in requests:
            skills[name].case(request)

    assert [str(each) for each in compile(skills.values(), lint=True).diagnostics] == []
    assert sum(map(len, REQUESTS.values())) == 30


@pytest.mark.parametrize(
    ("request_", "wanted", "part"),
    [
        ("review the changelog and release notes", True, "'release-notes' ("),
        ("bake bread", True, "none of the words in the request 'bake bread'"),
        ("review my diff", False, "it ranks first for the request 'review my diff'"),
    ],
)
def test_failing_case(request_, wanted, part):
    """A case whose skill does not rank as expected is a warning at the case."""
    skills = {name: make_skill(name, text) for name, text in SKILLS.items()}
    case = skills["code-review"].case(request_, wanted=wanted)

    (diagnostic,) = compile(skills.values(), lint=True).diagnostics

    assert (diagnostic.rule, diagnostic.location) == (Rule.SKILL_CASE_FAILS, case.location)
    assert diagnostic.location.file == __file__
    assert part in diagnostic.message


@pytest.mark.parametrize(
    "metadata", ["cases: |\n    bake bread\n    not: x", "cases:\n  - bake bread\n  - not: x"]
)
def test_cases_in_metadata(tmp_path, metadata):
    """A skill's folder has the cases in its metadata, as text or as a list."""
    (tmp_path / "a").mkdir()
    text = f"---\nname: a\ndescription: Use it when x.\nmetadata:\n  {metadata}\n---\nDo it.\n"
    (tmp_path / "a" / "SKILL.md").write_text(text)
    catalog = compile(tmp_path, lint=True)

    assert [(case.name, case.wanted) for case in catalog.skills[0].saved()] == [
        ("bake bread", True),
        ("x", False),
    ]
    assert [(each.rule, each.location.line) for each in catalog.diagnostics] == [
        (Rule.SKILL_CASE_FAILS, 4)
    ] * 2


@pytest.mark.parametrize("cases", [5, [5], {"a": "b"}])
def test_other_metadata_is_ignored(tmp_path, cases):
    """Cases in other programs' formats are ignored."""
    (tmp_path / "a").mkdir()
    text = f"---\nname: a\ndescription: Use it when x.\nmetadata: {{cases: {cases}}}\n---\nDo it.\n"
    (tmp_path / "a" / "SKILL.md").write_text(text)

    assert compile(tmp_path).skills[0].saved() == ()


@pytest.mark.parametrize("request_", ["", " ", None, 5])
def test_invalid_request(request_):
    """A request must be text."""
    with pytest.raises(TypeError, match="pass the text that a user writes"):
        make_skill("a", "b").case(request_)


@pytest.mark.parametrize(
    ("description", "is_reported"),
    [
        ("Reviews code and finds bugs.", True),
        ("Best practices for C# async programming.", True),
        ("Reviews code. Use it before a commit.", False),
        ("Reviews code when the user asks.", False),
        ("Reviews code. Triggers: 'review', 'check'.", False),
        ("Reads tables, for data analysis.", False),
        ("审查代码的质量和风格。", False),
    ],
)
def test_trigger_phrase(description, is_reported):
    """An English description that does not say when to use the skill is reported."""
    assert rules_of({"a": description}) == [Rule.NO_TRIGGER] * is_reported


def test_overlap():
    """Two similar descriptions are reported once, and different ones are not."""
    similar = {
        "a": "Review a pull request for bugs. Use it before a merge.",
        "b": "Review pull requests for bugs, if asked.",
    }
    assert rules_of(similar) == [Rule.SIMILAR_SKILLS]
    assert rules_of({**similar, "b": "Plan a trip to Oslo, if asked."}) == []


def test_at_most_ten_overlaps():
    """Of many overlapping pairs, only ten are reported."""
    text = "Review code, pull requests, commits, branches and plans of a team, if asked."
    assert rules_of({f"skill-{letter}": text for letter in "bcefgh"}) == [Rule.SIMILAR_SKILLS] * 10


def test_skills_for_users_only_are_not_compared(tmp_path):
    """A description that models do not see needs no trigger and can overlap."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        text = f"---\nname: {name}\ndescription: Review code.\ndisable-model-invocation: true\n---\nDo it.\n"
        (tmp_path / name / "SKILL.md").write_text(text)

    assert compile(tmp_path, lint=True).diagnostics == ()


def test_listing():
    """Names and descriptions above the budget are reported, with the longest description."""
    catalog = compile([make_skill("a", "x " * 100), make_skill("b", "Short.")])

    assert [*lint_listing(catalog, 60)] == []
    (diagnostic,) = lint_listing(catalog, 53)
    assert diagnostic.rule is Rule.LONG_LISTING
    assert "2 skills have about 54 tokens, more than the limit of 53" in diagnostic.message
    assert [*lint_listing(Catalog(), 1)] == []
