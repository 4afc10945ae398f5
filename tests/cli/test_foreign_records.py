"""A record of written files from an untrusted repository cannot lead a command out of the folder."""

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from promptkit.cli import main
from promptkit.clients import installed_files

RECIPES = '''
from promptkit import prompt, skill

@prompt
def greet():
    """Say hello."""
    return "Hello."

@skill
def review():
    """Review a change."""
    return "Read it."
'''

SKILLS, EXPORT = ".promptkit-skills.json", ".promptkit-export.json"
CLIENT = ["claude-code", "--skills", "--scope", "project"]

#: Each command that reads a record: its arguments, the folder, the record, and the source whose entries it
#: removes.
COMMANDS = {
    "install": (["install", *CLIENT, "recipes"], ".claude/skills", SKILLS, "recipes"),
    "uninstall": (["uninstall", *CLIENT, "recipes"], ".claude/skills", SKILLS, "recipes"),
    "uninstall --all": (
        ["uninstall", "--all", "--skills", "--scope", "project"],
        ".claude/skills",
        SKILLS,
        "elsewhere",
    ),
    **{
        f"export {form}{' --remove' * is_removal}": (
            ["export", form, "out", *["--remove"] * is_removal],
            "out",
            EXPORT,
            "recipes",
        )
        for form, is_removal in (("claude-commands", False), ("claude-commands", True), ("skills", False))
    },
}
for name in ("install", "export skills"):
    argv, *spec = COMMANDS[name]
    COMMANDS[f"{name} --dry-run"] = ([*argv, "--dry-run"], *spec)

CHANGING = [name for name in COMMANDS if not name.endswith("--dry-run")]
WRITING = [name for name in CHANGING if "uninstall" not in name and not name.endswith("--remove")]

DIGEST = sha256(b"precious").hexdigest()

#: Entries of a record, as name and path. `{up}` leads from a subfolder of the folder to the project's
#: parent.
INVALID_FILES = {
    "parent": ("own", "{up}victim.txt"),
    "parent, deeper": ("own", "a/../{up}victim.txt"),
    "absolute": ("own", "{absolute}"),
    "empty": ("own", ""),
    "the folder itself": ("own", ".."),
    "current": ("own", "./victim.txt"),
    "twice": ("own", "a//victim.txt"),
    "backslash": ("own", "..\\victim.txt"),
    "drive": ("own", "c:victim.txt"),
    "NUL": ("own", "a\0b"),
    "line feed": ("own", "a\nb"),
    "surrogate": ("own", "a\ud800"),
    "name: empty": ("", "victim.txt"),
    "name: empty, absolute": ("", "{absolute}"),
    "name: current": (".", "victim.txt"),
    "name: parent": ("..", "victim.txt"),
    "name: two parts": ("own/more", "victim.txt"),
    "name: leads up": ("{up}victim.txt", "."),
    "name: absolute": ("{absolute}", "."),
    "name: backslash": ("own\\more", "victim.txt"),
    "name: NUL": ("own\0", "."),
    "name: hidden": (".git", "victim.txt"),
}

#: Invalid records.
INVALID_RECORDS = {
    "empty": b"",
    "not JSON": b"{",
    "another structure": b"[]",
    "digest: empty": json.dumps({"own": {"source": "recipes", "files": {"a": ""}}}).encode(),
    "digest: short": json.dumps({"own": {"source": "recipes", "files": {"a": DIGEST[1:]}}}).encode(),
    "digest: upper case": json.dumps({"own": {"source": "recipes", "files": {"a": DIGEST.upper()}}}).encode(),
    "digest: not ASCII": json.dumps({"own": {"source": "", "files": {"a": "٣" * 64}}}).encode(),
    "nested": b"[" * 100_000,
    "nested in a name": b'{"own": ' + b"[" * 100_000,
    "nested in a field": b'{"own": {"more": ' + b'{"a": ' * 100_000,
    "not UTF-8": b'{"\xff": {}}',
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project in the current folder, and a file next to it that no command owns."""
    (tmp_path / "victim.txt").write_text("precious")
    folder = tmp_path / "project"
    (folder / "recipes").mkdir(parents=True)
    (folder / "recipes" / "one.py").write_text(RECIPES)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(params=COMMANDS)
def command(request, project, capsys):
    """A function that runs a command that reads a record; it has attributes such as `folder` and `record`."""

    class Command:
        argv, within, record_name, source = COMMANDS[request.param]
        folder = project / within
        record = folder / record_name

        def __call__(self):
            code = main(list(self.argv))
            captured = capsys.readouterr()
            return code, captured.out, captured.err

        def write_record(self, name, files):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.record.write_text(json.dumps({name: {"source": self.source, "files": files}}))

    return Command()


def snapshot(folder):
    """Return the content of a folder: links, files with their content, and folders."""
    return {
        path.relative_to(folder).as_posix(): path.readlink()
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
        if "__pycache__" not in path.parts
    }


class TestInvalidRecords:
    def test_path_out_of_the_folder_is_rejected(self, command, tmp_path):
        """Nothing is written or removed, even if the digest is right, and one line names the record."""
        up = os.path.relpath(tmp_path, command.folder / "own") + "/"
        for entry in INVALID_FILES.values():
            name, path = (text.format(up=up, absolute=tmp_path / "victim.txt") for text in entry)
            command.write_record(name, {path: DIGEST})
            before = snapshot(tmp_path)

            code, out, err = command()

            assert (code, out) == (1, ""), entry
            assert err.startswith("promptkit: nothing was "), entry
            assert command.record_name in err, entry
            assert err.endswith(": move it, and run the command again\n"), entry
            assert err.count("\n") == 1, entry
            assert snapshot(tmp_path) == before, entry

    def test_invalid_note_is_rejected(self, command, tmp_path):
        """The structure and the digests are validated before anything is done."""
        command.folder.mkdir(parents=True)
        for label, data in INVALID_RECORDS.items():
            command.record.write_bytes(data)
            before = snapshot(tmp_path)

            code, out, err = command()

            assert (code, out) == (1, ""), label
            assert f"{command.record_name} is not a valid record of written files: " in err, label
            assert err.count("\n") == 1, label
            assert len(err) < 1000, label
            assert snapshot(tmp_path) == before, label

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "device", "folder", "large"])
    def test_special_file_as_note_is_rejected(self, kind, command, tmp_path):
        """The command does not follow a link, and does not wait for a pipe."""
        command.folder.mkdir(parents=True)
        if kind == "pipe":
            os.mkfifo(command.record)
        elif kind == "folder":
            command.record.mkdir()
        elif kind == "large":
            with command.record.open("wb") as file:
                file.truncate(60 << 20)
        else:
            targets = {"link": tmp_path / "records", "dangling link": tmp_path / "no", "device": "/dev/zero"}
            (tmp_path / "records").write_text("{}")
            command.record.symlink_to(targets[kind])

        code, out, err = command()

        assert (code, out) == (1, "")
        assert command.record_name in err
        assert err.count("\n") == 1
        assert not (tmp_path / "no").exists()


class TestDigests:
    @pytest.mark.parametrize(
        "path", ["mine.txt", "deep/mine.txt", ".hidden/mine.txt", "__pycache__/mine.txt"]
    )
    def test_file_with_another_digest_is_kept(self, path, command, tmp_path):
        """The file is reported, and nothing is changed."""
        command.write_record("own", {path: DIGEST, "other.txt": DIGEST})
        entry = command.folder / "own" / path
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.write_text("mine")
        (command.folder / "own" / "other.txt").write_text("precious")
        before = snapshot(tmp_path)

        code, out, err = command()

        assert (code, out) == (1, "")
        assert f"own/{path} has changed since it was written: move it" in err
        assert err.count("\n") == 1
        assert entry.read_text() == "mine"
        assert snapshot(tmp_path) == before

    @pytest.mark.parametrize("is_hidden", [False, True])
    def test_link_in_the_path_is_not_followed(self, is_hidden, command, tmp_path):
        """A link is not followed, even if its target has the digest in the record."""
        link = ".own" if is_hidden else "link"
        command.write_record("own", {f"{link}/victim.txt": DIGEST})
        (command.folder / "own").mkdir()
        (command.folder / "own" / link).symlink_to(tmp_path)
        before = snapshot(tmp_path)

        code, out, err = command()

        assert (code, out) == (1, "")
        assert f"own/{link}" in err
        assert err.count("\n") == 1
        assert snapshot(tmp_path) == before

    @pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
    def test_special_file_is_kept(self, kind, command, tmp_path):
        """An entry that is not a regular file is kept."""
        command.write_record("own", {"a": DIGEST})
        entry = command.folder / "own" / "a"
        entry.parent.mkdir()
        if kind == "link":
            entry.symlink_to(tmp_path / "victim.txt")
        elif kind == "pipe":
            os.mkfifo(entry)
        else:
            entry.mkdir()

        code, _, err = command()

        assert code == 1
        assert "own/a has changed since it was written" in err
        assert entry.exists()

    def test_missing_files_are_not_an_error(self, command, tmp_path):
        """Missing files are removed from the record."""
        command.write_record("own", {"a": DIGEST, "b/c": DIGEST})

        assert command()[0] == 0

        if "--dry-run" not in command.argv:
            assert not command.record.exists() or "own" not in json.loads(command.record.read_text())
        assert (tmp_path / "victim.txt").exists()

    def test_unchanged_files_are_removed(self, command):
        """A file with the digest of the record is removed."""
        command.write_record("own", {"b/c": DIGEST})
        entry = command.folder / "own" / "b" / "c"
        entry.parent.mkdir(parents=True)
        entry.write_text("precious")

        assert command()[0] == 0
        assert (command.folder / "own").exists() == ("--dry-run" in command.argv)

    @pytest.mark.parametrize("command", CHANGING, indirect=True)
    def test_concurrently_changed_file_is_kept(self, command, monkeypatch):
        """The digest is checked again right before the removal."""
        command.write_record("own", {"a": DIGEST})
        entry = command.folder / "own" / "a"
        entry.parent.mkdir()
        entry.write_text("precious")
        apply = installed_files.FolderChange.apply

        def late(change):
            entry.write_text("mine")
            apply(change)

        monkeypatch.setattr(installed_files.FolderChange, "apply", late)
        code, _, err = command()

        assert code == 1
        assert "own/a" in err
        assert "in the meantime" in err
        assert err.count("\n") == 1
        assert entry.read_text() == "mine"

    @pytest.mark.parametrize("command", WRITING, indirect=True)
    @pytest.mark.parametrize("kind", ["record", "file"])
    def test_concurrently_written_file_is_kept(self, kind, command, monkeypatch):
        """A record or file that another command has written in the meantime is not overwritten."""
        apply = installed_files.FolderChange.apply
        changed = []

        def late(change):
            changed.append(command.record if kind == "record" else command.folder / next(iter(change.writes)))
            changed[0].parent.mkdir(parents=True, exist_ok=True)
            changed[0].write_text("{}")
            apply(change)

        monkeypatch.setattr(installed_files.FolderChange, "apply", late)
        code, _, err = command()

        assert code == 1
        assert changed[0].name in err
        assert "in the meantime" in err
        assert changed[0].read_text() == "{}"


class TestSources:
    def test_control_characters_are_escaped(self, project, capsys):
        """A source in a record can neither control the terminal nor add lines."""
        (project / "out").mkdir()
        (project / "out" / EXPORT).write_text(
            json.dumps(
                {"review": {"source": "a\x1b[2J\npromptkit: all is fine", "files": {"SKILL.md": DIGEST}}}
            )
        )

        assert main(["export", "skills", "out"]) == 1

        err = capsys.readouterr().err
        assert r"was already written from a\x1b[2J\npromptkit: all is fine: remove that version" in err
        assert err.count("\n") == 1

    @pytest.mark.parametrize("source", ["/a\0b", "/" + "a" * 5000, "/\ud800", "/etc/passwd/a"])
    def test_unusable_source_counts_as_missing(self, source, project, capsys):
        """A skill whose source is missing, as after moving a project, gets the new source."""
        (project / "out").mkdir()
        (project / "out" / EXPORT).write_text(
            json.dumps({"review": {"source": source, "files": {"SKILL.md": DIGEST}}})
        )

        code = main(["export", "skills", "out"])

        err = capsys.readouterr().err
        assert (code, err) == (0, "") if "\ud800" not in source else (code, err.count("\n")) == (1, 1)

    def test_many_sources_are_removed_in_linear_time(self, project, monkeypatch):
        """`uninstall --all` reads and writes the record once."""
        folder = project / ".claude" / "skills"
        folder.mkdir(parents=True)
        record = {f"n{i}": {"source": f"s{i}", "files": {"SKILL.md": DIGEST}} for i in range(3000)}
        (folder / SKILLS).write_text(json.dumps(record))

        reads = []
        decode = installed_files.msgspec.json.decode
        monkeypatch.setattr(
            installed_files.msgspec.json, "decode", lambda *a, **b: reads.append(1) or decode(*a, **b)
        )

        assert main(["uninstall", "--all", "--skills", "--scope", "project"]) == 0
        assert len(reads) == 1
        assert not (folder / SKILLS).exists()


@pytest.mark.timeout(20)
class TestDeepFolders:
    def test_deep_folder_is_rejected(self, command):
        """A deeply nested folder is rejected, because walking it would take quadratic time."""
        command.write_record("own", {"a": DIGEST})
        (command.folder / "own").joinpath(*["d"] * 200).mkdir(parents=True)

        code, _, err = command()

        assert code == 1
        assert err.count("\n") == 1


class TestLinksToTheFolder:
    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("argv", [["install", *CLIENT, "recipes"], ["uninstall", *CLIENT, "recipes"]])
    @pytest.mark.parametrize(
        "kind", ["folder above", "folder", "dangling", "dangling above", "pipe", "file", "loop"]
    )
    def test_linked_skills_folder_is_rejected(self, argv, kind, project, tmp_path, capsys):
        """A link out of the project is rejected, and its target is neither read nor written."""
        outside = tmp_path / "outside"
        if not kind.startswith("dangling"):
            (outside / "skills" / "review").mkdir(parents=True)
            (outside / "skills" / SKILLS).write_text(
                json.dumps({"review": {"source": "recipes", "files": {"mine.txt": DIGEST}}})
            )
            (outside / "skills" / "review" / "mine.txt").write_text("precious")
        if kind.endswith("above"):
            (project / ".claude").symlink_to(outside)
        else:
            (project / ".claude").mkdir()
            entry = project / ".claude" / "skills"
            if kind == "pipe":
                os.mkfifo(entry)
            elif kind == "file":
                entry.write_text("mine")
            else:
                entry.symlink_to(entry if kind == "loop" else outside / "skills")
        before = snapshot(tmp_path)

        code = main(argv)

        captured = capsys.readouterr()
        assert (code, captured.out) == (1, "")
        assert captured.err.count("\n") == 1
        assert ".claude" in captured.err
        assert snapshot(tmp_path) == before

    def test_link_within_the_project_is_followed(self, project, capsys):
        """A link within the project is followed, so that several agents can share a folder."""
        (project / ".agents" / "skills").mkdir(parents=True)
        (project / ".claude").mkdir()
        (project / ".claude" / "skills").symlink_to("../.agents/skills")

        assert main(["install", *CLIENT, "recipes"]) == 0
        assert (project / ".agents" / "skills" / "review" / "SKILL.md").exists()
        assert "folder: " + str(project / ".claude" / "skills") in capsys.readouterr().out
        assert main(["uninstall", *CLIENT, "recipes"]) == 0
        assert list((project / ".agents" / "skills").iterdir()) == []

    def test_link_in_the_home_folder_is_followed(self, project, tmp_path):
        """A link in the home folder is followed, because it can lead to dotfiles in a repository."""
        (tmp_path / "dotfiles").mkdir()
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / ".claude").symlink_to(tmp_path / "dotfiles")

        assert main(["install", "claude-code", "recipes", "--skills"]) == 0
        assert (tmp_path / "dotfiles" / "skills" / "review" / "SKILL.md").exists()

    @pytest.mark.parametrize(
        "argv",
        [["export", "skills"], ["export", "claude-commands", "--live"]],
    )
    @pytest.mark.parametrize("within", ["out", "out/deeper"])
    def test_relative_folder_with_links_is_rejected(self, argv, within, project, tmp_path, capsys):
        """
        A link in a relative path is rejected, because it could have come with the repository; an absolute
        path is trusted.
        """
        (tmp_path / "outside").mkdir()
        (project / "out").symlink_to(tmp_path / "outside")
        before = snapshot(tmp_path)

        assert main([*argv[:2], within, *argv[2:]]) == 1

        err = capsys.readouterr().err
        assert "it is a link" in err
        assert err.count("\n") == 1
        assert snapshot(tmp_path) == before
        entry = str(project / within)
        assert main([*argv[:2], entry, *argv[2:]]) == 0

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("kind", ["link", "pipe", "device"])
    def test_marker_of_a_live_command_is_not_read_through_a_link(self, kind, project, tmp_path, capsys):
        """A link, pipe or device in place of a live command is rejected without reading it."""
        (project / "out").mkdir()
        entry = project / "out" / "greet.md"
        end = "end-" + "0" * 32
        (tmp_path / "victim.txt").write_text(f"--typed {end}")
        if kind == "pipe":
            os.mkfifo(entry)
        else:
            entry.symlink_to(tmp_path / "victim.txt" if kind == "link" else Path("/dev/zero"))

        assert main(["export", "claude-commands", "out", "--live"]) == 1
        assert "out/greet.md was not written by promptkit" in capsys.readouterr().err
