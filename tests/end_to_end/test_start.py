"""
Tests of what a server loads before its first replies.
"""

import os
import sys
from subprocess import PIPE, Popen, run

import pytest

from benchmarks.pictures import draw
from tests.wire import initialize, line, request

#: Serves like the console script. Prints what is loaded when the first list is written, and when the first
#: prompt is; the file ``later`` is not read before that.
SERVE = """
import os, sys
from threading import Event

loaded, got = [], Event()

def write(descriptor, data, write=os.write):
    if b'"prompts":[' in bytes(data):
        loaded.append(" ".join(sys.modules))
    if b'"messages":[' in bytes(data):
        loaded.append(" ".join(sys.modules))
        got.set()
        print(*loaded, sep="\\n", file=sys.stderr)
    return write(descriptor, data)

def hold(event, arguments):
    if event == "open" and loaded and os.path.basename(str(arguments[0])).startswith("later."):
        got.wait(30)

sys.addaudithook(hold)
os.write = write
from promptkit.cli import main
main(["serve", "recipes"])
"""

RECIPE = '''
from promptkit import prompt, user

@prompt
def {name}(who: str = "you"):
    """Say hello."""
    return user(f"Hello, {{who}}.")
'''

#: How many modules of Python, of other packages and of the recipes there may be at the first list, and at the
#: first prompt. Four of them are argparse's.
OTHERS = {"list": 106, "prompt": 140}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """The names of the modules at the first list and at the first prompt, with a current start-up cache."""
    project = tmp_path_factory.mktemp("project")
    (project / "recipes").mkdir()
    for name in ("greet", "later"):
        (project / "recipes" / f"{name}.py").write_text(RECIPE.format(name=name), encoding="utf-8")
    session = (
        initialize("2025-11-25"),
        request(1, "prompts/list"),
        request(2, "prompts/get", {"name": "greet"}),
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def serve():
        command, pipes = [sys.executable, "-c", SERVE], dict.fromkeys(("stdin", "stdout", "stderr"), PIPE)
        with Popen(command, env=environment, cwd=project, **pipes) as process:
            for message in session:
                process.stdin.write(line(message))
                process.stdin.flush()
                process.stdout.readline()
            _, said = process.communicate(timeout=50)
        at_list, at_prompt = said.decode().splitlines()
        return {"list": at_list.split(), "prompt": at_prompt.split()}

    serve()
    return serve()


def test_the_list_is_that_of_the_cache(loaded):
    """
    What is counted below is a start in which the recipes are imported after the list.
    """
    assert {at: "recipes.greet" in modules for at, modules in loaded.items()} == {
        "list": False,
        "prompt": True,
    }


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="each Python loads other modules of its own")
@pytest.mark.parametrize("at", OTHERS)
def test_a_start_loads_few_modules(loaded, at):
    """
    The first list, and the first prompt, take no more modules of others than this.
    """
    others = sorted(name for name in loaded[at] if name.partition(".")[0] != "promptkit")

    assert len(others) <= OTHERS[at], others


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="each Python loads other modules of its own")
def test_the_list_takes_no_introspection(loaded):
    """
    For msgspec, typing_extensions is not imported, nor what looks at source code: a tenth of the time.
    """
    assert {"ast", "inspect", "typing_extensions"}.isdisjoint(loaded["list"])


def test_an_image_takes_no_network():
    """
    To look at an image loads no client of HTTP, and no cryptography, which would stay in memory.
    """
    code = "import sys, promptkit; promptkit.Image(sys.stdin.buffer.read()); print(*sys.modules)"
    made = run([sys.executable, "-c", code], input=draw(8), capture_output=True, check=True)

    assert {"http.client", "ssl", "_hashlib"}.isdisjoint(made.stdout.decode().split())
