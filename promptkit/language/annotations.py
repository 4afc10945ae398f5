"""
`Arg`, which describes a parameter; `Tool`, which describes a prompt as a tool; and OAuth scopes for prompts.

See https://www.rfc-editor.org/rfc/rfc6749#section-3.3 for the syntax of scopes.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import attrs

from promptkit.language.validation import check_flag, optional_text

#: Marks a parameter without a default, because None is a valid default.
NO_DEFAULT: Final = inspect.Parameter.empty

_SCOPE: Final = r"[\x21\x23-\x5b\x5d-\x7e]+"

#: The scopes that a prompt requires if its author declares none.
NO_SCOPES: Final[frozenset[str]] = frozenset()


def _examples(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return *values* as a tuple, treating a single string as one example."""
    return (values,) if isinstance(values, str) else tuple(values)


def _completions(source: Iterable[Any] | Callable[..., Any] | None) -> Any:
    """Return *source*; if it is an iterator, return a tuple, which can be iterated over more than once."""
    return tuple(source) if isinstance(source, Iterator) else source


@attrs.frozen
class Arg:
    """
    The description of a parameter: ``code: Annotated[str, Arg("The code to review")]``.

    Args:
        description:
            What the user should enter. Defaults to the parameter's description in the function's docstring.

        title:
            The display name of the argument, which clients show instead of its name.

        examples:
            Examples of valid values: one string, or several values of the parameter's type.

        complete:
            The completions of the argument: values, or a function that takes the text typed so far and
            returns values.

        secret:
            Whether to keep the value out of errors, logs and transcripts. Secret values are never
            offered as completions.

        env:
            The name of an environment variable of the server that contains the default. The variable is
            looked up for each request, and its value is parsed like a value from a client. If it is not
            set, the parameter's default is used. Clients see the variable's name, never its value.

    Raises:
        TypeError: If *description*, *title* or *env* is not a string, or *examples* cannot be iterated
            over.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#prompt
    """

    description: str | None = attrs.field(default=None, validator=optional_text)
    title: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)
    examples: tuple[Any, ...] = attrs.field(default=(), kw_only=True, converter=_examples)
    complete: Iterable[Any] | Callable[..., Any] | None = attrs.field(
        default=None,
        kw_only=True,
        converter=_completions,
    )
    secret: bool = attrs.field(default=False, kw_only=True)
    env: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)


def is_scope(value: object) -> bool:
    """
    Return whether *value* is a valid scope: printable ASCII without spaces, double quotes or backslashes.
    """
    return isinstance(value, str) and re.fullmatch(_SCOPE, value) is not None


def parse_scopes(scopes: str | Iterable[str]) -> frozenset[str]:
    """
    Return *scopes* as a set. A single string is split at white space.

    Raises:
        ValueError: If a scope is invalid.
    """
    names = scopes.split() if isinstance(scopes, str) else list(scopes)
    for scope in names:
        if not is_scope(scope):
            msg = (
                f"{scope!r} is not a scope: a scope consists of ASCII characters other than spaces, "
                f"double quotes and backslashes"
            )
            raise ValueError(msg)
    return frozenset(names)


def _validate_flag(_: object, attribute: "attrs.Attribute[bool]", value: object) -> None:
    check_flag(attribute.name, value)


@attrs.frozen(kw_only=True)
class Tool:
    """
    The tool annotations of a prompt. By default, a call only renders text.

    Args:
        read_only:
            Whether a call has no side effects.

        idempotent:
            Whether repeating a call with the same arguments has no further effect.

        open_world:
            Whether a call uses anything outside the recipes, such as the web.

        destructive:
            Whether a call can destroy data. This requires ``read_only=False``.

    Raises:
        TypeError: If an argument is neither True nor False.

        ValueError: If both *destructive* and *read_only* are True.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/schema#toolannotations
    """

    read_only: bool = attrs.field(default=True, validator=_validate_flag)
    idempotent: bool = attrs.field(default=True, validator=_validate_flag)
    open_world: bool = attrs.field(default=False, validator=_validate_flag)
    destructive: bool = attrs.field(default=False, validator=_validate_flag)

    def __attrs_post_init__(self) -> None:
        if self.read_only and self.destructive:
            msg = "a read-only tool cannot be destructive: add read_only=False"
            raise ValueError(msg)
