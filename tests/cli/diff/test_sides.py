"""One side of a comparison: a process that runs foreign code."""

import json
import os
import subprocess

import pytest

from promptkit.cli import diff_sides
from promptkit.cli.diff_sides import ask
from promptkit.cli.repository import RevisionError

PROMPT = """
from promptkit import prompt

@prompt
def review(code: str = "x"):
    return f"Review {code}"
"""

EMPTY = {"items": {}, "calls": {}, "outcomes": {}, "errors": []}


def answer_from(folder, calls=None):
    """Return the answer of a process that loads a folder of recipes."""
    return ask(folder.parent, ([folder.name], False, calls), (folder, folder), os.environ)


def test_process_that_hangs_times_out(recipes, monkeypatch):
    """A hanging process times out, even if its input is more than a pipe can hold."""
    monkeypatch.setattr(diff_sides, "_MAX_S", 1.0)
    folder = recipes(hangs="import time\ntime.sleep(60)\n")

    with pytest.raises(RevisionError, match="did not finish within 1 s"):
        answer_from(folder, {"prompt 'x'": {"y": "x" * 1_000_000}})


def test_standard_input_is_empty(recipes):
    """Recipes cannot read the request for their process."""
    source = f"import os, sys\nassert not sys.stdin.read() and not os.read(0, 100)\n{PROMPT}"
    folder = recipes(reads=source)

    answer = answer_from(folder)

    assert answer.errors == []
    assert not (folder / "__pycache__").exists()  # a comparison leaves no files
    assert [*answer.items] == ["prompt 'review'"]


@pytest.fixture
def forged_error(monkeypatch, tmp_path):
    """A function that returns the error for a process that prints these bytes instead of an answer."""

    def forge(printed):
        def run(*_, stdout, **__):
            stdout.write(printed)
            return subprocess.CompletedProcess([], 0)

        monkeypatch.setattr(diff_sides.subprocess, "run", run)
        with pytest.raises(RevisionError) as error:
            answer_from(tmp_path / "recipes")
        return str(error.value)

    return forge


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (b"noise", "returned output that is not JSON"),
        (b"\xff\xfe", "returned output that is not JSON"),
        (b"[" * 100_000, "returned output that is not JSON"),
        (b"[]", "returned an invalid answer: Expected `object`, got `array`"),
        (b"{}", "returned an invalid answer: it is empty"),
        (b'{"answer": {}}', "returned an invalid answer: Object missing required field `items`"),
        (b'{"unloadable": 1}', "returned an invalid answer: Expected "),
        (b'{"failure": "on purpose"}', "failed: on purpose"),
        (b"", "exited with code 0 without an answer"),
    ],
)
def test_forged_answer(printed, reason, forged_error):
    """The error names the target and the reason in one line."""
    error = forged_error(printed)

    assert error.startswith(f"the process that loads 'recipes' {reason}")
    assert "\n" not in error


def test_answer_that_is_too_large(forged_error, monkeypatch):
    """An answer above the limit is rejected without being held in memory."""
    monkeypatch.setattr(diff_sides, "_MAX_BYTES", 1000)

    assert forged_error(b" " * 1001).endswith("printed more than 1,000 bytes")


def test_internal_error_is_one_line(recipes, monkeypatch, capfd):
    """An error in promptkit's own code, which a recipe can cause, takes one line."""
    broken = "import promptkit.cli.diff_sides as s\nimport sys\nsys.modules['__main__'].build_answer = None\n"
    folder = recipes(breaks=broken + PROMPT)

    with pytest.raises(RevisionError, match="failed: TypeError: 'NoneType' object is not callable"):
        answer_from(folder)

    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise KeyboardInterrupt", "failed: KeyboardInterrupt"),
        (
            "import os\nfor n in range(3, 32):\n    try: os.close(n)\n    except OSError: pass",
            "exited with code ",
        ),
        ("import os\nos.kill(os.getpid(), 9)", "exited with code -9 without an answer"),
    ],
    ids=["interrupts", "closes", "kills"],
)
@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_side_that_exits(source, reason, recipes, capfd):
    """A process that exits early is reported in one line without a traceback."""
    folder = recipes(ends=source)

    with pytest.raises(RevisionError, match=reason):
        answer_from(folder)

    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "part",
    [
        {"items": []},
        {"items": {"prompt 'x'": {}}},
        {"calls": {"prompt 'x'": {"y": 1}}},
        {"outcomes": {"prompt 'x'": {"y": None}}},
        {"errors": [["a", "b", "c"]]},
    ],
)
def test_answer_of_another_structure_is_rejected(part, forged_error):
    """The types in an answer are validated, because later code relies on them."""
    assert "returned an invalid answer: " in forged_error(json.dumps({"answer": {**EMPTY, **part}}).encode())


def test_lone_surrogates_are_valid(recipes):
    """A transcript can contain every Python string."""
    folder = recipes(odd="from promptkit import prompt\n@prompt\ndef odd():\n    return '\\ud800'\n")

    assert "\ud800" in answer_from(folder).outcomes["prompt 'odd'"]["its defaults"]
