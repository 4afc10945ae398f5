"""
Calls, and what comes of them: the words in which the script is written.

A call is plain JSON, which a driver of any language carries out:

- ``{"request": method, "params": {...}}`` asks once. With ``"answer"`` it also says what the
  person answers who is asked for something meanwhile.
- ``{"pages": method}`` lists, from the first page to the last.
- ``{"cancel": {"request": ...}, "once": {"request": ...}}`` begins a request, and takes it back
  once another one is answered.
- ``{"watch": notification, "uri": ..., "write": {"path": ..., "text": ...}}`` subscribes, writes
  a file into the folder of recipes, and waits until it is told.

So is what comes of it: ``result``, ``error`` (its code and message), ``asked`` (what the person
was asked), ``pages``, ``cancelled``, or ``told`` and ``honored`` (what the server will tell).
"""

from typing import Any, Final

import attrs

#: How many items a page holds where the script is carried out.
PAGE_SIZE: Final = 5

#: What a result bears for clients and not for people.
ENVELOPE: Final = frozenset({"_meta", "resultType", "ttlMs", "cacheScope"})


@attrs.frozen
class Step:
    """
    One call of the script, and its claim.

    Args:
        claim:
            What is shown, in plain words.

        call:
            What to do.

        expected:
            What comes of it.

        modern:
            What comes of it in 2026-07-28, if that is something else.

        alone:
            Whether it may be the only call: it needs nothing of what came before, and no person.

        session:
            Whether a client with a handshake needs a server that keeps its session, and may ask and tell it
            things. Over HTTP no session is kept.
    """

    claim: str
    call: dict[str, Any]
    expected: dict[str, Any]
    modern: dict[str, Any] | None = None
    alone: bool = True
    session: bool = False

    def expected_in(self, revision: str) -> dict[str, Any]:
        """Return what comes of it in *revision*."""
        return self.modern if self.modern is not None and revision == "2026-07-28" else self.expected


def request(method: str, **params: Any) -> dict[str, Any]:
    """Return the call that asks once."""
    return {"request": method, "params": params}


def get(name: str, **arguments: str) -> dict[str, Any]:
    """Return the call that gets a prompt."""
    return request("prompts/get", name=name, arguments=arguments)


def complete(ref: dict[str, str], name: str, value: str, **chosen: str) -> dict[str, Any]:
    """Return the call that completes one argument; others may have been *chosen* before."""
    context = {"context": {"arguments": chosen}} if chosen else {}
    return request("completion/complete", ref=ref, argument={"name": name, "value": value}, **context)


def watch(notification: str, path: str, text: str, uri: str | None = None) -> dict[str, Any]:
    """Return the call that writes a file and waits for the notification."""
    return {"watch": notification, "uri": uri, "write": {"path": path, "text": text}}


def refused(code: int, message: str) -> dict[str, Any]:
    """Return what comes of a call that is refused."""
    return {"error": {"code": code, "message": message}}


def messages(description: str, *contents: dict[str, Any], roles: str = "user") -> dict[str, Any]:
    """Return what comes of getting a prompt: a block of content for each of *roles*."""
    turns = [
        {"role": role, "content": content} for role, content in zip(roles.split(), contents, strict=True)
    ]
    return {"result": {"description": description, "messages": turns}}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return the call that calls a tool."""
    return request("tools/call", name=name, arguments=arguments)


def content(*blocks: dict[str, Any]) -> dict[str, Any]:
    """Return what comes of calling a tool."""
    return {"result": {"content": list(blocks)}}


def fault(message: str) -> dict[str, Any]:
    """Return what comes of calling a tool that says what is wrong."""
    return {"result": {"content": [text(message)], "isError": True}}


def tool(prompt: dict[str, Any], **properties: dict[str, Any]) -> dict[str, Any]:
    """Return how a prompt is listed as a tool, by how it is listed, and the schemas of its arguments."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
    }
    if required := [one["name"] for one in prompt.get("arguments", ()) if one["required"]]:
        schema["required"] = required
    hints = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
    listed = {key: value for key, value in prompt.items() if key != "arguments"}
    return {**listed, "inputSchema": schema, "annotations": hints}


def text(text: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": text}


def completion(*values: str) -> dict[str, Any]:
    """Return what comes of a completion that offers all of *values*."""
    return {"result": {"completion": {"values": list(values), "total": len(values), "hasMore": False}}}


def listed(name: str, description: str, *arguments: dict[str, Any], **more: str) -> dict[str, Any]:
    """Return how a prompt is listed; one without arguments does not mention them."""
    return {
        "name": name,
        "description": description,
        **more,
        **({"arguments": list(arguments)} if arguments else {}),
    }


def argument(name: str, description: str, *, required: bool = False) -> dict[str, Any]:
    """Return how an argument is listed."""
    return {"name": name, "description": description, "required": required}


def pages(key: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what comes of a list, page by page."""
    starts = range(0, len(items), PAGE_SIZE)
    return {"pages": [{key: items[start : start + PAGE_SIZE]} for start in starts]}


def told(steps: list[Step], outcomes: list[Any]) -> dict[str, Any]:
    """Return what came of each of *steps*, by its claim."""
    return {step.claim: plain(outcome) for step, outcome in zip(steps, outcomes, strict=True)}


def expected_of(steps: list[Step], revision: str) -> dict[str, Any]:
    """Return what has to come of each of *steps* in *revision*, by its claim."""
    return {step.claim: step.expected_in(revision) for step in steps}


def plain(outcome: Any) -> Any:
    """Return *outcome* without what a revision wraps it in, and without what says that nothing is wrong."""
    if isinstance(outcome, dict):
        kept = {key: value for key, value in outcome.items() if key not in ENVELOPE}
        return {key: plain(value) for key, value in kept.items() if (key, value) != ("isError", False)}
    return [plain(item) for item in outcome] if isinstance(outcome, list) else outcome
