import asyncio
import time
from enum import Enum
from typing import Annotated, Literal

import pytest

from promptkit import Arg, PromptError, prompt, resource
from promptkit.compiler import compile
from promptkit.loader import Recipes
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
    tone: Tone,
    language: Literal["python", "rust", "go"],
    package: Annotated[str, Arg(complete=["api", "web"])],
    file: Annotated[str, Arg(complete=lambda typed, chosen: FILES.get(chosen.get("package"), []))],
    later: Annotated[str, Arg(complete=slowly)],
    fails: Annotated[str, Arg(complete=broken)],
    says: Annotated[str, Arg(complete=refused)],
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
    deadline = time.monotonic() + 10
    while not found and time.monotonic() < deadline:
        time.sleep(0.002)
        found = client.replies()
    (reply,) = found
    return reply


def offered(*args, **context):
    return complete(*args, **context)["result"]["completion"]


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


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_was_chosen_counts(revision):
    """
    A function sees the arguments that were chosen already.
    """
    assert offered(revision, "file", "", package="api")["values"] == ["routes.py", "models.py"]
    assert offered(revision, "file", "")["values"] == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_hundred_at_most(revision):
    """
    An asynchronous function is awaited, and of what it returns a hundred values are sent.
    """
    found = offered(revision, "later", "a")

    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 150, True)


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


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (params("a", "", {"type": "ref/prompt", "name": "reviw"}), "did you mean 'review'?"),
        (params("a", "", {"type": "ref/resource", "uri": "logs://{x}"}), "unknown resource 'logs://{x}'"),
        (params("ton", ""), "'ton' is no argument of this prompt (did you mean 'tone'?)"),
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


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_function_that_fails(revision, capsys):
    """
    Its error stays on the server, under an id that the client is told.
    """
    error = complete(revision, "fails", "")["error"]

    assert (error["code"], "password123" in error["message"]) == (-32603, False)
    assert "password123" in capsys.readouterr().err
