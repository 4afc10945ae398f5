"""What prompts and resources have in common: authors save cases of both."""

import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

from promptkit.compiler.signature import cached_property
from promptkit.errors.diagnostics import Location

if TYPE_CHECKING:  # a server needs none
    from promptkit.catalog.cases import Case

__all__ = ["Declared", "drops_cases"]

#: Whether cases are not kept: while the loader imports modules for a server.
drops_cases: Final = ContextVar("drops_cases", default=False)


class _DroppedCase:
    """What a case is that is not kept."""

    def refused(self, _text: str) -> "_DroppedCase":
        return self


class Declared:
    """A prompt or a resource."""

    @property
    def cases(self) -> "tuple[Case, ...]":
        """Its cases, in the order in which they were saved."""
        return self.current_cases()

    def current_cases(self) -> "tuple[Case, ...]":
        """Return its cases, without those of modules that have been imported anew since."""
        return tuple(case for case in self._saved if case.is_current)

    @cached_property
    def _saved(self) -> "list[Case]":
        return []

    def _save(self, name: str, sent: Callable[[], Any]) -> "Case":
        """Save a case for the code that calls the caller; *sent* returns what a client sends for it."""
        if drops_cases.get():
            return cast("Case", _DroppedCase())
        from promptkit.catalog.cases import Case

        frame = sys._getframe(2)  # noqa: SLF001 (`inspect` is slower)
        module = sys.modules.get(frame.f_globals.get("__name__", ""))
        owner = module if module is not None and vars(module) is frame.f_globals else None
        case = Case(name, Location(frame.f_code.co_filename, frame.f_lineno), sent, owner)
        self._saved.append(case)
        return case
