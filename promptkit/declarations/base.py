"""What prompts, resources and skills have in common."""

import copyreg
import sys
from abc import abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from typing import Any, Final, Generic, ParamSpec, Self, TypeVar, cast

from promptkit.catalog.cases import Case
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.declarations.signature import cached_property
from promptkit.errors.diagnostics import Location

P = ParamSpec("P")
Sent = TypeVar("Sent")

#: Whether cases are not kept: while the loader imports modules for a server.
drops_cases: Final = ContextVar("drops_cases", default=False)


class _DroppedCase:
    """What a case is that is not kept."""

    def refused(self, _text: str) -> "_DroppedCase":
        return self


class SavedCases:
    """The cases of a prompt or a resource. They are no part of what it is, so that all are equal."""

    __slots__ = ("_all",)  # each prompt that is served has these

    def __init__(self) -> None:
        self._all: tuple[Case, ...] = ()

    def __call__(self) -> "tuple[Case, ...]":
        """Return them without those of modules that have been imported anew since."""
        return tuple(case for case in self._all if case.is_current)

    def add(self, case: "Case") -> None:
        """Keep one more."""
        self._all += (case,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SavedCases)

    def __hash__(self) -> int:
        return hash(SavedCases)


#: Imported by its name, as it needs the loader.
_pickling: Final = partial(import_module, "promptkit.loader.pickling")

# The catalog does not know who declares what it holds.
copyreg.pickle(CompiledPrompt, lambda compiled: _pickling().reduced_compiled(compiled))


class PickledByReference:
    """What is pickled by where it is declared, and copied as functions are: it stays what it is."""

    def __reduce__(self) -> tuple[Any, ...]:
        reduced: tuple[Any, ...] = _pickling().reduced(self, sys._getframe(1))  # noqa: SLF001 (who pickles)
        return reduced

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self


class Declared(PickledByReference, Generic[P, Sent]):
    """A prompt or a resource: it is called with some parameters, and a client sends something for that."""

    @property
    def cases(self) -> "tuple[Case, ...]":
        """Its cases, in the order in which they were saved."""
        return self.saved()

    def case(self, name: str, /, *args: P.args, **kwargs: P.kwargs) -> "Case":
        """
        Save an input, to see, test and compare what is said for it.

        While a server serves, nothing is kept. What is wrong with a case, ``promptkit check`` finds.

        Args:
            name:
                What the case is called, once for each prompt or resource.

            *args:
                As for a call.

            **kwargs:
                As for a call.

        Returns:
            The case. If it has to be refused, say in which words: ``.refused("'code' is missing")``.
        """
        return self._save(name, partial(self.sent, *args, **kwargs))

    def case_wire(self, name: str, sent: Sent, /) -> "Case":
        """
        Do what `case` does, for what a client sends, which may be what the types forbid.

        Args:
            name:
                What the case is called, once for each prompt or resource.

            sent:
                The values of a prompt's arguments by their names, as text; the URI of a resource.
        """
        return self._save(name, lambda: sent)

    @abstractmethod
    def sent(self, *args: P.args, **kwargs: P.kwargs) -> Sent:
        """Return what a client sends for the same call. Raises TypeError if it has no way to do so."""

    @cached_property
    def saved(self) -> SavedCases:
        """Returns the cases."""
        return SavedCases()

    def _save(self, name: str, sent: Callable[[], Sent]) -> "Case":
        """Save a case for the code that calls the caller."""
        if drops_cases.get():
            return cast("Case", _DroppedCase())

        frame = sys._getframe(2)  # noqa: SLF001 (`inspect` is slower)
        module = sys.modules.get(frame.f_globals.get("__name__", ""))
        owner = module if module is not None and vars(module) is frame.f_globals else None
        case = Case(name, Location(frame.f_code.co_filename, frame.f_lineno), sent, owner)
        self.saved.add(case)
        return case
