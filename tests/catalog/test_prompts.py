import asyncio
import functools
import gc
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Message, PromptError, ResourceLink, Text, Workflow, assistant, user
from promptkit.catalog.prompts import FunctionRenderer
from promptkit.errors import EmptyPromptError
from promptkit.errors.diagnostics import Location
from promptkit.language.results import UNCOUNTED_MESSAGES
from tests.ids import stable_repr

LOCATION = Location("<recipe>", 7)
LINK = ResourceLink("a:b", name="a")

BYTES_HINT = "pass the bytes to Image(...), Audio(...) or EmbeddedResource(..., blob=...)"


def returning(value):
    """Return a prompt function that returns *value*."""

    def review():
        return value

    return review


def coroutine_of(value):
    """Return an asynchronous prompt function that returns *value*."""

    async def review():
        return value

    return review


def yielding(value):
    """Return a prompt function that yields *value* after another item."""

    def review():
        yield "first"
        yield value

    return review


def asynchronously_yielding(value):
    """Return an asynchronous prompt function that yields *value* after another item."""

    async def review():
        yield "first"
        await asyncio.sleep(0)
        yield value

    return review


KINDS = {
    "def": returning,
    "async def": coroutine_of,
    "generator": yielding,
    "async generator": asynchronously_yielding,
}


@pytest.fixture(params=KINDS)
def kind(request):
    """A function that builds a prompt of one kind from its last value, for each kind."""
    return KINDS[request.param]


@pytest.fixture(params=["sync", "async"])
def render(request):
    """A function that renders with `render` or with `render_async`."""

    def render_function(function, *args, **kwargs):
        renderer = FunctionRenderer(function, "review", LOCATION)
        if request.param == "sync":
            return renderer.render(*args, **kwargs)
        return asyncio.run(renderer.render_async(*args, **kwargs))

    return render_function


def first(kind):
    """Return what a prompt of the given kind renders before its value."""
    return user("first") if "yielding" in kind.__name__ else user()


class TestEveryKind:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("a", user("a")),
            (Text("a", priority=1), user(Text("a", priority=1))),
            (LINK, user(LINK)),
            (Message("assistant", "a"), assistant("a")),
            (user("a", LINK) + assistant("b"), user("a", LINK) + assistant("b")),
            (["a", None, (LINK, [assistant("b")])], user("a") + LINK + assistant("b")),
        ],
        ids=["str", "Text", "link", "Message", "Workflow", "nested"],
    )
    def test_every_kind_of_content(self, kind, value, expected):
        """Every kind of function can return or yield every kind of content."""
        renderer = FunctionRenderer(kind(value), "review", LOCATION)

        assert renderer.render() == first(kind) + expected

    @pytest.mark.parametrize(
        "value",
        [
            None,
            False,
            "",
            " \n",
            [],
            [None, ("", [])],
            user(),
            user(None, ""),
            Workflow(),
            Text(" "),
            iter(()),
        ],
        ids=stable_repr,
    )
    def test_prompt_without_content_is_an_error(self, kind, value):
        """A prompt without content raises EmptyPromptError, because an empty reply explains nothing."""
        renderer = FunctionRenderer(kind(value), "review", LOCATION)

        if "yielding" in kind.__name__:
            assert renderer.render() == user("first")
        else:
            with pytest.raises(
                EmptyPromptError, match="prompt 'review' rendered no messages for these arguments"
            ):
                renderer.render()
            with pytest.raises(PromptError):
                asyncio.run(renderer.render_async())

    def test_generator_without_content(self):
        """A generator that yields no items, None or empty messages has no content."""

        def none():
            yield from ()

        def blank():
            yield None
            yield user("", None)

        async def silent():
            for item in (None, ""):
                yield item

        for function in (none, blank, silent):
            with pytest.raises(EmptyPromptError):
                FunctionRenderer(function, "review", LOCATION).render()

    def test_empty_parts_are_omitted(self, kind):
        """Empty parts are omitted if there is other content."""
        renderer = FunctionRenderer(kind([user(None), user("a", None), ""]), "review", LOCATION)

        assert renderer.render() == first(kind) + user("a")

    def test_sync_and_async_rendering_agree(self, kind):
        """`render` and `render_async` return the same workflow."""
        renderer = FunctionRenderer(kind(["a", assistant("b")]), "review", LOCATION)

        assert asyncio.run(renderer.render_async()) == renderer.render()

    def test_only_asynchronous_functions_need_a_loop(self):
        """Only asynchronous functions need an event loop, even if a decorator wraps them."""

        def logged(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args)

            return wrapper

        kinds = {
            name: FunctionRenderer(make("a"), "review", LOCATION).is_async for name, make in KINDS.items()
        }

        assert kinds == {"def": False, "async def": True, "generator": False, "async generator": True}
        assert FunctionRenderer(logged(coroutine_of("a")), "review", LOCATION).is_async
        assert FunctionRenderer(logged(coroutine_of("a")), "review", LOCATION).render() == user("a")

    def test_arguments_are_passed_unchanged(self, render):
        """Positional and keyword arguments are passed unchanged."""
        assert render(lambda a, *, b: f"{a} {b}", "x", b="y") == user("x y")

    def test_each_rendering_calls_the_function(self, kind):
        """Each rendering calls the function again."""
        renderer = FunctionRenderer(kind("a"), "review", LOCATION)

        assert renderer.render() == renderer.render()

    @given(st.lists(st.text() | st.none() | st.just(LINK), max_size=5))
    def test_yielding_and_returning_are_equivalent(self, parts):
        """A generator renders like a list of its items."""

        def generator():
            yield from parts

        def render_or_error(function):
            try:
                return FunctionRenderer(function, "review", LOCATION).render()
            except EmptyPromptError as error:
                return str(error)

        assert render_or_error(generator) == render_or_error(lambda: parts)


class TestGenerators:
    def test_return_value_of_a_generator_comes_last(self, render):
        """The return value of a generator comes last."""

        def generator():
            yield "a"
            return assistant("b")

        assert render(generator) == user("a") + assistant("b")

    def test_generators_nest(self, render):
        """A generator can delegate to another with `yield from`, and receives its return value."""

        def inner():
            yield "a"
            return "b"

        def outer():
            returned = yield from inner()
            yield assistant(returned)

        assert render(outer) == user("a") + assistant("b")

    def test_iterator_renders_like_a_generator(self, render):
        """An iterator renders like a generator."""
        assert render(lambda: iter(["a", LINK])) == user("a") + LINK

    def test_generator_in_a_list_is_rendered_at_its_position(self, render):
        """A generator inside a list is rendered at its position."""
        assert render(lambda: ["a", (text for text in "bc"), "d"]) == user("a") + "b" + "c" + "d"

    def test_returned_generator_is_rendered(self, render):
        """A function can return another prompt's generator; its return value is included."""

        def inner():
            yield "a"
            return "b"

        async def later():
            return inner()

        assert render(lambda: inner()) == user("a") + "b"  # noqa: PLW0108 (a separate function)
        assert render(later) == user("a") + "b"


class TestRejections:
    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (3, "an int (3): convert it to text with str(...) or an f-string"),
            (True, "a bool (True): convert it to text with str(...) or an f-string"),
            ({"a": 1}, "a dict ({'a': 1}): convert it to text with promptkit.fragments.json_block(...)"),
            (b"a", f"a bytes (b'a'): {BYTES_HINT}"),
            (len, "the function 'len': call it"),
        ],
        ids=["int", "bool", "dict", "bytes", "function"],
    )
    def test_other_values_are_rejected_with_a_fix(self, kind, value, message):
        """A value that is not content raises a TypeError with the fix."""
        with pytest.raises(TypeError) as caught:
            FunctionRenderer(kind(value), "review", LOCATION).render()

        assert str(caught.value).startswith("prompt 'review' (<recipe>:7) ")
        assert str(caught.value).endswith(message)

    @pytest.mark.parametrize(
        ("value", "position"),
        [
            (3, "returned an int (3): "),
            (["a", 3], "returned, at position 2, an int (3): "),
            (["a", ["b", "c", (3,)]], "returned, at position 2, at position 3, at position 1, an int (3): "),
        ],
        ids=["alone", "in a list", "nested"],
    )
    def test_error_has_the_location_and_the_position(self, value, position):
        """The error names the prompt, its location, the position in the result, the value and the fix."""
        with pytest.raises(TypeError) as caught:
            FunctionRenderer(returning(value), "review", LOCATION).render()

        assert str(caught.value) == (
            f"prompt 'review' (<recipe>:7) {position}convert it to text with str(...) or an f-string"
        )

    @pytest.mark.parametrize("make", [yielding, asynchronously_yielding])
    def test_error_has_the_number_of_the_yield(self, make):
        """For a generator, the error gives the number of the yield."""
        with pytest.raises(TypeError) as caught:
            FunctionRenderer(make(3), "review", LOCATION).render()

        assert str(caught.value) == (
            "prompt 'review' (<recipe>:7) yielded, at position 2, an int (3): "
            "convert it to text with str(...) or an f-string"
        )

    def test_invalid_return_value_of_a_generator(self, render):
        """An invalid return value of a generator is reported as returned, not as yielded."""

        def generator():
            yield "a"
            return 3

        with pytest.raises(TypeError) as caught:
            render(generator)

        assert str(caught.value).startswith("prompt 'review' (<recipe>:7) returned")

    @pytest.mark.parametrize(
        "wrap", [lambda value: value, lambda value: ["a", value]], ids=["alone", "in a list"]
    )
    def test_unawaited_coroutine(self, wrap):
        """The error for a coroutine says to await it, and there is no additional warning from Python."""
        coroutine = coroutine_of("a")

        with pytest.raises(TypeError, match=r"a coroutine \(.*\): await it in an `async def` prompt$"):
            FunctionRenderer(lambda: wrap(coroutine()), "review", LOCATION).render()
        gc.collect()  # an unawaited coroutine would warn here

    def test_returned_coroutine_is_rejected_by_both_ways_to_render(self):
        """A plain function that returns a coroutine fails with `render_async` as it fails in the server."""
        renderer = FunctionRenderer(lambda: coroutine_of("a")(), "review", LOCATION)  # noqa: PLW0108 (lambda is not a coroutine function)

        with pytest.raises(TypeError, match="await it in an `async def` prompt"):
            asyncio.run(renderer.render_async())

    def test_returned_asynchronous_generator(self):
        """The error for an asynchronous generator in a plain function says how to iterate over it."""
        renderer = FunctionRenderer(lambda: asynchronously_yielding("a")(), "review", LOCATION)  # noqa: PLW0108

        with pytest.raises(TypeError, match="iterate over it with `async for` in an `async def` prompt"):
            renderer.render()

    def test_asynchronous_prompt_inside_a_running_loop(self):
        """The error in a running loop says to await `render_async`, and no coroutine stays unawaited."""

        async def caller():
            FunctionRenderer(coroutine_of("a"), "review", LOCATION).render()

        with pytest.raises(RuntimeError) as caught:
            asyncio.run(caller())
        gc.collect()

        assert str(caught.value) == (
            "prompt 'review' is asynchronous, and an event loop is already running: await .render_async(...)"
        )

    def test_plain_prompt_inside_a_running_loop(self):
        """A plain prompt renders inside a running event loop."""

        async def caller():
            return FunctionRenderer(returning("a"), "review", LOCATION).render()

        assert asyncio.run(caller()) == user("a")


class TestLimit:
    MESSAGE = (
        "prompt 'review' (<recipe>:7) {}more than 1,000 bytes, in {} items: use fewer or shorter items, "
        "and no endless iterators"
    )

    @staticmethod
    def render(function, limit=1000):
        """Render like a server whose replies are limited to *limit* bytes."""
        renderer = FunctionRenderer(function, "review", LOCATION)
        if renderer.is_async:
            return asyncio.run(renderer.render_awaited({}, limit=limit))
        return renderer.render_sync({}, limit)

    @pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
    def test_infinite_generator_is_stopped(self, is_async):
        """An infinite generator is closed soon after it exceeds the limit, and the error says what to do."""
        yielded, ended = [], []

        def generator():
            try:
                while True:
                    yielded.append(user("x" * 100))
                    yield yielded[-1]
            finally:
                ended.append(True)

        async def agenerator():
            try:
                while True:
                    yielded.append(user("x" * 100))
                    yield yielded[-1]
            finally:
                await asyncio.sleep(0)
                ended.append(True)

        with pytest.raises(TypeError) as caught:
            self.render(agenerator if is_async else generator)

        assert str(caught.value) == (
            f"{self.MESSAGE.format('yielded ', 7)}; use --max-reply to raise a server's limit"
        )
        assert len(yielded) <= 7 + UNCOUNTED_MESSAGES
        assert ended == [True]

    @pytest.mark.parametrize(
        ("function", "verb"),
        [
            (lambda: repeat("x" * 100), "yielded "),
            (lambda: [repeat("x" * 100)], "returned "),
            (lambda: ["x" * 100] * 10, "returned "),
            (lambda: Workflow([*user("x" * 100)] * 10), "returned "),
            (coroutine_of(["x" * 100] * 10), "returned "),
            (coroutine_of(repeat("x" * 100)), "yielded "),
        ],
        ids=["iterator", "iterator in a list", "list", "workflow", "coroutine", "coroutine of an iterator"],
    )
    def test_limit_applies_to_every_source(self, function, verb):
        """Iterators, lists, workflows and coroutines have the same limit as generators."""
        with pytest.raises(TypeError) as caught:
            self.render(function)

        assert str(caught.value).startswith(self.MESSAGE.format(verb, 7))

    def test_yielded_and_returned_content_count_together(self):
        """The limit applies to yielded and returned content together."""

        def generator():
            for _ in range(5):
                yield "x" * 100
            return ["x" * 100] * 5

        with pytest.raises(TypeError, match="returned more than 1,000 bytes"):
            self.render(generator)

    def test_content_below_the_limit(self):
        """Content below the limit is rendered completely."""
        assert len(self.render(lambda: iter(["x" * 100] * 10), 2000)) == 10

    def test_invalid_value_stops_a_generator(self, render):
        """A value that cannot be sent stops the generator, which only runs its cleanup."""
        resumed, ended = [], []

        def generator():
            try:
                yield 3
                resumed.append(True)
            finally:
                ended.append(True)

        with pytest.raises(TypeError, match="yielded, at position 1, an int"):
            render(generator)

        assert (resumed, ended) == ([], [True])

    def test_empty_items_are_dropped(self):
        """Empty items are dropped, so that a generator that yields only those does not fill the memory."""

        def generator():
            for _ in range(100_000):
                yield None
                yield ""
                yield []
            yield "x"

        assert self.render(generator) == user("x")


class TestExceptions:
    @pytest.mark.parametrize(
        "error", [PromptError("no logs yet"), ValueError("bug"), KeyError("bug")], ids=stable_repr
    )
    def test_exception_is_propagated(self, kind, error):
        """An exception from the function is propagated unchanged."""

        def fail():
            raise error
            yield "never"

        with pytest.raises(type(error)) as caught:
            FunctionRenderer(kind(fail()), "review", LOCATION).render()

        assert caught.value is error

    def test_finally_blocks_run(self, render):
        """The `finally` blocks of a generator run when it raises."""
        ended = []

        def generator():
            try:
                yield "a"
                raise PromptError("stop")
            finally:
                ended.append(True)

        with pytest.raises(PromptError):
            render(generator)

        assert ended == [True]
