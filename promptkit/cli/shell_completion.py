"""
Completion in the shell: commands, options, prompts, arguments and values, by argcomplete.

Where a word may be a prompt, a resource or an argument, the recipes are imported.
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

#: Of an argument with more values, the shell completes none.
_MAX_VALUES: Final = 10_000


class ShellWords(Struct, frozen=True):
    """
    The prompts and resources of a catalog, as the shell completes them.

    Args:
        prompts:
            The arguments of each prompt by its name, and the values that are offered for each, unless a
            function says which.

        resources:
            The same of each resource, by its URI or template.
    """

    prompts: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    resources: Mapping[str, Mapping[str, tuple[str, ...]]] = {}

    @classmethod
    def of(cls, catalog: Catalog) -> "ShellWords":
        """
        Return the words of *catalog*.
        """
        return cls(
            {prompt.name: _values(prompt.arguments) for prompt in catalog.prompts},
            {resource.uri_template: _values(resource.arguments) for resource in catalog.resources},
        )


def _values(arguments: Arguments) -> dict[str, tuple[str, ...]]:
    return {argument.name: _fixed(argument.completer) for argument in arguments.ordered}


def _fixed(completer: Completer | None) -> tuple[str, ...]:
    """The values of a completer that is no function; without those that no shell can show."""
    if completer is None or not isinstance(completer.source, tuple) or len(completer.source) > _MAX_VALUES:
        return ()
    return tuple(filter(str.isprintable, completer.source))


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
    return _FILES(prefix) if action.dest in ("out", "audit", "summary", "workspace") else ()


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
    """The words of some targets, whose recipes are imported; none where that fails."""
    line = ["serve", *targets]
    try:
        with capture_output(restore=True):  # a recipe may print
            return ShellWords.of(load_catalog(configure(parse(line), line).targets))
    except (ConfigurationError, LoadError, OSError):
        return ShellWords()
