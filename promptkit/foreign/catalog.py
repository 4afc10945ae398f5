"""A server's lists as a catalog, whose prompts and resources are requested from the server on use."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.cases import Case
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt, FunctionRenderer
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.uri_templates import URITemplate, expanded
from promptkit.errors.diagnostics import Report
from promptkit.errors.distribution import install_command
from promptkit.errors.exceptions import PromptError, ResultError, shortened
from promptkit.errors.rules import Rule
from promptkit.foreign.address import ServerAddress, ServerError
from promptkit.foreign.cases import CASES_FILE, lint_cases_file, read_cases
from promptkit.foreign.lints import lint_listing, lint_replies, lint_stray_output
from promptkit.foreign.listing import (
    SERVER,
    ListedArgument,
    ListedPrompt,
    ListedResource,
    ListedTemplate,
    Listing,
    read_listing,
)
from promptkit.foreign.requests import InvalidReplyError, Requester, RequestError
from promptkit.foreign.skills import load_skill
from promptkit.language.annotations import NO_DEFAULT, Arg
from promptkit.language.media import Icon
from promptkit.language.messages import Workflow
from promptkit.lints.prompts import with_lints
from promptkit.lints.skills import lint_skill
from promptkit.types.scalars import SCALARS

#: Time limit of a call, in seconds: the connection's own limit comes first, and names the request.
_TIMEOUT_S: Final = 35.0

#: Limit for the files of all skills together, in bytes.
_MAX_SKILL_BYTES: Final = 64 * 1024 * 1024


class OpenServer(Struct):
    """
    A connected server.

    Args:
        name:
            Its name and version, as it declares them; its address if it declares none.

        revision:
            The revision of the protocol that both sides use.

        listing:
            Its lists.

        catalog:
            Its prompts, resources and skills.
    """

    name: str
    revision: str
    listing: Listing
    catalog: Catalog


class _Unconnected:
    """The connection of lists that come from a file, which answers nothing."""

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:  # noqa: ARG002
        msg = f"{method} needs a server, and this is a file"
        raise PromptError(msg)


@contextmanager
def open_server(
    address: ServerAddress, *, lint: bool = False, sample: bool = False, folder: Path | None = None
) -> Iterator[OpenServer]:
    """
    Connect to a server and read its lists.

    Args:
        address:
            The server.

        lint:
            Whether the catalog has the diagnostics of ``promptkit check``.

        sample:
            Whether prompts can be rendered with made-up arguments.

        folder:
            The folder of ``cases.toml``; by default the current one.

    Raises:
        ServerError: If the server cannot be reached, or does not speak MCP, or the official client is not
            installed.

        LoadError: If ``cases.toml`` is invalid.
    """
    cases = read_cases((folder or Path.cwd()) / CASES_FILE)
    try:
        # The official client is an extra, and is slow to import.
        from promptkit.foreign.connection import connect
    except ModuleNotFoundError as error:
        reason = f"this needs {error.name}: {install_command('servers')}"
        raise ServerError(address.label, reason) from None
    with connect(address) as connection:
        identity = connection.identity
        listing = read_listing(connection, identity.capabilities)
        catalog = catalog_of(listing, connection, cases, sample=sample)
        if lint:
            diagnostics = [
                *catalog.diagnostics,
                *lint_listing(listing, identity.instructions),
                *lint_replies(listing, connection, identity.revision, render=sample),
                *lint_stray_output(connection.seen.stray_lines, connection.seen.stray_line),
                *(diagnostic for skill in catalog.skills for diagnostic in lint_skill(skill)),
            ]
            catalog = with_lints(catalog.with_diagnostics(diagnostics))
        name = " ".join(filter(None, (identity.name, identity.version))) or address.label
        yield OpenServer(name, identity.revision, listing, catalog)


def catalog_of(
    listing: Listing,
    connection: Requester | None = None,
    cases: Mapping[str, tuple[Case, ...]] | None = None,
    *,
    sample: bool = False,
) -> Catalog:
    """
    Return the catalog of a server's lists.

    Args:
        listing:
            The lists.

        connection:
            The connection to the server; None if the lists come from a file, without their skills' files.

        cases:
            The saved cases by prompt.

        sample:
            Whether prompts can be rendered with made-up arguments.
    """
    cases, report = cases or {}, Report("", SERVER)
    requester = connection or _Unconnected()
    prompts = [
        _prompt(prompt, requester, cases.get(prompt.name, ()), sample=sample) for prompt in listing.prompts
    ]
    listed: list[ListedResource | ListedTemplate] = [*listing.resources, *listing.templates]
    resources = [
        compiled for resource in listed if (compiled := _resource(resource, requester, report)) is not None
    ]
    skills, remaining = [], _MAX_SKILL_BYTES
    for skill in listing.skills if connection else ():
        compiled_skill, diagnostics = load_skill(skill, partial(read_resource, requester), remaining)
        report.found.extend(diagnostics)
        if compiled_skill is not None:
            skills.append(compiled_skill)
            remaining -= sum(file.content.size for file in compiled_skill.files)
    skill_files = listing.skill_files
    resources = [resource for resource in resources if resource.uri_template not in skill_files]
    unknown = lint_cases_file(cases, {prompt.name: prompt for prompt in prompts})
    return Catalog(prompts, [*listing.diagnostics, *report.found, *unknown], resources, skills)


def _prompt(
    prompt: ListedPrompt, connection: Requester, cases: tuple[Case, ...], *, sample: bool
) -> CompiledPrompt:
    return CompiledPrompt(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        icons=_icons(prompt.icons),
        meta=prompt.meta or {},
        arguments=Arguments(prompt.name, tuple(map(_argument, prompt.arguments or ()))),
        context=None,
        renderer=FunctionRenderer(partial(_render, connection, prompt.name), prompt.name, SERVER),
        timeout=_TIMEOUT_S,
        elicit=False,
        sample=sample,
        saved=lambda: cases,
    )


def _argument(argument: ListedArgument) -> Argument:
    """Return an argument, which is text for every server."""
    default = NO_DEFAULT if argument.required else None
    arg = Arg(argument.description, title=argument.title)
    return Argument(argument.name, str, default, SCALARS[str], argument.title, argument.description, arg)


def _icons(icons: Sequence[Mapping[str, Any]] | None) -> tuple[Icon, ...]:
    """Return the valid icons."""
    valid = []
    for icon in icons or ():
        try:
            sizes = tuple(icon.get("sizes") or ())
            valid.append(
                Icon(icon["src"], mime_type=icon.get("mimeType"), sizes=sizes, theme=icon.get("theme"))
            )
        except (KeyError, TypeError, ValueError):
            continue
    return tuple(valid)


def _render(connection: Requester, name: str, /, **arguments: str) -> Workflow:
    """Return the messages of a prompt."""
    result = _call(connection, "prompts/get", {"name": name, "arguments": arguments})
    try:
        return Workflow.from_messages(result["messages"])
    except (KeyError, TypeError, ValueError) as error:
        msg = f"prompt {name!r}: the server's messages cannot be sent to models: {error}"
        raise ResultError(msg) from None


def read_resource(connection: Requester, uri: str) -> str | bytes:
    """Return the content of a resource: all of its texts, or its first blob."""
    from pybase64 import b64decode  # not needed before the first file

    contents = _call(connection, "resources/read", {"uri": uri}).get("contents") or [{}]
    texts = [content["text"] for content in contents if isinstance(content.get("text"), str)]
    if texts:
        return "\n\n".join(texts)
    try:
        return b64decode(contents[0]["blob"], validate=True)
    except (KeyError, TypeError, ValueError):
        msg = f"resource {uri!r}: the server's reply contains neither text nor valid base64"
        raise ResultError(msg) from None


def _call(connection: Requester, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request. Raises PromptError if the server rejects it, and ResultError without an answer."""
    try:
        result = connection.request(method, params)
    except RequestError as error:
        raise PromptError(shortened(" ".join(str(error).split()))) from None
    except InvalidReplyError as error:
        msg = f"the server {error}"
        raise ResultError(msg) from None
    if result.get("resultType") == "input_required":
        msg = "the server asks for more input, which only a client with forms can give"
        raise PromptError(msg)
    return result


def _resource(
    resource: ListedResource | ListedTemplate, connection: Requester, report: Report
) -> CompiledResource | None:
    uri, is_template = resource.uri_template, isinstance(resource, ListedTemplate)
    try:
        template = URITemplate(uri if is_template else "x:")
    except ValueError as error:
        report.found.append(
            Report(f"template {uri!r}", SERVER).owner.diagnostic(
                Rule.BAD_TEMPLATE, str(error), "write it as RFC 6570 describes"
            )
        )
        return None
    variables = [_argument(ListedArgument(name, required=True)) for name in template.names]

    def read(**values: str) -> str | bytes:
        return read_resource(connection, expanded(uri, values) if is_template else uri)

    return CompiledResource(
        uri_template=uri,
        name=resource.name,
        title=resource.title,
        description=resource.description,
        mime_type=resource.mime_type,
        arguments=Arguments(resource.name, tuple(variables), "resource"),
        template=template,
        function=read,
        location=SERVER,
        icons=_icons(resource.icons),
        size=resource.size,
    )
