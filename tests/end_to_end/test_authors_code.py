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
def plain{suffix}():
    act()
    return "done"

@prompt
def steps{suffix}():
    yield "done"
    act()

@prompt
async def later{suffix}():
    act()
    return "done"

def offers():
    act()
    return ["done"]

@prompt
def typed{suffix}(word: Annotated[str, Arg(complete=offers)]):
    return word

@resource("notes://one{suffix}")
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


def requests_of(suffix=""):
    """Return a request for each place where the code of a recipe runs, and one for an unaffected prompt."""
    ref = {"type": "ref/prompt", "name": f"typed{suffix}"}
    return {
        f"plain{suffix}": ("prompts/get", {"name": f"plain{suffix}"}),
        f"steps{suffix}": ("prompts/get", {"name": f"steps{suffix}"}),
        f"later{suffix}": ("prompts/get", {"name": f"later{suffix}"}),
        f"completion{suffix}": (
            "completion/complete",
            {"ref": ref, "argument": {"name": "word", "value": ""}},
        ),
        f"resource{suffix}": ("resources/read", {"uri": f"notes://one{suffix}"}),
        "other": ("prompts/get", {"name": "other"}),
    }


REQUESTS = requests_of()

#: Harmless code, at import and while rendering. What one entry changes does not affect the others in it.
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
    "settings": """
        os.chdir("/")
        os.environ.clear()
        locale.setlocale(locale.LC_ALL, "C")
        gc.disable()
        sys.setswitchinterval(100)
        tracemalloc.start()
        faulthandler.enable()
        faulthandler.dump_traceback_later(0.05)
        asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())
        sys.excepthook = threading.excepthook = lambda *_: sys.exit(1)
        """,
    "warnings are errors": "warnings.simplefilter('error')",
    "logging": """
        logging.basicConfig(handlers=[logging.StreamHandler(sys.stdout), logging.StreamHandler()], level=0)
        logging.error("noise")
        """,
    "threads": """
        threading.Thread(target=time.sleep, args=(60,)).start()
        threading.Thread(target=lambda: [print("noise") for _ in range(999)]).start()
        threading.Thread(target=lambda: 1 / 0).start()
        """,
    "child process": """
        child = multiprocessing.get_context("fork").Process(target=print, args=("noise",))
        child.start()
        child.join()
        """,
    "exit handler that blocks": "atexit.register(time.sleep, 60)",
    "no streams": "sys.stdout = sys.stderr = None",
    "closed streams": "sys.stdout.close()\nsys.stderr.close()",
}

#: Code that fails each time it runs, and affects nothing else.
FAILING = {
    "exit": "sys.exit(3)",
    "interrupt": "raise KeyboardInterrupt",
    "recursion": "def deeper(): deeper()\ndeeper()",
    "memory": "raise MemoryError",
    "cancelled": "raise asyncio.CancelledError",
    "generator_exit": "raise GeneratorExit",
    "stop_iteration": "raise StopIteration",
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
}

#: Code that fails, and has side effects as well.
FAILING_WITH_EFFECTS = {
    "warning": "warnings.simplefilter('error')\nwarnings.warn('careful')",
    "no stderr": "sys.stderr = None\n1 / 0",
    "closed stderr": "sys.stderr.close()\n1 / 0",
}


def recipe(*, outside="pass", inside="pass", suffix=""):
    """Return a recipe that runs code at import, while rendering, or both."""
    outside, inside = (indent(dedent(code), "    ") for code in (outside, inside))
    return RECIPE.format(outside=outside, inside=inside, suffix=suffix)


@pytest.fixture
def serve_all(recipes):
    """A function that serves recipes together with the unaffected prompt."""
    started = []

    def start(**sources):
        folder = recipes(wholesome=OTHER, **sources)
        process = subprocess.Popen(
            [sys.executable, "-m", "promptkit", "serve", "--grace", "20", folder],
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


@pytest.fixture
def serve(serve_all):
    """A function that serves a recipe that runs code at import, while rendering, or both."""
    return lambda **code: serve_all(recipe=recipe(**code))


def outcomes(process, *kinds, requests=REQUESTS):
    """Send a request of each of *kinds* and close the input; return the outcomes and the exit code."""
    messages = [request(number, *requests[kind]) for number, kind in enumerate(kinds, 1)]
    started = time.monotonic()
    stdout, _ = process.communicate(b"".join(map(line, [initialize("2025-06-18"), *messages])), timeout=20)
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


def test_code_that_fails_while_rendering(serve_all):
    """Only the affected requests fail, each time, whatever is raised in any kind of code."""
    process = serve_all(**{name: recipe(inside=code, suffix=f"_{name}") for name, code in FAILING.items()})
    requests = {kind: sent for name in FAILING for kind, sent in requests_of(f"_{name}").items()}
    again = [kind for kind in requests if kind.startswith("plain") or kind == "other"]
    kinds = [*requests, *again]

    results, code = outcomes(process, *kinds, requests=requests)

    failed = {kind for kind, result in zip(kinds, results, strict=True) if result == -32603}
    assert failed == requests.keys() - {"other"}
    assert results.count("done") == kinds.count("other") == 2
    assert code == 0


@pytest.mark.parametrize("name", FAILING_WITH_EFFECTS)
def test_code_that_fails_with_side_effects(serve, name):
    """Only the affected requests fail, each time, even if the code has side effects on the process."""
    process = serve(inside=FAILING_WITH_EFFECTS[name])

    assert outcomes(process, *REQUESTS, *REQUESTS) == (([-32603] * 5 + ["done"]) * 2, 0)


def test_code_that_fails_at_import(serve_all):
    """The recipes that fail are unavailable, whatever they raise, and the others are served."""
    process = serve_all(**{name: recipe(outside=code, suffix=f"_{name}") for name, code in FAILING.items()})
    requests = {kind: sent for name in FAILING for kind, sent in requests_of(f"_{name}").items()}
    kinds = [*(f"plain_{name}" for name in FAILING), "other"]

    assert outcomes(process, *kinds, *kinds, requests=requests) == (([-32602] * 10 + ["done"]) * 2, 0)


@pytest.mark.parametrize("name", FAILING_WITH_EFFECTS)
def test_import_that_fails_with_side_effects(serve, name):
    """A recipe that has side effects and then fails at import is unavailable, and the others are served."""
    process = serve(outside=FAILING_WITH_EFFECTS[name])

    assert outcomes(process, "plain", "other", "plain", "other") == ([-32602, "done"] * 2, 0)


@pytest.mark.parametrize("descriptor", [0, 1, 2])
def test_closed_standard_descriptors(serve, descriptor):
    """
    Code can close descriptors 0 to 2, at import or while rendering, because the protocol does not depend on
    them.
    """
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
    """Even if a recipe lowers the recursion limit of the process, simple requests are served."""
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
    """If a task fails after the reply, only the type of its exception is logged."""
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
