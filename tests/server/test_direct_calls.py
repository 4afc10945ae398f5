import asyncio

import pytest

from promptkit import PromptError, prompt
from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import ArgumentsError, InvalidArgument, ResultError
from promptkit.server.direct_calls import AuthorCall, explain_failure, make_renderer
from promptkit.server.timeouts import CallTimeoutError


async def fails():
    raise LookupError("nothing there")


async def cancels_itself():
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("function", "returned", "raised"),
    [
        (lambda: 3, 3, None),
        (lambda: asyncio.sleep(0, 4), 4, None),
        (fails, None, "LookupError('nothing there')"),
        (cancels_itself, None, "RuntimeError('the call was cancelled')"),
        (lambda: 1 / 0, None, "ZeroDivisionError('division by zero')"),
    ],
    ids=["plain", "asynchronous", "fails", "cancels itself", "fails at once"],
)
def test_result_of_a_call(function, returned, raised):
    """A call stores the result or the exception, and raises no exception on the thread that runs it."""
    call = AuthorCall(function)
    call.run()

    assert call.returned == returned
    assert (call.raised and repr(call.raised)) == raised


def test_call_cancelled_before_its_start():
    """An asynchronous function does not start after its cancellation."""
    starts = []

    async def start():
        starts.append(1)

    call = AuthorCall(start)
    call.cancel()
    call.run()

    assert (starts, repr(call.raised)) == ([], "RuntimeError('the call was cancelled')")


def test_rendering():
    """Synchronous and asynchronous prompts are rendered with the arguments that a client sends."""

    @prompt
    def plain(number: int):
        return f"{number + 1}"

    @prompt
    async def waits(number: int):
        return f"{number + 1}"

    for declared in (plain, waits):
        call = AuthorCall(make_renderer(declared.compiled, {"number": "2"}))
        call.run()
        assert str(call.returned) == "[user]\n3"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CallTimeoutError.after(0.5), "prompt 'a' took longer than its limit of 0.5 s"),
        (
            CallTimeoutError.after(0.5, Location("/lib/a.py", 3)),
            f"prompt 'a' took longer than its limit of 0.5 s, and was at {Location('/lib/a.py', 3)}",
        ),
        (PromptError("not today"), "not today"),
        (ResultError("it returned an int"), "it returned an int"),
        (ArgumentsError("a", (InvalidArgument("key", "is missing"),)), "prompt 'a': 'key' is missing"),
        (ValueError("no"), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_explain_failure(error, expected):
    """Expected errors are explained in one sentence; other exceptions need a traceback."""
    assert explain_failure("prompt 'a'", error) == expected
