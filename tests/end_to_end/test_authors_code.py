"""What authors' code may do to its process: no request but its own suffers, and the end is orderly."""

import json
import subprocess
import sys
import time
from textwrap import dedent, indent

import pytest

from tests.wire import initialize, line, request

pytestmark = pytest.mark.sampled

RECIPE = """
import asyncio, atexit, ctypes, faulthandler, gc, locale, logging, multiprocessing, os, signal, subprocess
import sys, threading, time, tracemalloc, warnings
from typing import Annotated
from promptkit import Arg, prompt, resource, user

def act():
{inside}

def act_at_import():
{outside}

act_at_import()

@prompt
def plain():
    act()
    return "done"

@prompt
def steps():
    yield "done"
    act()

@prompt
async def later():
    act()
    return "done"

def offers():
    act()
    return ["done"]

@prompt
def typed(word: Annotated[str, Arg(complete=offers)]):
    return word

@resource("notes://one")
def notes() -> str:
    act()
    return "done"
"""

OTHER = """
from promptkit import prompt

@prompt
def other():
    return "well"
"""

WORD = {"ref": {"type": "ref/prompt", "name": "typed"}, "argument": {"name": "word", "value": ""}}

#: Everything in which authors' code runs, and a prompt that has no part in it.
REQUESTS = {
    "plain": ("prompts/get", {"name": "plain"}),
    "steps": ("prompts/get", {"name": "steps"}),
    "later": ("prompts/get", {"name": "later"}),
    "completion": ("completion/complete", WORD),
    "resource": ("resources/read", {"uri": "notes://one"}),
    "other": ("prompts/get", {"name": "other"}),
}
KINDS = [kind for kind in REQUESTS if kind != "other"]

#: What does no harm at all, wherever it is done.
HARMLESS = {
    "output": """
        print("noise")
        os.write(1, b"noise")
        sys.__stdout__.write("noise")
        subprocess.run(["echo", "noise"], check=True)
        library = ctypes.CDLL(None)
        library.puts(b"noise")
        library.fflush(None)
        """,
    "folder": "os.chdir('/')",
    "warnings are errors": "warnings.simplefilter('error')",
    "logging": "logging.basicConfig(stream=sys.stdout, level=0)\nlogging.error('noise')",
    "logging to stderr": "logging.basicConfig(level=0)\nlogging.error('noise')",
    "thread left behind": "threading.Thread(target=time.sleep, args=(60,)).start()",
    "thread that prints": "threading.Thread(target=lambda: [print('noise') for _ in range(9999)]).start()",
    "thread that raises": "threading.Thread(target=lambda: 1 / 0).start()",
    "child process": """
        child = multiprocessing.get_context("fork").Process(target=print, args=("noise",))
        child.start()
        child.join()
        """,
    "exit handler that blocks": "atexit.register(time.sleep, 60)",
    "garbage": "gc.disable()",
    "switch interval": "sys.setswitchinterval(100)",
    "faulthandler": "faulthandler.enable()\nfaulthandler.dump_traceback_later(0.05)",
    "tracemalloc": "tracemalloc.start()",
    "event loop policy": "asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())",
    "locale": "locale.setlocale(locale.LC_ALL, 'C')",
    "environment": "os.environ.clear()",
    "no stdout": "sys.stdout = None",
    "closed stdout": "sys.stdout.close()",
    "no stderr": "sys.stderr = None",
    "closed stderr": "sys.stderr.close()",
    "hooks": "sys.excepthook = threading.excepthook = lambda *_: sys.exit(1)",
}

#: What fails, and fails again when it is done again.
FAILING = {
    "exit": "sys.exit(3)",
    "interrupt": "raise KeyboardInterrupt",
    "recursion": "def deeper(): deeper()\ndeeper()",
    "memory": "raise MemoryError",
    "cancelled": "raise asyncio.CancelledError",
    "generator exit": "raise GeneratorExit",
    "stop iteration": "raise StopIteration",
    "warning": "warnings.simplefilter('error')\nwarnings.warn('careful')",
    "group": "raise BaseExceptionGroup('two', [SystemExit(1), KeyboardInterrupt()])",
    "cycle": """
        one, two = ValueError("one"), ValueError("two")
        one.__cause__, two.__cause__ = two, one
        raise one
        """,
    "unprintable": """
        class Mute(Exception):
            def __str__(self):
                sys.exit()
            __repr__ = __str__
        raise Mute
        """,
    "no stderr": "sys.stderr = None\n1 / 0",
    "closed stderr": "sys.stderr.close()\n1 / 0",
}


@pytest.fixture
def serve(recipes):
    """A function that serves a recipe which does something at import, inside, or both."""
    started = []

    def start(*, outside="pass", inside="pass"):
        made = RECIPE.format(
            outside=indent(dedent(outside), "    "),
            inside=indent(dedent(inside), "    "),
        )
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "promptkit",
                "serve",
                "--grace",
                "20",
                recipes(recipe=made, wholesome=OTHER),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def outcomes(process, *kinds):
    """Ask for each of *kinds* and end the input: what came of them, and the exit code."""
    asked = [request(number, *REQUESTS[kind]) for number, kind in enumerate(kinds, 1)]
    started = time.monotonic()
    out, _ = process.communicate(b"".join(map(line, [initialize("2025-06-18"), *asked])), timeout=20)
    assert time.monotonic() - started < 10
    replies = [json.loads(reply) for reply in out.splitlines()]
    assert sorted(reply["id"] for reply in replies) == list(range(len(kinds) + 1))
    found = {reply["id"]: "done" if "result" in reply else reply["error"]["code"] for reply in replies}
    return [found[number] for number in range(1, len(kinds) + 1)], process.returncode


@pytest.mark.parametrize("what", HARMLESS)
def test_what_does_no_harm(serve, what):
    """
    Whatever is done to the process at import and inside of every kind of code, all is served,
    twice, the wire holds messages only, and the process ends as always.
    """
    process = serve(outside=HARMLESS[what], inside=HARMLESS[what])

    assert outcomes(process, *REQUESTS, *REQUESTS) == (["done"] * 12, 0)


@pytest.mark.parametrize("what", FAILING)
def test_what_fails_inside(serve, what):
    """It fails its own request, each time, and no other."""
    process = serve(inside=FAILING[what])

    assert outcomes(process, *KINDS, "other", *KINDS, "other") == (([-32603] * 5 + ["done"]) * 2, 0)


@pytest.mark.parametrize("what", FAILING)
def test_what_fails_at_import(serve, what):
    """The recipe is missing, and the others are served."""
    process = serve(outside=FAILING[what])

    assert outcomes(process, "plain", "other", "plain", "other") == ([-32602, "done"] * 2, 0)


@pytest.mark.parametrize("descriptor", [0, 1, 2])
def test_a_standard_descriptor_that_is_closed(serve, descriptor):
    """The wire does not depend on one, at import or inside."""
    closing = f"os.close({descriptor})"

    assert outcomes(serve(outside=closing), *REQUESTS, *REQUESTS) == (["done"] * 12, 0)
    # Once: after that, its number may be that of a file of anybody's.
    once = f"if not vars(act):\n    act.is_done = True\n    {closing}"
    assert outcomes(serve(inside=once), *REQUESTS, *REQUESTS) == (["done"] * 12, 0)


def test_a_signal_handler_inside_a_prompt(serve):
    """It cannot be set there, as Python says, and the others are served."""
    process = serve(inside="signal.signal(signal.SIGALRM, signal.SIG_IGN)")

    assert outcomes(process, "plain", "other", "plain") == ([-32603, "done", -32603], 0)


def test_an_event_loop_inside_a_prompt(serve):
    """A plain prompt may run one; on a loop that runs already, asyncio refuses, as always."""
    process = serve(inside="work = asyncio.sleep(0)\ntry:\n    asyncio.run(work)\nfinally:\n    work.close()")

    assert outcomes(process, *REQUESTS) == (["done", "done", -32603, "done", "done", "done"], 0)


def test_a_low_recursion_limit(serve):
    """A prompt that lowers it for the whole process leaves enough for what is simple."""
    process = serve(inside="sys.setrecursionlimit(120)")

    assert outcomes(process, *REQUESTS, *REQUESTS) == (["done"] * 12, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux")
def test_memory_that_is_really_exhausted(serve):
    """One render that takes all there is fails, and the next ones are served."""
    greedy = """
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (800_000_000, -1))
        taken = []
        while True:
            taken.append(bytearray(10_000_000))
        """

    assert outcomes(serve(inside=greedy), "plain", "other", "plain", "other") == (
        [-32603, "done"] * 2,
        0,
    )


def test_what_a_prompt_leaves_behind_keeps_its_secrets(serve):
    """Of a task that fails after the reply only the kind of the error is logged."""
    leaving = """
        async def fail():
            raise ValueError("password123")
        try:
            task = asyncio.get_running_loop().create_task(fail())
        except RuntimeError:
            pass
        """
    process = serve(inside=leaving)
    messages = [initialize("2025-06-18"), request(1, *REQUESTS["later"]), request(2, *REQUESTS["later"])]

    out, err = process.communicate(b"".join(map(line, messages)), timeout=20)

    assert sorted(json.loads(reply)["id"] for reply in out.splitlines()) == [0, 1, 2]
    assert b"password123" not in err


def test_a_great_many_messages(serve):
    """A prompt of a hundred thousand messages is answered, or refused, and the next one served."""
    process = serve(inside="return list(range(100_000))")
    assert outcomes(process, "plain", "other") == (["done"] * 2, 0)
