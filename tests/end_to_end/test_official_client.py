"""The recipes, as the official Python client receives them over stdio."""

import base64
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters

from promptkit import Audio, EmbeddedResource, Image, ResourceLink, Text
from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"
COMMAND = [sys.executable, "-m", "promptkit", "serve", str(RECIPES)]

DIFF = "--- a/greet.py\n+++ b/greet.py\n@@ -1 +1 @@\n-print('hi')\n+print('hello')\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "app.py", line 3, in <module>\nKeyError: "user"'

#: Realistic arguments for every recipe: strings, as the specification requires.
ARGUMENTS = {
    "analyze_code": {"code": "for i in range(9): f(i)", "aspect": "performance", "language": "python"},
    "analyze_project": {
        "question": "Why is a message lost?",
        "source": "code_review.py",
        "logs": "git_commit.py, _text.py",
    },
    "code_review": {"code": "fn main() {}", "language": "rust", "focus": "security", "intent": "do nothing"},
    "coordinate_models": {"task": "Translate the manual", "models": "gpt-5, sonnet-4", "merge": "relay"},
    "debug_error": {"error": TRACEBACK, "tried": "a restart", "screenshot": "PNG"},
    "decision_record": {"decision": "Dates are in UTC", "reasons": "They differed", "date": "2026-01-31"},
    "describe_screenshot": {"picture": "dialog.png", "use": "bug-report"},
    "explain_code": {"code": "lambda x: x", "reader": "Beginner"},
    "git_commit": {"diff": DIFF, "style": "plain", "issue": "#42", "body": "no"},
    "japanese_report": {"subject": "第1四半期の売上", "material": "売上 1,200万円", "reader": "customer"},
    "release_notes": {"version": "2.0", "changes": "Search in several folders", "words": "120"},
    "request_approval": {"change": "Drop the old table", "environment": "production", "diff": DIFF},
    "summarize_recording": {"recording": "chime.wav", "form": "minutes"},
    "tune_for_model": {"model": "opus-4.1", "task": "Compare the two offers", "material": "A: 10 €, B: 12 €"},
    "wall_bounce": {"question": "Is P = NP?", "models": "gemini-2.5-pro, gpt-5, opus-4.1", "words": "120"},
}


@pytest.fixture(autouse=True)
def sample_project(monkeypatch):
    """A screenshot to send, and a project to analyse."""
    picture = (RECIPES / "samples" / "dialog.png").read_bytes()
    monkeypatch.setitem(ARGUMENTS["debug_error"], "screenshot", base64.b64encode(picture).decode())
    monkeypatch.setenv("PROJECT_ROOT", str(RECIPES))


def session(work):
    """Run *work* with the official client, in its handshake mode, on a server of the recipes."""

    async def connect():
        server = StdioServerParameters(
            command=COMMAND[0],
            args=COMMAND[1:],
            env={"PROJECT_ROOT": str(RECIPES)},
        )
        async with Client(server, mode="legacy") as client:
            return await work(client)

    return anyio.run(connect)


def convert_content(content):
    """Convert a content block of the official client to promptkit's type."""
    if content.type == "text":
        return Text(content.text)
    if content.type == "image":
        return Image(base64.b64decode(content.data), content.mime_type)
    if content.type == "audio":
        return Audio(base64.b64decode(content.data), content.mime_type)
    if content.type == "resource_link":
        details = {"title": content.title, "description": content.description, "size": content.size}
        return ResourceLink(content.uri, name=content.name, mime_type=content.mime_type, **details)
    resource = content.resource
    blob = getattr(resource, "blob", None)
    return EmbeddedResource(
        str(resource.uri),
        text=getattr(resource, "text", None),
        blob=None if blob is None else base64.b64decode(blob),
        mime_type=resource.mime_type,
    )


def test_every_recipe_is_listed_with_its_arguments():
    """The client gets every recipe, its description, and its arguments in the order of the signature."""

    async def list_prompts(client):
        return (await client.list_prompts()).prompts

    catalog = compile(load(RECIPES))
    expected = [
        (
            prompt.name,
            prompt.description,
            [(a.name, a.description, a.required) for a in prompt.arguments.ordered],
        )
        for prompt in catalog.prompts
    ]
    received = [
        (prompt.name, prompt.description, [(a.name, a.description, a.required) for a in prompt.arguments])
        for prompt in session(list_prompts)
    ]

    assert received == expected
    assert list(catalog) == sorted(ARGUMENTS)


def test_recipes_arrive_unchanged():
    """Every message of every recipe arrives with its role and its whole content."""

    async def get_prompts(client):
        return {name: await client.get_prompt(name, arguments) for name, arguments in ARGUMENTS.items()}

    catalog = compile(load(RECIPES))
    kinds = set()
    for name, result in session(get_prompts).items():
        composed = catalog.render(name, ARGUMENTS[name])
        kinds |= {type(message.content) for message in composed}

        assert result.description == catalog[name].description
        assert [(m.role, convert_content(m.content)) for m in result.messages] == [
            (message.role, message.content) for message in composed.sent
        ]

    assert kinds == {Text, Image, Audio, EmbeddedResource}


def test_turns_arrive_in_order():
    """A conversation keeps its roles and its order."""

    async def get_prompt(client):
        return await client.get_prompt("debug_error", {"error": "boom"})

    assert [message.role for message in session(get_prompt).messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("name", "arguments", "data"),
    [
        pytest.param(
            "code_reveiw", {}, {"name": "code_reveiw", "nearest": "code_review"}, id="unknown-prompt"
        ),
        pytest.param(
            "code_review",
            {"langage": "rust", "focus": "speed"},
            {
                "name": "code_review",
                "errors": [
                    {
                        "argument": "langage",
                        "reason": "is not an argument of this prompt",
                        "expected": "one of code, language, focus, intent",
                        "nearest": "language",
                    },
                    {
                        "argument": "focus",
                        "reason": "is 'speed', not one of everything, correctness, security, performance, "
                        "readability",
                        "expected": "one of everything, correctness, security, performance, readability",
                        "got": "speed",
                        "allowed": ["everything", "correctness", "security", "performance", "readability"],
                    },
                    {"argument": "code", "reason": "is missing", "expected": "text"},
                ],
            },
            id="arguments",
        ),
    ],
)
def test_error_lists_all_problems(name, arguments, data):
    """An unknown name, or invalid arguments, lead to -32602 with all errors in the data."""

    async def get_error(client):
        with pytest.raises(MCPError) as error:
            await client.get_prompt(name, arguments)
        return error.value.error

    error = session(get_error)

    assert (error.code, error.data) == (-32602, data)


def test_modern_client():
    """A client in automatic mode discovers the newest revision, and opens no session."""

    async def connect():
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "promptkit", "serve", str(RECIPES)]
        )
        async with Client(server, mode="auto") as client:
            return client.protocol_version, len((await client.list_prompts()).prompts)

    assert anyio.run(connect) == ("2026-07-28", len(ARGUMENTS))


def test_server_exits_with_the_client():
    """The server exits immediately with code 0 when the client disconnects."""
    completed = subprocess.run(
        [sys.executable, "-m", "promptkit", "serve", RECIPES],
        input=b"",
        capture_output=True,
        timeout=20,
        check=False,
    )

    assert (completed.returncode, completed.stdout, completed.stderr) == (0, b"", b"")
