"""
Side effects of authors' code on the process: other requests are not affected, and the shutdown is orderly.
"""

import json
import subprocess
import sys
import time
from textwrap import dedent, indent

import pytest

from tests.wire import initialize, line, request

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

#: A request for each place where authors' code runs, and one for an unaffected prompt.
REQUESTS = {
    "plain": ("prompts/get", {"name": "plain"}),
    "steps": ("prompts/get", {"name": "steps"}),
    "later": ("prompts/get", {"name": "later"}),
    "completion": ("completion/complete", WORD),
    "resource": ("resources/read", {"uri": "notes://one"}),
    "other": ("prompts/get", {"name": "other"}),
}
KINDS = [kind for kind in REQUESTS if kind != "other"]

#: Harmless code, at import and while rendering.
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
    "leftover thread": "threading.Thread(target=time.sleep, args=(60,)).start()",
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

#: Code that fails each time it runs.
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
    """A function that serves a recipe that runs code at import, while rendering, or both."""
    started = []

    def start(*, outside="pass", inside="pass"):
        source = RECIPE.format(
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
                recipes(recipe=source, wholesome=OTHER),
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
    """Send a request of each of *kinds* and close the input; return the outcomes and the exit code."""
    requests = [request(number, *REQUESTS[kind]) for number, kind in enumerate(kinds, 1)]
    started = time.monotonic()
    stdout, _ = process.communicate(b"".join(map(line, [initialize("2025-06-18"), *requests])), timeout=20)
    assert time.monotonic() - started < 10
    replies = [json.loads(reply) for reply in stdout.splitlines()]
    assert sorted(reply["id"] for reply in replies) == list(range(len(kinds) + 1))
    by_id = {reply["id"]: "done" if "result" in reply else reply["error"]["code"] for reply in replies}
    return [by_id[number] for number in range(1, len(kinds) + 1)], process.returncode


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_code(serve, name):
    """
    With side effects at import and in every kind of code, all requests are served twice, the output contains
    only messages, and the process exits normally.
    """
    process = serve(outside=HARMLESS[name], inside=HARMLESS[name])

    assert outcomes(process, *REQUESTS, *REQUESTS) == (["done"] * 12, 0)


@pytest.mark.parametrize("name", FAILING)
def test_code_that_fails_while_rendering(serve, name):
    """Only the affected requests fail, each time."""
    process = serve(inside=FAILING[name])

    assert outcomes(process, *KINDS, "other", *KINDS, "other") == (([-32603] * 5 + ["done"]) * 2, 0)


@pytest.mark.parametrize("name", FAILING)
def test_code_that_fails_at_import(serve, name):
    """The recipe is unavailable, and the others are served."""
    process = serve(outside=FAILING[name])

    assert outcomes(process, "plain", "other", "plain", "other") == ([-32602, "done"] * 2, 0)


@pytest.mark.parametrize("descriptor", [0, 1, 2])
def test_closed_standard_descriptors(serve, descriptor):
    """The protocol does not depend on descriptors 0 to 2, at import or while rendering."""
    close = f"os.close({descriptor})"

    assert outcomes(serve(outside=close), *REQUESTS, *REQUESTS) == (["done"] * 12, 0)
    # Only once: later, another file can have the same descriptor.
    close_once = f"if not vars(act):\n    act.is_done = True\n    {close}"
    assert outcomes(serve(inside=close_once), *REQUESTS, *REQUESTS) == (["done"] * 12, 0)


def test_signal_handler_in_a_prompt(serve):
    """Python rejects signal handlers outside of the main thread, and other requests are served."""
    process = serve(inside="signal.signal(signal.SIGALRM, signal.SIG_IGN)")

    assert outcomes(process, "plain", "other", "plain") == ([-32603, "done", -32603], 0)


def test_event_loop_in_a_prompt(serve):
    """A synchronous prompt can run an event loop; an asynchronous one gets the error of asyncio."""
    process = serve(inside="work = asyncio.sleep(0)\ntry:\n    asyncio.run(work)\nfinally:\n    work.close()")

    assert outcomes(process, *REQUESTS) == (["done", "done", -32603, "done", "done", "done"], 0)


def test_low_recursion_limit(serve):
    """A process-wide low limit leaves enough for simple requests."""
    process = serve(inside="sys.setrecursionlimit(120)")

    assert outcomes(process, *REQUESTS, *REQUESTS) == (["done"] * 12, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux")
def test_exhausted_memory(serve):
    """The rendering that exhausts the memory fails, and later requests are served."""
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


def test_failure_of_a_leftover_task_is_redacted(serve):
    """Only the type of the exception is logged for a task that fails after the reply."""
    code = """
        async def fail():
            raise ValueError("password123")
        try:
            task = asyncio.get_running_loop().create_task(fail())
        except RuntimeError:
            pass
        """
    process = serve(inside=code)
    messages = [initialize("2025-06-18"), request(1, *REQUESTS["later"]), request(2, *REQUESTS["later"])]

    stdout, stderr = process.communicate(b"".join(map(line, messages)), timeout=20)

    assert sorted(json.loads(reply)["id"] for reply in stdout.splitlines()) == [0, 1, 2]
    assert b"password123" not in stderr


def test_very_many_messages(serve):
    """A prompt with a hundred thousand messages is answered, and so is the next request."""
    process = serve(inside="return list(range(100_000))")
    assert outcomes(process, "plain", "other") == (["done"] * 2, 0)
