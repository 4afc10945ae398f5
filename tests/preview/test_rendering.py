import asyncio
import re
import threading
from itertools import count

import pytest

from promptkit import Context, PromptError, prompt
from promptkit.catalog.catalog import Catalog
from promptkit.errors.diagnostics import Location
from promptkit.preview.rendering import LimitedCalls, call, render
from promptkit.server.user_code import CallTimeoutError

STILL_RUN = (
    "does not return: 4 calls of it still run, and plain functions cannot be stopped. "
    "Change the recipe, or start promptkit dev again"
)


def catalog_of(function, **options):
    """Compile a function to a catalog with one prompt."""
    compiled, found = prompt(**options)(function).compile()
    assert found == ()
    return Catalog((compiled,))


def rendered(function, given=None, **options):
    """Render a function as a prompt once."""
    catalog = catalog_of(function, **options)
    return asyncio.run(render(LimitedCalls(), catalog.prompts[0], given or {}))


class TestCall:
    def test_what_is_raised_is_raised(self):
        """Exceptions reach the caller, including SystemExit and KeyboardInterrupt."""
        for error in (SystemExit(3), KeyboardInterrupt(), ValueError("b")):

            def fails(error=error):
                raise error

            with pytest.raises(type(error)) as raised:
                asyncio.run(call(fails, 5))
            assert raised.value is error

    def test_what_no_coroutine_can_raise(self):
        """A StopIteration, which a coroutine cannot raise, becomes the cause of a RuntimeError."""
        with pytest.raises(RuntimeError) as raised:
            asyncio.run(call(lambda: next(iter(())), 5))
        assert isinstance(raised.value.__cause__, StopIteration)

    def test_a_cancellation_within_is_no_cancellation_of_who_waits(self):
        """A CancelledError raised by the author's code is an error, not a cancellation of the caller."""

        async def fails():
            raise asyncio.CancelledError

        with pytest.raises(RuntimeError, match="it was cancelled"):
            asyncio.run(call(fails, 5))

    def test_what_takes_too_long_is_left(self):
        """A call that times out returns to the caller; its callback runs when its thread ends."""
        go_on, ended = threading.Event(), []

        async def scenario():
            over = asyncio.Event()
            with pytest.raises(CallTimeoutError, match=r"^took longer than its limit of 0\.02 s$"):
                await call(go_on.wait, 0.02, lambda: (ended.append(1), over.set()))
            assert ended == []
            go_on.set()
            await over.wait()

        asyncio.run(scenario())
        assert ended == [1]

    def test_what_is_asynchronous_is_cancelled(self):
        """An asynchronous call is cancelled when its caller is cancelled and when it times out."""
        cancelled, begun = [], threading.Event()

        async def waits():
            begun.set()
            try:
                await asyncio.sleep(50)
            except asyncio.CancelledError:
                cancelled.append(1)
                raise

        async def scenario():
            over = asyncio.Event()
            waiting = asyncio.create_task(call(waits, 50, over.set))
            await asyncio.to_thread(begun.wait)
            waiting.cancel()
            await over.wait()
            over.clear()
            with pytest.raises(CallTimeoutError):
                await call(waits, 0.2, over.set)
            await over.wait()

        asyncio.run(scenario())
        assert len(cancelled) == 2

    def test_code_that_reports_progress_is_stopped(self):
        """Code that reports progress is stopped when it times out and when its caller is cancelled."""

        def reports():
            context = Context()
            for step in count():
                context.report_progress(step)

        async def reports_in_a_coroutine():
            reports()

        async def scenario(function):
            over = asyncio.Event()
            with pytest.raises(CallTimeoutError):
                await call(function, 0.02, over.set)
            await over.wait()
            over.clear()
            waiting = asyncio.create_task(call(function, 50, over.set))
            await asyncio.sleep(0.02)
            waiting.cancel()
            await over.wait()

        for function in (reports, reports_in_a_coroutine):
            asyncio.run(asyncio.wait_for(scenario(function), 20))

    def test_what_cleans_up_slowly_is_not_stopped(self):
        """A cancelled asynchronous call has time to clean up."""
        seen = []

        async def waits():
            try:
                await asyncio.sleep(50)
            finally:
                await asyncio.sleep(0.02)
                seen.append("cleaned up")

        async def scenario():
            over = asyncio.Event()
            with pytest.raises(CallTimeoutError):
                await call(waits, 0.2, over.set)
            await over.wait()

        asyncio.run(scenario())
        assert seen == ["cleaned up"]


class TestRendering:
    def test_values_are_read_as_a_client_sends_them(self):
        """Arguments are converted from the strings that a client sends."""

        def add(first: int, second: int):
            return f"{first + second}"

        assert str(rendered(add, {"first": "1", "second": "2"}).workflow) == "[user]\n3"

    def test_faults(self):
        """All argument errors are returned, each with its argument."""

        def add(first: int, second: int):
            return f"{first + second}"

        found = rendered(add, {"first": "one"})

        assert [(fault.argument, fault.reason) for fault in found.faults] == [
            ("first", "is 'one', not a whole number"),
            ("second", "is missing"),
        ]
        assert (found.workflow, found.error, found.asked) == (None, None, ())

    def test_a_prompt_that_asks(self):
        """A missing argument of an eliciting prompt is asked for, and the form's values supply it."""

        def release(version: str, notes: str = ""):
            return f"Release {version}."

        asks = rendered(release, {"notes": "x"}, elicit=True)

        assert [one.name for one in asks.asked] == ["version"]
        assert "version" in asks.question
        assert rendered(release, {"version": "1"}, elicit=True).asked == ()

    def test_errors_are_for_people(self):
        """A `PromptError` shows only its message, any other exception a traceback."""

        def refuses(day: str):
            raise PromptError("not today")

        def returns():
            return 3

        def fails():
            raise LookupError("nothing there")

        assert rendered(refuses, {"day": "Monday"}).error == "not today"
        assert "returned an int" in rendered(returns).error
        assert rendered(fails).error.endswith("LookupError: nothing there\n")
        assert "Traceback" in rendered(fails).error

    def test_defaults_that_are_refused_are_no_failure(self):
        """A prompt that refuses its default values has not failed; with given values it has."""

        def review(ref: str = "HEAD"):
            raise PromptError(f"there is no difference to {ref}")

        found = rendered(review)

        assert (found.error, found.refusal) == (None, "there is no difference to HEAD")
        assert rendered(review, {"ref": "main"}).error == "there is no difference to main"

    def test_what_is_not_to_be_sampled_is_rendered_when_it_is_asked_for(self):
        """With `sample=False` a prompt needs given values to render, and still reports missing ones."""

        def publish(version: str = "2.0"):
            return f"Publish {version}."

        def order(what: str):
            return what

        unasked, entered = rendered(publish, sample=False), rendered(publish, {"version": "1"}, sample=False)

        assert (unasked.workflow, unasked.error, unasked.refusal) == (None, None, "sample=False")
        assert str(entered.workflow[0].content) == "Publish 1."
        assert [one.argument for one in rendered(order, sample=False).faults] == ["what"]

    def test_the_time_limit_of_its_author(self):
        """A hanging prompt stops at its timeout, and the error names its location."""

        async def hangs():
            await asyncio.sleep(50)

        said = r"prompt 'hangs' took longer than its limit of 0\.05 s, and was at .*test_rendering\.py:\d+"
        assert re.fullmatch(said, rendered(hangs, timeout=0.05).error)

    def test_secrets_are_hidden(self):
        """Secrets are hidden in error messages and in shown text."""
        from typing import Annotated

        from promptkit import Arg

        def fails(key: Annotated[str, Arg("A key", secret=True)]):
            raise PromptError(f"{key} is refused")

        found = rendered(fails, {"key": "sesame-opens"})

        assert found.error == "<secret> is refused"
        assert found.redacted("all of sesame-opens") == "all of <secret>"

    def test_few_renderings_of_one_prompt_run_at_once(self):
        """At most four renderings of a prompt run at once; the next waits no longer than its timeout."""
        go_on, running = threading.Event(), []

        def hangs():
            running.append(1)
            go_on.wait(20)
            return "Done."

        async def scenario():
            catalog = catalog_of(hangs, timeout=0.2)
            calls = LimitedCalls()
            many = [render(calls, catalog["hangs"], {}) for _ in range(7)]
            errors = {found.error for found in await asyncio.gather(*many)}
            assert len(running) == 4
            go_on.set()
            last = await render(calls, catalog["hangs"], {})
            return errors, last

        errors, last = asyncio.run(scenario())
        place = Location(__file__, hangs.__code__.co_firstlineno + 2)

        assert sorted(errors) == [
            f"prompt 'hangs' {STILL_RUN}",
            f"prompt 'hangs' took longer than its limit of 0.2 s, and was at {place}",
        ]
        assert str(last.workflow) == "[user]\nDone."

    def test_a_rendering_that_is_stopped_makes_room(self):
        """A rendering that is stopped frees its slot."""

        def endless(context: Context):
            for step in count():
                context.report_progress(step)

        async def scenario():
            catalog, calls = catalog_of(endless, timeout=0.05), LimitedCalls()
            return {(await render(calls, catalog["endless"], {})).error for _ in range(6)}

        said = {error.partition(", and was at ")[0] for error in asyncio.run(scenario())}
        assert said == {"prompt 'endless' took longer than its limit of 0.05 s"}
