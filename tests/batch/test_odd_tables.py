"""Untrusted tables and results: pipes and devices, broken files, and rows of unusual shapes."""

import json
import os
import socket
import sqlite3
import struct
import subprocess
import sys
from functools import partial

import pytest

from promptkit.batch.columns import Columns
from promptkit.batch.renderer import Renderer
from promptkit.cli.loading import load_recipes
from tests.batch.conftest import rejected_in, requests_in
from tests.batch.test_joining import result_line

pytestmark = pytest.mark.timeout(30)

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")

KINDS = ["pipe", "link to a pipe", "link to a device", "socket", "folder"]


def create_entry(kind, path):
    """Create an entry that is not a regular file at *path*."""
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link to a pipe":
            os.mkfifo(f"{path}-pipe")
            path.symlink_to(f"{path}-pipe")
        case "link to a device":
            path.symlink_to("/dev/zero")
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(os.path.relpath(path))
        case "folder":
            path.mkdir()


def is_one_line(result):
    return (
        result.err.startswith("promptkit: ") and result.err.count("\n") == 1 and "Traceback" not in result.err
    )


@posix
class TestTablesThatAreNotFiles:
    @pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t", "t.parquet", "t.arrow"])
    @pytest.mark.parametrize("kind", KINDS)
    def test_odd_entries_are_rejected(self, kind, name, batch, folder):
        """A table that is not a regular file is rejected with a one-line error, without waiting for data."""
        create_entry(kind, folder / name)

        for arguments in (("triage", name), ("--join", "r.jsonl", name)):
            result = batch(*arguments)

            assert result.code == 2
            assert is_one_line(result)
            assert f"{name!r} cannot be read: " in result.err
        assert not (folder / "out").exists()

    def test_link_to_a_table_is_followed(self, batch, folder):
        """A link to a table is followed, because the user named it."""
        (folder / "other.csv").write_text("ticket\na\n", encoding="utf-8")
        (folder / "t.csv").symlink_to("other.csv")

        assert batch("triage", "t.csv").code == 0

    def test_process_substitution_is_read(self, folder):
        """A table from process substitution, `<(command)`, can be read."""
        command = (
            f"'{sys.executable}' -m promptkit batch triage <(printf 'ticket\\na\\n') --for gemini -o out"
        )

        result = subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True, check=False)

        assert (result.returncode, result.stderr) == (0, "")
        assert len(requests_in(folder / "out")) == 1


class TestResults:
    @pytest.fixture(autouse=True)
    def table(self, folder):
        """A table of two rows."""
        (folder / "t.csv").write_text("ticket\na\nb\n", encoding="utf-8")
        return folder / "t.csv"

    @posix
    @pytest.mark.parametrize("kind", KINDS[:-1])
    def test_odd_result_file_is_rejected(self, kind, batch, folder):
        """A result file that is a pipe or a device is rejected with a one-line error."""
        create_entry(kind, folder / "r.jsonl")

        result = batch("--join", "r.jsonl", "t.csv")

        assert result.code == 2
        assert is_one_line(result)
        assert "'r.jsonl' cannot be read: " in result.err

    @posix
    @pytest.mark.parametrize("kind", [*KINDS, "link", "dangling link"])
    def test_odd_file_in_the_result_folder_is_rejected(self, kind, batch, folder):
        """A folder of results must contain only regular files, because links can come with the folder."""
        (folder / "results").mkdir()
        (folder / "elsewhere.jsonl").write_text(result_line("1-0123456789abcdef", "A"), encoding="utf-8")
        (folder / "results" / "a.jsonl").write_text(result_line("2-0123456789abcdef", "B"), encoding="utf-8")
        if "link" in kind and "to" not in kind:
            name = "elsewhere.jsonl" if kind == "link" else "nosuch"
            (folder / "results" / "b.jsonl").symlink_to(folder / name)
        else:
            create_entry(kind, folder / "results" / "b.jsonl")

        result = batch("--join", "results", "t.csv")

        assert (result.code, result.out) == (2, "")
        assert is_one_line(result)
        assert "'results/b.jsonl' cannot be read: " in result.err

    @posix
    def test_linked_result_folder_is_rejected(self, batch, folder, tmp_path_factory):
        """A relative link as the result folder is rejected, because it can come with the repository."""
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        (elsewhere / "a.jsonl").write_text(result_line("1-0123456789abcdef", "A"), encoding="utf-8")
        (folder / "results").symlink_to(elsewhere)

        result = batch("--join", "results", "t.csv")

        assert (result.code, result.out) == (2, "")
        assert is_one_line(result)
        assert "'results' cannot be read: it is a link" in result.err

    @pytest.mark.parametrize(
        "line",
        [
            b"7",
            b"null",
            b'"custom_id"',
            b'["custom_id"]',
            b"\xff",
            b"[" * 100_000,
            b'{"custom_id":' * 100_000,
            b'{"custom_id": ' + b"1" * 5000 + b"}",
            b'{"custom_id": 1e999}',
            b'{"custom_id": "\\ud800"}',
            b'{"custom_id": NaN}',
            b"\0" * 100,
        ],
        ids=range(12),
    )
    def test_line_that_is_not_a_result(self, line, batch, folder):
        """A line that is not a result is reported with its file and byte offset."""
        (folder / "r.jsonl").write_bytes(line)

        result = batch("--join", "r.jsonl", "t.csv")

        assert (result.code, result.out) == (2, "")
        assert is_one_line(result)
        assert "'r.jsonl' has no result at byte 0: " in result.err

    def test_endless_line(self, batch, folder):
        """A huge file without line ends is rejected once the maximum line length is exceeded."""
        with (folder / "r.jsonl").open("wb") as file:
            file.truncate(2**36)

        result = batch("--join", "r.jsonl", "t.csv")

        assert result.code == 2
        assert is_one_line(result)
        assert "the line at byte 0 of 'r.jsonl' is longer than 67,108,864 bytes" in result.err

    @pytest.mark.parametrize(
        "members",
        [
            '"response": []',
            '"response": {"output": [7, null, {"type": "message"}, {"type": "message", "content": 7}]}',
            '"response": {"choices": [{"message": {"content": null}}]}',
            '"response": {"candidates": [{"content": {"parts": [7, {"text": 7}, null]}}]}',
            '"error": ' + "[" * 900 + "]" * 900,
            '"response": ' + "[" * 900 + "]" * 900,
            '"response": ' + '{"response": ' * 900 + "{}" + "}" * 900,
            '"response": '
            + '{"output": [{"type": "message", "content": [], "x": 1}, ' * 300
            + '{"type": "message"}'
            + "]}" * 300,
        ],
        ids=range(8),
    )
    def test_result_without_an_answer(self, members, batch, folder):
        """A row without an answer gets an error, and the other rows get their answers."""
        first = f'{{"custom_id": "1-0123456789abcdef", {members}}}\n'
        (folder / "r.jsonl").write_text(first + result_line("2-0123456789abcdef", "B"), encoding="utf-8")

        result = batch("--join", "r.jsonl", "t.csv")

        first, second = map(json.loads, result.out.splitlines())
        assert result.code == 1
        assert first["answer"] is None
        assert first["error"]
        assert second["answer"] == "B"

    def test_row_that_cannot_be_written_as_json(self, batch, folder, monkeypatch):
        """A row that cannot be written as JSON gets an error, and the other rows get their answers."""

        class Odd:
            def __str__(self):
                raise LookupError(self.__class__.__name__)

        rows = {b"1\n": {"a": Odd()}, b"2\n": {"a": "b"}}
        monkeypatch.setattr("promptkit.batch.tables._row_from_json", rows.__getitem__)
        (folder / "t.jsonl").write_text("1\n2\n", encoding="utf-8")
        results = result_line("1-0123456789abcdef", "A") + result_line("2-0123456789abcdef", "B")
        (folder / "r.jsonl").write_text(results, encoding="utf-8")

        result = batch("--join", "r.jsonl", "t.jsonl")

        first, second = map(json.loads, result.out.splitlines())
        assert result.code == 1
        assert first["error"] == "the row cannot be written as JSON: LookupError: Odd"
        assert second == {"line": 2, "row": {"a": "b"}, "answer": "B", "error": None}


DEEP = "[" * 900 + "]" * 900

#: JSON values that are mostly invalid as arguments of the prompt.
ODD_VALUES = [
    DEEP,
    '{"a":' * 450 + "1" + "}" * 450,
    "-" + "1" * 4200,
    "1e308",
    "[1e308, -0.0]",
    '"\\u0000"',
    '"\\u2028"',
    "true",
]


class TestOddRows:
    @pytest.mark.parametrize("column", ["ticket", "severity", "votes"])
    @pytest.mark.parametrize("value", ODD_VALUES, ids=range(len(ODD_VALUES)))
    def test_row_with_an_odd_value(self, value, column, batch, folder):
        """A row with an unusual value becomes a request or is rejected, and the other rows are rendered."""
        odd = ", ".join(
            f'"{name}": {value if name == column else 1}' for name in ("ticket", "votes", "severity")
        )
        (folder / "t.jsonl").write_text(
            f'{{"ticket": "a"}}\n{{{odd}}}\n{{"ticket": "b"}}\n', encoding="utf-8"
        )

        result = batch("triage", "t.jsonl")

        assert result.code in (0, 1)
        assert result.err == ""
        done = {line["custom_id"].partition("-")[0] for line in requests_in(folder / "out")}
        rejected = {str(line) for line, _, _ in rejected_in(folder / "out")} if result.code else set()
        assert done | rejected == {"1", "2", "3"}
        assert {"1", "3"} <= done

    @pytest.mark.parametrize("value", [DEEP, "-" + "1" * 4200, "[null]", "{}", "1.5", "true"], ids=range(6))
    def test_odd_key(self, value, batch, folder):
        """A row with an unusual key does not stop the other rows."""
        lines = [
            '{"id": "a", "ticket": "a"}',
            f'{{"id": {value}, "ticket": "x"}}',
            '{"id": "b", "ticket": "b"}',
        ]
        (folder / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")

        result = batch("triage", "t.jsonl", "--key", "id")
        joined = batch("--join", "r.jsonl", "t.jsonl", "--key", "id")

        assert result.err == ""
        assert {"a", "b"} <= {line["custom_id"] for line in requests_in(folder / "out")}
        assert "Traceback" not in joined.err

    def test_unexpected_error(self, batch, folder, monkeypatch):
        """A row with an unexpected error is rejected with the exception's name; the others are rendered."""

        def read(self, row):
            if row["ticket"] == "odd":
                raise LookupError(row["ticket"])
            return original(self, row)

        original = Columns.extract_arguments
        monkeypatch.setattr(Columns, "extract_arguments", read)
        (folder / "t.csv").write_text("ticket\na\nodd\nb\n", encoding="utf-8")

        assert batch("triage", "t.csv").code == 1
        assert rejected_in(folder / "out") == [(3, None, "the row cannot be rendered: LookupError: odd")]
        assert len(requests_in(folder / "out")) == 2

        (prompt,) = [
            prompt for prompt in load_recipes(["recipes"]).prompts if prompt.options.name == "triage"
        ]
        rows = Renderer(prompt)([{"ticket": "a"}, {"ticket": "odd"}])
        assert [row["error"] for row in rows] == [None, "the row cannot be rendered: LookupError: odd"]

    def test_secret_in_an_unexpected_error(self, batch, folder, monkeypatch):
        """A secret in an unexpected error is redacted."""

        def read(self, row):
            raise LookupError(row["token"])

        monkeypatch.setattr(Columns, "extract_arguments", read)
        (folder / "t.csv").write_text("ticket,token\na,s3cr3t-t0k3n\n", encoding="utf-8")

        assert batch("fails", "t.csv").code == 1
        assert "s3cr3t" not in (folder / "out" / "rejected.jsonl").read_text(encoding="utf-8")


class TestHeaders:
    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"a\xff,b\n1,2\n", "the header is not UTF-8: save the table as UTF-8"),
            (b'a,"b\n1,2\n', "the header cannot be read: unexpected end of data"),
            (b'"' + (b"x" * 1000 + b"\n") * 17_000, "the header cannot be read: "),
        ],
        ids=range(3),
    )
    def test_unreadable_header(self, data, reason, batch, folder):
        """An unreadable header is rejected with a one-line error."""
        (folder / "t.csv").write_bytes(data)

        result = batch("triage", "t.csv")

        assert result.code == 2
        assert is_one_line(result)
        assert reason in result.err

    def test_error_for_many_columns_is_short(self, batch, folder):
        """An error lists the first column names, and the number of the remaining ones."""
        (folder / "t.csv").write_text(",".join(f"c{n}" for n in range(20_000)), encoding="utf-8")

        for arguments in ((), ("--key", "id", "--map", "c1=ticket")):
            result = batch("triage", "t.csv", *arguments)

            assert result.code == 2
            assert is_one_line(result)
            assert "'c19', and 19,980 more" in result.err
            assert len(result.err) < 1000

    def test_row_of_many_lines(self, batch, folder):
        """A row of many lines is limited to the maximum length of a line."""
        with (folder / "t.csv").open("wb") as file:
            file.write(b'ticket\na\n"')
            for _ in range(20):
                file.write((b"x" * 1000 + b'","\n') * 2_000)
            file.write(b'"\n')

        result = batch("triage", "t.csv")

        assert result.code == 1
        reasons = {reason for _, _, reason in rejected_in(folder / "out")}
        assert any("longer than 16,777,216 bytes" in reason for reason in reasons)


class TestTypedTables:
    @pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather"])
    @pytest.mark.parametrize("part", [0, 4, 0.3, 0.9])
    def test_truncated_file(self, name, part, batch, folder):
        """A truncated file is rejected with a one-line error."""
        write_table(folder / name)
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: part if isinstance(part, int) else int(len(data) * part)])

        result = batch("triage", name)

        assert result.code == 2
        assert is_one_line(result)
        assert f"{name!r} cannot be read: " in result.err

    def test_offsets_beyond_the_data(self, batch, folder):
        """Invalid offsets in an Arrow file are rejected, because pyarrow would crash on them."""
        pa = pytest.importorskip("pyarrow")
        table = pa.table({"ticket": ["a"] * 8, "tags": [[1, 2]] * 8})
        with pa.OSFile(str(folder / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        data, offsets = (folder / "t.arrow").read_bytes(), struct.pack("<4i", 0, 2, 4, 6)
        assert data.count(offsets) == 1
        (folder / "t.arrow").write_bytes(data.replace(offsets, struct.pack("<4i", 0, 2, 10**6, 6)))

        result = batch("triage", "t.arrow")

        assert result.code == 2
        assert is_one_line(result)
        assert "'t.arrow' cannot be read: " in result.err

    def test_value_that_python_cannot_represent(self, batch, folder):
        """A table with a value that Python cannot represent is rejected with a one-line error."""
        pa = pytest.importorskip("pyarrow")
        days = pa.array([0, 2**60, 1], pa.int64()).view(pa.timestamp("ms"))
        table = pa.table({"ticket": ["a", "b", "c"], "day": days})
        with pa.OSFile(str(folder / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)

        result = batch("triage", "t.arrow")

        assert result.code == 2
        assert is_one_line(result)
        assert "'t.arrow' cannot be read: " in result.err


def write_table(path):
    """Write a table with typed columns."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pa.table({"ticket": [f"ticket {n}" for n in range(2000)], "votes": list(range(2000))})
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    elif path.suffix == ".feather":
        feather.write_feather(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)


@pytest.mark.parametrize(
    "arguments", [("triage", "t.csv", "--key", "id"), ("--join", "r.jsonl", "t.csv", "--key", "id")]
)
def test_disk_too_full_for_keys(arguments, batch, folder, monkeypatch):
    """A disk too full to store the keys yields a one-line error."""

    class FullDisk(sqlite3.Connection):
        def execute(self, statement, *values):
            if "INSERT" not in statement:
                return super().execute(statement, *values)
            msg = "database or disk is full"
            raise sqlite3.OperationalError(msg)

        executemany = execute

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=FullDisk))
    (folder / "t.csv").write_text("id,ticket\na,a\n", encoding="utf-8")
    (folder / "r.jsonl").write_text(result_line("a", "A"), encoding="utf-8")

    result = batch(*arguments)

    assert result.code in (1, 2)
    assert is_one_line(result)
    assert "the keys of the rows cannot be stored: database or disk is full" in result.err
