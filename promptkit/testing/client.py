"""An in-process client that supports every revision of the protocol and returns decoded values."""

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
            One content block for each part. If there are several turns, each turn starts with a text block
            such as ``[assistant]``.

        is_error:
            Whether the content is an error message.
    """

    content: tuple[Content, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text of all blocks, separated by blank lines."""
        return "\n\n".join("\n".join(content.texts) for content in self.content)


class ReceivedSkill(Struct, frozen=True):
    """
    A skill with its files, which have been verified against the server's listing.

    Args:
        listed:
            The listing of the skill.

        text:
            The Markdown that follows the frontmatter in ``SKILL.md``.

        files:
            The contents of its files, keyed by their paths within the skill.
    """

    listed: wire.SkillEntry
    text: str
    files: Mapping[str, bytes]


class SkillMismatchError(PromptkitError):
    """The files of a skill differ from its listing, so a host must reject the skill."""


class Client:
    """
    An in-process client for testing your prompts, in synchronous and asynchronous tests.

    Each request is encoded and decoded like a request from a real client of the same revision, and the method
    returns the decoded reply. Tracebacks of failing prompts go to standard error, as they do when serving. A
    client is closed at the end of a ``with`` block, or when it is garbage-collected.

    Args:
        target:
            A folder, a file or a module, with or without ``PREFIX=``, or several of these; a `Catalog`; or
            prompts and resources.

        revision:
            The date of the protocol revision. The default is the newest revision.

        answers:
            The values, keyed by argument name, to enter when a prompt asks for missing arguments. The client
            declines a form if it has no value for any of its fields. If this is None, the client does not
            support elicitation.

        name:
            The client's name.

        tools:
            Whether the server also offers each prompt as a tool, like ``serve --tools``. Pass ``"search"``
            for the behaviour of ``serve --tools-search``.

        skills_as:
            How the server offers skills to clients without the skills extension, like ``serve --skills-as``:
            ``("tools", "prompts")`` or one of them.

        scopes:
            The scopes granted to the client. Prompts that require other scopes are hidden from the client.

    Raises:
        LoadError: If *target* does not exist.

        CompileError: If a prompt or resource does not compile. If *target* is a `Catalog`, the client uses
            the prompts and resources that do.

        ConfigurationError: If the project's `pyproject.toml`, which can name the server, is invalid.

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
        self._client_info = {"name": name, "version": VERSION}
        self._capabilities: dict[str, Any] = {} if answers is None else {"elicitation": {}}
        self._received: SimpleQueue[bytes] = SimpleQueue()
        self._sent: SimpleQueue[bytes] = SimpleQueue()
        self._server = Server(
            catalog,
            self._received.put,
            identity=_server_identity(target),
            tools=tools,
            skills_as=frozenset(skills_as),
            scopes=parse_scopes(scopes),
        )
        self._server.read_from(self._sent.get, bool)
        self._ids = count(1)
        self._lock = Lock()
        self._finalize = finalize(self, _close, self._server, self._sent)
        if not REVISIONS[self._revision].stateless:
            client = {"capabilities": self._capabilities, "clientInfo": self._client_info}
            self._exchange("initialize", {"protocolVersion": self._revision, **client})
            self._send({"method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Later requests raise RuntimeError, but closing it again does nothing."""
        self._finalize()

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """
        Send a request for any method, and return the result as it was received.

        Args:
            method:
                The method, such as ``"prompts/get"``.

            params:
                The params of the method. The client adds the metadata that the revision requires.

        Raises:
            ProtocolError: If the response is an error.
        """
        params = dict(params or {})
        result = self._exchange(method, params)
        while result.get("resultType") == "input_required":  # fill in the forms, and retry
            responses = {
                key: self._fill_in(request["params"]) for key, request in result["inputRequests"].items()
            }
            retry = {"inputResponses": responses, "requestState": result["requestState"]}
            result = self._exchange(method, {**params, **retry})
        return result

    def _exchange(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request, answer the server's requests until the result arrives, and return the result."""
        if REVISIONS[self._revision].stateless:
            params = {**params, "_meta": {**self._meta(), **params.get("_meta", {})}}
        with self._lock:
            request_id = next(self._ids)
            self._send({"id": request_id, "method": method, "params": params})
            for message in self._receive_messages():
                if message.get("method") == "elicitation/create":  # notifications are ignored
                    self._send({"id": message["id"], "result": self._fill_in(message["params"])})
                elif message.get("id") == request_id:
                    break
        if "error" in message:
            raise ProtocolError(**message["error"])
        result: dict[str, Any] = message["result"]
        return result

    def _meta(self) -> dict[str, Any]:
        """Return the ``_meta`` of every request in a stateless revision."""
        return {
            wire.PROTOCOL_VERSION: self._revision,
            wire.CLIENT_INFO: self._client_info,
            wire.CLIENT_CAPABILITIES: self._capabilities,
        }

    def _receive_messages(self) -> Iterator[dict[str, Any]]:
        while True:
            yield from map(msgspec.json.decode, self._received.get().splitlines())

    def _fill_in(self, form: Mapping[str, Any]) -> dict[str, Any]:
        """Fill in a form with the values that the client has, or decline it if there are none."""
        answers = self._answers or {}
        entered = {key: answers[key] for key in form["requestedSchema"]["properties"] if key in answers}
        return {"action": "accept", "content": entered} if entered else {"action": "decline"}

    def _send(self, message: Mapping[str, Any]) -> None:
        if not self._finalize.alive:
            msg = "the client is closed: create a new one"
            raise RuntimeError(msg)
        self._sent.put(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    def list_prompts(self) -> list[wire.PromptEntry]:
        """
        Return the prompts, with their titles, descriptions, arguments, icons and metadata.

        Raises:
            ProtocolError: If the response is an error.
        """
        return self._list_all("prompts/list", "prompts", wire.PromptEntry)

    def list_resources(self) -> list[wire.ResourceEntry]:
        """
        Return the resources that have a fixed URI.

        Raises:
            ProtocolError: If the response is an error. Before revision 2026-07-28, a server without resources
                returns an error.
        """
        return self._list_all("resources/list", "resources", wire.ResourceEntry)

    def list_resource_templates(self) -> list[wire.ResourceTemplate]:
        """
        Return the resource templates.

        Raises:
            ProtocolError: In the same cases as `list_resources`.
        """
        return self._list_all("resources/templates/list", "resourceTemplates", wire.ResourceTemplate)

    def get_prompt(self, name: str, arguments: Mapping[str, Any] | None = None) -> Workflow:
        """
        Render a prompt, and return its messages as they were received.

        Args:
            name:
                The prompt's name.

            arguments:
                Values, keyed by parameter name. Strings are sent unchanged, and other values as text.
                Arguments whose value is None are not sent.

        Returns:
            The received messages. If the revision does not have a content type, the server sends other
            content in its place.

        Raises:
            ProtocolError: If the prompt is unknown, an argument is invalid, or rendering fails.

            TypeError: If a value has a type that cannot be converted to text.
        """
        sent = {key: text_of(value) for key, value in (arguments or {}).items() if value is not None}
        result = self.request("prompts/get", {"name": name, "arguments": sent})
        return Workflow(Message(turn["role"], content_of(turn["content"])) for turn in result["messages"])

    def list_tools(self) -> list[wire.ToolEntry]:
        """
        Return the tools. There are none unless the client was created with *tools*.

        Raises:
            ProtocolError: If the response is an error.
        """
        return self._list_all("tools/list", "tools", wire.ToolEntry)

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> CalledTool:
        """
        Call a tool, and return its result as it was received.

        Args:
            name:
                The tool's name, which is the name of its prompt.

            arguments:
                Values, keyed by parameter name. They are sent as JSON: numbers as numbers, and None as null.

        Returns:
            The content, and whether it is an error message, either about the arguments or from the prompt.

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
        Return the skills, with their frontmatter and the digests of their files.

        Raises:
            ProtocolError: If the response is an error, for instance because the server has no skills.
        """
        return self._list_all("skills/list", "skills", wire.SkillEntry)

    def get_skill(self, name: str) -> wire.SkillEntry:
        """
        Return the listing of one skill.

        Args:
            name:
                The skill's name, or the URI of its ``SKILL.md``.

        Raises:
            ProtocolError: If the skill is unknown.
        """
        if ":" not in name:  # names of skills do not contain colons
            uris = (skill.uri for skill in self.list_skills() if skill.name == name)
            name = next(uris, f"skill://{name}/SKILL.md")
        return msgspec.convert(self.request("skills/get", {"uri": name})["skill"], wire.SkillEntry)

    def read_skill(self, name: str) -> ReceivedSkill:
        """
        Read a skill with all its files, and verify each file as hosts do.

        Args:
            name:
                The skill's name, or the URI of its ``SKILL.md``.

        Returns:
            The contents of the skill's files, keyed by path, and the text of ``SKILL.md``.

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
                The name of the prompt, or the URI template of the resource.

            argument:
                The name of the argument, or of the variable in the template.

            typed:
                The text that the user has typed so far.

            chosen:
                The values that the user has already chosen for other arguments, keyed by name.

        Returns:
            The best matches as ``values``, the number of all matches as ``total``, and in ``has_more``
            whether there are more matches than values.

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


def _server_identity(target: Target) -> ServerInfo:
    """Return the server identity that `serve` reports for a target."""
    first = next(iter(target), None) if isinstance(target, list | tuple) else target
    if isinstance(first, ModuleType):
        first = first.__name__
    return find_server_info([str(first)]) if isinstance(first, str | Path) else UNKNOWN


def _validate_revision(date: str | None) -> str:
    """Return the date of a revision; for None, that of the newest. Raises ValueError if it is unknown."""
    if date is None:
        return list(REVISIONS)[-1]
    if date not in REVISIONS:
        msg = f"unknown protocol revision {date!r}: choose one of {', '.join(REVISIONS)}"
        raise ValueError(msg)
    return date


def _receive_skill(listed: wire.SkillEntry, read: Callable[[str], EmbeddedResource]) -> ReceivedSkill:
    """Read all files of a skill, and verify them as hosts must."""
    folder = listed.uri.removesuffix(f"/{SKILL_FILE}")
    files: dict[str, bytes] = {}
    for entry in listed.resources:
        _require(entry.uri.startswith(f"{folder}/"), f"{entry.uri!r} is not a file of {folder!r}")
        path = unquote(entry.uri.removeprefix(f"{folder}/"))
        _require(path not in files, f"{path!r} is listed twice")
        document = read(entry.uri)
        data = document.blob if document.text is None else document.text.encode()
        files[path] = data or b""
        _require(
            len(files[path]) == entry.size,
            f"{path!r} is {len(files[path]):,} bytes long, but {entry.size:,} in the listing",
        )
        digest = f"sha256:{sha256(files[path]).hexdigest()}"
        _require(
            digest == entry.digest,
            f"{path!r} has the digest {digest}, but {entry.digest} in the listing",
        )
    _require(SKILL_FILE in files, f"the listing does not contain {SKILL_FILE}")
    try:
        fields, text, _ = read_skill(files[SKILL_FILE])
    except FrontmatterError as error:
        raise SkillMismatchError(str(error)) from None
    for key in dict.fromkeys((*fields, *listed.frontmatter)):
        listed_value, value = listed.frontmatter.get(key), fields.get(key)
        _require(
            listed_value == value, f"{key} is {value!r} in {SKILL_FILE}, but {listed_value!r} in the listing"
        )
    _require(
        folder.rpartition("/")[2] == fields.get("name"), f"{listed.uri!r} does not end with the skill's name"
    )
    return ReceivedSkill(listed, text, files)


def _require(is_valid: bool, message: str) -> None:  # noqa: FBT001 (the condition to check)
    if not is_valid:
        raise SkillMismatchError(message)
