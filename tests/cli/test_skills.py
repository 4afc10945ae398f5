"""Skills on the command line: `list`, `render`, `check`, `diff`, `export` and `install`."""

import json
import subprocess
import sys

import pytest

from promptkit.cli import main
from promptkit.cli.export import RECORD as EXPORTED
from promptkit.clients import installed_files
from promptkit.clients.installed_files import RECORD
from promptkit.clients.profiles import CLIENTS
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

FOLDER = "---\nname: notes\ndescription: Write notes, if asked.\n---\nWrite them.\n"


@pytest.fixture
def project(recipes, tmp_path, monkeypatch):
    """Recipes with two skills, in the current folder."""
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


def read_files(folder):
    """Return the files in a folder without promptkit's own record."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in (RECORD, EXPORTED)
    }


class TestList:
    def test_text(self, project, capsys):
        """`list` prints each skill with its URI, its description and its files."""
        assert main(["list", "recipes"]) == 0

        assert capsys.readouterr().out.splitlines()[-4:] == [
            "skill code-review (skill://code-review/SKILL.md): Review a change. Use it often.",
            "    3 files, 183 bytes: SKILL.md, logo.bin, references/words.md",
            "skill notes (skill://notes/SKILL.md): Write notes, if asked.",
            "    1 file, 68 bytes: SKILL.md",
        ]

    def test_json(self, project, capsys):
        """`list --json` prints skills as clients receive them."""
        assert main(["list", "recipes", "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert [skill["uri"] for skill in listed["skills"]] == [
            "skill://code-review/SKILL.md",
            "skill://notes/SKILL.md",
        ]

    def test_without_skills(self, recipes, capsys):
        """Without skills, the JSON has no list of skills."""
        assert main(["list", str(recipes(one=REVIEW.partition("@skill")[0])), "--json"]) == 0
        assert "skills" not in json.loads(capsys.readouterr().out)


class TestRender:
    @pytest.mark.parametrize("name", ["notes", "skill://notes/SKILL.md"])
    def test_by_name_and_by_uri(self, project, capsys, name):
        """A skill can be rendered by its name or its URI."""
        assert main(["render", "recipes", name]) == 0
        assert FOLDER in capsys.readouterr().out

    def test_file_of_a_skill(self, project, capsys):
        """A file of a skill is rendered by its URI."""
        assert main(["render", "recipes", "skill://code-review/references/words.md"]) == 0
        assert "What words mean." in capsys.readouterr().out

    @pytest.mark.parametrize("words", [["--case", "x"], ["--cases"], ["a=b"]])
    def test_unsupported_options(self, project, capsys, words):
        """A skill has no cases and takes no arguments."""
        with pytest.raises(SystemExit):
            main(["render", "recipes", "notes", *words])
        assert "is a skill, which takes no arguments and has no cases" in capsys.readouterr().err

    def test_broken_skill(self, project, capsys):
        """The diagnostics of a broken skill are printed."""
        (project / "skills" / "notes" / "SKILL.md").write_text(FOLDER.replace("Write notes, if asked.", "''"))

        assert main(["render", "recipes", "notes"]) == 1
        assert "PK601" in capsys.readouterr().err

    def test_unknown_skill(self, project, capsys):
        """The nearest name is suggested."""
        assert main(["render", "recipes", "code-reviews"]) == 2
        assert "'code-review'" in capsys.readouterr().err


class TestCheck:
    def test_summary(self, project, capsys):
        """The summary counts skills with prompts and resources."""
        assert main(["check", "recipes"]) == 0
        assert capsys.readouterr().out == "1 prompt and 2 skills can be served\n"

    @pytest.mark.parametrize(
        "expression",
        ["' '.join({'a', 'b', 'c', 'd', 'e'})", "str(datetime.date.today())"],
    )
    def test_unstable_skill(self, recipes, capsys, expression):
        """A skill that differs between starts is an error."""
        source = f"@skill(description='x')\ndef a():\n    return 'First.\\n' + {expression}\n"
        folder = recipes(a=f"import datetime\nfrom promptkit import skill\n{source}")

        assert main(["check", str(folder)]) == 1

        expected = "PK605: skill 'a': 'SKILL.md' differs between two starts of the server\n"
        assert expected in capsys.readouterr().out

    def test_skill_that_fails_in_other_time_zones(self, recipes, capsys, monkeypatch):
        """A skill that cannot be built in another start is an error too."""
        monkeypatch.delenv("TZ", raising=False)
        source = "@skill(description='x')\ndef a():\n    return str(1 // ('TZ' not in os.environ))\n"
        folder = recipes(a=f"import os\nfrom promptkit import skill\n{source}")

        assert main(["check", str(folder)]) == 1

        expected = "PK605: skill 'a': 'SKILL.md' differs between two starts of the server\n"
        assert expected in capsys.readouterr().out

    def test_lints(self, recipes, capsys):
        """Broken references, unused files, long text and names that differ only in prefix are reported."""
        folder = recipes(
            a="""
            from promptkit import skill

            LONG = "\\n".join(["word"] * 600)

            @skill(description="If x", files={"unused.md": "x", "references/used.md": "x", "d/e.md": "x"})
            def one():
                return "[a](missing.md), references/used.md, [d](d), [w](https://a.example), `scripts/no.py`"

            @skill(description="Use it for y", prefix="a")
            def two():
                return LONG

            @skill(description="Use it for z", name="two")
            def other():
                return "x"
            """
        )

        assert main(["check", str(folder)]) == 1

        output = capsys.readouterr().out
        diagnostics = sorted(line.split(": ", 2)[1:] for line in output.splitlines() if " PK" in line)
        assert diagnostics == [
            ["error PK606", "skill 'one': it refers to 'missing.md', which does not exist"],
            ["warning PK607", "skill 'two': its SKILL.md has 606 lines and about 762 tokens"],
            [
                "warning PK608",
                "skill 'one': none of its files refers to 'unused.md', so models do not read it",
            ],
            [
                "warning PK609",
                "skill 'two': 'skill://two/SKILL.md' has the same name as 'skill://a/two/SKILL.md'",
            ],
            ["warning PK614", "skill 'one': it refers to 'scripts/no.py', which does not exist"],
        ]


class TestDiff:
    def test_changed_skills(self, project, tmp_path, capsys):
        """Changed files of a skill are reported once, and not again as resources."""

        def git(*arguments):
            author = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com")
            subprocess.run(["git", *author, *arguments], cwd=tmp_path, check=True, capture_output=True)  # noqa: S607

        git("init")
        git("add", ".")
        git("commit", "-m", "Begin")
        file = project / "review.py"
        file.write_text(file.read_text().replace("What words mean", "What our words mean"))
        (project / "skills" / "more").mkdir()
        (project / "skills" / "more" / "SKILL.md").write_text(FOLDER.replace("notes", "more"))

        assert main(["diff", "HEAD", "--target", "recipes"]) == 0

        output = capsys.readouterr().out
        message = "references/words.md has changed, so hosts ask users to approve the skill again"
        assert f"harmless: skill 'skill://code-review/SKILL.md': {message}\n" in output
        assert "    -What words mean.\n    +What our words mean.\n" in output
        assert "harmless: skill 'skill://more/SKILL.md': was added\n" in output
        assert "2 harmless changes since HEAD" in output


class TestExport:
    @pytest.fixture
    def project(self, project):
        """The same recipes without a prompt."""
        file = project / "review.py"
        head, _, tail = REVIEW.partition("@prompt")
        file.write_text(f"{head}@skill{tail.partition('@skill')[2]}")
        return project

    def test_exported_files(self, project, tmp_path, capsys):
        """Exported files equal the served ones, and a second export changes nothing."""
        for message in (
            "wrote 2 skills to out: code-review, notes\n",
            "out: nothing to change\n",
        ):
            assert main(["export", "skills", "out", "--target", "recipes"]) == 0
            assert capsys.readouterr().out == message

        exported = read_files(tmp_path / "out")
        assert sorted(exported) == [
            *("code-review/SKILL.md", "code-review/logo.bin", "code-review/references/words.md"),
            "notes/SKILL.md",
        ]
        assert exported["notes/SKILL.md"] == FOLDER.encode()
        assert exported["code-review/logo.bin"] == b"\xff"
        client = Client("recipes")
        served = {name: client.read_skill(name).files for name in ("code-review", "notes")}
        assert exported == {
            f"{name}/{path}": data for name, skill in served.items() for path, data in skill.items()
        }

    def test_removed_files(self, project, tmp_path):
        """Files and skills that no longer exist are removed from an earlier export."""
        assert main(["export", "skills", "out", "--target", "recipes"]) == 0
        (project / "skills" / "notes" / "SKILL.md").unlink()
        file = project / "review.py"
        file.write_text(file.read_text().replace('"references/words.md": "What words mean.", ', ""))

        assert main(["export", "skills", "out", "--target", "recipes"]) == 0

        assert sorted(read_files(tmp_path / "out")) == ["code-review/SKILL.md", "code-review/logo.bin"]
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [EXPORTED, "code-review"]

    @pytest.mark.parametrize("path", ["notes/SKILL.md", "notes/other.md", "code-review/references/words.md"])
    def test_existing_files_are_kept(self, project, tmp_path, capsys, path):
        """With a file of the user in the way, the export fails and writes nothing."""
        file = tmp_path / "out" / path
        file.parent.mkdir(parents=True)
        file.write_text("mine")

        assert main(["export", "skills", "out", "--target", "recipes"]) == 1

        assert f"{file.relative_to(tmp_path)} was not written by promptkit" in capsys.readouterr().err
        assert read_files(tmp_path / "out") == {path: b"mine"}

    def test_edited_file_is_kept(self, project, tmp_path, capsys):
        """A file that was edited after the export is not removed."""
        assert main(["export", "skills", "out", "--target", "recipes"]) == 0
        file = tmp_path / "out" / "notes" / "SKILL.md"
        file.write_text("mine")
        (project / "skills" / "notes" / "SKILL.md").unlink()

        assert main(["export", "skills", "out", "--target", "recipes"]) == 1

        assert "has changed since it was written: move it" in capsys.readouterr().err
        assert file.read_text() == "mine"

    @pytest.mark.parametrize("link", ["notes", "notes/SKILL.md", "notes/deep"])
    def test_links_are_not_followed(self, project, tmp_path, capsys, link):
        """The target of a link is not touched."""
        outside = tmp_path / "outside"
        outside.mkdir()
        path = tmp_path / "out" / link
        path.parent.mkdir(parents=True)
        path.symlink_to(outside)

        assert main(["export", "skills", "out", "--target", "recipes"]) == 1

        assert "was not written by promptkit" in capsys.readouterr().err
        assert list(outside.iterdir()) == []

    def test_scripts_are_executable(self, project, tmp_path):
        """A file with a shebang is executable."""
        (project / "skills" / "notes" / "run.sh").write_text("#!/bin/sh\n")

        assert main(["export", "skills", "out", "--target", "recipes"]) == 0

        assert (tmp_path / "out" / "notes" / "run.sh").stat().st_mode & 0o100
        assert not (tmp_path / "out" / "notes" / "SKILL.md").stat().st_mode & 0o100

    def test_generated_files_do_not_conflict(self, project, tmp_path):
        """Bytecode and files of file managers do not prevent an export."""
        assert main(["export", "skills", "out", "--target", "recipes"]) == 0
        (tmp_path / "out" / "notes" / ".DS_Store").touch()
        (tmp_path / "out" / "notes" / "__pycache__").mkdir()
        (tmp_path / "out" / "notes" / "__pycache__" / "run.pyc").touch()
        (project / "skills" / "notes" / "more.md").touch()

        assert main(["export", "skills", "out", "--target", "recipes"]) == 0
        assert (tmp_path / "out" / "notes" / "more.md").exists()

    def test_export_into_the_recipes(self, project, capsys):
        """An export into the recipes is rejected, because its skills would be served twice."""
        with pytest.raises(SystemExit):
            main(["export", "skills", "recipes/out", "--target", "recipes"])
        assert "is inside the recipes" in capsys.readouterr().err

    def test_interrupted_export(self, project, tmp_path, monkeypatch):
        """An export can be repeated after an interruption."""
        file = project / "skills" / "notes" / "SKILL.md"
        for text in (FOLDER, f"{FOLDER}More.\n"):
            file.write_text(text)
            with monkeypatch.context() as patched:
                patched.setattr(installed_files.msgspec.json, "format", lambda _: 1 // 0)
                with pytest.raises(ZeroDivisionError):
                    main(["export", "skills", "out", "--target", "recipes"])

            assert main(["export", "skills", "out", "--target", "recipes"]) == 0
            assert read_files(tmp_path / "out")["notes/SKILL.md"] == text.encode()

    def test_file_becomes_a_folder(self, project, tmp_path):
        """A file that was replaced by a folder is exported again."""
        path = project / "skills" / "notes" / "more.md"
        path.write_text("x")
        assert main(["export", "skills", "out", "--target", "recipes"]) == 0
        path.unlink()
        path.mkdir()
        (path / "x.md").write_text("y")

        assert main(["export", "skills", "out", "--target", "recipes"]) == 0
        assert read_files(tmp_path / "out")["notes/more.md/x.md"] == b"y"

    def test_file_in_place_of_a_skill(self, project, tmp_path, capsys):
        """A file in place of a skill's folder is kept."""
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "notes").write_text("mine")

        assert main(["export", "skills", "out", "--target", "recipes"]) == 1
        assert "was not written by promptkit" in capsys.readouterr().err

    def test_duplicate_names(self, recipes, capsys, tmp_path, monkeypatch):
        """Two skills of the same name cannot be exported, because they would share a folder."""
        monkeypatch.chdir(tmp_path)
        source = "from promptkit import skill\n"
        for prefix in ("a", "b"):
            source += (
                f"@skill(name='x', description='x', prefix='{prefix}')\ndef {prefix}():\n    return 'x'\n"
            )
        recipes(one=source)

        assert main(["export", "skills", "out", "--target", "recipes"]) == 1
        assert "would have the same folder" in capsys.readouterr().err


class TestInstall:
    def test_without_skills(self, recipes, capsys, tmp_path, monkeypatch):
        """Recipes without skills are rejected."""
        monkeypatch.chdir(tmp_path)
        recipes(one=REVIEW.partition("@skill")[0])

        assert main(["install", "codex", "recipes", "--skills"]) == 1
        assert "these recipes have no skills" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("client", "scope", "folder"),
        [
            ("claude-code", "user", "home/.claude/skills"),
            ("claude-code", "project", ".claude/skills"),
            ("codex", "user", "home/.agents/skills"),
            ("cursor", "project", ".cursor/skills"),
            ("gemini-cli", "user", "home/.agents/skills"),
            ("goose", "user", "home/.agents/skills"),
            ("opencode", "user", "home/.config/opencode/skills"),
            ("vscode", "project", ".github/skills"),
        ],
    )
    def test_client_folders(self, project, home, tmp_path, capsys, client, scope, folder):  # noqa: PLR0917
        """Skills are installed into the client's folder, and uninstalling removes only these skills."""
        skills = tmp_path / folder
        skills.mkdir(parents=True)
        (skills / "own").mkdir()
        (skills / "own" / "SKILL.md").write_text("mine")

        assert main(["install", client, "recipes", "--skills", "--scope", scope]) == 0
        title = CLIENTS[client].title
        assert f"installed 2 skills for {title}: code-review, notes" in capsys.readouterr().out
        assert sorted(read_files(skills)) == [
            *("code-review/SKILL.md", "code-review/logo.bin", "code-review/references/words.md"),
            *("notes/SKILL.md", "own/SKILL.md"),
        ]

        assert main(["uninstall", client, "recipes", "--skills", "--scope", scope]) == 0
        assert read_files(skills) == {"own/SKILL.md": b"mine"}
        assert [path.name for path in skills.iterdir()] == ["own"]

    def test_dry_run(self, project, home, tmp_path, capsys):
        """A dry run prints the files without writing them."""
        assert main(["install", "codex", "recipes", "--skills", "--dry-run"]) == 0

        assert f"would write {home}/.agents/skills/notes/SKILL.md" in capsys.readouterr().out
        assert not home.exists()

    def test_own_command_of_a_client(self, home, tmp_path, capsys, recipes, monkeypatch):
        """`install` reports a skill with the name of one of the client's own commands."""
        monkeypatch.chdir(tmp_path)
        source = "from promptkit import skill\n@skill(description='x')\ndef {}(): return 'x'\n"
        recipes(review=source.format("review"), notes=source.format("notes"))

        assert main(["install", "opencode", "--skills"]) == 0
        out = capsys.readouterr().out
        assert "    opencode has its own command 'review', so only models can use the skill\n" in out
        assert "command 'notes'" not in out
        assert main(["install", "goose", "--skills"]) == 0
        assert "own command" not in capsys.readouterr().out

    def test_skills_of_two_projects(self, project, home, tmp_path, capsys, recipes):
        """A project's installation neither overwrites nor removes the skills of another project."""
        source = "from promptkit import skill\n@skill(description='x')\ndef notes(): return 'x'\n"
        second = recipes("others", one=source)
        assert main(["install", "codex", "recipes", "--skills"]) == 0

        assert main(["install", "codex", str(second), "--skills"]) == 1

        assert "was already written from" in capsys.readouterr().err
        assert main(["uninstall", "codex", str(second), "--skills"]) == 0
        assert "notes/SKILL.md" in read_files(home / ".agents" / "skills")

    def test_shared_folder(self, project, home, capsys):
        """
        Codex, Gemini CLI, goose and Zed share one folder.

        Skills stay until they are uninstalled for the last client.
        """
        folder = home / ".agents" / "skills"
        for client in ("zed", "gemini-cli", "codex"):
            assert main(["install", client, "recipes", "--skills"]) == 0
        installed = read_files(folder)
        assert main(["install", "codex", "recipes", "--skills"]) == 0
        assert "Codex: nothing to change\n" in capsys.readouterr().out

        assert main(["uninstall", "codex", "recipes", "--skills"]) == 0
        assert "    notes is kept for gemini-cli, zed\n" in capsys.readouterr().out
        assert main(["uninstall", "goose", "recipes", "--skills"]) == 0
        assert main(["uninstall", "zed", "recipes", "--skills"]) == 0
        assert read_files(folder) == installed

        assert main(["uninstall", "gemini-cli", "recipes", "--skills"]) == 0
        assert list(folder.iterdir()) == []

    def test_all_clients_of_a_shared_folder(self, project, home):
        """`uninstall --all` removes the skills of all clients."""
        for client in ("codex", "goose"):
            main(["install", client, "recipes", "--skills"])

        assert main(["uninstall", "--all", "--skills"]) == 0
        assert list((home / ".agents" / "skills").iterdir()) == []

    def test_skill_deleted_from_the_recipes(self, project, home):
        """A skill that the recipes no longer have is removed for all clients of a folder."""
        for client in ("codex", "goose"):
            main(["install", client, "recipes", "--skills"])
        (project / "skills" / "notes" / "SKILL.md").unlink()

        assert main(["install", "codex", "recipes", "--skills"]) == 0
        assert not (home / ".agents" / "skills" / "notes").exists()

    def test_moved_project(self, project, home, tmp_path, capsys):
        """A moved project still owns its skills, and the record in the project has no absolute path."""
        for scope in ("user", "project"):
            assert main(["install", "codex", "recipes", "--skills", "--scope", scope]) == 0
        project.rename(tmp_path / "moved")
        file = tmp_path / "moved" / "skills" / "notes" / "SKILL.md"
        file.write_text(file.read_text() + "More.\n")

        assert main(["install", "codex", "moved", "--skills"]) == 0
        assert b"More." in read_files(home / ".agents" / "skills")["notes/SKILL.md"]
        assert str(tmp_path) not in (tmp_path / ".agents" / "skills" / RECORD).read_text()

    def test_client_without_skills(self, project, home, capsys):
        """The error lists the clients that read skills from folders."""
        with pytest.raises(SystemExit):
            main(["install", "claude-desktop", "recipes", "--skills"])
        assert "does not read skills from folders; these clients do: claude-code" in capsys.readouterr().err


def test_new_skill(tmp_path, monkeypatch, capsys):
    """A skill from `new --skill` passes its own test and `check`."""
    monkeypatch.chdir(tmp_path)

    assert main(["new", "--skill", "here"]) == 0

    output = capsys.readouterr().out
    assert "render review-changes" in output
    assert "--skills" in output
    for command in (["promptkit", "check"], ["pytest", "-q", "-p", "no:cacheprovider"]):
        result = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path / "here",
            capture_output=True,
            check=False,
            text=True,
        )
        assert result.returncode == 0, result.stdout + result.stderr
