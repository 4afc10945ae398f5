"""
Completion in the shell: commands, options, prompts, arguments and values, by argcomplete.

Prompts are known from the start-up cache. No recipe is imported while somebody types.
"""

import os
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, TypeAlias

import msgspec
from argcomplete.completers import BaseCompleter, FilesCompleter
from argcomplete.finders import CompletionFinder
from argcomplete.lexers import split_line
from msgspec import UNSET

from promptkit.cli.configured import configure
from promptkit.cli.options import options_of, parse
from promptkit.cli.program import program_parser
from promptkit.cli.words import is_argument
from promptkit.errors.exceptions import ConfigurationError
from promptkit.protocol.revisions import LATEST_HANDSHAKE
from promptkit.transports.startup_cache.compiled_set import CompiledSet
from promptkit.transports.startup_cache.store import Listings

__all__ = ["complete_and_exit"]

#: The JSON Schema of a prompt's arguments.
_Schema: TypeAlias = Mapping[str, Any]

_FILES: Final = FilesCompleter()
_TARGETS: Final = FilesCompleter(["py"])


def complete_and_exit() -> None:
    """
    Tell the shell what the word at the cursor may become, and end the process.

    The shell says in the environment what was typed, and where it reads the answer.
    """
    CompletionFinder()(program_parser(), always_complete_options=False, default_completer=_Words())


class _Words(BaseCompleter):
    """What an option or a word may become. argcomplete drops what does not begin as it was typed."""

    def __call__(
        self,
        *,
        prefix: str,
        action: Action,
        parser: ArgumentParser,  # noqa: ARG002 (argcomplete passes it)
        parsed_args: Namespace,
    ) -> Iterable[str]:
        if action.dest == "client":
            from promptkit.compiler.lints.client_profiles import CLIENTS

            return CLIENTS
        if parsed_args.command == "render" and not action.option_strings:
            return _render_word(prefix)
        if parsed_args.command == "complete" and not action.option_strings:
            return _complete_word(parsed_args, action.dest)
        if action.dest == "target":
            return _TARGETS(prefix)
        return _FILES(prefix) if action.dest in ("out", "audit") else ()


def _render_word(prefix: str) -> Iterator[str]:
    """A word of `render`: which one it is follows from the words before it."""
    words = _words_before("render")
    chosen = [word for word in words if not is_argument(word)]
    if not words:
        yield from _prompts(None)
        yield from _TARGETS(prefix)
        return
    *target, name = chosen[:2]
    schema = _prompts(target[0] if target else None).get(name)
    if schema is not None:
        yield from _arguments(schema, prefix, {word.partition("=")[0] for word in words})
    elif words == [name]:  # it is the target
        yield from _prompts(name)


def _complete_word(options: Namespace, word: str) -> Iterable[str]:
    prompts = _prompts(options.target)
    if word == "name":
        return prompts
    schema = prompts.get(options.name, {})
    if word == "argument":
        return _properties(schema)
    return _values(schema, options.argument)


def _arguments(schema: _Schema, prefix: str, given: set[str]) -> Iterator[str]:
    key, equals, _ = prefix.partition("=")
    if equals:
        yield from (f"{key}={value}" for value in _values(schema, key))
    else:
        yield from (f"{name}=" for name in _properties(schema) if name not in given)


def _properties(schema: _Schema) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    return properties


def _values(schema: _Schema, argument: str) -> Iterator[str]:
    """The values of an argument, if they are few and known."""
    waiting = [_properties(schema).get(argument, {})]
    while waiting:
        type_ = waiting.pop(0)
        waiting += type_.get("anyOf", ())
        if "$ref" in type_:
            waiting.append(schema["$defs"][type_["$ref"].rpartition("/")[2]])
        values = (True, False) if type_.get("type") == "boolean" else type_.get("enum", ())
        yield from (
            value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in values
        )


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


def _prompts(target: str | None) -> Mapping[str, _Schema]:
    """The prompts of a target, and the schemas of their arguments; none where there is no start-up cache."""
    line = ["serve"] if target is None else ["serve", target]
    usual = parse(line)
    try:
        configured = configure(usual, line)
    except (ConfigurationError, OSError):
        return {}
    # What is kept depends on how it is served: a client's server need not read the configuration.
    for name, page_size in dict.fromkeys((one.name, one.page_size) for one in (configured, usual)):
        kept = CompiledSet.of(configured.target, name, page_size)
        if kept is not None and kept.found is not None:
            with closing(kept.found) as listings:
                return {prompt["name"]: _schema_of(prompt) for prompt in _listed(listings)}
    return {}


def _listed(listings: Listings) -> Iterator[dict[str, Any]]:
    cursor = UNSET
    while (page := listings.page("prompts/list", LATEST_HANDSHAKE.date, cursor)) is not None:
        result = msgspec.json.decode(page)
        yield from result["prompts"]
        cursor = result.get("nextCursor", UNSET)
        if cursor is UNSET:
            return


def _schema_of(prompt: Mapping[str, Any]) -> _Schema:
    schema: _Schema = prompt.get("_meta", {}).get("promptkit/arguments", {})
    return schema
