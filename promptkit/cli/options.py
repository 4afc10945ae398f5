"""
The command line: the commands and their options, and what is said of a line that is not understood.

A server waits for this before its first reply, so it looks at no more than the command at hand.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, Final, NoReturn

from promptkit.protocol.limits import Limits
from promptkit.version import VERSION

__all__ = ["LIMITS", "parse"]

_EPILOG: Final = """\
exit codes:
  0    everything is fine
  1    recipes have faults, or a prompt failed
  2    wrong usage: an unknown command, option, target or prompt
  130  interrupted
"""

#: The folders that are looked for, in this order, if no target is named.
_FOLDERS: Final = ("recipes", "prompts")

_TARGET: Final = (
    "a folder of recipes, a file, a module, or module:object (default: the folder recipes, else prompts)"
)

#: More than this is a slip of the keyboard, and more than clocks and counters take.
_MOST: Final = 10**12
_LONGEST: Final = 10**9


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """
    Return what the command line says, with the target that it leaves out.

    Args:
        arguments:
            What stands after the program's name.

    Raises:
        SystemExit: If it asks for help, or cannot be understood.
    """
    if arguments and arguments[0] == "help":
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] not in _COMMANDS:
        return _refuse_command(arguments)
    name, *rest = arguments
    look = _look(name)
    if {"-h", "--help"}.isdisjoint(rest):
        # To ask how wide the terminal is would take as long as all the rest.
        look["formatter_class"] = partial(argparse.RawDescriptionHelpFormatter, width=80)
    command = _Parser(f"promptkit {name}", **look)
    _COMMANDS[name][1](command)
    options = command.parse(rest, argparse.Namespace(command=name, refuse=command.error))
    if name == "render":
        _tell_apart(options)
    options.has_target = options.target is not None
    if not options.has_target:
        options.target = next(filter(os.path.isdir, _FOLDERS), _FOLDERS[0])
    return options


class _Parser(argparse.ArgumentParser):
    """
    Says which option was probably meant, and shows no control character of what was typed.
    """

    def parse(self, arguments: Sequence[str], options: argparse.Namespace) -> argparse.Namespace:
        """
        Return *options* with what *arguments* say; options may stand anywhere among them.
        """
        # Where one word at most is no option, that is so without reading all of it twice.
        has_words = len(self._get_positional_actions()) > 1
        read = self.parse_known_intermixed_args if has_words else self.parse_known_args
        known, unknown = read(arguments, options)
        if unknown:
            word = unknown[0].partition("=")[0]
            is_option = word.startswith("-")
            hint = _meant(word, self._option_string_actions)
            self.error(
                f"unknown option {word!r}{hint}" if is_option else f"{unknown[0]!r} is one word too many"
            )
        return known

    def error(self, message: str) -> NoReturn:
        """
        Say how it is used, and what is wrong. Raises SystemExit.
        """
        from promptkit.fragments.invisible import escaped

        super().error(escaped(message))


def _meant(word: str, words: Sequence[str] | dict[str, Any]) -> str:
    """
    Return which of *words* was probably meant, to be read after what is wrong with *word*.
    """
    from promptkit.errors.exceptions import nearest

    meant = nearest(word, words)
    return f"; did you mean {meant!r}?" if meant else ""


def _refuse_command(arguments: Sequence[str]) -> NoReturn:
    """
    Show the help of the whole program, or say what is wrong with the command. Raises SystemExit.
    """
    parser = _Parser(
        prog="promptkit",
        description="Compile prompts that are written as Python functions, and serve them to MCP clients.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"promptkit {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (summary, _) in _COMMANDS.items():
        commands.add_parser(name, help=summary, **_look(name))
    word = arguments[0] if arguments else ""
    if word and not word.startswith("-"):
        parser.error(f"unknown command {word!r}{_meant(word, _COMMANDS)}")
    _, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.error(f"unknown option {unknown[0]!r}{_meant(unknown[0], ('--help', '--version'))}")
    parser.error(f"name a command: {', '.join(_COMMANDS)}")


def _look(name: str) -> dict[str, Any]:
    """
    Return what the help of a command looks like.
    """
    summary = _COMMANDS[name][0]
    return {
        "description": f"{summary[0].upper()}{summary[1:]}.",
        "epilog": _EPILOG,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _tell_apart(options: argparse.Namespace) -> None:
    """
    Find out which of the words of `render` is the target, if any is.

    Of the words before the first argument, the last is the prompt's name, which never has a ``=``.
    """
    if "=" in options.name:  # argparse took an argument for the name, and the name for the target
        words = [options.name, *options.arguments]
        options.target, options.name, options.arguments = None, options.target, words
    if options.name is None or "=" in options.name:
        options.refuse("the following arguments are required: NAME")


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("target", nargs="?", type=_target, metavar="TARGET", help=_TARGET)


def _add_serve(serve: argparse.ArgumentParser) -> None:
    _add_target(serve)
    serve.add_argument("--strict", action="store_true", help="refuse to serve while any recipe has a fault")
    serve.add_argument(
        "--name",
        type=_name,
        default="promptkit",
        help="what the server calls itself (default: promptkit)",
    )
    serve.add_argument(
        "--no-watch",
        dest="watch",
        action="store_false",
        help="serve the recipes as they are now, whatever becomes of their files",
    )
    serve.add_argument(
        "--no-cache",
        dest="cache",
        action="store_false",
        help="import all recipes before the first answer, and keep nothing on disk",
    )
    serve.add_argument(
        "--page-size",
        type=_whole_number,
        default=100,
        metavar="NUMBER",
        help="how many prompts or resources a page of a list holds (default: 100)",
    )
    serve.add_argument(
        "--grace",
        type=_seconds_or_none,
        default=1.0,
        metavar="SECONDS",
        help="how long running prompts are waited for at the end (default: 1)",
    )
    serve.add_argument(
        "--audit", metavar="FILE", help="write a line of JSON to FILE for each request, without any value"
    )
    limits = serve.add_argument_group(
        "limits", "What goes beyond is refused with an error; the rest is served."
    )
    defaults = Limits()
    for field, (name, type_, what) in LIMITS.items():
        default = getattr(defaults, field)
        limits.add_argument(
            f"--{name}",
            type=type_,
            default=default,
            metavar="SECONDS" if name == "timeout" else "NUMBER",
            help=f"{what} (default: {'none' if default == inf else f'{default:,}'})",
        )


def _add_list(listing: argparse.ArgumentParser) -> None:
    _add_target(listing)
    listing.add_argument("--json", action="store_true", help="as a client receives them")


def _add_render(render: argparse.ArgumentParser) -> None:
    _add_target(render)
    render.add_argument("name", metavar="NAME", help="the prompt")
    render.add_argument(
        "arguments",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="an argument as a client sends it; KEY=@FILE takes what a file holds, KEY=@- what is on "
        "standard input, KEY=@@X is the text @X",
    )
    render.add_argument("--json", action="store_true", help="as a client receives it")


def _add_check(check: argparse.ArgumentParser) -> None:
    _add_target(check)
    check.add_argument("--json", action="store_true", help="for machines")


def _target(text: str) -> str:
    """
    Return *text*, which names something.
    """
    if not text:
        msg = "it is empty: name a folder, a file or a module"
        raise argparse.ArgumentTypeError(msg)
    return text


def _name(text: str) -> str:
    """
    Return *text*, which a client can show.
    """
    if not text.strip():
        msg = "it is empty: a client shows it"
        raise argparse.ArgumentTypeError(msg)
    if not text.isprintable():
        from promptkit.fragments.invisible import escaped

        if escaped(text, one_line=True) != text:
            msg = f"{text!r} has characters that no client can show"
            raise argparse.ArgumentTypeError(msg)
    return text


def _whole_number(text: str) -> int:
    """
    Return the number above zero that *text* stands for.
    """
    # Python itself refuses to read very many digits.
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and 1 <= int(text) <= _MOST):
        msg = f"{text!r} is not a whole number from 1 to {_MOST:,}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _seconds(text: str) -> float:
    """
    Return the number above zero that *text* stands for.
    """
    number = _number(text)
    if not 0 < number <= _LONGEST:
        msg = f"{text!r} is not a number above 0, and up to {_LONGEST:,}"
        raise argparse.ArgumentTypeError(msg)
    return number


def _seconds_or_none(text: str) -> float:
    """
    Return the number that *text* stands for, which may be zero.
    """
    number = _number(text)
    if not 0 <= number <= _LONGEST:
        msg = f"{text!r} is not a number from 0 to {_LONGEST:,}"
        raise argparse.ArgumentTypeError(msg)
    return number


def _number(text: str) -> float:
    """
    Return the number that *text* stands for, -1 if it is none.
    """
    try:
        return float(text)
    except ValueError:
        return -1.0


#: The limits of `serve`, by their names in `Limits`: each option, its type, and what it limits.
LIMITS: Final = {
    "timeout": ("timeout", _seconds, "how long a prompt may take if its author does not say"),
    "renders": ("max-renders", _whole_number, "how many prompts may be rendered beside each other"),
    "line": ("max-line", _whole_number, "how many bytes a request may have"),
    "held": ("max-held", _whole_number, "how many bytes large requests without a reply may have together"),
    "depth": ("max-depth", _whole_number, "how deep the JSON of a request may be nested"),
    "values": ("max-values", _whole_number, "how many values a request, or an argument's text, may hold"),
    "messages": ("max-messages", _whole_number, "how many messages may come as one array"),
    "arguments": ("max-arguments", _whole_number, "how many arguments a request may have"),
    "argument": ("max-argument", _whole_number, "how many characters an argument may have"),
    "reply": ("max-reply", _whole_number, "how many bytes a reply may have"),
    "rate": ("rate", _seconds, "how many requests a second are answered, after as many at once"),
    "completions": ("completion-rate", _seconds, "the same for requests for completion"),
}

#: Each command, a module of this package: what it does, and what adds its arguments.
_COMMANDS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "serve": ("answer an MCP client on standard input and output", _add_serve),
    "list": ("show the prompts and resources, and their arguments", _add_list),
    "render": ("render one prompt and show it", _add_render),
    "check": ("report every fault in the recipes", _add_check),
}
