"""Files of other programs are replaced atomically and keep their mode, owner and links."""

import json
import os
import subprocess
import sys

import pytest

from tests.cli.install.entries import backup_path

#: Runs a command repeatedly in a child process that is killed before its first call that can change the
#: disk, then before the second one, and so on. Prints each exit code and the content of the file.
KILLED = """
import os, sys
from itertools import count
from promptkit.cli import main
import promptkit.cli.install, promptkit.clients.jsonc_edits

file, *argv = sys.argv[1:]
before = open(file).read()
for allowed in count():
    open(file, "w").write(before)
    child = os.fork()
    if not child:
        left = allowed
        def counted(function):
            def call(*arguments, **options):
                global left
                left -= 1
                if left < 0:
                    os._exit(9)
                return function(*arguments, **options)
            return call
        for name in "open mkdir fchown fchmod setxattr fsync replace rename unlink close".split():
            setattr(os, name, counted(getattr(os, name)))
        os.dup2(2, 1)
        os._exit(main(argv))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(repr((code, open(file).read())), flush=True)
    if code != 9:
        break
"""

OTHER = '{"mcpServers": {"other": {"command": "x"}}}'


@pytest.fixture
def file(home):
    """A configuration of Cursor with a server of another program."""
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(OTHER)
    return file


def servers(file):
    return set(json.loads(file.read_text())["mcpServers"])


@pytest.mark.skipif(os.name == "nt", reason="there is no fork")
def test_interrupted_command(file, project):
    """A command killed at any point leaves the old or the new file, and running it again succeeds."""
    command = [sys.executable, "-c", KILLED, str(file), "install", "cursor", "--name", "ours"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=project)
    outcomes = [eval(line) for line in result.stdout.splitlines()]  # noqa: S307 (our own)
    codes, texts = zip(*outcomes, strict=True)

    assert codes[-1] == 0
    assert set(codes[:-1]) == {9}
    assert len(codes) > 10
    assert {text == OTHER or set(json.loads(text)["mcpServers"]) == {"other", "ours"} for text in texts} == {
        True
    }
    assert texts[0] == OTHER
    assert set(json.loads(texts[-1])["mcpServers"]) == {"other", "ours"}


class TestConcurrentChanges:
    def test_concurrent_change_is_kept(self, file, project, promptkit, monkeypatch):
        """A change between reading and replacing is kept, and no temporary file remains."""
        fsync = os.fsync

        def slow(descriptor):
            file.write_text('{"theirs": 1}')
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", slow)
        code, out, err = promptkit("install", "cursor")

        assert (code, out) == (1, "")
        assert "another program changed it at the same time, so it was not written" in err
        assert file.read_text() == '{"theirs": 1}'
        assert [path.name for path in file.parent.iterdir()] == ["mcp.json"]

    def test_removed_file(self, file, project, promptkit, monkeypatch):
        """A file that was removed in the meantime is not created again."""
        monkeypatch.setattr("os.fchown", lambda *_: file.unlink())
        code, _, err = promptkit("install", "cursor")

        assert code == 1
        assert "at the same time" in err
        assert not file.exists()

    def test_parallel_commands(self, file, project):
        """Each of several parallel commands adds its server or reports that it did not."""
        start = [sys.executable, "-m", "promptkit", "install", "cursor", "--name"]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        running = [subprocess.Popen([*start, f"s{i}"], **pipes) for i in range(4)]
        results = [
            (f"s{i}", process.communicate()[1], process.returncode) for i, process in enumerate(running)
        ]

        assert servers(file) == {"other", *(name for name, _, code in results if code == 0)}
        assert all(b"at the same time" in err for _, err, code in results if code)
        assert any(code == 0 for _, _, code in results)


class TestFileProperties:
    def test_mode_and_owner_are_kept(self, file, project, promptkit):
        """The replaced file has the permissions and the owner of the old one."""
        file.chmod(0o640)
        if os.geteuid() == 0:
            os.chown(file, 12345, 54321)
        before = file.stat()
        promptkit("install", "cursor")
        after = file.stat()

        assert servers(file) == {"other", "team-prompts"}
        assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)

    def test_link_is_kept(self, file, project, promptkit, tmp_path):
        """The target of a link is replaced in its folder, so that links to a dotfiles repository work."""
        (tmp_path / "dotfiles").mkdir()
        target = file.rename(tmp_path / "dotfiles" / "cursor.json")
        file.symlink_to(os.path.relpath(target, file.parent))
        code, _, _ = promptkit("install", "cursor")

        assert code == 0
        assert file.is_symlink()
        assert servers(target) == {"other", "team-prompts"}
        assert [path.name for path in target.parent.iterdir()] == ["cursor.json"]

    def test_dangling_link(self, home, project, promptkit, tmp_path):
        """The missing target of a link is created."""
        (home / ".cursor").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
        code, _, _ = promptkit("install", "cursor")

        assert code == 0
        assert servers(tmp_path / "elsewhere" / "mcp.json") == {"team-prompts"}

    @pytest.mark.parametrize(
        ("prepare", "message"),
        [
            (lambda file: file.chmod(0o444), "it is read-only: make it writable, or edit it yourself"),
            (
                lambda file: os.link(file, file.with_name("too")),
                "it has other hard links, which would keep the old content: edit it yourself",
            ),
            (lambda file: (file.unlink(), file.mkdir()), "it is not a file"),
            (lambda file: (file.unlink(), file.symlink_to(file)), "it cannot be read: "),
            (lambda file: file.write_bytes(b"{\xff}"), "it is not UTF-8"),
            (lambda file: file.write_text("{"), "it is not valid JSON: Expecting property name"),
        ],
        ids=["read-only", "hard links", "folder", "circle", "bytes", "malformed"],
    )
    def test_rejected_files(self, prepare, message, file, project, promptkit):
        """The file is unchanged, and the error has the reason, the path and the entry to add."""
        prepare(file)
        before = file.read_bytes() if file.is_file() else None
        code, out, err = promptkit("install", "cursor")

        assert (code, out) == (1, "")
        assert err.splitlines()[0].startswith(f"promptkit: {file}")
        assert message in err.splitlines()[0]
        assert '"team-prompts": {' in err
        assert (file.read_bytes() if file.is_file() else None) == before
        assert promptkit("uninstall", "cursor", "--name", "other")[0] == 1

    @pytest.mark.parametrize("kind", ["file", "folder", "nothing"])
    def test_link_out_of_the_project(self, kind, project, promptkit, tmp_path):
        """A link out of the project, which could come from its author, is neither read nor written."""
        outside = tmp_path / "outside"
        outside.mkdir()
        if kind == "folder":
            (project / ".cursor").symlink_to(outside, target_is_directory=True)
        else:
            (project / ".cursor").mkdir()
            (project / ".cursor" / "mcp.json").symlink_to(outside / "mcp.json")
        if kind != "nothing":
            (outside / "mcp.json").write_text(OTHER)
        before = [path.read_text() for path in outside.iterdir()]

        code, _, err = promptkit("install", "cursor", "--scope", "project")

        assert code == 1
        assert "it is outside the project: replace the link with a file" in err.splitlines()[0]
        assert [path.read_text() for path in outside.iterdir()] == before

    def test_link_within_the_project(self, project, promptkit):
        """A link within the project is kept, and its target is written."""
        (project / ".cursor").mkdir()
        (project / ".cursor" / "mcp.json").symlink_to(project / "shared.json")

        assert promptkit("install", "cursor", "--scope", "project")[0] == 0
        assert servers(project / "shared.json") == {"team-prompts"}

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("kind", ["large", "pipe", "device"])
    def test_endless_files(self, kind, file, project, promptkit):
        """Only regular files of limited size are read."""
        file.unlink()
        if kind == "large":
            with file.open("wb") as stream:
                stream.truncate(60 << 20)
        elif kind == "pipe":
            os.mkfifo(file)
        else:
            file.symlink_to("/dev/zero")

        code, _, err = promptkit("install", "cursor")

        assert code == 1
        assert ("it is larger than 16,777,216 bytes" if kind == "large" else "it is not a file") in err

    def test_file_in_place_of_a_folder(self, home, project, promptkit):
        """A file in place of the folder is kept and reported."""
        (home / ".cursor").write_text("mine")
        code, _, err = promptkit("install", "cursor")

        assert code == 1
        assert f"{home / '.cursor' / 'mcp.json'}: it cannot be read: Not a directory" in err
        assert (home / ".cursor").read_text() == "mine"


class TestBackup:
    def test_backup_has_the_previous_content(self, file, project, promptkit):
        """The backup has the content before the last change, in a private folder."""
        file.chmod(0o644)
        first = backup_path(promptkit("install", "cursor")[1])
        previous = file.read_text()
        second = backup_path(promptkit("uninstall", "cursor")[1])

        assert first == second
        assert second.read_text() == previous
        assert second.stat().st_mode & 0o777 == 0o600
        assert second.parent.stat().st_mode & 0o777 == 0o700

    def test_unwritable_backup(self, file, home, project, promptkit):
        """If the backup cannot be written, nothing is changed."""
        (home / ".local").write_text("")
        code, _, err = promptkit("install", "cursor")

        assert code == 1
        assert "it cannot be written: Not a directory" in err
        assert file.read_text() == OTHER
