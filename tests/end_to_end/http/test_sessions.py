"""
Sessions of the handshake era over HTTP, with the official Python client and real workers.

The server asks on the stream of the request that waits, and sends notifications on the stream of the session.
"""

import json
import sys
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, types

from tests.clients.nginx import list_servers, nginx
from tests.http_server import http_server

RECIPE = '''
from pathlib import Path
from typing import Literal

from promptkit import prompt, resource

FILE = Path(__file__).with_name("state.txt")

@prompt
def release(version: str, copies: int, length: Literal["short", "long"], subject: str = "all of it"):
    return f"{version} {copies} {length} {subject}"

@resource("text://state", watch=FILE)
def state() -> str:
    """A file that changes."""
    return FILE.read_text()
'''

TIMEOUT_S = 30

WORKERS = pytest.mark.parametrize(
    "workers",
    [1, pytest.param(3, marks=pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork"))],
)


@pytest.fixture
def recipes(tmp_path):
    """A folder with a prompt, and a resource that changes."""
    folder = tmp_path / "recipes"
    folder.mkdir()
    (folder / "release.py").write_text(RECIPE)
    (folder / "state.txt").write_text("one")
    return folder


@asynccontextmanager
async def session(url, answers=(), received=None):
    """Connect the official client. It answers forms with *answers*, and adds message types to *received*."""
    forms = iter(answers)

    async def answer(_context, _form):
        return types.ElicitResult(**next(forms))

    async def keep(message):
        if received is not None:
            received.append(type(message).__name__)

    async with Client(url, mode="legacy", elicitation_callback=answer, message_handler=keep) as client:
        with anyio.fail_after(TIMEOUT_S):
            yield client


async def wait_for(condition):
    """Wait until a condition holds."""
    with anyio.fail_after(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 (files and messages set no event)
            await anyio.sleep(0.02)


def accept(**content):
    """Return an answer to a form."""
    return {"action": "accept", "content": content}


@WORKERS
def test_forms_are_answered(recipes, workers):
    """A form is answered by another request, which can reach another worker."""
    count = 8

    async def run(url):
        answers = [accept(version=f"v {number}", copies=number, length="long") for number in range(count)]
        texts = []
        async with session(url, answers) as client:
            for _ in range(count):
                result = await client.get_prompt("release", {})
                texts.append(result.messages[0].content.text)
        return texts

    with http_server(recipes, "--workers", str(workers)) as url:
        assert anyio.run(run, url) == [f"v {number} {number} long all of it" for number in range(count)]


@WORKERS
def test_the_answer_can_reach_any_worker(recipes, workers):
    """Answers in raw requests reach the worker that asked, and other callers cannot send them."""
    with http_server(recipes, "--workers", str(workers)) as url, httpx2.Client(timeout=TIMEOUT_S) as http:
        mine, other = (open_session(http, url) for _ in range(2))
        for number in range(6):
            asking = {
                "jsonrpc": "2.0",
                "id": 7,
                "method": "prompts/get",
                "params": {"name": "release", "arguments": {"copies": "3"}},
            }
            with http.stream("POST", url, json=asking, headers=mine) as response:
                events = read_events(response)
                question = next(events)
                content = accept(version="x", length="long")
                answer = {"jsonrpc": "2.0", "id": question["id"], "result": content}
                wrong = {**answer, "result": accept(version="wrong", length="short")}
                statuses = [
                    http.post(url, json=message, headers={**headers, "connection": "close"}).status_code
                    for message, headers in [(wrong, other), (answer, mine)]
                ]
                reply = next(events)

            assert statuses == [202, 202], number
            assert next(iter(question["params"]["requestedSchema"]["properties"])) == "version"
            assert reply["id"] == 7
            assert reply["result"]["messages"][0]["content"]["text"] == "x 3 long all of it"


def ask(http, url, headers):
    """Request a prompt, answer its form, and return the rendered text."""
    asking = {"jsonrpc": "2.0", "id": 7, "method": "prompts/get", "params": {"name": "release"}}
    with http.stream("POST", url, json=asking, headers=headers) as response:
        events = read_events(response)
        content = accept(version="x", copies=3, length="long")
        http.post(url, json={"jsonrpc": "2.0", "id": next(events)["id"], "result": content}, headers=headers)
        return next(events)["result"]["messages"][0]["content"]["text"]


@pytest.mark.skipif(sys.platform == "win32", reason="nginx is a program of Unix here")
def test_replicas_with_affinity(recipes, tmp_path):
    """Behind a proxy that sends the requests of a session to one replica, forms are answered."""
    keys = {"PROMPTKIT_STATE_KEYS": "a2" * 32}
    folder = tmp_path / "nginx"
    folder.mkdir()
    with (
        http_server(recipes, **keys) as first,
        http_server(recipes, **keys) as second,
        nginx(folder, [first, second], affinity=True) as url,
        httpx2.Client(timeout=TIMEOUT_S) as http,
    ):
        texts = {ask(http, url, headers) for headers in (open_session(http, url) for _ in range(12))}

    assert texts == {"x 3 long all of it"}
    assert len(list_servers(folder)) == 2


def test_an_answer_that_reaches_another_replica(recipes, capfd):
    """An answer that reaches another replica is dropped, and the server logs a hint."""
    keys = {"PROMPTKIT_STATE_KEYS": "a2" * 32}
    with (
        http_server(recipes, **keys) as first,
        http_server(recipes, **keys) as second,
        httpx2.Client(timeout=TIMEOUT_S) as http,
    ):
        headers = open_session(http, first)
        asking = {"jsonrpc": "2.0", "id": 7, "method": "prompts/get", "params": {"name": "release"}}
        with http.stream("POST", first, json=asking, headers=headers) as response:
            answer = {"jsonrpc": "2.0", "id": next(read_events(response))["id"], "result": accept()}
            assert http.post(second, json=answer, headers=headers).status_code == 202

    assert "route all requests of a session to one replica" in capfd.readouterr().err


def test_declined_form_is_the_ordinary_error(recipes):
    """A declined form makes the request fail with the same error as without forms."""

    async def run(url):
        async with session(url, [{"action": "decline"}]) as client:
            with pytest.raises(MCPError) as failure:
                await client.get_prompt("release", {})
        return failure.value.error

    with http_server(recipes) as url:
        error = anyio.run(run, url)
    assert error.code == types.INVALID_PARAMS
    assert {each["argument"] for each in error.data["errors"]} == {"version", "copies", "length"}


@pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed")
@WORKERS
def test_notifications_on_the_stream_of_the_session(recipes, workers):
    """Changes of lists and of subscribed resources arrive, whichever worker has received the subscription."""
    received = []

    async def run(url):
        async with session(url, received=received) as client:
            await client.subscribe_resource("text://state")
            (recipes / "state.txt").write_text("two")
            await wait_for(lambda: "ResourceUpdatedNotification" in received)
            (recipes / "more.py").write_text(
                "from promptkit import prompt\n@prompt\ndef more(): return 'more'\n"
            )
            await wait_for(lambda: "PromptListChangedNotification" in received)
            await client.unsubscribe_resource("text://state")
            received.clear()
            (recipes / "state.txt").write_text("three")
            await anyio.sleep(1.5)

    with http_server(recipes, "--workers", str(workers)) as url:
        anyio.run(run, url)
    assert "ResourceUpdatedNotification" not in received


def test_a_restarted_server_keeps_the_session(recipes, tmp_path):
    """After a restart, the same session opens its stream and is notified of changes."""
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with httpx2.Client(timeout=TIMEOUT_S) as http:
        with http_server(recipes, **environment) as url:
            headers = open_session(http, url)
        with http_server(recipes, **environment) as url, http.stream("GET", url, headers=headers) as stream:
            lines = stream.iter_lines()
            assert (stream.status_code, next(lines)) == (200, ":")
            (recipes / "more.py").write_text(
                "from promptkit import prompt\n@prompt\ndef more(): return 'more'\n"
            )
            changed = next(json.loads(line[6:]) for line in lines if line.startswith("data: "))
            assert changed["method"] == "notifications/prompts/list_changed"


def test_a_new_stream_replaces_the_old_one(recipes):
    """Each session has one stream, so a second one ends the first."""
    with http_server(recipes) as url, httpx2.Client(timeout=TIMEOUT_S) as http:
        headers = open_session(http, url)
        with http.stream("GET", url, headers=headers) as first:
            lines = first.iter_lines()
            next(lines)
            with httpx2.stream("GET", url, headers=headers, timeout=TIMEOUT_S) as second:
                assert next(second.iter_lines()) == ":"
                assert list(lines) == [""]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"accept": "text/event-stream"}, 405),
        ({"accept": "text/event-stream", "mcp-session-id": "unknown"}, 404),
        ({"accept": "application/json", "mcp-session-id": "unknown"}, 406),
    ],
)
def test_streams_need_a_session(recipes, headers, status):
    """A stream is rejected without a session id, with an unknown one, or with another `Accept` header."""
    with http_server(recipes) as url:
        assert httpx2.get(url, headers=headers, timeout=TIMEOUT_S).status_code == status


def open_session(http, url):
    """Open a session of a client with forms, and return the headers of its requests."""
    accepting = {"accept": "application/json, text/event-stream"}
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "tests", "version": "1"},
    }
    opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    response = http.post(url, json=opening, headers=accepting)
    return {
        **accepting,
        "mcp-session-id": response.headers["mcp-session-id"],
        "mcp-protocol-version": "2025-11-25",
    }


def read_events(response):
    """Yield the messages on a stream of events."""
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))
