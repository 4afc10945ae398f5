"""``promptkit list``: list the prompts with their arguments, the resources and the skills."""

from argparse import Namespace
from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args, get_origin

import msgspec

from promptkit.catalog.arguments import Argument
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.cli import Exit
from promptkit.cli.calls import LOWERING, case_texts
from promptkit.cli.diagnostics import format_count
from promptkit.cli.loading import load_catalog, open_named_server, report_catalog_errors
from promptkit.cli.output import Output, make_console
from promptkit.fragments.invisible import escape_invisible
from promptkit.language.annotations import NO_DEFAULT
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.pagination import LISTS, paginate
from promptkit.protocol.revisions import LATEST_HANDSHAKE
from promptkit.server.identity import UNKNOWN, find_server_info
from promptkit.server.lookup import name_of
from promptkit.types.choices import member_text
from promptkit.types.descriptions import default_clause, join_description
from promptkit.types.kinds import is_enum, is_union, type_name
from promptkit.types.unstructuring import text_as_entered

if TYPE_CHECKING:
    from promptkit.catalog.skills import CompiledSkill

#: A line of output: strings, each with or without a style.
_Line: TypeAlias = tuple[str | tuple[str, str], ...]


def run(options: Namespace, output: Output) -> int:
    """
    Print every prompt, resource and skill, as text or as JSON.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    if options.texts and not options.json:
        options.error("--texts requires --json")
    if options.servers:
        with open_named_server(options) as server:
            lists = {"server": server.name, "revision": server.revision, **server.listing.data}
            return _show(server.catalog, lists, UNKNOWN, options, output)
    catalog = load_catalog(options.targets, options.ignore, cases=options.texts)
    identity = find_server_info(options.targets)
    return _show(catalog, {**_identity_data(identity), **lists_of(catalog)}, identity, options, output)


def _show(
    catalog: Catalog, lists: Mapping[str, Any], identity: ServerInfo, options: Namespace, output: Output
) -> int:
    if options.json:
        texts = {"texts": case_texts(catalog)} if options.texts else {}
        output.print_json({**lists, **texts})
    else:
        _print(catalog, identity, output)
    output.send()
    report_catalog_errors(catalog, options.ignore)
    return Exit.OK if catalog.healthy else Exit.FAILED


def lists_of(catalog: Catalog) -> dict[str, Any]:
    """
    Return all lists except ``tools/list`` as JSON-compatible data, with the scopes that items require.

    Items have the form that a client of the latest handshake revision receives, on one page for each list.
    """
    page_size = max(len(catalog.declared) + len(catalog.skills), 1)
    # Tools repeat the prompts, and a list of skills is only sent if there are any.
    hidden = {"tools/list"} if catalog.skills else {"tools/list", "skills/list"}
    methods = [method for method in LISTS if method not in hidden]
    pages = (paginate(method, catalog, LOWERING, page_size).page() for method in methods)
    lists = {name: items for page in pages for name, items in msgspec.json.decode(page).items()}
    scopes = {name_of(item): sorted(item.scopes) for item in catalog.scoped}
    for item in chain.from_iterable(lists.values()):
        key = item.get("uri") or item.get("uriTemplate") or item["name"]
        if key in scopes:
            item["scopes"] = scopes[key]
    return lists


def _identity_data(identity: ServerInfo) -> dict[str, Any]:
    """Return the identity of the server as in the result of ``initialize``."""
    data = {"serverInfo": msgspec.to_builtins(identity.implementation(LATEST_HANDSHAKE))}
    return {**data, "instructions": identity.instructions} if identity.instructions else data


def _print(catalog: Catalog, identity: ServerInfo, output: Output) -> None:
    """Print the lists as text, each item and each argument on a line. On a terminal, wrap the lines."""
    from rich.text import Text

    console = make_console(output, output.width)
    items = (*catalog.declared, *catalog.skills)
    server = [] if identity == UNKNOWN else [[*_server_lines(identity)]]
    blocks = [*server, *([_format_head(item), *_format_parts(item)] for item in items)]
    for block in blocks:
        for indent, parts in zip(chain((0,), repeat(4)), block, strict=False):
            text = Text.assemble(*parts, overflow="fold")  # breaks words that are too long
            lines = text.wrap(console, output.width - indent - 4) if output.width else [text]
            for i, line in enumerate(lines):
                line.rstrip()
                line.pad_left(indent + 4 * bool(i))
                console.print(line, soft_wrap=True)


def _server_lines(identity: ServerInfo) -> Iterator[_Line]:
    """Yield lines about the server: its name and version, its website and its instructions."""
    title = f" ({identity.title})" if identity.title else ""
    description = f": {identity.description}" if identity.description else ""
    yield ("server ", "dim"), (f"{identity.name} {identity.version}", "bold"), title, description
    if identity.website:
        yield (f"website: {identity.website}",)
    if identity.instructions:
        yield (f"instructions: {_format_line(identity.instructions)}",)


def _format_head(item: "CompiledPrompt | CompiledResource | CompiledSkill") -> _Line:
    """Return the kind, name and description of an item."""
    kind, uri = "prompt", None
    if isinstance(item, CompiledResource):
        kind, uri = "template" if item.is_template else "resource", item.uri_template
    elif not isinstance(item, CompiledPrompt):
        kind, uri = "skill", item.uri_template
    needs = f"needs {' '.join(sorted(item.scopes))}" if item.scopes else None
    asides = (f" ({_format_line(aside)})" for aside in (uri, item.title, needs) if aside)
    description = f": {_format_line(item.description)}" if item.description else ""
    return (f"{kind} ", "dim"), (_format_line(item.name), "bold"), *asides, description


def _format_parts(item: "CompiledPrompt | CompiledResource | CompiledSkill") -> Iterator[_Line]:
    """Yield a line for each argument of an item, or one line for the files of a skill."""
    if isinstance(item, CompiledPrompt | CompiledResource):
        yield from map(_describe_argument, item.arguments.ordered)
        return
    size = sum(file.content.size for file in item.files)
    names = ", ".join(_format_line(file.path) for file in item.files)
    yield (f"{format_count(len(item.files), 'file')}, {size:,} bytes: {names}",)


def _describe_argument(argument: Argument) -> _Line:
    """Return an argument with its type, default and description."""
    presence = "required" if argument.required else _format_default(argument)
    words = join_description(
        argument.arg.description, [argument.reader.hint] if argument.reader.meanings else []
    )
    return (
        *(
            (_format_line(argument.name), "bold"),
            ": ",
            (_format_line(format_type(argument.annotation)), "cyan"),
        ),
        f", {escape_invisible(presence, one_line=True)}",
        f": {_format_line(words)}" if words else "",
    )


def _format_line(text: str) -> str:
    """Return *text* on one line, with control characters escaped."""
    return escape_invisible(" ".join(text.split()))


def _format_default(argument: Argument) -> str:
    """
    Return a clause with an argument's default, as users would type it; ``optional`` if it has no default.
    """
    is_none = argument.default is NO_DEFAULT or argument.default is None
    text = "" if is_none else _format_default_value(argument)
    return default_clause(argument.arg.env, filter(None, [text])) or "optional"


def _format_default_value(argument: Argument) -> str:
    if argument.arg.secret:
        return "<secret>"
    try:
        text = text_as_entered(argument.default)
        # Invisible whitespace and line endings are escaped as in JSON.
        return text if text == " ".join(text.split()) else msgspec.json.encode(text).decode()
    except Exception as error:  # noqa: BLE001 (an author's class can fail to convert itself to text)
        return f"<{type(argument.default).__name__}, which cannot be shown: {type(error).__name__}>"


def format_type(annotation: Any) -> str:
    """Return a type as its author writes it, without module names or `Annotated`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return format_type(arguments[0])
    if is_union(annotation):
        return " | ".join(map(format_type, arguments))
    name = _type_name(annotation if origin is None else origin)
    parameters = map(repr if origin is Literal else format_type, arguments)
    return f"{name}[{', '.join(parameters)}]" if arguments else name


def _type_name(annotation: Any) -> str:
    """
    Return the name of a type without its parameters. For an enumeration, add the members' text.
    """
    if annotation in (NoneType, ...):
        return "None" if annotation is NoneType else "..."
    name = getattr(annotation, "__name__", None) or type_name(annotation)
    if is_enum(annotation):
        return f"{name}({', '.join(repr(member_text(member)) for member in annotation)})"
    return name
