"""Tests of what commands do with skills."""

import json
import subprocess
import sys

import pytest

from promptkit.cli import main
from promptkit.cli.export import NOTE as EXPORTED
from promptkit.clients import folders
from promptkit.clients.folders import NOTE
from promptkit.testing import Client

REVIEW = '''
from promptkit import prompt, skill
from promptkit.fragments import section

RULES = section("Rules", "Name the input that fails.")

@prompt
def review(code: str = "x = 1"):
    """Ask for a review."""
    return f"Review {code}", RULES

@skill(files={"references/words.md": "What words mean.", "logo.bin": b"\\xff"})
def code_review():
    """Review a change. Use it often."""
    return f"Read [words](references/words.md), and look at logo.bin.\\n\\n{RULES}"
'''

FOLDER = "---\nname: notes\ndescription: Write notes.\n---\nWrite them.\n"


@pytest.fixture
def project(recipes, tmp_path, monkeypatch):
    """A folder of recipes with two skills, in the current folder."""
    monkeypatch.chdir(tmp_path)
    folder = recipes(review=REVIEW)
    (folder / "skills" / "notes").mkdir(parents=True)
    (folder / "skills" / "notes" / "SKILL.md").write_text(FOLDER)
    return folder


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home without any client."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def files(folder):
    """The files in a folder, without the note."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in (NOTE, EXPORTED)
    }


class TestList:
    def test_text(self, project, capsys):
        """
        Each skill with its URI, its description and its files.
        """
        assert main(["list", "recipes"]) == 0

        assert capsys.readouterr().out.splitlines()[-4:] == [
            "skill code-review (skill://code-review/SKILL.md): Review a change. Use it often.",
            "    3 files, 183 bytes: SKILL.md, logo.bin, references/words.md",
            "skill notes (skill://notes/SKILL.md): Write notes.",
            "    1 file, 58 bytes: SKILL.md",
        ]

    def test_json(self, project, capsys):
        """
        As clients receive it; without skills there is no such list.
        """
        assert main(["list", "recipes", "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert [one["uri"] for one in listed["skills"]] == [
            "skill://code-review/SKILL.md",
            "skill://notes/SKILL.md",
        ]

    def test_without_skills(self, recipes, capsys):
        """
        Nothing is said of them.
        """
        assert main(["list", str(recipes(one=REVIEW.partition("@skill")[0])), "--json"]) == 0
        assert "skills" not in json.loads(capsys.readouterr().out)


class TestRender:
    @pytest.mark.parametrize("name", ["notes", "skill://notes/SKILL.md"])
    def test_by_name_and_by_uri(self, project, capsys, name):
        """
        The file as it is served.
        """
        assert main(["render", "recipes", name]) == 0
        assert FOLDER in capsys.readouterr().out

    def test_a_file(self, project, capsys):
        """
        By its URI.
        """
        assert main(["render", "recipes", "skill://code-review/references/words.md"]) == 0
        assert "What words mean." in capsys.readouterr().out

    @pytest.mark.parametrize("more", [["--case", "x"], ["--cases"], ["a=b"]])
    def test_what_a_skill_has_not(self, project, capsys, more):
        """
        Neither cases nor arguments.
        """
        with pytest.raises(SystemExit):
            main(["render", "recipes", "notes", *more])
        assert "is a skill, which takes no arguments and has no cases" in capsys.readouterr().err

    def test_one_that_is_broken(self, project, capsys):
        """
        Its faults are printed.
        """
        (project / "skills" / "notes" / "SKILL.md").write_text(FOLDER.replace("Write notes.", "''"))

        assert main(["render", "recipes", "notes"]) == 1
        assert "PK601" in capsys.readouterr().err

    def test_one_that_does_not_exist(self, project, capsys):
        """
        The nearest name is proposed.
        """
        assert main(["render", "recipes", "code-reviews"]) == 2
        assert "'code-review'" in capsys.readouterr().err


class TestCheck:
    def test_the_summary_counts_them(self, project, capsys):
        """
        Beside prompts and resources.
        """
        assert main(["check", "recipes"]) == 0
        assert capsys.readouterr().out == "1 prompt and 2 skills can be served\n"

    @pytest.mark.parametrize(
        "changing",
        ["' '.join({'a', 'b', 'c', 'd', 'e'})", "str(datetime.date.today())", "str(time.time() // 3600)"],
    )
    def test_one_that_differs_from_start_to_start(self, recipes, capsys, changing):
        """
        It is an error, with the part that differs.
        """
        source = f"@skill(description='x')\ndef a():\n    return 'First.\\n' + {changing}\n"
        folder = recipes(a=f"import datetime, time\nfrom promptkit import skill\n{source}")

        assert main(["check", str(folder)]) == 1

        said = capsys.readouterr().out
        assert "PK605: skill 'a': 'SKILL.md' changes from one start to the next:" in said
        assert "First." not in said

    def test_lints(self, recipes, capsys):
        """
        References that lead nowhere, files that nothing names, long texts, and names that differ in prefix.
        """
        folder = recipes(
            a="""
            from promptkit import skill

            LONG = "\\n".join(["word"] * 600)

            @skill(description="x", files={"unused.md": "x", "references/used.md": "x", "d/e.md": "x"})
            def one():
                return "[a](missing.md), references/used.md, [d](d), [w](https://a.example), `scripts/no.py`"

            @skill(description="x", prefix="a")
            def two():
                return LONG

            @skill(description="x", name="two")
            def other():
                return "x"
            """
        )

        assert main(["check", str(folder)]) == 1

        said = capsys.readouterr().out
        found = sorted(line.split(": ", 2)[1:] for line in said.splitlines() if " PK" in line)
        assert found == [
            ["error PK606", "skill 'one': it refers to 'missing.md', which it does not have"],
            ["error PK606", "skill 'one': it refers to 'scripts/no.py', which it does not have"],
            ["warning PK607", "skill 'two': its SKILL.md has 606 lines and about 758 tokens"],
            ["warning PK608", "skill 'one': nothing in it refers to 'unused.md', so that no model reads it"],
            ["warning PK609", "skill 'two': 'skill://two/SKILL.md' has the name of 'skill://a/two/SKILL.md'"],
        ]


class TestDiff:
    def test_which_approvals_are_lost(self, project, tmp_path, capsys):
        """
        By skill and file; what clients see as resources is not said twice.
        """

        def git(*arguments):
            who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com")
            subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)  # noqa: S607

        git("init")
        git("add", ".")
        git("commit", "-m", "Begin")
        file = project / "review.py"
        file.write_text(file.read_text().replace("What words mean", "What our words mean"))
        (project / "skills" / "more").mkdir()
        (project / "skills" / "more" / "SKILL.md").write_text(FOLDER.replace("notes", "more"))

        assert main(["diff", "HEAD", "--target", "recipes"]) == 0

        said = capsys.readouterr().out
        words = "references/words.md has changed, so hosts ask for approval of the skill again"
        assert f"harmless: skill 'skill://code-review/SKILL.md': {words}\n" in said
        assert "    -What words mean.\n    +What our words mean.\n" in said
        assert "harmless: skill 'skill://more/SKILL.md': is new\n" in said
        assert "2 harmless changes since HEAD" in said


class TestExport:
    @pytest.fixture
    def project(self, project):
        """The same, without a prompt."""
        file = project / "review.py"
        head, _, rest = REVIEW.partition("@prompt")
        file.write_text(f"{head}@skill{rest.partition('@skill')[2]}")
        return project

    def test_what_is_written_is_what_is_served(self, project, tmp_path, capsys):
        """
        Byte for byte, and nothing else; a second time nothing changes.
        """
        for said in ("out has 2 skills of these recipes: code-review, notes\n", "out: nothing to change\n"):
            assert main(["export", "skills", "out", "--target", "recipes"]) == 0
            assert capsys.readouterr().out == said

        found = files(tmp_path / "out")
        assert sorted(found) == [
            *("code-review/SKILL.md", "code-review/logo.bin", "code-review/references/words.md"),
            "notes/SKILL.md",
        ]
        assert found["notes/SKILL.md"] == FOLDER.encode()
        assert found["code-review/logo.bin"] == b"\xff"
        client = Client("recipes")
        served = {name: client.read_skill(name).files for name in ("code-review", "notes")}
        assert found == {f"{name}/{path}": data for name, one in served.items() for path, data in one.items()}

    def test_what_is_gone_is_removed(self, project, tmp_path):
        """
        Files, and skills, that were written before.
        """
        assert main(["export", "skills", "out", "--target", "recipes"]) == 0
        (project / "skills" / "notes" / "SKILL.md").unlink()
        file = project / "review.py"
        file.write_text(file.read_text().replace('"references/words.md": "What words mean.", ', ""))

        assert main(["export", "skills", "out", "--target", "recipes"]) == 0

        assert sorted(files(tmp_path / "out")) == ["code-review/SKILL.md", "code-review/logo.bin"]
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [EXPORTED, "code-review"]

    @pytest.mark.parametrize("path", ["notes/SKILL.md", "notes/other.md", "code-review/references/words.md"])
    def test_what_it_did_not_write_stays(self, project, tmp_path, capsys, path):
        """
        It refuses, and writes nothing at all.
        """
        place = tmp_path / "out" / path
        place.parent.mkdir(parents=True)
        place.write_text("mine")

        assert main(["export", "skills", "out", "--target", "recipes"]) == 1

        assert f"{place.relative_to(tmp_path)} was not written by promptkit" in capsys.readouterr().err
        assert files(tmp_path / "out") == {path: b"mine"}

    def test_what_was_changed_since_stays(self, project, tmp_path, capsys):
        """
        An edit of what was written is somebody's work.
        """
        assert main(["export", "skills", "out", "--target", "recipes"]) == 0
        place = tmp_path / "out" / "notes" / "SKILL.md"
        place.write_text("mine")
        (project / "skills" / "notes" / "SKILL.md").unlink()

        assert main(["export", "skills", "out", "--target", "recipes"]) == 1

        assert "was changed since it was written: move it away" in capsys.readouterr().err
        assert place.read_text() == "mine"

    @pytest.mark.parametrize("link", ["notes", "notes/SKILL.md", "notes/deep"])
    def test_links_are_not_followed(self, project, tmp_path, capsys, link):
        """
        What they lead to is not touched.
        """
        outside = tmp_path / "outside"
        outside.mkdir()
        place = tmp_path / "out" / link
        place.parent.mkdir(parents=True)
        place.symlink_to(outside)

        assert main(["export", "skills", "out", "--target", "recipes"]) == 1

        assert "was not written by promptkit" in capsys.readouterr().err
        assert list(outside.iterdir()) == []

    def test_programs_can_be_started(self, project, tmp_path):
        """
        A file that names its interpreter.
        """
        (project / "skills" / "notes" / "run.sh").write_text("#!/bin/sh\n")

        assert main(["export", "skills", "out", "--target", "recipes"]) == 0

        assert (tmp_path / "out" / "notes" / "run.sh").stat().st_mode & 0o100
        assert not (tmp_path / "out" / "notes" / "SKILL.md").stat().st_mode & 0o100

    def test_what_programs_leave_is_no_conflict(self, project, tmp_path):
        """
        Bytecode, and what file managers write.
        """
        assert main(["export", "skills", "out", "--target", "recipes"]) == 0
        (tmp_path / "out" / "notes" / ".DS_Store").touch()
        (tmp_path / "out" / "notes" / "__pycache__").mkdir()
        (tmp_path / "out" / "notes" / "__pycache__" / "run.pyc").touch()
        (project / "skills" / "notes" / "more.md").touch()

        assert main(["export", "skills", "out", "--target", "recipes"]) == 0
        assert (tmp_path / "out" / "notes" / "more.md").exists()

    def test_never_into_the_recipes(self, project, capsys):
        """
        They would be served twice.
        """
        with pytest.raises(SystemExit):
            main(["export", "skills", "recipes/out", "--target", "recipes"])
        assert "is in the recipes" in capsys.readouterr().err

    def test_what_was_interrupted_goes_on(self, project, tmp_path, monkeypatch):
        """
        Whatever was written, and not noted yet, is what would be written again.
        """
        file = project / "skills" / "notes" / "SKILL.md"
        for text in (FOLDER, f"{FOLDER}More.\n"):
            file.write_text(text)
            with monkeypatch.context() as patched:
                patched.setattr(folders.msgspec.json, "format", lambda _: 1 // 0)
                with pytest.raises(ZeroDivisionError):
                    main(["export", "skills", "out", "--target", "recipes"])

            assert main(["export", "skills", "out", "--target", "recipes"]) == 0
            assert files(tmp_path / "out")["notes/SKILL.md"] == text.encode()

    def test_a_file_that_becomes_a_folder(self, project, tmp_path):
        """
        What goes makes room for what comes.
        """
        place = project / "skills" / "notes" / "more.md"
        place.write_text("x")
        assert main(["export", "skills", "out", "--target", "recipes"]) == 0
        place.unlink()
        place.mkdir()
        (place / "x.md").write_text("y")

        assert main(["export", "skills", "out", "--target", "recipes"]) == 0
        assert files(tmp_path / "out")["notes/more.md/x.md"] == b"y"

    def test_a_file_in_place_of_a_skill(self, project, tmp_path, capsys):
        """
        It stays.
        """
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "notes").write_text("mine")

        assert main(["export", "skills", "out", "--target", "recipes"]) == 1
        assert "was not written by promptkit" in capsys.readouterr().err

    def test_two_of_one_name(self, recipes, capsys, tmp_path, monkeypatch):
        """
        Their folders would be one.
        """
        monkeypatch.chdir(tmp_path)
        source = "from promptkit import skill\n"
        for prefix in ("a", "b"):
            source += (
                f"@skill(name='x', description='x', prefix='{prefix}')\ndef {prefix}():\n    return 'x'\n"
            )
        recipes(one=source)

        assert main(["export", "skills", "out", "--target", "recipes"]) == 1
        assert "would have one folder" in capsys.readouterr().err


class TestInstall:
    def test_without_skills(self, recipes, capsys, tmp_path, monkeypatch):
        """
        Recipes without skills are refused.
        """
        monkeypatch.chdir(tmp_path)
        recipes(one=REVIEW.partition("@skill")[0])

        assert main(["install", "codex", "recipes", "--skills"]) == 1
        assert "there are no skills in these recipes" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("client", "scope", "folder"),
        [
            ("claude-code", "user", "home/.claude/skills"),
            ("claude-code", "project", ".claude/skills"),
            ("codex", "user", "home/.agents/skills"),
            ("cursor", "project", ".cursor/skills"),
            ("gemini-cli", "user", "home/.gemini/skills"),
            ("goose", "user", "home/.agents/skills"),
            ("opencode", "user", "home/.config/opencode/skills"),
            ("vscode", "project", ".github/skills"),
        ],
    )
    def test_where_agents_look(self, project, home, tmp_path, capsys, client, scope, folder):  # noqa: PLR0917
        """
        And uninstall takes back exactly that.
        """
        place = tmp_path / folder
        place.mkdir(parents=True)
        (place / "own").mkdir()
        (place / "own" / "SKILL.md").write_text("mine")

        assert main(["install", client, "recipes", "--skills", "--scope", scope]) == 0
        assert "has 2 skills of these recipes: code-review, notes" in capsys.readouterr().out
        assert sorted(files(place)) == [
            *("code-review/SKILL.md", "code-review/logo.bin", "code-review/references/words.md"),
            *("notes/SKILL.md", "own/SKILL.md"),
        ]

        assert main(["uninstall", client, "recipes", "--skills", "--scope", scope]) == 0
        assert files(place) == {"own/SKILL.md": b"mine"}
        assert [path.name for path in place.iterdir()] == ["own"]

    def test_a_dry_run(self, project, home, tmp_path, capsys):
        """
        It says what it would write, and writes nothing.
        """
        assert main(["install", "codex", "recipes", "--skills", "--dry-run"]) == 0

        assert f"would write {home}/.agents/skills/notes/SKILL.md" in capsys.readouterr().out
        assert not home.exists()

    def test_json(self, project, home, capsys):
        """
        For programs.
        """
        assert main(["install", "codex", "recipes", "--skills", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["skills"], found["changed"]) == (["code-review", "notes"], True)
        assert main(["install", "codex", "recipes", "--skills", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["changed"] is False

    def test_skills_of_two_projects(self, project, home, tmp_path, capsys, recipes):
        """
        Each takes back its own, and none overwrites the other's.
        """
        source = "from promptkit import skill\n@skill(description='x')\ndef notes(): return 'x'\n"
        other = recipes("others", one=source)
        assert main(["install", "codex", "recipes", "--skills"]) == 0

        assert main(["install", "codex", str(other), "--skills"]) == 1

        assert "was written from" in capsys.readouterr().err
        assert main(["uninstall", "codex", str(other), "--skills"]) == 0
        assert "notes/SKILL.md" in files(home / ".agents" / "skills")

    def test_a_project_that_was_moved(self, project, home, tmp_path, capsys):
        """
        Its skills are still its own; so they are for others who have the project elsewhere.
        """
        for scope in ("user", "project"):
            assert main(["install", "codex", "recipes", "--skills", "--scope", scope]) == 0
        project.rename(tmp_path / "moved")
        file = tmp_path / "moved" / "skills" / "notes" / "SKILL.md"
        file.write_text(file.read_text() + "More.\n")

        assert main(["install", "codex", "moved", "--skills"]) == 0
        assert b"More." in files(home / ".agents" / "skills")["notes/SKILL.md"]
        assert str(tmp_path) not in (tmp_path / ".agents" / "skills" / NOTE).read_text()

    def test_clients_without_folders(self, project, home, capsys):
        """
        The others are named.
        """
        with pytest.raises(SystemExit):
            main(["install", "claude-desktop", "recipes", "--skills"])
        assert "reads no skills from folders; these do: claude-code" in capsys.readouterr().err


def test_a_new_skill(tmp_path, monkeypatch, capsys):
    """
    It passes its own test, and check.
    """
    monkeypatch.chdir(tmp_path)

    assert main(["new", "--skill", "here"]) == 0

    said = capsys.readouterr().out
    assert "render review-changes" in said
    assert "--skills" in said
    for command in (["promptkit", "check"], ["pytest", "-q", "-p", "no:cacheprovider"]):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path / "here",
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
