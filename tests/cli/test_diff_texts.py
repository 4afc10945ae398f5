"""`promptkit diff --text`: what cases say now, and said at a revision."""

import json
import os
import shutil
import subprocess
import sys
from textwrap import dedent

import pytest

from promptkit.cli import main

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

BEFORE = """
    import os, random, time
    from datetime import datetime
    from promptkit import PromptError, prompt

    @prompt
    def review(code: str):
        if not code:
            raise PromptError("the code is empty")
        return f"Review this.\\n{code}"

    review.case("short", "x = 1")
    review.case("nothing", "").refused("is empty")

    @prompt
    def clock():
        return f"{datetime.now()} {time.time()} {random.random()} {set('abc')} {os.environ.get('TOKEN')}"
"""


@pytest.fixture
def folder(recipes, tmp_path, monkeypatch):
    """A repository with recipes, which are committed."""
    monkeypatch.chdir(tmp_path)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
    recipes("shelf", review=BEFORE)
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run(["git", *command], check=True)  # noqa: S607 (whichever there is)
    return recipes


def compared(capfd, *options):
    """The code, and what is printed."""
    code = main(["diff", "--target", "shelf", "--text", *options])
    return code, capfd.readouterr().out


def test_nothing_differs_where_the_clock_and_chance_do(folder, capfd):
    """
    Both sides have one clock and one seed.
    """
    assert compared(capfd) == (0, "no case says anything else than at HEAD\n")


def test_no_bytecode_is_written_where_none_is_wanted(folder, capfd, tmp_path, monkeypatch):
    """
    What says so, a variable or ``python -B``, holds for the processes, too; and where it is kept otherwise.
    """
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    compared(capfd)
    assert not (tmp_path / "shelf" / "__pycache__").exists()

    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "kept"))
    compared(capfd)
    assert not (tmp_path / "shelf" / "__pycache__").exists()
    assert [file.name for file in (tmp_path / "kept").rglob("review.*.pyc")]


def test_what_has_changed(folder, capfd, tmp_path):
    """
    Today's cases are given to both sides. Each change stands in its line, and in the comment.
    """
    folder("shelf", review=BEFORE.replace("Review this", "Please review this").replace("x = 1", "y = 2"))

    code, printed = compared(capfd, "--comment", "comment.md")

    assert code == 0
    assert printed == (
        "prompt 'review': 'short' renders another text\n"
        "    [user]\n"
        "    [-Review-]{+Please review+} this.\n"
        "    y = 2\n"
        "1 case changed since HEAD\n"
    )
    assert "\n-Review this.\n+Please review this.\n y = 2\n" in (tmp_path / "comment.md").read_text()


def test_data(folder, capfd):
    """
    With --json, all of both texts, and the lines that differ.
    """
    folder("shelf", review=BEFORE.replace("Review this", "1 / 0"))

    code, printed = compared(capfd, "--json")

    assert code == 0
    assert json.loads(printed) == {
        "revision": "HEAD",
        "breaking": False,
        "changes": [
            {
                "of": "prompt 'review'",
                "case": "short",
                "breaking": False,
                "unsteady": False,
                "message": "prompt 'review': 'short' renders another text",
                "before": "[user]\nReview this.\nx = 1",
                "after": "[user]\n1 / 0.\nx = 1",
                "diff": [" [user]", "-Review this.", "+1 / 0.", " x = 1"],
            }
        ],
    }


def test_a_recipe_that_reads_standard_input(folder, capfd):
    """
    Both sides have an empty one.
    """
    folder("shelf", review=f"import sys\nassert not sys.stdin.read()\n{dedent(BEFORE)}")

    assert compared(capfd) == (0, "no case says anything else than at HEAD\n")


def test_what_fails_now(folder, capfd):
    """
    It ends with 1, as what breaks callers does.
    """
    folder("shelf", review=BEFORE.replace('return f"Review', '1 / 0; return f"Review'))

    code, printed = compared(capfd)

    assert code == 1
    assert "{+[fails] ZeroDivisionError: division by zero+}" in printed
    assert printed.endswith("1 case changed since HEAD, of which 1 fail\n")


def test_what_cannot_be_served_is_said(folder, capfd):
    """
    Else it would seem that its cases were taken away.
    """
    folder("shelf", review="import nothing_of_that_name\n")

    main(["diff", "--target", "shelf", "--text"])

    out, err = capfd.readouterr()
    assert "'short' is gone" in out
    assert "not served: shelf/review.py:1: recipe 'review' cannot be imported" in err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--text", "--format", "github"), "--text has no annotations"),
        (("--comment", "x", "--summary", "y"), "--text has no annotations, and no summary"),
        (("--repeat",), "--repeat and --env are for --text"),
        (("--env", "TOKEN"), "--repeat and --env are for --text"),
    ],
)
def test_options_without_an_effect_are_refused(options, says, folder, capfd):
    """
    Nobody takes them for what they do not do.
    """
    with pytest.raises(SystemExit) as end:
        main(["diff", "--target", "shelf", *options])

    assert end.value.code == 2
    assert says in capfd.readouterr().err


def test_what_differs_by_itself(folder, capfd):
    """
    With --repeat it is marked, and does not count.
    """
    folder("shelf", review=BEFORE + "\n    @prompt\n    def other():\n        return os.urandom(4).hex()\n")

    _, printed = compared(capfd, "--repeat")

    assert "prompt 'other': 'its defaults' is new, each time\n" in printed
    assert printed.endswith("no case says anything else than at HEAD\n")


def test_the_environment_is_not_known(folder, capfd, monkeypatch):
    """
    Cases do not differ by its variables, but for those that are named.
    """
    monkeypatch.setenv("TOKEN", "hunter2")
    show = BEFORE.replace("{os.environ.get('TOKEN')}", "token {os.environ.get('TOKEN')}")
    folder("shelf", review=show)

    assert "hunter2" not in compared(capfd)[1]
    assert "hunter2" in compared(capfd, "--env", "TOKEN")[1]


@pytest.mark.parametrize("where", ["HEAD", "now"])
def test_what_cannot_be_loaded(where, folder, capfd, tmp_path):
    """
    The message says on which side.
    """
    if where == "now":
        shutil.rmtree(tmp_path / "shelf")
    else:
        os.rename(tmp_path / "shelf", tmp_path / "other")  # noqa: PTH104

    target = "shelf" if where == "now" else "other"
    code = main(["diff", "--target", target, "--text"])

    said = capfd.readouterr().err
    assert code == 2
    assert ("at HEAD, " in said) == (where == "HEAD")


STAGED = """
    from promptkit import prompt
    from promptkit.workspace import run

    @prompt
    def review_staged():
        return f"{run('git', 'diff', '--staged', '--name-only', '--')}"
"""


@pytest.fixture(params=[None, "PROMPTKIT_WORKSPACE", "CLAUDE_PROJECT_DIR"])
def work(request, tmp_path, monkeypatch):
    """The workspace: a repository of its own if a variable names it."""
    for name in ("PROMPTKIT_WORKSPACE", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    if request.param is None:
        return tmp_path
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv(request.param, str(work))
    subprocess.run(["git", "init", "-q", work], check=True)  # noqa: S607 (whichever there is)
    return work


@pytest.mark.parametrize("text", [[], ["--text"]], ids=["examples", "text"])
def test_both_sides_have_the_workspace_of_the_command(text, folder, work, capfd):
    """
    What a prompt says of the workspace is no change of the prompt, nor is it where the old one lies.
    """
    folder("shelf", review=STAGED)
    subprocess.run(["git", "add", "shelf"], check=True)  # noqa: S607 (whichever there is)
    subprocess.run(["git", "commit", "-qm", "y"], check=True)  # noqa: S607 (whichever there is)
    (work / "notes.txt").write_text("x", encoding="utf-8")
    subprocess.run(["git", "-C", work, "add", "notes.txt"], check=True)  # noqa: S607 (whichever there is)

    assert main(["diff", "--target", "shelf", *text]) == 0
    unchanged = "no case says anything else than at" if text else "nothing that clients see has changed since"
    assert capfd.readouterr().out == f"{unchanged} HEAD\n"

    folder("shelf", review=STAGED.replace('f"{run', 'f"Staged: {run'))
    assert main(["diff", "--target", "shelf", *text]) == 0
    shown = capfd.readouterr().out
    assert "Staged:" in shown
    assert "notes.txt" in shown
