import asyncio
import enum
import functools
import inspect
import sys
import types
import typing
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import (
    Arg,
    ArgumentsError,
    CompileError,
    Context,
    Icon,
    Message,
    Prompt,
    PromptError,
    Workflow,
    assistant,
    prompt,
    user,
)
from promptkit.errors import EmptyPromptError
from promptkit.errors.rules import Rule
from promptkit.loader.loader import load
from promptkit.testing import Client

#: A recipe whose return type is imported for type checkers only.
CHECKED = """
from typing import TYPE_CHECKING
from promptkit import prompt
if TYPE_CHECKING:
    from decimal import Decimal
@prompt
def one() -> Decimal:
    return "x"
"""


class Tone(enum.Enum):
    WARM = "warm"
    COLD = "cold"


@prompt
def review(diff: str, language: Literal["python", "rust"] = "python", *, depth: int = 1) -> Workflow:
    """
    Review a change.

    At some length.

    Args:
        diff: What changed
        language: The programming language
        depth: How deep to look
    """
    return user(f"Review this {language} change, depth {depth}:", diff)


@prompt
async def fetch(name: str) -> str:
    """Fetch."""
    await asyncio.sleep(0)
    return f"fetched {name}"


@prompt
def steps(count: int):
    """Count."""
    for i in range(count):
        yield f"step {i}"


@prompt
async def live(count: int):
    """Count, slowly."""
    for i in range(count):
        await asyncio.sleep(0)
        yield assistant(f"step {i}")


class TestContract:
    def test_the_decorators_options(self):
        """The options of `@prompt` are keyword-only, in the documented order."""
        parameters = list(inspect.signature(prompt).parameters.values())

        assert parameters[0].kind is inspect.Parameter.POSITIONAL_ONLY
        assert [str(p.replace(annotation=p.empty)) for p in parameters[1:]] == [
            "name=None",
            "title=None",
            "description=None",
            "icons=()",
            "tags=()",
            "version=None",
            "timeout=None",
            "cache=None",
            "meta=None",
            "elicit=None",
            "scopes=()",
            "tool=None",
            "answer=None",
            "deprecated=None",
            "sample=True",
        ]

    def test_the_documented_example(self):
        """The documented example works, both called directly and rendered."""
        language = Literal["python", "rust", "go"]

        @prompt
        def code_review(
            code: Annotated[str, Arg("The code to review")],
            language: language = "python",
            focus: list[str] = ["correctness"],  # noqa: B006 (as documented)
        ) -> Workflow:
            """Ask for a review of a piece of code."""
            return user(f"Please review this {language} code for {', '.join(focus)}.", code)

        assert code_review("fn main() {}", language="rust") == user(
            "Please review this rust code for correctness.", "fn main() {}"
        )
        assert "speed, clarity" in str(code_review.render_wire({"code": "x", "focus": "speed, clarity"}))


class TestFunction:
    def test_a_direct_call_calls_the_function(self):
        """A call returns what the function returns, for every kind of function."""
        assert review("+a", "rust", depth=2) == user("Review this rust change, depth 2:", "+a")
        assert list(steps(2)) == ["step 0", "step 1"]
        assert asyncio.run(fetch("a")) == "fetched a"
        assert inspect.isgenerator(steps(1))
        assert inspect.isasyncgen(live(1))

    @pytest.mark.parametrize(
        "options", [None, {}, {"name": "other", "title": "Other"}], ids=["bare", "()", "options"]
    )
    @pytest.mark.parametrize(
        "decorated", [review, fetch, steps, live], ids=lambda decorated: decorated.__name__
    )
    def test_a_prompt_looks_like_its_function(self, decorated, options):
        """A prompt has the name, docstring, module and signature of its function."""
        function = decorated.__wrapped__
        decorated_again = prompt(function) if options is None else prompt(**options)(function)

        assert isinstance(decorated_again, Prompt)
        assert callable(decorated_again)
        assert decorated_again.__wrapped__ is function
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            assert getattr(decorated_again, name) == getattr(function, name)
        assert inspect.signature(decorated_again) == inspect.signature(function)
        assert inspect.unwrap(decorated_again) is function

    def test_type_hints_come_from_the_function(self):
        """`get_type_hints` returns the hints of the function."""
        assert typing.get_type_hints(review) == typing.get_type_hints(review.__wrapped__)

    def test_help_shows_the_function(self):
        """`inspect.getdoc` returns the author's docstring."""
        assert inspect.getdoc(review).startswith("Review a change.")

    def test_the_repr_contains_the_location(self):
        """The repr contains the prompt's name, file and line."""
        assert repr(review).startswith("<prompt 'review' at ")
        assert repr(review).endswith(f"test_prompts.py:{review.location.line}>")

    def test_a_prompt_can_be_a_key(self):
        """A prompt is hashable and equal only to itself."""
        assert {review: 1}[review] == 1
        assert review != prompt(review.__wrapped__)

    def test_a_prompt_cannot_be_changed(self):
        """The function of a prompt cannot be replaced."""
        with pytest.raises(AttributeError):
            review.function = len

    def test_prompts_compose_by_calling_one_another(self):
        """Prompts compose with `yield from`, `+` and plain calls, without unwrapping."""

        @prompt
        def combined():
            yield from steps(2)
            yield review("+a") + assistant("Fine.")

        @prompt
        async def with_fetched(name: str) -> Workflow:
            return user(await fetch(name)) + review("+b")

        assert combined.render() == user("step 0") + user("step 1") + review("+a") + assistant("Fine.")
        assert with_fetched.render("a") == user("fetched a") + review("+b")

    def test_a_prompt_of_a_prompt(self):
        """Decorating a prompt again changes only its options."""
        twice = prompt(name="again")(review)

        assert twice("+a") == review("+a")
        assert twice.render_wire({"diff": "+a", "depth": "2"}) == review("+a", depth=2)
        assert [a.name for a in twice.compiled.arguments.ordered] == ["diff", "language", "depth"]

    def test_a_static_method(self):
        """`@prompt` and `@staticmethod` can be combined in either order."""

        class Reviews:
            @staticmethod
            @prompt
            def short(diff: str) -> str:
                return f"Briefly: {diff}"

            @prompt
            @staticmethod
            def long(diff: str) -> str:
                return f"At length: {diff}"

        assert Reviews.short("a") == Reviews().short("a") == "Briefly: a"
        assert str(Reviews.long.render("a")) == "[user]\nAt length: a"

    def test_a_wrapped_function(self):
        """A decorator below `@prompt` works if it keeps the signature."""

        def twice(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return [function(*args, **kwargs)] * 2

            return wrapper

        @prompt
        @twice
        def greet(name: str, times: int = 1) -> str:
            return f"Hello {name}" * times

        assert greet("Ada") == ["Hello Ada"] * 2
        assert len(greet.render_wire({"name": "Ada", "times": "2"})) == 2
        with pytest.raises(TypeError, match="parameter 'times' takes int"):
            greet("Ada", times="2")


#: How Python formats ``Optional[int]``: since 3.14 as ``int | None``.
OPTIONAL = str(Optional[int]).removeprefix("typing.")  # noqa: UP045 (authors write it)

#: A type, valid values, an invalid value, and how the error describes it.
TYPED = {
    "str": (str, ["", "a"], 3, "takes str, not an int (3)"),
    "int": (int, [0, -1], "3", "takes int, not a str ('3')"),
    "float": (float, [0.5, 1], "0.5", "takes float, not a str ('0.5')"),
    "bool": (bool, [True], "yes", "takes bool, not a str ('yes')"),
    "bytes": (bytes, [b"a"], "a", "takes bytes, not a str ('a')"),
    "Literal": (Literal["a", "b"], ["a"], "c", "takes one of a, b, not a str ('c')"),
    "Optional": (Optional[int], [None, 1], "1", f"takes {OPTIONAL}, not a str ('1')"),  # noqa: UP045
    "union": (int | None, [None, 1], "1", "takes int | None, not a str ('1')"),
    "optional Literal": (Literal["a"] | None, [None, "a"], "b", "takes 'a', not a str ('b')"),
    "Enum": (Tone, [Tone.WARM], "warm", "takes Tone, not a str ('warm')"),
    "list": (list[int], [[], [1]], [1, "2"], "takes list[int], not a list ([1, '2'])"),
    "dict": (dict[str, int], [{}, {"a": 1}], {"a": "b"}, "takes dict[str, int], not a dict ({'a': 'b'})"),
    "Decimal": (Decimal, [Decimal(1)], 1.0, "takes Decimal, not a float (1.0)"),
    "Annotated": (Annotated[int, Arg("how many")], [1], None, "takes int, not None"),
}


def make_prompt(annotation, arg=None):
    """Return a prompt with a parameter of this type."""

    def typed(first: str, value: Any) -> str:
        return f"{first} {value!r}"

    typed.__annotations__["value"] = Annotated[annotation, arg] if arg else annotation
    return prompt(typed)


class TestDirectCalls:
    @pytest.mark.parametrize(("annotation", "valid_values", "invalid", "message"), TYPED.values(), ids=TYPED)
    def test_arguments_are_checked(self, annotation, valid_values, invalid, message):
        """A value of the wrong type raises a TypeError that names the parameter."""
        typed = make_prompt(annotation)

        assert [typed("a", value) for value in valid_values] == [f"a {value!r}" for value in valid_values]
        for call in (lambda: typed("a", invalid), lambda: typed(first="a", value=invalid)):
            with pytest.raises(TypeError) as caught:
                call()
            assert str(caught.value) == f"prompt 'typed': parameter 'value' {message}"

    @pytest.mark.parametrize(
        ("call", "invalid"),
        [(steps, "2"), (live, "2"), (fetch, 2)],
        ids=["generator", "async generator", "async def"],
    )
    def test_arguments_are_checked_before_a_generator_is_created(self, call, invalid):
        """An invalid argument raises before a generator or coroutine is created."""
        with pytest.raises(TypeError, match=rf"^prompt '{call.__name__}': parameter '\w+' takes"):
            call(invalid)

    @pytest.mark.parametrize(
        "call",
        [lambda of: of(), lambda of: of("a", dept=1), lambda of: of("a", "python", 1)],
        ids=["missing", "unknown", "too many"],
    )
    def test_a_wrong_call_is_pythons_own_error(self, call):
        """A call that does not match the signature raises Python's own TypeError."""
        with pytest.raises(TypeError) as caught:
            call(review)
        with pytest.raises(TypeError) as own:
            call(review.function)

        assert str(caught.value) == str(own.value)
        assert str(own.value).startswith("review() ")

    @pytest.mark.parametrize(
        ("annotation", "invalid", "message"),
        [
            (str, 20261121, "takes str, not int value"),
            (int | None, "hunter2", "takes int | None, not str value"),
            (Literal["a", "b"], "hunter2", "takes one of a, b, not str value"),
        ],
        ids=["str", "optional", "Literal"],
    )
    def test_a_secret_is_not_shown(self, annotation, invalid, message):
        """For a secret parameter, the error shows only the type of the value."""
        with pytest.raises(TypeError) as caught:
            make_prompt(annotation, Arg(secret=True))("a", invalid)

        assert str(caught.value) == f"prompt 'typed': parameter 'value' {message}"
        assert caught.value.__context__ is None

    def test_defaults_are_not_checked_again(self):
        """A direct call does not check the default of an omitted argument."""

        @prompt
        def odd(value: int = "three") -> str:
            return str(value)

        assert odd() == "three"

    def test_a_function_that_cannot_be_served_can_be_called(self):
        """A function that cannot be compiled can still be decorated and called."""

        @prompt
        def variadic(a, *args: str, **kwargs: int) -> str:
            return f"{a} {args} {kwargs}"

        assert variadic(1, "b", c=3) == "1 ('b',) {'c': 3}"
        with pytest.raises(CompileError):
            variadic.render(1)

    @given(st.integers() | st.text() | st.none() | st.floats() | st.binary() | st.lists(st.integers()))
    def test_only_values_of_the_type_get_through(self, value):
        """Any value is either passed on unchanged or rejected with the parameter's name."""
        typed = make_prompt(int | str)

        if isinstance(value, int | str):
            assert typed("a", value) == f"a {value!r}"
            return
        with pytest.raises(
            TypeError, match=r"^prompt 'typed': parameter 'value' takes int \| str, not (?:an? |None)"
        ):
            typed("a", value)

    def test_an_invalid_context_is_rejected(self):
        """A Context is checked like any other parameter."""

        @prompt
        def who(context: Context) -> str:
            return context.client_name

        with pytest.raises(
            TypeError, match=r"^prompt 'who': parameter 'context' takes Context, not a str \('zed'\)$"
        ):
            who("zed")

    @pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated late since Python 3.14")
    def test_a_return_type_imported_for_type_checkers_only(self, recipes):
        """A prompt can be called if its return type is imported for type checkers only."""
        (loaded,) = load(recipes(one=CHECKED)).prompts

        assert loaded() == "x"


class TestRender:
    def test_values_and_text_render_alike(self):
        """`render` with values and `render_wire` with text return the same workflow."""
        expected = user("Review this rust change, depth 2:", "+a")

        assert review.render("+a", "rust", depth=2) == expected
        assert review.render_wire({"diff": "+a", "language": "RUST", "depth": "2"}) == expected

    @pytest.mark.parametrize(
        ("decorated", "value", "sent", "expected"),
        [
            (review, "+a", {"diff": "+a"}, user("Review this python change, depth 1:", "+a")),
            (fetch, "a", {"name": "a"}, user("fetched a")),
            (steps, 2, {"count": "2"}, user("step 0") + user("step 1")),
            (live, 1, {"count": "1"}, assistant("step 0")),
        ],
        ids=["def", "async def", "generator", "async generator"],
    )
    def test_every_kind_renders_in_four_ways(self, decorated, value, sent, expected):
        """Every kind of function renders with and without await, from values and from text."""

        async def both():
            return [await decorated.render_async(value), await decorated.render_wire_async(sent)]

        assert decorated.render(value) == expected
        assert decorated.render_wire(sent) == expected
        assert asyncio.run(both()) == [expected] * 2

    @pytest.mark.parametrize("render", [lambda: fetch.render("a"), lambda: fetch.render_wire({"name": "a"})])
    def test_in_a_running_loop_the_error_names_the_method_to_await(self, render):
        """Rendering an async prompt in a running loop raises an error that names the method to await."""

        async def caller():
            render()

        with pytest.raises(
            RuntimeError, match=r"^prompt 'fetch' is asynchronous, .*: await \.render_\w*async\(\.\.\.\)$"
        ):
            asyncio.run(caller())

    def test_render_checks_values(self):
        """`render` checks arguments like a direct call."""
        with pytest.raises(
            TypeError, match=r"^prompt 'review': parameter 'diff' takes str, not an int \(3\)$"
        ):
            review.render(3)
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'diff'"):
            review.render()

    def test_invalid_text_is_reported(self):
        """`render_wire` reports all invalid arguments in one error, like the server."""
        with pytest.raises(ArgumentsError) as caught:
            review.render_wire({"language": "c", "depth": "deep", "x": "y"})

        assert str(caught.value) == (
            "prompt 'review': 'language' is 'c', not one of python, rust; "
            "'depth' is 'deep', not a whole number; 'x' is not an argument of this prompt; 'diff' is missing"
        )

    def test_no_arguments_none_and_an_empty_dict_are_alike(self):
        """`render_wire` treats no arguments, None and {} alike."""

        @prompt
        def hello(name: str = "you") -> str:
            return f"Hello {name}"

        assert hello.render_wire() == hello.render_wire(None) == hello.render_wire({}) == hello.render()

    def test_the_authors_exception_reaches_the_caller(self):
        """An exception from the author's function reaches the caller unchanged."""

        @prompt
        def fails() -> str:
            raise PromptError("run the service first")

        with pytest.raises(PromptError, match=r"^run the service first$"):
            fails.render()

    def test_an_unsupported_result_is_rejected(self):
        """An unsupported result raises a TypeError with the prompt's name and location."""

        @prompt(name="count-me")
        def count() -> object:
            return 3

        with pytest.raises(TypeError) as caught:
            count.render()

        assert str(caught.value).startswith(f"prompt 'count-me' ({count.location}) returned")
        assert count() == 3

    def test_a_prompt_without_content(self):
        """Rendering a prompt that returns None raises EmptyPromptError; a direct call returns None."""

        @prompt
        def silent() -> None: ...

        with pytest.raises(EmptyPromptError):
            silent.render()
        assert silent() is None


class TestContextParameter:
    def test_a_missing_context_is_filled_in(self):
        """Rendering without a Context fills in an empty one, wherever it is in the signature."""

        @prompt
        def who(context: Context, greeting: str = "Hello") -> str:
            return f"{greeting}, {context.client_name or 'stranger'}"

        assert str(who.render()) == "[user]\nHello, stranger"
        assert str(who.render(greeting="Hi")) == "[user]\nHi, stranger"
        assert str(who.render(Context("Zed"))) == "[user]\nHello, Zed"
        assert str(who.render(context=Context("Zed"), greeting="Hi")) == "[user]\nHi, Zed"
        assert str(who.render_wire({"greeting": "Hi"})) == "[user]\nHi, stranger"
        assert str(who.compiled.render({"greeting": "Hi"}, Context("Zed"))) == "[user]\nHi, Zed"

    def test_a_context_is_not_an_argument(self):
        """Clients neither see nor send the Context."""

        @prompt
        async def who(greeting: str, context: Context) -> str:
            return f"{greeting} {context.client_name!r}"

        assert [a.name for a in who.compiled.arguments.ordered] == ["greeting"]
        assert str(who.render("Hi")) == "[user]\nHi ''"
        with pytest.raises(ArgumentsError, match="'context' is not an argument of this prompt"):
            who.render_wire({"greeting": "Hi", "context": "x"})

    def test_a_direct_call_can_omit_the_context(self):
        """A direct call can omit the Context."""

        @prompt
        def who(greeting: str, context: Context) -> str:
            return f"{greeting} {context.client_name!r}"

        assert who("Hi") == "Hi ''"
        assert who("Hi", Context("Zed")) == "Hi 'Zed'"

    def test_a_second_context_is_filled_in_or_reported(self):
        """A second Context is filled in or reported, and never causes a TypeError in a request."""

        @prompt
        def who(a: Context, b: Context) -> str:
            return f"{a == b}"

        compiled, diagnostics = who.compile()

        assert diagnostics or compiled.render() == user("True")


class TestOptions:
    def test_options_reach_the_compiled_prompt(self):
        """Each option is on the compiled prompt as it was given."""
        icon = Icon("https://example.com/a.png", sizes=["48x48"])

        @prompt(
            name="code-review",
            title="Code review",
            description="Review code",
            icons=["https://example.com/b.png", icon],
            timeout=5,
            cache=60,
            elicit=True,
        )
        def anything() -> str:
            """Return nothing."""
            return ""

        compiled = anything.compiled

        assert (compiled.name, compiled.title, compiled.description) == (
            "code-review",
            "Code review",
            "Review code",
        )
        assert compiled.icons == (Icon("https://example.com/b.png"), icon)
        assert (compiled.timeout, compiled.cache, compiled.elicit) == (5, 60, True)
        assert compiled.meta == {}

    @pytest.mark.parametrize("notice", ["use review-change", "use review-change. "])
    @pytest.mark.parametrize("description", ["Review a change.", None])
    def test_the_description_starts_with_the_deprecation(self, notice, description):
        """
        The deprecation is in ``_meta``, and starts the description, because clients truncate descriptions.
        """
        compiled = prompt(description=description, deprecated=notice)(named(lambda: "")).compiled

        assert compiled.description == " ".join(filter(None, ["Deprecated: use review-change.", description]))
        assert compiled.meta == {"promptkit/deprecated": notice}
        assert compiled.deprecated == notice

    def test_without_options_the_function_is_described(self):
        """Without options, a prompt has the function's name, the docstring's summary and no title."""
        compiled = review.compiled

        assert (compiled.name, compiled.title, compiled.description) == ("review", None, "Review a change.")
        assert (compiled.icons, compiled.meta, compiled.timeout, compiled.cache) == ((), {}, None, None)
        assert compiled.elicit is None

    def test_without_a_docstring_there_is_no_description(self):
        """Without a docstring, the description is None and not an empty string."""
        assert prompt(named(lambda: "")).compiled.description is None

    def test_tags_and_version_are_metadata(self):
        """Tags and version become `promptkit/` metadata, which the author's own metadata overrides."""

        def meta(**options):
            return prompt(**options)(named(lambda: "")).compiled.meta

        assert meta(tags=["code"], version="2") == {"promptkit/tags": ["code"], "promptkit/version": "2"}
        assert meta(version="2", meta={"example.com/a": 1}) == {"promptkit/version": "2", "example.com/a": 1}
        assert meta(version="2", meta={"promptkit/version": "3"}) == {"promptkit/version": "3"}

    @pytest.mark.parametrize(
        "key",
        [
            "owner",
            "com.example/owner",
            "com.example.mcp/a",
            "mcp/a",
            "x/",
            "a-b.c1/a.b_c-d",
            "promptkit/version",
            "example.mcpserver/a",
            "traceparent.example/traceparent",
        ],
    )
    def test_valid_metadata_keys(self, key):
        """A metadata key is a name with an optional prefix of labels."""
        compiled, diagnostics = prompt(meta={key: 1})(named(lambda: "")).compile()

        assert (compiled.meta, diagnostics) == ({key: 1}, ())

    @pytest.mark.requirement("base/meta/key-name", "base/meta/key-prefix")
    @pytest.mark.parametrize(
        ("key", "described_key"),
        [
            *[
                (key, f"a str ({key!r})")
                for key in [
                    "-a",
                    "a-",
                    "_a",
                    "a b",
                    "ü",
                    "/a",
                    "1a/b",
                    "a-/b",
                    "a..b/c",
                    "a./b",
                    "a/b/c",
                    "a\n",
                ]
            ],
            (3, "an int (3)"),
        ],
    )
    def test_malformed_metadata_keys_are_reported(self, key, described_key):
        """A malformed metadata key is reported with a hint that shows the form."""
        compiled, (diagnostic,) = prompt(meta={key: 1})(named(lambda: "")).compile()

        assert (compiled, diagnostic.rule, diagnostic.message, diagnostic.hint) == (
            None,
            Rule.BAD_METADATA,
            f"prompt 'named': meta cannot have {described_key} as a key",
            "use keys such as 'com.example/owner': a reversed domain, a slash and a name",
        )

    @pytest.mark.requirement("base/meta/reserved-prefix", "base/meta/trace-context")
    @pytest.mark.parametrize(
        "key",
        [
            "io.modelcontextprotocol/serverInfo",
            "dev.MCP/a",
            "com.mcp.tools/a",
            "mcp.dev/a",
            "api.modelcontextprotocol.org/a",
            "a.b.mcp.c/d",
            "progressToken",
            "traceparent",
            "tracestate",
            "baggage",
        ],
    )
    def test_reserved_metadata_keys_are_reported(self, key):
        """A metadata key that the protocol reserves is reported."""
        compiled, (diagnostic,) = prompt(meta={key: 1})(named(lambda: "")).compile()

        assert (compiled, diagnostic.rule, diagnostic.message, diagnostic.hint) == (
            None,
            Rule.BAD_METADATA,
            f"prompt 'named': the key {key!r} in meta is reserved for the protocol",
            "use your own prefix, for example 'com.example/owner'",
        )

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"tags": "code"}, TypeError, "tags must be a list: write tags=['code']"),
            ({"timeout": 0}, ValueError, "timeout must be a positive number of seconds, not 0"),
            ({"timeout": -1}, ValueError, "timeout must be a positive number of seconds, not -1"),
            (
                {"timeout": float("nan")},
                ValueError,
                "timeout must be a positive number of seconds, not nan",
            ),
            ({"cache": 0}, ValueError, "cache must be a positive number of seconds, not 0"),
            ({"timeout": True}, ValueError, "timeout must be a positive number of seconds, not True"),
            ({"tags": ["code", 3]}, TypeError, "tags must be strings, not an int (3)"),
            ({"title": 3}, TypeError, "title must be a str, not int"),
            ({"elicit": "yes"}, TypeError, "elicit must be True, False or \"always\", not a str ('yes')"),
            ({"elicit": 1}, TypeError, 'elicit must be True, False or "always", not an int (1)'),
            ({"sample": None}, TypeError, "sample must be True or False, not None"),
            ({"deprecated": True}, TypeError, "deprecated must be a str, not bool"),
            (
                {"deprecated": " "},
                ValueError,
                "deprecated must name the replacement, but it is blank: write deprecated='use NAME'",
            ),
            (
                {"icons": ["icon.png"]},
                ValueError,
                "'icon.png' is not a URI: it needs a scheme, for example 'file:///notes.txt' or 'logs://recent'",
            ),
        ],
        ids=[
            *("tags", "no time", "negative", "nan", "cache", "yes", "tag", "title", "ask", "one"),
            *("sample", "flag", "blank", "icon"),
        ],
    )
    def test_invalid_options_raise_at_the_decorator(self, options, error, message):
        """An invalid option raises at the decorator, with a message that explains the error."""
        with pytest.raises(error) as caught:
            prompt(**options)(named(lambda: ""))

        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("options", "option"),
        [
            ({"timeout": "5"}, "timeout"),
            ({"cache": "5"}, "cache"),
            ({"icons": "https://example.com/a.png"}, "icons"),
            ({"name": 3}, "name"),
        ],
        ids=["timeout", "cache", "one icon", "name"],
    )
    def test_options_of_the_wrong_type_are_named(self, options, option):
        """An option of the wrong type raises an error that names the option."""
        with pytest.raises((TypeError, ValueError), match=rf"\b{option}\b"):
            prompt(**options)(named(lambda: "")).compile()


def named(function, name="named"):
    """Return a copy of a lambda with a name that is valid for a prompt."""
    return types.FunctionType(function.__code__, {}, name)


class Greeter:
    def __init__(self, name):
        self.name = name

    def __call__(self, word: str):
        """Greet without a method."""
        return f"{word} {self.name}"

    def greet(self, word: "str", times: int = 2):
        """Greet somebody."""
        return f"{word} {self.name}{'!' * times}"

    async def wait(self, word: str):
        """Greet later."""
        return f"{word} {self.name} later"

    @classmethod
    def by_class(cls, word: str):
        """Greet a class."""
        return f"{word} {cls.__name__}"

    @staticmethod
    def by_static(word: str):
        """Greet without an object."""
        return f"{word} static"


class TestDecorating:
    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("review", "@prompt takes a function, not a str ('review'): write @prompt(name='review')"),
            (3, "@prompt takes a function, not an int (3)"),
            (Tone, "@prompt takes a function, not the class 'Tone': write a function that calls it"),
            (len, "@prompt takes a function, not the function 'len'"),
            (Greeter("Ada"), "@prompt takes a function, not a Greeter"),
            (
                vars(Greeter)["by_class"],
                "@prompt takes a function, not the function 'by_class': move the function out of its class",
            ),
            (functools.partial(dict, a=1), "@prompt takes a function, not a partial"),
        ],
        ids=["name", "int", "class", "builtin", "object", "classmethod", "partial of a class"],
    )
    def test_other_values_cannot_be_prompts(self, value, message):
        """A value without a Python function of its own is rejected at the decorator."""
        with pytest.raises(TypeError) as caught:
            prompt(value)

        assert str(caught.value).startswith(message)

    @pytest.mark.parametrize(
        ("value", "arguments", "text"),
        [
            (Greeter("Ada").greet, {"word": "Hello"}, "Hello Ada!!"),
            (Greeter("Ada").greet, {"word": "Hello", "times": "1"}, "Hello Ada!"),
            (Greeter.by_class, {"word": "Hello"}, "Hello Greeter"),
            (Greeter.by_static, {"word": "Hello"}, "Hello static"),
            (Greeter("Ada").wait, {"word": "Hello"}, "Hello Ada later"),
            (functools.partial(Greeter.greet, Greeter("Bo"), times=3), {"word": "Hi"}, "Hi Bo!!!"),
            (functools.partial(Greeter("Bo").greet, "Hi"), {"times": "1"}, "Hi Bo!"),
        ],
        ids=["method", "default", "class", "static", "async", "partial", "partial method"],
    )
    def test_bound_methods_and_partials_are_prompts(self, value, arguments, text):
        """Clients fill the arguments that a bound method or a partial does not have yet."""
        greet = prompt(name="greet", description="Greets.")(value)
        (entry,) = Client(greet).list_prompts()

        assert Client(greet).get_prompt("greet", arguments).text == text
        assert {argument.name for argument in entry.arguments} <= {"word", "times"}
        assert arguments.keys() <= {argument.name for argument in entry.arguments}
        with pytest.raises(ArgumentsError, match="is not an argument"):
            greet.render_wire({**arguments, "self": "x"})

    def test_a_method_has_the_name_and_the_description_of_its_function(self):
        """A bound method has the name, the summary and the location of its function."""
        greet = prompt(Greeter("Ada").greet)

        assert (greet.options.name, greet.compiled.description) == ("greet", "Greet somebody.")
        assert greet.location.line == Greeter.greet.__code__.co_firstlineno
        assert greet("Hello", times=1) == "Hello Ada!"

    def test_fixed_arguments_of_a_partial_are_not_offered(self):
        """A partial's own arguments can have any type, and clients do not see them."""
        greet = prompt(functools.partial(Greeter.greet, Greeter("Bo"), times=3))

        assert [argument.name for argument in greet.compiled.arguments.ordered] == ["word"]

    def test_options_are_keyword_only(self):
        """A name in place of the function is rejected at the decorator."""
        with pytest.raises(TypeError, match=r"^@prompt takes a function, not a str"):
            prompt("code-review")

    @pytest.mark.parametrize(
        ("name", "slug"),
        [
            ("my prompt", "my-prompt"),
            ("my prompt:x", "my-prompt-x"),
            ("-a.b-", "a-b"),
            ("é" * 3, "eee"),
            ("", "prompt"),
            ("a\n", "a"),
            ("a" * 65, "a" * 64),
        ],
        ids=["space", "colon", "edges", "letters", "empty", "line end", "long"],
    )
    def test_an_invalid_name_is_reported_with_a_valid_one(self, name, slug):
        """An invalid name is reported with a valid one as the hint."""
        compiled, (diagnostic,) = prompt(name=name)(lambda: "").compile()

        assert compiled is None
        assert diagnostic.rule is Rule.BAD_NAME
        assert diagnostic.hint == f"call it {slug!r}"
        assert diagnostic.message == (
            f"prompt {name!r}: a name must have 1 to 64 characters: letters A-Z and a-z, digits, '_' and '-'"
        )

    @pytest.mark.parametrize(
        ("name", "slug"),
        [
            ("résumé", "resume"),
            ("コードレビュー", "test_prompts"),
            ("x" * 65, "x" * 64),
            ("größer", "gro-er"),
        ],
    )
    def test_an_invalid_function_name_is_reported(self, name, slug):
        """If the function's name is invalid, the hint keeps it and suggests a `name` option."""
        function = lambda: ""  # noqa: E731 (its name is set below)
        function.__name__ = name

        _, (diagnostic,) = prompt(function).compile()

        assert (diagnostic.rule, diagnostic.hint) == (
            Rule.BAD_NAME,
            f"keep the function's name, and write @prompt(name={slug!r})",
        )

    @given(st.text())
    def test_the_suggested_name_is_always_valid(self, name):
        """The suggested name is always valid."""
        _, diagnostics = prompt(name=name)(named(lambda: "")).compile()

        for diagnostic in diagnostics:
            suggested = diagnostic.hint.removeprefix("call it '").removesuffix("'")
            assert prompt(name=suggested)(named(lambda: "")).compile()[1] == ()

    @pytest.mark.parametrize("name", ["a", "A-b_9", "x" * 64, "--"])
    def test_a_valid_name_is_unchanged(self, name):
        """A valid name is used unchanged."""
        assert prompt(name=name)(named(lambda: "")).compiled.name == name


class TestCompile:
    def test_every_diagnostic_has_a_line_of_the_signature(self):
        """All diagnostics are found in one pass, with their lines, and rendering raises them together."""

        @prompt(name="bad name")
        def bad(a, *args: str, b: object, c: int = "x") -> str:
            return ""

        compiled, diagnostics = bad.compile()

        assert compiled is None
        assert [diagnostic.rule.name for diagnostic in diagnostics] == [
            "BAD_NAME",
            "MISSING_ANNOTATION",
            "VARIADIC_PARAMETER",
            "UNSUPPORTED_TYPE",
            "INVALID_DEFAULT",
        ]
        assert {diagnostic.location.file for diagnostic in diagnostics} == {bad.location.file} == {__file__}
        lines = {diagnostic.location.line - bad.location.line for diagnostic in diagnostics}
        assert lines == {0, 1}  # the lines of the decorator and of the parameters
        with pytest.raises(CompileError) as caught:
            bad.render_wire({})
        assert caught.value.diagnostics == diagnostics

    @pytest.mark.parametrize("default", [list, str, dict])
    def test_a_class_as_a_default_is_reported(self, default):
        """A class as a default is reported as not matching the type."""

        @prompt
        def bad(items: list[str] = default) -> str:
            return ""

        _, diagnostics = bad.compile()

        assert [diagnostic.rule.name for diagnostic in diagnostics] == ["INVALID_DEFAULT"]

    def test_a_prompt_is_compiled_once(self):
        """A prompt is compiled only once."""
        assert review.compiled is review.compiled

    def test_compiling_does_not_call_the_function(self):
        """Compiling does not call the author's function."""
        calls = []

        @prompt
        def counted() -> str:
            calls.append(1)
            return ""

        counted.compile()

        assert calls == []

    def test_a_message_alone_is_enough(self):
        """A prompt that returns a string renders to one message."""
        assert prompt(named(lambda: "a")).render() == Workflow([Message("user", "a")])
