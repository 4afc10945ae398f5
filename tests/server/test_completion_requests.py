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
    says: Annotated[str, Arg(complete=refused)],
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
    found = {"ref": ref, "argument": {"name": name, "value": value}}
    return {**found, "context": {"arguments": context}} if context else found


def complete(revision, *args, **context):
    client = Client(CATALOG, revision)
    found = client.post("completion/complete", params(*args, **context))
    deadline = time.monotonic() + 50
    while not found and time.monotonic() < deadline:
        time.sleep(0.002)
        found = client.replies()
    (reply,) = found
    return reply


def offered(*args, **context):
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
def test_an_argument(revision, name, typed, values):
    """
    What fits is offered, best first, with how much there is of it.
    """
    assert offered(revision, name, typed) == {"values": values, "total": len(values), "hasMore": False}


@pytest.mark.requirement("completion/ranked", "completion/fuzzy")
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_best_come_first(revision):
    """
    What was typed comes first, then what begins with it, then words, then its letters in order.
    """
    assert offered(revision, "library", "py")["values"] == ["py", "pytest", "num-py", "sympy", "poetry"]
    assert offered(revision, "library", "ptst")["values"] == ["pytest"]


@pytest.mark.requirement("completion/context")
@pytest.mark.parametrize("revision", REVISIONS)
def test_what_was_chosen_counts(revision):
    """
    A function sees the arguments that were chosen already.
    """
    assert offered(revision, "file", "", package="api")["values"] == ["routes.py", "models.py"]
    assert offered(revision, "file", "")["values"] == []


@pytest.mark.requirement("completion/at-most-100", "completion/rest")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_hundred_at_most(revision):
    """
    An asynchronous function is awaited, and of what it returns a hundred values are sent.
    """
    found = offered(revision, "later", "a")

    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 150, True)


@pytest.mark.requirement("completion/resources")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_variable_of_a_template(revision):
    """
    Variables of resource templates are completed as arguments are.
    """
    ref = {"type": "ref/resource", "uri": "logs://{level}{?day}"}

    assert offered(revision, "level", "e", ref)["values"] == ["error"]
    assert offered(revision, "day", "e", ref)["values"] == []


def test_a_single_resource_has_nothing_to_complete():
    """
    Its URI is known, so nothing is offered for it.
    """
    assert offered(MODERN, "x", "", {"type": "ref/resource", "uri": "notes://one"})["values"] == []


@pytest.mark.requirement("completion/unknown-prompt", "completion/missing-arguments")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("asked", "said"),
    [
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
        (params("tone", "", package=3), "Expected `str`, got `int`"),
        (params("says", ""), "there are no branches yet"),
    ],
)
def test_what_is_refused(revision, asked, said):
    """
    What there is not, and what does not fit, is -32602 and says why.
    """
    error = Client(CATALOG, revision).ask("completion/complete", asked)["error"]

    assert (error["code"], said in error["message"]) == (-32602, True)


@pytest.mark.requirement("completion/validated")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "wrong",
    [
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
    ],
    ids=str,
)
def test_nobody_is_asked_before_all_is_checked(revision, wrong):
    """
    No function of an author's sees a request that is malformed, or for what there is not.
    """
    calls = []

    @prompt
    def switch(branch: Annotated[str, Arg(complete=lambda typed: calls.append(typed) or [])]) -> str:
        return branch

    client = Client(compile(Recipes(prompts=(switch,))), revision)
    sound = params("branch", "x", {"type": "ref/prompt", "name": "switch"}, remote="origin")

    assert client.ask("completion/complete", {**sound, **wrong})["error"]["code"] == -32602
    assert calls == []
    assert client.ask("completion/complete", sound)["result"]["completion"]["values"] == []
    assert calls == ["x"]


@pytest.mark.requirement("completion/sensitive")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("annotation", [Literal["hunter2", "hunter3"], Tone, bool, str], ids=str)
def test_a_secret_is_not_completed(revision, annotation):
    """
    Whatever its type knows of it, and whatever its default is.
    """
    secret = Annotated[annotation | None, Arg(secret=True, examples=["hunter2"])]

    @prompt
    def login(token: secret = None) -> str:
        return str(token)

    @resource("vault://notes{?token}")
    def vault(token: secret = None) -> str:
        return str(token)

    client = Client(compile(Recipes(prompts=(login,), resources=(vault,))), revision)
    refs = [{"type": "ref/prompt", "name": "login"}, {"type": "ref/resource", "uri": "vault://notes{?token}"}]

    found = [client.ask("completion/complete", params("token", "", ref)) for ref in refs]
    assert [reply["result"]["completion"]["values"] for reply in found] == [[], []]


@pytest.mark.requirement("completion/sensitive")
@pytest.mark.parametrize("source", [["hunter2"], lambda: ["hunter2"]], ids=["values", "function"])
def test_a_secret_with_values_to_offer_is_a_mistake(source):
    """
    It is reported, and the prompt is not served.
    """

    @prompt
    def login(token: Annotated[str, Arg(secret=True, complete=source)]) -> str:
        return token

    catalog = compile(Recipes(prompts=(login,)))
    (found,) = catalog.diagnostics

    assert (list(catalog), found.rule) == ([], Rule.BAD_COMPLETION)
    assert found.message == "prompt 'login': parameter 'token' cannot be completed: it is a secret"
    assert found.hint == "leave out complete=, or secret=True"


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
    ids=["any file", "from the root", "beside this", "text", "list", "number"],
)
def test_nothing_is_offered_that_no_author_offers(revision, annotation, default, typed):
    """
    Neither files nor defaults nor what was asked for earlier: only what a type or an author lists.
    """

    @prompt
    def show(what: annotation = default) -> str:
        return str(what)

    client = Client(compile(Recipes(prompts=(show,))), revision)
    client.get("show", what="4")

    asked = params("what", typed, {"type": "ref/prompt", "name": "show"})
    assert client.ask("completion/complete", asked)["result"]["completion"] == {
        "values": [],
        "total": 0,
        "hasMore": False,
    }


@pytest.mark.requirement("completion/disclosure", "completion/internal-error")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_function_that_fails(revision, capsys):
    """
    Its error stays on the server, under an id that the client gets.
    """
    error = complete(revision, "fails", "")["error"]

    assert (error["code"], "password123" in error["message"]) == (-32603, False)
    assert "password123" in capsys.readouterr().err
