"""
Calls and their outcomes: the vocabulary of the script.

A call is plain JSON, which a driver in any language can make:

- ``{"request": method, "params": {...}}`` sends one request. ``"answer"``, if present, is the
  user's answer to an elicitation in the meantime.
- ``{"pages": method}`` lists all pages.
- ``{"cancel": {"request": ...}, "once": {"request": ...}}`` starts a request, and cancels it
  when the other request has been answered.
- ``{"watch": notification, "uri": ..., "write": {"path": ..., "text": ...}}`` subscribes, writes
  a file into the folder of recipes, and waits for the notification.

An outcome is plain JSON as well: ``result``, ``error`` (with code and message), ``asked`` (the
elicitations), ``pages``, ``cancelled``, or ``told`` and ``honored`` (the notification, and the
subscriptions that the server accepted).
"""

from typing import Any, Final

import attrs

#: Page size of the servers that run the script.
PAGE_SIZE: Final = 5

#: The fields of a result that are part of the protocol, not of the content.
ENVELOPE: Final = frozenset({"_meta", "resultType", "ttlMs", "cacheScope"})


@attrs.frozen
class Step:
    """
    One call of the script, and its claim.

    Args:
        claim:
            What the step shows, in plain words.

        call:
            The call.

        expected:
            The expected outcome.

        modern:
            The expected outcome in 2026-07-28, if it differs.

        alone:
            Whether the call works in isolation: it depends on no earlier call, and on no answer of the user.

        session:
            Whether the call, after a handshake, needs a session with one server, which sends requests or
            notifications to the client.
    """

    claim: str
    call: dict[str, Any]
    expected: dict[str, Any]
    modern: dict[str, Any] | None = None
    alone: bool = True
    session: bool = False

    def expected_in(self, revision: str) -> dict[str, Any]:
        """Return the expected outcome in *revision*."""
        return self.modern if self.modern is not None and revision == "2026-07-28" else self.expected


def request(method: str, **params: Any) -> dict[str, Any]:
    """Return the call that sends one request."""
    return {"request": method, "params": params}


def get(name: str, **arguments: str) -> dict[str, Any]:
    """Return the call that gets a prompt."""
    return request("prompts/get", name=name, arguments=arguments)


def complete(ref: dict[str, str], name: str, value: str, **chosen: str) -> dict[str, Any]:
    """Return the call that completes one argument; *chosen* has the values of other arguments."""
    context = {"context": {"arguments": chosen}} if chosen else {}
    return request("completion/complete", ref=ref, argument={"name": name, "value": value}, **context)


def watch(notification: str, path: str, text: str, uri: str | None = None) -> dict[str, Any]:
    """Return the call that writes a file and waits for the notification."""
    return {"watch": notification, "uri": uri, "write": {"path": path, "text": text}}


def rejection(code: int, message: str) -> dict[str, Any]:
    """Return the outcome of a rejected call."""
    return {"error": {"code": code, "message": message}}


def messages(description: str, *contents: dict[str, Any], roles: str = "user") -> dict[str, Any]:
    """Return the outcome of getting a prompt: one message for each of *roles*, with one of *contents*."""
    turns = [
        {"role": role, "content": content} for role, content in zip(roles.split(), contents, strict=True)
    ]
    return {"result": {"description": description, "messages": turns}}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return the call that calls a tool."""
    return request("tools/call", name=name, arguments=arguments)


def content(*blocks: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of a tool call."""
    return {"result": {"content": list(blocks)}}


def tool_error(message: str) -> dict[str, Any]:
    """Return the outcome of a tool call that reports an error."""
    return {"result": {"content": [text(message)], "isError": True}}


def tool(prompt: dict[str, Any], **properties: dict[str, Any]) -> dict[str, Any]:
    """Return a prompt's entry in the list of tools, given its prompt entry and its arguments' schemas."""
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required := [argument["name"] for argument in prompt.get("arguments", ()) if argument["required"]]:
        schema["required"] = required
    hints = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
    entry = {key: value for key, value in prompt.items() if key != "arguments"}
    return {**entry, "inputSchema": schema, "annotations": hints}


def text(text: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": text}


def completion(*values: str) -> dict[str, Any]:
    """Return the outcome of a completion that offers all of *values*."""
    return {"result": {"completion": {"values": list(values), "total": len(values), "hasMore": False}}}


def list_entry(name: str, description: str, *arguments: dict[str, Any], **more: str) -> dict[str, Any]:
    """Return the list entry of a prompt; an entry without arguments has no key for arguments."""
    return {
        "name": name,
        "description": description,
        **more,
        **({"arguments": list(arguments)} if arguments else {}),
    }


def argument(name: str, description: str, *, required: bool = False) -> dict[str, Any]:
    """Return the list entry of an argument."""
    return {"name": name, "description": description, "required": required}


def pages(key: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the outcome of listing all pages."""
    starts = range(0, len(items), PAGE_SIZE)
    return {"pages": [{key: items[start : start + PAGE_SIZE]} for start in starts]}


def collect_outcomes(steps: list[Step], outcomes: list[Any]) -> dict[str, Any]:
    """Return the outcome of each of *steps*, by claim, without the fields of the protocol."""
    return {step.claim: strip_envelope(outcome) for step, outcome in zip(steps, outcomes, strict=True)}


def expected_outcomes(steps: list[Step], revision: str) -> dict[str, Any]:
    """Return the expected outcome of each of *steps* in *revision*, by claim."""
    return {step.claim: step.expected_in(revision) for step in steps}


def strip_envelope(outcome: Any) -> Any:
    """Return *outcome* without the fields of the protocol, and without ``"isError": false``."""
    if isinstance(outcome, dict):
        fields = {key: value for key, value in outcome.items() if key not in ENVELOPE}
        return {
            key: strip_envelope(value) for key, value in fields.items() if (key, value) != ("isError", False)
        }
    return [strip_envelope(item) for item in outcome] if isinstance(outcome, list) else outcome
