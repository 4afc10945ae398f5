"""
Shell completion with argcomplete, for commands, options, prompts, arguments and values.

Where a word can be a prompt, a resource or an argument, the recipes are imported.
"""

import os
from argparse import Action, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from argcomplete.completers import FilesCompleter
from argcomplete.finders import CompletionFinder
from argcomplete.lexers import split_line
from msgspec import Struct

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.completion import Completer
from promptkit.cli.loading import load_catalog
from promptkit.cli.options import configure, is_argument, options_of, parse, program_parser
from promptkit.cli.output import capture_output
from promptkit.clients.profiles import CLIENTS, INSTALLABLE
from promptkit.errors.exceptions import ConfigurationError, LoadError

#: Arguments with more values than this are not completed.
_MAX_VALUES: Final = 10_000


class ShellWords(Struct, frozen=True):
    """
    The words that the shell completes for a catalog.

    Args:
        prompts:
            The arguments of each prompt by its name, with the values of each; no values if a function
            completes them.

        resources:
            The variables of each resource by its URI or template, in the same form.
    """

    prompts: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    resources: Mapping[str, Mapping[str, tuple[str, ...]]] = {}

    @classmethod
    def of(cls, catalog: Catalog) -> "ShellWords":
        """Return the words of *catalog*."""
        return cls(
            {prompt.name: _values(prompt.arguments) for prompt in catalog.prompts},
            {resource.uri_template: _values(resource.arguments) for resource in catalog.resources},
        )


def _values(arguments: Arguments) -> dict[str, tuple[str, ...]]:
    return {argument.name: _fixed_values(argument.completer) for argument in arguments.ordered}


def _fixed_values(completer: Completer | None) -> tuple[str, ...]:
    """Return the printable values of a completer, unless it is a function or has too many."""
    if completer is None or not isinstance(completer.source, tuple) or len(completer.source) > _MAX_VALUES:
        return ()
    return tuple(filter(str.isprintable, completer.source))


#: The arguments of a prompt, or the variables of a resource, with the values of each.
_Arguments: TypeAlias = Mapping[str, Sequence[str]]

_FILES: Final = FilesCompleter()
_TARGETS: Final = FilesCompleter(["py"])


def complete_and_exit() -> None:
    """
    Print the completions for the word at the cursor, and end the process.

    The environment contains the command line, and the descriptor for the completions.
    """
    finder = CompletionFinder()
    finder(program_parser(), always_complete_options=False, default_completer=_completions)  # type: ignore[arg-type]  # it calls any function


def _completions(*, prefix: str, action: Action, parsed_args: Namespace, **_: object) -> Iterable[str]:
    """Return completions for an option or a word; argcomplete filters them by the prefix."""
    command, is_word = parsed_args.command, not action.option_strings
    if action.dest == "client":  # clients with a configuration to write, or all that `check` knows
        return INSTALLABLE if command in ("install", "uninstall") else CLIENTS
    if command == "render" and is_word:
        return _render_word(prefix)
    if command == "complete" and is_word:
        return _complete_word(parsed_args.targets, prefix)
    if action.dest in ("targets", "folder"):
        return [*_TARGETS(prefix), *(_client_names(command) if action.dest == "targets" else ())]
    return _FILES(prefix) if action.dest in ("out", "audit", "summary", "workspace") else ()


def _client_names(command: str) -> Iterable[str]:
    """Return the clients, unless a target comes before the cursor."""
    if command not in ("install", "uninstall"):
        return ()
    words = _words_before(command)
    return [name for name in INSTALLABLE if name not in words] if INSTALLABLE.keys() >= {*words} else ()


def _render_word(prefix: str) -> Iterator[str]:
    """Yield completions for a word of `render`, depending on the words before it."""
    words = _words_before("render")
    chosen = [word for word in words if not is_argument(word)]
    if not words:
        yield from _subjects(_load_words([]))
        yield from _TARGETS(prefix)
        return
    *target, name = chosen[:2]
    prompts = _load_words(target).prompts
    if name in prompts:
        yield from _arguments(prompts[name], prefix, _keys(words))
    elif words == [name]:  # the word is the target
        yield from _subjects(_load_words([name]))


def _subjects(known: ShellWords) -> Iterator[str]:
    """Yield what `render` accepts: prompts, URIs, and templates up to their first variable."""
    yield from known.prompts
    yield from dict.fromkeys(uri.partition("{")[0] for uri in known.resources)


def _complete_word(targets: Sequence[str], prefix: str) -> Iterator[str]:
    """Yield completions for a word of `complete`: a name, its argument, a value, or another argument."""
    known = _load_words(targets)
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


def _arguments(arguments: _Arguments, prefix: str, used: set[str]) -> Iterator[str]:
    key, equals, value = prefix.partition("=")
    if value.startswith("@"):
        yield from (f"{key}=@{file}" for file in _FILES(value.removeprefix("@")))
    elif equals:
        yield from (f"{key}={value}" for value in arguments.get(key, ()))
    else:
        yield from (f"{name}=" for name in arguments if name not in used)


def _keys(words: Iterable[str]) -> set[str]:
    return {word.partition("=")[0] for word in words}


def _words_before(command: str) -> Sequence[str]:
    """Return the words between the command and the cursor, without options and their values."""
    *_, words, _ = split_line(os.environ["COMP_LINE"], int(os.environ["COMP_POINT"]))
    takes_value = {f"--{name}" for name, action in options_of(command).items() if action.nargs is None}
    before: list[str] = []
    remaining = iter(words[words.index(command) + 1 :])
    for word in remaining:
        if word in takes_value:
            next(remaining, None)
        elif not word.startswith("--"):
            before.append(word)
    return before


def _load_words(targets: Sequence[str]) -> ShellWords:
    """Import the recipes of targets, and return their words; none if that fails."""
    line = ["serve", *targets]
    try:
        with capture_output(restore=True):  # a recipe can print
            return ShellWords.of(load_catalog(configure(parse(line), line).targets))
    except (ConfigurationError, LoadError, OSError):
        return ShellWords()
