"""A client in the same process: what the server sends to any client of a revision, as values."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from promptkit import compiler
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.completion import Completion
from promptkit.compiler.compilation import Target, sound
from promptkit.language.annotations import scopes_of
from promptkit.language.documents import EmbeddedResource
from promptkit.language.messages import Workflow
from promptkit.testing import received
from promptkit.testing.connection import ServerConnection
from promptkit.testing.skills import ListedSkill, received_skill
from promptkit.types.unstructuring import json_of, text_of

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
            catalog, revision=revision, answers=answers, name=name, tools=tools, scopes=scopes_of(scopes)
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
