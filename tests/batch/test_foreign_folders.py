"""`promptkit batch` with an output folder and a checkpoint from another author's repository."""

import json
import os
import socket

import pytest
from msgspec.structs import replace

from promptkit.batch.shards import BatchWriter
from promptkit.batch.vendor_formats import LINE_FORMATS
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
ODD_ENTRIES = {
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
    monkeypatch.setattr("promptkit.cli.batch.LINE_FORMATS", {"openai-chat": replace(form, max_lines=10)})


@pytest.fixture
def unfinished(table, batch, folder):
    """A folder with an unfinished batch of several files, as left by a worker that exited."""
    write, count = BatchWriter.write, 0

    def end_after_two(writer, chunk):
        nonlocal count
        if count == 2:
            raise EOFError
        count += 1
        write(writer, chunk)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(BatchWriter, "write", end_after_two)
        assert batch("triage", "t.csv", "--key", "id").code == 1
    assert {file.name for file in (folder / "out").iterdir()} == {
        *(CHECKPOINT, REJECTED, FIRST, SECOND, "requests-00003.jsonl")
    }
    return folder / "out"


def create_entry(kind, path, victim):
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


def snapshot(folder):
    """Return the entries below a folder, with the content of regular files."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.is_file() and path.read_bytes())
        for path in folder.rglob("*")
        if "__pycache__" not in str(path)
    }


def is_one_line(result):
    return (
        result.err.startswith("promptkit: ") and result.err.count("\n") == 1 and "Traceback" not in result.err
    )


class TestEntriesThatAreNotFiles:
    @pytest.mark.parametrize(("kind", "name"), ODD_ENTRIES.items())
    def test_new_batch_rejects_odd_entries(self, kind, name, batch, folder, victim):
        """A new batch rejects entries other than files, without reading, writing or removing anything."""
        (folder / "out").mkdir()
        create_entry(kind, folder / "out" / name, victim)
        before = snapshot(folder)

        for options in ((), ("--resume",)):
            result = batch("triage", "t.csv", *options)

            assert result.code == 2
            assert is_one_line(result)
            assert f"'out/{name}' cannot be used: " in result.err
            assert "choose another folder with -o" in result.err
            assert snapshot(folder) == before

    @pytest.mark.parametrize(("kind", "name"), [*ODD_ENTRIES.items(), ("pipe", "requests-00003.jsonl")])
    def test_resumed_batch_rejects_odd_entries(self, kind, name, batch, unfinished, victim):
        """A resumed batch rejects entries other than files, even with a valid checkpoint."""
        create_entry(kind, unfinished / name, victim)
        before = snapshot(unfinished.parent)

        result = batch("triage", "t.csv", "--key", "id", "--resume")

        assert result.code == 2
        assert is_one_line(result)
        assert f"'out/{name}' cannot be used: " in result.err
        assert snapshot(unfinished.parent) == before

    def test_hard_link_is_not_written_to(self, batch, unfinished, victim):
        """A file with further hard links is not changed."""
        file = unfinished / REJECTED
        victim.write_bytes(file.read_bytes() + b"more")
        create_entry("hard link", file, victim)

        result = batch("triage", "t.csv", "--key", "id", "--resume")

        assert result.code == 1
        assert is_one_line(result)
        assert "it has other hard links" in result.err
        assert victim.read_bytes().endswith(b"more")

    @pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
    def test_entry_that_appears_during_the_batch(self, kind, batch, folder, victim):
        """A batch ends with a one-line error if its next request file turns out not to be a regular file."""
        write = BatchWriter.write

        def create_and_write(writer, chunk):
            if not (folder / "out" / SECOND).exists():
                create_entry(kind, folder / "out" / SECOND, victim)
            write(writer, chunk)

        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(BatchWriter, "write", create_and_write)
            result = batch("triage", "t.csv")

        assert result.code == 1
        assert is_one_line(result)
        assert "cannot write to 'out'" in result.err
        assert victim.read_bytes() == b"precious\n"


class TestOutputFolder:
    @pytest.mark.parametrize("out", ["out", "out/inner"])
    def test_link_is_not_followed(self, out, batch, folder, tmp_path_factory):
        """
        A relative output path with a link in it is rejected, because the link can come with the repository.
        """
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        (folder / "out").symlink_to(elsewhere)

        for options in ((), ("--resume",)):
            result = batch("triage", "t.csv", *options, out=out)

            assert result.code == 2
            assert is_one_line(result)
            assert "it is a link" in result.err
            assert list(elsewhere.iterdir()) == []

    def test_link_in_an_absolute_path_is_followed(self, batch, folder, tmp_path_factory):
        """A link in an absolute path is followed, because the user typed it."""
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        (folder / "out").symlink_to(elsewhere)

        assert batch("triage", "t.csv", out=str(folder / "out")).code == 1
        assert (elsewhere / FIRST).exists()

    @pytest.mark.parametrize("kind", ["file", "dangling link", "pipe"])
    def test_other_entry_in_place_of_the_folder(self, kind, batch, folder, victim):
        """A file, a pipe or a dangling link as output folder is rejected with a one-line error."""
        if kind == "file":
            (folder / "out").write_bytes(b"")
        else:
            create_entry(kind, folder / "out", victim)
        before = snapshot(folder)

        result = batch("triage", "t.csv")

        assert result.code == 2
        assert is_one_line(result)
        assert snapshot(folder) == before

    def test_recipe_that_changes_the_current_folder(self, batch, folder, recipes):
        """A relative output path is resolved before a recipe changes the current folder."""
        (folder / "other").mkdir()
        recipe = next((folder / "recipes").glob("*.py"))
        recipe.write_text(
            f"import os\nos.chdir('other')\n{recipe.read_text(encoding='utf-8')}", encoding="utf-8"
        )

        assert batch("triage", "t.csv").code == 1
        assert (folder / "out" / FIRST).exists()
        assert list((folder / "other").iterdir()) == []


class TestCheckpoints:
    def test_unfinished_batch_is_resumed(self, batch, unfinished, folder):
        """A resumed batch ends with the same files as one uninterrupted run."""
        resumed = batch("triage", "t.csv", "--key", "id", "--resume")
        uninterrupted = batch("triage", "t.csv", "--key", "id", out="whole")

        assert (resumed.code, uninterrupted.code) == (1, 1)
        assert requests_in(unfinished) == requests_in(folder / "whole")
        assert snapshot(unfinished) == snapshot(folder / "whole")

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
    def test_checkpoint_that_contradicts_the_files(self, changes, batch, unfinished, folder):
        """A checkpoint that contradicts the files is rejected, and the folder stays unchanged."""
        file = unfinished / CHECKPOINT
        file.write_bytes(json.dumps({**json.loads(file.read_bytes()), **changes}).encode().ljust(512))
        before = snapshot(folder)

        result = batch("triage", "t.csv", "--key", "id", "--resume")

        assert result.code == 2
        assert is_one_line(result)
        assert "choose another folder with -o" in result.err
        assert snapshot(folder) == before

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
    def test_invalid_checkpoint(self, data, batch, unfinished, folder):
        """An invalid checkpoint file of any size is rejected, and the folder stays unchanged."""
        (unfinished / CHECKPOINT).write_bytes(data)
        before = snapshot(folder)

        result = batch("triage", "t.csv", "--key", "id", "--resume")

        assert result.code == 2
        assert is_one_line(result)
        assert (
            "'out/.promptkit-batch.json' is not a valid checkpoint: choose another folder with -o"
            in result.err
        )
        assert snapshot(folder) == before

    def test_checkpoint_without_files(self, batch, unfinished, folder):
        """A checkpoint without its request files is rejected."""
        for file in unfinished.iterdir():
            if file.name != CHECKPOINT:
                file.unlink()

        result = batch("triage", "t.csv", "--key", "id", "--resume")

        assert result.code == 2
        assert "does not match the files next to it: choose another folder with -o" in result.err
        assert [file.name for file in unfinished.iterdir()] == [CHECKPOINT]

    @pytest.mark.parametrize(
        "name", ["requests-00009.jsonl", "requests-000001.jsonl", "requests-x.jsonl", "requests-\u0661.jsonl"]
    )
    def test_request_file_that_the_batch_did_not_write(self, name, batch, unfinished, folder):
        """A request file that the batch cannot have written is rejected, and is not removed."""
        (unfinished / name).write_bytes(b"mine")
        before = snapshot(folder)

        result = batch("triage", "t.csv", "--key", "id", "--resume")

        assert result.code == 2
        assert "does not match the files next to it: choose another folder with -o" in result.err
        assert snapshot(folder) == before

    def test_later_files_are_rewritten(self, batch, unfinished, folder):
        """Request files later than the checkpoint, as left by a kill, are rewritten."""
        for number in (4, 5, 6):
            (unfinished / f"requests-0000{number}.jsonl").write_bytes(b"{}\n")

        batch("triage", "t.csv", "--key", "id", "--resume")
        batch("triage", "t.csv", "--key", "id", out="whole")

        assert snapshot(unfinished) == snapshot(folder / "whole")

    @pytest.mark.parametrize("line", [b"{", b"[]", b"\xff", b'{"custom_id":7}'])
    @pytest.mark.parametrize("name", [FIRST, "requests-00003.jsonl"])
    def test_line_that_is_not_a_request(self, name, line, batch, unfinished, folder):
        """If the batch has keys, an invalid line in a request file is reported with a one-line error."""
        file = unfinished / name
        first, following_lines = file.read_bytes().split(b"\n", 1)
        file.write_bytes(line.ljust(len(first)) + b"\n" + following_lines)
        before = snapshot(folder)

        result = batch("triage", "t.csv", "--key", "id", "--resume")

        assert result.code == 2
        assert is_one_line(result)
        assert (
            f"'out/{name}' contains a line that is not a request: choose another folder with -o" in result.err
        )
        assert {**snapshot(folder), f"out/{CHECKPOINT}": before[f"out/{CHECKPOINT}"]} == before

    def test_checkpoint_of_another_command(self, batch, unfinished, folder):
        """An unfinished batch of another command is rejected, and its files are kept."""
        (unfinished / "requests-00004.jsonl").write_bytes(b"{}\n")
        before = snapshot(folder)

        result = batch("triage", "t.csv", "--resume")

        assert result.code == 2
        assert "contains a batch from another command" in result.err
        assert snapshot(folder) == before
