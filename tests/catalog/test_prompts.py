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
from promptkit.language.results import FREE_MESSAGES
from tests.ids import shown

HERE = Location("<recipe>", 7)
LINK = ResourceLink("a:b", name="a")

SAY_WHAT_BYTES_ARE = (
    "state the type of the bytes, with Image(...), Audio(...) or EmbeddedResource(..., blob=...)"
)


def returning(value):
    """A prompt that returns *value*."""

    def review():
        return value

    return review


def coroutine_of(value):
    """An asynchronous prompt that returns *value*."""

    async def review():
        return value

    return review


def yielding(value):
    """A prompt that yields *value* after another item."""

    def review():
        yield "first"
        yield value

    return review


def asynchronously_yielding(value):
    """An asynchronous prompt that yields *value* after another item."""

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
    """A function that builds a prompt of each kind from its last value."""
    return KINDS[request.param]


@pytest.fixture(params=["sync", "async"])
def render(request):
    """Render with `render` or with `render_async`."""

    def rendered(function, *args, **kwargs):
        renderer = FunctionRenderer(function, "review", HERE)
        if request.param == "sync":
            return renderer.render(*args, **kwargs)
        return asyncio.run(renderer.render_async(*args, **kwargs))

    return rendered


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
    def test_what_a_function_says_is_a_workflow(self, kind, value, expected):
        """Every kind of function can return or yield every kind of content."""
        renderer = FunctionRenderer(kind(value), "review", HERE)

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
        ids=shown,
    )
    def test_nothing_is_an_error_that_is_told(self, kind, value):
        """A prompt without content raises EmptyPromptError, because an empty reply explains nothing."""
        renderer = FunctionRenderer(kind(value), "review", HERE)

        if "yielding" in kind.__name__:
            assert renderer.render() == user("first")
        else:
            with pytest.raises(
                EmptyPromptError, match="prompt 'review' has nothing to say for these arguments"
            ):
                renderer.render()
            with pytest.raises(PromptError):
                asyncio.run(renderer.render_async())

    def test_a_generator_that_yields_nothing(self):
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
                FunctionRenderer(function, "review", HERE).render()

    def test_nothing_is_fine_as_a_part(self, kind):
        """Empty parts are omitted if there is other content."""
        renderer = FunctionRenderer(kind([user(None), user("a", None), ""]), "review", HERE)

        assert renderer.render() == first(kind) + user("a")

    def test_both_ways_to_render_agree(self, kind):
        """`render` and `render_async` return the same workflow."""
        renderer = FunctionRenderer(kind(["a", assistant("b")]), "review", HERE)

        assert asyncio.run(renderer.render_async()) == renderer.render()

    def test_it_is_known_whether_a_loop_is_needed(self):
        """Only asynchronous functions need an event loop, even if a decorator wraps them."""

        def logged(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args)

            return wrapper

        kinds = {name: FunctionRenderer(make("a"), "review", HERE).is_async for name, make in KINDS.items()}

        assert kinds == {"def": False, "async def": True, "generator": False, "async generator": True}
        assert FunctionRenderer(logged(coroutine_of("a")), "review", HERE).is_async
        assert FunctionRenderer(logged(coroutine_of("a")), "review", HERE).render() == user("a")

    def test_arguments_are_passed_on(self, render):
        """Positional and keyword arguments are passed unchanged."""
        assert render(lambda a, *, b: f"{a} {b}", "x", b="y") == user("x y")

    def test_each_rendering_is_a_new_one(self, kind):
        """Each rendering calls the function again."""
        renderer = FunctionRenderer(kind("a"), "review", HERE)

        assert renderer.render() == renderer.render()

    @given(st.lists(st.text() | st.none() | st.just(LINK), max_size=5))
    def test_yielding_and_returning_a_list_are_the_same(self, parts):
        """A generator renders like a list of its items."""

        def generator():
            yield from parts

        def said(function):
            try:
                return FunctionRenderer(function, "review", HERE).render()
            except EmptyPromptError as error:
                return str(error)

        assert said(generator) == said(lambda: parts)


class TestGenerators:
    def test_what_a_generator_returns_is_said_last(self, render):
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
            found = yield from inner()
            yield assistant(found)

        assert render(outer) == user("a") + assistant("b")

    def test_an_iterator_is_said_as_a_generator_is(self, render):
        """An iterator renders like a generator."""
        assert render(lambda: iter(["a", LINK])) == user("a") + LINK

    def test_a_generator_in_a_list_is_said_in_its_place(self, render):
        """A generator inside a list is rendered at its position."""
        assert render(lambda: ["a", (text for text in "bc"), "d"]) == user("a") + "b" + "c" + "d"

    def test_a_generator_may_be_delegated_to_without_yield_from(self, render):
        """A function can return another prompt's generator; its return value is included."""

        def inner():
            yield "a"
            return "b"

        async def later():
            return inner()

        assert render(lambda: inner()) == user("a") + "b"  # noqa: PLW0108 (a separate function)
        assert render(later) == user("a") + "b"


class TestRefusals:
    @pytest.mark.parametrize(
        ("value", "says"),
        [
            (3, "an int (3): make it text, with str(...) or an f-string"),
            (True, "a bool (True): make it text, with str(...) or an f-string"),
            ({"a": 1}, "a dict ({'a': 1}): show it as text, with promptkit.fragments.json_block(...)"),
            (b"a", f"a bytes (b'a'): {SAY_WHAT_BYTES_ARE}"),
            (len, "the function 'len': call it"),
        ],
        ids=["int", "bool", "dict", "bytes", "function"],
    )
    def test_anything_else_is_refused_with_its_fix(self, kind, value, says):
        """A value that is not content raises a TypeError with the fix."""
        with pytest.raises(TypeError) as caught:
            FunctionRenderer(kind(value), "review", HERE).render()

        assert str(caught.value).startswith("prompt 'review' (<recipe>:7) ")
        assert str(caught.value).endswith(says)

    @pytest.mark.parametrize(
        ("value", "place"),
        [
            (3, "returned an int (3): "),
            (["a", 3], "returned, at position 2, an int (3): "),
            (["a", ["b", "c", (3,)]], "returned, at position 2, at position 3, at position 1, an int (3): "),
        ],
        ids=["alone", "in a list", "nested"],
    )
    def test_it_names_the_prompt_and_the_place(self, value, place):
        """The error names the prompt, its location, the position in the result, the value and the fix."""
        with pytest.raises(TypeError) as caught:
            FunctionRenderer(returning(value), "review", HERE).render()

        assert str(caught.value) == (
            f"prompt 'review' (<recipe>:7) {place}make it text, with str(...) or an f-string"
        )

    @pytest.mark.parametrize("make", [yielding, asynchronously_yielding])
    def test_the_yield_is_counted(self, make):
        """For a generator, the error gives the number of the yield."""
        with pytest.raises(TypeError) as caught:
            FunctionRenderer(make(3), "review", HERE).render()

        assert str(caught.value) == (
            "prompt 'review' (<recipe>:7) yielded, at position 2, an int (3): "
            "make it text, with str(...) or an f-string"
        )

    def test_what_a_generator_returns_was_not_yielded(self, render):
        """An invalid return value of a generator is reported as returned, not as yielded."""

        def generator():
            yield "a"
            return 3

        with pytest.raises(TypeError) as caught:
            render(generator)

        assert str(caught.value).startswith("prompt 'review' (<recipe>:7) returned")

    @pytest.mark.parametrize(
        "where", [lambda value: value, lambda value: ["a", value]], ids=["alone", "in a list"]
    )
    def test_a_coroutine_that_nobody_awaited(self, where):
        """The error for a coroutine says to await it, and Python does not warn about it as well."""
        coroutine = coroutine_of("a")

        with pytest.raises(TypeError, match=r"a coroutine \(.*\): await it, in an `async def` prompt$"):
            FunctionRenderer(lambda: where(coroutine()), "review", HERE).render()
        gc.collect()  # an unawaited coroutine would warn here

    def test_an_awaited_form_serves_no_more_than_the_server_does(self):
        """A plain function that returns a coroutine fails with `render_async` as it fails in the server."""
        renderer = FunctionRenderer(lambda: coroutine_of("a")(), "review", HERE)  # noqa: PLW0108 (lambda is not a coroutine function)

        with pytest.raises(TypeError, match="await it, in an `async def` prompt"):
            asyncio.run(renderer.render_async())

    def test_an_asynchronous_generator_in_a_plain_function(self):
        """The error for an asynchronous generator in a plain function says how to iterate over it."""
        renderer = FunctionRenderer(lambda: asynchronously_yielding("a")(), "review", HERE)  # noqa: PLW0108

        with pytest.raises(TypeError, match="iterate over it with `async for`, in an `async def` prompt"):
            renderer.render()

    def test_rendering_an_asynchronous_prompt_within_a_loop(self):
        """The error in a running loop says to await `render_async`, and no coroutine stays unawaited."""

        async def caller():
            FunctionRenderer(coroutine_of("a"), "review", HERE).render()

        with pytest.raises(RuntimeError) as caught:
            asyncio.run(caller())
        gc.collect()

        assert str(caught.value) == (
            "prompt 'review' is asynchronous, and an event loop runs here: await .render_async(...)"
        )

    def test_a_plain_prompt_renders_within_a_loop(self):
        """A plain prompt renders inside a running event loop."""

        async def caller():
            return FunctionRenderer(returning("a"), "review", HERE).render()

        assert asyncio.run(caller()) == user("a")


class TestWhatIsTooLong:
    SAID = "prompt 'review' (<recipe>:7) {}more than 1,000 bytes, in {} items: let it end, or give less"

    @staticmethod
    def render(function, most=1000):
        """Render like a server whose replies are limited to *most* bytes."""
        renderer = FunctionRenderer(function, "review", HERE)
        if renderer.is_async:
            return asyncio.run(renderer.render_awaited({}, most=most))
        return renderer.render_sync({}, most)

    @pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
    def test_a_generator_without_an_end_is_stopped(self, is_async):
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
            f"{self.SAID.format('yielded ', 7)}; --max-reply lets a server send more"
        )
        assert len(yielded) <= 7 + FREE_MESSAGES
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
    def test_whatever_says_it(self, function, verb):
        """Iterators, lists, workflows and coroutines have the same limit as generators."""
        with pytest.raises(TypeError) as caught:
            self.render(function)

        assert str(caught.value).startswith(self.SAID.format(verb, 7))

    def test_what_it_returns_counts_with_what_it_yields(self):
        """The limit applies to yielded and returned content together."""

        def generator():
            for _ in range(5):
                yield "x" * 100
            return ["x" * 100] * 5

        with pytest.raises(TypeError, match="returned more than 1,000 bytes"):
            self.render(generator)

    def test_what_a_server_may_send_is_said(self):
        """A higher limit accepts the content."""
        assert len(self.render(lambda: iter(["x" * 100] * 10), 2000)) == 10

    def test_a_value_that_cannot_be_sent_stops_a_generator(self, render):
        """A value that cannot be sent stops the generator, which only runs its cleanup."""
        went, ended = [], []

        def generator():
            try:
                yield 3
                went.append(True)
            finally:
                ended.append(True)

        with pytest.raises(TypeError, match="yielded, at position 1, an int"):
            render(generator)

        assert (went, ended) == ([], [True])

    def test_nothing_yielded_for_ever_is_nothing(self):
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
        "error", [PromptError("no logs yet"), ValueError("bug"), KeyError("bug")], ids=shown
    )
    def test_what_a_function_raises_is_raised(self, kind, error):
        """An exception from the function is propagated unchanged."""

        def fail():
            raise error
            yield "never"

        with pytest.raises(type(error)) as caught:
            FunctionRenderer(kind(fail()), "review", HERE).render()

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
