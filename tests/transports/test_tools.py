"""Tools as the command line serves them: with a start-up cache, from a built set, and over HTTP."""

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
def folder(recipes, monkeypatch):
    """A recipe in a folder that may be written."""
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        monkeypatch.delenv(name, raising=False)
    return recipes(doubles=RECIPE)


def serve(folder, *options, messages=()):
    """The replies of a server that has read these messages, by id."""
    command = [sys.executable, "-m", "promptkit", "serve", str(folder), *options]
    sent = b"".join(map(line, messages))
    ran = subprocess.run(command, input=sent, capture_output=True, timeout=30, check=True)
    assert ran.stderr == b""
    return {found.get("id"): found for found in map(json.loads, ran.stdout.splitlines())}


def sets(folder):
    """The files of the start-up cache."""
    return list(folder.glob("__pycache__/*.compiled"))


SESSION = [
    initialize("2025-11-25"),
    notification("notifications/initialized"),
    request(1, "tools/list"),
    modern(2, "tools/list"),
    request(3, "tools/call", CALL),
    modern(4, "tools/call", CALL),
]


class TestStdio:
    def test_they_are_told_early(self, folder):
        """
        The second start lists tools from the cache what the first has listed, and calls them.
        """
        starts = [serve(folder, "--tools", messages=SESSION) for _ in range(2)]

        assert starts[0] == starts[1]
        assert len(sets(folder)) == 1
        assert starts[0][0]["result"]["capabilities"]["tools"] == {"listChanged": True}
        assert [tool["name"] for tool in starts[1][1]["result"]["tools"]] == ["double"]
        assert [starts[1][number]["result"]["content"][0]["text"] for number in (3, 4)] == ["8", "8"]

    def test_each_way_of_serving_has_a_cache_of_its_own(self, folder):
        """
        With tools, with search, and without: the lists of one are never told in another.
        """
        every = {options: serve(folder, *options, messages=SESSION) for options in ((), ("--tools",))}
        every["--tools-search",] = serve(folder, "--tools-search", messages=SESSION)
        again = {options: serve(folder, *options, messages=SESSION) for options in every}

        assert again == every
        assert len(sets(folder)) == 3
        listed = {
            options: [tool["name"] for tool in found[1]["result"]["tools"]]
            for options, found in every.items()
        }
        assert listed == {
            (): [],
            ("--tools",): ["double"],
            ("--tools-search",): ["find_prompts", "get_prompt"],
        }
        assert every[()][3]["error"]["code"] == -32601
        assert "tools" not in every[()][0]["result"]["capabilities"]

    def test_a_prompt_is_got_before_all_is_imported(self, folder):
        """
        From a cache, a search waits for all recipes, and getting a prompt for its own.
        """
        find = {"name": "find_prompts", "arguments": {"query": "double"}}
        asked = [initialize("2025-11-25"), request(1, "tools/call", GOT), request(2, "tools/call", find)]
        serve(folder, "--tools-search", messages=asked)

        replies = serve(folder, "--tools-search", messages=asked)

        assert replies[1]["result"]["content"][0]["text"] == "8"
        found = json.loads(replies[2]["result"]["content"][0]["text"])
        assert [one["name"] for one in found["prompts"]] == ["double"]

    def test_a_built_set(self, folder, tmp_path):
        """
        What was built with tools is served with them, and not without.
        """
        built = tmp_path / "built"
        command = [sys.executable, "-m", "promptkit", "build", str(folder), "--tools", "--out", str(built)]
        subprocess.run(command, check=True, timeout=30, capture_output=True)
        served = serve(folder, "--tools", "--compiled", str(built), messages=SESSION)
        other = [sys.executable, "-m", "promptkit", "serve", str(folder), "--compiled", str(built)]
        refused = subprocess.run(other, input=b"", capture_output=True, timeout=30, check=True)

        assert [tool["name"] for tool in served[1]["result"]["tools"]] == ["double"]
        assert b"--tools" in refused.stderr


class TestHttp:
    @pytest.mark.parametrize("tools", [True, "search"])
    def test_an_application(self, folder, tools):
        """
        `app` has the option, too.
        """
        params = CALL if tools is True else GOT
        answer = answer_to(app(folder, tools=tools, watch=False), modern(1, "tools/call", params))

        assert (answer.status, answer.json["result"]["content"]) == (200, [{"type": "text", "text": "8"}])
