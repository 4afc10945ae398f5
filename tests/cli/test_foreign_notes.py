"""A note of written files may come with a repository: it leads no command out of its folder."""

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from promptkit.cli import main
from promptkit.clients import folders

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

#: Each command that reads a note: the folder, the name of the note, and the source that it removes.
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
        for form in ("claude-commands", "gemini-commands", "codex", "skills")
        for is_removal in (False, True)
    },
}
COMMANDS |= {f"{name} --dry-run": ([*argv, "--dry-run"], *rest) for name, (argv, *rest) in COMMANDS.items()}

CHANGING = [name for name in COMMANDS if not name.endswith("--dry-run")]
WRITING = [name for name in CHANGING if "uninstall" not in name and not name.endswith("--remove")]

DIGEST = sha256(b"precious").hexdigest()

#: What a note may claim to have written, and where. `{up}` leads from a folder in the folder to the project's
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

#: Notes that are not ours in their whole.
INVALID_NOTES = {
    "empty": b"",
    "not JSON": b"{",
    "another structure": b"[]",
    "digest: empty": json.dumps({"own": {"source": "recipes", "files": {"a": ""}}}).encode(),
    "digest: short": json.dumps({"own": {"source": "recipes", "files": {"a": DIGEST[1:]}}}).encode(),
    "digest: upper case": json.dumps({"own": {"source": "recipes", "files": {"a": DIGEST.upper()}}}).encode(),
    "digest: not ASCII": json.dumps({"own": {"source": "", "files": {"a": "٣" * 64}}}).encode(),
    "long source": json.dumps({"own": {"source": "a" * 20_000, "files": {".": DIGEST}}}).encode(),
    "many names": json.dumps(
        {f"n{i}": {"source": "recipes", "files": {".": DIGEST}} for i in range(10_001)}
    ).encode(),
    "many files": json.dumps(
        {"own": {"source": "recipes", "files": {f"{i}": DIGEST for i in range(513)}}}
    ).encode(),
    "deep": json.dumps({"own": {"source": "recipes", "files": {"a/" * 100 + "a": DIGEST}}}).encode(),
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
    """A function that runs a command that reads a note, with `folder`, `note` and `source`."""

    class Command:
        argv, within, note_name, source = COMMANDS[request.param]
        folder = project / within
        note = folder / note_name

        def __call__(self):
            code = main(list(self.argv))
            printed = capsys.readouterr()
            return code, printed.out, printed.err

        def write_note(self, name, files):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.note.write_text(json.dumps({name: {"source": self.source, "files": files}}))

    return Command()


def state(folder):
    """Return what is in a folder: links, files with their content, and folders."""
    return {
        path.relative_to(folder).as_posix(): path.readlink()
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
        if "__pycache__" not in path.parts
    }


class TestInvalidNotes:
    def test_a_path_out_of_the_folder_is_refused(self, command, tmp_path):
        """
        Nothing is written or removed, even if the digest is right; one line names the note.
        """
        up = os.path.relpath(tmp_path, command.folder / "own") + "/"
        for claim in INVALID_FILES.values():
            name, path = (text.format(up=up, absolute=tmp_path / "victim.txt") for text in claim)
            command.write_note(name, {path: DIGEST})
            before = state(tmp_path)

            code, out, err = command()

            assert (code, out) == (1, ""), claim
            assert err.startswith("promptkit: nothing was "), claim
            assert command.note_name in err, claim
            assert err.endswith(": move it away, and run the command again\n"), claim
            assert err.count("\n") == 1, claim
            assert state(tmp_path) == before, claim

    def test_a_note_of_another_structure_is_refused(self, command, tmp_path):
        """
        Digests, numbers and lengths are checked before anything is done.
        """
        command.folder.mkdir(parents=True)
        for label, data in INVALID_NOTES.items():
            command.note.write_bytes(data)
            before = state(tmp_path)

            code, out, err = command()

            assert (code, out) == (1, ""), label
            assert f"{command.note_name} is not a valid note of written files: " in err, label
            assert err.count("\n") == 1, label
            assert len(err) < 1000, label
            assert state(tmp_path) == before, label

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "device", "folder", "large"])
    def test_something_other_than_a_file_is_refused(self, kind, command, tmp_path):
        """
        A link is not followed, and nothing waits for a pipe.
        """
        command.folder.mkdir(parents=True)
        if kind == "pipe":
            os.mkfifo(command.note)
        elif kind == "folder":
            command.note.mkdir()
        elif kind == "large":
            with command.note.open("wb") as file:
                file.truncate(60 << 20)
        else:
            places = {"link": tmp_path / "notes", "dangling link": tmp_path / "no", "device": "/dev/zero"}
            (tmp_path / "notes").write_text("{}")
            command.note.symlink_to(places[kind])

        code, out, err = command()

        assert (code, out) == (1, "")
        assert command.note_name in err
        assert err.count("\n") == 1
        assert not (tmp_path / "no").exists()


class TestDigests:
    @pytest.mark.parametrize(
        "path", ["mine.txt", "deep/mine.txt", ".hidden/mine.txt", "__pycache__/mine.txt"]
    )
    def test_a_file_with_another_digest_stays(self, path, command, tmp_path):
        """
        The file is named, and nothing is changed.
        """
        command.write_note("own", {path: DIGEST, "other.txt": DIGEST})
        place = command.folder / "own" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("mine")
        (command.folder / "own" / "other.txt").write_text("precious")
        before = state(tmp_path)

        code, out, err = command()

        assert (code, out) == (1, "")
        assert f"own/{path} was changed since it was written: move it away" in err
        assert err.count("\n") == 1
        assert place.read_text() == "mine"
        assert state(tmp_path) == before

    @pytest.mark.parametrize("is_hidden", [False, True])
    def test_a_link_in_the_path_is_not_followed(self, is_hidden, command, tmp_path):
        """
        The digest of the file that it leads to does not count.
        """
        link = ".own" if is_hidden else "link"
        command.write_note("own", {f"{link}/victim.txt": DIGEST})
        (command.folder / "own").mkdir()
        (command.folder / "own" / link).symlink_to(tmp_path)
        before = state(tmp_path)

        code, out, err = command()

        assert (code, out) == (1, "")
        assert f"own/{link}" in err
        assert err.count("\n") == 1
        assert state(tmp_path) == before

    @pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
    def test_something_other_than_a_file_stays(self, kind, command, tmp_path):
        """
        It cannot have the digest.
        """
        command.write_note("own", {"a": DIGEST})
        place = command.folder / "own" / "a"
        place.parent.mkdir()
        if kind == "link":
            place.symlink_to(tmp_path / "victim.txt")
        elif kind == "pipe":
            os.mkfifo(place)
        else:
            place.mkdir()

        code, _, err = command()

        assert code == 1
        assert "own/a was changed since it was written" in err
        assert place.exists()

    def test_files_that_are_gone_are_no_error(self, command, tmp_path):
        """
        The note no longer names them.
        """
        command.write_note("own", {"a": DIGEST, "b/c": DIGEST})

        assert command()[0] == 0

        if "--dry-run" not in command.argv:
            assert not command.note.exists() or "own" not in json.loads(command.note.read_text())
        assert (tmp_path / "victim.txt").exists()

    def test_exactly_what_was_written_is_removed(self, command):
        """
        Its digest is that of the note.
        """
        command.write_note("own", {"b/c": DIGEST})
        place = command.folder / "own" / "b" / "c"
        place.parent.mkdir(parents=True)
        place.write_text("precious")

        assert command()[0] == 0
        assert (command.folder / "own").exists() == ("--dry-run" in command.argv)

    @pytest.mark.parametrize("command", CHANGING, indirect=True)
    def test_a_file_changed_meanwhile_stays(self, command, monkeypatch):
        """
        The digest is checked again right before the removal.
        """
        command.write_note("own", {"a": DIGEST})
        place = command.folder / "own" / "a"
        place.parent.mkdir()
        place.write_text("precious")
        carry_out = folders.FolderChange.carry_out

        def late(change):
            place.write_text("mine")
            carry_out(change)

        monkeypatch.setattr(folders.FolderChange, "carry_out", late)
        code, _, err = command()

        assert code == 1
        assert "own/a" in err
        assert "meanwhile" in err
        assert err.count("\n") == 1
        assert place.read_text() == "mine"

    @pytest.mark.parametrize("command", WRITING, indirect=True)
    @pytest.mark.parametrize("kind", ["note", "file"])
    def test_something_written_meanwhile_is_not_overwritten(self, kind, command, monkeypatch):
        """
        Another command may have finished in between.
        """
        carry_out = folders.FolderChange.carry_out
        changed = []

        def late(change):
            changed.append(command.note if kind == "note" else command.folder / next(iter(change.writes)))
            changed[0].parent.mkdir(parents=True, exist_ok=True)
            changed[0].write_text("{}")
            carry_out(change)

        monkeypatch.setattr(folders.FolderChange, "carry_out", late)
        code, _, err = command()

        assert code == 1
        assert changed[0].name in err
        assert "meanwhile" in err
        assert changed[0].read_text() == "{}"


class TestSources:
    def test_control_characters_are_escaped(self, project, capsys):
        """
        A source in a note neither controls the terminal nor adds lines.
        """
        (project / "out").mkdir()
        (project / "out" / EXPORT).write_text(
            json.dumps(
                {"review": {"source": "a\x1b[2J\npromptkit: all is fine", "files": {"SKILL.md": DIGEST}}}
            )
        )

        assert main(["export", "skills", "out"]) == 1

        err = capsys.readouterr().err
        assert r"was written from a\x1b[2J\npromptkit: all is fine: remove it" in err
        assert err.count("\n") == 1

    @pytest.mark.parametrize("source", ["/a\0b", "/" + "a" * 5000, "/\ud800", "/etc/passwd/a"])
    def test_an_odd_source_counts_as_gone(self, source, project, capsys):
        """
        The skill is taken over, as that of a project that was moved.
        """
        (project / "out").mkdir()
        (project / "out" / EXPORT).write_text(
            json.dumps({"review": {"source": source, "files": {"SKILL.md": DIGEST}}})
        )

        code = main(["export", "skills", "out"])

        err = capsys.readouterr().err
        assert (code, err) == (0, "") if "\ud800" not in source else (code, err.count("\n")) == (1, 1)

    def test_many_sources_are_removed_in_linear_time(self, project, monkeypatch):
        """
        `uninstall --all` reads and writes the note once.
        """
        folder = project / ".claude" / "skills"
        folder.mkdir(parents=True)
        note = {f"n{i}": {"source": f"s{i}", "files": {"SKILL.md": DIGEST}} for i in range(3000)}
        (folder / SKILLS).write_text(json.dumps(note))

        reads = []
        decode = folders.msgspec.json.decode
        monkeypatch.setattr(
            folders.msgspec.json, "decode", lambda *a, **b: reads.append(1) or decode(*a, **b)
        )

        assert main(["uninstall", "--all", "--skills", "--scope", "project"]) == 0
        assert len(reads) == 2
        assert not (folder / SKILLS).exists()


@pytest.mark.timeout(20)
class TestDeepFolders:
    def test_a_deep_folder_is_refused(self, command):
        """
        A walk through it would take quadratic time.
        """
        command.write_note("own", {"a": DIGEST})
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
    def test_the_skills_of_a_project_stay_in_it(self, argv, kind, project, tmp_path, capsys):
        """
        Someone else may have made the link: its target is neither read nor written.
        """
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
            place = project / ".claude" / "skills"
            if kind == "pipe":
                os.mkfifo(place)
            elif kind == "file":
                place.write_text("mine")
            else:
                place.symlink_to(place if kind == "loop" else outside / "skills")
        before = state(tmp_path)

        code = main(argv)

        printed = capsys.readouterr()
        assert (code, printed.out) == (1, "")
        assert printed.err.count("\n") == 1
        assert ".claude" in printed.err
        assert state(tmp_path) == before

    def test_a_link_within_the_project_is_followed(self, project, capsys):
        """
        Several agents can share one folder.
        """
        (project / ".agents" / "skills").mkdir(parents=True)
        (project / ".claude").mkdir()
        (project / ".claude" / "skills").symlink_to("../.agents/skills")

        assert main(["install", *CLIENT, "recipes"]) == 0
        assert (project / ".agents" / "skills" / "review" / "SKILL.md").exists()
        assert "folder: " + str(project / ".claude" / "skills") in capsys.readouterr().out
        assert main(["uninstall", *CLIENT, "recipes"]) == 0
        assert list((project / ".agents" / "skills").iterdir()) == []

    def test_the_folder_of_the_user_may_be_a_link(self, project, tmp_path):
        """
        People keep their dotfiles in a repository.
        """
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
    def test_a_relative_folder_is_reached_without_links(self, argv, within, project, tmp_path, capsys):
        """
        The link may have come with the repository; an absolute path was typed by the user.
        """
        (tmp_path / "outside").mkdir()
        (project / "out").symlink_to(tmp_path / "outside")
        before = state(tmp_path)

        assert main([*argv[:2], within, *argv[2:]]) == 1

        err = capsys.readouterr().err
        assert "it is a link" in err
        assert err.count("\n") == 1
        assert state(tmp_path) == before
        place = str(project / within)
        assert main([*argv[:2], place, *argv[2:]]) == 0

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("kind", ["link", "pipe", "device"])
    def test_the_end_of_a_live_command_is_not_read_through_a_link(self, kind, project, tmp_path, capsys):
        """
        Nor from a pipe or a device; it is refused like any file that was not written.
        """
        (project / "out").mkdir()
        place = project / "out" / "greet.md"
        end = "end-" + "0" * 32
        (tmp_path / "victim.txt").write_text(f"--typed {end}")
        if kind == "pipe":
            os.mkfifo(place)
        else:
            place.symlink_to(tmp_path / "victim.txt" if kind == "link" else Path("/dev/zero"))

        assert main(["export", "claude-commands", "out", "--live"]) == 1
        assert "out/greet.md was not written by promptkit" in capsys.readouterr().err
