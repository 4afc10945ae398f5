"""A driver for the official Python client."""

import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.subscriptions import event_to_notification
from pydantic import BaseModel

#: Timeouts for the whole script and for one call, in seconds.
RUNNING = 50
PATIENCE = 10


def run(server: list[str] | str, folder: Path, mode: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """
    Return the revision, the server's identity, the outcome of each call, and the client's complaints.

    Args:
        server:
            The command that starts the server, or its URL.

        folder:
            The server's recipes.

        mode:
            ``legacy``, ``auto`` or a revision, as the client accepts it.

        calls:
            The calls of the script.
    """
    return anyio.run(_run, server, folder, mode, calls)


async def _run(server, folder, mode, calls):
    script = _Script(folder)
    if isinstance(server, list):
        server = StdioServerParameters(command=server[0], args=server[1:])
    client = Client(
        server,
        mode=mode,
        elicitation_callback=script.answer_elicitation,
        message_handler=script.handle_message,
    )
    with script.sender, script.notifications, anyio.fail_after(RUNNING):
        async with client:
            outcomes = [await script.carry_out(client, call) for call in calls]
            revision = client.protocol_version
            info = client.server_info  # None if the client is told the revision
            server = info and {**_plain(info), "instructions": client.instructions}
    return {"revision": revision, "server": server, "outcomes": outcomes, "complaints": script.complaints}


class _Script:
    def __init__(self, folder):
        self.folder = folder
        self.asked = []
        self.answer = {}
        self.complaints = []
        self.sender, self.notifications = anyio.create_memory_object_stream(100)

    async def answer_elicitation(self, _context, params):
        self.asked.append(_plain(params))
        return types.ElicitResult(**self.answer)

    async def handle_message(self, message):
        if isinstance(message, Exception):
            self.complaints.append(str(message))
        else:
            await self.sender.send(message)

    async def carry_out(self, client, call):
        self.asked = []
        self.answer = call.get("answer", {})
        try:
            with anyio.fail_after(PATIENCE):
                outcome = await self.make_call(client, call)
        except MCPError as error:
            outcome = {"error": {"code": error.code, "message": error.message}}
        except TimeoutError:
            outcome = {"error": f"no response within {PATIENCE} seconds"}
        except Exception as error:  # noqa: BLE001 (later steps must still run)
            outcome = {"error": repr(error)}
        return {**outcome, "asked": self.asked} if self.asked else outcome

    async def make_call(self, client, call):
        if "pages" in call:
            return {"pages": [page async for page in _pages(client, call["pages"])]}
        if "cancel" in call:
            return await self.cancel(client, call)
        if "watch" in call:
            return await self.watch(client, call)
        return {"result": _plain(await _ask(client, **call))}

    async def cancel(self, client, call):
        cancelled = []

        async def begin():
            try:
                await _ask(client, **call["cancel"])
            except anyio.get_cancelled_exc_class():
                cancelled.append(call["cancel"])
                raise

        async with anyio.create_task_group() as group:
            group.start_soon(begin)
            result = await _ask(client, **call["once"])
            group.cancel_scope.cancel()
        return {"cancelled": bool(cancelled), "result": _plain(result)}

    async def watch(self, client, call):
        if client.protocol_version == "2026-07-28":
            return await self.listen(client, call)
        if call["uri"]:
            await _ask(client, "resources/subscribe", {"uri": call["uri"]})
        self.write(**call["write"])
        params = await self.wait(call["watch"])
        if call["uri"]:
            await _ask(client, "resources/unsubscribe", {"uri": call["uri"]})
        return {"told": params}

    async def listen(self, client, call):
        uris = [call["uri"]] if call["uri"] else []
        async with client.listen(prompts_list_changed=not uris, resource_subscriptions=uris) as subscription:
            self.write(**call["write"])
            event = await anext(subscription)
            notification = _plain(event_to_notification(event, {}))
        return {"honored": _plain(subscription.honored), "told": notification["params"]}

    async def wait(self, method):
        while True:
            notification = await self.notifications.receive()
            if notification.method == method:
                return _plain(notification).get("params", {})

    def write(self, path, text):
        (self.folder / path).write_text(text, encoding="utf-8")


async def _ask(client, request, params, **_):
    if request in _METHODS:
        return await _METHODS[request](client, **params)
    return await client.session.send_request(types.Request(method=request, params=params), types.Result)


async def _complete(client, ref, argument, context=None):
    kinds = {"ref/prompt": types.PromptReference, "ref/resource": types.ResourceTemplateReference}
    return await client.complete(kinds[ref["type"]](**ref), argument, (context or {}).get("arguments"))


async def _subscribe(client, uri):
    with _ignore_deprecations():
        return await client.subscribe_resource(uri)


async def _unsubscribe(client, uri):
    with _ignore_deprecations():
        return await client.unsubscribe_resource(uri)


@contextmanager
def _ignore_deprecations():
    """Ignore the client's warning that the newest revision lacks a method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        yield


#: The client's method for each protocol method.
_METHODS = {
    "prompts/get": Client.get_prompt,
    "prompts/list": Client.list_prompts,
    "tools/list": Client.list_tools,
    "tools/call": Client.call_tool,
    "resources/list": Client.list_resources,
    "resources/templates/list": Client.list_resource_templates,
    "resources/read": Client.read_resource,
    "resources/subscribe": _subscribe,
    "resources/unsubscribe": _unsubscribe,
    "completion/complete": _complete,
}


async def _pages(client, method):
    cursor = None
    while True:
        page = _plain(await _ask(client, method, {"cursor": cursor}))
        cursor = page.pop("nextCursor", None)
        yield page
        if cursor is None:
            return


def _plain(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)
