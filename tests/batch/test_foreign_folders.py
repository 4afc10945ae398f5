"""`promptkit batch` with an output folder and a checkpoint from someone else's repository."""

import json
import os
import socket

import pytest
from msgspec.structs import replace

from promptkit.batch.request_lines import LINE_FORMATS
from promptkit.batch.shards import BatchWriter
from promptkit.cli import main
from tests.batch.conftest import requests_in

pytestmark = [
    pytest.mark.timeout(20),
    pytest.mark.skipif(os.name != "posix", reason="Windows has no such files"),
]

CHECKPOINT, REJECTED, FIRST, SECOND = (
    ".promptkit-batch.json",
    "rejected.jsonl",
    "requests-00001.jsonl",
    "requests-00002.jsonl",
)

#: Kinds of directory entries that are not regular files, and the names that they have.
ODD = {
    "link": FIRST,
    "dangling link": SECOND,
    "link to a device": REJECTED,
    "pipe": FIRST,
    "socket": SECOND,
    "folder": CHECKPOINT,
}


@pytest.fixture
def victim(folder):
    file = folder / "victim.txt"
    file.write_bytes(b"precious\n")
    return file


@pytest.fixture(autouse=True)
def table(folder):
    rows = (f"{n},ticket {n},{'many' if n % 7 == 5 else n}\n" for n in range(60))
    (folder / "t.csv").write_text("id,ticket,votes\n" + "".join(rows), encoding="utf-8")
    return folder / "t.csv"


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    form = LINE_FORMATS["openai-chat"]
    monkeypatch.setattr("promptkit.cli.batch.LINE_FORMATS", {"openai-chat": replace(form, most_lines=10)})


@pytest.fixture
def unfinished(table, batch, folder):
    """A folder with an unfinished batch of several files, as left by a worker that ended."""
    write, count = BatchWriter.write, 0

    def end_after_two(writer, chunk):
        nonlocal count
        if count == 2:
            raise EOFError
        count += 1
        write(writer, chunk)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(BatchWriter, "write", end_after_two)
        assert batch("triage", "t.csv", "--key", "id").code == 1
    assert {file.name for file in (folder / "out").iterdir()} == {
        *(CHECKPOINT, REJECTED, FIRST, SECOND, "requests-00003.jsonl")
    }
    return folder / "out"


def put(kind, path, victim):
    """Create an entry of a kind at *path*."""
    path.unlink(missing_ok=True)
    match kind:
        case "link":
            path.symlink_to(victim)
        case "dangling link":
            path.symlink_to(path.parent.parent / "new.txt")
        case "link to a device":
            path.symlink_to("/dev/full" if path.name != CHECKPOINT else "/dev/null")
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(os.path.relpath(path))
        case "folder":
            path.mkdir()
        case "hard link":
            path.hardlink_to(victim)


def state(folder):
    """Return the entries below a folder, with the content of regular files."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.is_file() and path.read_bytes())
        for path in folder.rglob("*")
        if "__pycache__" not in str(path)
    }


def is_one_line(ran):
    return ran.err.startswith("promptkit: ") and ran.err.count("\n") == 1 and "Traceback" not in ran.err


class TestEntriesThatAreNotFiles:
    @pytest.mark.parametrize(("kind", "name"), ODD.items())
    def test_a_new_batch_refuses_them(self, kind, name, batch, folder, victim):
        """A new batch refuses such an entry without reading, writing or removing anything."""
        (folder / "out").mkdir()
        put(kind, folder / "out" / name, victim)
        before = state(folder)

        for options in ((), ("--resume",)):
            ran = batch("triage", "t.csv", *options)

            assert ran.code == 2
            assert is_one_line(ran)
            assert f"'out/{name}' cannot be used: " in ran.err
            assert "name another folder with -o" in ran.err
            assert state(folder) == before

    @pytest.mark.parametrize(("kind", "name"), [*ODD.items(), ("pipe", "requests-00003.jsonl")])
    def test_a_resumed_batch_refuses_them(self, kind, name, batch, unfinished, victim):
        """A resumed batch refuses such an entry, even with a valid checkpoint, and changes nothing."""
        put(kind, unfinished / name, victim)
        before = state(unfinished.parent)

        ran = batch("triage", "t.csv", "--key", "id", "--resume")

        assert ran.code == 2
        assert is_one_line(ran)
        assert f"'out/{name}' cannot be used: " in ran.err
        assert state(unfinished.parent) == before

    def test_a_hard_link_is_not_written_to(self, batch, unfinished, victim):
        """A file that has other names is not changed."""
        file = unfinished / REJECTED
        victim.write_bytes(file.read_bytes() + b"more")
        put("hard link", file, victim)

        ran = batch("triage", "t.csv", "--key", "id", "--resume")

        assert ran.code == 1
        assert is_one_line(ran)
        assert "it has other names (hard links)" in ran.err
        assert victim.read_bytes().endswith(b"more")

    @pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
    def test_an_entry_that_appears_during_the_batch_is_not_written_to(self, kind, batch, folder, victim):
        """A batch ends with a one-line error if its next request file turns out to be such an entry."""
        write = BatchWriter.write

        def appear(writer, chunk):
            if not (folder / "out" / SECOND).exists():
                put(kind, folder / "out" / SECOND, victim)
            write(writer, chunk)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(BatchWriter, "write", appear)
            ran = batch("triage", "t.csv")

        assert ran.code == 1
        assert is_one_line(ran)
        assert "cannot write to 'out'" in ran.err
        assert victim.read_bytes() == b"precious\n"


class TestTheFolder:
    @pytest.mark.parametrize("out", ["out", "out/inner"])
    def test_a_link_is_not_followed(self, out, batch, folder, tmp_path_factory):
        """A relative output folder that is a link is refused, because it can come with the repository."""
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        (folder / "out").symlink_to(elsewhere)

        for options in ((), ("--resume",)):
            ran = batch("triage", "t.csv", *options, out=out)

            assert ran.code == 2
            assert is_one_line(ran)
            assert "it is a link" in ran.err
            assert list(elsewhere.iterdir()) == []

    def test_a_link_in_an_absolute_path_is_followed(self, batch, folder, tmp_path_factory):
        """A link in an absolute path is followed, because the user typed it."""
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        (folder / "out").symlink_to(elsewhere)

        assert batch("triage", "t.csv", out=str(folder / "out")).code == 1
        assert (elsewhere / FIRST).exists()

    @pytest.mark.parametrize("kind", ["file", "dangling link", "pipe"])
    def test_it_must_be_a_folder(self, kind, batch, folder, victim):
        """A file, a pipe or a dangling link as output folder is refused with a one-line error."""
        if kind == "file":
            (folder / "out").write_bytes(b"")
        else:
            put(kind, folder / "out", victim)
        before = state(folder)

        ran = batch("triage", "t.csv")

        assert ran.code == 2
        assert is_one_line(ran)
        assert state(folder) == before

    def test_a_folder_that_a_recipe_leaves_is_the_one_that_was_named(self, batch, folder, recipes):
        """A relative output path is resolved before a recipe changes the current folder."""
        (folder / "other").mkdir()
        recipe = next((folder / "recipes").glob("*.py"))
        recipe.write_text(
            f"import os\nos.chdir('other')\n{recipe.read_text(encoding='utf-8')}", encoding="utf-8"
        )

        assert batch("triage", "t.csv").code == 1
        assert (folder / "out" / FIRST).exists()
        assert list((folder / "other").iterdir()) == []

    def test_a_current_folder_that_was_deleted(self, folder, monkeypatch, capsys):
        """A deleted current folder yields a one-line error."""
        gone = folder / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        words = ["batch", "triage", str(table), "--for", "openai-chat", "--model", "m"]

        code = main([*words, "--target", str(folder / "recipes")])

        assert code in (1, 2)
        assert capsys.readouterr().err.count("\n") == 1


class TestCheckpoints:
    def test_an_unfinished_batch_is_resumed(self, batch, unfinished, folder):
        """A resumed batch ends with the same files as one uninterrupted run."""
        resumed = batch("triage", "t.csv", "--key", "id", "--resume")
        whole = batch("triage", "t.csv", "--key", "id", out="whole")

        assert (resumed.code, whole.code) == (1, 1)
        assert requests_in(unfinished) == requests_in(folder / "whole")
        assert state(unfinished) == state(folder / "whole")

    @pytest.mark.parametrize(
        "changes",
        [
            {"shard": 7},
            {"shard": 0},
            {"shard": 2**62},
            {"shard": 1},
            {"rows": -1},
            {"rows": 10**30},
            {"rows": 1.5},
            {"size": 0},
            {"size": 10**6},
            {"bytes": 1},
            {"rejected_size": 10**6},
            {"command": 7},
        ],
        ids=str,
    )
    def test_a_checkpoint_that_contradicts_the_files(self, changes, batch, unfinished, folder):
        """A checkpoint that contradicts the files is refused, and the folder stays unchanged."""
        file = unfinished / CHECKPOINT
        file.write_bytes(json.dumps({**json.loads(file.read_bytes()), **changes}).encode().ljust(512))
        before = state(folder)

        ran = batch("triage", "t.csv", "--key", "id", "--resume")

        assert ran.code == 2
        assert is_one_line(ran)
        assert "name another folder with -o" in ran.err
        assert state(folder) == before

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"{}",
            b"\xff",
            b"[" * 500,
            b"{" + b" " * 5_000_000 + b"}",
            b'{"command":"\\ud800"}',
        ],
        ids=range(6),
    )
    def test_a_file_that_is_not_a_checkpoint(self, data, batch, unfinished, folder):
        """An invalid checkpoint file of any size is refused, and the folder stays unchanged."""
        (unfinished / CHECKPOINT).write_bytes(data)
        before = state(folder)

        ran = batch("triage", "t.csv", "--key", "id", "--resume")

        assert ran.code == 2
        assert is_one_line(ran)
        assert "'out/.promptkit-batch.json' is not a checkpoint: name another folder with -o" in ran.err
        assert state(folder) == before

    def test_a_checkpoint_alone(self, batch, unfinished, folder):
        """A checkpoint without its request files is refused."""
        for file in unfinished.iterdir():
            if file.name != CHECKPOINT:
                file.unlink()

        ran = batch("triage", "t.csv", "--key", "id", "--resume")

        assert ran.code == 2
        assert "does not agree with the files next to it: name another folder with -o" in ran.err
        assert [file.name for file in unfinished.iterdir()] == [CHECKPOINT]

    @pytest.mark.parametrize(
        "name", ["requests-00009.jsonl", "requests-000001.jsonl", "requests-x.jsonl", "requests-\u0661.jsonl"]
    )
    def test_a_file_of_requests_that_the_batch_cannot_have_written(self, name, batch, unfinished, folder):
        """A request file that the batch cannot have written is refused and stays."""
        (unfinished / name).write_bytes(b"mine")
        before = state(folder)

        ran = batch("triage", "t.csv", "--key", "id", "--resume")

        assert ran.code == 2
        assert "does not agree with the files next to it: name another folder with -o" in ran.err
        assert state(folder) == before

    def test_later_files_are_written_again(self, batch, unfinished, folder):
        """Request files later than the checkpoint, as left by a kill, are rewritten."""
        for number in (4, 5, 6):
            (unfinished / f"requests-0000{number}.jsonl").write_bytes(b"{}\n")

        batch("triage", "t.csv", "--key", "id", "--resume")
        batch("triage", "t.csv", "--key", "id", out="whole")

        assert state(unfinished) == state(folder / "whole")

    @pytest.mark.parametrize("line", [b"{", b"[]", b"\xff", b'{"custom_id":7}'])
    @pytest.mark.parametrize("name", [FIRST, "requests-00003.jsonl"])
    def test_a_line_that_is_not_a_request(self, name, line, batch, unfinished, folder):
        """With keys, an invalid line in an earlier request file is reported with a one-line error."""
        file = unfinished / name
        first, rest = file.read_bytes().split(b"\n", 1)
        file.write_bytes(line.ljust(len(first)) + b"\n" + rest)
        before = state(folder)

        ran = batch("triage", "t.csv", "--key", "id", "--resume")

        assert ran.code == 2
        assert is_one_line(ran)
        assert f"'out/{name}' has a line that is not a request: name another folder with -o" in ran.err
        assert {**state(folder), f"out/{CHECKPOINT}": before[f"out/{CHECKPOINT}"]} == before

    def test_a_checkpoint_of_another_command_changes_nothing(self, batch, unfinished, folder):
        """Only the command that started a batch removes its later files."""
        (unfinished / "requests-00004.jsonl").write_bytes(b"{}\n")
        before = state(folder)

        ran = batch("triage", "t.csv", "--resume")

        assert ran.code == 2
        assert "holds the batch of another command" in ran.err
        assert state(folder) == before
