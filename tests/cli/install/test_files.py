"""Files of others are replaced whole or not at all, and what they are stays."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Runs a command again and again in a process of its own, which is killed before its first call that may
#: change the disk, then before the second, and so on. Prints each exit code, and what the file holds then.
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
    """A configuration of Cursor's with a server of someone else's."""
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(OTHER)
    return file


def servers(file):
    return set(json.loads(file.read_text())["mcpServers"])


@pytest.mark.skipif(os.name == "nt", reason="there is no fork")
def test_killed_half_way(file, project):
    """
    Wherever it is killed, the file is as it was, or as it is to be; whoever runs it again gets it done.
    """
    command = [sys.executable, "-c", KILLED, str(file), "install", "cursor", "--name", "ours"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=project)
    found = [eval(line) for line in ran.stdout.splitlines()]  # noqa: S307 (our own)
    codes, texts = zip(*found, strict=True)

    assert codes[-1] == 0
    assert set(codes[:-1]) == {9}
    assert len(codes) > 10
    assert {text == OTHER or set(json.loads(text)["mcpServers"]) == {"other", "ours"} for text in texts} == {
        True
    }
    assert texts[0] == OTHER
    assert set(json.loads(texts[-1])["mcpServers"]) == {"other", "ours"}


class TestChangedMeanwhile:
    def test_is_refused(self, file, project, promptkit, monkeypatch):
        """
        What somebody writes between reading and replacing stays, and nothing else is left there.
        """
        fsync = os.fsync

        def slow(descriptor):
            file.write_text('{"theirs": 1}')
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", slow)
        code, out, err = promptkit("install", "cursor")

        assert (code, out) == (1, "")
        assert "another program changed it at the same time, so it was not written" in err
        assert file.read_text() == '{"theirs": 1}'
        assert [one.name for one in file.parent.iterdir()] == ["mcp.json"]

    def test_removed(self, file, project, promptkit, monkeypatch):
        """
        A file that has gone is not made again.
        """
        monkeypatch.setattr("os.fchown", lambda *_: file.unlink())
        code, _, err = promptkit("install", "cursor")

        assert code == 1
        assert "at the same time" in err
        assert not file.exists()

    def test_by_promptkit_itself(self, file, project):
        """
        Of commands that run at once, each has put its server there, or says that it has not.
        """
        start = [sys.executable, "-m", "promptkit", "install", "cursor", "--name"]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        running = [subprocess.Popen([*start, f"s{i}"], **pipes) for i in range(4)]
        ended = [(f"s{i}", one.communicate()[1], one.returncode) for i, one in enumerate(running)]

        assert servers(file) == {"other", *(name for name, _, code in ended if code == 0)}
        assert all(b"at the same time" in err for _, err, code in ended if code)
        assert any(code == 0 for _, _, code in ended)


class TestWhatAFileIs:
    def test_its_mode_and_owner_stay(self, file, project, promptkit):
        """
        Who may read it is as before, and whose it is.
        """
        file.chmod(0o640)
        if os.geteuid() == 0:
            os.chown(file, 12345, 54321)
        before = file.stat()
        promptkit("install", "cursor")
        after = file.stat()

        assert servers(file) == {"other", "team-prompts"}
        assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)

    def test_a_link_stays(self, file, project, promptkit, tmp_path):
        """
        What is linked to is written, where it lies; so people keep their dotfiles in a repository.
        """
        (tmp_path / "dotfiles").mkdir()
        kept = file.rename(tmp_path / "dotfiles" / "cursor.json")
        file.symlink_to(os.path.relpath(kept, file.parent))
        code, _, _ = promptkit("install", "cursor")

        assert code == 0
        assert file.is_symlink()
        assert servers(kept) == {"other", "team-prompts"}
        assert [one.name for one in kept.parent.iterdir()] == ["cursor.json"]

    def test_a_link_to_nothing(self, home, project, promptkit, tmp_path):
        """
        The file that it leads to is made.
        """
        (home / ".cursor").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
        code, _, _ = promptkit("install", "cursor")

        assert code == 0
        assert servers(tmp_path / "elsewhere" / "mcp.json") == {"team-prompts"}

    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (lambda file: file.chmod(0o444), "it is read-only: make it writable, or write into it by hand"),
            (
                lambda file: os.link(file, file.with_name("too")),
                "it has other names (hard links), which would no longer be the same",
            ),
            (lambda file: (file.unlink(), file.mkdir()), "it is not a file"),
            (lambda file: (file.unlink(), file.symlink_to(file)), "it cannot be read: "),
            (lambda file: file.write_bytes(b"{\xff}"), "it is not UTF-8"),
            (lambda file: file.write_text("{"), "this is not JSON: Expecting property name"),
        ],
        ids=["read-only", "hard links", "folder", "circle", "bytes", "malformed"],
    )
    def test_what_is_refused(self, make, said, file, project, promptkit):
        """
        It is left as it is, and people are told why, where, and what they may write there themselves.
        """
        make(file)
        before = file.read_bytes() if file.is_file() else None
        code, out, err = promptkit("install", "cursor")

        assert (code, out) == (1, "")
        assert err.splitlines()[0].startswith(f"promptkit: {file}")
        assert said in err.splitlines()[0]
        assert '"team-prompts": {' in err
        assert (file.read_bytes() if file.is_file() else None) == before
        assert promptkit("uninstall", "cursor", "--name", "other")[0] == 1

    @pytest.mark.parametrize("made", ["file", "folder", "nothing"])
    def test_a_link_out_of_the_project(self, made, project, promptkit, tmp_path):
        """
        Who cloned the project did not make it: what it leads to is neither read nor written.
        """
        outside = tmp_path / "outside"
        outside.mkdir()
        if made == "folder":
            (project / ".cursor").symlink_to(outside, target_is_directory=True)
        else:
            (project / ".cursor").mkdir()
            (project / ".cursor" / "mcp.json").symlink_to(outside / "mcp.json")
        if made != "nothing":
            (outside / "mcp.json").write_text(OTHER)
        before = [one.read_text() for one in outside.iterdir()]

        code, _, err = promptkit("install", "cursor", "--scope", "project")

        assert code == 1
        assert "it leads out of the project: replace the link by a file" in err.splitlines()[0]
        assert [one.read_text() for one in outside.iterdir()] == before

    def test_a_link_within_the_project(self, project, promptkit):
        """
        It stays, and what it leads to is written.
        """
        (project / ".cursor").mkdir()
        (project / ".cursor" / "mcp.json").symlink_to(project / "shared.json")

        assert promptkit("install", "cursor", "--scope", "project")[0] == 0
        assert servers(project / "shared.json") == {"team-prompts"}

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("kind", ["large", "pipe", "device"])
    def test_what_has_no_end(self, kind, file, project, promptkit):
        """
        A configuration is a regular file that somebody wrote.
        """
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
        assert ("it has more than 16,777,216 bytes" if kind == "large" else "it is not a file") in err

    def test_a_folder_that_is_a_file(self, home, project, promptkit):
        """
        What is in the way is left, and told.
        """
        (home / ".cursor").write_text("mine")
        code, _, err = promptkit("install", "cursor")

        assert code == 1
        assert f"{home / '.cursor' / 'mcp.json'}: it cannot be read: Not a directory" in err
        assert (home / ".cursor").read_text() == "mine"


class TestBackup:
    def test_is_the_file_before(self, file, project, data_of):
        """
        It is what was there before the last change, in a folder that nobody else can look into.
        """
        file.chmod(0o644)
        first = data_of("install", "cursor")["backup"]
        between = file.read_text()
        second = data_of("uninstall", "cursor")["backup"]

        assert first == second
        assert Path(second).read_text() == between
        assert Path(second).stat().st_mode & 0o777 == 0o600
        assert Path(second).parent.stat().st_mode & 0o777 == 0o700

    def test_that_cannot_be_written(self, file, home, project, promptkit):
        """
        Without one, nothing is changed.
        """
        (home / ".local").write_text("")
        code, _, err = promptkit("install", "cursor")

        assert code == 1
        assert "it cannot be written: Not a directory" in err
        assert file.read_text() == OTHER
