"""
Completion in the shell: commands, options, prompts, arguments and values, by argcomplete.

Prompts and resources are known from the start-up cache. No recipe is imported while somebody types.
"""

import os
from argparse import Action, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from argcomplete.completers import FilesCompleter
from argcomplete.finders import CompletionFinder
from argcomplete.lexers import split_line
from msgspec import MsgspecError

from promptkit.cli.options import configure, is_argument, options_of, parse, program_parser
from promptkit.compiler.client_profiles import CLIENTS, INSTALLABLE
from promptkit.errors.exceptions import ConfigurationError
from promptkit.transports.read_files import Purpose
from promptkit.transports.shell_words import ShellWords
from promptkit.transports.startup_cache import StartupCache

__all__ = ["complete_and_exit"]

#: The arguments of a prompt, or the variables of a resource, and the values that are offered for each.
_Arguments: TypeAlias = Mapping[str, Sequence[str]]

_FILES: Final = FilesCompleter()
_TARGETS: Final = FilesCompleter(["py"])


def complete_and_exit() -> None:
    """
    Tell the shell what the word at the cursor may become, and end the process.

    The shell says in the environment what was typed, and where it reads the answer.
    """
    finder = CompletionFinder()
    finder(program_parser(), always_complete_options=False, default_completer=_offered)  # type: ignore[arg-type]  # it calls any function


def _offered(*, prefix: str, action: Action, parsed_args: Namespace, **_: object) -> Iterable[str]:
    """What an option or a word may become. argcomplete drops what does not begin as it was typed."""
    command, is_word = parsed_args.command, not action.option_strings
    if action.dest == "client":  # those that have a configuration to write, or all that `check` knows
        return INSTALLABLE if command in ("install", "uninstall") else CLIENTS
    if command == "render" and is_word:
        return _render_word(prefix)
    if command == "complete" and is_word:
        return _complete_word(parsed_args.targets, prefix)
    if action.dest in ("targets", "folder"):
        return [*_TARGETS(prefix), *(_more_clients(command) if action.dest == "targets" else ())]
    return _FILES(prefix) if action.dest in ("out", "audit", "compiled", "summary", "workspace") else ()


def _more_clients(command: str) -> Iterable[str]:
    """The clients, as long as no target stands behind one."""
    if command not in ("install", "uninstall"):
        return ()
    words = _words_before(command)
    return [name for name in INSTALLABLE if name not in words] if INSTALLABLE.keys() >= {*words} else ()


def _render_word(prefix: str) -> Iterator[str]:
    """A word of `render`: which one it is follows from the words before it."""
    words = _words_before("render")
    chosen = [word for word in words if not is_argument(word)]
    if not words:
        yield from _subjects(_known([]))
        yield from _TARGETS(prefix)
        return
    *target, name = chosen[:2]
    prompts = _known(target).prompts
    if name in prompts:
        yield from _arguments(prompts[name], prefix, _keys(words))
    elif words == [name]:  # it is the target
        yield from _subjects(_known([name]))


def _subjects(known: ShellWords) -> Iterator[str]:
    """What can be rendered: prompts, and URIs, of templates the part before their first variable."""
    yield from known.prompts
    yield from dict.fromkeys(uri.partition("{")[0] for uri in known.resources)


def _complete_word(targets: Sequence[str], prefix: str) -> Iterator[str]:
    """A word of `complete`: a prompt or a template, its argument, a value, or what was chosen before."""
    known = _known(targets)
    subjects = {**known.prompts, **{uri: names for uri, names in known.resources.items() if names}}
    match _words_before("complete"):
        case []:
            yield from subjects
        case [name]:
            yield from subjects.get(name, ())
        case [name, argument, *rest]:
            arguments = subjects.get(name, {})
            if all(map(is_argument, rest)):
                yield from arguments.get(argument, ())
            yield from _arguments(arguments, prefix, {argument, *_keys(rest)})


def _arguments(arguments: _Arguments, prefix: str, given: set[str]) -> Iterator[str]:
    key, equals, value = prefix.partition("=")
    if value.startswith("@"):
        yield from (f"{key}=@{file}" for file in _FILES(value.removeprefix("@")))
    elif equals:
        yield from (f"{key}={value}" for value in arguments.get(key, ()))
    else:
        yield from (f"{name}=" for name in arguments if name not in given)


def _keys(words: Iterable[str]) -> set[str]:
    return {word.partition("=")[0] for word in words}


def _words_before(command: str) -> Sequence[str]:
    """The words between the command and the cursor, without options and their values."""
    *_, words, _ = split_line(os.environ["COMP_LINE"], int(os.environ["COMP_POINT"]))
    takes_value = {f"--{name}" for name, action in options_of(command).items() if action.nargs is None}
    found: list[str] = []
    rest = iter(words[words.index(command) + 1 :])
    for word in rest:
        if word in takes_value:
            next(rest, None)
        elif not word.startswith("--"):
            found.append(word)
    return found


def _known(targets: Sequence[str]) -> ShellWords:
    """The words of some targets; none where there is no start-up cache."""
    line = ["serve", *targets]
    usual = parse(line)
    try:
        configured = configure(usual, line)
    except (ConfigurationError, OSError):
        return ShellWords()
    # What is kept depends on how it is served: a client's server need not read the configuration.
    for wanted in dict.fromkeys(
        (one.name, one.page_size, one.tools, one.scopes) for one in (configured, usual)
    ):
        kept = StartupCache.of(Purpose.of(configured.targets, *wanted))
        if kept is not None and kept.found is not None:
            with suppress(MsgspecError):
                return kept.found.words()
    return ShellWords()
