"""What the examples of a prompt's author come to: arguments that a client may send, as they show."""

from promptkit.catalog.arguments import Arguments
from promptkit.conversion.unstructuring import text_of

__all__ = ["example_arguments"]


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

    Raises:
        TypeError: If an example is of a type that cannot be written.
    """
    examples = {argument.name: argument.arg.examples for argument in arguments.ordered}
    # Whether the environment has a value differs from one machine to the next.
    needed = [argument.name for argument in arguments.ordered if not argument.has_default]
    if not all(examples[name] for name in needed):
        return ()
    given = {name: [text_of(value) for value in values] for name, values in examples.items() if values}
    rounds = range(max(map(len, given.values()), default=0))
    found = [
        {name: texts[number] if number < len(texts) else texts[0] for name, texts in given.items()}
        for number in rounds
    ]
    return (*([] if needed else [{}]), *found)
