"""The words that the shell completes: prompts, resources, their arguments, and the values of these."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.completion import Completer

__all__ = ["ShellWords"]

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
