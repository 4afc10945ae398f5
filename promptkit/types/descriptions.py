"""
Descriptions of types in words, and example values.

Choices are listed in the author's order.
"""

from collections.abc import Iterable
from functools import partial
from types import NoneType
from typing import Any, Final, get_args, get_origin

import msgspec

from promptkit.types.choices import describe_names, meaning_of
from promptkit.types.constraints import describe_length
from promptkit.types.kinds import (
    is_enum,
    is_literal,
    is_mapping,
    is_named_tuple,
    is_record,
    is_sequence,
    is_union,
    members_of,
    members_of_record,
    split_constraints,
    surrogate_of,
    tag_of,
)
from promptkit.types.scalar_types import scalar_of
from promptkit.types.unstructuring import json_of

#: The maximum depth of an example, so that examples of recursive types are finite.
_MAX_DEPTH: Final = 4


def join_description(words: str | None, clauses: Iterable[str]) -> str:
    """Return an author's description, if any, followed by details in parentheses."""
    details = "; ".join(filter(None, clauses))
    return f"{words} ({details})" if words and details else words or details


def example_clause(examples: Iterable[str]) -> str:
    """Introduce the author's examples with "for example"; return ``""`` if there are none."""
    words = ", ".join(examples)
    return words and f"for example {words}"


def default_clause(variable: str | None, values: Iterable[str]) -> str:
    """Describe a default that comes from an environment variable, a value, or both; ``""`` for neither."""
    sources = [f"from ${variable}", *values] if variable else [*values]
    return f"default {', else '.join(sources)}" if sources else ""


def describe_type(annotation: Any, *, with_meanings: bool = False) -> str:
    """
    Describe the valid values of a type, for use at the end of a sentence: ``a whole number of at least 1``.

    Args:
        annotation:
            The type.

        with_meanings:
            Whether to add the meaning of each choice.
    """
    describe = partial(describe_type, with_meanings=with_meanings)
    kind, limits = split_constraints(annotation)
    words = "a value"
    if (scalar := scalar_of(kind)) is not None:
        words = scalar.describe(limits)
    elif (surrogate := surrogate_of(kind)) is not None:
        words = surrogate.expected
    elif is_literal(kind) or is_enum(kind):
        words = describe_choices(get_args(kind) or kind, with_meanings=with_meanings)
    elif is_union(kind):
        words = " or ".join(dict.fromkeys(map(describe, members_of(kind))))
    elif is_mapping(kind):
        part = describe((*get_args(kind), Any, Any)[1])
        words = f"a JSON object{describe_length(limits, 'members')}"
        words += "" if part == "a value" else f", each value {part}"
    elif is_sequence(kind):
        part = describe((*get_args(kind), Any)[0])
        words = f"a list{describe_length(limits, 'items')}"
        words += "" if part in ("a value", "text") else f", each {part}"
    elif get_origin(kind) is tuple:
        items = [describe(item) for item in get_args(kind)]
        words = f"a list of {len(items)} items: {', '.join(items)}" if items else "an empty list"
    elif is_record(cls := get_origin(kind) or kind) or is_named_tuple(cls):
        names = ", ".join(member.name for member in members_of_record(kind))
        words = f"a list of {names}" if is_named_tuple(cls) else f"a JSON object with {names}"
    elif kind is NoneType:
        words = "null"
    return words


def describe_choices(values: Iterable[Any], *, with_meanings: bool = False) -> str:
    """Describe choices as JSON. Text is unquoted, and None is omitted because it means a missing value."""
    choices = [value for value in values if value is not None]
    texts = list(map(_choice_text, choices))
    meanings = {
        text: meaning_of(choice) for text, choice in zip(texts, choices, strict=True) if with_meanings
    }
    return describe_names(texts, {text: meaning for text, meaning in meanings.items() if meaning})


def _choice_text(choice: Any) -> str:
    value = json_of(choice)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def example_text(annotation: Any) -> str:
    """Return an example of a type as JSON."""
    return msgspec.json.encode(_example(annotation, 0)).decode()


def _example(annotation: Any, depth: int) -> Any:  # noqa: C901 (one for each kind of type)
    kind, limits = split_constraints(annotation)
    arguments = get_args(kind)
    example: Any = "text"
    if depth > _MAX_DEPTH:
        example = None
    elif (scalar := scalar_of(kind)) is not None:
        example = scalar.example_of(limits)
    elif (surrogate := surrogate_of(kind)) is not None:
        example = surrogate.example
    elif is_literal(kind) or is_enum(kind):
        example = json_of(next(value for value in arguments or kind if value is not None))
    elif is_union(kind):
        example = _example(members_of(kind)[0], depth)
    elif is_mapping(kind):
        key, value = arguments or (Any, Any)
        example = {str(_example(key, depth + 1)): _example(value, depth + 1)}
    elif is_sequence(kind):
        example = [_example((*arguments, Any)[0], depth + 1)]
    elif get_origin(kind) is tuple:
        example = [_example(item, depth + 1) for item in arguments]
    elif is_named_tuple(get_origin(kind) or kind):
        example = [_example(member.type, depth + 1) for member in members_of_record(kind)]
    elif is_record(get_origin(kind) or kind):
        required = [member for member in members_of_record(kind) if member.required]
        example = tag_of(kind) | {member.name: _example(member.type, depth + 1) for member in required}
    return example
