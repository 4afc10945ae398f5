"""
What the examples of an author come to: arguments that a client may send, and URIs that it may read.

An example that no client could send is left out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.uri_templates import expanded
from promptkit.conversion.unstructuring import can_be_sent, text_of

__all__ = ["example_arguments", "example_texts", "example_uris"]


def example_arguments(arguments: Arguments) -> tuple[dict[str, str], ...]:
    """
    Return what a client sends that enters the examples.

    There are as many as the argument with the most examples has: the first with the first example of
    each argument, the second with the second ones, and the first again where there are no more. An
    optional argument without examples is left out.

    Args:
        arguments:
            The arguments of one prompt.

    Returns:
        Values by argument name, as text; nothing if an argument has neither a default nor an example. A
        prompt whose arguments all have defaults is always sent something: nothing at all, first.
    """
    return tuple({name: text_of(value) for name, value in given.items()} for given in _rounds(arguments))


def example_uris(resource: CompiledResource) -> tuple[str, ...]:
    """
    Return the URIs that a client reads whose variables are the examples.

    Args:
        resource:
            One resource. Without variables it has one URI; of others, as many as `example_arguments` of its
            variables would return.
    """
    return tuple(expanded(resource.uri_template, given) for given in _rounds(resource.arguments))


def example_texts(argument: Argument) -> tuple[str, ...]:
    """Return the examples of one argument as a client sends them."""
    return tuple(map(text_of, _sendable(argument)))


def _sendable(argument: Argument) -> list[Any]:
    return list(filter(can_be_sent, argument.arg.examples))


def _rounds(arguments: Arguments) -> Sequence[Mapping[str, Any]]:
    examples = {argument.name: _sendable(argument) for argument in arguments.ordered}
    # Whether the environment has a value differs from one machine to the next.
    needed = [argument.name for argument in arguments.ordered if not argument.has_default]
    if not all(examples[name] for name in needed):
        return ()
    given = {name: values for name, values in examples.items() if values}
    rounds = range(max(map(len, given.values()), default=0))
    found = [
        {name: values[number] if number < len(values) else values[0] for name, values in given.items()}
        for number in rounds
    ]
    return (*([] if needed else [{}]), *found)
