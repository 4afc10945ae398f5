"""An in-process client that speaks any revision of the protocol and returns decoded values."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from types import ModuleType
from typing import Any, Literal, Self, TypeVar, cast
from urllib.parse import unquote
from weakref import finalize

import msgspec
from msgspec import Struct

from promptkit import compiler
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.completion import Completion
from promptkit.catalog.skill_access import SkillForm
from promptkit.catalog.skills import SKILL_FILE
from promptkit.compiler.compilation import Target, require_complete
from promptkit.declarations.skill_frontmatter import FrontmatterError, read_skill
from promptkit.errors.exceptions import PromptkitError
from promptkit.language.annotations import parse_scopes
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource
from promptkit.language.messages import Message, Workflow
from promptkit.protocol import wire
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.revisions import REVISIONS
from promptkit.server import Server
from promptkit.server.identity import UNKNOWN, find_server_info
from promptkit.types.content import content_of
from promptkit.types.unstructuring import json_of, text_of
from promptkit.version import VERSION

T = TypeVar("T", bound=Struct)


class ProtocolError(PromptkitError):
    """
    The response to a request is an error.

    Args:
        code:
            The error code: -32602 for an unknown name, invalid arguments or a `PromptError`; -32603 if
            rendering failed.

        message:
            The message for the user.

        data:
            Machine-readable details; None if there are none.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return self.message


class CalledTool(Struct, frozen=True):
    """
    The result of a tool call.

    Args:
        content:
            One block per part. If there are several turns, each turn starts with a text block such as
            ``[assistant]``.

        is_error:
            Whether the content is an error message.
    """

    content: tuple[Content, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text of all blocks, with a blank line between blocks."""
        return "\n\n".join("\n".join(content.texts) for content in self.content)


class ReceivedSkill(Struct, frozen=True):
    """
    A skill with its files, verified against the listing.

    Args:
        listed:
            The listing of the skill.

        text:
            The Markdown of ``SKILL.md`` after the frontmatter.

        files:
            The contents of its files, by their paths in the skill.
    """

    listed: wire.SkillEntry
    text: str
    files: Mapping[str, bytes]


class SkillMismatchError(PromptkitError):
    """The files of a skill differ from its listing, so a host must reject the skill."""


class Client:
    """
    An in-process client of your prompts, for synchronous and asynchronous tests.

    Each request is encoded and decoded like a request from a client of the same revision, and the method
    returns the decoded reply. Tracebacks of failing prompts go to standard error, as when serving. A client
    is closed by garbage collection, or at the end of a ``with`` block.

    Args:
        target:
            A folder, a file or a module, with or without ``PREFIX=``, or several of these; a `Catalog`; or
            prompts and resources.

        revision:
            The date of the protocol revision. The default is the newest.

        answers:
            The values, by name, to enter when a prompt asks for missing arguments. The client declines forms
            for which it has no value. None means that the client does not support elicitation.

        name:
            The client's name.

        tools:
            Whether the server also offers each prompt as a tool, like ``serve --tools``; ``"search"`` means
            ``serve --tools-search``.

        skills_as:
            How the server offers skills to clients without the skills extension, like ``serve --skills-as``:
            ``("tools", "prompts")`` or one of them.

        scopes:
            The scopes granted to the client. Prompts that need further scopes are hidden from the client.

    Raises:
        LoadError: If *target* does not exist.

        CompileError: If a prompt or resource does not compile. From a `Catalog`, the valid ones are served.

        ConfigurationError: If the project's `pyproject.toml`, which names the server, is invalid.

        ValueError: If the revision is unknown or a scope is invalid.
    """

    def __init__(  # noqa: PLR0913 (each is also an option of serve)
        self,
        target: Target,
        *,
        revision: str | None = None,
        answers: Mapping[str, Any] | None = None,
        name: str = "promptkit.testing",
        tools: bool | Literal["search"] = False,
        skills_as: Collection[SkillForm] = (),
        scopes: Iterable[str] = (),
    ) -> None:
        catalog = target if isinstance(target, Catalog) else require_complete(compiler.compile(target))
        self._revision = _validate_revision(revision)
        self._answers = answers
        self._info = {"name": name, "version": VERSION}
        self._capabilities: dict[str, Any] = {} if answers is None else {"elicitation": {}}
        self._received: SimpleQueue[bytes] = SimpleQueue()
        self._sent: SimpleQueue[bytes] = SimpleQueue()
        self._server = Server(
            catalog,
            self._received.put,
            identity=_identity_of(target),
            tools=tools,
            skills_as=frozenset(skills_as),
            scopes=parse_scopes(scopes),
        )
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
        """Close the connection. Later requests raise RuntimeError; closing the client again does nothing."""
        self._finalize()

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """
        Send any request and return its result as received.

        Args:
            method:
                The method, such as ``"prompts/get"``.

            params:
                The params of the method. The metadata that the revision requires is added.

        Raises:
            ProtocolError: If the response is an error.
        """
        params = dict(params or {})
        result = self._exchange(method, params)
        while result.get("resultType") == "input_required":  # fill in the forms, and retry
            responses = {
                key: self._answer(request["params"]) for key, request in result["inputRequests"].items()
            }
            retry = {"inputResponses": responses, "requestState": result["requestState"]}
            result = self._exchange(method, {**params, **retry})
        return result

    def _exchange(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send one request, answer the server's requests until the result arrives, and return the result."""
        if REVISIONS[self._revision].stateless:
            params = {**params, "_meta": {**self._meta(), **params.get("_meta", {})}}
        with self._lock:
            request_id = next(self._ids)
            self._send({"id": request_id, "method": method, "params": params})
            for message in self._messages():
                if message.get("method") == "elicitation/create":  # notifications are ignored
                    self._send({"id": message["id"], "result": self._answer(message["params"])})
                elif message.get("id") == request_id:
                    break
        if "error" in message:
            raise ProtocolError(**message["error"])
        result: dict[str, Any] = message["result"]
        return result

    def _meta(self) -> dict[str, Any]:
        """Return the ``_meta`` that every request of a stateless revision carries."""
        return {
            wire.PROTOCOL_VERSION: self._revision,
            wire.CLIENT_INFO: self._info,
            wire.CLIENT_CAPABILITIES: self._capabilities,
        }

    def _messages(self) -> Iterator[dict[str, Any]]:
        while True:
            yield from map(msgspec.json.decode, self._received.get().splitlines())

    def _answer(self, form: Mapping[str, Any]) -> dict[str, Any]:
        """Fill in a form with the known values, or decline it if none of its values is known."""
        answers = self._answers or {}
        entered = {key: answers[key] for key in form["requestedSchema"]["properties"] if key in answers}
        return {"action": "accept", "content": entered} if entered else {"action": "decline"}

    def _send(self, message: Mapping[str, Any]) -> None:
        if not self._finalize.alive:
            msg = "the client is closed: create another one"
            raise RuntimeError(msg)
        self._sent.put(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    def list_prompts(self) -> list[wire.PromptEntry]:
        """
        List the prompts, with their titles, descriptions, arguments, icons and metadata.

        Raises:
            ProtocolError: If the response is an error.
        """
        return self._list_all("prompts/list", "prompts", wire.PromptEntry)

    def list_resources(self) -> list[wire.ResourceEntry]:
        """
        List the resources with a fixed URI.

        Raises:
            ProtocolError: If the response is an error. Before revision 2026-07-28, a server without resources
                returns an error.
        """
        return self._list_all("resources/list", "resources", wire.ResourceEntry)

    def list_resource_templates(self) -> list[wire.ResourceTemplate]:
        """
        List the resource templates.

        Raises:
            ProtocolError: In the same cases as `list_resources`.
        """
        return self._list_all("resources/templates/list", "resourceTemplates", wire.ResourceTemplate)

    def get_prompt(self, name: str, arguments: Mapping[str, Any] | None = None) -> Workflow:
        """
        Render a prompt and return its messages as received.

        Args:
            name:
                The prompt's name.

            arguments:
                Values by parameter name. Strings are sent unchanged, other values as text. An argument whose
                value is None is not sent.

        Returns:
            The received messages. If an older revision lacks a content type, the server sends other content
            instead.

        Raises:
            ProtocolError: If the prompt is unknown, an argument is invalid, or rendering fails.

            TypeError: If a value has a type that cannot be converted to text.
        """
        sent = {key: text_of(value) for key, value in (arguments or {}).items() if value is not None}
        result = self.request("prompts/get", {"name": name, "arguments": sent})
        return Workflow(Message(turn["role"], content_of(turn["content"])) for turn in result["messages"])

    def list_tools(self) -> list[wire.ToolEntry]:
        """
        List the tools; the list is empty unless the client was created with *tools*.

        Raises:
            ProtocolError: If the response is an error.
        """
        return self._list_all("tools/list", "tools", wire.ToolEntry)

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> CalledTool:
        """
        Call a tool and return its result as received.

        Args:
            name:
                The tool's name, which is the name of its prompt.

            arguments:
                Values by parameter name, sent as JSON: numbers as numbers, None as null.

        Returns:
            The content, and whether it is an error message about the arguments or from the prompt.

        Raises:
            ProtocolError: If the tool is unknown or the call is invalid.

            TypeError: If a value has a type that cannot be converted to JSON.
        """
        sent = {key: json_of(value) for key, value in (arguments or {}).items()}
        result = self.request("tools/call", {"name": name, "arguments": sent})
        return CalledTool(tuple(map(content_of, result["content"])), result.get("isError", False))

    def read_resource(self, uri: str) -> EmbeddedResource:
        """
        Read the resource at *uri*.

        Raises:
            ProtocolError: If the resource is unknown or cannot be read.
        """
        (contents,) = self.request("resources/read", {"uri": uri})["contents"]
        return cast("EmbeddedResource", content_of({"type": "resource", "resource": contents}))

    def list_skills(self) -> list[wire.SkillEntry]:
        """
        List the skills, with their frontmatter and the digests of their files.

        Raises:
            ProtocolError: If the response is an error, for instance because the server has no skills.
        """
        return self._list_all("skills/list", "skills", wire.SkillEntry)

    def get_skill(self, name: str) -> wire.SkillEntry:
        """
        Return the listing of one skill.

        Args:
            name:
                Its name, or the URI of its ``SKILL.md``.

        Raises:
            ProtocolError: If the skill is unknown.
        """
        if ":" not in name:  # names of skills do not contain colons
            uris = (skill.uri for skill in self.list_skills() if skill.name == name)
            name = next(uris, f"skill://{name}/SKILL.md")
        return msgspec.convert(self.request("skills/get", {"uri": name})["skill"], wire.SkillEntry)

    def read_skill(self, name: str) -> ReceivedSkill:
        """
        Read a skill with all its files, and verify each file as a host does.

        Args:
            name:
                Its name, or the URI of its ``SKILL.md``.

        Returns:
            The contents of its files by path, and the text of ``SKILL.md``.

        Raises:
            SkillMismatchError: If the frontmatter, the name, or the size or digest of a file differs from the
                listing.

            ProtocolError: If the skill is unknown.
        """
        return _receive_skill(self.get_skill(name), self.read_resource)

    def complete(
        self, name: str, argument: str, typed: str = "", chosen: Mapping[str, str] | None = None
    ) -> Completion:
        """
        Complete the value of an argument.

        Args:
            name:
                The prompt's name, or a URI template of resources.

            argument:
                The argument, or the variable of the template.

            typed:
                The text typed so far.

            chosen:
                The values of arguments already chosen, by name.

        Returns:
            The best matches as ``values``, the number of matches as ``total``, and ``has_more``.

        Raises:
            ProtocolError: If the prompt, template or argument is unknown.
        """
        is_template = ":" in name  # names of prompts do not contain colons
        ref = {"type": "ref/resource", "uri": name} if is_template else {"type": "ref/prompt", "name": name}
        params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": typed}}
        if chosen:
            params["context"] = {"arguments": dict(chosen)}
        completion = self.request("completion/complete", params)["completion"]
        return Completion(tuple(completion["values"]), completion["total"], completion["hasMore"])

    def _list_all(self, method: str, key: str, kind: type[T]) -> list[T]:
        items: list[T] = []
        page: dict[str, Any] = {"nextCursor": None}
        while "nextCursor" in page:
            cursor = page["nextCursor"]
            page = self.request(method, {} if cursor is None else {"cursor": cursor})
            items += msgspec.convert(page[key], list[kind])  # type: ignore[valid-type]
        return items


def _close(server: Server, sent: SimpleQueue[bytes]) -> None:
    sent.put(b"")
    server.close(0.0)


def _identity_of(target: Target) -> ServerInfo:
    """Return the identity that `serve` reports for a target."""
    first = next(iter(target), None) if isinstance(target, list | tuple) else target
    if isinstance(first, ModuleType):
        first = first.__name__
    return find_server_info([str(first)]) if isinstance(first, str | Path) else UNKNOWN


def _validate_revision(date: str | None) -> str:
    """Return the date of a revision, or of the newest for None. Raises ValueError for an unknown date."""
    if date is None:
        return list(REVISIONS)[-1]
    if date not in REVISIONS:
        msg = f"unknown protocol revision {date!r}: choose one of {', '.join(REVISIONS)}"
        raise ValueError(msg)
    return date


def _receive_skill(listed: wire.SkillEntry, read: Callable[[str], EmbeddedResource]) -> ReceivedSkill:
    """Read all files of a skill, and verify them, as a host must."""
    folder = listed.uri.removesuffix(f"/{SKILL_FILE}")
    files: dict[str, bytes] = {}
    for entry in listed.resources:
        _check(entry.uri.startswith(f"{folder}/"), f"{entry.uri!r} is not a file of {folder!r}")
        path = unquote(entry.uri.removeprefix(f"{folder}/"))
        _check(path not in files, f"{path!r} is listed twice")
        document = read(entry.uri)
        data = document.blob if document.text is None else document.text.encode()
        files[path] = data or b""
        _check(len(files[path]) == entry.size, f"{path!r} has {len(files[path]):,} bytes, not {entry.size:,}")
        digest = f"sha256:{sha256(files[path]).hexdigest()}"
        _check(digest == entry.digest, f"{path!r} has the digest {digest}, not {entry.digest}")
    _check(SKILL_FILE in files, f"{SKILL_FILE} is not among its files")
    try:
        fields, text, _ = read_skill(files[SKILL_FILE])
    except FrontmatterError as error:
        raise SkillMismatchError(str(error)) from None
    for key in dict.fromkeys((*fields, *listed.frontmatter)):
        listed_value, value = listed.frontmatter.get(key), fields.get(key)
        _check(
            listed_value == value, f"{key} is {value!r} in {SKILL_FILE}, but {listed_value!r} in the listing"
        )
    _check(
        folder.rpartition("/")[2] == fields.get("name"), f"{listed.uri!r} does not end with the skill's name"
    )
    return ReceivedSkill(listed, text, files)


def _check(is_valid: bool, message: str) -> None:  # noqa: FBT001 (the condition to check)
    if not is_valid:
        raise SkillMismatchError(message)
