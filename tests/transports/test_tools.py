"""Tools as the command line serves them, and over HTTP."""

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
GOT = {"name": "get_prompt", "arguments": CALL}


@pytest.fixture
def folder(recipes):
    """A folder with one recipe."""
    return recipes(doubles=RECIPE)


def serve(folder, *options, messages=()):
    """The replies of a server that has read these messages, by id."""
    command = [sys.executable, "-m", "promptkit", "serve", str(folder), *options]
    sent = b"".join(map(line, messages))
    ran = subprocess.run(command, input=sent, capture_output=True, timeout=30, check=True)
    assert ran.stderr == b""
    return {found.get("id"): found for found in map(json.loads, ran.stdout.splitlines())}


SESSION = [
    initialize("2025-11-25"),
    notification("notifications/initialized"),
    request(1, "tools/list"),
    modern(2, "tools/list"),
    request(3, "tools/call", CALL),
    modern(4, "tools/call", CALL),
]


class TestStdio:
    def test_each_way_of_serving(self, folder):
        """
        With tools, with search, and without: each lists its own tools, and calls them.
        """
        every = {
            option: serve(folder, *option.split(), messages=SESSION)
            for option in ("", "--tools", "--tools-search")
        }

        listed = {
            option: [tool["name"] for tool in found[1]["result"]["tools"]] for option, found in every.items()
        }
        assert listed == {
            "": [],
            "--tools": ["double"],
            "--tools-search": ["find_prompts", "get_prompt"],
        }
        assert every["--tools"][0]["result"]["capabilities"]["tools"] == {"listChanged": True}
        called = [every["--tools"][number]["result"]["content"][0]["text"] for number in (3, 4)]
        assert called == ["8", "8"]
        assert every[""][3]["error"]["code"] == -32601
        assert "tools" not in every[""][0]["result"]["capabilities"]

    def test_a_search(self, folder):
        """
        A search finds prompts, and gets one.
        """
        find = {"name": "find_prompts", "arguments": {"query": "double"}}
        asked = [initialize("2025-11-25"), request(1, "tools/call", GOT), request(2, "tools/call", find)]

        replies = serve(folder, "--tools-search", messages=asked)

        assert replies[1]["result"]["content"][0]["text"] == "8"
        found = json.loads(replies[2]["result"]["content"][0]["text"])
        assert [one["name"] for one in found["prompts"]] == ["double"]


class TestHttp:
    @pytest.mark.parametrize("tools", [True, "search"])
    def test_an_application(self, folder, tools):
        """
        `app` has the option, too.
        """
        params = CALL if tools is True else GOT
        answer = answer_to(app(folder, tools=tools, watch=False), modern(1, "tools/call", params))

        assert (answer.status, answer.json["result"]["content"]) == (200, [{"type": "text", "text": "8"}])
