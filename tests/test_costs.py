"""What a request costs, in calls: a fixed session, held against figures that are stored beside this file."""

import gc
import json
import sys
from collections import Counter, deque
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, Final, Literal

import attrs
import pytest

from promptkit import Workflow, assistant, prompt, user
from promptkit.compiler.compilation import compile
from promptkit.compiler.loading.loader import Recipes
from promptkit.protocol.limits import Limits
from promptkit.server import Server
from tests.wire import initialize, line, modern, notification, request

#: By "python" and "c": how many functions are called.
Costs = dict[str, int]

FILE: Final = Path(__file__).with_name("costs.json")
STORE: Final = "python -m tests.test_costs"
PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
KINDS: Final = {"python": "functions written in Python", "c": "functions written in C"}
HANDSHAKE: Final = "2025-11-25"
LIMITS: Final = Limits(completions=1e9)
WARM_UP: Final = 30  # requests, after which every cache of a first time is filled
TIMES: Final = 20  # requests that have to cost the same
MANY: Final = 1_000
SLACK: Final = 0.1  # how far below its budget a cost may lie
ROOM: Final = 1.25  # times the greatest stored budget, on a Python that none was stored for


@attrs.frozen
class Change:
    title: str
    files: list[str]
    urgent: bool


@prompt
def plain(code: str) -> str:
    """Review a piece of code."""
    return f"Review this code.\n\n{code}"


@prompt
def typed(code: str, language: Literal["python", "rust", "go"] = "python", depth: int = 1) -> str:
    """Review code in a language."""
    return f"Review this {language} code, {depth} deep.\n\n{code}"


@prompt
def structured(change: Change) -> str:
    """Review a change."""
    return f"Review {change.title!r}: {', '.join(change.files)}"


@prompt
def turns(error: str) -> Workflow:
    """Walk through an error."""
    return user(f"I see: {error}") + assistant("What have you tried?") + user("A restart.")


CATALOG = compile(Recipes(prompts=(plain, typed, structured, turns)))


def get(name: str, **arguments: str) -> tuple[str, dict[str, Any]]:
    """The method and the parameters that get a prompt."""
    return "prompts/get", {"name": name, "arguments": arguments}


#: By name: the request of a number. Arguments differ, so that nothing is answered from what was kept.
REQUESTS: dict[str, Callable[[int], tuple[str, dict[str, Any]]]] = {
    "plain get": lambda number: get("plain", code=f"x = {number:06}"),
    "typed get": lambda number: get("typed", code=f"x = {number:06}", language="rust", depth=f"1{number:06}"),
    "structured get": lambda number: get(
        "structured", change=json.dumps({"title": f"{number:06}", "files": ["a", "b"], "urgent": True})
    ),
    "three turns": lambda number: get("turns", error=f"E{number:06}"),
    "unknown argument": lambda number: get("plain", code="x", cod=f"{number:06}"),
    "unknown prompt": lambda number: get(f"plane{number:06}"),
    "completion": lambda _: (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "typed"}, "argument": {"name": "language", "value": "ru"}},
    ),
    "list": lambda _: ("prompts/list", {}),
}


def opened(server: Server) -> Server:
    """The server, once a client has shaken hands with it."""
    server.receive_data(line(initialize(HANDSHAKE, "hello")))
    server.receive_data(line(notification("notifications/initialized")))
    return server


@attrs.frozen
class Case:
    """
    A kind of request.

    Args:
        line:
            Makes the line of a number.

        prepare:
            What comes before it.

        once:
            Whether a server is sent it only once.
    """

    line: Callable[[int], bytes]
    prepare: Callable[[Server], Server] = lambda server: server
    once: bool = False

    def serve(
        self, requests: int, receive: Callable[[Server, bytes], None] = Server.receive_data
    ) -> list[bytes]:
        """Have *receive* take the lines of the numbers below *requests*; return what was sent last."""
        sent: deque[bytes] = deque(maxlen=1)

        def start() -> Server:
            return self.prepare(Server(CATALOG, sent.append, limits=LIMITS))

        server = start()
        for number in range(requests):
            server = start() if self.once else server
            receive(server, self.line(number))
        return list(sent)


CASES = {
    **{
        f"{name}, handshake": Case(lambda number, make=make: line(request(number, *make(number))), opened)
        for name, make in [*REQUESTS.items(), ("ping", lambda _: ("ping", {}))]
    },
    **{
        f"{name}, modern": Case(lambda number, make=make: line(modern(number, *make(number))))
        for name, make in [*REQUESTS.items(), ("discover", lambda _: ("server/discover", {}))]
    },
    "initialize, handshake": Case(lambda number: line(initialize(HANDSHAKE, number)), once=True),
}


def counted(server: Server, data: bytes) -> Costs:
    """How many functions are called for *data*: those written in Python, and those in C."""
    counts = Counter[str]()
    before = sys.getprofile()
    sys.setprofile(lambda _frame, event, _arg: counts.update((event,)))
    server.receive_data(data)
    sys.setprofile(before)
    return {"python": counts["call"], "c": counts["c_call"] - 1}  # the last is that of setprofile


def costs_of(case: Case) -> Costs:
    """What a request of *case* costs once everything is warm; the same each time, or this raises."""
    found: deque[Costs] = deque(maxlen=TIMES)
    collects = gc.isenabled()
    gc.disable()  # what it calls back is no cost of the request that it comes upon
    try:
        case.serve(WARM_UP + TIMES, lambda server, data: found.append(counted(server, data)))
    finally:
        if collects:
            gc.enable()
    first, *others = found
    assert all(first == other for other in others), f"the costs vary: {list(found)}"
    return first


def budget_of(stored: dict[str, dict[str, Costs]], python: str, name: str) -> tuple[Costs, bool]:
    """
    What a request may cost, and whether it is a Python that the figures were stored for.

    Elsewhere, the greatest of the stored figures holds, with some room: comprehensions are functions up to
    3.11, and the standard library calls itself differently in each version.
    """
    if python in stored:
        return stored[python][name], True
    known = [figures[name] for figures in stored.values()]
    return {kind: int(max(costs[kind] for costs in known) * ROOM) for kind in KINDS}, False


def faults(name: str, costs: Costs, budget: Costs, *, exact: bool) -> list[str]:
    """The complaints about *costs*: above the budget, or so far below that it should be lowered."""
    found = []
    for kind, words in KINDS.items():
        cost, most = costs[kind], budget[kind]
        if cost > most:
            found.append(
                f"{name}: {cost} calls of {words}, and the budget is {most}. "
                f"`{STORE} '{name}'` shows them; `{STORE}` stores new budgets."
            )
        elif exact and cost < most * (1 - SLACK):
            found.append(
                f"{name}: {cost} calls of {words}, and the budget is {most}: lower the budget to {cost}. "
                f"`{STORE}` does that."
            )
    return found


def show(name: str) -> None:
    """Print what a request calls, in order."""
    seen: deque[list[str]] = deque(maxlen=1)

    def watch(server: Server, data: bytes) -> None:
        called: list[str] = []

        def note(frame: FrameType, event: str, function: Any) -> None:
            if event == "call":
                called.append(
                    f"python {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname}"
                )
            elif event == "c_call":
                called.append(f"c      {function.__qualname__}")

        sys.setprofile(note)
        server.receive_data(data)
        sys.setprofile(None)
        seen.append(called[:-1])

    CASES[name].serve(WARM_UP, watch)
    sys.stdout.write("\n".join([*seen[0], ""]))


def store() -> None:
    """Store what each request costs on this Python, and print it."""
    figures = {name: costs_of(case) for name, case in CASES.items()}
    stored = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for name, costs in figures.items():
        before = stored.get(PYTHON, {}).get(name, "nothing")
        sys.stdout.write(f"{name}: {costs}, was {before}\n")
    text = json.dumps({**stored, PYTHON: figures}, indent=1, sort_keys=True)
    FILE.write_text(text + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def stored():
    """The budgets."""
    return json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def _frozen():
    """What other tests have left is not looked at by each of the collections below."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("name", CASES)
def test_a_request_costs_what_is_stored(name, stored):
    """
    No request calls more functions than its budget allows, and gains are kept.
    """
    budget, exact = budget_of(stored, PYTHON, name)

    assert faults(name, costs_of(CASES[name]), budget, exact=exact) == []


def test_budgets_are_those_of_the_cases(stored):
    """
    Every stored figure is still looked at.
    """
    assert [list(figures) for figures in stored.values()] == [sorted(CASES)] * len(stored)


@pytest.mark.parametrize("name", CASES)
def test_the_session_is_answered(name):
    """
    What is counted is an answer, and an error just where something unknown is asked for.
    """
    (reply,) = CASES[name].serve(3)

    assert ("error" in json.loads(reply)) is name.startswith("unknown")


@pytest.mark.usefixtures("_frozen")
@pytest.mark.parametrize("name", CASES)
def test_a_request_leaves_nothing_behind(name):
    """
    A thousand requests leave no memory in use that was not in use before.
    """
    blocks = []
    numbers = count(1)

    def receive(server, data):
        server.receive_data(data)
        if next(numbers) in {MANY, 2 * MANY}:
            gc.collect()
            blocks.append(sys.getallocatedblocks())

    CASES[name].serve(2 * MANY, receive)
    before, after = blocks

    assert after - before < MANY / 20


@pytest.mark.parametrize(
    ("cost", "exact", "said"),
    [
        (100, True, []),
        (90, True, []),
        (101, True, ["x: 101 calls of functions written in Python, and the budget is 100. "]),
        (
            89,
            True,
            ["x: 89 calls of functions written in Python, and the budget is 100: lower the budget to 89. "],
        ),
        (89, False, []),
        (101, False, ["x: 101 calls of functions written in Python, and the budget is 100. "]),
    ],
)
def test_what_is_said_of_a_cost(cost, exact, said):
    """
    More than the budget is a fault, and so is much less, which says what to store.
    """
    found = faults("x", {"python": cost, "c": 10}, {"python": 100, "c": 10}, exact=exact)

    assert [text.partition("`")[0] for text in found] == said


def test_another_python_has_some_room():
    """
    Where nothing was stored, the greatest of the stored figures holds, with room.
    """
    stored = {"3.11": {"x": {"python": 100, "c": 8}}, "3.12": {"x": {"python": 80, "c": 10}}}

    assert budget_of(stored, "3.12", "x") == ({"python": 80, "c": 10}, True)
    assert budget_of(stored, "3.99", "x") == ({"python": 125, "c": 12}, False)


if __name__ == "__main__":
    if sys.argv[1:]:
        show(*sys.argv[1:])
    else:
        store()
