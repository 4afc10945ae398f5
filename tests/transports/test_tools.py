"""Prompts as tools, over stdio and HTTP."""

import json
import subprocess
import sys

import pytest

from promptkit.asgi import app
from tests.posting import answer_to
from tests.wire import initialize, line, modern, notification, request

RECIPE = '''
from promptkit import prompt

@prompt
def double(n: int):
    """Double a number."""
    return str(2 * n)

@prompt(tool=False)
def hidden():
    return "For people."
'''
CALL = {"name": "double", "arguments": {"n": 4}}
SEARCH_CALL = {"name": "get_prompt", "arguments": CALL}


@pytest.fixture
def folder(recipes):
    """A folder with one recipe."""
    return recipes(doubles=RECIPE)


def serve(folder, *options, messages=()):
    """Return the replies of a server to *messages*, by id."""
    command = [sys.executable, "-m", "promptkit", "serve", str(folder), *options]
    stdin = b"".join(map(line, messages))
    completed = subprocess.run(command, input=stdin, capture_output=True, timeout=30, check=True)
    assert completed.stderr == b""
    return {reply.get("id"): reply for reply in map(json.loads, completed.stdout.splitlines())}


SESSION = [
    initialize("2025-11-25"),
    notification("notifications/initialized"),
    request(1, "tools/list"),
    modern(2, "tools/list"),
    request(3, "tools/call", CALL),
    modern(4, "tools/call", CALL),
]


class TestStdio:
    def test_tools_of_each_option(self, folder):
        """For each value of the option, the server lists and calls the matching tools."""
        sessions = {
            option: serve(folder, *option.split(), messages=SESSION)
            for option in ("", "--tools", "--tools-search")
        }

        names = {
            option: [tool["name"] for tool in replies[1]["result"]["tools"]]
            for option, replies in sessions.items()
        }
        assert names == {
            "": [],
            "--tools": ["double"],
            "--tools-search": ["find_prompts", "get_prompt"],
        }
        assert sessions["--tools"][0]["result"]["capabilities"]["tools"] == {"listChanged": True}
        texts = [sessions["--tools"][number]["result"]["content"][0]["text"] for number in (3, 4)]
        assert texts == ["8", "8"]
        assert sessions[""][3]["error"]["code"] == -32601
        assert "tools" not in sessions[""][0]["result"]["capabilities"]

    def test_search_and_get(self, folder):
        """The search tool finds a prompt, and the other tool renders it."""
        search = {"name": "find_prompts", "arguments": {"query": "double"}}
        messages = [
            initialize("2025-11-25"),
            request(1, "tools/call", SEARCH_CALL),
            request(2, "tools/call", search),
        ]

        replies = serve(folder, "--tools-search", messages=messages)

        assert replies[1]["result"]["content"][0]["text"] == "8"
        matches = json.loads(replies[2]["result"]["content"][0]["text"])
        assert [match["name"] for match in matches["prompts"]] == ["double"]


class TestHttp:
    @pytest.mark.parametrize("tools", [True, "search"])
    def test_application_has_the_tools_option(self, folder, tools):
        """`app` accepts `tools=True` and `tools="search"`."""
        params = CALL if tools is True else SEARCH_CALL
        answer = answer_to(app(folder, tools=tools, watch=False), modern(1, "tools/call", params))

        assert (answer.status, answer.json["result"]["content"]) == (200, [{"type": "text", "text": "8"}])
