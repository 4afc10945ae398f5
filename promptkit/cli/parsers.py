"""The commands, with their summaries and their options for argparse."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from promptkit.clients.profiles import get_client
from promptkit.preview.editors import EDITORS

if TYPE_CHECKING:
    from argparse import _ArgumentGroup, _MutuallyExclusiveGroup

T = TypeVar("T")

#: The largest number that options accept. Larger numbers are typos, and would overflow counters.
_MAX_NUMBER: Final = 10**12

#: The formats of `render` that belong to vendors. `promptkit.exports` defines them, but is slow to import.
VENDORS: Final = ("openai-chat", "openai-responses", "anthropic", "gemini")


def require(is_valid: object, reason: str) -> None:
    """Raise ArgumentTypeError with *reason*, which argparse prints unchanged, unless *is_valid* is true."""
    if not is_valid:
        raise ArgumentTypeError(reason)


def report_value_error(convert: Callable[[str], T]) -> Callable[[str], T]:
    """Wrap *convert* for argparse, so that users see the message of a ValueError that it raises."""

    def parse(text: str) -> T:
        try:
            return convert(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from None

    return parse


def is_unsigned_number(text: str, max_digits: int) -> bool:
    """Return whether a string consists of at least one and at most *max_digits* digits."""
    return text.isascii() and text.isdigit() and len(text) <= max_digits


def is_port(text: str) -> bool:
    """Return whether a string is a port number from 0 to 65535."""
    return is_unsigned_number(text, max_digits=5) and int(text) <= 65535


def parse_whole_number(text: str) -> int:
    """Parse a whole number that is at least 1."""
    # The length is limited because int() raises its own error for too many digits.
    is_number = is_unsigned_number(text, max_digits=20) and 1 <= int(text) <= _MAX_NUMBER
    require(is_number, f"{text!r} is not a whole number from 1 to {_MAX_NUMBER:,}")
    return int(text)


def _parse_name_and_value(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    require(name and equals and value, f"{text!r} does not have the form NAME=VALUE")
    return name, value


def _parse_target(text: str) -> str:
    """Return the name of a target, which must not be empty. Later code checks that the target exists."""
    require(text, "must not be empty: name a folder, a file or a module")
    return text


def _parse_port(text: str) -> int:
    """Parse a port number; 0 means that a free port is chosen."""
    require(is_port(text), f"{text!r} is not a port: write a number from 0 to 65535")
    return int(text)


@report_value_error
def _parse_client(text: str) -> str:
    """Return the name of a client, which must be one that promptkit supports."""
    get_client(text)
    return text


#: The formats that `export` writes.
FORMATS: Final = ("claude-commands", "gemini-commands", "codex", "skills", "skill-evals")

_TARGET_FORMS: Final = "a folder of recipes, a file, a module, or module:object"
_DEFAULT_TARGET: Final = (
    "(default: the target in [tool.promptkit] of pyproject.toml, or a folder named recipes or prompts)"
)
_TARGET: Final[dict[str, Any]] = {
    "type": _parse_target,
    "metavar": "TARGET",
    "help": f"{_TARGET_FORMS} {_DEFAULT_TARGET}",
}
_TARGETS: Final[dict[str, Any]] = {
    **_TARGET,
    "default": [],
    "help": f"{_TARGET_FORMS}; with PREFIX=TARGET, its prompts are named PREFIX-NAME {_DEFAULT_TARGET}",
}
_REPEATED: Final[dict[str, Any]] = {"action": "append", "default": []}
_FORMAT_HELP: Final = "text, JSON, or annotations for GitHub Actions (default: text)"


def add_targets(parser: ArgumentParser) -> None:
    """Add the targets as positional arguments, and ``--markdown``, to a parser."""
    add_positional_targets(parser)
    add_markdown_option(parser)


def add_positional_targets(parser: ArgumentParser) -> None:
    """Add only the targets, as positional arguments, to a parser."""
    parser.add_argument("targets", nargs="*", **_TARGETS)


def _add_target_options(parser: ArgumentParser) -> None:
    """Add ``--target`` and ``--markdown`` to a parser."""
    parser.add_argument("--target", dest="targets", action="append", **_TARGETS)
    add_markdown_option(parser)


def add_markdown_option(parser: "ArgumentParser | _ArgumentGroup") -> None:
    """Add ``--markdown`` to a parser or a group of options."""
    help_text = "Markdown files in the target to load as prompts, such as 'commands/**/*.md'; can be repeated"
    parser.add_argument("--markdown", metavar="GLOB", help=help_text, **_REPEATED)


def _add_server_options(parser: ArgumentParser, *, help_text: str, environment: bool = True) -> None:
    """Add the options for using another MCP server to a parser."""
    add = parser.add_argument
    add("--server", dest="servers", metavar="COMMAND", type=_parse_target, help=help_text, **_REPEATED)
    header = (
        "an HTTP header to send to a server at a URL; NAME=@FILE reads the value from a file; can be repeated"
    )
    add("--header", dest="headers", metavar="NAME=VALUE", help=header, **_REPEATED)
    if environment:
        variable = (
            "an environment variable for the server; NAME alone passes on its current value; can be repeated"
        )
        add("--env", dest="variables", metavar="NAME[=VALUE]", help=variable, **_REPEATED)


_SERVER_HELP: Final = "use this MCP server instead of recipes: the command that starts it, or its URL"


def _add_list_options(parser: ArgumentParser) -> None:
    add_targets(parser)
    _add_json_option(parser, "print the JSON that a client gets")
    texts = "with --json: also render every saved case, for promptkit diff"
    parser.add_argument("--texts", action="store_true", help=texts)
    _add_server_options(parser, help_text=_SERVER_HELP)


def _add_render_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("target", nargs="?", **_TARGET)
    _add_target_options(parser)
    add("name", metavar="NAME", help="the name of a prompt, or the URI of a resource")
    arguments = (
        "an argument, in the form that a client sends; KEY=@FILE reads the value from a file, KEY=@- "
        "reads it from standard input, and KEY=@@X means the text @X"
    )
    add("arguments", nargs="*", default=[], metavar="KEY=VALUE", help=arguments)
    form = (
        "the output format: a transcript, Markdown, the JSON that a client gets, or the messages for a "
        "vendor's API (default: transcript)"
    )
    group = _add_format_options(parser, ("transcript", "markdown", "json", *VENDORS), form)
    request = "print the whole request for a vendor's API, with the system message and the answer's schema"
    group.add_argument("--request", choices=VENDORS, metavar="VENDOR", help=request)
    promptfoo = (
        "print the messages for promptfoo, rendered with the variables in the JSON that promptfoo "
        "appends to the command"
    )
    group.add_argument("--promptfoo", metavar="JSON", help=promptfoo)
    add("--model", metavar="NAME", help="the model to name in the request")
    add("--lossy", action="store_true", help="convert content that the vendor does not support to text")
    add("--out", metavar="DIR", help="also write images, audio and other files to this folder")
    saved = parser.add_mutually_exclusive_group()
    saved.add_argument("--case", metavar="CASE", help="render this saved case")
    saved.add_argument("--cases", action="store_true", help="render every saved case, each under a heading")
    typed = (
        "print only the text, and read the arguments of a slash command from standard input, up to the line "
        "END"
    )
    add("--typed", metavar="END", help=typed)
    _add_server_options(parser, help_text=_SERVER_HELP)


def _add_check_options(parser: ArgumentParser) -> None:
    add_targets(parser)
    add = parser.add_argument
    clients = (
        "also report content that this client does not support; can be repeated (default: the "
        "configured clients)"
    )
    add("--client", type=_parse_client, metavar="NAME", help=clients, **_REPEATED)
    _add_format_options(parser)
    examples = "also render every prompt, and read every resource, with their examples"
    add("--render", action="store_true", help=examples)
    max_tokens = (
        "like --render, and also report renderings with more than this many tokens, estimated at 4 "
        "characters each"
    )
    add("--max-tokens", type=parse_whole_number, metavar="NUMBER", help=max_tokens)
    fail_on = "the lowest severity that makes check exit with 1 (default: the configured one, or error)"
    add("--fail-on", choices=("error", "warning"), help=fail_on)
    add("--token-file", metavar="FILE", help="also check this token file for serve")
    add("--state-keys", metavar="FILE", help="also check this key file for serve")
    _add_server_options(parser, help_text=_SERVER_HELP)


def _add_complete_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("name", metavar="NAME", help="the name of a prompt, or the URI template of a resource")
    add("argument", metavar="ARGUMENT", help="the argument of the prompt, or the variable of the template")
    add("typed", metavar="TYPED", nargs="?", help="the text typed so far")
    chosen = "the value of another argument, written as for render"
    add("arguments", nargs="*", default=[], metavar="KEY=VALUE", help=chosen)
    _add_target_options(parser)
    _add_json_option(parser, "print the JSON that a client gets")


def _add_dev_options(parser: ArgumentParser) -> None:
    add_targets(parser)
    number = "the port of the preview; 0 picks a free port (default: 8137, or a free port if 8137 is in use)"
    parser.add_argument("--port", type=_parse_port, metavar="NUMBER", help=number)
    editor = "open source locations in this editor, with URLs such as vscode://file/..."
    parser.add_argument("--editor", choices=EDITORS, default="", help=editor)
    mcp = (
        "instead of the preview, serve tools to a coding agent over stdio, which list, check and render "
        "prompts, and explain codes"
    )
    parser.add_argument("--mcp", action="store_true", help=mcp)
    no_open = "print the address without opening a browser"
    parser.add_argument("--no-open", dest="opens", action="store_false", help=no_open)
    _add_server_options(parser, help_text=_SERVER_HELP)


def _add_diff_options(parser: ArgumentParser) -> None:
    revision = (
        "a commit, branch or tag (default: HEAD), or a range A..B; the code of that revision "
        "is imported and run like your own"
    )
    parser.add_argument("revision", nargs="?", default="HEAD", metavar="REF", help=revision)
    _add_target_options(parser)
    _add_format_options(parser)
    add = parser.add_argument
    add("--summary", metavar="FILE", help="also append the changes to this file, as Markdown")
    text = (
        "compare the renderings of saved cases word by word; cases are rendered without most of your "
        "environment variables"
    )
    add("--text", action="store_true", help=text)
    repeat = "with --text: render twice, to mark text that differs between renderings"
    add("--repeat", action="store_true", help=repeat)
    variables = "with --text or --server: pass on this environment variable; can be repeated"
    add("--env", dest="variables", metavar="NAME", help=variables, **_REPEATED)
    servers = (
        "compare this MCP server with a second --server, or with REF, a file that promptkit list "
        "--json --texts wrote"
    )
    _add_server_options(parser, help_text=servers, environment=False)


def _add_package_options(parser: ArgumentParser) -> None:
    add_targets(parser)
    add = parser.add_argument
    add("--name", help="the name of the package and of its command (default: the one in [project])")
    add("--version", help="the version of the package (default: the one in [project], or 0.1.0)")
    add("--description", metavar="TEXT", help="a one-line summary (default: the one in [project])")
    server = "the name in the MCP registry (default: io.github.OWNER/REPO, from the git remote)"
    add("--server-name", metavar="NAME", help=server)
    more = "a requirement in addition to [project] dependencies, such as 'httpx>=0.27'; can be repeated"
    add("--require", metavar="REQUIREMENT", help=more, **_REPEATED)
    add(
        "--mcpb",
        action="store_true",
        help="also write NAME-VERSION.mcpb, a bundle that Claude Desktop can install",
    )
    plugin = "also write NAME-plugin, a plugin for Claude Code with the server, skills and commands"
    add("--plugin", action="store_true", help=plugin)
    add("-o", "--out", metavar="DIR", default="dist", help="the output folder (default: dist)")


def _parse_field(text: str) -> tuple[str, Any]:
    """Parse ``NAME=JSON``, a field of a request."""
    import json  # only `batch` needs it

    name, value = _parse_name_and_value(text)
    try:
        return name, json.loads(value)
    except ValueError:
        msg = f"{value!r} is not valid JSON: write text in double quotes, for example '{name}=\"{value}\"'"
        raise ArgumentTypeError(msg) from None


def _parse_delimiter(text: str) -> str:
    """Parse the delimiter of a table."""
    character = "\t" if text in ("tab", "\\t") else text
    is_delimiter = len(character) == 1 and character not in '\r\n\0"'
    require(is_delimiter, f"{text!r} is not a delimiter: write one character, or the word tab")
    return character


def _add_batch_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("name", nargs="?", metavar="PROMPT", help="the name of the prompt")
    rows = "the table: CSV, JSON, JSON Lines, Parquet or Arrow; - for standard input"
    add("rows", metavar="ROWS", help=rows)
    delimiter = "the delimiter of a CSV table, or the word tab (default: detected from the header)"
    add("--delimiter", type=_parse_delimiter, metavar="CHARACTER", help=delimiter)
    vendor = "the vendor whose batch API to use; OpenAI-compatible servers accept OpenAI's format"
    add("--for", dest="vendor", choices=(*VENDORS, "bedrock"), help=vendor)
    add("--model", metavar="NAME", help="the model to name in the requests")
    _add_target_options(parser)
    column = "read ARGUMENT from this column (default: the column of the same name); can be repeated"
    add("--map", type=_parse_name_and_value, metavar="COLUMN=ARGUMENT", help=column, **_REPEATED)
    value = "set an argument for all rows, written as for render; can be repeated"
    add("--set", metavar="ARGUMENT=VALUE", help=value, **_REPEATED)
    field = "add a field to every request, for example temperature=0.2; can be repeated"
    add("--field", type=_parse_field, metavar="NAME=JSON", help=field, **_REPEATED)
    key = "the column that identifies each row (default: the row's number and a digest)"
    add("--key", metavar="COLUMN", help=key)
    add("-o", "--out", metavar="DIR", default="batch", help="the folder of the batch (default: batch)")
    add("--lossy", action="store_true", help="convert content that the vendor does not support to text")
    workers = "the number of processes that render rows (default: 1)"
    add("--workers", type=parse_whole_number, default=1, metavar="NUMBER", help=workers)
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument("--resume", action="store_true", help="continue an unfinished batch")
    existing.add_argument("--force", action="store_true", help="replace the batch in the output folder")
    add("--dry-run", action="store_true", help="count requests, bytes and tokens without writing anything")
    join = (
        "print ROWS with their answers as JSON Lines; RESULTS is the vendor's result file, or a folder of "
        "result files"
    )
    add("--join", metavar="RESULTS", help=f"{join}; name PROMPT to parse the answers")


def _add_import_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    formats = ("claude-commands", "gemini-commands", "vscode-prompts")
    form = f"the format of the files: {', '.join(formats)}"
    add("client_format", metavar="FORMAT", choices=formats, help=form)
    add("paths", nargs="+", metavar="PATH", help="a file, or a folder that is searched recursively")
    out = "the folder for the recipes; existing files are kept (default: prompts)"
    add("-o", "--out", metavar="FOLDER", default="prompts", help=out)


def _add_export_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    form = (
        "slash commands for Claude Code or Gemini CLI, prompts as skills for Codex, all prompts and skills "
        "as skills, or the cases of skills as evals"
    )
    add("form", choices=FORMATS, metavar="FORMAT", help=f"{', '.join(FORMATS)}: {form}")
    add("folder", metavar="DIR", help="the folder that the client reads, such as .claude/commands")
    add("names", nargs="*", metavar="PROMPT", help="the prompts to write (default: all)")
    _add_target_options(parser)
    live = (
        "write files that run 'promptkit render': all prompts are supported, and the files never get "
        "out of date"
    )
    add("--live", action="store_true", help=live)
    value = "freeze an argument at this value instead of its default, written as for render; can be repeated"
    add("--set", metavar="ARGUMENT=VALUE", help=value, **_REPEATED)
    lossy = (
        "write a file even if the prompt fences, truncates or indents typed text, which the file cannot do"
    )
    add("--lossy", action="store_true", help=lossy)
    add("--remove", action="store_true", help="remove the files written earlier, except changed ones")
    add("--dry-run", action="store_true", help="print the changes without making them")


def _add_new_options(parser: ArgumentParser) -> None:
    folder = "the folder of the project (default: the current folder)"
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help=folder)
    kind = parser.add_mutually_exclusive_group()
    skill = "create a skill instead of a prompt"
    kind.add_argument("--skill", action="store_true", help=skill)
    markdown = "create a prompt in a Markdown file, without Python"
    kind.add_argument("--markdown", action="store_true", help=markdown)
    docker = "also write a Dockerfile; in an existing project, write only the files for Docker"
    parser.add_argument("--docker", action="store_true", help=docker)
    _add_json_option(parser, "print the created files and the next commands as JSON")


def _add_format_options(
    parser: ArgumentParser,
    formats: tuple[str, ...] = ("text", "json", "github"),
    help_text: str = _FORMAT_HELP,
) -> "_MutuallyExclusiveGroup":
    """Add ``--format`` and ``--json``; the first format is the default."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--format", choices=formats, default=formats[0], help=help_text)
    group.add_argument(
        "--json", action="store_const", dest="format", const="json", help="short for --format json"
    )
    return group


def _add_json_option(parser: ArgumentParser, help_text: str) -> None:
    parser.add_argument("--json", action="store_true", help=help_text)


def _add_serve_options(parser: ArgumentParser) -> None:
    import_module("promptkit.cli.serve").add_options(parser)  # other commands do not import it


def _add_install_options(parser: ArgumentParser) -> None:
    import_module("promptkit.cli.install").add_install_options(parser)


def _add_uninstall_options(parser: ArgumentParser) -> None:
    import_module("promptkit.cli.install").add_uninstall_options(parser)


#: The usage text for the positional arguments of each command whose arguments are not only targets.
POSITIONAL_USAGE: Final = {
    "render": "[TARGET] NAME [KEY=VALUE ...]",
    "complete": "NAME ARGUMENT [TYPED] [KEY=VALUE ...]",
    "diff": "[REF]",
    "batch": "[PROMPT] ROWS",
    "export": "FORMAT DIR [PROMPT ...]",
    "import": "FORMAT PATH [PATH ...]",
    "new": "[FOLDER]",
    "install": "[CLIENT ...] [TARGET ...] [-- OPTION ...]",
    "uninstall": "[CLIENT ...] [TARGET ...]",
}

#: The summary of each command, and the function that adds its options to a parser.
COMMANDS: Final[dict[str, tuple[str, Callable[[ArgumentParser], None]]]] = {
    "serve": (
        "serve the recipes to an MCP client over stdio, or to many clients over HTTP",
        _add_serve_options,
    ),
    "list": ("list the prompts with their arguments, the resources and the skills", _add_list_options),
    "render": ("render a prompt and print it", _add_render_options),
    "check": ("report every problem in the recipes", _add_check_options),
    "complete": ("show the completions that a client gets for an argument", _add_complete_options),
    "dev": ("preview the prompts in a browser while you write them", _add_dev_options),
    "diff": ("show what changed for clients since a git revision", _add_diff_options),
    "package": (
        "build a wheel of the recipes that others can install and run with one command",
        _add_package_options,
    ),
    "batch": ("render a prompt for every row of a table, for a vendor's batch API", _add_batch_options),
    "export": ("write prompts as slash commands or skills for clients, or remove them", _add_export_options),
    "import": ("write recipes from the slash commands and prompt files of clients", _add_import_options),
    "new": ("create a project with a prompt or a skill, its test and the configuration", _add_new_options),
    "install": ("add this prompt server, or its skills, to an MCP client", _add_install_options),
    "uninstall": ("remove a prompt server, or its skills, from an MCP client", _add_uninstall_options),
}
