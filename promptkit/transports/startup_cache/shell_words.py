"""What the shell completes on a key press, when no recipe can be imported: names, URIs and fixed values."""

from collections.abc import Mapping
from typing import Final

import msgspec

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.completion import Completer

__all__ = ["ShellWords", "decoded_words", "encoded_words"]

#: Of an argument with more values, none are kept.
_MAX_VALUES: Final = 10_000


class ShellWords(msgspec.Struct, frozen=True, array_like=True):
    """
    The words of a catalog.

    Args:
        prompts:
            The arguments of each prompt by its name, and the values that are offered for each, unless a
            function says which.

        resources:
            The same of each resource, by its URI or template.
    """

    prompts: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    resources: Mapping[str, Mapping[str, tuple[str, ...]]] = {}


def encoded_words(catalog: Catalog) -> bytes:
    """
    Return the words of *catalog*, for a file.
    """
    words = ShellWords(
        {prompt.name: _values(prompt.arguments) for prompt in catalog.prompts},
        {resource.uri_template: _values(resource.arguments) for resource in catalog.resources},
    )
    return msgspec.msgpack.encode(words)


def decoded_words(data: bytes) -> ShellWords:
    """
    Return what `encoded_words` has encoded.

    Raises:
        MsgspecError: If *data* is something else.
    """
    return msgspec.msgpack.decode(data, type=ShellWords)


def _values(arguments: Arguments) -> dict[str, tuple[str, ...]]:
    return {argument.name: _fixed(argument.completer) for argument in arguments.ordered}


def _fixed(completer: Completer | None) -> tuple[str, ...]:
    """The values of a completer that is no function; without those that no shell can show."""
    if completer is None or not isinstance(completer.source, tuple) or len(completer.source) > _MAX_VALUES:
        return ()
    return tuple(value for value in completer.source if value.isprintable())
