"""The commands, with their summaries and their options for argparse."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from promptkit.cli.serve_options import add_serve, is_port, refuse_unless
from promptkit.clients.profiles import get_client

if TYPE_CHECKING:
    from argparse import _MutuallyExclusiveGroup


#: The formats of `render` that belong to vendors. `promptkit.exports` defines them, but is slow to import.
VENDORS: Final = ("openai-chat", "openai-responses", "anthropic", "gemini")


def _target(text: str) -> str:
    """Return the name of a target; whether it exists is checked when it is loaded."""
    refuse_unless(text, "must not be empty: name a folder, a file or a module")
    return text


def _port(text: str) -> int:
    """Parse the number of a port; 0 means a free one."""
    refuse_unless(is_port(text), f"{text!r} is not a port: write a number from 0 to 65535")
    return int(text)


def _client(text: str) -> str:
    """Return the name of a client that promptkit knows."""
    try:
        get_client(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


#: The formats that `export` writes.
FORMATS: Final = ("claude-commands", "gemini-commands", "codex", "skills")

_TARGET: Final[dict[str, Any]] = {
    "type": _target,
    "metavar": "TARGET",
    "help": "a folder of recipes, a file, a module, or module:object, unless [tool.promptkit] in "
    "pyproject.toml names it (default: the folder recipes, else prompts)",
}
_TARGETS: Final = {**_TARGET, "default": []}
_FORMAT_HELP: Final = (
    "text for people, JSON for other programs, or annotations for GitHub Actions (default: text)"
)


def _add_targets(command: ArgumentParser) -> None:
    command.add_argument("targets", nargs="*", **_TARGETS)


def _add_serve(serve: ArgumentParser) -> None:
    _add_targets(serve)
    add_serve(serve)


def _add_list(listing: ArgumentParser) -> None:
    _add_targets(listing)
    _add_json(listing, "print the JSON that a client receives")


def _add_render(render: ArgumentParser) -> None:
    add = render.add_argument
    add("target", nargs="?", **_TARGET)
    add("name", metavar="NAME", help="the prompt, or the URI of a resource")
    arguments = (
        "an argument, as a client sends it; KEY=@FILE reads the value from a file, KEY=@- from "
        "standard input, and KEY=@@X is the text @X"
    )
    add("arguments", nargs="*", default=[], metavar="KEY=VALUE", help=arguments)
    form = (
        "how to show it: turn by turn, as Markdown, as the JSON that a client receives, or as the JSON "
        "that a vendor of models takes (default: transcript)"
    )
    group = _add_format(render, ("transcript", "markdown", "json", *VENDORS), form)
    request = "print the whole request to a vendor, with the system part and the form of the answer"
    group.add_argument("--request", choices=VENDORS, metavar="VENDOR", help=request)
    promptfoo = "print it as promptfoo wants it, for the variables in the JSON that it appends to a command"
    group.add_argument("--promptfoo", metavar="JSON", help=promptfoo)
    add("--model", metavar="NAME", help="the model that the request names")
    add("--lossy", action="store_true", help="show text in place of what the vendor does not take")
    add("--out", metavar="DIR", help="write images, recordings and other files into this folder, too")
    add("--watch", action="store_true", help="show it again whenever a file changes")
    saved = render.add_mutually_exclusive_group()
    saved.add_argument("--case", metavar="CASE", help="show it for this case, which its author has saved")
    saved.add_argument("--cases", action="store_true", help="show it for each of its cases, under headings")
    typed = "show the text alone for what was typed behind a slash command: standard input up to this line"
    add("--typed", metavar="END", help=typed)
    no_input = "do not ask for missing arguments, not even on a terminal"
    add("--no-input", dest="asks", action="store_false", help=no_input)


def _add_check(check: ArgumentParser) -> None:
    _add_targets(check)
    add = check.add_argument
    clients = "also find what this client cannot show; may be repeated (default: those of the configuration)"
    add("--client", action="append", type=_client, default=[], metavar="NAME", help=clients)
    _add_format(check)
    examples = "also render every prompt, and read every resource, for its examples"
    add("--render", action="store_true", help=examples)
    cache = "also print what all renderings of a prompt begin with: vendors cache that"
    add("--cache", action="store_true", help=cache)
    fail_on = "the least that ends with 1 (default: that of the configuration, else error)"
    add("--fail-on", choices=("error", "warning"), help=fail_on)
    add("--token-file", metavar="FILE", help="also report what is wrong with a file of tokens, as for serve")
    add("--state-keys", metavar="FILE", help="also report what is wrong with a file of keys, as for serve")


def _add_complete(complete: ArgumentParser) -> None:
    add = complete.add_argument
    add("name", metavar="NAME", help="the prompt, or the URI template of a resource")
    add("argument", metavar="ARGUMENT", help="the argument, or the variable")
    add("typed", metavar="TYPED", nargs="?", help="what was typed so far")
    chosen = "another argument that was chosen, written as for render; ARGUMENT=TYPED may stand for TYPED"
    add("arguments", nargs="*", default=[], metavar="KEY=VALUE", help=chosen)
    complete.add_argument("--target", dest="targets", action="append", **_TARGETS)
    _add_json(complete, "print the JSON that a client receives")


#: The URL schemes of editors that open files by URL.
EDITORS: Final = ("cursor", "vscode", "vscode-insiders", "vscodium", "windsurf", "zed")


def _add_dev(dev: ArgumentParser) -> None:
    _add_targets(dev)
    number = "the port of the page; 0 takes one that is free (default: 8137, or one that is free)"
    dev.add_argument("--port", type=_port, metavar="NUMBER", help=number)
    editor = "have places in files open in this editor, by URLs such as vscode://file/..."
    dev.add_argument("--editor", choices=EDITORS, default="", help=editor)
    no_open = "print the address, and open no browser"
    dev.add_argument("--no-open", dest="opens", action="store_false", help=no_open)


def _add_diff(diff: ArgumentParser) -> None:
    revision = (
        "a commit, a branch or a tag (default: HEAD), or two as A..B; this imports the recipes of that "
        "revision, and renders their examples: its code runs as yours does"
    )
    diff.add_argument("revision", nargs="?", default="HEAD", metavar="REF", help=revision)
    diff.add_argument("--target", dest="targets", action="append", **_TARGETS)
    _add_format(diff)
    add = diff.add_argument
    add("--summary", metavar="FILE", help="also append what has changed to this file, as Markdown")
    text = "compare what cases say, word by word, in processes without the variables of this one"
    add("--text", action="store_true", help=text)
    add("--comment", metavar="FILE", help="with --text: also write a comment for a pull request to this file")
    add("--repeat", action="store_true", help="with --text: render twice, to mark what differs by itself")
    variables = "with --text: a variable of the environment that the processes may know; may be repeated"
    add("--env", dest="variables", action="append", default=[], metavar="NAME", help=variables)


def _add_package(package: ArgumentParser) -> None:
    _add_targets(package)
    add = package.add_argument
    add("--name", help="what pip knows it by, and what its command is called (default: that of [project])")
    add("--version", help="its version (default: that of [project], else 0.1.0)")
    add("--description", metavar="TEXT", help="one line that says what it is (default: that of [project])")
    server = "its name in the registry of MCP (default: io.github.OWNER/REPO, as git says)"
    add("--server-name", metavar="NAME", help=server)
    more = "what the recipes need besides [project] dependencies, as in 'httpx>=0.27'; may be repeated"
    add("--require", action="append", default=[], metavar="REQUIREMENT", help=more)
    add("-o", "--out", metavar="DIR", default="dist", help="where the files go (default: dist)")


def _pair(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    refuse_unless(name and equals and value, f"{text!r} has no '=' between two words")
    return name, value


def _field(text: str) -> tuple[str, Any]:
    """Parse a field of a request, ``NAME=JSON``."""
    import json  # only `batch` needs it

    name, value = _pair(text)
    try:
        return name, json.loads(value)
    except ValueError:
        msg = f"{value!r} is no JSON: write text in double quotes, as in '{name}=\"{value}\"'"
        raise ArgumentTypeError(msg) from None


def _count(text: str) -> int:
    """Parse a whole number, 1 or more."""
    refuse_unless(text.isascii() and text.isdecimal() and int(text), f"{text!r} is no number from 1 on")
    return int(text)


def _add_batch(batch: ArgumentParser) -> None:
    add = batch.add_argument
    add("name", nargs="?", metavar="PROMPT", help="the prompt")
    rows = "the table: CSV, JSON lines, Parquet or Arrow; - for standard input"
    add("rows", nargs="?", metavar="ROWS", help=rows)
    vendor = "whose batch interface the files are for; compatible servers read OpenAI's files, too"
    add("--for", dest="vendor", choices=(*VENDORS, "bedrock"), help=vendor)
    add("--model", metavar="NAME", help="the model that requests name")
    add("--target", dest="targets", action="append", **_TARGETS)
    repeated: dict[str, Any] = {"action": "append", "default": []}
    column = "read ARGUMENT from this column; by default from that of its name; may be repeated"
    add("--map", type=_pair, metavar="COLUMN=ARGUMENT", help=column, **repeated)
    value = "one value for all rows, written as for render; may be repeated"
    add("--set", metavar="ARGUMENT=VALUE", help=value, **repeated)
    field = "what else is in each request, as in temperature=0.2; may be repeated"
    add("--field", type=_field, metavar="NAME=JSON", help=field, **repeated)
    key = "the column that identifies rows (default: their number, and a digest)"
    add("--key", metavar="COLUMN", help=key)
    add("-o", "--out", metavar="DIR", default="batch", help="where the files go (default: batch)")
    add("--lossy", action="store_true", help="send text in place of what the vendor does not take")
    add("--workers", type=_count, default=1, metavar="NUMBER", help="how many processes render (default: 1)")
    add("--resume", action="store_true", help="go on with a batch that was not finished")
    add("--dry-run", action="store_true", help="count requests, bytes and tokens, and write nothing")
    join = (
        "print ROWS with their answers, as JSON lines: from the vendor's file of results, or a folder of them"
    )
    add("--join", metavar="RESULTS", help=join)


def _add_import(importing: ArgumentParser) -> None:
    add = importing.add_argument
    formats = ("claude-commands", "gemini-commands", "vscode-prompts")
    add("client_format", metavar="FORMAT", choices=formats, help=f"what the files are: {', '.join(formats)}")
    add("paths", nargs="+", metavar="PATH", help="a file, or a folder with files in it, and below it")
    out = "the folder of recipes, in which nothing is replaced (default: prompts)"
    add("-o", "--out", metavar="FOLDER", default="prompts", help=out)


def _add_export(export: ArgumentParser) -> None:
    add = export.add_argument
    form = (
        "slash commands of Claude Code or Gemini CLI, prompts as skills for Codex, or all prompts and skills"
    )
    add("form", choices=FORMATS, metavar="FORMAT", help=f"{', '.join(FORMATS)}: {form}")
    add("folder", metavar="DIR", help="where the client looks for them, as in .claude/commands")
    add("names", nargs="*", metavar="PROMPT", help="which ones (default: all)")
    add("--target", dest="targets", action="append", **_TARGETS)
    live = "write what runs 'promptkit render', so that all prompts can be written, and none is out of date"
    add("--live", action="store_true", help=live)
    add("--remove", action="store_true", help="remove what was written, if nobody has changed it since")
    add("--dry-run", action="store_true", help="print what would change, and change nothing")


def _add_new(new: ArgumentParser) -> None:
    folder = "where to write (default: the current folder)"
    new.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help=folder)
    skill = "make a skill, which models read, in place of a prompt"
    new.add_argument("--skill", action="store_true", help=skill)
    _add_json(new, "print the files and the next commands as JSON")


def _add_format(
    command: ArgumentParser,
    formats: tuple[str, ...] = ("text", "json", "github"),
    summary: str = _FORMAT_HELP,
) -> "_MutuallyExclusiveGroup":
    """Add ``--format`` and ``--json``; the first format is the default."""
    group = command.add_mutually_exclusive_group()
    group.add_argument("--format", choices=formats, default=formats[0], help=summary)
    group.add_argument(
        "--json", action="store_const", dest="format", const="json", help="short for --format json"
    )
    return group


def _add_json(command: ArgumentParser, summary: str) -> None:
    command.add_argument("--json", action="store_true", help=summary)


def _lazy_adder(module: str, name: str) -> Callable[[ArgumentParser], None]:
    """Return a function that adds the options defined in a module that other commands do not import."""
    return lambda command: getattr(import_module(f"promptkit.cli.{module}"), name)(command, _TARGETS)


_add_install: Final = _lazy_adder("install_options", "add_install")
_add_uninstall: Final = _lazy_adder("install_options", "add_uninstall")

#: The summary of each command, and the function that adds its options to a parser.
COMMANDS: Final[dict[str, tuple[str, Callable[[ArgumentParser], None]]]] = {
    "serve": ("answer an MCP client on standard input and output, or many over HTTP", _add_serve),
    "list": ("show the prompts and their arguments, the resources and the skills", _add_list),
    "render": ("render one prompt and show it", _add_render),
    "check": ("report every fault in the recipes", _add_check),
    "complete": ("show what a client would be offered for an argument", _add_complete),
    "dev": ("show on a page what prompts say, while they are written", _add_dev),
    "diff": ("show what clients would see differently from a git revision", _add_diff),
    "package": ("build a wheel of the recipes, which others install and run by one command", _add_package),
    "batch": ("render a prompt for every row of a table, for a vendor's batch interface", _add_batch),
    "export": ("write prompts as slash commands and skills of clients, or remove these", _add_export),
    "import": ("write recipes from commands and prompt files of other clients", _add_import),
    "new": ("make a folder with one prompt, or one skill, its test and the configuration", _add_new),
    "install": ("put a server of prompts into the configuration of a client, or skills", _add_install),
    "uninstall": ("take a server of prompts, or skills, out of a client", _add_uninstall),
}
