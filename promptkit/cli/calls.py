"""
Calls to authors' functions, with arguments from the command line or with all examples.

Each call runs in a separate thread, with a time limit. A thread that hangs is abandoned. Results are encoded
in the form that a client receives.
"""

import time
import traceback
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from reprlib import repr as short_repr
from threading import Event, Thread
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from promptkit.catalog.cases import Case, is_refused, iterate_sendable
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import NO_SAMPLE, CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.samples import sample_calls_with_choices
from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail, print_text
from promptkit.errors.diagnostics import Diagnostic, Location, Owner
from promptkit.errors.exceptions import INPUT_ERRORS, ArgumentsError, PromptError
from promptkit.errors.rules import Rule
from promptkit.errors.tracebacks import format_exception, raising_line
from promptkit.language.documents import EmbeddedResource
from promptkit.language.files import FilledTextFile, collecting, filled_text_files
from promptkit.language.messages import Workflow
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE
from promptkit.server.direct_calls import CANCEL_GRACE_S, AuthorCall, explain_failure, make_renderer
from promptkit.server.lookup import name_of
from promptkit.server.timeouts import CallTimeoutError, time_limit

#: Encodes results for a client of the latest handshake revision.
LOWERING: Final = lowering_for(LATEST_HANDSHAKE)

Item: TypeAlias = CompiledPrompt | CompiledResource

#: The reason why an item without examples is not rendered or read.
NEEDS_EXAMPLES: Final = "it needs examples"

#: The prefixes of error messages that replace a transcript.
FAILS: Final = "[fails] "
REFUSED: Final = "[refused] "

T = TypeVar("T")

#: The longest single wait for a call, in seconds.
_LONGEST_WAIT_S: Final = 0.5


class Call(Struct, frozen=True):
    """
    A prompt to render, or a resource to read.

    Args:
        item:
            The prompt or the resource.

        sent:
            The input that a client sends: the arguments of the prompt, or the URI of the resource.

        case:
            The saved case; None for an example, or for arguments on the command line.

        is_sample:
            Whether the arguments are generated from their types.
    """

    item: Item
    sent: Any
    case: Case | None = None
    is_sample: bool = False

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of the prompt, or the variables of the resource."""
        if isinstance(self.item, CompiledPrompt):
            return dict(self.sent)
        return self.item.match(self.sent) or {}

    @property
    def case_name(self) -> str:
        """The name of the case; ``""`` if there is no case."""
        return "" if self.case is None else self.case.name

    @property
    def redactor(self) -> Redactor:
        """A redactor for the secret arguments."""
        return Redactor.of(self.item.arguments, self.arguments)

    @property
    def label(self) -> str:
        """A short description of the call without secrets, for messages."""
        if self.case is not None:
            return f"the case {self.case.name!r}"
        if isinstance(self.item, CompiledResource):
            return self.redactor.redacted(self.sent)
        secret, sent = self.item.arguments.secret, self.sent.items()
        words = (f"{name}={'<secret>' if name in secret else short_repr(value)}" for name, value in sent)
        return ", ".join(words) or "its defaults"

    def find_rejection(self, outcome: object) -> str | None:
        """
        Return the message of the `PromptError` that a prompt raises for its defaults or generated arguments.

        Return None for any other outcome, and for an error about an image, audio or text that the author of
        the prompt supplied.
        """
        if self.case is not None or not isinstance(outcome, PromptError):
            return None
        is_authors = isinstance(outcome, INPUT_ERRORS) and not self.arguments
        return str(outcome) if self.is_sample or not (self.arguments or is_authors) else None

    def outcome(self, seconds: float | None = None) -> Workflow | EmbeddedResource | BaseException:
        """Render or read the item, and return the result or the exception, as `call_within_limit` does."""
        if isinstance(self.item, CompiledPrompt):
            return call_within_limit(make_renderer(self.item, self.sent), seconds or time_limit(self.item))
        return call_within_limit(partial(self.item.read, self.sent, self.arguments), seconds)

    def text_of(self, outcome: object) -> str:
        """
        Return the transcript of a result, or a prefix and the message of an exception, with secrets hidden.
        """
        text = str(outcome)
        if isinstance(outcome, BaseException):
            text = f"{REFUSED if is_refused(outcome) else FAILS}{failure_reason(outcome)}"
        return self.redactor.redacted(text)


#: A function that returns the diagnostics for a rendering of a prompt. Its other arguments are the text files
#: that were read, and the call.
RenderingCheck: TypeAlias = Callable[
    [CompiledPrompt, Workflow, Sequence[FilledTextFile], Call], Iterable[Diagnostic]
]


def call_within_limit(
    function: Callable[[], T | Coroutine[Any, Any, T]], seconds: float | None = None
) -> T | BaseException:
    """
    Call an author's function with a time limit.

    Args:
        function:
            A plain or an asynchronous function.

        seconds:
            The time limit. The default is the same as in a server.

    Returns:
        The result, the exception that the function raised, or a `CallTimeoutError`.

    Raises:
        KeyboardInterrupt: On Ctrl-C, after an asynchronous call was cancelled.
    """
    seconds = time_limit() if seconds is None else seconds
    call, finished = AuthorCall(function), Event()

    def run() -> None:
        try:
            call.run()
        finally:
            finished.set()

    try:
        Thread(target=copy_context().run, args=(run,), daemon=True).start()
        if _wait(finished, seconds):
            return call.returned if call.raised is None else call.raised
        return CallTimeoutError.after(seconds, call.line)
    finally:
        if not finished.is_set():
            call.cancel()
            if call.is_async:
                finished.wait(CANCEL_GRACE_S)


def _wait(finished: Event, seconds: float) -> bool:
    """
    Wait at most *seconds* for a call, and return whether it has finished.

    The wait is split into steps, because Ctrl-C right before a step only takes effect after the step.
    """
    deadline = time.monotonic() + seconds
    while not finished.wait(min(seconds, _LONGEST_WAIT_S)):
        if (seconds := deadline - time.monotonic()) <= 0:
            return False
    return True


def report_failure(label: str, error: BaseException, redactor: Redactor) -> int:
    """
    Print why a call failed, and return the exit code.

    The output is a sentence, or a traceback with the author's frames and a line that names the failed call.
    """
    if (sentence := explain_failure(label, error)) is not None:
        return fail(redactor.redacted(sentence), Exit.FAILED)
    print_text(redactor.redacted(format_exception(error)))
    line = raising_line(error)
    return fail(redactor.redacted(f"{label} failed{f' at {line}' if line else ''}"), Exit.FAILED)


def encode_result(item: Item, result: Any) -> bytes:
    """
    Return the encoded result for a client of the latest handshake revision.

    Args:
        item:
            The prompt or the resource.

        result:
            The rendering of the prompt, or the document that was read.

    Raises:
        ValueError: If the result contains an unpaired surrogate, which UTF-8 cannot encode.
    """
    return LOWERING.result(item, result) if isinstance(item, CompiledPrompt) else LOWERING.contents(result)


def decode_redacted(result: bytes, redactor: Redactor) -> Any:
    """Decode a result to JSON-compatible data without secrets."""
    return redactor.redacted_json(msgspec.json.decode(result))


def wire_examples(item: Item) -> Sequence[Any]:
    """Return the author's examples as a client would send them: a prompt's arguments or a resource's URIs."""
    if isinstance(item, CompiledResource):
        return item.example_uris
    return item.arguments.example_texts if item.sample else ()


def saved_calls(item: Item) -> list[Call]:
    """Return the calls for the saved cases of an item, except cases that no client can send."""
    return [Call(item, sent, case) for case, sent in iterate_sendable(item.saved())]


def case_texts(catalog: Catalog) -> dict[str, dict[str, str]]:
    """Return the text of each saved case, keyed by the prompt's name or the resource's URI template."""
    texts = {
        name_of(item): {call.case_name: call.text_of(call.outcome()) for call in saved_calls(item)}
        for item in catalog.declared
    }
    return {name: cases for name, cases in texts.items() if cases}


def _example_calls(item: Item) -> list[Call]:
    """Return calls for each of the author's examples and, for prompts, for generated arguments."""
    examples = [*wire_examples(item)]
    is_sampled = isinstance(item, CompiledPrompt) and item.sample
    samples = sample_calls_with_choices(item.arguments) if is_sampled else []
    calls = [Call(item, sent) for sent in examples]
    return calls + [Call(item, sent, is_sample=True) for sent in samples if sent not in examples]


def skip_reason(item: Item) -> str:
    """Return the reason for skipping an item that has neither cases nor examples."""
    return NEEDS_EXAMPLES if isinstance(item, CompiledResource) or item.sample else NO_SAMPLE


def render_examples(
    catalog: Catalog, check_rendering: RenderingCheck
) -> tuple[Sequence[Diagnostic], Mapping[str, str]]:
    """
    Render every prompt and read every resource.

    An item with cases is called with each case. Any other item is called with its examples and defaults, and
    prompts are also called with generated arguments.

    Args:
        catalog:
            The prompts and the resources.

        check_rendering:
            Returns the diagnostics for a rendering.

    Returns:
        The diagnostics for failures and renderings; and the reasons why items are not rendered, keyed by name
        or URI template. Such items lack examples for required arguments, reject all arguments with a
        `PromptError`, or have ``sample=False``.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
    """
    diagnostics: list[Diagnostic] = []
    skipped: dict[str, str] = {}
    for item in catalog.declared:
        item_diagnostics, reason = _render_item(item, check_rendering)
        diagnostics += item_diagnostics
        if reason is not None:
            skipped[name_of(item)] = reason
    return diagnostics, skipped


def owner_of(item: Item) -> Owner:
    """Return the owner of an item's diagnostics."""
    return Owner(f"{item.arguments.kind} {item.name!r}", item.location)


def _render_item(item: Item, check_rendering: RenderingCheck) -> tuple[Iterable[Diagnostic], str | None]:
    """
    Return the diagnostics for an item, and the reason why it is not rendered; None if it is rendered.

    All cases are called. If there are no cases, the examples are called until one of them fails.
    """
    diagnostics: dict[Diagnostic, None] = {}  # different examples often have the same diagnostics
    calls = saved_calls(item) or _example_calls(item)
    rejections, is_rendered = list[str](), False
    for call in calls:
        texts: list[FilledTextFile] = []
        with collecting(filled_text_files, texts):
            outcome = call.outcome()
        if (rejection := call.find_rejection(outcome)) is not None:
            rejections.append(rejection)
        elif (failure := _find_failure(call, outcome)) is not None:
            diagnostics[failure] = None
            if call.case is None:
                break
        elif isinstance(item, CompiledPrompt) and isinstance(outcome, Workflow):
            is_rendered = True
            diagnostics |= dict.fromkeys(check_rendering(item, outcome, texts, call))
    if not calls:
        return diagnostics, skip_reason(item)
    return diagnostics, None if is_rendered or diagnostics or not rejections else rejections[0]


def _find_encoding_error(item: Item, outcome: Any) -> ValueError | None:
    """Return the error if UTF-8 cannot encode an outcome because of half a surrogate pair; otherwise None."""
    try:
        encode_result(item, outcome)
    except ValueError as error:
        return error
    return None


def _find_failure(call: Call, outcome: Any) -> Diagnostic | None:
    """Return a diagnostic if a call fails or its outcome is not what the case expects; otherwise None."""
    item, case, owner = call.item, call.case, owner_of(call.item)
    if case is not None and (mismatch := case.mismatch(outcome)) is not None:
        message = call.redactor.redacted(f"{call.label} {mismatch}")
        hint = "correct the case, or declare the expected error with .refused('...')"
        if case.location.file.endswith(".md"):  # cases in front matter declare no errors
            hint = "correct the case or the prompt"
        return owner.diagnostic(Rule.CASE_FAILS, message, hint, case.location)
    error = outcome if isinstance(outcome, BaseException) else _find_encoding_error(item, outcome)
    if error is None or (case is not None and is_refused(error)):
        return None
    rule, hint = Rule.RESOURCE_FAILS, "fix the error"
    if case is not None:
        rule = Rule.CASE_FAILS
    elif isinstance(item, CompiledPrompt):
        rule, hint = Rule.EXAMPLE_FAILS, "fix the error, or give examples that render"
    elif item.is_template:
        hint = "fix the error, or give examples that can be read"

    reason, hint = map(call.redactor.redacted, (failure_reason(error), hint))
    message, location = f"it fails for {call.label}: {reason}", _find_error_location(item.location, error)
    return owner.diagnostic(rule, message, hint, location)


def failure_reason(error: BaseException) -> str:
    """Return why a call failed, on one line."""
    if isinstance(error, ArgumentsError):
        return "; ".join(map(str, error.errors))
    if (reason := explain_failure("it", error)) is not None:
        return reason
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _find_error_location(definition: Location, error: BaseException) -> Location:
    """Return the line of the author's file that raised or timed out; if unknown, the function's own line."""
    if isinstance(error, CallTimeoutError) and error.line is not None:
        return error.line
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == definition.file and frame.lineno]
    return Location(definition.file, lines[-1]) if lines else definition.part("def")
