"""A prompt whose text contains the ``repr`` of content is rejected, and `repr` itself works anywhere."""

import asyncio
import inspect
import logging
import types
from contextvars import copy_context

import pytest

from promptkit import (
    EmbeddedResource,
    Image,
    ResourceLink,
    Text,
    Workflow,
    assistant,
    cache_point,
    prompt,
    system,
    user,
)
from promptkit.errors import ResultError
from promptkit.testing import Client, ProtocolError

LINK = ResourceLink("docs://a", name="a")


def values(png):
    """Return a value of every kind of content and turn, except plain text."""
    return [
        *(Image(png), LINK, EmbeddedResource("docs://a", text="b"), Text("a", priority=1)),
        *(user("a"), user("a").messages[0], system("a") + user(LINK), cache_point()),
    ]


def put_in_text(value):
    """Return strings that contain the repr of a value, one for each way of formatting it."""
    return [
        f"Look: {[value]}",
        f"Look: { {'image': value} }",
        "Look: {}".format((value,)),  # noqa: UP032 (authors write it)
        "Look: %s" % [value],
        f"Look: {value!r}",
        " ".join(map(str, [[value]])),
    ]


class TestRejected:
    def test_every_kind_in_every_container(self, png):
        """The repr of any content or turn is found in text, however it was formatted."""

        @prompt
        def show(kind: int, way: int):
            return put_in_text(values(png)[kind])[way]

        for kind in range(len(values(png))):
            for way in range(len(put_in_text(LINK))):
                with pytest.raises(ResultError):
                    show.render(kind, way)

    @pytest.mark.parametrize(
        "compose",
        [
            lambda text: text,
            Text,
            lambda text: user("a", text),
            lambda text: system(text) + user("a"),
            lambda text: user("a") + assistant(EmbeddedResource("docs://b", text=text)),
            lambda text: iter(["a", text]),
        ],
    )
    def test_anywhere_in_the_result(self, compose):
        """A repr is found in text, content, turns, system parts and yielded values."""

        @prompt
        def show():
            return compose(f"Look: {[LINK]}")

        with pytest.raises(ResultError, match="'show'"):
            show.render()
        with pytest.raises(ProtocolError), Client(show) as client:
            client.get_prompt("show")

    def test_asynchronous_prompts(self):
        """A repr is found in the results of coroutines and of asynchronous generators."""

        @prompt
        async def show():
            await asyncio.sleep(0)
            return await asyncio.create_task(format_later())

        async def format_later():
            return f"Look: {[LINK]}"

        @prompt
        async def stream():
            yield "a"
            await asyncio.sleep(0)
            yield f"Look: {[LINK]}"

        for asynchronous in (show, stream):
            with pytest.raises(ResultError):
                asynchronous.render()

    def test_the_error_shows_the_value_and_a_fix(self):
        """The error has the prompt, its location, the whole value and a fix."""

        @prompt
        def show():
            return f"Look: {[user(LINK)]}"

        @prompt
        def show_link():
            return f"Look: {[LINK]}"

        with pytest.raises(ResultError) as turns:
            show.render()
        with pytest.raises(ResultError) as content:
            show_link.render()

        assert str(turns.value).startswith("prompt 'show' (")
        assert "test_reprs.py:" in str(turns.value)
        assert repr(user(LINK)) in str(turns.value)
        assert str(turns.value).endswith("join turns with +")
        assert repr(LINK) in str(content.value)
        assert str(content.value).endswith("pass it to user(...) as a separate part")

    def test_a_nested_rendering(self):
        """A prompt that renders another prompt is still rejected for content formatted into its own text."""

        @prompt
        def inner():
            return "a"

        @prompt
        def outer():
            shown = f"{[LINK]}"
            return user(inner.render().text, shown)

        with pytest.raises(ResultError, match="'outer'"):
            outer.render()


class TestAccepted:
    def test_a_repr_that_is_not_sent(self, caplog):
        """Logs and comparisons can show content while the prompt renders."""
        caplog.set_level(logging.DEBUG)

        @prompt
        def show():
            logging.getLogger("recipes").debug("parts: %r", [LINK])
            assert repr(LINK)
            return user("Look.", LINK)

        assert show.render() == user("Look.", LINK)
        assert repr(LINK) in caplog.text

    def test_a_repr_made_elsewhere(self):
        """Text that looks like a repr is accepted if it was not formatted while the prompt rendered."""
        text = repr(LINK)

        @prompt
        def show():
            return text

        assert show.render() == user(text)

    def test_a_transcript(self):
        """`str` of a workflow is its transcript, and can be sent."""

        @prompt
        def show():
            return user("Summarize this.", str(user("a", LINK)))

        assert "[user]\n" in show.render().text

    def test_an_abandoned_coroutine(self):
        """A coroutine can be closed in a context other than its own, as garbage collection does."""

        @prompt
        async def wait():
            await suspend()

        @types.coroutine
        def suspend():
            yield

        coroutine = wait.render_async()
        copy_context().run(coroutine.send, None)
        coroutine.close()

        assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED

    def test_after_a_rendering(self):
        """A failed rendering does not affect later ones."""

        @prompt
        def show(*, is_wrong: bool) -> Workflow:
            return user(f"Look: {[LINK]}" if is_wrong else "Look.", LINK)

        with pytest.raises(ResultError):
            show.render(is_wrong=True)
        assert show.render(is_wrong=False) == user("Look.", LINK)
        assert repr(LINK) == "ResourceLink('docs://a', name='a')"
