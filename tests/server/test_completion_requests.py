import asyncio
import time
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import pytest

from promptkit import Arg, PromptError, prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.loader.recipes import Recipes
from tests.wire import MODERN, REVISIONS, Client

FILES = {"api": ["routes.py", "models.py"], "web": ["index.ts"]}


class Tone(Enum):
    CALM = "calm"
    BRISK = "brisk"


async def slowly(typed):
    await asyncio.sleep(0)
    return [f"{typed}-{i}" for i in range(150)]


def broken():
    raise ValueError("password123")


def refused():
    raise PromptError("there are no branches yet")


@prompt
def review(
    *,
    tone: Tone,
    language: Literal["python", "rust", "go"],
    package: Annotated[str, Arg(complete=["api", "web"])],
    file: Annotated[str, Arg(complete=lambda typed, chosen: FILES.get(chosen.get("package"), []))],
    later: Annotated[str, Arg(complete=slowly)],
    fails: Annotated[str, Arg(complete=broken)],
    explains: Annotated[str, Arg(complete=refused)],
    library: Annotated[str, Arg(complete=["poetry", "sympy", "num-py", "pytest", "py", "rich"])],
    anything: str,
):
    return "x"


@resource("logs://{level}{?day}")
def logs(level: Literal["info", "error"], day: str = "today") -> str:
    return level


@resource("notes://one")
def note() -> str:
    return "x"


CATALOG = compile(Recipes(prompts=(review,), resources=(logs, note)))


def params(name, value, ref=None, **context):
    ref = ref or {"type": "ref/prompt", "name": "review"}
    members = {"ref": ref, "argument": {"name": name, "value": value}}
    return {**members, "context": {"arguments": context}} if context else members


def complete(revision, *args, **context):
    client = Client(CATALOG, revision)
    replies = client.post("completion/complete", params(*args, **context))
    deadline = time.monotonic() + 50
    while not replies and time.monotonic() < deadline:
        time.sleep(0.002)
        replies = client.replies()
    (reply,) = replies
    return reply


def completion(*args, **context):
    return complete(*args, **context)["result"]["completion"]


@pytest.mark.requirement("completion/prompts", "completion/rest")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("name", "typed", "values"),
    [
        ("tone", "", ["calm", "brisk"]),
        ("tone", "b", ["brisk"]),
        ("language", "o", ["python", "go"]),
        ("language", "xyz", []),
        ("package", "w", ["web"]),
        ("anything", "x", []),
    ],
)
def test_argument_completion(revision, name, typed, values):
    """The matching values of an argument are returned with their total."""
    assert completion(revision, name, typed) == {"values": values, "total": len(values), "hasMore": False}


@pytest.mark.requirement("completion/ranked", "completion/fuzzy")
@pytest.mark.parametrize("revision", REVISIONS)
def test_ranking(revision):
    """Exact matches come first, then matching prefixes, matching words, and matching letters in order."""
    assert completion(revision, "library", "py")["values"] == ["py", "pytest", "num-py", "sympy", "poetry"]
    assert completion(revision, "library", "ptst")["values"] == ["pytest"]


@pytest.mark.requirement("completion/context")
@pytest.mark.parametrize("revision", REVISIONS)
def test_context_arguments(revision):
    """A completion function receives the arguments that were already chosen."""
    assert completion(revision, "file", "", package="api")["values"] == ["routes.py", "models.py"]
    assert completion(revision, "file", "")["values"] == []


@pytest.mark.requirement("completion/at-most-100", "completion/rest")
@pytest.mark.parametrize("revision", REVISIONS)
def test_limit_of_100_values(revision):
    """An asynchronous function is awaited, and at most 100 of its values are sent."""
    result = completion(revision, "later", "a")

    assert (len(result["values"]), result["total"], result["hasMore"]) == (100, 150, True)


@pytest.mark.requirement("completion/resources")
@pytest.mark.parametrize("revision", REVISIONS)
def test_template_variables(revision):
    """Variables of resource templates are completed like arguments."""
    ref = {"type": "ref/resource", "uri": "logs://{level}{?day}"}

    assert completion(revision, "level", "e", ref)["values"] == ["error"]
    assert completion(revision, "day", "e", ref)["values"] == []


def test_resource_without_variables():
    """A resource without variables has no completions."""
    assert completion(MODERN, "x", "", {"type": "ref/resource", "uri": "notes://one"})["values"] == []


#: Invalid params, and parts of their error messages.
INVALID = [
    ({}, "missing required field `ref`"),
    ({"argument": {"name": "tone", "value": ""}}, "missing required field `ref`"),
    ({**params("tone", ""), "argument": {"value": ""}}, "missing required field `name`"),
    ({**params("tone", ""), "argument": {"name": "tone"}}, "missing required field `value`"),
    (params("a", "", {"type": "ref/prompt", "name": "reviw"}), "did you mean 'review'?"),
    (params("a", "", {"type": "ref/resource", "uri": "logs://{x}"}), "unknown resource 'logs://{x}'"),
    (params("ton", ""), "'ton' is not an argument of this prompt (did you mean 'tone'?)"),
    (params("a", "", {"type": "ref/tool", "name": "x"}), "Invalid value 'ref/tool'"),
    (params("a", "", {"name": "review"}), "missing required field `type`"),
    (params("a", 3), "Expected `str`, got `int`"),
    (params(3, ""), "Expected `str`, got `int`"),
    ({"ref": {"type": "ref/prompt", "name": "review"}}, "missing required field `argument`"),
    (params("tone", "", package=3), "Expected `str | null`, got `int`"),
    (params("explains", ""), "there are no branches yet"),
]


@pytest.mark.requirement("completion/unknown-prompt", "completion/missing-arguments")
@pytest.mark.parametrize("revision", REVISIONS)
def test_invalid_requests(revision):
    """Unknown references and invalid params lead to error -32602 with an explanation."""
    client = Client(CATALOG, revision)
    for request_params, message in INVALID:
        error = client.ask("completion/complete", request_params)["error"]
        assert (error["code"], message in error["message"]) == (-32602, True), error


#: Members that make the params of a completion request invalid.
MALFORMED = [
    {"argument": {"name": "branch", "value": 3}},
    {"argument": {"name": "branch", "value": None}},
    {"argument": {"name": "branch", "value": ["x"]}},
    {"argument": {"name": "brunch", "value": "x"}},
    {"argument": "branch"},
    {"ref": {"type": "ref/prompt", "name": ["switch"]}},
    {"ref": {"type": "ref/resource", "uri": "switch"}},
    {"ref": "switch"},
    {"context": {"arguments": {"remote": 3}}},
    {"context": {"arguments": ["remote"]}},
    {"context": "remote"},
]


@pytest.mark.requirement("completion/validated")
@pytest.mark.parametrize("revision", REVISIONS)
def test_requests_are_validated_first(revision):
    """A completion function is not called for a malformed request or an unknown reference."""
    calls = []

    @prompt
    def switch(branch: Annotated[str, Arg(complete=lambda typed: calls.append(typed) or [])]) -> str:
        return branch

    client = Client(compile(Recipes(prompts=(switch,))), revision)
    valid = params("branch", "x", {"type": "ref/prompt", "name": "switch"}, remote="origin")

    for invalid in MALFORMED:
        reply = client.ask("completion/complete", {**valid, **invalid})
        assert (reply["error"]["code"], calls) == (-32602, []), invalid
    assert client.ask("completion/complete", valid)["result"]["completion"]["values"] == []
    assert calls == ["x"]


@pytest.mark.requirement("completion/sensitive")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("annotation", [Literal["hunter2", "hunter3"], Tone, bool, str], ids=str)
def test_secret_is_not_completed(revision, annotation):
    """Secrets are not completed, whatever their type and default."""
    secret = Annotated[annotation | None, Arg(secret=True, examples=["hunter2"])]

    @prompt
    def login(token: secret = None) -> str:
        return str(token)

    @resource("vault://notes{?token}")
    def vault(token: secret = None) -> str:
        return str(token)

    client = Client(compile(Recipes(prompts=(login,), resources=(vault,))), revision)
    refs = [{"type": "ref/prompt", "name": "login"}, {"type": "ref/resource", "uri": "vault://notes{?token}"}]

    replies = [client.ask("completion/complete", params("token", "", ref)) for ref in refs]
    assert [reply["result"]["completion"]["values"] for reply in replies] == [[], []]


@pytest.mark.requirement("completion/sensitive")
@pytest.mark.parametrize("source", [["hunter2"], lambda: ["hunter2"]], ids=["values", "function"])
def test_secret_with_completions_is_invalid(source):
    """A secret with completions is reported, and the prompt is not served."""

    @prompt
    def login(token: Annotated[str, Arg(secret=True, complete=source)]) -> str:
        return token

    catalog = compile(Recipes(prompts=(login,)))
    (diagnostic,) = catalog.diagnostics

    assert (list(catalog), diagnostic.rule) == ([], Rule.BAD_COMPLETION)
    assert diagnostic.message == "prompt 'login': parameter 'token' cannot be completed: it is a secret"
    assert diagnostic.hint == "remove complete= or secret=True"


@pytest.mark.requirement("completion/disclosure")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("annotation", "default", "typed"),
    [
        (Path, Path("private.key"), ""),
        (Path, Path("private.key"), "/"),
        (Path, Path("private.key"), str(Path(__file__).parent)),
        (str, "private", "p"),
        (list[str], ["private"], ""),
        (int, 42, "4"),
    ],
    ids=["any file", "from the root", "next to this", "text", "list", "number"],
)
def test_only_declared_values_are_offered(revision, annotation, default, typed):
    """Only declared values are offered, not files, defaults or the values of earlier requests."""

    @prompt
    def show(what: annotation = default) -> str:
        return str(what)

    client = Client(compile(Recipes(prompts=(show,))), revision)
    client.get("show", what="4")

    request_params = params("what", typed, {"type": "ref/prompt", "name": "show"})
    assert client.ask("completion/complete", request_params)["result"]["completion"] == {
        "values": [],
        "total": 0,
        "hasMore": False,
    }


@pytest.mark.requirement("completion/disclosure", "completion/internal-error")
@pytest.mark.parametrize("revision", REVISIONS)
def test_failing_completion_function(revision, capsys):
    """The exception is logged under an error id, and the client gets only the id."""
    error = complete(revision, "fails", "")["error"]

    assert (error["code"], "password123" in error["message"]) == (-32603, False)
    assert "password123" in capsys.readouterr().err
