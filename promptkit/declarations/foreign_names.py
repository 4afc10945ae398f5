"""What authors know from elsewhere, and what to write in its place here."""

from collections.abc import Mapping
from pkgutil import get_data
from typing import Final

import msgspec

__all__ = ["instead_of"]

#: By kind, the names that authors write in vain, each with what to write instead.
_INSTEAD: Final[Mapping[str, Mapping[str, str]]] = msgspec.toml.decode(
    get_data(__name__, "foreign_names.toml") or b""
)


def instead_of(kind: str, name: str) -> str | None:
    """Return what to write in place of a name of some *kind*: a table of ``foreign_names.toml``."""
    hints = _INSTEAD.get(kind, {}).items()
    return next((hint for names, hint in hints if name in names.split()), None)
