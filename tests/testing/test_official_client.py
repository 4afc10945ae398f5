"""`promptkit.testing.Client` compared with the official Python client, whose server is a separate process."""

import sys
from functools import cache
from pathlib import Path

import anyio
import mcp.client.session
import msgspec
import pytest
from mcp import Client as OfficialClient
from mcp import StdioServerParameters, types
from msgspec.structs import asdict

from promptkit import Image
from promptkit.testing import Client, ProtocolError
from tests.end_to_end.test_official_client import ARGUMENTS, RECIPES, convert_content
from tests.wire import HANDSHAKES, REVISIONS

EVERY_REVISION = pytest.mark.parametrize("revision", REVISIONS)
KINDS = Path(__file__).parents[1] / "clients" / "recipes"

#: A prompt that elicits text, a number and a choice.
ASKING = """
from typing import Literal
from promptkit import prompt

@prompt(elicit=True)
def release(version: str, copies: int, length: Literal["short", "long"], subject: str = "all of it"):
    return f"{version} {copies} {length} {subject}"
"""


def reference(ref):
    """Return the reference of a completion as the official client's type."""
    kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
    return kind(**ref)


#: The official client's call for each method.
METHODS = {
    "prompts/list": lambda client, _: client.list_prompts(),
    "prompts/get": lambda client, params: client.get_prompt(params["name"], params["arguments"]),
    "resources/list": lambda client, _: client.list_resources(),
    "resources/templates/list": lambda client, _: client.list_resource_templates(),
    "resources/read": lambda client, params: client.read_resource(params["uri"]),
    "completion/complete": lambda client, params: client.complete(
        reference(params["ref"]), params["argument"], params.get("context", {}).get("arguments")
    ),
}


def receive_officially(folder, revision, calls, monkeypatch, users=()):
    """
    Return the result or error that the official client receives for each call from a server of *folder*.

    All calls are made once for each of *users*, whose answers fill in forms. Without users, all calls are
    made once, by a client that does not support forms.
    """
    monkeypatch.setattr(mcp.client.session, "LATEST_HANDSHAKE_VERSION", revision)
    monkeypatch.setenv("PROJECT_ROOT", str(RECIPES))
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "promptkit", "serve", "--no-watch", str(folder)],
        env={"PROJECT_ROOT": str(RECIPES)},
    )

    answers = {}

    async def answer_form(_context, form):
        content = {name: answers[name] for name in form.requested_schema["properties"] if name in answers}
        return types.ElicitResult(action="accept" if content else "decline", content=content or None)

    async def attempt(client, method, params):
        try:
            return await METHODS[method](client, params)
        except mcp.MCPError as error:
            return error

    async def run_calls():
        mode = "legacy" if revision in HANDSHAKES else revision
        outcomes = []
        async with OfficialClient(
            server, mode=mode, elicitation_callback=answer_form if users else None
        ) as client:
            assert client.protocol_version == revision
            for user_answers in users or ({},):
                answers.clear()
                answers.update(user_answers)
                outcomes += [await attempt(client, *call) for call in calls]
        return outcomes

    return anyio.run(run_calls)


def as_json(result):
    """
    Return the full outcome of a call as JSON: the result with its ``_meta``, or the error with code and data.
    """
    if isinstance(result, mcp.MCPError | ProtocolError):
        error = result.error if isinstance(result, mcp.MCPError) else result
        return {"error": (error.code, error.message, error.data)}
    return (
        result
        if isinstance(result, dict)
        else result.model_dump(mode="json", by_alias=True, exclude_unset=True)
    )


def request(client, method, params):
    """Return the result or error that our client receives."""
    try:
        return client.request(method, params)
    except ProtocolError as error:
        return error


def get_call(name, arguments=None):
    """Return the call that gets a prompt."""
    return "prompts/get", {"name": name, "arguments": arguments or {}}


def read_call(uri):
    """Return the call that reads a resource."""
    return "resources/read", {"uri": uri}


def complete_call(name, argument, typed="", **chosen):
    """Return the call that completes an argument of a prompt, or a variable of a template."""
    ref = {"type": "ref/resource", "uri": name} if ":" in name else {"type": "ref/prompt", "name": name}
    context = {"context": {"arguments": chosen}} if chosen else {}
    return "completion/complete", {"ref": ref, "argument": {"name": argument, "value": typed}, **context}


LISTS = [(method, {}) for method in ("prompts/list", "resources/list", "resources/templates/list")]
BOOK = "shelf://books/{title}"

CALLS = {
    "recipes": (
        RECIPES,
        [
            *LISTS,
            *(get_call(name, arguments) for name, arguments in ARGUMENTS.items()),
            get_call("code_reveiw"),
            get_call("code_review", {"language": "klingon"}),
            read_call("project:///code_review.py"),
            read_call("project:///../secret"),
            complete_call("tune_for_model", "model", "op"),
            complete_call("describe_screenshot", "picture", "d"),
        ],
    ),
    "kinds": (
        KINDS,
        [
            *LISTS,
            *map(get_call, ("text", "image", "audio", "embedded_text", "embedded_blob", "link", "turns")),
            get_call("typed", {"count": "3", "language": "rust"}),
            get_call("typed", {"count": "many"}),
            read_call("shelf://notice"),
            read_call("shelf://cover"),
            read_call("shelf://books/Emma%20%26%20others"),
            read_call("shelf://nothing"),
            complete_call("typed", "language"),
            complete_call("typed", "model", "", language="rust"),
            complete_call(BOOK, "title", "e"),
            complete_call(BOOK, "titel"),
            complete_call("nobody", "title"),
        ],
    ),
}


@pytest.fixture(scope="module")
def received_by_official():
    """A function that returns what the official client receives for all calls of a folder, cached."""
    picture = Image.from_path(RECIPES / "samples/dialog.png")

    @cache
    def received_for(name, revision):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(ARGUMENTS["debug_error"], "screenshot", picture.base64)
            return receive_officially(CALLS[name][0], revision, CALLS[name][1], patch)

    return received_for


@pytest.mark.parametrize("name", CALLS)
@EVERY_REVISION
def test_both_clients_receive_the_same(name, revision, received_by_official, monkeypatch):
    """
    For every recipe and every revision, both clients receive the same lists, messages, resources, completions
    and errors, including their ``_meta``.
    """
    picture = Image.from_path(RECIPES / "samples/dialog.png")
    monkeypatch.setitem(ARGUMENTS["debug_error"], "screenshot", picture.base64)
    monkeypatch.setenv("PROJECT_ROOT", str(RECIPES))
    folder, calls = CALLS[name]
    client = Client(str(folder), revision=revision)

    for call, expected in zip(calls, received_by_official(name, revision), strict=True):
        assert as_json(request(client, *call)) == as_json(expected), call


def as_data(item):
    """
    Return an item of a list from either client with the same names, and without unset values.
    """
    values = item.model_dump() if hasattr(item, "model_dump") else msgspec.to_builtins(asdict(item))
    return without_empty(values)


def without_empty(value):
    """Return a value without fields that are None or empty, at any depth."""
    if isinstance(value, dict):
        named = {"meta" if key == "_meta" else key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in named.items() if item not in (None, [], {})}
    return [without_empty(item) for item in value] if isinstance(value, list | tuple) else value


@EVERY_REVISION
def test_both_clients_return_the_same_values(revision, received_by_official):
    """Our methods return the same values as the official client's, attribute by attribute."""
    names = ["text", "image", "audio", "embedded_text", "embedded_blob", "link", "turns"]
    all_calls = CALLS["kinds"][1]
    results = received_by_official("kinds", revision)
    calls = [
        *LISTS,
        read_call("shelf://notice"),
        read_call("shelf://cover"),
        complete_call(BOOK, "title", "e"),
    ]
    prompts, resources, templates, notice, cover, expected_completion, *rendered = (
        results[all_calls.index(call)] for call in (*calls, *map(get_call, names))
    )
    client = Client(str(KINDS), revision=revision)

    assert list(map(as_data, client.list_prompts())) == list(map(as_data, prompts.prompts))
    assert list(map(as_data, client.list_resources())) == list(map(as_data, resources.resources))
    assert list(map(as_data, client.list_resource_templates())) == list(
        map(as_data, templates.resource_templates)
    )
    for uri, expected in (("shelf://notice", notice), ("shelf://cover", cover)):
        (contents,) = expected.contents
        assert client.read_resource(uri) == convert_content(types.EmbeddedResource(resource=contents))
    completion = client.complete(BOOK, "title", "e")
    assert list(completion.values) == expected_completion.completion.values == ["Emma", "Erewhon", "Dune"]
    assert (completion.total, completion.has_more) == (
        expected_completion.completion.total,
        expected_completion.completion.has_more,
    )
    for name, result in zip(names, rendered, strict=True):
        assert [(message.role, message.content) for message in client.get_prompt(name)] == [
            (message.role, convert_content(message.content)) for message in result.messages
        ]


#: A user's answers to the form of ``release``: complete, none, partial, or invalid.
ANSWERS = {
    "all": {"version": "1.0", "copies": 3, "length": "short"},
    "more than is asked": {"version": "1.0", "copies": 3, "length": "short", "subject": "x", "other": 1},
    "declined": {},
    "a part": {"version": "1.0"},
    "no number": {"version": "1.0", "copies": "many", "length": "short"},
    "text for a number": {"version": "1.0", "copies": "3", "length": "short"},
    "no choice": {"version": "1.0", "copies": 3, "length": "endless"},
    "a list": {"version": ["1.0"], "copies": 3, "length": "short"},
    "empty text": {"version": "", "copies": 3, "length": "short"},
}


#: The sufficient answers: text may be empty, and a number may be text, as elsewhere.
COMPLETE = {"all", "more than is asked", "text for a number", "empty text"}


@EVERY_REVISION
def test_forms_are_answered_the_same(revision, recipes, monkeypatch):
    """Both clients get the same prompt, or the same error, for any answers."""
    folder = recipes(release=ASKING)
    calls = [
        get_call("release"),
        get_call("release", {"version": "2.0"}),
        get_call("release", {"copies": "many"}),
    ]

    expected = receive_officially(folder, revision, calls, monkeypatch, ANSWERS.values())
    by_answer = dict(zip(ANSWERS, zip(*[iter(expected)] * len(calls), strict=True), strict=True))

    for name, answers in ANSWERS.items():
        client = Client(str(folder), revision=revision, answers=answers)
        outcomes = [as_json(request(client, *call)) for call in calls]
        assert outcomes == list(map(as_json, by_answer[name])), name
        assert ("messages" in outcomes[0]) == (revision >= "2025-06-18" and name in COMPLETE), name


@pytest.mark.parametrize("revision", REVISIONS[-2:])
def test_missing_arguments_without_forms(revision, recipes, monkeypatch):
    """Without forms, our client gets the same error for missing arguments as the official one."""
    folder = recipes(release=ASKING)

    (expected,) = receive_officially(folder, revision, [get_call("release")], monkeypatch)

    assert as_json(request(Client(str(folder), revision=revision), *get_call("release"))) == as_json(expected)
