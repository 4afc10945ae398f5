"""``promptkit list``: show the prompts and resources, and their arguments."""

from argparse import Namespace
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from promptkit.catalog.arguments import Argument
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.cli import Exit
from promptkit.cli.diagnostics import console_on
from promptkit.cli.loading import complain, load_catalog
from promptkit.cli.output import Output
from promptkit.fragments.invisible import escape_invisible

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["run"]


def run(options: Namespace, output: Output) -> int:
    """
    Print every prompt and every resource, for people or as JSON.

    Raises:
        LoadError: If there is nothing at the target.
    """
    catalog = load_catalog(options.target)
    if options.json:
        output.print_json(_lists(catalog))
    else:
        _print(catalog, output)
    output.send()
    complain(catalog)
    return Exit.FINE if catalog.healthy else Exit.FAULTY


def _lists(catalog: Catalog) -> dict[str, Any]:
    """
    Return all lists as the newest client of a handshake receives them, each on one page.
    """
    import msgspec

    from promptkit.protocol.lowering import lowering_for
    from promptkit.protocol.pages import LISTS, pages_of
    from promptkit.protocol.revisions import LATEST_HANDSHAKE

    lowering = lowering_for(LATEST_HANDSHAKE)
    whole = max(len(catalog.prompts), len(catalog.resources), 1)
    methods = [method for method in LISTS if method != "tools/list"]  # which is always empty
    pages = (pages_of(method, catalog, lowering, whole).page() for method in methods)
    return {name: items for page in pages for name, items in msgspec.json.decode(page).items()}


def _print(catalog: Catalog, output: Output) -> None:
    """
    Print the lists for people; where nobody sees how wide a line is, one line a thing.
    """
    console = console_on(output, output.width)
    items: list[CompiledPrompt | CompiledResource] = [*catalog.prompts, *catalog.resources]
    for item in items:
        for indent, text in ((0, _head(item)), *((4, _described(a)) for a in item.arguments.ordered)):
            text.overflow = "fold"  # a word that is too long goes on below
            lines = text.wrap(console, output.width - indent - 4) if output.width else [text]
            for i, line in enumerate(lines):
                line.rstrip()
                line.pad_left(indent + 4 * bool(i))
                console.print(line, soft_wrap=True)


def _head(item: CompiledPrompt | CompiledResource) -> "Text":
    """
    Return what it is, what it is called, and what it is for.
    """
    from rich.text import Text

    kind, title, uri = "prompt", item.title, None
    if isinstance(item, CompiledResource):
        kind, uri = "template" if item.is_template else "resource", item.uri_template
    text = Text.assemble((f"{kind} ", "dim"), (_line(item.name), "bold"))
    for aside in filter(None, (uri, title)):
        text.append(f" ({_line(aside)})")
    return text.append(f": {_line(item.description)}" if item.description else "")


def _described(argument: Argument) -> "Text":
    """
    Return an argument with its type, what counts without it, and the author's words.
    """
    from rich.text import Text

    wanted = "required" if argument.required else f"default {_default(argument)}"
    text = Text.assemble((argument.name, "bold"), ": ", (_line(_type(argument.annotation)), "cyan"))
    text.append(f", {escape_invisible(wanted, one_line=True)}")
    return text.append(f": {_line(argument.arg.description)}" if argument.arg.description else "")


def _line(text: str) -> str:
    """
    Return *text* on one line, without anything that a terminal obeys.
    """
    return escape_invisible(" ".join(text.split()))


def _default(argument: Argument) -> str:
    """
    Return what counts for an argument that is not given, as its author writes it.
    """
    if argument.arg.secret:
        return "<secret>"
    default = argument.default
    try:
        return f"{type(default).__name__}.{default.name}" if isinstance(default, Enum) else repr(default)
    except Exception as error:  # noqa: BLE001 (an author's class may be unable to show itself)
        return f"<{type(argument.default).__name__}, which cannot be shown: {type(error).__name__}>"


def _type(annotation: Any) -> str:
    """
    Return a type as its author writes it, without modules, and without notes of `Annotated`.
    """
    if isinstance(annotation, list):  # the parameters of a Callable
        return f"[{', '.join(map(_type, annotation))}]"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin in (Union, UnionType):
        return " | ".join(map(_type, arguments))
    name = _type_name(annotation if origin is None else origin)
    shown = map(repr if origin is Literal else _type, arguments)
    return f"{name}[{', '.join(shown)}]" if arguments else name


def _type_name(annotation: Any) -> str:
    """
    Return the name of a type without parameters; of an enumeration, its values, too.
    """
    if annotation in (NoneType, ...):
        return "None" if annotation is NoneType else "..."
    name = getattr(annotation, "__name__", None) or str(annotation).replace("typing.", "")
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"{name}({', '.join(repr(member.value) for member in annotation)})"
    return name
