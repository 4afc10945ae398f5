import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from promptkit.declarations.skill_frontmatter import FrontmatterError, check_fields, format_skill, read_skill

#: Text that YAML can encode: no lone surrogates.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)

#: Texts that YAML parsers read differently or that need quotes.
TRICKY = st.sampled_from(
    [
        *("yes", "no", "on", "null", "~", "1e3", "0x1f", "010", "1:30", "2026-01-31", ".nan", "- a", "a: b"),
        *("# a", "'", '"', "\n", "a\n---\nb", "*a", "&a", "!a", "%a", "@a", "`a", "{a}", "[a]", "true", "NO"),
        *(" a", "a "),
    ]
)


@given(st.dictionaries(TEXT | TRICKY, TEXT | TRICKY), TEXT | TRICKY)
def test_written_fields_are_read_back(metadata, description):
    """Written frontmatter is read back unchanged by our YAML 1.2 parser and by a YAML 1.1 parser."""
    fields = {"name": "a-skill", "description": description, "metadata": metadata}

    data = format_skill({key: value for key, value in fields.items() if value}, "The text.")

    parsed, body, _ = read_skill(data)
    assert parsed == {key: value for key, value in fields.items() if value}
    assert body == "\nThe text.\n"
    frontmatter = data.decode().split("---\n", 2)[1] if "---\n" not in description else None
    if frontmatter is not None and all("---\n" not in text for pair in metadata.items() for text in pair):
        assert yaml.safe_load(frontmatter) == parsed


def test_values_are_quoted_only_if_needed():
    """Values are quoted only where YAML would read them as something other than text."""
    fields = {"name": "review", "description": "Review a change. Use it often.", "license": "MIT"}
    fields["metadata"] = {"version": "1.0", "on": "yes"}

    assert format_skill(fields, "Do it.").decode() == (
        "---\n"
        "name: review\n"
        "description: Review a change. Use it often.\n"
        "license: MIT\n"
        "metadata:\n"
        '  version: "1.0"\n'
        '  "on": "yes"\n'
        "---\n\nDo it.\n"
    )


def skill(frontmatter):
    """Return a ``SKILL.md`` with this frontmatter."""
    return f"---\n{frontmatter}\n---\nDo it.\n".encode()


@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b"\xff", "SKILL.md is not UTF-8 at byte 1", 1),
        (b"\xef\xbb\xbf---\nname: a\n---\n", "a byte order mark", 1),
        (b"", "has no frontmatter", 1),
        (b"# Title\n", "has no frontmatter", 1),
        (b"---\nname: a\n", "is not closed", 1),
        (b"---", "is not closed", 1),
        (b"---\r\n" + b"a: b\r\n" * 1000, "is not closed", 1),
        (skill("- a\n- b"), "must be a mapping, but it is a list", 1),
        (skill("just text"), "must be a mapping, but it is a str ('just text')", 1),
        (skill(""), "must be a mapping, but it is None", 1),
        (skill("name: [a"), "not YAML that JSON can represent", 3),
        (skill("name: a\nname: b"), "not YAML that JSON can represent", 3),
        (skill("name: a\ndescription: a: b"), "not YAML that JSON can represent", 3),
        (skill("name: !!python/object:os.system a"), "has a tag", 2),
        (skill("name: !own a"), "has a tag", 2),
        (skill("a: &x 1\nb: *x"), "has an anchor, 'x'", 2),
        (skill("1: a"), "a key or a number that JSON cannot represent", 1),
        (skill("a: .nan"), "a key or a number that JSON cannot represent", 1),
        (skill("a: " + "[" * 5000 + "]" * 5000), "deep nesting", 2),
        (skill("a: " + "[" * 30_000), "deep nesting", 2),
        (skill("a: " + "{a: " * 10_000), "deep nesting", 2),
        (skill("<<: {a: 1}"), "a merge", 2),
        (skill("%YAML 1.9\n--- \na: 1"), "not YAML that JSON can represent: version", 1),
        (skill("- #\n%YAML 9.9\n? a"), "not YAML that JSON can represent", 1),
        (skill("a: " + "x" * 70_000), "70,004 characters", 1),
    ],
)
def test_unreadable_frontmatter_is_rejected(data, message, line):
    """Unreadable frontmatter raises an error with its line and a hint; no YAML tag is constructed."""
    with pytest.raises(FrontmatterError, match=r".*") as caught:
        read_skill(data)

    assert message in str(caught.value)
    assert caught.value.hint
    assert caught.value.line == line


def test_an_alias_bomb_is_rejected():
    """An alias bomb is rejected before it is expanded."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]

    with pytest.raises(FrontmatterError, match="an anchor"):
        read_skill(skill("\n".join(lines)))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_values_have_json_types(newline):
    """Values have JSON types, so a date stays text; unknown fields are kept."""
    frontmatter = "name: a\ndate: 2026-01-31\nown:\n  deep: [1, 2.5, true, null, x]"
    text = f"---\n{frontmatter}\n---\n# Title\n".replace("\n", newline)

    fields, body, line = read_skill(text.encode())

    assert fields == {"name": "a", "date": "2026-01-31", "own": {"deep": [1, 2.5, True, None, "x"]}}
    assert json.loads(json.dumps(fields)) == fields
    assert (body, line) == (f"# Title{newline}", 6)


GOOD = {"name": "a-skill", "description": "Review a change."}


@pytest.mark.parametrize(
    "fields",
    [
        GOOD,
        {**GOOD, "license": "MIT", "compatibility": "Needs git", "allowed-tools": "Read Grep"},
        {**GOOD, "metadata": {"version": "1"}, "own": [1, {"a": None}]},
        {**GOOD, "description": "x" * 1024},
    ],
)
def test_valid_fields_have_no_errors(fields):
    """Valid fields produce no errors."""
    assert list(check_fields(fields, "a-skill")) == []


@pytest.mark.parametrize(
    ("change", "expected_field", "part"),
    [
        ({"name": "A Skill"}, "name", "call it 'a-skill'"),
        ({"name": "a--skill"}, "name", "call it 'a-skill'"),
        ({"name": "-a"}, "name", "call it 'a'"),
        ({"name": "x" * 65}, "name", "call it"),
        ({"name": "ä"}, "name", "call it 'skill'"),
        ({"name": None}, "name", "call it 'a-skill', like its folder"),
        ({"name": 7}, "name", "call it '7'"),
        ({"name": "another"}, "name", "give both the same name"),
        ({"description": ""}, "description", "what the skill does"),
        ({"description": None}, "description", "what the skill does"),
        ({"description": "x" * 1025}, "description", "shorten it"),
        ({"license": 1}, "license", "write text"),
        ({"compatibility": "x" * 501}, "compatibility", "shorten it"),
        ({"allowed-tools": ["Read", 1]}, "allowed-tools", "write text"),
        ({"metadata": "x"}, "metadata", "key: value"),
    ],
)
def test_invalid_fields_are_reported(change, expected_field, part):
    """Each error names its field and comes with a hint."""
    (problem,) = check_fields({**GOOD, **change}, "a-skill")

    assert problem.key == expected_field
    assert part in problem.hint
