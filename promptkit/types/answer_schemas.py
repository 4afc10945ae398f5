"""The form of an answer: the JSON Schema of a type that a model is asked for."""

from typing import Any, get_args

from promptkit.types.definitions import Definitions
from promptkit.types.readers import reader_of
from promptkit.types.schemas import type_schema

__all__ = ["answer_name", "answer_schema"]


def answer_schema(answer: Any, *, outlined: bool = False) -> dict[str, Any]:
    """
    Return the JSON Schema of a type.

    Args:
        answer:
            The type.

        outlined:
            Whether it is made for an outline: arrays say which of their items stands where, which not every
            vendor takes, and descriptions do not repeat what the outline shows.

    Raises:
        TypeError: If it is no type that promptkit reads.
    """
    try:
        reader = reader_of(answer)
    except Exception:  # noqa: BLE001 (what is no type may raise anything while it is looked at)
        reader = None
    if reader is None:
        shown = str(answer) if get_args(answer) else answer_name(answer)
        msg = (
            f"{shown} cannot be the type of an answer: use a dataclass, a class of attrs or "
            "msgspec, a TypedDict, a list, a Literal, an Enum, text or a number"
        )
        raise TypeError(msg)
    definitions = Definitions({}, places=outlined, brief=outlined)
    schema, form = type_schema(answer, definitions)
    schemas = definitions.schemas
    if "$ref" in schema:  # a class that holds itself
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    said = {} if outlined or not form else {"description": form}
    return {**said, **schema} | ({"$defs": schemas} if schemas else {})


def answer_name(answer: Any) -> str:
    """Return what a type is called."""
    return getattr(answer, "__name__", str(answer))
