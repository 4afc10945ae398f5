"""Skills as tools and as prompts, for clients without the skills extension."""

import json

import pytest

from promptkit import prompt, skill
from promptkit.compiler.compilation import compile
from tests.wire import REVISIONS, Client

FILES = {"references/steps.md": "1. Tag.", "logo.png": b"\x89PNG\r\n\x1a\n", "empty.txt": ""}


@skill(files=FILES)
def ship():
    """Release a version. Use it when the user wants to tag or publish."""
    return "Read references/steps.md, logo.png and empty.txt."


@skill
def review():
    """Review code. Use it before a commit."""
    return "Review $ARGUMENTS."


@skill(scopes=["team"])
def secret():
    """Publish secrets. Use it when the team asks."""
    return "Hush."


@prompt
def hello() -> str:
    return "hello"


CATALOG = compile([ship, review, secret, hello])
BOTH = frozenset(("tools", "prompts"))


@pytest.fixture(params=REVISIONS)
def client(request):
    """A client of each revision, of a server that offers skills as tools and prompts."""
    return Client(CATALOG, request.param, skills_as=BOTH)


def call(client, tool, /, **arguments):
    """Return the content of the result of a tool, and whether it is an error."""
    result = client.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
    return result["content"], result.get("isError", False)


def text_of(client, tool, /, **arguments):
    """Return the only text of a tool's result."""
    ((content,), is_error) = call(client, tool, **arguments)
    assert not is_error
    return content["text"]


def test_tools(client):
    """There are two tools. The description of `read_skill` lists the skills that the caller can see."""
    find, read = client.ask("tools/list", {})["result"]["tools"]

    assert (find["name"], read["name"]) == ("find_skills", "read_skill")
    assert read["description"].splitlines()[1:] == [
        "- review: Review code. Use it before a commit.",
        "- ship: Release a version. Use it when the user wants to tag or publish.",
    ]


def test_find(client):
    """The best matches come first, with their files; without words, all skills match."""
    found = json.loads(text_of(client, "find_skills", query="publish a version"))

    assert found["found"] == 1
    assert found["skills"][0]["name"] == "ship"
    assert found["skills"][0]["files"] == ["SKILL.md", "empty.txt", "logo.png", "references/steps.md"]
    assert json.loads(text_of(client, "find_skills", query=" "))["found"] == 2
    assert json.loads(text_of(client, "find_skills", query="bake"))["skills"] == []


def test_read(client):
    """A skill can be read with its frontmatter, and so can each of its files; binary files are embedded."""
    assert text_of(client, "read_skill", name="ship").startswith("---\nname: ship\n")
    assert text_of(client, "read_skill", name="ship", file="references/steps.md") == "1. Tag."
    assert text_of(client, "read_skill", name="ship", file="empty.txt") == "(This file is empty.)"
    ((content,), _) = call(client, "read_skill", name="ship", file="logo.png")
    assert content["resource"] == {
        "uri": "skill://ship/logo.png",
        "mimeType": "image/png",
        "blob": "iVBORw0KGgo=",
    }


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"name": "shp"}, "there is no skill 'shp'; did you mean 'ship'?"),
        ({"name": "secret"}, "there is no skill 'secret'"),
        ({"name": "ship", "file": "steps.md"}, "has no file 'steps.md'"),
        ({}, "name"),
    ],
)
def test_errors_reach_the_model(client, arguments, part):
    """A model can correct a wrong name or path. A skill that the caller cannot see does not exist."""
    ((content,), is_error) = call(client, "read_skill", **arguments)

    assert is_error
    assert part in content["text"]


def test_prompts(client):
    """Each skill is a prompt, with the task as an optional argument."""
    listed = {each["name"]: each for each in client.ask("prompts/list", {})["result"]["prompts"]}

    def render(name, **arguments):
        params = {"name": name, "arguments": arguments}
        (message,) = client.ask("prompts/get", params)["result"]["messages"]
        return message["content"]["text"]

    assert list(listed) == ["hello", "review", "ship"]
    assert [each["name"] for each in listed["ship"]["arguments"]] == ["task"]
    assert render("ship", task="2.0") == (
        "Read references/steps.md, logo.png and empty.txt.\n\n"
        "Other files of the skill 'ship', to ask for when you need them: "
        "empty.txt, logo.png, references/steps.md\n\n"
        "Task: 2.0"
    )
    assert render("review", task="x.py") == "Review x.py."
    assert render("review") == "Review ."


@pytest.mark.parametrize(
    ("options", "tools", "prompts"),
    [
        ({}, [], ["hello", "review"]),
        ({"skills_as": frozenset({"tools"})}, ["find_skills", "read_skill"], ["hello", "review"]),
        ({"skills_as": frozenset({"prompts"})}, [], ["hello", "review", "ship"]),
        ({"tools": True}, ["hello"], ["hello", "review"]),
        (
            {"tools": True, "skills_as": BOTH},
            ["hello", "find_skills", "read_skill"],
            ["hello", "review", "ship"],
        ),
        (
            {"tools": "search", "skills_as": BOTH},
            ["find_prompts", "get_prompt", "find_skills", "read_skill"],
            ["hello", "review", "ship"],
        ),
    ],
)
def test_forms(options, tools, prompts):
    """Skills are tools or prompts only with the option, but a skill with $ARGUMENTS is always a prompt."""
    client = Client(CATALOG, **options)

    assert [each["name"] for each in client.ask("tools/list", {})["result"]["tools"]] == tools
    assert [each["name"] for each in client.ask("prompts/list", {})["result"]["prompts"]] == prompts


def test_without_skills():
    """Without skills, there are no tools for skills."""
    client = Client(compile([hello]), skills_as=BOTH)
    assert client.ask("tools/list", {})["result"]["tools"] == []


def test_tool_precedes_a_prompt_of_its_name():
    """A prompt with the tool's name does not hide the tool."""

    @prompt(name="read_skill")
    def other() -> str:
        return "other"

    client = Client(compile([ship, other]), tools=True, skills_as=BOTH)

    assert [each["name"] for each in client.ask("tools/list", {})["result"]["tools"]].count("read_skill") == 1
    assert text_of(client, "read_skill", name="ship").startswith("---")


@pytest.mark.parametrize(("count", "length"), [(3, 1000), (20, 400), (60, 100), (400, 100)])
def test_description_has_at_most_2048_characters(count, length):
    """Descriptions of skills are shortened, then omitted; the other tool finds skills that do not fit."""
    skills = [
        skill(name=f"skill-number-{number}", description="x" * length)(lambda: "x") for number in range(count)
    ]
    client = Client(compile(skills), skills_as=BOTH)

    _, read = client.ask("tools/list", {})["result"]["tools"]

    assert len(read["description"]) <= 2048
    assert "- skill-number-0" in read["description"]
    assert ("find_skills returns them" in read["description"]) == (count == 400)


def test_skills_of_the_same_name():
    """Skills with the same name are distinguished by their prefixes."""
    first, second = (
        skill(name="ship", prefix=prefix, description=prefix)(lambda: "x") for prefix in ("acme", "beta")
    )
    client = Client(compile([first, second]), skills_as=BOTH)

    found = json.loads(text_of(client, "find_skills", query=""))["skills"]
    prompts = client.ask("prompts/list", {})["result"]["prompts"]

    assert [each["name"] for each in found] == ["ship", "beta/ship"]
    assert "description: beta" in text_of(client, "read_skill", name="beta/ship")
    assert [each["name"] for each in prompts] == ["beta-ship", "ship"]


@pytest.mark.parametrize(
    ("fields", "body", "is_prompt", "is_tool"),
    [
        ("", "Do it.", False, True),
        ("argument-hint: '[version]'", "Do it.", True, True),
        ("user-invocable: true", "Do it.", True, True),
        ("", "Do $ARGUMENTS.", True, True),
        ("user-invocable: false", "Do $ARGUMENTS.", False, True),
        ("disable-model-invocation: true", "Do it.", False, False),
    ],
)
def test_fields_of_claude_code(tmp_path, fields, body, is_prompt, is_tool):
    """A skill for users is a prompt as well, and a skill that models must not choose is not a tool."""
    (tmp_path / "ship").mkdir()
    text = f"---\nname: ship\ndescription: Ship it.\n{fields}\n---\n{body}\n"
    (tmp_path / "ship" / "SKILL.md").write_text(text)
    client = Client(compile(tmp_path), skills_as=frozenset({"tools"}))

    prompts = client.ask("prompts/list", {})["result"]["prompts"]

    assert [each["name"] for each in prompts] == ["ship"] * is_prompt
    assert bool(client.ask("tools/list", {})["result"]["tools"]) == is_tool
    if "argument-hint" in fields:
        assert prompts[0]["arguments"][0]["description"] == "[version]"


def test_long_description_is_served_but_not_listed(tmp_path):
    """Clients reject a list with a description above the limit, so the skill can be read only by its URI."""
    (tmp_path / "long").mkdir()
    (tmp_path / "long" / "SKILL.md").write_text(f"---\nname: long\ndescription: {'x' * 1025}\n---\nDo it.\n")
    client = Client(compile(tmp_path), "2026-07-28")

    assert client.ask("skills/list", {})["result"]["skills"] == []
    entry = client.ask("skills/get", {"uri": "skill://long/SKILL.md"})["result"]["skill"]
    assert len(entry["frontmatter"]["description"]) == 1025
