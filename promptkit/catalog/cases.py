"""Cases: saved inputs of prompts and resources, for previews, tests and comparisons."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import attrs

from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import ArgumentsError, CompileError, PromptError


def is_refused(outcome: object) -> bool:
    """Return whether an outcome is an error whose message is meant for the client's user."""
    return isinstance(outcome, ArgumentsError | PromptError)


@attrs.define(eq=False, repr=False)
class Case:
    """
    A saved input of a prompt or a resource.

    Args:
        name:
            The case's name, unique among the cases of its prompt or resource.

        location:
            Where the case was saved.

        sent:
            Returns the input as a client sends it. Raises TypeError if it is invalid.

        module:
            The module that saved the case; None if there is none, as in an interactive session.

        refusal:
            A part of the expected error message; None if the case must succeed.
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
        """Whether the case was saved by the latest import of its module."""
        return self.module is None or sys.modules.get(self.module.__name__) is self.module

    def mismatch(self, outcome: object) -> str | None:
        """
        Return how an outcome differs from the expected one.

        Args:
            outcome:
                The result of rendering or reading, or the exception.

        Returns:
            The difference; None if the outcome is as expected, or if it is any other kind of error.
        """
        if self.refusal is None:
            return f"is rejected: {outcome}" if is_refused(outcome) else None
        if not isinstance(outcome, BaseException):
            return f"should be rejected with {self.refusal!r}, but it succeeds"
        if is_refused(outcome) and self.refusal not in str(outcome):
            return f"should be rejected with {self.refusal!r}, but the error is: {outcome}"
        return None

    def refused(self, text: str) -> "Case":
        """
        Expect the case to fail because an argument is invalid or the prompt raises `PromptError`.

        Args:
            text:
                A part of the error message.

        Returns:
            The case.

        Raises:
            TypeError: If *text* is not a string.
        """
        if not isinstance(text, str):
            msg = f"refused({text!r}): pass part of the error message as a str"
            raise TypeError(msg)
        self.refusal = text
        return self


@attrs.define(eq=False, repr=False)
class SkillCase(Case):
    """
    A request for which a model should, or should not, choose a skill.

    Args:
        wanted:
            Whether the skill should be chosen.
    """

    wanted: bool = True


def iterate_sendable(cases: Iterable[Case]) -> Iterator[tuple[Case, Any]]:
    """
    Yield each valid case with its input as a client sends it; `promptkit check` reports the invalid ones.
    """
    for case in cases:
        with suppress(TypeError, CompileError):
            yield case, case.sent()
