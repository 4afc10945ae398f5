"""`promptkit diff --text`: the text of cases now and at a revision."""

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from promptkit.cli import main
from promptkit.cli.diff_sides import NOW, Answer, SentCall, fixed_clock

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
    """A repository with committed recipes."""
    monkeypatch.chdir(tmp_path)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
    recipes("shelf", review=BEFORE)
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run(["git", *command], check=True)  # noqa: S607 (whichever there is)
    return recipes


def diff(capfd, *options):
    """Run `diff --text`; return the exit code and the output."""
    code = main(["diff", "--target", "shelf", "--text", *options])
    return code, capfd.readouterr().out


def test_time_and_randomness_are_fixed(folder, capfd):
    """Both sides have the same clock and the same random seed."""
    assert diff(capfd) == (0, "all text is the same as at HEAD\n")


def test_without_a_library_that_fixes_the_clock(monkeypatch):
    """Without time-machine, the current time is not fixed, and nothing fails."""
    monkeypatch.setitem(sys.modules, "time_machine", None)

    with fixed_clock():
        assert datetime.now(UTC) != NOW
    monkeypatch.undo()
    with fixed_clock():
        assert datetime.now(UTC) == NOW


@pytest.mark.usefixtures("in_process")
def test_changed_text(folder, capfd, tmp_path):
    """The current cases are rendered on both sides, and a change is marked in its line and in the summary."""
    folder("shelf", review=BEFORE.replace("Review this", "Please review this").replace("x = 1", "y = 2"))

    code, output = diff(capfd, "--summary", "summary.md")

    assert code == 0
    assert output == (
        "prompt 'review': 'short' renders different text\n"
        "    [user]\n"
        "    [-Review-]{+Please review+} this.\n"
        "    y = 2\n"
        "1 rendering changed since HEAD\n"
    )
    assert "\n  -Review this.\n  +Please review this.\n   y = 2\n" in (tmp_path / "summary.md").read_text()


@pytest.fixture
def transcripts(folder, monkeypatch):
    """A function that sets the transcripts of one case on both sides."""

    def transcripts(before, after):
        calls = {"prompt 'review'": {"short": SentCall({}, "case")}}
        sides = ([Answer({}, calls, {"prompt 'review'": {"short": text}}, [])] for text in (before, after))
        monkeypatch.setattr("promptkit.cli.diff.answers_of_sides", lambda *_, **__: tuple(sides))

    return transcripts


def test_json(transcripts, capfd):
    """`--json` prints the complete text of both sides, and the differing lines."""
    transcripts("[user]\nReview this.\nx = 1", "[user]\n1 / 0.\nx = 1")

    code, output = diff(capfd, "--json")

    assert code == 0
    assert json.loads(output) == {
        "revision": "HEAD",
        "breaking": False,
        "changes": [
            {
                "of": "prompt 'review'",
                "case": "short",
                "breaking": False,
                "unsteady": False,
                "message": "prompt 'review': 'short' renders different text",
                "before": "[user]\nReview this.\nx = 1",
                "after": "[user]\n1 / 0.\nx = 1",
                "diff": [" [user]", "-Review this.", "+1 / 0.", " x = 1"],
            }
        ],
        "not_compared": [],
    }


def test_new_failure(transcripts, capfd):
    """A case that fails now, and did not before, makes the command exit with 1."""
    transcripts("[user]\nReview this.", "[fails] ZeroDivisionError: division by zero")

    code, output = diff(capfd)

    assert code == 1
    assert "ZeroDivisionError" in output
    assert output.endswith("1 rendering changed since HEAD, of which 1 fail\n")


@pytest.mark.usefixtures("in_process")
def test_import_error_is_reported(folder, capfd):
    """An import error is reported, because the cases of the file are listed as removed."""
    folder("shelf", review="import nothing_of_that_name\n")

    main(["diff", "--target", "shelf", "--text"])

    out, err = capfd.readouterr()
    assert "'short' was removed" in out
    assert "not served: shelf/review.py:1: recipe 'review' cannot be imported" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--repeat",), "--repeat and --env require --text"),
        (("--env", "TOKEN"), "--repeat and --env require --text"),
    ],
)
def test_options_without_effect(options, message, folder, capfd):
    """Options that have no effect are rejected."""
    with pytest.raises(SystemExit) as exit:
        main(["diff", "--target", "shelf", *options])

    assert exit.value.code == 2
    assert message in capfd.readouterr().err


@pytest.mark.usefixtures("in_process")
def test_unstable_text(folder, capfd):
    """With `--repeat`, text that differs each time is marked and not counted."""
    folder("shelf", review=BEFORE + "\n    @prompt\n    def other():\n        return os.urandom(4).hex()\n")

    _, output = diff(capfd, "--repeat")

    assert "prompt 'other': 'its defaults' was added (it differs each time)\n" in output
    assert output.endswith("all text is the same as at HEAD\n")


def test_environment_is_hidden(folder, capfd, monkeypatch):
    """Cases do not see environment variables, except those named by `--env`."""
    monkeypatch.setenv("TOKEN", "hunter2")
    monkeypatch.setenv("TEAM", "core")
    folder("shelf", review=BEFORE.replace("{os.environ.get('TOKEN')}", "{[*os.environ.values()]}"))

    _, output = diff(capfd, "--env", "TEAM")

    assert "core" in output
    assert "hunter2" not in output


@pytest.mark.parametrize("side", ["HEAD", "now"])
def test_load_errors(side, folder, capfd, tmp_path):
    """The error names the side that cannot be loaded."""
    if side == "now":
        shutil.rmtree(tmp_path / "shelf")
    else:
        os.rename(tmp_path / "shelf", tmp_path / "other")  # noqa: PTH104

    target = "shelf" if side == "now" else "other"
    code = main(["diff", "--target", target, "--text"])

    error = capfd.readouterr().err
    assert code == 2
    assert ("at HEAD, " in error) == (side == "HEAD")


STAGED = """
    from promptkit import prompt
    from promptkit.workspace import run

    @prompt
    def review_staged():
        return f"{run('git', 'diff', '--staged', '--name-only', '--')}"
"""


@pytest.fixture
def workspace(request, tmp_path, monkeypatch):
    """The workspace: the current folder, or a separate repository if an environment variable names one."""
    for name in ("PROMPTKIT_WORKSPACE", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    if request.param is None:
        return tmp_path
    workspace = tmp_path / "work"
    workspace.mkdir()
    monkeypatch.setenv(request.param, str(workspace))
    subprocess.run(["git", "init", "-q", workspace], check=True)  # noqa: S607 (whichever there is)
    return workspace


@pytest.mark.parametrize(
    ("workspace", "text"), [("CLAUDE_PROJECT_DIR", []), (None, ["--text"])], indirect=["workspace"]
)
def test_both_sides_share_the_workspace(text, folder, workspace, capfd):
    """Both sides see the command's workspace, so that its state is not a change of the prompt."""
    folder("shelf", review=STAGED)
    subprocess.run(["git", "add", "shelf"], check=True)  # noqa: S607 (whichever there is)
    subprocess.run(["git", "commit", "-qm", "y"], check=True)  # noqa: S607 (whichever there is)
    (workspace / "notes.txt").write_text("x", encoding="utf-8")
    subprocess.run(["git", "-C", workspace, "add", "notes.txt"], check=True)  # noqa: S607 (whichever there is)

    folder("shelf", review=STAGED.replace('f"{run', 'f"Staged: {run'))
    assert main(["diff", "--target", "shelf", *text]) == 0
    output = capfd.readouterr().out
    assert "Staged:" in output
    assert "notes.txt" in output
