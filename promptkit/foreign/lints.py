"""Lints for a server: its lists, the schemas of its tools, and its replies to invalid requests."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from json import JSONDecoder
from typing import Any, Final

from promptkit.catalog.tools import MAX_TOOL_DESCRIPTION
from promptkit.declarations.options import check_name
from promptkit.errors.diagnostics import Diagnostic, Owner, Report
from promptkit.errors.rules import Rule
from promptkit.foreign.listing import (
    SERVER_LOCATION,
    InvalidReplyError,
    ListedPrompt,
    ListedTool,
    Listing,
    NoReplyError,
    Requester,
    RequestError,
)
from promptkit.protocol.jsonrpc import InvalidParams, MethodNotFound, ResourceNotFound
from promptkit.protocol.revisions import REVISIONS

#: The maximum number of names that a message lists.
_MAX_NAMED: Final = 5

#: A name and a URI that no server uses.
_UNKNOWN_NAME: Final = "promptkit-check-unknown"
_UNKNOWN_URI: Final = "promptkit-check:unknown"

#: Matches the descriptions of arguments that must be JSON.
_JSON: Final = re.compile(
    r"\bJSON\s+(?:string|object|array|list)\b|\bas\s+(?:a\s+)?JSON\b|\bvalid\s+JSON\b", re.IGNORECASE
)

#: Matches the text before the schema that FastMCP and the official SDK add to such descriptions.
_SCHEMA: Final = re.compile(r"\bschema: (?=\{)")

#: The types whose values look the same in JSON and in plain text.
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean", "null"})

#: The maximum depth to which a schema is searched.
_MAX_DEPTH: Final = 50

_SERVER: Final = Owner("the server", SERVER_LOCATION)


def lint_listing(listing: Listing, instructions: str | None = None) -> Iterator[Diagnostic]:
    """
    Yield a diagnostic for each probable mistake in a server's lists, or in its instructions for models.

    Lints that concern particular clients or renderings are not included, because the lints for promptkit's
    own prompts also check the prompts of a server.
    """
    for prompt in listing.prompts:
        yield from _lint_prompt(prompt)
    for kind, items in (("resource", listing.resources), ("template", listing.templates)):
        uris = [item.uri_template for item in items if not (item.description or item.title)]
        missing = [uri for uri in uris if uri not in listing.skill_files]
        if missing:
            message = (
                f"a description is missing for {_format_count(len(missing), kind)}: {_format_names(missing)}"
            )
            yield _SERVER.diagnostic(Rule.NO_DESCRIPTION, message, "describe its content")
    for tool in listing.tools:
        yield from _lint_tool(tool)
    yield from _lint_schemas(listing.tools)
    report = Report("the server", SERVER_LOCATION)
    _lint_length(report, "its instructions have", instructions)
    yield from report.diagnostics


def _lint_prompt(prompt: ListedPrompt) -> list[Diagnostic]:
    report, arguments = Report(f"prompt {prompt.name!r}", SERVER_LOCATION), prompt.arguments or []
    check_name(prompt.name, _lint_prompt, report)
    if not prompt.description:
        hint = "describe it: clients show the description next to the name"
        report.add(Rule.NO_DESCRIPTION, "it has no description", hint)
    if bare := [argument.name for argument in arguments if not (argument.description or argument.title)]:
        message = (
            f"a description is missing for {_format_count(len(bare), 'argument')}: {_format_names(bare)}"
        )
        report.add(Rule.NO_DESCRIPTION, message, "describe what users should enter")
    for argument in arguments:
        if _needs_json(argument.description or ""):
            message = f"users must write JSON for the argument {argument.name!r}"
            hint = "split it into arguments of plain text, so that users can fill in a form or type a command"
            report.add(Rule.JSON_ARGUMENT, message, hint)
    for name, count in Counter(argument.name for argument in arguments).items():
        if count > 1:
            report.add(Rule.DUPLICATE_ITEM, f"it has two arguments called {name!r}", "rename or remove one")
    _lint_length(report, "its description has", prompt.description)
    return report.diagnostics


def _needs_json(description: str) -> bool:
    """Return whether an argument's description asks for JSON that is more than a number or a word."""
    if (match := _SCHEMA.search(description)) is not None:
        with suppress(ValueError):
            schema, _ = JSONDecoder().raw_decode(description, match.end())
            members = schema.get("anyOf", [schema])
            return not all(isinstance(member, dict) and member.get("type") in _SCALARS for member in members)
    return _JSON.search(description) is not None


def _lint_tool(tool: ListedTool) -> list[Diagnostic]:
    report = Report(f"tool {tool.name!r}", SERVER_LOCATION)
    check_name(tool.name, _lint_tool, report)
    if not tool.description:
        hint = "describe it: models choose tools by their descriptions"
        report.add(Rule.NO_DESCRIPTION, "it has no description", hint)
    _lint_length(report, "its description has", tool.description)
    return report.diagnostics


def _lint_length(report: Report, subject: str, text: str | None) -> None:
    if text is not None and len(text) > MAX_TOOL_DESCRIPTION:
        message = (
            f"{subject} {len(text):,} characters, but hosts truncate text after {MAX_TOOL_DESCRIPTION:,}"
        )
        report.add(Rule.LONG_DESCRIPTION, message, "shorten it, and put the most important information first")


def _lint_schemas(tools: Sequence[ListedTool]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each entry of `_LOSSES` that applies to the schemas of some tools."""
    for applies, message, hint in _LOSSES:
        if names := [tool.name for tool in tools if applies(tool.input_schema)]:
            subject = f"{_format_count(len(names), 'tool')} ({_format_names(names)})"
            yield _SERVER.diagnostic(Rule.LOSSY_SCHEMA, f"{subject}: {message}", hint)


def _iterate_schemas(schema: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all schemas that it contains."""
    if isinstance(schema, list):
        for item in schema:
            yield from _iterate_schemas(item, depth)
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return
    yield schema
    for key in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas"):
        inner = schema.get(key)
        yield from _iterate_schemas(list(inner.values()) if isinstance(inner, Mapping) else (), depth + 1)
    for key in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "not", "additionalProperties"):
        yield from _iterate_schemas(schema.get(key), depth + 1)


def _has_choices_other_than_text(schema: Mapping[str, Any]) -> bool:
    """Return whether an ``enum`` in a schema contains a value that is neither text nor null."""
    choices = chain.from_iterable(inner.get("enum") or () for inner in _iterate_schemas(schema))
    return any(not isinstance(choice, str | None) for choice in choices)


def _has_types_by_position(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema contains a list with a separate type for each position."""
    return any(
        "prefixItems" in inner or isinstance(inner.get("items"), list) for inner in _iterate_schemas(schema)
    )


def _is_recursive(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema or one of its definitions refers to itself, directly or indirectly."""
    definitions = {**(schema.get("definitions") or {}), **(schema.get("$defs") or {})}
    references = {name: set(_find_references(definition)) for name, definition in definitions.items()}
    try:
        TopologicalSorter(references).prepare()
    except CycleError:
        return True
    return "#" in _find_references(schema)


def _find_references(schema: Any) -> Iterator[str]:
    """Yield the name of each definition to which a schema refers; ``#`` for the schema itself."""
    references = (inner.get("$ref") for inner in _iterate_schemas(schema))
    return (reference.rpartition("/")[2] for reference in references if isinstance(reference, str))


#: The features of schemas that some clients cannot convert: whether a schema has the feature, a message and a
#: hint. See docs/tools.md, and the table in tests/clients/test_converters.py.
_LOSSES: Final = (
    (
        lambda schema: "$schema" in schema,
        "the schema has '$schema', which makes every call fail in Genkit",
        "omit it, because 2020-12 is the default in MCP",
    ),
    (
        _is_recursive,
        "the schema is recursive, so AutoGen cannot convert it, and OpenAI's strict mode is not possible",
        "limit the depth, and write out each level",
    ),
    (
        _has_choices_other_than_text,
        "the schema has choices that are not text, but Gemini accepts only text",
        'offer text, such as "1" instead of 1',
    ),
    (
        _has_types_by_position,
        "the schema has a separate type for each position of a list, but AutoGen sends text instead",
        "use an object, or one type for all items",
    ),
)


def lint_stray_output(lines: int, first: str) -> Iterator[Diagnostic]:
    """
    Yield a diagnostic if a server has written lines to standard output that are not messages.

    *lines* is the number of these lines, and *first* is the first of them.
    """
    if lines:
        message = f"it wrote {_format_count(lines, 'line')} other than messages to standard output: {first!r}"
        hint = "write logs to standard error, because some clients end the connection"
        yield _SERVER.diagnostic(Rule.INVALID_REPLY, message, hint)


def lint_replies(
    listing: Listing, connection: Requester, revision: str, *, render: bool = False
) -> Iterator[Diagnostic]:
    """
    Send invalid requests, and yield a diagnostic for each reply that violates the protocol.

    Args:
        listing:
            The server's lists.

        connection:
            The connection to the server.

        revision:
            The negotiated protocol revision.

        render:
            Whether to also request a prompt without its required arguments.
    """
    for subject, method, params, codes in _invalid_requests(listing, revision, render=render):
        message, is_answered = f"{subject} is answered as if the request were valid", True
        try:
            connection.request(method, params)
        except RequestError as error:
            if error.code in codes:
                continue
            message = f"{subject} is answered with the error code {error.code}: {error.message!r}"
        except InvalidReplyError as error:
            message = f"{subject} is not answered with an error: the server {error}"
            is_answered = not isinstance(error, NoReplyError)
        hint = f"reply with the error code {min(codes, key=lambda code: code != InvalidParams.code)}"
        yield _SERVER.diagnostic(Rule.WRONG_ERROR, message, hint)
        if not is_answered:
            return


def _invalid_requests(
    listing: Listing, revision: str, *, render: bool
) -> Iterator[tuple[str, str, dict[str, Any], set[int]]]:
    """Yield each request's subject, method and params, and the error codes that are correct for the reply."""
    invalid = {InvalidParams.code}
    if listing.prompts:
        yield "an unknown prompt", "prompts/get", {"name": _UNKNOWN_NAME}, invalid
    if listing.resources or listing.templates:
        has_own_code = revision in REVISIONS and REVISIONS[revision].resource_not_found
        codes = {*invalid, ResourceNotFound.code} if has_own_code else invalid
        yield "an unknown resource", "resources/read", {"uri": _UNKNOWN_URI}, codes
    yield "an unknown method", "promptkit/unknown", {}, {MethodNotFound.code}
    for method in listing.paged:
        yield f"an unknown cursor in {method}", method, {"cursor": _UNKNOWN_NAME}, invalid
    with_required = [prompt for prompt in listing.prompts if any(a.required for a in prompt.arguments or ())]
    for prompt in with_required[:1] if render else ():
        yield f"{prompt.name!r} without its required arguments", "prompts/get", {"name": prompt.name}, invalid


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _format_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
