"""A client in the same process: what the server sends to any client of a revision, as values."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from weakref import finalize

import msgspec
from msgspec import Struct

from promptkit import compiler
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.completion import Completion
from promptkit.compiler.compilation import Target, sound
from promptkit.errors.suggestions import nearest
from promptkit.language.annotations import parse_scopes
from promptkit.language.documents import EmbeddedResource
from promptkit.language.messages import Workflow
from promptkit.protocol import wire
from promptkit.protocol.revisions import REVISIONS
from promptkit.server import Server
from promptkit.testing import received
from promptkit.testing.received import ProtocolError
from promptkit.testing.skills import ListedSkill, received_skill
from promptkit.types.unstructuring import json_of, text_of
from promptkit.version import VERSION


class ServerConnection:
    """
    What a client of one revision sends, and what it is sent, through every byte of the protocol.

    Args:
        catalog:
            What is served.

        revision:
            The revision of the protocol, by its date; the newest if None.

        answers:
            What the person at the client enters, by name; None for a client that shows no forms.

        name:
            How the client calls itself.

        tools:
            Whether the server offers prompts as tools.

        scopes:
            What the client may do.

    Raises:
        ValueError: If there is no such revision.
    """

    def __init__(  # noqa: PLR0913 (they are independent)
        self,
        catalog: Catalog,
        *,
        revision: str | None,
        answers: Mapping[str, Any] | None,
        name: str,
        tools: bool | Literal["search"],
        scopes: frozenset[str],
    ) -> None:
        self._revision = _revision(revision)
        self._answers = answers
        self._info = {"name": name, "version": VERSION}
        self._capabilities: dict[str, Any] = {} if answers is None else {"elicitation": {}}
        self._arrived: SimpleQueue[bytes] = SimpleQueue()
        self._sent: SimpleQueue[bytes] = SimpleQueue()
        self._server = Server(catalog, self._arrived.put, tools=tools, scopes=scopes)
        self._server.read_from(self._sent.get, bool)
        self._ids = count(1)
        self._lock = Lock()
        self._finalize = finalize(self, _close, self._server, self._sent)
        if not REVISIONS[self._revision].stateless:
            client = {"capabilities": self._capabilities, "clientInfo": self._info}
            self._exchange("initialize", {"protocolVersion": self._revision, **client})
            self._send({"method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """
        End what runs for it. Later requests raise RuntimeError; to close it again does nothing.
        """
        self._finalize()

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """
        Return the result of any request, as it was received.

        Args:
            method:
                The method, as in ``"prompts/get"``.

            params:
                Its params. What the revision wants said in every request is added.

        Raises:
            ProtocolError: If the request is answered with an error.
        """
        params = dict(params or {})
        result = self._exchange(method, params)
        while result.get("resultType") == "input_required":  # ask the person, and come back
            responses = {key: self._answer(asked["params"]) for key, asked in result["inputRequests"].items()}
            answered = {"inputResponses": responses, "requestState": result["requestState"]}
            result = self._exchange(method, {**params, **answered})
        return result

    def _exchange(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send one request, answer what the server asks meanwhile, and return the result."""
        if REVISIONS[self._revision].stateless:
            params = {**params, "_meta": {**self._meta(), **params.get("_meta", {})}}
        with self._lock:
            number = next(self._ids)
            self._send({"id": number, "method": method, "params": params})
            for message in self._messages():
                if message.get("method") == "elicitation/create":  # what it tells is left alone
                    self._send({"id": message["id"], "result": self._answer(message["params"])})
                elif message.get("id") == number:
                    break
        if "error" in message:
            raise ProtocolError(**message["error"])
        result: dict[str, Any] = message["result"]
        return result

    def _meta(self) -> dict[str, Any]:
        """Return what a client without a session says in every request."""
        return {
            wire.PROTOCOL_VERSION: self._revision,
            wire.CLIENT_INFO: self._info,
            wire.CLIENT_CAPABILITIES: self._capabilities,
        }

    def _messages(self) -> Iterator[dict[str, Any]]:
        while True:
            yield from map(msgspec.json.decode, self._arrived.get().splitlines())

    def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the person does with a form."""
        answers = self._answers or {}
        entered = {key: answers[key] for key in asked["requestedSchema"]["properties"] if key in answers}
        return {"action": "accept", "content": entered} if entered else {"action": "decline"}

    def _send(self, message: Mapping[str, Any]) -> None:
        if not self._finalize.alive:
            msg = "the client is closed: make another one"
            raise RuntimeError(msg)
        self._sent.put(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")


def _close(server: Server, sent: SimpleQueue[bytes]) -> None:
    sent.put(b"")
    server.close(0.0)


def _revision(date: str | None) -> str:
    """Return the date of a revision. Raises ValueError if there is none of that date."""
    if date is None:
        return list(REVISIONS)[-1]
    if date not in REVISIONS:
        near = nearest(date, REVISIONS)
        hint = f"; did you mean {near!r}?" if near else ""
        msg = f"there is no revision {date!r} of the protocol, only {', '.join(REVISIONS)}{hint}"
        raise ValueError(msg)
    return date


if TYPE_CHECKING:
    from promptkit.testing.skills import ReceivedSkill

T = TypeVar("T", bound=Struct)


class Client(ServerConnection):
    """
    A client of your prompts, in the same process: for tests, plain and asynchronous.

    Each request goes through every byte of the protocol, as if it came from a client of that revision,
    and returns once it is answered. What a prompt raises is printed on standard error, as where it is
    served. A client is closed when nobody holds it any more, or at the end of a ``with`` block.

    Args:
        target:
            A folder, a file, a module, or a `Catalog`; or one prompt or resource, or several.

        revision:
            The revision of the protocol, by its date; the newest if left out.

        answers:
            What the person at the client enters when a prompt asks for arguments that are missing, by
            name. A form of which nothing is answered is declined. None is a client that shows no forms.

        name:
            How the client calls itself.

        tools:
            Whether the server offers each prompt as a tool, too, as with ``serve --tools``; ``"search"``
            for ``serve --tools-search``.

        scopes:
            What the client may do: of what needs other scopes there is nothing for it.

    Raises:
        LoadError: If there is nothing at *target*.

        CompileError: If something there cannot be served. Of a `Catalog`, all else is served.

        ValueError: If there is no such revision, or a scope is not one.
    """

    def __init__(  # noqa: PLR0913 (each is an option of serve, too)
        self,
        target: Target,
        *,
        revision: str | None = None,
        answers: Mapping[str, Any] | None = None,
        name: str = "promptkit.testing",
        tools: bool | Literal["search"] = False,
        scopes: Iterable[str] = (),
    ) -> None:
        catalog = target if isinstance(target, Catalog) else sound(compiler.compile(target))
        super().__init__(
            catalog, revision=revision, answers=answers, name=name, tools=tools, scopes=parse_scopes(scopes)
        )

    def list_prompts(self) -> list[received.ListedPrompt]:
        """
        Return the prompts, as the list shows them: name, title, description, arguments, icons, meta.

        Raises:
            ProtocolError: If the server refuses.
        """
        return self._listed("prompts/list", "prompts", received.ListedPrompt)

    def list_resources(self) -> list[received.ListedResource]:
        """
        Return the resources that have one URI, as the list shows them.

        Raises:
            ProtocolError: If the server refuses, as it does where there are none and the revision is
                older than 2026-07-28.
        """
        return self._listed("resources/list", "resources", received.ListedResource)

    def list_resource_templates(self) -> list[received.ListedResourceTemplate]:
        """
        Return the families of resources, as the list shows them.

        Raises:
            ProtocolError: As for `list_resources`.
        """
        return self._listed("resources/templates/list", "resourceTemplates", received.ListedResourceTemplate)

    def get_prompt(self, name: str, arguments: Mapping[str, Any] | None = None) -> Workflow:
        """
        Return the messages that a client receives for a prompt.

        Args:
            name:
                The prompt.

            arguments:
                Values by parameter name. Text is sent as it is, another value as the text that stands
                for it; what is None is left out.

        Returns:
            What has arrived: an older revision may have other content for what the prompt said.

        Raises:
            ProtocolError: If there is no such prompt, the arguments do not fit, or the prompt fails.

            TypeError: If a value is of a type that cannot be written.
        """
        sent = {key: text_of(value) for key, value in (arguments or {}).items() if value is not None}
        return received.workflow_of(self.request("prompts/get", {"name": name, "arguments": sent}))

    def list_tools(self) -> list[received.ListedTool]:
        """
        Return the tools, as the list shows them; none unless the client was made with *tools*.

        Raises:
            ProtocolError: If the server refuses.
        """
        return self._listed("tools/list", "tools", received.ListedTool)

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> received.CalledTool:
        """
        Return what a client receives for a call of a tool.

        Args:
            name:
                The tool, which is called as its prompt is.

            arguments:
                Values by parameter name. They are sent as JSON: numbers as numbers, None as null.

        Returns:
            The content, and whether it says what was wrong: of the arguments, or in the prompt.

        Raises:
            ProtocolError: If there is no such tool, or the call itself is refused.

            TypeError: If a value is of a type that cannot be written.
        """
        sent = {key: json_of(value) for key, value in (arguments or {}).items()}
        return received.called_tool_of(self.request("tools/call", {"name": name, "arguments": sent}))

    def read_resource(self, uri: str) -> EmbeddedResource:
        """
        Return what a client receives that reads *uri*.

        Raises:
            ProtocolError: If there is nothing, or it cannot be read.
        """
        return received.document_of(self.request("resources/read", {"uri": uri})["contents"][0])

    def list_skills(self) -> "list[ListedSkill]":
        """
        Return the skills, as the list shows them: frontmatter, and the digests of their files.

        Raises:
            ProtocolError: If the server refuses, as it does where there are none.
        """
        return self._listed("skills/list", "skills", ListedSkill)

    def get_skill(self, name: str) -> "ListedSkill":
        """
        Return what the server says of a skill.

        Args:
            name:
                Its name, or the URI of its ``SKILL.md``.

        Raises:
            ProtocolError: If there is no such skill.
        """
        if ":" not in name:  # no skill's name has one
            named = (skill.uri for skill in self.list_skills() if skill.name == name)
            name = next(named, f"skill://{name}/SKILL.md")
        return msgspec.convert(self.request("skills/get", {"uri": name})["skill"], ListedSkill)

    def read_skill(self, name: str) -> "ReceivedSkill":
        """
        Read a skill with all of its files, and verify each as a host has to.

        Args:
            name:
                Its name, or the URI of its ``SKILL.md``.

        Returns:
            What its files hold, by their paths, and the text of ``SKILL.md``.

        Raises:
            SkillMismatchError: If a size, a digest, the frontmatter or the name is not what the server says.

            ProtocolError: If there is no such skill.
        """
        return received_skill(self.get_skill(name), self.read_resource)

    def complete(
        self, name: str, argument: str, typed: str = "", chosen: Mapping[str, str] | None = None
    ) -> Completion:
        """
        Return what is offered while someone types the value of an argument.

        Args:
            name:
                The prompt, or the URI template of a resource.

            argument:
                The argument, or the variable of the template.

            typed:
                What was typed so far.

            chosen:
                The arguments that were chosen before, by name.

        Returns:
            The best matches as ``values``, how many match as ``total``, and whether ``has_more``.

        Raises:
            ProtocolError: If there is no such prompt, template or argument.
        """
        is_template = ":" in name  # no prompt's name has one
        ref = {"type": "ref/resource", "uri": name} if is_template else {"type": "ref/prompt", "name": name}
        params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": typed}}
        if chosen:
            params["context"] = {"arguments": dict(chosen)}
        found = self.request("completion/complete", params)["completion"]
        return Completion(tuple(found["values"]), found["total"], found["hasMore"])

    def _listed(self, method: str, key: str, kind: type[T]) -> list[T]:
        found: list[T] = []
        page: dict[str, Any] = {"nextCursor": None}
        while "nextCursor" in page:
            cursor = page["nextCursor"]
            page = self.request(method, {} if cursor is None else {"cursor": cursor})
            found += msgspec.convert(page[key], list[kind])  # type: ignore[valid-type]
        return found
