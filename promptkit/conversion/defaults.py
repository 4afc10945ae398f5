"""Defaults: each call has its own copy of one that can be changed, as many clients share a function."""

import inspect
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from typing import Any, Final, TypeVar, cast

from promptkit.conversion.annotations import FORWARD

__all__ = ["with_own_defaults"]

F = TypeVar("F", bound=Callable[..., Any])

#: The types of most defaults. Nobody can change a value of these.
_CONSTANT: Final = frozenset({str, int, float, bool, bytes, type(None)})


def with_own_defaults(function: F) -> F:
    """
    Return *function*; one that copies its defaults for each call, if any of them can be changed.

    A default that cannot be copied is shared by all calls, as in Python.
    """
    plain = inspect.unwrap(function)
    by_position = getattr(plain, "__defaults__", None) or ()
    by_name = getattr(plain, "__kwdefaults__", None) or {}
    if _CONSTANT.issuperset(map(type, (*by_position, *by_name.values()))):
        return function
    signature = inspect.signature(function, **FORWARD)
    changeable = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and _is_changeable(parameter.default)
    }
    if not changeable:
        return function

    @wraps(function)
    def with_copies(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind_partial(*args, **kwargs).arguments if args else kwargs
        left_out = changeable.keys() - given.keys()
        return function(*args, **kwargs, **{name: deepcopy(changeable[name]) for name in left_out})

    return cast("F", with_copies)


def _is_changeable(default: Any) -> bool:
    try:
        return deepcopy(default) is not default
    except Exception:  # noqa: BLE001 (an author's class may refuse to be copied, in any way)
        return False
