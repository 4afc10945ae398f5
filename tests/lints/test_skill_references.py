"""
References in the Markdown of skills: which text counts as a reference, and which files are not referenced.
"""

import pytest

from promptkit import skill
from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.lints.skills import find_references

DESCRIPTION = "Review a change. Use it before a commit."


def list_references(markdown):
    """Return the path of each reference, its line and whether it is a link."""
    return [(each.path, each.line, each.is_link) for each in find_references(markdown)]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("See\n\n[words](words.md).", [("words.md", 2, True)]),
        ("Two lines,\nthen [words](words.md).", [("words.md", 1, True)]),
        ("[a](<a b.md>) [b](a%20b.md)", [("a b.md", 0, True), ("a b.md", 0, True)]),
        ("[x](a.md#part) [y](a.md?raw)", [("a.md", 0, True), ("a.md", 0, True)]),
        ("![logo](assets/logo.png)", [("assets/logo.png", 0, True)]),
        ("[rules][1]\n\n[1]: rules.md", [("rules.md", 0, True)]),
        ("| a |\n| - |\n| [x](x.md) |", [("x.md", 2, True)]),
        ("- one\n- [two](two.md)", [("two.md", 1, True)]),
        ("[x]({baseDir}/a.md) [y](${CLAUDE_SKILL_DIR}/b.md)", [("a.md", 0, True), ("b.md", 0, True)]),
        ("Run `scripts/run.py`, as in references/rules.md.", [("scripts/run.py", 0, False)]),
        ("Read references/rules.md.", [("references/rules.md", 0, False)]),
        ("Read references/*.md.", []),
        ("[all](references/*.md)", [("references/*.md", 0, True)]),
    ],
)
def test_references(markdown, expected):
    """Links and paths in text are references, with their lines; links are decoded."""
    assert list_references(markdown)[: len(expected)] == expected


@pytest.mark.parametrize(
    "markdown",
    [
        "```\n[words](words.md) references/rules.md\n```",
        "~~~md\n[words](words.md)\n~~~",
        "Write `[words](words.md)`.",
        "    [words](words.md)",
        "<!-- [words](words.md) references/rules.md -->",
        "[web](https://example.com/a.md) [mail](mailto:a@b.c) [root](/a.md) [part](#part) [home](~/a.md)",
        "[a](path/to/a.md) [b]({file}.md) [c](<file>) [d](url) [e](docs/...)",
        "Put it in `references/{topic}.md` or scripts/<name>.py.",
        "For example, `scripts/rotate.py` rotates a file.",
        "Files in ~/references/a.md, other/scripts/a.py and $HOME/scripts/b.py are not in the skill.",
        "The folder references/ holds the rules, and scripts/helper the rest.",
    ],
)
def test_examples_are_not_references(markdown):
    """Code, comments, addresses, placeholders and examples are not references."""
    assert list_references(markdown) == []


def lint(body, files=(), folder=None):
    """Return the diagnostics of a skill written in Python, or of one in a folder."""
    if folder is None:
        review = skill(files=dict.fromkeys(files, "x"), name="review", description=DESCRIPTION)(lambda: body)
        return compile([review], lint=True).diagnostics
    for path in ("SKILL.md", *files):
        (folder / "review" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "review" / path).write_text("x")
    text = f"---\nname: review\ndescription: {DESCRIPTION}\n---\n{body}"
    (folder / "review" / "SKILL.md").write_text(text)
    return compile(folder, lint=True).diagnostics


def test_broken_link_is_an_error_and_broken_path_a_warning(tmp_path):
    """A broken link is an error and a broken path a warning, each at its line in SKILL.md."""
    diagnostics = lint("\n[words](words.md)\n\nRun `scripts/run.py`.\n", folder=tmp_path)

    assert [(each.rule, each.location.line) for each in diagnostics] == [
        (Rule.MISSING_REFERENCE, 6),
        (Rule.MISSING_PATH, 8),
    ]


@pytest.mark.parametrize(
    "body", ["[all](references/*.md)", "[folder](references)", "[here](./references/a.md)"]
)
def test_globs_and_folders_exist(body):
    """A glob exists if it matches a file, and a folder exists if it contains a file."""
    assert lint(body, ["references/a.md"]) == ()


@pytest.mark.parametrize(
    "path", ["LICENSE", "LICENSE.txt", "README.md", "docs/NOTICE", "CHANGELOG.md", "agents/openai.yaml"]
)
def test_files_that_need_no_reference(path):
    """Licenses, notes for people and files that programs look for need no reference."""
    assert lint("Read it.", [path]) == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [("since: 2024-05-01", "date"), ("shell: on", "True"), ("mode: 010", "8"), ("at: 1:30", "90")],
)
def test_yaml_1_1(tmp_path, field, value):
    """A field that YAML 1.1 reads differently is reported, because hosts compare fields with the listing."""
    (tmp_path / "review").mkdir()
    text = f"---\nname: review\ndescription: {DESCRIPTION}\n{field}\n---\nRead it."
    (tmp_path / "review" / "SKILL.md").write_text(text)

    (diagnostic,) = compile(tmp_path, lint=True).diagnostics

    assert (diagnostic.rule, diagnostic.location.line) == (Rule.SKILL_FIELDS, 4)
    assert value in diagnostic.message
