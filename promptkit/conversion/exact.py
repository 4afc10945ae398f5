"""
JSON values to values of a type, as its JSON Schema says, where people who write text mean something else.

Programs send JSON that fits the schema: for ``int | str``, ``"5"`` is text to them, and a number to people.
"""

from typing import Any, get_args

from promptkit.conversion.fast_path import fast_path
from promptkit.conversion.kinds import is_constrained, is_list, is_literal, is_union, plain
from promptkit.conversion.parsing import Read

__all__ = ["exact_read", "is_ambiguous", "json_read"]


def is_ambiguous(annotation: Any) -> bool:
    """
    Return whether the reader of a type may take a JSON value for another one than its schema does.
    """
    annotation = plain(annotation)
    if is_constrained(annotation):
        return is_ambiguous(annotation.__origin__)
    if is_list(annotation):
        return is_ambiguous(get_args(annotation)[0])
    return is_union(annotation) or (is_literal(annotation) and None in get_args(annotation))


def json_read(annotation: Any) -> Read:
    """
    Make the function that takes what the schema of a type takes. It may raise anything for what does not fit.
    """
    if (convert := fast_path(annotation)) is not None:
        return convert
    from promptkit.conversion.structuring import structurer  # cattrs takes longer to import than a start

    return structurer(annotation)


def exact_read(annotation: Any, read: Read) -> Read:
    """
    Make the function that takes a JSON value for what the schema says, and else for what *read* does.
    """
    convert = json_read(annotation)

    def read_exactly(value: Any) -> Any:
        try:
            return convert(value)
        except Exception:  # noqa: BLE001 (an author's class may refuse in any way)
            return read(value)

    return read_exactly
