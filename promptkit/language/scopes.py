"""
Scopes: words for what a caller may do, as OAuth has them.

See https://www.rfc-editor.org/rfc/rfc6749#section-3.3.
"""

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["NO_SCOPES", "is_scope", "scopes_of"]

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")

#: What is needed of callers unless an author says more.
NO_SCOPES: Final[frozenset[str]] = frozenset()


def is_scope(value: object) -> bool:
    """
    Return whether a value is one scope: ASCII without blanks, quotes and backslashes.
    """
    return isinstance(value, str) and _SCOPE.fullmatch(value) is not None


def scopes_of(scopes: str | Iterable[str]) -> frozenset[str]:
    """
    Return what somebody may do. One text with blanks between the scopes is taken apart.

    Raises:
        ValueError: If one is no scope.
    """
    found = scopes.split() if isinstance(scopes, str) else list(scopes)
    for scope in found:
        if not is_scope(scope):
            msg = f"{scope!r} is no scope: one has ASCII without blanks, quotes and backslashes"
            raise ValueError(msg)
    return frozenset(found)
