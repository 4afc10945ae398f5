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
    """The same, asynchronous."""

    async def review():
        return value

    return review


def yielding(value):
    """A prompt that yields *value* after something else."""

    def review():
        yield "first"
        yield value

    return review


def asynchronously_yielding(value):
    """The same, asynchronous."""

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
    """A function that makes a prompt of each kind, from the value that it says last."""
    return KINDS[request.param]


@pytest.fixture(params=["sync", "async"])
def render(request):
    """Both ways to render."""

    def rendered(function, *args, **kwargs):
        renderer = FunctionRenderer(function, "review", HERE)
        if request.param == "sync":
            return renderer.render(*args, **kwargs)
        return asyncio.run(renderer.render_async(*args, **kwargs))

    return rendered


def first(kind):
    """What a prompt of that kind says before the value."""
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
        """
        Each kind of function may say each kind of thing.
        """
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
        """
        No client is sent an empty list of messages: it would show nothing, and not why.
        """
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
        """
        Neither of its kinds says anything: no item, None alone, or turns of nothing.
        """

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
        """
        What is left out where there is more to say stays out.
        """
        renderer = FunctionRenderer(kind([user(None), user("a", None), ""]), "review", HERE)

        assert renderer.render() == first(kind) + user("a")

    def test_both_ways_to_render_agree(self, kind):
        """
        With and without await the same comes out.
        """
        renderer = FunctionRenderer(kind(["a", assistant("b")]), "review", HERE)

        assert asyncio.run(renderer.render_async()) == renderer.render()

    def test_it_is_known_whether_a_loop_is_needed(self):
        """
        Only asynchronous functions need one, also behind a decorator.
        """

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
        """
        By position and by name, as they are.
        """
        assert render(lambda a, *, b: f"{a} {b}", "x", b="y") == user("x y")

    def test_each_rendering_is_a_new_one(self, kind):
        """
        A generator is started again each time.
        """
        renderer = FunctionRenderer(kind("a"), "review", HERE)

        assert renderer.render() == renderer.render()

    @given(st.lists(st.text() | st.none() | st.just(LINK), max_size=5))
    def test_yielding_and_returning_a_list_are_the_same(self, parts):
        """
        A generator says what a list of its items would.
        """

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
        """
        A return after yields is not lost.
        """

        def generator():
            yield "a"
            return assistant("b")

        assert render(generator) == user("a") + assistant("b")

    def test_generators_nest(self, render):
        """
        `yield from` brings the turns of another, and its return value to the author.
        """

        def inner():
            yield "a"
            return "b"

        def outer():
            found = yield from inner()
            yield assistant(found)

        assert render(outer) == user("a") + assistant("b")

    def test_an_iterator_is_said_as_a_generator_is(self, render):
        """
        Whatever yields, yields turns.
        """
        assert render(lambda: iter(["a", LINK])) == user("a") + LINK

    def test_a_generator_in_a_list_is_said_in_its_place(self, render):
        """
        A generator in a list yields its messages where it stands.
        """
        assert render(lambda: ["a", (text for text in "bc"), "d"]) == user("a") + "b" + "c" + "d"

    def test_a_generator_may_be_delegated_to_without_yield_from(self, render):
        """
        Returning another prompt's generator says what it yields, and what it returns.
        """

        def inner():
            yield "a"
            return "b"

        async def later():
            return inner()

        assert render(lambda: inner()) == user("a") + "b"  # noqa: PLW0108 (a function of its own)
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
        """
        Whatever no message can hold is a TypeError that says what to write, and never its str().
        """
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
        """
        The error is a sentence: prompt, file and line, where in the result, what it is, the fix.
        """
        with pytest.raises(TypeError) as caught:
            FunctionRenderer(returning(value), "review", HERE).render()

        assert str(caught.value) == (
            f"prompt 'review' (<recipe>:7) {place}make it text, with str(...) or an f-string"
        )

    @pytest.mark.parametrize("make", [yielding, asynchronously_yielding])
    def test_the_yield_is_counted(self, make):
        """
        Of a generator, the position tells which yield it was.
        """
        with pytest.raises(TypeError) as caught:
            FunctionRenderer(make(3), "review", HERE).render()

        assert str(caught.value) == (
            "prompt 'review' (<recipe>:7) yielded, at position 2, an int (3): "
            "make it text, with str(...) or an f-string"
        )

    def test_what_a_generator_returns_was_not_yielded(self, render):
        """
        The error names the return, and no yield.
        """

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
        """
        It is closed, so that nothing else complains, and the error says to await it.
        """
        coroutine = coroutine_of("a")

        with pytest.raises(TypeError, match=r"a coroutine \(.*\): await it, in an `async def` prompt$"):
            FunctionRenderer(lambda: where(coroutine()), "review", HERE).render()
        gc.collect()  # an unawaited coroutine would warn here

    def test_an_awaited_form_serves_no_more_than_the_server_does(self):
        """
        A plain function that forgot to await fails in its tests as it fails when served.
        """
        renderer = FunctionRenderer(lambda: coroutine_of("a")(), "review", HERE)  # noqa: PLW0108 (it is no coroutine function)

        with pytest.raises(TypeError, match="await it, in an `async def` prompt"):
            asyncio.run(renderer.render_async())

    def test_an_asynchronous_generator_in_a_plain_function(self):
        """
        It cannot be drained there, and the error says where it can.
        """
        renderer = FunctionRenderer(lambda: asynchronously_yielding("a")(), "review", HERE)  # noqa: PLW0108

        with pytest.raises(TypeError, match="iterate over it with `async for`, in an `async def` prompt"):
            renderer.render()

    def test_rendering_an_asynchronous_prompt_within_a_loop(self):
        """
        The error says what to await, and leaves no coroutine behind.
        """

        async def caller():
            FunctionRenderer(coroutine_of("a"), "review", HERE).render()

        with pytest.raises(RuntimeError) as caught:
            asyncio.run(caller())
        gc.collect()

        assert str(caught.value) == (
            "prompt 'review' is asynchronous, and an event loop runs here: await .render_async(...)"
        )

    def test_a_plain_prompt_renders_within_a_loop(self):
        """
        It needs none of its own.
        """

        async def caller():
            return FunctionRenderer(returning("a"), "review", HERE).render()

        assert asyncio.run(caller()) == user("a")


class TestWhatIsTooLong:
    SAID = "prompt 'review' (<recipe>:7) {}more than 1,000 bytes, in {} items: let it end, or give less"

    @staticmethod
    def render(function, most=1000):
        """As a server renders it, which may send so many bytes."""
        renderer = FunctionRenderer(function, "review", HERE)
        if renderer.is_async:
            return asyncio.run(renderer.render_awaited({}, most=most))
        return renderer.render_sync({}, most)

    @pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
    def test_a_generator_without_an_end_is_stopped(self, is_async):
        """
        Soon after it has yielded as much as a reply may have; it cleans up, and the error says what to do.
        """
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
        """
        An iterator, or one message many times, is no longer than a generator may be.
        """
        with pytest.raises(TypeError) as caught:
            self.render(function)

        assert str(caught.value).startswith(self.SAID.format(verb, 7))

    def test_what_it_returns_counts_with_what_it_yields(self):
        """
        Together they are one reply.
        """

        def generator():
            for _ in range(5):
                yield "x" * 100
            return ["x" * 100] * 5

        with pytest.raises(TypeError, match="returned more than 1,000 bytes"):
            self.render(generator)

    def test_what_a_server_may_send_is_said(self):
        """
        A higher limit lets it through.
        """
        assert len(self.render(lambda: iter(["x" * 100] * 10), 2000)) == 10

    def test_a_value_that_cannot_be_sent_stops_a_generator(self, render):
        """
        What comes after it is not run, but for what cleans up.
        """
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
        """
        What says nothing is not kept, so that it fills no memory: a time limit stops it.
        """

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
        """
        The author's exception arrives unchanged, whenever it is raised.
        """

        def fail():
            raise error
            yield "never"

        with pytest.raises(type(error)) as caught:
            FunctionRenderer(kind(fail()), "review", HERE).render()

        assert caught.value is error

    def test_finally_blocks_run(self, render):
        """
        A generator is always run to its end, or to what it raises.
        """
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
