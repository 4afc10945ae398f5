import asyncio
import re
import threading
from itertools import count

import pytest

from promptkit import Context, PromptError, prompt
from promptkit.catalog.catalog import Catalog
from promptkit.errors.diagnostics import Location
from promptkit.fragments import fit, optional
from promptkit.preview.rendering import LimitedCalls, call, render
from promptkit.server.timeouts import CallTimeoutError

STILL_RUNNING = (
    "has 4 calls that are still running, and synchronous functions cannot be stopped: "
    "edit the recipe or restart promptkit dev"
)


def make_catalog(function, **options):
    """Compile a function to a catalog with one prompt."""
    compiled, diagnostics = prompt(**options)(function).compile()
    assert diagnostics == ()
    return Catalog((compiled,))


def render_prompt(function, values=None, **options):
    """Render a function as a prompt once."""
    catalog = make_catalog(function, **options)
    return asyncio.run(render(LimitedCalls(), catalog.prompts[0], values or {}))


class TestFitted:
    @pytest.mark.parametrize("is_async", [False, True])
    def test_parts_dropped_by_fit_are_listed(self, is_async):
        """A rendering lists each text from which `fit` dropped parts, for asynchronous prompts as well."""

        def summarize():
            return fit("a", optional("b" * 20), tokens=2)

        async def summarize_later():
            await asyncio.sleep(0)
            return await asyncio.to_thread(summarize)

        rendering = render_prompt(summarize_later if is_async else summarize)

        (report,) = rendering.fitted
        assert [part.text for part in report.dropped] == ["b" * 20]
        assert render_prompt(lambda: fit("a", tokens=2), name="short").fitted == []


class TestCall:
    def test_exceptions_reach_the_caller(self):
        """Exceptions reach the caller, including SystemExit and KeyboardInterrupt."""
        for error in (SystemExit(3), KeyboardInterrupt(), ValueError("b")):

            def fails(error=error):
                raise error

            with pytest.raises(type(error)) as raised:
                asyncio.run(call(fails, 5))
            assert raised.value is error

    def test_stop_iteration_becomes_a_cause(self):
        """A StopIteration, which a coroutine cannot raise, becomes the cause of a RuntimeError."""
        with pytest.raises(RuntimeError) as raised:
            asyncio.run(call(lambda: next(iter(())), 5))
        assert isinstance(raised.value.__cause__, StopIteration)

    def test_inner_cancellation_does_not_cancel_the_caller(self):
        """A CancelledError raised by the author's code is an error, not a cancellation of the caller."""

        async def fails():
            raise asyncio.CancelledError

        with pytest.raises(RuntimeError, match="the call was cancelled"):
            asyncio.run(call(fails, 5))

    def test_timed_out_call_returns_to_the_caller(self):
        """A call that times out returns to the caller; its callback runs when its thread ends."""
        release, ended = threading.Event(), []

        async def scenario():
            finished = asyncio.Event()
            with pytest.raises(CallTimeoutError, match=r"^took longer than its limit of 0\.02 s$"):
                await call(release.wait, 0.02, lambda: (ended.append(1), finished.set()))
            assert ended == []
            release.set()
            await finished.wait()

        asyncio.run(scenario())
        assert ended == [1]

    def test_asynchronous_call_is_cancelled(self):
        """An asynchronous call is cancelled when its caller is cancelled and when it times out."""
        cancelled, started = [], threading.Event()

        async def waits():
            started.set()
            try:
                await asyncio.sleep(50)
            except asyncio.CancelledError:
                cancelled.append(1)
                raise

        async def scenario():
            finished = asyncio.Event()
            waiting = asyncio.create_task(call(waits, 50, finished.set))
            await asyncio.to_thread(started.wait)
            waiting.cancel()
            await finished.wait()
            finished.clear()
            with pytest.raises(CallTimeoutError):
                await call(waits, 0.2, finished.set)
            await finished.wait()

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
            finished = asyncio.Event()
            with pytest.raises(CallTimeoutError):
                await call(function, 0.02, finished.set)
            await finished.wait()
            finished.clear()
            waiting = asyncio.create_task(call(function, 50, finished.set))
            await asyncio.sleep(0.02)
            waiting.cancel()
            await finished.wait()

        for function in (reports, reports_in_a_coroutine):
            asyncio.run(asyncio.wait_for(scenario(function), 20))

    def test_cancelled_call_has_time_to_clean_up(self):
        """A cancelled asynchronous call has time to clean up."""
        events = []

        async def waits():
            try:
                await asyncio.sleep(50)
            finally:
                await asyncio.sleep(0.02)
                events.append("cleaned up")

        async def scenario():
            finished = asyncio.Event()
            with pytest.raises(CallTimeoutError):
                await call(waits, 0.2, finished.set)
            await finished.wait()

        asyncio.run(scenario())
        assert events == ["cleaned up"]


class TestRendering:
    def test_arguments_are_converted_from_strings(self):
        """Arguments are converted from the strings that a client sends."""

        def add(first: int, second: int):
            return f"{first + second}"

        assert str(render_prompt(add, {"first": "1", "second": "2"}).workflow) == "[user]\n3"

    def test_all_argument_errors_are_returned(self):
        """All argument errors are returned, each with its argument."""

        def add(first: int, second: int):
            return f"{first + second}"

        rendering = render_prompt(add, {"first": "one"})

        assert [(error.argument, error.reason) for error in rendering.argument_errors] == [
            ("first", "is 'one', not a whole number"),
            ("second", "is missing"),
        ]
        assert (rendering.workflow, rendering.error) == (None, None)

    def test_missing_and_invalid_arguments_are_asked_for(self):
        """Missing and invalid arguments are asked for, unless the author turns forms off."""

        def release(version: str, steps: int = 1):
            return f"Release {version}."

        rendering = render_prompt(release, {"steps": "x"})

        assert [argument.name for argument in rendering.elicited] == ["version", "steps"]
        assert render_prompt(release, {"version": "1"}).elicited == ()
        assert render_prompt(release, {}, elicit=False).elicited == ()

    def test_prompt_error_has_no_traceback(self):
        """A `PromptError` shows only its message; any other exception shows a traceback."""

        def refuses(day: str):
            raise PromptError("not today")

        def returns():
            return 3

        def fails():
            raise LookupError("nothing there")

        assert render_prompt(refuses, {"day": "Monday"}).error == "not today"
        assert "returned an int" in render_prompt(returns).error
        assert render_prompt(fails).error.endswith("LookupError: nothing there\n")
        assert "Traceback" in render_prompt(fails).error

    def test_refused_defaults_are_not_a_failure(self):
        """A prompt that refuses its default values has not failed; one that refuses given values has."""

        def review(ref: str = "HEAD"):
            raise PromptError(f"there is no difference to {ref}")

        rendering = render_prompt(review)

        assert (rendering.error, rendering.skip_reason) == (None, "there is no difference to HEAD")
        assert render_prompt(review, {"ref": "main"}).error == "there is no difference to main"

    def test_unsampled_prompt_renders_only_given_values(self):
        """With `sample=False`, a prompt is only rendered with given values, and reports missing values."""

        def publish(version: str = "2.0"):
            return f"Publish {version}."

        def order(what: str):
            return what

        unsampled = render_prompt(publish, sample=False)
        submitted = render_prompt(publish, {"version": "1"}, sample=False)

        assert (unsampled.workflow, unsampled.error, unsampled.skip_reason) == (None, None, "sample=False")
        assert str(submitted.workflow[0].content) == "Publish 1."
        assert [error.argument for error in render_prompt(order, sample=False).argument_errors] == ["what"]

    def test_timeout_error_names_the_location(self):
        """A hanging prompt is stopped at its timeout, and the error names the location in the prompt."""

        async def hangs():
            await asyncio.sleep(50)

        pattern = r"prompt 'hangs' took longer than its limit of 0\.05 s, and was at .*test_rendering\.py:\d+"
        assert re.fullmatch(pattern, render_prompt(hangs, timeout=0.05).error)

    def test_secrets_are_hidden(self):
        """Secrets are hidden in error messages and in shown text."""
        from typing import Annotated

        from promptkit import Arg

        def fails(key: Annotated[str, Arg("A key", secret=True)]):
            raise PromptError(f"{key} is refused")

        rendering = render_prompt(fails, {"key": "sesame-opens"})

        assert rendering.error == "<secret> is refused"
        assert rendering.redact("all of sesame-opens") == "all of <secret>"

    def test_at_most_four_renderings_run_at_once(self):
        """At most four renderings of a prompt run at once; the next waits no longer than its timeout."""
        release, running = threading.Event(), []

        def hangs():
            running.append(1)
            release.wait(20)
            return "Done."

        async def scenario():
            catalog = make_catalog(hangs, timeout=0.2)
            calls = LimitedCalls()
            pending = [render(calls, catalog["hangs"], {}) for _ in range(7)]
            errors = {rendering.error for rendering in await asyncio.gather(*pending)}
            assert len(running) == 4
            release.set()
            last = await render(calls, catalog["hangs"], {})
            return errors, last

        errors, last = asyncio.run(scenario())
        location = Location(__file__, hangs.__code__.co_firstlineno + 2)

        assert sorted(errors) == [
            f"prompt 'hangs' {STILL_RUNNING}",
            f"prompt 'hangs' took longer than its limit of 0.2 s, and was at {location}",
        ]
        assert str(last.workflow) == "[user]\nDone."

    def test_stopped_rendering_frees_its_slot(self):
        """A rendering that is stopped frees its slot."""

        def endless(context: Context):
            for step in count():
                context.report_progress(step)

        async def scenario():
            catalog, calls = make_catalog(endless, timeout=0.05), LimitedCalls()
            return {(await render(calls, catalog["endless"], {})).error for _ in range(6)}

        errors = {error.partition(", and was at ")[0] for error in asyncio.run(scenario())}
        assert errors == {"prompt 'endless' took longer than its limit of 0.05 s"}
