"""`promptkit diff` in git repositories, and the GitHub actions that run it for pull requests."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from promptkit.cli import main
from promptkit.cli.differences.word_diff import TextChange
from tests.cli.differences.github import FOREIGN, assert_foreign_text_is_code
from tests.terminal import command, ended_on_terminal, environment

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")]

ACTION = Path(__file__).parents[2] / ".github" / "actions" / "promptkit-diff" / "action.yml"

BEFORE = """
from typing import Annotated, Literal
from promptkit import Arg, prompt

@prompt
def review(code: Annotated[str, Arg(examples=["x = 1"])], language: Literal["python", "rust"] = "python"):
    'Review it.'
    return f"Review this {language}.\\n\\n{code}"
"""
HARMLESS = BEFORE.replace("Review this", "Please review this")
BREAKING = BEFORE.replace('"python", "rust"', '"python"')

#: The output for a change that breaks callers.
BROKEN = """\
breaking: prompt 'review': argument 'language' no longer takes all that it took
    -Literal['python', 'rust']
    +Literal['python']
1 breaking change since HEAD
"""
NEUTRAL = """\
harmless: prompt 'review': renders another text for code='x = 1'
     [user]
    -Review this python.
    +Please review this python.

     x = 1
1 harmless change since HEAD
"""

#: Ignore the user's and the system's git configuration.
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(folder, *arguments):
    """Run git and return its standard output."""
    result = subprocess.run(
        ["git", "-C", folder, *arguments],  # noqa: S607 (wherever it is)
        env=environment(**GIT),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return result.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit, in a folder with a space in its name."""
    folder = tmp_path / "my project"
    (folder / "recipes").mkdir(parents=True)
    (folder / "recipes" / "review.py").write_text(BEFORE, encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=One")
    return folder


def edit(repository, source):
    """Rewrite the prompt."""
    (repository / "recipes" / "review.py").write_text(source, encoding="utf-8")


def diff(repository, *arguments, within="."):
    """Run `promptkit diff` and return its exit code, standard output and standard error."""
    code, out, err = command("diff", *arguments, cwd=repository / within, env=GIT)
    return code, out.decode(), err.decode()


def test_several_targets_are_compared_together(repository):
    """All targets are loaded on both sides."""
    more = repository / "more"
    more.mkdir()
    (more / "plan.py").write_text(BEFORE.replace("def review", "def plan"), encoding="utf-8")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message=Two")
    edit(repository, BREAKING)
    (more / "plan.py").unlink()

    code, out, err = diff(repository, "--target", "recipes", "--target", "more")

    assert (code, err) == (1, "")
    assert "breaking: prompt 'plan'" in out
    assert "2 breaking changes since HEAD\n" in out


class TestOutcomes:
    @pytest.mark.parametrize(
        ("source", "code", "expected"),
        [
            (BEFORE, 0, "nothing that clients see has changed since HEAD\n"),
            (HARMLESS, 0, NEUTRAL),
            (BREAKING, 1, BROKEN),
        ],
        ids=["nothing", "harmless", "breaking"],
    )
    def test_text(self, repository, source, code, expected):
        """The text output lists the changes, and the exit code is 1 if one is breaking."""
        edit(repository, source)

        assert diff(repository) == (code, expected, "")

    def test_on_a_terminal(self, repository):
        """The output on a terminal is the same text in colour."""
        edit(repository, BREAKING)

        code, output = ended_on_terminal("diff", cwd=repository, columns=200, FORCE_COLOR="1")

        assert code == 1
        assert "\x1b[1;31mbreaking\x1b[0m" in output
        assert re.sub(r"\x1b\[[0-9;]*m", "", output) == BROKEN

    def test_json(self, repository):
        """`--json` prints one document with all changes."""
        edit(repository, BREAKING)

        code, out, _ = diff(repository, "--json")

        assert code == 1
        assert json.loads(out) == {
            "revision": "HEAD",
            "breaking": True,
            "changes": [
                {
                    "kind": "argument-narrowed",
                    "breaking": True,
                    "of": "prompt 'review'",
                    "message": "argument 'language' no longer takes all that it took",
                    "before": "Literal['python', 'rust']",
                    "after": "Literal['python']",
                }
            ],
        }

    def test_github_and_a_summary(self, repository, tmp_path):
        """`--format github` prints annotations, and `--summary` appends Markdown to a file."""
        edit(repository, BREAKING)
        summary = tmp_path / "summary.md"
        summary.write_text("# Before\n")

        _, out, _ = diff(repository, "--format", "github", "--summary", str(summary))

        assert out == (
            "::error file=recipes/review.py,line=5,title=promptkit diff%3A breaking::prompt 'review': "
            "argument 'language' no longer takes all that it took"
            "%0A-Literal['python', 'rust']%0A+Literal['python']\n"
        )
        assert summary.read_text() == (
            "# Before\n## Prompts\n\n` 1 breaking change since HEAD `\n\n"
            "- **breaking**: ` prompt 'review': argument 'language' no longer takes all that it took `\n\n"
            "  ```diff\n  -Literal['python', 'rust']\n  +Literal['python']\n  ```\n"
        )

    def test_a_revision_and_a_target(self, repository):
        """Any revision can be compared from any folder, with a target anywhere in the repository."""
        (repository / "deep").mkdir()
        edit(repository, HARMLESS)
        git(repository, "commit", "--all", "--quiet", "--message=Two")

        assert diff(repository)[0] == 0
        code, out, _ = diff(repository, "HEAD~1", "--target", "../recipes/review.py:review", within="deep")

        assert (code, out.splitlines()[-1]) == (0, "1 harmless change since HEAD~1")


class TestTwoRevisions:
    @pytest.fixture
    def history(self, repository):
        """A tagged commit, followed by one commit on `main` and another on the branch `topic`."""
        git(repository, "tag", "v1")
        git(repository, "switch", "--quiet", "--create", "topic")
        edit(repository, HARMLESS)
        git(repository, "commit", "--all", "--quiet", "--message=Reworded")
        git(repository, "switch", "--quiet", "main")
        edit(repository, BREAKING)
        git(repository, "commit", "--all", "--quiet", "--message=Narrowed")
        edit(repository, "import nowhere_at_all\n")  # the working tree does not matter
        return repository

    @pytest.mark.parametrize(
        ("revisions", "code", "last"),
        [
            ("v1..topic", 0, "1 harmless change since v1, up to topic"),
            ("topic..v1", 0, "1 harmless change since topic, up to v1"),
            ("v1..", 1, "1 breaking change since v1, up to HEAD"),
            ("..v1", 0, "1 harmless change since HEAD, up to v1"),
            ("v1..v1", 0, "nothing that clients see has changed since v1, up to v1"),
            ("main..topic", 0, "2 harmless changes since main, up to topic"),
        ],
    )
    def test_range_compares_both_ends(self, history, revisions, code, last):
        """`A..B` compares B with A; either end defaults to `HEAD`, as in git."""
        exit_code, out, err = diff(history, revisions)

        assert (exit_code, out.splitlines()[-1], err) == (code, last, "")

    def test_three_dots_compare_with_the_merge_base(self, history):
        """With three dots, changes on the other branch since the merge base are ignored."""
        base = git(history, "rev-parse", "v1")[:12]
        code, out, err = diff(history, "main...topic", "--json")

        assert (code, err) == (0, "")
        assert [change["kind"] for change in json.loads(out)["changes"]] == ["rendering"]
        assert diff(history, "main...topic")[1].endswith(f"1 harmless change since {base}, up to topic\n")

    def test_text_of_cases(self, history):
        """`--text` compares the rendered cases of two revisions."""
        code, out, err = diff(history, "v1..topic", "--text")

        assert code == 0
        assert "[-Review-]{+Please review+} this python." in out
        assert out.endswith("1 case changed since v1, up to topic\n")
        assert err == "promptkit: renders the cases of v1 and topic too: the code of that revision runs\n"

    @pytest.mark.parametrize(
        ("revisions", "message"),
        [
            ("v1..nope", "there is no revision 'nope' here: name a commit, a branch or a tag"),
            ("nope..v1", "there is no revision 'nope' here: name a commit, a branch or a tag"),
            ("nope...v1", "there is no revision 'nope' here: name a commit, a branch or a tag"),
            ("main...other", "'main' and 'other' have no commit in common: write main..other"),
        ],
    )
    def test_unknown_revisions(self, history, revisions, message):
        """The error names the unknown end of the range."""
        tree = git(history, "hash-object", "-t", "tree", "-w", os.devnull)
        git(history, "branch", "other", git(history, "commit-tree", tree, "-m", "Other"))

        assert diff(history, revisions) == (2, "", f"promptkit: {message}\n")


class TestIsolation:
    def test_repository_is_unchanged(self, repository):
        """`diff` changes no file, staged or not, and runs no hook."""
        edit(repository, BREAKING)
        (repository / "new.txt").write_text("new")
        git(repository, "add", "new.txt")
        hook = repository / ".git" / "hooks" / "post-checkout"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{repository}/ran'\n")
        hook.chmod(0o755)

        def files():
            paths = sorted(path for path in repository.rglob("*") if path.is_file())
            return {path: path.read_bytes() for path in paths if "__pycache__" not in path.parts}

        before = files()
        assert diff(repository)[0] == 1

        assert files() == before

    def test_each_side_imports_its_own_modules(self, repository):
        """Modules and files next to the recipes are read from the respective revision."""
        for revision in ("one", "two"):
            (repository / "lib.py").write_text(f"WORD = {revision!r}\n")
            (repository / "recipes" / "word.txt").write_text(revision)
            edit(
                repository,
                "from pathlib import Path\nfrom lib import WORD\nfrom promptkit import prompt\n@prompt\n"
                "def say(): return WORD + (Path(__file__).parent / 'word.txt').read_text() + __file__\n",
            )
            git(repository, "add", "--all")
            git(repository, "commit", "--quiet", "--message=Word")

        _, out, _ = diff(repository, "HEAD~1", "--json")

        (change,) = json.loads(out)["changes"]
        assert change["before"] == f"[user]\noneone{repository}/recipes/review.py"
        assert change["after"] == f"[user]\ntwotwo{repository}/recipes/review.py"

    def test_output_of_recipes(self, repository):
        """Output of recipes goes to standard error and does not garble the JSON."""
        edit(repository, f"print('noise')\nimport os; os.write(1, b'more')\n{BEFORE}")

        code, out, err = diff(repository, "--json")

        assert (code, json.loads(out)["changes"]) == (0, [])
        assert "noise" in err
        assert "more" in err

    def test_in_a_git_hook(self, repository):
        """The environment variables that git sets for hooks are ignored."""
        edit(repository, HARMLESS)
        env = {**GIT, "GIT_DIR": ".git", "GIT_INDEX_FILE": ".git/index"}

        code, out, err = command("diff", cwd=repository, env=env)

        assert (code, out.decode(), err) == (0, NEUTRAL, b"")


class TestErrors:
    def test_errors_on_either_side(self, repository):
        """Errors on either side are reported, and the remaining prompts are compared."""
        edit(repository, BEFORE + "\n@prompt\ndef bare(x): return x\n")
        git(repository, "commit", "--all", "--quiet", "--message=Bare")
        edit(repository, "import nowhere_at_all\n")

        code, out, err = diff(repository)

        assert code == 1
        assert out == "breaking: prompt 'review': is gone\n1 breaking change since HEAD\n"
        before, after = err.splitlines()
        assert before.startswith("promptkit: not served at HEAD: recipes/review.py:")
        assert after.startswith("promptkit: not served: recipes/review.py:")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["nope"], "there is no revision 'nope' here: name a commit, a branch or a tag"),
            (["HEAD", "--target", "nope"], "cannot load 'nope': at HEAD, there is no such folder, file or"),
            (["--target", "new"], "cannot load 'new': at HEAD, there is no such file or folder"),
            (["--target", ".."], "cannot load '..': it is not in the git repository at "),
            (["--summary", "no/where"], "cannot write to 'no/where': No such file or directory"),
        ],
    )
    def test_wrong_usage(self, repository, arguments, message):
        """Wrong usage is explained on standard error and exits with 2."""
        (repository / "new").mkdir()
        (repository / "new" / "a.py").write_text(BEFORE)

        code, out, err = diff(repository, *arguments)

        assert code == 2
        assert err.startswith(f"promptkit: {message}")
        assert out == "" or "--summary" in arguments

    def test_no_repository(self, tmp_path):
        """Outside a git repository, the error quotes git."""
        (tmp_path / "recipes").mkdir()
        (tmp_path / "recipes" / "review.py").write_text(BEFORE)

        code, out, err = command(
            "diff", cwd=tmp_path, env={**GIT, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
        )

        assert (code, out) == (2, b"")
        assert err.decode().startswith(
            f"promptkit: diff needs a git repository, and '{tmp_path}' is in none that git can read: fatal: "
        )

    def test_no_commit(self, tmp_path):
        """A repository without commits has nothing to compare with."""
        (tmp_path / "recipes").mkdir()
        git(tmp_path, "init", "--quiet")

        code, out, err = diff(tmp_path)

        assert (code, out) == (2, "")
        assert err == "promptkit: there is no revision 'HEAD' here: commit something first\n"

    def test_no_git(self, repository):
        """A missing git is reported."""
        code, _, err = command("diff", cwd=repository, env={"PATH": str(repository)})

        assert code == 2
        assert err == b"promptkit: diff needs git, which is not installed, or not on the PATH\n"

    def test_recipe_that_exits(self, repository):
        """A recipe that exits its process is an error, not a removed prompt."""
        edit(repository, "import os; os._exit(7)\n")

        code, out, err = diff(repository)

        assert (code, out) == (2, "")
        assert "exited with code 7 without an answer" in err


@pytest.mark.skipif(os.name == "nt", reason="links need privileges")
@pytest.mark.parametrize(
    ("option", "obstacle", "message"),
    [
        ("--summary", "link", "it is a link: put a file in its place"),
        ("--comment", "link", "it is a link: put a file in its place"),
        ("--summary", "folder", "it is a link: replace it by its target, or name the target"),
        ("--comment", "folder", "it is a link: replace it by its target, or name the target"),
        ("--summary", "pipe", "it is not a regular file"),
        ("--comment", "pipe", "it is not a regular file"),
        ("--summary", "hard link", "it has other names (hard links), and they would change too"),
        ("--comment", None, "No such file or directory"),
    ],
)
def test_files_are_not_written_through_a_repository(option, obstacle, message, repository):
    """A link, pipe or hard link in place of an output file is rejected."""
    outside, out = repository.parent / "outside", repository / "out"
    outside.mkdir()
    (outside / "x.md").write_text("mine")
    if obstacle == "folder":
        out.symlink_to(outside)
    elif obstacle is not None:
        out.mkdir()
    if obstacle == "link":
        (out / "x.md").symlink_to(outside / "x.md")
    elif obstacle == "pipe":
        os.mkfifo(out / "x.md")
    elif obstacle == "hard link":
        os.link(outside / "x.md", out / "x.md")

    code, _, err = diff(repository, option, "out/x.md")

    assert code == 2
    assert err.splitlines()[-1] == f"promptkit: cannot write to 'out/x.md': {message}"
    assert (outside / "x.md").read_text() == "mine"


class TestPrograms:
    """Programs in the repository's configuration are not run, and recipes of another revision time out."""

    @pytest.fixture
    def program(self, tmp_path):
        """A program that records its runs."""
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\necho ran >> '{tmp_path}/ran'\nexec cat\n")
        program.chmod(0o755)
        return program

    @pytest.mark.skipif(os.name == "nt", reason="there is no sh")
    @pytest.mark.parametrize("name", ["post-index-change", "post-checkout", "reference-transaction"])
    def test_hooks(self, name, repository, program, tmp_path):
        """Hooks run neither from the default folder nor from a configured one."""
        hooks = repository / ".git" / "hooks"
        hooks.mkdir(exist_ok=True)
        (hooks / name).symlink_to(program)

        assert diff(repository)[0] == 0
        git(repository, "config", "core.hooksPath", str(hooks))
        assert diff(repository)[0] == 0
        assert not (tmp_path / "ran").exists()

    @pytest.mark.skipif(os.name == "nt", reason="there is no sh")
    @pytest.mark.parametrize("name", ["plain", "with.dots and blanks"])
    @pytest.mark.parametrize("kind", ["smudge", "process"])
    def test_filters(self, kind, name, repository, program, tmp_path):
        """Files are read as committed, without running filters, even required ones."""
        git(repository, "config", f"filter.{name}.{kind}", str(program))
        git(repository, "config", f"filter.{name}.required", "true")
        attribute = f"*.py filter={name.partition(' ')[0]}\n"
        (repository / ".git" / "info").mkdir(exist_ok=True)
        (repository / ".git" / "info" / "attributes").write_text(attribute)

        code, _, err = diff(repository)

        assert (code, err) == (0, "")
        assert not (tmp_path / "ran").exists()

    @pytest.mark.skipif(os.name == "nt", reason="there is no sh")
    @pytest.mark.parametrize(
        "setting", ["core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "core.gitProxy"]
    )
    def test_other_programs(self, setting, repository, program, tmp_path):
        """No other configured program runs."""
        git(repository, "config", setting, str(program))

        assert diff(repository)[0] == 0
        assert not (tmp_path / "ran").exists()

    def test_filter_that_cannot_be_disabled(self, repository):
        """A filter with `=` in its name cannot be disabled on git's command line, so it is rejected."""
        git(repository, "config", "filter.a=b.smudge", "cat")

        code, _, err = diff(repository)

        assert (code, err) == (
            2,
            "promptkit: the filter 'a=b' in git's configuration cannot be switched off: rename it\n",
        )

    def test_a_recipe_that_hangs(self, repository, monkeypatch, capsys):
        """A recipe that hangs times out, and the error names the limit."""
        edit(repository, "import time\ntime.sleep(60)\n" + BEFORE)
        git(repository, "commit", "--all", "--quiet", "--message=Hangs")
        monkeypatch.setattr("promptkit.cli.differences.sides._MAX_S", 1)
        monkeypatch.chdir(repository)

        assert main(["diff"]) == 2
        assert "the process that loads " in (err := capsys.readouterr().err)
        assert err.endswith(" did not end within 1 s: a recipe hangs, or its examples take too long\n")

    @pytest.mark.skipif(os.name == "nt", reason="there is no sh")
    def test_a_partial_clone(self, repository, program, tmp_path):
        """A partial clone is rejected, and nothing is fetched through its configuration."""
        edit(repository, HARMLESS)
        git(repository, "commit", "--all", "--quiet", "--message=Two")
        git(repository, "config", "uploadpack.allowFilter", "true")
        git(tmp_path, "clone", "--quiet", "--filter=blob:none", f"file://{repository}", "partial")
        git(tmp_path / "partial", "config", "remote.origin.uploadpack", str(program))

        code, out, err = diff(tmp_path / "partial", "HEAD~1")

        assert (code, out) == (2, "")
        assert err.startswith("promptkit: this clone is partial, and may lack files of ")
        assert err.count("\n") == 1
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize("revisions", ["HEAD~1", "HEAD~1..HEAD", "HEAD~1...HEAD"])
    def test_a_shallow_clone(self, revisions, repository, tmp_path):
        """A shallow clone is reported, with the command that fetches the missing commits."""
        edit(repository, HARMLESS)
        git(repository, "commit", "--all", "--quiet", "--message=Two")
        git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repository}", "shallow")

        code, out, err = diff(tmp_path / "shallow", revisions)

        assert (code, out) == (2, "")
        assert err == (
            "promptkit: there is no revision 'HEAD~1' here: this clone is shallow and lacks older commits: "
            "run git fetch --unshallow, or give actions/checkout fetch-depth: 0\n"
        )

    @pytest.mark.skipif(os.name == "nt", reason="there are no pipes of this kind")
    def test_git_that_hangs(self, repository, monkeypatch, capsys):
        """`diff` does not hang if a git file is a pipe."""
        os.mkfifo(repository / "pipe")
        git(repository, "config", "include.path", str(repository / "pipe"))
        monkeypatch.setattr("promptkit.cli.differences.revisions._MAX_S", 0.5)
        monkeypatch.chdir(repository)

        assert main(["diff"]) == 2
        assert capsys.readouterr().err.endswith(
            "git rev-parse did not end within 0.5 s: a file of git may be a pipe\n"
        )

    def test_foreign_worktree(self, repository, tmp_path):
        """A configuration with another worktree causes a one-line error."""
        git(repository, "config", "core.worktree", str(tmp_path))

        code, _, err = diff(repository)

        assert code == 2
        assert err.count("\n") == 1
        env = {**GIT, "GIT_DIR": str(repository / ".git"), "GIT_WORK_TREE": str(tmp_path / "my project")}
        assert command("diff", "--target", "json", cwd=tmp_path, env=env)[0] == 0

    @pytest.mark.skipif(os.name == "nt", reason="links need privileges")
    def test_links_of_a_revision(self, repository, tmp_path):
        """Links within the repository are followed, and links that lead out of it are skipped."""
        (tmp_path / "secret.py").write_text(BEFORE.replace("def review", "def stolen"))
        (repository / "recipes" / "stolen.py").symlink_to(tmp_path / "secret.py")
        (repository / "lib.py").write_text(BEFORE.replace("def review", "def shared"))
        (repository / "recipes" / "shared.py").symlink_to("../lib.py")
        git(repository, "add", "--all")
        git(repository, "commit", "--all", "--quiet", "--message=Links")
        for link in ("stolen.py", "shared.py"):
            (repository / "recipes" / link).unlink()

        code, out, err = diff(repository)

        assert (code, err) == (1, "")
        assert out == "breaking: prompt 'shared': is gone\n1 breaking change since HEAD\n"

    def test_paths_outside_the_folder(self, repository, tmp_path):
        """A tree with paths such as `..` is rejected with a one-line error."""
        blob = git(repository, "hash-object", "-w", os.devnull)
        for name in ("..", ".git"):
            data = b"100644 " + name.encode() + b"\0" + bytes.fromhex(blob)
            (tmp_path / "tree").write_bytes(data)
            tree = git(repository, "hash-object", "-t", "tree", "-w", "--literally", str(tmp_path / "tree"))
            git(repository, "tag", "--force", "odd", git(repository, "commit-tree", tree, "-m", "Odd"))

            code, out, err = diff(repository, "odd")

            assert (code, out) == (2, "")
            assert err.count("\n") == 1
            assert name in err

    def test_deeply_nested_path(self, repository):
        """A path of 1,500 folders is rejected before any of them is created."""
        blob = git(repository, "hash-object", "-w", str(repository / "recipes" / "review.py"))
        git(repository, "update-index", "--add", "--cacheinfo", f"100644,{blob},{'a/' * 1500}a")
        tag = git(repository, "commit-tree", git(repository, "write-tree"), "-m", "Deep")

        code, out, err = diff(repository, tag)

        assert (code, out) == (2, "")
        assert err.endswith(" is in 1,500 folders, and at most 200 are written\n")


def evaluate(value, inputs, context):
    """Evaluate the GitHub expressions that the action uses."""

    def replace(match):
        expression = match[1].strip()
        if expression.startswith("inputs."):
            return inputs[expression.removeprefix("inputs.")]
        return context[expression]

    return re.sub(r"\$\{\{(.*?)\}\}", replace, value)


class TestAction:
    event = "pull_request"
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))

    def test_action_is_complete(self):
        """
        The action has GitHub's required keys, describes and uses each input, and sets a shell for each
        script.
        """
        steps = self.action["runs"]["steps"]
        used = set(re.findall(r"inputs\.([\w-]+)", ACTION.read_text(encoding="utf-8")))

        assert self.action.keys() >= {"name", "description", "inputs", "outputs", "runs"}
        assert self.action["runs"]["using"] == "composite"
        assert used == set(self.action["inputs"])
        assert all(
            definition["description"] and ("default" in definition) != definition.get("required", False)
            for definition in self.action["inputs"].values()
        )
        scripts = [step for step in steps if "run" in step]
        assert all(step["name"] for step in steps)
        assert all(step["shell"] == "bash" for step in scripts)
        # Values of a pull request can contain anything: they reach the shell only as variables.
        assert not any("${{" in step["run"] for step in scripts)

    def run_action(self, checkout, home, **arguments):
        """Run the action as GitHub does; return its exit code, output, step outputs and summary."""
        context = {"github.base_ref || github.event.repository.default_branch": "main"}
        inputs = {
            name: evaluate(arguments.get(name.replace("-", "_"), definition.get("default", "")), {}, context)
            for name, definition in self.action["inputs"].items()
        }
        files = {name: home / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        code, printed = 0, ""
        for file in files.values():
            file.write_text("")
        for step in (definition for definition in self.action["runs"]["steps"] if "run" in definition):
            variables = {
                name: evaluate(value, inputs, context) for name, value in step.get("env", {}).items()
            }
            result = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],  # noqa: S607
                cwd=checkout,
                env=environment(
                    **GIT,
                    **variables,
                    **{name: str(file) for name, file in files.items()},
                    RUNNER_TEMP=str(home),
                    GITHUB_EVENT_NAME=self.event,
                ),
                capture_output=True,
                encoding="utf-8",
                check=False,
            )
            code, printed = result.returncode, printed + result.stdout + result.stderr
            if code:
                break
        return code, printed, files["GITHUB_OUTPUT"].read_text(), files["GITHUB_STEP_SUMMARY"].read_text()

    @pytest.fixture
    def checkout(self, repository, tmp_path):
        """A shallow checkout of a branch with a breaking change."""
        edit(repository, BREAKING)
        git(repository, "checkout", "--quiet", "-b", "topic")
        git(repository, "commit", "--all", "--quiet", "--message=Narrow")
        git(tmp_path, "clone", "--quiet", "--depth=1", "--branch=topic", f"file://{repository}", "checkout")
        return tmp_path / "checkout"

    def test_breaking_change_fails(self, checkout, tmp_path):
        """
        A breaking change fails the job, with annotations, an output and a summary, unless configured
        otherwise.
        """
        code, printed, outputs, summary = self.run_action(
            checkout, tmp_path, install="", python=sys.executable
        )
        lenient = self.run_action(
            checkout, tmp_path, install="", python=sys.executable, fail_on_breaking="false", target="recipes"
        )

        assert (code, outputs) == (1, "breaking=true\n"), printed
        assert printed.startswith("::error file=recipes/review.py,line=5,")
        assert "1 breaking change since " in summary
        assert lenient[0] == 0
        assert lenient[2] == outputs

    def test_unchanged_branch_passes(self, checkout, tmp_path):
        """A branch that matches its base passes."""
        git(checkout, "fetch", "--quiet", "--depth=1", "origin", "main")
        git(checkout, "checkout", "--quiet", "FETCH_HEAD")

        code, printed, outputs, summary = self.run_action(
            checkout, tmp_path, install="", python=sys.executable
        )

        assert (code, outputs) == (0, "breaking=false\n"), printed
        assert "nothing that clients see has changed since " in summary

    def test_full_checkout_stays_complete(self, repository, tmp_path):
        """A full checkout does not become shallow, so later steps still have its history."""
        edit(repository, HARMLESS)
        git(repository, "commit", "--all", "--quiet", "--message=Two")
        git(tmp_path, "clone", "--quiet", f"file://{repository}", "checkout")

        code, printed, _, _ = self.run_action(
            tmp_path / "checkout", tmp_path, install="", python=sys.executable
        )

        assert code == 0, printed
        assert git(tmp_path / "checkout", "rev-list", "--count", "HEAD") == "2"

    def test_failed_comparison_fails(self, checkout, tmp_path):
        """
        The action fails if the comparison or the installation fails, even if breaking changes are allowed.
        """
        arguments = {"install": "", "python": sys.executable, "fail_on_breaking": "false"}

        assert self.run_action(checkout, tmp_path, **arguments, target="nowhere")[0] == 2
        assert self.run_action(checkout, tmp_path, **arguments, base="nowhere")[0] == 128
        assert (
            self.run_action(checkout, tmp_path, **{**arguments, "install": "x.whl", "python": "false"})[0]
            == 1
        )

    def test_missing_promptkit_fails(self, checkout, tmp_path):
        """
        Without promptkit the action fails, even if breaking changes are allowed. The input `install` has no
        default because the name on PyPI belongs to another project.
        """
        bare = tmp_path / "python"
        bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        bare.chmod(0o755)

        code, printed, outputs, _ = self.run_action(
            checkout, tmp_path, python=str(bare), fail_on_breaking="false"
        )

        assert (code, outputs) == (1, "")
        assert "No module named promptkit" in printed
        assert self.action["inputs"]["install"] == {
            "description": self.action["inputs"]["install"]["description"],
            "required": True,
        }

    def test_text_of_cases(self, checkout, tmp_path):
        """Changed texts of cases are in the summary and in the file for the comment."""
        edit(checkout, HARMLESS)

        code, printed, _, summary = self.run_action(
            checkout, tmp_path, install="", python=sys.executable, text="true"
        )

        assert code == 0, printed
        assert "\n-Review this python.\n+Please review this python.\n" in summary
        assert (tmp_path / "comment.md").read_text() in summary
        (change,) = json.loads((tmp_path / "texts.json").read_text())["changes"]
        assert change["diff"] == [" [user]", "-Review this python.", "+Please review this python."]

    def test_pull_request_target_is_rejected(self, checkout, tmp_path, monkeypatch):
        """
        The action refuses to run on `pull_request_target`, where a fork's code would get the repository's
        rights.
        """
        monkeypatch.setattr(self, "event", "pull_request_target")

        code, printed, *_ = self.run_action(checkout, tmp_path, install="", python=sys.executable)

        assert code == 1
        assert printed.startswith("::error::promptkit diff runs the code of the pull request")


def as_artifact(*changes):
    """Return the artifact that a job uploads for the changes."""
    return json.dumps({"changes": [change.as_data() for change in changes]})


PULLS = ({"number": 7, "head": {"sha": "abc"}},)
FORK = {"owner": {"login": "ann"}}


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
class TestComment:
    """The second workflow: it posts a comment from the artifact of the first, in Node as on GitHub."""

    def write(self, tmp_path, artifact, comments=(), pulls=PULLS, repository=FORK):
        """Run the script and return its calls of GitHub's API."""
        if artifact is not None:
            (tmp_path / "texts.json").write_text(artifact, encoding="utf-8")
        script = """
            const { write } = require(process.argv[1]);
            const { pulls, comments, file, repository } = JSON.parse(process.argv[2]);
            const calls = [];
            const rest = {
                pulls: { list: "pulls" },
                issues: {
                    listComments: "comments",
                    createComment: (sent) => calls.push(["create", sent]),
                    updateComment: (sent) => calls.push(["update", sent]),
                },
            };
            const github = { rest, paginate: async (what, asked) => {
                calls.push([what, asked]);
                return { pulls, comments }[what];
            } };
            const core = {
                notice: (text) => calls.push(["notice", text]),
                setFailed: (text) => calls.push(["failed", text]),
            };
            const run = { event: "pull_request", head_sha: "abc", head_branch: "topic",
                          head_repository: repository };
            const context = { repo: { owner: "o", repo: "r" }, payload: { workflow_run: run } };
            write({ github, context, core, file }).then(() => console.log(JSON.stringify(calls)));
        """
        file = str(tmp_path / "texts.json")
        payload = {"pulls": list(pulls), "comments": list(comments), "file": file, "repository": repository}
        if repository is None:
            payload["pulls"] = []  # as GitHub answers for an unknown owner
        module = ACTION.parents[1] / "promptkit-comment/comment.cjs"
        result = subprocess.run(
            ["node", "-e", script, str(module), json.dumps(payload)],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
        return json.loads(result.stdout)

    EMPTY_ARTIFACT = json.dumps({"changes": []})
    ARTIFACT = as_artifact(TextChange("prompt 'a'", "x", "Old.", "New."), TextChange("p", "y", "", None))

    def test_a_new_comment(self, tmp_path):
        """A comment with all cases is created on the pull request whose head the workflow ran on."""
        query, _, (kind, sent) = self.write(tmp_path, self.ARTIFACT)

        assert query == ["pulls", {"owner": "o", "repo": "r", "state": "open", "head": "ann:topic"}]
        assert (kind, sent["issue_number"]) == ("create", 7)
        assert sent["body"].startswith(
            "<!-- promptkit diff -->\n\n## What prompts say\n\n<details><summary><code>"
        )
        assert "\n-Old.\n+New.\n" in sent["body"]
        assert sent["body"].endswith("<code>p&#58; &#39;y&#39; is gone</code></summary></details>")

    def test_existing_comment(self, tmp_path):
        """
        The script edits its own comment, even if no text differs any more, and ignores comments of other
        users.
        """
        mark = "<!-- promptkit diff --> x"
        foreign = {"id": 1, "user": {"type": "User"}, "body": mark}
        existing = {"id": 2, "user": {"type": "Bot"}, "body": mark}

        for artifact, ending in ((self.ARTIFACT, "</details>"), (self.EMPTY_ARTIFACT, "The same as before.")):
            kind, sent = self.write(tmp_path, artifact, [foreign, existing])[-1]
            assert (kind, sent["comment_id"]) == ("update", 2)
            assert sent["body"].endswith(ending)

    def test_no_comment(self, tmp_path):
        """No comment is written if nothing differs or no pull request has this head."""
        assert [kind for kind, _ in self.write(tmp_path, self.EMPTY_ARTIFACT)] == ["pulls", "comments"]
        foreign = [{"number": 8, "head": {"sha": "other"}}]
        assert [kind for kind, _ in self.write(tmp_path, self.ARTIFACT, pulls=foreign)] == ["pulls", "notice"]

    @pytest.mark.parametrize("text", FOREIGN)
    def test_foreign_text_is_code(self, text, tmp_path):
        """Titles and diffs contain no Markdown or HTML, whatever the artifact holds."""
        changes = [
            {"message": text, "diff": []},
            {"message": text, "diff": [text, f"+{text}"]},
            {"message": text, "diff": text.split("\n")},
        ]

        calls = self.write(tmp_path, json.dumps({"changes": changes}))

        assert_foreign_text_is_code(calls[-1][1]["body"])

    def test_foreign_texts_take_linear_time(self, tmp_path):
        """Repeated tags, fences and backticks do not slow the script down."""
        texts = ["<" * 190_000, "`" * 190_000, "` " * 95_000, "<details><summary>" * 10_000, "\n" * 190_000]
        changes = [{"message": text, "diff": [text]} for text in texts]
        seconds = []
        for times in (4, 8):
            start = time.perf_counter()
            self.write(tmp_path, json.dumps({"changes": changes * times}))
            seconds.append(time.perf_counter() - start)

        assert seconds[1] < 3 * seconds[0] + 3

    def test_comment_is_truncated(self, tmp_path):
        """A comment stays below GitHub's limit of 65,536 characters, and cuts are marked."""
        changes = [{"message": "\u2603" * 1000, "diff": ["`x" * 50_000]}] * 100

        body = self.write(tmp_path, json.dumps({"changes": changes}))[-1][1]["body"]

        assert len(body) < 65_536
        assert "characters cut" in body
        assert re.search(r"\d+ more are not shown: `promptkit diff --text` shows them\.$", body)

    @pytest.mark.parametrize(
        "artifact",
        [
            "",
            "::error::x",
            "null",
            "[]",
            '{"changes": {}}',
            '{"changes": [null]}',
            '{"changes": [{"message": 1, "diff": []}]}',
            '{"changes": [{"message": "x", "diff": "x"}]}',
            '{"changes": [{"message": "x", "diff": [1]}]}',
            "[" * 100_000,
        ],
    )
    def test_invalid_artifact_is_rejected(self, artifact, tmp_path):
        """The job fails without quoting the artifact, and no comment is written."""
        calls = self.write(tmp_path, artifact)

        assert [kind for kind, _ in calls] == ["pulls", "failed"]
        assert calls[-1][1].startswith("what the job has left is not ")

    @pytest.mark.skipif(os.name == "nt", reason="links need privileges")
    @pytest.mark.parametrize("kind", ["link", "pipe", "large"])
    def test_invalid_files_are_rejected(self, kind, tmp_path):
        """A link, a pipe or a huge file in place of the artifact is rejected."""
        file = tmp_path / "texts.json"
        if kind == "link":
            (tmp_path / "secrets.json").write_text(self.ARTIFACT)
            file.symlink_to(tmp_path / "secrets.json")
        elif kind == "pipe":
            os.mkfifo(file)
        else:
            with file.open("wb") as large:
                large.truncate(1 << 34)

        assert [kind for kind, _ in self.write(tmp_path, None)] == ["pulls", "failed"]

    def test_deleted_fork(self, tmp_path):
        """A deleted fork has no open pull request."""
        calls = self.write(tmp_path, self.ARTIFACT, repository=None)

        assert [kind for kind, _ in calls] == ["pulls", "notice"]
