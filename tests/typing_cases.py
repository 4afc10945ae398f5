"""
Authors' code for type checkers. `test_typing` checks this file, and no test imports it.

Each function is a case. Lines with type errors are marked for both checkers. The checkers report unnecessary
marks, so the test fails if an expected error disappears.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, assert_type

from hypothesis.strategies import SearchStrategy

from promptkit import (
    Arg,
    Audio,
    Context,
    EmbeddedResource,
    Image,
    Message,
    Prompt,
    Resource,
    ResourceLink,
    Text,
    Workflow,
    assistant,
    cache_point,
    prompt,
    resource,
    system,
    user,
)
from promptkit.answers import AnswerError, parse_answer
from promptkit.catalog.cases import Case
from promptkit.exports import anthropic_request, openai_chat_request
from promptkit.fragments import (
    answer_format,
    blocks,
    bullets,
    fill,
    fit,
    inline,
    lines,
    numbered,
    optional,
    section,
    table,
    tag,
)
from promptkit.testing import Client, ProtocolError, call_arguments, wire_arguments
from promptkit.workspace import files, run, run_async, workspace


def bare_prompt_keeps_its_types() -> None:
    @prompt
    def review(diff: str, language: Literal["python", "rust"] = "python", *, depth: int = 1) -> Workflow:
        return user(diff, language, str(depth))

    assert_type(review("+a"), Workflow)
    assert_type(review("+a", "rust", depth=2), Workflow)
    assert_type(review.__call__("+a"), Workflow)
    function: Callable[[str], Workflow] = review
    function("+a")
    review(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    review("+a", "go")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    review("+a", depth="2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    review()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    review("+a", dept=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


class Reviewer:
    def review(self, diff: str, tone: str = "strict") -> str:
        """Review a change."""
        return f"{tone}: {diff}"


def bound_methods_and_partials_keep_their_types() -> None:
    review = prompt(name="strict")(Reviewer().review)
    kind = prompt(name="kind")(partial(Reviewer().review, tone="kind"))

    assert_type(review("+a"), str)
    review(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(kind("+a"), str)


def case_has_the_parameters_of_its_prompt() -> None:
    @prompt
    def review(diff: str, language: Literal["python", "rust"] = "python", *, depth: int = 1) -> Workflow:
        return user(diff, language, str(depth))

    @resource("docs://{page}")
    def docs(page: int) -> str:
        return str(page)

    assert_type(review.case("short", "+a", "rust", depth=2).refused("too short"), Case)
    assert_type(review.case_wire("typed", {"diff": "+a", "language": "Go"}), Case)
    assert_type(docs.case("first", 1), Case)
    review.case("short", 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    review.case("short", "+a", "go")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    review.case("short")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    review.case(diff="+a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    docs.case("first", "1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def placeholders_accept_any_value() -> None:
    assert_type(fill("{{a}} {{b}}", a="x", b=None), Text)
    assert_type(Text.from_path("x.md", a=1, b=Text("y"), c=False), Text)
    assert_type(Text.below(Path("texts"), "x.md", a=1.5), Text)
    assert_type(fill("{{a}} {{#b}}", a=["x", 1], b=object()), Text)


def a_system_part_is_a_workflow() -> None:
    assert_type(system("a", None, Text("b")), Workflow)
    assert_type(system("a") + user("b"), Workflow)
    assert_type((system("a") + "b").system, Text | None)
    system(Image(b""))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def a_cache_point_is_a_part_and_a_workflow(*, long: bool) -> None:
    point: Workflow = cache_point()
    assert_type(user("a", cache_point(), "b"), Workflow)
    assert_type(assistant("a", cache_point() if long else None), Workflow)
    assert_type(system("a", cache_point()), Workflow)
    assert_type(user("a") + cache_point() + "b", Workflow)
    assert_type("a" + cache_point(), Workflow)
    assert_type(point.cache_points, tuple[tuple[int, int], ...])
    section("a", cache_point())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def requests_are_dictionaries() -> None:
    @prompt(answer=list[int])
    def count(text: str) -> str:
        return f"{text} {answer_format(list[int])}"

    assert_type(count("x"), str)
    assert_type(anthropic_request(count.render("x"), model="m", max_tokens=1), dict[str, Any])
    openai_chat_request(count.render("x"), system_role="user")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def a_prompt_parses_its_answers_as_their_type() -> None:
    @dataclass
    class Review:
        summary: str

    class Verdict(Enum):
        YES = "yes"

    class Query(TypedDict):
        words: list[str]

    @prompt(answer=Review)
    def review(diff: str) -> str:
        return diff

    @prompt(answer=list[Review], timeout=5)
    def reviews(diff: str) -> list[str]:
        return [diff]

    @prompt(answer=Verdict)
    def verdict() -> str:
        return "x"

    @prompt(answer=Query)
    async def query() -> str:
        return "x"

    @prompt(answer=Literal["yes", "no"])
    def choice() -> str:
        return "x"

    @prompt(answer=Review | None)
    def optional() -> str:
        return "x"

    @prompt(answer=None)
    def nothing() -> str:
        return "x"

    some: list[Prompt[..., Any]] = [review, reviews]
    assert some
    assert_type(review("+a"), str)
    assert_type(reviews("+a"), list[str])
    assert_type(review.parse_answer("{}"), Review)
    assert_type(reviews.parse_answer("[]", allow_cut=True), list[Review])
    assert_type(verdict.parse_answer("x"), Verdict)
    assert_type(query.parse_answer("{}"), Query)
    assert_type(choice.parse_answer("x"), Any)
    assert_type(optional.parse_answer("x"), Any)
    review(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    review.parse_answer(b"{}")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    nothing.parse_answer("{}")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def answers_have_the_type_that_was_asked_for(error: AnswerError) -> None:
    assert_type(parse_answer("[]", list[int]), list[int])
    assert_type(parse_answer("x", Literal["a", "b"]), Any)
    assert_type(error.errors[0].path, str)
    assert_type(error.for_model(), str)
    assert_type(answer_format(list[int], [1], lead=""), Text)
    answer_format(int, lead=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def a_prompt_with_options_keeps_its_types() -> None:
    @prompt(name="code-review", title="Review", tags=["code"], timeout=5, meta={"a": 1})
    def review(diff: str, depth: int = 1) -> list[str]:
        return [diff] * depth

    assert_type(review("+a", depth=2), list[str])
    review(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    review("+a", "2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    review()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def options_of_a_prompt_have_types() -> None:
    @prompt(deprecated="use review", sample=False)
    def old_review(diff: str) -> str:
        return diff

    assert_type(old_review("+a"), str)
    prompt(deprecated=None, sample=True)


def empty_brackets_make_no_difference() -> None:
    @prompt()
    def review(diff: str) -> str:
        return diff

    assert_type(review("+a"), str)
    review(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def asynchronous_prompts_keep_their_types() -> None:
    @prompt
    async def fetch(name: str) -> str:
        return name

    @prompt
    async def live(count: int) -> AsyncGenerator[str, None]:
        yield str(count)

    waiting: Coroutine[Any, Any, str] = fetch("a")
    assert_type(await waiting, str)
    assert_type(await fetch("a"), str)
    assert_type(live(1), AsyncGenerator[str, None])
    await fetch(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def generators_keep_their_types() -> None:
    @prompt
    def steps(count: int) -> Iterator[Workflow]:
        yield user(str(count))

    @prompt
    def more(count: int) -> Generator[str | Workflow, None, str]:
        yield from steps(count)
        return "done"

    assert_type(steps(1), Iterator[Workflow])
    assert_type(more(1), Generator[str | Workflow, None, str])


async def rendering_takes_the_functions_parameters() -> None:
    @prompt
    def review(diff: str, depth: int = 1) -> str | None:
        return diff * depth or None

    assert_type(review.render("+a", depth=2), Workflow)
    assert_type(await review.render_async("+a", 2), Workflow)
    assert_type(review.render_wire({"diff": "+a"}), Workflow)
    assert_type(await review.render_wire_async({"diff": "+a"}), Workflow)
    assert_type(review.render_wire(), Workflow)
    review.render(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await review.render_async()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def prompt_can_be_used_as_an_annotation() -> None:
    @prompt
    def review(diff: str) -> str:
        return diff

    some: Prompt[..., str] = review
    prompts: list[Prompt[..., Any]] = [review, some]
    assert_type(some("anything"), str)
    assert prompts


def a_prompt_has_the_functions_names(some: Prompt[..., str]) -> None:
    assert_type(some.__name__, str)
    assert_type(some.__qualname__, str)
    assert_type(some.__doc__, str | None)


def parameters_can_be_annotated() -> None:
    @prompt
    def review(
        diff: Annotated[str, Arg("What changed", examples=["+a"], complete=["+a", "-a"])],
        token: Annotated[str | None, Arg(secret=True), "The key"] = None,
        context: Context = Context(),  # noqa: B008 (frozen)
    ) -> str:
        return f"{diff}{token}{context.client_name}"

    assert_type(review("+a", token="t"), str)  # noqa: S106 (no password)
    review(diff="+a", token=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def options_are_checked() -> None:
    prompt(nam="x")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    prompt(timeout="5")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    prompt(deprecated=True)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    prompt(sample="no")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    prompt("review")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


class Figure:
    def savefig(self, file: object, **options: object) -> None:
        """Write a picture, as matplotlib does."""


class Drawing:
    def _repr_png_(self) -> bytes:
        return b""


def turns_take_parts(image: Image, text: str | None, *, verbose: bool) -> None:
    assert_type(user("a", Text("b"), image, None, text), Workflow)
    assert_type(assistant("a", "b" if verbose else None), Workflow)
    user(verbose and "a")
    user(Figure(), Drawing())
    user(*["a", "b"])
    user(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assistant(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    user(b"a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    user(["a"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    user(user("a"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    user(Path("a.png"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def media_take_bytes() -> None:
    Image(b"a", "image/png", audience="user", priority=0.5, last_modified="2026-01-31T12:00:00Z")
    Image(bytearray(b"a"))
    Image(Figure())
    Image(Drawing())
    assert_type(Image.from_path("a.png", root="pictures"), Image)
    assert_type(Audio.from_path(Path("a.wav"), priority=1), Audio)
    assert_type(Image(b"a").data, bytes)
    Image(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Image("a.png")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Image(Path("a.png"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Audio("a.wav")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Image(b"a", root="pictures")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def audience_consists_of_roles() -> None:
    Text("a", audience="user")
    Text("a", audience=["user", "assistant"])
    Image(b"a", audience=("assistant",))
    Text("a", audience=["system"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    Text("a", audience="system")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Image.from_path("a.png", audience="system")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def content_takes_its_parts() -> None:
    assert_type(Text("a") + "b" + Text("c"), Text)
    assert_type("a" + Text("b"), Text)
    EmbeddedResource("a:b", text="c", mime_type="text/plain")
    ResourceLink("a:b", name="c", size=3)
    assert_type(EmbeddedResource.from_path("a.pdf"), EmbeddedResource)
    EmbeddedResource.from_path(Path("a.md"), "a:b", mime_type="text/markdown", root="docs", priority=1)
    EmbeddedResource.from_path(b"a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    EmbeddedResource.from_path("a", text="b")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Text(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    EmbeddedResource("a:b", text=b"c")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ResourceLink("a:b")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ResourceLink("a:b", "c")  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]


def fragments_take_parts_and_each_other(text: str | None, *, verbose: bool) -> None:
    assert_type(lines("a", Text("b"), text, verbose and "c"), Text)
    assert_type(section("a", lines("b"), level=3), Text)
    assert_type(bullets(["a", numbered(["b", 3]), ["c", text]]), Text)
    assert_type(table([{"a": 1}], ["a", "b"], missing="-"), Text)
    table([["a", None]], missing=0)
    assert_type(tag("a", tag("b", text), id=7), Text)
    assert_type(tag("a", 7, verbose and "b", inline=True, class_="c"), Text)
    tag("a", ["b"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    tag("a", inline="yes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    lines("a", 3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    section("a", level="2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    table([["a"]], missing=[])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def parts_can_be_one_iterable(texts: list[str], *, verbose: bool) -> None:
    assert_type(lines(texts), Text)
    assert_type(lines(f"{text}." for text in texts if text), Text)
    assert_type(lines([Text("a"), None, verbose and "b"]), Text)
    assert_type(blocks(map(str.strip, texts)), Text)
    assert_type(inline([1, 2.5, "a"], last=" and "), Text)
    assert_type(inline("a", 1, None, separator="; "), Text)
    lines([1])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]
    lines(texts, "a")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    blocks(user("a"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    inline([["a"]])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]


def budgets_take_required_and_optional_parts(texts: list[str], text: str | None) -> None:
    assert_type(fit("a", Text("b"), text, optional(text, priority=1, trim="start"), tokens=8_000), Text)
    assert_type(fit(*(optional(text) for text in texts), tokens=1, count=len), Text)
    user(fit("a", tokens=1, count=lambda text: len(text.split()) / 2))
    fit("a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    fit(["a"], tokens=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    fit("a", tokens=1, count=str.split)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    optional("a", trim="tail")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    optional(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    user(optional("a"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    section("a", optional("b"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def messages_take_a_role_and_content() -> None:
    assert_type(Message("user", "a").content.priority, float | None)
    assert_type(Message("assistant", Image(b"a")).role, Literal["user", "assistant"])
    Message("system", "a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Message("user", 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def workflows_are_sequences(workflow: Workflow, message: Message) -> None:
    assert_type(workflow[0], Message)
    assert_type(workflow[1:], Workflow)
    for turn in workflow:
        assert_type(turn, Message)
    Workflow([message])
    Workflow(iter([message]))
    Workflow(["a"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def plus_joins_turns(workflow: Workflow, message: Message) -> None:
    assert_type(workflow + workflow, Workflow)
    assert_type(workflow + message + "a", Workflow)
    assert_type("a" + workflow, Workflow)
    assert_type(message + message, Workflow)
    assert_type(sum([workflow], Workflow()), Workflow)
    assert_type(workflow + None, Workflow)
    assert_type(None + workflow, Workflow)
    assert_type(message + None, Workflow)
    history: Workflow | None = workflow
    assert_type(history + workflow, Workflow)


def plus_rejects_other_types(workflow: Workflow, message: Message) -> None:
    assert workflow + 3  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
    assert message + 3  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
    assert workflow + False  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
    assert workflow + list("a")  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
    assert message + list("a")  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]


def messages_of_other_libraries_become_a_workflow(message: dict[str, Any]) -> None:
    assert_type(Workflow.from_messages([message, {"role": "user", "content": "a"}]), Workflow)
    assert_type(Workflow.from_messages(iter([message])), Workflow)
    Workflow.from_messages(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def resources_keep_their_types() -> None:
    @resource("logs://recent{?timeframe}")
    def logs(timeframe: str | None = None) -> str:
        return timeframe or ""

    @resource("chart:{name}", title="Chart", mime_type="image/png")
    def chart(name: str) -> bytes:
        return name.encode()

    some: list[Resource[..., Any]] = [logs, chart]
    assert_type(some[0].name, str)
    assert_type(logs("1h"), str)
    assert_type(chart("a"), bytes)
    assert_type(logs.uri("1h"), str)
    assert_type(logs.embed(timeframe="1h"), EmbeddedResource)
    assert_type(chart.link("a"), ResourceLink)
    logs(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    logs.embed(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    chart.link()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def a_resource_returns_text_or_bytes() -> None:
    @resource("x:a")  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
    def number() -> int:
        return 3

    number()


def values_cannot_be_changed(text: Text, workflow: Workflow) -> None:
    text.text = "b"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    workflow.messages = ()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def a_client_returns_values() -> None:
    @prompt
    def review(diff: str) -> str:
        return diff

    with Client("prompts", revision="2025-06-18", answers={"days": 3}, name="zed") as client:
        assert_type(client.get_prompt("review", {"diff": "+a"}), Workflow)
        assert_type(client.list_prompts()[0].arguments[0].required, bool)
        assert_type(client.list_resources()[0].mime_type, str | None)
        assert_type(client.read_resource("a:b"), EmbeddedResource)
        assert_type(client.complete("review", "diff", "+").values, tuple[str, ...])
        assert_type(client.request("ping"), dict[str, Any])
    assert_type(ProtocolError(-32602, "no").code, int)
    Client(review)
    Client([review, review])
    Client(Path("prompts"))
    Client(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def strategies_for_requests_and_calls() -> None:
    @prompt
    def review(diff: str) -> str:
        return diff

    assert_type(wire_arguments(review), SearchStrategy[dict[str, str]])
    assert_type(call_arguments(review), SearchStrategy[dict[str, Any]])


async def command_consists_of_text_and_paths() -> None:
    @prompt
    async def staged(path: Annotated[str | None, Arg(complete=files("**"))] = None) -> str:
        return await run_async("git", "diff", "--staged", "--", path, limit=40_000)

    assert_type(await staged("a"), str)
    assert_type(run("git", "-C", workspace(), "status", timeout=1, check=False), str)
    run("head", "-n", 5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
