"""`promptkit diff` in a git repository: its output, its revisions and its errors."""

import json
import os
import re

import pytest

from promptkit.cli.diff_sides import Answer, ArgumentState, ItemState
from tests.cli.diff.repositories import BEFORE, BREAKING, BROKEN, HARMLESS, NEUTRAL, commit, edit, git
from tests.terminal import outcome_on_terminal


@pytest.fixture
def narrowed(repository, monkeypatch):
    """The answers of both sides for a prompt whose argument lost a choice; no process is started."""

    def answer(*choices):
        argument = ArgumentState(False, f"Literal{[*choices]}", str(choices), [*choices], {})  # noqa: FBT003
        location = str(repository / "recipes" / "review.py"), 5
        item = ItemState(location, {}, [], {"language": argument}, {})
        return Answer({"prompt 'review'": item}, {}, {}, [])

    sides = [answer("python", "rust")], [answer("python")]
    monkeypatch.setattr("promptkit.cli.diff.answers_of_sides", lambda *_, **__: sides)


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
    @pytest.mark.usefixtures("in_process")
    def test_text(self, source, code, expected, repository, diff):
        """The text output lists the changes, and the exit code is 1 if there is a breaking change."""
        edit(repository, source)

        assert diff() == (code, expected, "")

    def test_on_a_terminal(self, repository):
        """The output on a terminal is the same text in colour."""
        edit(repository, BREAKING)

        code, output = outcome_on_terminal("diff", cwd=repository, columns=200, FORCE_COLOR="1")

        assert code == 1
        assert "\x1b[1;31mbreaking\x1b[0m" in output
        assert re.sub(r"\x1b\[[0-9;]*m", "", output) == BROKEN

    def test_json(self, narrowed, diff):
        """`--json` prints one document with all changes."""
        code, out, _ = diff("--json")

        assert code == 1
        assert json.loads(out) == {
            "revision": "HEAD",
            "breaking": True,
            "changes": [
                {
                    "kind": "argument-narrowed",
                    "breaking": True,
                    "of": "prompt 'review'",
                    "message": "argument 'language' no longer accepts all values that it accepted before",
                    "before": "Literal['python', 'rust']",
                    "after": "Literal['python']",
                }
            ],
            "not_compared": [],
        }

    def test_github_and_a_summary(self, narrowed, tmp_path, diff):
        """`--format github` prints annotations, and `--summary` appends Markdown to a file."""
        summary = tmp_path / "summary.md"
        summary.write_text("# Before\n")

        _, out, _ = diff("--format", "github", "--summary", str(summary))

        assert out == (
            "::error file=recipes/review.py,line=5,title=promptkit diff%3A breaking::prompt 'review': "
            "argument 'language' no longer accepts all values that it accepted before"
            "%0A-Literal['python', 'rust']%0A+Literal['python']\n"
        )
        assert summary.read_text() == (
            "# Before\n## Prompts\n\n` 1 breaking change since HEAD `\n\n"
            "- **breaking**: ` prompt 'review': argument 'language' no longer accepts all values "
            "that it accepted before `\n\n"
            "  ```diff\n  -Literal['python', 'rust']\n  +Literal['python']\n  ```\n"
        )


#: Three prompts, the placeholders in their text files, and their recipe.
PLACEHOLDERS = {"deploy": "target", "quote": "text", "greet": "name"}
READING = """
from promptkit import Text, prompt

@prompt(sample=False)
def deploy(target: str):
    assert False, "it must not be called"
    return Text.from_path("deploy.md", target=target)

@prompt
def quote(path: str):
    return Text.from_path("quote.md", text=open(path).read())

@prompt
def greet(name: str):
    return Text.from_path("greet.md", name=name)
"""


@pytest.mark.usefixtures("in_process")
class TestNotCompared:
    @pytest.fixture(autouse=True)
    def texts(self, repository):
        """Three prompts whose text has changed; only the last can be rendered with generated arguments."""
        for name, value in PLACEHOLDERS.items():
            (repository / "recipes" / f"{name}.md").write_text(f"Old {{{{{value}}}}}.", encoding="utf-8")
        commit(repository, READING)
        for name, value in PLACEHOLDERS.items():
            (repository / "recipes" / f"{name}.md").write_text(f"New {{{{{value}}}}}.", encoding="utf-8")

    def test_prompts_that_cannot_be_rendered(self, diff):
        """A prompt that is not compared is named."""
        code, out, _ = diff()

        assert code == 0
        assert [line for line in out.splitlines() if not line.startswith(" ")] == [
            "harmless: prompt 'greet': renders different text for name='sample'",
            "1 harmless change since HEAD",
            "not compared: prompt 'deploy': add a case to compare its text",
            "not compared: prompt 'quote': add a case to compare its text",
        ]

    def test_every_format_names_skipped_prompts(self, diff, tmp_path):
        """JSON, annotations and the summaries name the prompts that were not compared."""
        summary, text_summary = tmp_path / "summary.md", tmp_path / "text_summary.md"
        _, as_json, _ = diff("--json")
        _, annotations, _ = diff("--format", "github", "--summary", str(summary))
        _, as_text, _ = diff("--text", "--summary", str(text_summary))

        names = ["prompt 'deploy'", "prompt 'quote'"]
        assert json.loads(as_json)["not_compared"] == names
        assert "::notice title=promptkit diff::prompt 'deploy' was not compared: add a case" in annotations
        assert "not compared: prompt 'deploy': add a case" in as_text
        for file in (summary, text_summary):
            assert "\nNot compared: ` prompt 'deploy' `, ` prompt 'quote' `\n" in file.read_text()

    def test_summary_without_changes_mentions_skipped_prompts(self, repository, diff):
        """Without a change, the summary reports that something could not be compared."""
        commit(repository, READING)  # with the new texts

        assert diff()[1].startswith("no changes since HEAD, but 2 items could not be compared\n")
        assert diff("--text")[1].startswith("no changed text since HEAD, but 2 items could not be compared\n")


@pytest.mark.usefixtures("in_process")
class TestTargets:
    def test_several_targets_are_compared_together(self, repository, diff):
        """All targets are loaded on both sides."""
        more = repository / "more"
        more.mkdir()
        (more / "plan.py").write_text(BEFORE.replace("def review", "def plan"), encoding="utf-8")
        commit(repository, BEFORE)
        edit(repository, BREAKING)
        (more / "plan.py").unlink()

        code, out, err = diff("--target", "recipes", "--target", "more")

        assert (code, err) == (1, "")
        assert "breaking: prompt 'plan'" in out
        assert "2 breaking changes since HEAD\n" in out

    def test_target_in_another_folder(self, repository, diff, monkeypatch):
        """Any revision can be compared from any folder, with a target anywhere in the repository."""
        (repository / "deep").mkdir()
        commit(repository, HARMLESS)
        monkeypatch.chdir(repository / "deep")

        code, out, _ = diff("HEAD~1", "--target", "../recipes/review.py:review")

        assert (code, out.splitlines()[-1]) == (0, "1 harmless change since HEAD~1")


@pytest.mark.usefixtures("in_process")
class TestTwoRevisions:
    @pytest.fixture
    def history(self, repository):
        """A tagged commit, followed by one commit on `main` and another on the branch `topic`."""
        git(repository, "tag", "v1")
        git(repository, "switch", "--quiet", "--create", "topic")
        commit(repository, HARMLESS)
        git(repository, "switch", "--quiet", "main")
        commit(repository, BREAKING)
        edit(repository, "import nowhere_at_all\n")  # the working tree does not matter
        return repository

    @pytest.mark.parametrize(
        ("revisions", "code", "last"),
        [
            ("v1..topic", 0, "1 harmless change since v1, up to topic"),
            ("v1..", 1, "1 breaking change since v1, up to HEAD"),
            ("..v1", 0, "1 harmless change since HEAD, up to v1"),
        ],
    )
    def test_range_compares_both_ends(self, revisions, code, last, history, diff):
        """`A..B` compares B with A; either end defaults to `HEAD`, as in git."""
        exit_code, out, err = diff(revisions)

        assert (exit_code, out.splitlines()[-1], err) == (code, last, "")

    def test_three_dots_compare_with_the_merge_base(self, history, diff):
        """With three dots, changes on the other branch since the merge base are ignored."""
        base = git(history, "rev-parse", "v1")[:12]

        assert diff("main...topic") == (0, NEUTRAL.replace("HEAD", f"{base}, up to topic"), "")

    def test_text_of_cases(self, history, diff):
        """`--text` compares the rendered cases of two revisions."""
        code, out, err = diff("v1..topic", "--text")

        assert code == 0
        assert "[-Review-]{+Please review+} this python." in out
        assert out.endswith("1 rendering changed since v1, up to topic\n")
        assert (
            err
            == "promptkit: rendering the cases at v1 and topic: this runs the code that was committed there\n"
        )

    @pytest.mark.parametrize(
        ("revisions", "message"),
        [
            ("v1..nope", "unknown revision 'nope': use a commit, a branch or a tag"),
            ("nope...v1", "unknown revision 'nope': use a commit, a branch or a tag"),
            (
                "main...other",
                "'main' and 'other' have no common ancestor: compare them directly with main..other",
            ),
        ],
    )
    def test_unknown_revisions(self, revisions, message, history, diff):
        """The error names the unknown end of the range."""
        tree = git(history, "hash-object", "-t", "tree", "-w", os.devnull)
        git(history, "branch", "other", git(history, "commit-tree", tree, "-m", "Other"))

        assert diff(revisions) == (2, "", f"promptkit: {message}\n")


class TestIsolation:
    def test_repository_is_unchanged(self, repository, diff):
        """`diff` changes no file, staged or not."""
        edit(repository, BREAKING)
        (repository / "new.txt").write_text("new")
        git(repository, "add", "new.txt")

        def files():
            paths = sorted(path for path in repository.rglob("*") if path.is_file())
            return {path: path.read_bytes() for path in paths if "__pycache__" not in path.parts}

        before = files()
        assert diff()[0] == 1

        assert files() == before

    def test_each_side_imports_its_own_modules(self, repository, diff):
        """Modules and files next to the recipes are read from the respective revision."""
        for revision in ("one", "two"):
            (repository / "lib.py").write_text(f"WORD = {revision!r}\n")
            (repository / "recipes" / "word.txt").write_text(revision)
            source = (
                "from pathlib import Path\nfrom lib import WORD\nfrom promptkit import prompt\n@prompt\n"
                "def say(): return WORD + (Path(__file__).parent / 'word.txt').read_text() + __file__\n"
            )
            commit(repository, f"{source}# {revision}\n")

        _, out, _ = diff("HEAD~1", "--json")

        (change,) = json.loads(out)["changes"]
        assert change["before"] == f"[user]\noneone{repository}/recipes/review.py"
        assert change["after"] == f"[user]\ntwotwo{repository}/recipes/review.py"

    def test_output_of_recipes(self, repository, diff):
        """Output of recipes goes to standard error and does not garble the JSON."""
        edit(repository, f"print('noise')\nimport os; os.write(1, b'more')\n{BEFORE}")

        code, out, err = diff("--json")

        assert (code, json.loads(out)["changes"]) == (0, [])
        assert "noise" in err
        assert "more" in err

    def test_in_a_git_hook(self, repository, diff, monkeypatch):
        """The environment variables that git sets for hooks are ignored."""
        edit(repository, HARMLESS)
        monkeypatch.setenv("GIT_DIR", ".git")
        monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")

        assert diff() == (0, NEUTRAL, "")


class TestErrors:
    @pytest.mark.usefixtures("in_process")
    def test_errors_on_either_side(self, repository, diff):
        """Errors on either side are reported, and the remaining prompts are compared."""
        commit(repository, BEFORE + "\n@prompt\ndef bare(x): return x\n")
        edit(repository, "import nowhere_at_all\n")

        code, out, err = diff()

        assert code == 1
        assert out == "breaking: prompt 'review': was removed\n1 breaking change since HEAD\n"
        before, after = err.splitlines()
        assert before.startswith("promptkit: not served at HEAD: recipes/review.py:")
        assert after.startswith("promptkit: not served: recipes/review.py:")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["nope"], "unknown revision 'nope': use a commit, a branch or a tag"),
            (["HEAD", "--target", "nope"], "cannot load 'nope': at HEAD, there is no such folder, file or"),
            (["--target", "new"], "cannot load 'new': at HEAD, there is no such file or folder"),
            (["--target", ".."], "cannot load '..': it is not in the git repository at "),
        ],
    )
    @pytest.mark.usefixtures("in_process")
    def test_wrong_usage(self, arguments, message, repository, diff):
        """Wrong usage is explained on standard error and exits with 2."""
        (repository / "new").mkdir()
        (repository / "new" / "a.py").write_text(BEFORE)

        code, out, err = diff(*arguments)

        assert (code, out) == (2, "")
        assert err.startswith(f"promptkit: {message}")

    def test_no_repository(self, tmp_path, diff, monkeypatch):
        """Outside a git repository, the error quotes git."""
        (tmp_path / "recipes").mkdir()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

        code, out, err = diff()

        assert (code, out) == (2, "")
        assert err.startswith(
            f"promptkit: diff needs a git repository, but '{tmp_path}' is not in one that git can read: "
        )

    def test_no_commit(self, tmp_path, diff, monkeypatch):
        """A repository without commits has nothing to compare with."""
        (tmp_path / "recipes").mkdir()
        git(tmp_path, "init", "--quiet")
        monkeypatch.chdir(tmp_path)

        assert diff() == (2, "", "promptkit: unknown revision 'HEAD': commit something first\n")

    def test_no_git(self, repository, diff, monkeypatch):
        """A missing git is reported."""
        monkeypatch.setenv("PATH", str(repository))

        error = "promptkit: diff needs git, which is not installed, or not on the PATH\n"
        assert diff() == (2, "", error)

    def test_recipe_that_exits(self, repository, diff):
        """A recipe that exits its process is an error, not a removed prompt."""
        edit(repository, "import os; os._exit(7)\n")

        code, out, err = diff()

        assert (code, out) == (2, "")
        assert "exited with code 7 without an answer" in err

    def test_recipe_that_hangs(self, repository, diff, monkeypatch):
        """A recipe that hangs times out, and the error names the limit and the actual target."""
        commit(repository, "import time\ntime.sleep(60)\n" + BEFORE)
        monkeypatch.setattr("promptkit.cli.diff_sides._MAX_S", 1)

        code, _, err = diff()

        assert code == 2
        assert err == (
            "promptkit: at HEAD, the process that loads 'recipes' did not finish within 1 s: "
            "a recipe hangs, or its examples take too long\n"
        )


@pytest.fixture
def no_sides(monkeypatch):
    """Empty answers of both sides; no process is started."""
    answer = Answer({}, {}, {}, [])
    monkeypatch.setattr("promptkit.cli.diff.answers_of_sides", lambda *_, **__: ([answer], [answer]))


@pytest.mark.skipif(os.name == "nt", reason="links need privileges")
@pytest.mark.parametrize(
    ("obstacle", "message"),
    [
        ("link", "it is a link: replace it with a file"),
        ("folder", "it is a link: replace it with its target, or use the path of the target"),
        ("pipe", "it is not a regular file"),
        ("hard link", "it has other hard links, which would change as well"),
    ],
)
@pytest.mark.usefixtures("no_sides")
def test_files_are_not_written_through_a_repository(obstacle, message, repository, diff):
    """A link, pipe or hard link in place of an output file is rejected."""
    outside, out = repository.parent / "outside", repository / "out"
    outside.mkdir()
    (outside / "x.md").write_text("mine")
    if obstacle == "folder":
        out.symlink_to(outside)
    else:
        out.mkdir()
    if obstacle == "link":
        (out / "x.md").symlink_to(outside / "x.md")
    elif obstacle == "pipe":
        os.mkfifo(out / "x.md")
    elif obstacle == "hard link":
        os.link(outside / "x.md", out / "x.md")

    code, _, err = diff("--summary", "out/x.md")

    assert code == 2
    assert err.splitlines()[-1] == f"promptkit: cannot write to 'out/x.md': {message}"
    assert (outside / "x.md").read_text() == "mine"
