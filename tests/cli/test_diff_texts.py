"""`promptkit diff --text`: the texts of cases now and at a revision."""

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
    assert diff(capfd) == (0, "no case says anything else than at HEAD\n")


def test_bytecode_settings_are_respected(folder, capfd, tmp_path, monkeypatch):
    """Neither side writes bytecode if it is disabled, and both use a configured cache folder."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    diff(capfd)
    assert not (tmp_path / "shelf" / "__pycache__").exists()

    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "kept"))
    diff(capfd)
    assert not (tmp_path / "shelf" / "__pycache__").exists()
    assert [file.name for file in (tmp_path / "kept").rglob("review.*.pyc")]


def test_changed_text(folder, capfd, tmp_path):
    """The current cases are rendered on both sides, and a change is marked in its line and in the comment."""
    folder("shelf", review=BEFORE.replace("Review this", "Please review this").replace("x = 1", "y = 2"))

    code, output = diff(capfd, "--comment", "comment.md")

    assert code == 0
    assert output == (
        "prompt 'review': 'short' renders another text\n"
        "    [user]\n"
        "    [-Review-]{+Please review+} this.\n"
        "    y = 2\n"
        "1 case changed since HEAD\n"
    )
    assert "\n-Review this.\n+Please review this.\n y = 2\n" in (tmp_path / "comment.md").read_text()


def test_json(folder, capfd):
    """`--json` prints both complete texts and the differing lines."""
    folder("shelf", review=BEFORE.replace("Review this", "1 / 0"))

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
                "message": "prompt 'review': 'short' renders another text",
                "before": "[user]\nReview this.\nx = 1",
                "after": "[user]\n1 / 0.\nx = 1",
                "diff": [" [user]", "-Review this.", "+1 / 0.", " x = 1"],
            }
        ],
    }


def test_standard_input_is_empty(folder, capfd):
    """Both sides have an empty standard input."""
    folder("shelf", review=f"import sys\nassert not sys.stdin.read()\n{dedent(BEFORE)}")

    assert diff(capfd) == (0, "no case says anything else than at HEAD\n")


def test_new_failure(folder, capfd):
    """A case that fails now exits with 1, like a breaking change."""
    folder("shelf", review=BEFORE.replace('return f"Review', '1 / 0; return f"Review'))

    code, output = diff(capfd)

    assert code == 1
    assert "{+[fails] ZeroDivisionError: division by zero+}" in output
    assert output.endswith("1 case changed since HEAD, of which 1 fail\n")


def test_import_error_is_reported(folder, capfd):
    """An import error is reported, so that its cases do not seem to be removed."""
    folder("shelf", review="import nothing_of_that_name\n")

    main(["diff", "--target", "shelf", "--text"])

    out, err = capfd.readouterr()
    assert "'short' is gone" in out
    assert "not served: shelf/review.py:1: recipe 'review' cannot be imported" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--text", "--format", "github"), "--text has no annotations"),
        (("--comment", "x", "--summary", "y"), "--text has no annotations, and no summary"),
        (("--repeat",), "--repeat and --env are for --text"),
        (("--env", "TOKEN"), "--repeat and --env are for --text"),
    ],
)
def test_options_without_effect(options, message, folder, capfd):
    """Options that have no effect are rejected."""
    with pytest.raises(SystemExit) as exit:
        main(["diff", "--target", "shelf", *options])

    assert exit.value.code == 2
    assert message in capfd.readouterr().err


def test_unstable_text(folder, capfd):
    """With `--repeat`, a text that differs each time is marked and not counted."""
    folder("shelf", review=BEFORE + "\n    @prompt\n    def other():\n        return os.urandom(4).hex()\n")

    _, output = diff(capfd, "--repeat")

    assert "prompt 'other': 'its defaults' is new, each time\n" in output
    assert output.endswith("no case says anything else than at HEAD\n")


def test_environment_is_hidden(folder, capfd, monkeypatch):
    """Cases do not see environment variables, except those named by `--env`."""
    monkeypatch.setenv("TOKEN", "hunter2")
    source = BEFORE.replace("{os.environ.get('TOKEN')}", "token {os.environ.get('TOKEN')}")
    folder("shelf", review=source)

    assert "hunter2" not in diff(capfd)[1]
    assert "hunter2" in diff(capfd, "--env", "TOKEN")[1]


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


@pytest.fixture(params=[None, "PROMPTKIT_WORKSPACE", "CLAUDE_PROJECT_DIR"])
def workspace(request, tmp_path, monkeypatch):
    """The workspace: a separate repository if a variable names it."""
    for name in ("PROMPTKIT_WORKSPACE", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    if request.param is None:
        return tmp_path
    workspace = tmp_path / "work"
    workspace.mkdir()
    monkeypatch.setenv(request.param, str(workspace))
    subprocess.run(["git", "init", "-q", workspace], check=True)  # noqa: S607 (whichever there is)
    return workspace


@pytest.mark.parametrize("text", [[], ["--text"]], ids=["examples", "text"])
def test_both_sides_share_the_workspace(text, folder, workspace, capfd):
    """Both sides see the command's workspace, so that its state is not a change of the prompt."""
    folder("shelf", review=STAGED)
    subprocess.run(["git", "add", "shelf"], check=True)  # noqa: S607 (whichever there is)
    subprocess.run(["git", "commit", "-qm", "y"], check=True)  # noqa: S607 (whichever there is)
    (workspace / "notes.txt").write_text("x", encoding="utf-8")
    subprocess.run(["git", "-C", workspace, "add", "notes.txt"], check=True)  # noqa: S607 (whichever there is)

    assert main(["diff", "--target", "shelf", *text]) == 0
    unchanged = "no case says anything else than at" if text else "nothing that clients see has changed since"
    assert capfd.readouterr().out == f"{unchanged} HEAD\n"

    folder("shelf", review=STAGED.replace('f"{run', 'f"Staged: {run'))
    assert main(["diff", "--target", "shelf", *text]) == 0
    output = capfd.readouterr().out
    assert "Staged:" in output
    assert "notes.txt" in output
