"""A catalog of a server's prompts, resources and skills, whose contents are requested from the server."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from msgspec import Struct

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.cases import Case
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt, FunctionRenderer
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill
from promptkit.catalog.uri_templates import URITemplate, expand_template
from promptkit.declarations.skill_files import MAX_BYTES, MAX_FILES, compile_skill
from promptkit.declarations.skill_frontmatter import FrontmatterError, read_skill
from promptkit.errors.diagnostics import Diagnostic, Report
from promptkit.errors.distribution import install_command
from promptkit.errors.exceptions import PromptError, ResultError, shortened
from promptkit.errors.rules import Rule
from promptkit.files.reading import HashedBytes
from promptkit.foreign.address import ServerAddress, ServerError
from promptkit.foreign.cases import CASES_FILE, lint_cases_file, read_cases
from promptkit.foreign.lints import lint_listing, lint_replies, lint_stray_output
from promptkit.foreign.listing import (
    SERVER_LOCATION,
    InvalidReplyError,
    ListedArgument,
    ListedFile,
    ListedPrompt,
    ListedResource,
    ListedSkill,
    ListedTemplate,
    Listing,
    Requester,
    RequestError,
    read_listing,
)
from promptkit.language.annotations import NO_DEFAULT, Arg
from promptkit.language.messages import Workflow
from promptkit.lints.prompts import with_lints
from promptkit.lints.skills import lint_skill
from promptkit.types.scalar_types import SCALARS

#: The timeout of a rendering, in seconds. The connection times out earlier, with an error that names the
#: request.
_TIMEOUT_S: Final = 35.0

#: The maximum total size of all skill files, in bytes.
_MAX_SKILL_BYTES: Final = 64 * 1024 * 1024


class OpenServer(Struct):
    """
    A connected server.

    Args:
        name:
            The name and version that the server declares; if it declares neither, its address.

        revision:
            The negotiated protocol revision.

        listing:
            The lists of prompts, resources, tools and skills, as the server sent them.

        catalog:
            The catalog of these lists.
    """

    name: str
    revision: str
    listing: Listing
    catalog: Catalog


class _NoConnection:
    """A stand-in for a connection, used when the lists come from a file. Every request fails."""

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:  # noqa: ARG002
        msg = f"{method} requires a running server, but the lists come from a file"
        raise PromptError(msg)


@contextmanager
def open_server(
    address: ServerAddress, *, lint: bool = False, sample: bool = False, folder: Path | None = None
) -> Iterator[OpenServer]:
    """
    Connect to a server, read its lists, and yield the connected server.

    Args:
        address:
            The server's address.

        lint:
            Whether the catalog includes the diagnostics of ``promptkit check``.

        sample:
            Whether tools can render prompts with made-up arguments.

        folder:
            The folder that contains ``cases.toml``. The default is the current folder.

    Raises:
        ServerError: If the server cannot be reached or does not speak MCP, or if the official Python SDK,
            which contains the client, is not installed.

        LoadError: If ``cases.toml`` is invalid.
    """
    cases = read_cases((folder or Path.cwd()) / CASES_FILE)
    try:
        # The official SDK is an optional dependency, and is slow to import.
        from promptkit.foreign.connection import connect
    except ModuleNotFoundError as error:
        reason = f"{error.name} is not installed: run {install_command('servers')}"
        raise ServerError(address.label, reason) from None
    with connect(address) as connection:
        listing = read_listing(connection, connection.capabilities)
        catalog = catalog_of(listing, connection, cases, sample=sample)
        if lint:
            diagnostics = [
                *catalog.diagnostics,
                *lint_listing(listing, connection.instructions),
                *lint_replies(listing, connection, connection.revision, render=sample),
                *lint_stray_output(connection.observations.stray_lines, connection.observations.stray_line),
                *(diagnostic for skill in catalog.skills for diagnostic in lint_skill(skill)),
            ]
            catalog = with_lints(catalog.with_diagnostics(diagnostics))
        yield OpenServer(connection.name or address.label, connection.revision, listing, catalog)


def catalog_of(
    listing: Listing,
    connection: Requester | None = None,
    cases: Mapping[str, tuple[Case, ...]] | None = None,
    *,
    sample: bool = False,
) -> Catalog:
    """
    Build a catalog from a server's lists.

    Args:
        listing:
            The lists.

        connection:
            The connection to the server; None if the lists come from a file. In that case, the catalog
            contains no skills, because their files cannot be read.

        cases:
            The saved cases, keyed by prompt name.

        sample:
            Whether tools can render prompts with made-up arguments.
    """
    cases, diagnostics = cases or {}, [*listing.diagnostics]
    requester = connection or _NoConnection()
    prompts = [
        _build_prompt(prompt, requester, cases.get(prompt.name, ()), sample=sample)
        for prompt in listing.prompts
    ]
    skill_files = listing.skill_files
    resources = [
        compiled
        for resource in (*listing.resources, *listing.templates)
        if (compiled := _build_resource(resource, requester, diagnostics)) is not None
        and resource.uri_template not in skill_files
    ]
    skills, remaining = [], _MAX_SKILL_BYTES
    for listed in listing.skills if connection else ():
        skill, problems = _load_skill(listed, requester, remaining)
        diagnostics += problems
        if skill is not None:
            skills.append(skill)
            remaining -= sum(file.content.size for file in skill.files)
    diagnostics += lint_cases_file(cases, {prompt.name: prompt for prompt in prompts})
    return Catalog(prompts, diagnostics, resources, skills)


def _build_prompt(
    prompt: ListedPrompt, connection: Requester, cases: tuple[Case, ...], *, sample: bool
) -> CompiledPrompt:
    return CompiledPrompt(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        icons=(),
        meta=prompt.meta or {},
        arguments=Arguments(prompt.name, tuple(map(_build_argument, prompt.arguments or ()))),
        context=None,
        renderer=FunctionRenderer(partial(_render, connection, prompt.name), prompt.name, SERVER_LOCATION),
        timeout=_TIMEOUT_S,
        elicit=False,
        sample=sample,
        saved=lambda: cases,
    )


def _build_argument(argument: ListedArgument) -> Argument:
    """Convert an argument. Its type is `str`, because servers do not list the types of arguments."""
    default = NO_DEFAULT if argument.required else None
    arg = Arg(argument.description, title=argument.title)
    return Argument(argument.name, str, default, SCALARS[str], argument.title, argument.description, arg)


def _render(connection: Requester, name: str, /, **arguments: str) -> Workflow:
    """Request a rendering of a prompt from the server, and return it as a workflow."""
    result = _call(connection, "prompts/get", {"name": name, "arguments": arguments})
    try:
        return Workflow.from_messages(result["messages"])
    except (KeyError, TypeError, ValueError) as error:
        msg = f"prompt {name!r}: the server returned messages that cannot be sent to a model: {error}"
        raise ResultError(msg) from None


def read_resource(connection: Requester, uri: str) -> str | bytes:
    """
    Request a resource, and return the text of all its parts. If it has no text, return the first blob.
    """
    from pybase64 import b64decode  # only needed when a file is read

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
    """
    Send a request, and return its result.

    Raises:
        PromptError: If the server replies with an error, or asks for more input.

        ResultError: If the server's reply violates the protocol.
    """
    try:
        result = connection.request(method, params)
    except RequestError as error:
        raise PromptError(shortened(" ".join(str(error).split()))) from None
    except InvalidReplyError as error:
        msg = f"the server {error}"
        raise ResultError(msg) from None
    if result.get("resultType") == "input_required":
        msg = "the server asks for more input, which only a client that supports forms can provide"
        raise PromptError(msg)
    return result


def _build_resource(
    resource: ListedResource, connection: Requester, diagnostics: list[Diagnostic]
) -> CompiledResource | None:
    uri, is_template = resource.uri_template, isinstance(resource, ListedTemplate)
    try:
        template = URITemplate(uri if is_template else "x:")
    except ValueError as error:
        report = Report(f"template {uri!r}", SERVER_LOCATION, diagnostics)
        report.add(Rule.BAD_TEMPLATE, str(error), "write it in the syntax of RFC 6570")
        return None
    variables = [_build_argument(ListedArgument(name, required=True)) for name in template.names]

    def read(**values: str) -> str | bytes:
        return read_resource(connection, expand_template(uri, values) if is_template else uri)

    return CompiledResource(
        uri_template=uri,
        name=resource.name,
        title=resource.title,
        description=resource.description,
        mime_type=resource.mime_type,
        arguments=Arguments(resource.name, tuple(variables), "resource"),
        template=template,
        function=read,
        location=SERVER_LOCATION,
        icons=(),
        size=resource.size,
    )


def _load_skill(
    skill: ListedSkill, connection: Requester, max_bytes: int
) -> tuple[CompiledSkill | None, Sequence[Diagnostic]]:
    """
    Read the files of a skill, and verify them as hosts do.

    Args:
        skill:
            The skill, as the server lists it.

        connection:
            The connection to the server.

        max_bytes:
            The maximum total size of the skill's files, in bytes.

    Returns:
        The skill, which is None if it violates the format of skills; and the diagnostics for the skill.
    """
    path = unquote(skill.uri.removeprefix("skill://")).removesuffix(f"/{SKILL_FILE}")
    prefix, _, name = path.rpartition("/")
    report = Report(f"skill {name!r}", SERVER_LOCATION)
    if not skill.uri.startswith("skill://") or not skill.uri.endswith(f"/{SKILL_FILE}"):
        report.add(Rule.BAD_SKILL, f"its URI is {skill.uri!r}", f"use the form skill://NAME/{SKILL_FILE}")
        return None, report.diagnostics
    folder, files = skill.uri.removesuffix(SKILL_FILE), dict[str, HashedBytes]()
    listed = skill.resources if isinstance(skill.resources, list) else []
    uris: dict[str, ListedFile | None] = {file.uri: file for file in listed} or {skill.uri: None}
    if len(uris) > MAX_FILES or sum(file.size for file in listed) > min(MAX_BYTES, max_bytes):
        message = f"its {len(uris)} files are too many, or too large in total"
        hint = f"hosts read at most {MAX_FILES} files and {MAX_BYTES >> 20} MiB per skill"
        report.add(Rule.SKILL_FILES, message, hint)
        return None, report.diagnostics
    for uri, file in uris.items():
        path = unquote(uri.removeprefix(folder))
        if not uri.startswith(folder):
            report.add(
                Rule.SKILL_FILES, f"{uri!r} is not in the skill's folder", "list only files in this folder"
            )
            continue
        try:
            content = read_resource(connection, uri)
        except (PromptError, ResultError) as error:
            message = f"{path!r} cannot be read: {error}"
            report.add(Rule.SKILL_FILES, message, "serve every file that is listed")
            continue
        data = content.encode() if isinstance(content, str) else content
        if file is not None and (file.digest, file.size) != (f"sha256:{sha256(data).hexdigest()}", len(data)):
            message = f"{path!r} differs from its listed digest or size, so hosts reject it"
            report.add(Rule.SKILL_FILES, message, "compute the digest from the bytes that the server sends")
        files[path] = HashedBytes(data)
    if SKILL_FILE not in files:
        report.add(Rule.SKILL_FILES, f"it has no {SKILL_FILE}", "serve this file, and list it")
        return None, report.diagnostics
    try:
        fields, _, _ = read_skill(files[SKILL_FILE].data)
    except FrontmatterError as error:
        report.add(Rule.BAD_SKILL, str(error), error.hint)
        return None, report.diagnostics
    if fields != skill.frontmatter:
        message = (
            f"its listed frontmatter differs from the frontmatter of its {SKILL_FILE}, so hosts reject it"
        )
        report.add(Rule.BAD_SKILL, message, "list every field with the value that it has in the file")
    return compile_skill(name, prefix, fields, files, report), report.diagnostics
