"""
Calling authors' functions, for what somebody types, or for all examples.

Each call has a time limit, and a thread that is left alone if it hangs.
"""

import time
import traceback
from _thread import start_new_thread
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from reprlib import repr as short_repr
from threading import Lock, current_thread
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from promptkit.catalog.cases import Case, is_refused, sendable
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import NO_SAMPLE, CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.catalog.resources import CompiledResource
from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail, print_text
from promptkit.cli.output_formats import encoded
from promptkit.errors.diagnostics import Diagnostic, Location
from promptkit.errors.exceptions import ArgumentsError, PromptError
from promptkit.errors.filled_text import explain_filling
from promptkit.errors.rules import Rule
from promptkit.errors.tracebacks import format_exception
from promptkit.language.documents import EmbeddedResource
from promptkit.language.messages import Workflow
from promptkit.server.lookup import name_of
from promptkit.server.user_code import (
    CANCEL_GRACE_S,
    AuthorCall,
    CallTimeoutError,
    explanation,
    rendering_of,
    time_limit,
)

Item: TypeAlias = CompiledPrompt | CompiledResource

#: What returns all that is wrong with a rendering.
Findings: TypeAlias = Callable[[CompiledPrompt, Workflow], Iterable[Diagnostic]]

#: Why a prompt or a resource is not tried.
NEEDS_EXAMPLES: Final = "it needs examples"

T = TypeVar("T")

#: How long one wait for a lock is, in seconds.
_LONGEST_WAIT_S: Final = 0.5


class Call(Struct, frozen=True):
    """
    A prompt that is rendered, or a resource that is read.

    Args:
        item:
            The prompt or the resource.

        sent:
            What a client sends for it: the arguments of the prompt, or the URI of the resource.

        case:
            The case that it is; None if it is an example, or what somebody asks for.
    """

    item: Item
    sent: Any
    case: Case | None = None

    @property
    def given(self) -> Mapping[str, Any]:
        """The arguments of the prompt, or the variables of the resource."""
        if isinstance(self.item, CompiledPrompt):
            return dict(self.sent)
        return self.item.match(self.sent) or {}

    @property
    def named(self) -> str:
        """The name of the case; ``""`` if it is none."""
        return "" if self.case is None else self.case.name

    @property
    def redactor(self) -> Redactor:
        """Hides the secrets that are given."""
        return Redactor.of(self.item.arguments, self.given)

    @property
    def label(self) -> str:
        """How errors call what is sent, shortened, without secrets."""
        if self.case is not None:
            return f"the case {self.case.name!r}"
        if isinstance(self.item, CompiledResource):
            return self.redactor.redacted(self.sent)
        secret, sent = self.item.arguments.secret, self.sent.items()
        words = (f"{name}={'<secret>' if name in secret else short_repr(value)}" for name, value in sent)
        return ", ".join(words) or "its defaults"

    def refusal(self, outcome: object) -> str | None:
        """Return why the defaults, which nobody asked for, are refused; None if they are not."""
        is_default = self.case is None and not self.given
        return str(outcome) if isinstance(outcome, PromptError) and is_default else None

    def outcome(self) -> Workflow | EmbeddedResource | BaseException:
        """Render or read it. `call_within_limit` explains what is returned, and raised."""
        if isinstance(self.item, CompiledPrompt):
            return call_within_limit(rendering_of(self.item, self.sent), time_limit(self.item))
        return call_within_limit(partial(self.item.read, self.sent, self.given))


def call_within_limit(
    function: Callable[[], T | Coroutine[Any, Any, T]], seconds: float | None = None
) -> T | BaseException:
    """
    Call an author's function.

    Args:
        function:
            What is called, plain or asynchronous.

        seconds:
            How long it may take; by default, as long as a server lets it.

    Returns:
        What it returned, what it raised, or a `CallTimeoutError` if it took longer.

    Raises:
        KeyboardInterrupt: On Ctrl-C; what is asynchronous is cancelled first.
    """
    seconds = time_limit() if seconds is None else seconds
    call = AuthorCall(function)
    # A plain lock, since Ctrl-C may interrupt the wait for it at any step. A `Thread` that is joined would
    # count as ended after that, and one that starts waits for an `Event`, whose lock would break.
    over = Lock()
    over.acquire()
    try:
        start_new_thread(_run, (call, over))
        if _wait(over, seconds):
            return call.returned if call.raised is None else call.raised
        hangs = CallTimeoutError.after(seconds, call.line)
        _cancel(call, over)
    except KeyboardInterrupt:
        _cancel(call, over)
        raise
    return hangs


def _run(call: AuthorCall, over: Lock) -> None:
    try:
        current_thread()  # registers this thread with `threading`, which counts it from now on
        call.run()
    finally:
        over.release()


def _wait(over: Lock, seconds: float) -> bool:
    """Wait until a call is over, or so many seconds; tell whether it is over."""
    ends = time.monotonic() + seconds
    # Ctrl-C right before a wait begins does not interrupt it: it takes effect when that wait ends.
    while (left := ends - time.monotonic()) > 0:
        if over.acquire(timeout=min(left, _LONGEST_WAIT_S)):
            return True
    return False


def _cancel(call: AuthorCall, over: Lock) -> None:
    call.cancel()
    if call.is_async:
        _wait(over, CANCEL_GRACE_S)


def report_failure(whose: str, error: BaseException, redactor: Redactor) -> int:
    """Print why *whose* call failed, by a sentence or else by a traceback, and return the exit code."""
    if (sentence := explanation(whose, error)) is not None:
        return fail(redactor.redacted(sentence), Exit.FAULTY)
    print_text(redactor.redacted(format_exception(error)))
    return Exit.FAULTY


def wire_examples(item: Item) -> Sequence[Any]:
    """Return what the author's examples come to: arguments of a prompt, or URIs of a resource."""
    if isinstance(item, CompiledResource):
        return item.example_uris
    return item.arguments.example_texts if item.sample else ()


def saved_calls(item: Item) -> list[Call]:
    """Return the calls that are the cases of an item, without those that no client can send."""
    return [Call(item, sent, case) for case, sent in sendable(item.saved())]


def why_untried(item: Item) -> str:
    """Return why there is nothing to render or read *item* for."""
    return NEEDS_EXAMPLES if isinstance(item, CompiledResource) or item.sample else NO_SAMPLE


def render_examples(
    catalog: Catalog, findings_in: Findings
) -> tuple[Sequence[Diagnostic], Mapping[str, str]]:
    """
    Render every prompt and read every resource: for its cases, else for its examples or its defaults.

    Args:
        catalog:
            The prompts and the resources.

        findings_in:
            Returns what is wrong with a rendering.

    Returns:
        A diagnostic for each prompt or resource that fails, and for all that is found in renderings; and why
        others are not rendered, by the names of prompts and the templates of resources: they have no examples
        for what they require, refuse their defaults with a `PromptError`, or have ``sample=False``.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
    """
    found: list[Diagnostic] = []
    skipped: dict[str, str] = {}
    for item in catalog.declared:
        faults, reason = _tried(item, findings_in)
        found += faults
        if reason is not None:
            skipped[name_of(item)] = reason
    return found, skipped


def _tried(item: Item, findings_in: Findings) -> tuple[Iterable[Diagnostic], str | None]:
    """What is wrong with its cases, or its first example that fails; why it is not rendered, if so."""
    found: dict[Diagnostic, None] = {}  # examples that differ often have the same findings
    calls = saved_calls(item) or [Call(item, sent) for sent in wire_examples(item)]
    skipped = None if calls else why_untried(item)
    for call in calls:
        outcome = call.outcome()
        if (refusal := call.refusal(outcome)) is not None:
            skipped = refusal
        elif (failure := _failure(call, outcome)) is not None:
            found[failure] = None
            if call.case is None:
                break
        elif isinstance(item, CompiledPrompt) and isinstance(outcome, Workflow):
            found |= dict.fromkeys(findings_in(item, outcome))
    return found, skipped


def _why_unsent(item: Item, result: Any) -> ValueError | None:
    """Why a result cannot be sent: half of a surrogate pair, which UTF-8 cannot encode."""
    try:
        encoded(item, result)
    except ValueError as error:
        return error
    return None


def _failure(call: Call, outcome: Any) -> Diagnostic | None:
    """What is wrong with a call: it fails, or is not what its author expects."""
    item, case = call.item, call.case
    named = f"{item.arguments.kind} {item.name!r}: "
    if case is not None and (fault := case.fault(outcome)) is not None:
        message = call.redactor.redacted(f"{named}{call.label} {fault}")
        hint = "correct it, or say in which words it has to be refused: .refused('...')"
        return Diagnostic(Rule.CASE_FAILS, message, hint, case.location)
    error = outcome if isinstance(outcome, BaseException) else _why_unsent(item, outcome)
    if error is None or (case is not None and is_refused(error)):
        return None
    rule, hint = Rule.RESOURCE_FAILS, "correct it"
    if case is not None:
        rule = Rule.CASE_FAILS
    elif isinstance(item, CompiledPrompt):
        rule, hint = Rule.EXAMPLE_FAILS, "correct it, or give examples that it can be rendered for"
    elif item.is_template:
        hint = "correct it, or give examples that it can be read for"

    reason, hint = map(call.redactor.redacted, (failure_reason(error), explain_filling(error) or hint))
    return Diagnostic(rule, f"{named}it fails for {call.label}: {reason}", hint, _place(item.location, error))


def failure_reason(error: BaseException) -> str:
    """Return why a call failed, on one line."""
    if isinstance(error, ArgumentsError):
        return "; ".join(map(str, error.errors))
    if (reason := explanation("it", error)) is not None:
        return reason
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _place(location: Location, error: BaseException) -> Location:
    """The line of the author's file that raised, or was running when time was over; else the function."""
    if isinstance(error, CallTimeoutError) and error.line is not None:
        return error.line
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == location.file and frame.lineno]
    return Location(location.file, lines[-1]) if lines else location.part("def")
