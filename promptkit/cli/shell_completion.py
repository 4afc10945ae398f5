"""
Shell completion with argcomplete, for commands, options, prompts, arguments and values.

To complete the arguments of `render`, the recipes are imported.
"""

import os
from argparse import Action, Namespace
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from argcomplete.completers import FilesCompleter
from argcomplete.finders import CompletionFinder
from argcomplete.lexers import split_line

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.cli.loading import load_catalog
from promptkit.cli.options import configure, create_program_parser, is_argument, options_of, parse
from promptkit.cli.output import capture_output
from promptkit.clients.profiles import CLIENTS, INSTALLABLE
from promptkit.errors.exceptions import ConfigurationError, LoadError

_FILES: Final = FilesCompleter()
_TARGETS: Final = FilesCompleter(["py"])


def complete_and_exit() -> None:
    """
    Print the completions for the word at the cursor, and exit the process.

    The shell passes the command line, and the descriptor to write to, in environment variables.
    """
    finder = CompletionFinder()
    finder(create_program_parser(), always_complete_options=False, default_completer=_complete)  # type: ignore[arg-type]  # it accepts any function


def _complete(*, prefix: str, action: Action, parsed_args: Namespace, **_: object) -> Iterable[str]:
    """Return completions for an option or a positional argument; argcomplete filters them by the prefix."""
    command, is_word = parsed_args.command, not action.option_strings
    if action.dest == "client":  # clients whose configuration can be written, or all clients for `check`
        return INSTALLABLE if command in ("install", "uninstall") else CLIENTS
    if command == "render" and is_word:
        return _complete_render_argument(parsed_args.targets, prefix)
    if action.dest in ("targets", "folder"):
        takes_client = command in ("install", "uninstall")
        return [*_TARGETS(prefix), *(INSTALLABLE if takes_client else ())]
    return _FILES(prefix) if action.dest in ("out", "audit", "summary", "workspace") else ()


def _complete_render_argument(targets: Sequence[str], prefix: str) -> Iterator[str]:
    """Yield completions for a positional argument of `render`, which depend on what precedes it."""
    words = _words_before_cursor()
    if not words:
        yield from _complete_names(targets)
        yield from () if targets else _TARGETS(prefix)
        return
    *target, name = [word for word in words if not is_argument(word)][:2]
    catalog = _load_catalog(target or targets)
    if name in catalog:
        used = {word.partition("=")[0] for word in words}
        yield from _complete_arguments(catalog[name].arguments, prefix, used)
    elif words == [name] and not targets:  # the word is the target
        yield from _complete_names([name])


def _complete_names(targets: Sequence[str]) -> Iterator[str]:
    """Yield completions for NAME: prompt names, URIs, and URI templates up to their first variable."""
    catalog = _load_catalog(targets)
    yield from catalog
    yield from dict.fromkeys(resource.uri_template.partition("{")[0] for resource in catalog.resources)


def _complete_arguments(arguments: Arguments, prefix: str, used: set[str]) -> Iterator[str]:
    key, equals, value = prefix.partition("=")
    if value.startswith("@"):
        yield from (f"{key}=@{file}" for file in _FILES(value.removeprefix("@")))
    elif equals:
        yield from (f"{key}={value}" for value in _completion_values(arguments, key))
    else:
        yield from (f"{name}=" for name in arguments.by_name if name not in used)


def _completion_values(arguments: Arguments, name: str) -> Sequence[str]:
    """Return the printable values of an argument; empty if a function computes its completions."""
    completer = arguments.by_name[name].completer if name in arguments.by_name else None
    source = None if completer is None else completer.source
    return list(filter(str.isprintable, source)) if isinstance(source, tuple) else ()


def _words_before_cursor() -> Sequence[str]:
    """Return the words between `render` and the cursor, without options or their values."""
    *_, words, _ = split_line(os.environ["COMP_LINE"], int(os.environ["COMP_POINT"]))
    takes_value = {f"--{name}" for name, action in options_of("render").items() if action.nargs is None}
    before: list[str] = []
    remaining = iter(words[words.index("render") + 1 :])
    for word in remaining:
        if word in takes_value:
            next(remaining, None)
        elif not word.startswith("--"):
            before.append(word)
    return before


def _load_catalog(targets: Sequence[str]) -> Catalog:
    """Import the recipes at *targets*, and return their catalog; return an empty one if that fails."""
    line = ["serve", *targets]
    try:
        with capture_output(restore=True):  # a recipe can print
            return load_catalog(configure(parse(line), line).targets)
    except (ConfigurationError, LoadError, OSError):
        return Catalog()
