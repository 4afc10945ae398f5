"""Lints for a server: its lists, the schemas of its tools, and its answers to invalid requests."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from json import JSONDecoder
from typing import Any, Final

from promptkit.catalog.tools import MAX_TOOL_DESCRIPTION
from promptkit.declarations.options import check_name
from promptkit.errors.diagnostics import Diagnostic, Owner, Report
from promptkit.errors.rules import Rule
from promptkit.foreign.listing import (
    SERVER,
    ListedPrompt,
    ListedTool,
    Listing,
)
from promptkit.foreign.requests import InvalidReplyError, NoReplyError, Requester, RequestError
from promptkit.protocol.jsonrpc import InvalidParams, MethodNotFound, ResourceNotFound
from promptkit.protocol.revisions import REVISIONS

#: How many names a message lists.
_MAX_NAMED: Final = 5

#: A name and a URI that no server has.
_UNKNOWN_NAME: Final = "promptkit-check-unknown"
_UNKNOWN_URI: Final = "promptkit-check:unknown"

#: Descriptions of arguments that must be JSON, and the schema that fastmcp and the official SDK add to them.
_JSON: Final = re.compile(
    r"\bJSON\s+(?:string|object|array|list)\b|\bas\s+(?:a\s+)?JSON\b|\bvalid\s+JSON\b", re.IGNORECASE
)

_SCHEMA: Final = re.compile(r"\bschema: (?=\{)")

#: The types of values that people write as JSON without knowing it.
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean", "null"})

#: Levels of a schema that are searched.
_MAX_DEPTH: Final = 50

_SERVER: Final = Owner("the server", SERVER)


def lint_listing(listing: Listing, instructions: str | None = None) -> Iterator[Diagnostic]:
    """
    Yield probable mistakes in the lists of a server, and in its instructions for models.

    The lints of prompts for certain clients, and of renderings, are those of promptkit's own prompts.
    """
    for prompt in listing.prompts:
        yield from _lint_prompt(prompt)
    for kind, items in (("resource", listing.resources), ("template", listing.templates)):
        uris = [item.uri_template for item in items if not (item.description or item.title)]
        missing = [uri for uri in uris if uri not in listing.skill_files]
        if missing:
            message = f"{_count(len(missing), kind)} without a description: {_names(missing)}"
            yield _SERVER.diagnostic(Rule.NO_DESCRIPTION, message, "describe its content")
    for tool in listing.tools:
        yield from _lint_tool(tool)
    yield from _lint_schemas(listing.tools)
    if instructions is not None:
        yield from _lint_length(_SERVER, "its instructions have", instructions)


def _lint_prompt(prompt: ListedPrompt) -> Iterator[Diagnostic]:
    report = Report(f"prompt {prompt.name!r}", SERVER)
    check_name(prompt.name, _lint_prompt, report)
    yield from report.found
    owner, arguments = report.owner, prompt.arguments or []
    if not prompt.description:
        hint = "describe it: clients show the description next to the name"
        yield owner.diagnostic(Rule.NO_DESCRIPTION, "it has no description", hint)
    if bare := [argument.name for argument in arguments if not (argument.description or argument.title)]:
        message = f"{_count(len(bare), 'argument')} without a description: {_names(bare)}"
        yield owner.diagnostic(Rule.NO_DESCRIPTION, message, "describe what users should enter")
    for argument in arguments:
        if _needs_json(argument.description or ""):
            message = f"users must write JSON for {argument.name!r}"
            hint = "split it into arguments of plain text, so that people can fill in a form or a command"
            yield owner.diagnostic(Rule.JSON_ARGUMENT, message, hint)
    seen = set[str]()
    for argument in arguments:
        if argument.name in seen:
            message = f"it has two arguments {argument.name!r}"
            yield owner.diagnostic(Rule.DUPLICATE_ITEM, message, "rename or remove one")
        seen.add(argument.name)
    yield from _lint_length(owner, "its description has", prompt.description or "")


def _needs_json(description: str) -> bool:
    """Return whether the description of an argument asks for JSON other than a number or a word."""
    if (match := _SCHEMA.search(description)) is not None:
        with suppress(ValueError):
            schema, _ = JSONDecoder().raw_decode(description, match.end())
            members = schema.get("anyOf", [schema])
            return not all(isinstance(each, dict) and each.get("type") in _SCALARS for each in members)
    return _JSON.search(description) is not None


def _lint_tool(tool: ListedTool) -> Iterator[Diagnostic]:
    report = Report(f"tool {tool.name!r}", SERVER)
    check_name(tool.name, _lint_tool, report)
    yield from report.found
    if not tool.description:
        hint = "describe it: models choose tools by their descriptions"
        yield report.owner.diagnostic(Rule.NO_DESCRIPTION, "it has no description", hint)
    yield from _lint_length(report.owner, "its description has", tool.description or "")


def _lint_length(owner: Owner, subject: str, text: str) -> Iterator[Diagnostic]:
    if len(text) > MAX_TOOL_DESCRIPTION:
        message = f"{subject} {len(text):,} characters, and hosts cut it after {MAX_TOOL_DESCRIPTION:,}"
        yield owner.diagnostic(Rule.LONG_DESCRIPTION, message, "shorten it, and begin with what matters most")


def _lint_schemas(tools: Sequence[ListedTool]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each loss, with the tools whose schemas have it."""
    for applies, message, hint in _LOSSES:
        if names := [tool.name for tool in tools if applies(tool.input_schema)]:
            subject = f"{_count(len(names), 'tool')} ({_names(names)})"
            yield _SERVER.diagnostic(Rule.LOSSY_SCHEMA, f"{subject}: {message}", hint)


def _schemas(schema: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all schemas in it."""
    if isinstance(schema, list):
        for item in schema:
            yield from _schemas(item, depth)
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return
    yield schema
    for key in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas"):
        inner = schema.get(key)
        for item in inner.values() if isinstance(inner, Mapping) else ():
            yield from _schemas(item, depth + 1)
    for key in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "not", "additionalProperties"):
        yield from _schemas(schema.get(key), depth + 1)


def _has_other_choices(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema has choices that are not text."""
    choices = [inner.get("enum") for inner in _schemas(schema)]
    return any(
        not isinstance(choice, str | None) for choice_list in choices if choice_list for choice in choice_list
    )


def _has_positions(schema: Mapping[str, Any]) -> bool:
    """Return whether a list in a schema has a type for each position."""
    return any("prefixItems" in inner or isinstance(inner.get("items"), list) for inner in _schemas(schema))


def _is_recursive(schema: Mapping[str, Any]) -> bool:
    """Return whether a definition refers to itself, directly or by way of others."""
    definitions = {**(schema.get("definitions") or {}), **(schema.get("$defs") or {})}
    references = {name: set(_references(definition)) for name, definition in definitions.items()}
    if "#" in set(_references(schema)):
        return True
    for name, reached in references.items():
        visited, pending = set[str](), list(reached)
        while pending:
            if (other := pending.pop()) == name:
                return True
            pending += references.get(other, set()) - visited
            visited |= references.get(other, set())
    return False


def _references(schema: Any) -> Iterator[str]:
    """Yield the name of each definition that a schema refers to; ``#`` for the schema itself."""
    for inner in _schemas(schema):
        reference = inner.get("$ref")
        if isinstance(reference, str):
            yield reference.rpartition("/")[2]


#: The losses of clients' converters: see the table in tests/clients/test_converters.py, and docs/tools.md.
_LOSSES: Final = (
    (
        lambda schema: "$schema" in schema,
        "the schema has '$schema', with which every call fails in Genkit",
        "omit it: 2020-12 is the default of MCP",
    ),
    (
        _is_recursive,
        "the schema is recursive: AutoGen cannot convert it, and OpenAI's strict mode is not possible",
        "limit the nesting, and write it out",
    ),
    (
        _has_other_choices,
        "the schema has choices that are not text, and Gemini accepts only text",
        'offer text, such as "1" in place of 1',
    ),
    (
        _has_positions,
        "the schema has a type for each position of a list, and AutoGen sends text in their place",
        "use an object, or one type for all items",
    ),
)


def lint_stray_output(lines: int, first: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a server has written lines to standard output that are not messages."""
    if lines:
        message = f"it wrote {_count(lines, 'line')} to standard output that are not messages: {first!r}"
        hint = "write logs to standard error: some clients end the connection"
        yield _SERVER.diagnostic(Rule.INVALID_REPLY, message, hint)


def lint_replies(
    listing: Listing, connection: Requester, revision: str, *, render: bool = False
) -> Iterator[Diagnostic]:
    """
    Yield a diagnostic for each invalid request that a server does not answer as the protocol requires.

    Args:
        listing:
            The server's lists.

        connection:
            The connection.

        revision:
            The revision of the protocol that both sides use.

        render:
            Whether prompts can be requested without their required arguments.
    """
    not_found = {InvalidParams.code}
    if revision in REVISIONS and REVISIONS[revision].resource_not_found:
        not_found.add(ResourceNotFound.code)
    requests: list[tuple[str, str, dict[str, Any], set[int]]] = []
    if listing.prompts:
        params: dict[str, Any] = {"name": _UNKNOWN_NAME}
        requests.append(("an unknown prompt", "prompts/get", params, {InvalidParams.code}))
    if listing.resources or listing.templates:
        params = {"uri": _UNKNOWN_URI}
        requests.append(("an unknown resource", "resources/read", params, not_found))
    requests.append(("an unknown method", "promptkit/unknown", {}, {MethodNotFound.code}))
    requests += (
        (f"an unknown cursor in {method}", method, {"cursor": _UNKNOWN_NAME}, {InvalidParams.code})
        for method in dict.fromkeys(listing.paged)
    )
    needing = [prompt for prompt in listing.prompts if any(a.required for a in prompt.arguments or ())]
    for prompt in needing[:1] if render else ():
        params = {"name": prompt.name}
        requests.append(
            (f"{prompt.name!r} without its required arguments", "prompts/get", params, {InvalidParams.code})
        )
    for subject, method, params, codes in requests:
        answer = _answer(connection, method, params)
        if isinstance(answer, RequestError) and answer.code in codes:
            continue
        message = f"{subject} is answered as if it existed"
        if isinstance(answer, RequestError):
            message = f"{subject} is answered with the code {answer.code}: {answer.message!r}"
        elif isinstance(answer, InvalidReplyError):
            message = f"{subject} is not answered with an error: the server {answer}"
        hint = f"answer with the code {min(codes, key=lambda code: code != InvalidParams.code)}"
        yield _SERVER.diagnostic(Rule.WRONG_ERROR, message, hint)
        if isinstance(answer, NoReplyError):
            return


def _answer(connection: Requester, method: str, params: Mapping[str, Any]) -> object:
    """Return the result of a request, or the error."""
    try:
        return connection.request(method, params)
    except (RequestError, InvalidReplyError) as error:
        return error


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
