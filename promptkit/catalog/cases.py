"""Cases: inputs that authors have saved, to see, test and compare what is said for them."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import attrs

from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import ArgumentsError, CompileError, PromptError


def is_refused(outcome: object) -> bool:
    """Return whether an outcome is an error whose words are for the person at the client."""
    return isinstance(outcome, ArgumentsError | PromptError)


@attrs.define(eq=False, repr=False)
class Case:
    """
    A saved input of a prompt or a resource.

    Args:
        name:
            What it is called, once for each prompt or resource.

        location:
            Where it was saved.

        sent:
            Returns what a client sends for it. Raises TypeError if it does not fit.

        module:
            The module that has saved it; None if there is none, as at a console.

        refusal:
            What the words hold in which it has to be refused; None if it has to be rendered.
    """

    name: str
    location: Location
    sent: Callable[[], Any]
    module: ModuleType | None
    refusal: str | None = None

    def __repr__(self) -> str:
        return f"<case {self.name!r} at {self.location}>"

    @property
    def is_current(self) -> bool:
        """Whether its module has not been imported anew since."""
        return self.module is None or sys.modules.get(self.module.__name__) is self.module

    def fault(self, outcome: object) -> str | None:
        """
        Return what is wrong with what came of it; None if it is as its author expects, or another failure.

        Args:
            outcome:
                What was rendered or read, or raised.
        """
        if self.refusal is None:
            return f"is refused: {outcome}" if is_refused(outcome) else None
        if not isinstance(outcome, BaseException):
            return f"is not refused, as its author expects: {self.refusal!r}"
        if is_refused(outcome) and self.refusal not in str(outcome):
            return f"is refused in other words than {self.refusal!r}: {outcome}"
        return None

    def refused(self, text: str) -> "Case":
        """
        Expect that it is refused: an argument is wrong, or the prompt raises `PromptError`.

        Args:
            text:
                What the message holds.

        Returns:
            The case.

        Raises:
            TypeError: If *text* is not text.
        """
        if not isinstance(text, str):
            msg = f"refused({text!r}): say which words the message holds"
            raise TypeError(msg)
        self.refusal = text
        return self


def sendable(cases: Iterable[Case]) -> Iterator[tuple[Case, Any]]:
    """Yield each case with what a client sends for it; `promptkit check` finds those that none can send."""
    for case in cases:
        with suppress(TypeError, CompileError):
            yield case, case.sent()
