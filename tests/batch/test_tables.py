"""Table files: typed columns, detection of the format, and chunk sizes."""

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.batch.tables import open_table
from promptkit.errors.distribution import install_command
from tests.batch.conftest import rejected_in, requests_in

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

ROWS = {
    "day": [date(2026, 1, 31), date(2026, 2, 28)],
    "price": [Decimal("1.50"), Decimal("2.25")],
    "tags": [["a", "b"], ["c"]],
    "at": [{"x": 1}, None],
    "when": [datetime(2026, 1, 1, 9, tzinfo=UTC)] * 2,
}


def write_table(path):
    table = pa.table(ROWS)
    if path.suffix == ".parquet":
        from pyarrow import parquet

        parquet.write_table(table, path)
    elif path.suffix == ".feather":
        from pyarrow import feather

        feather.write_feather(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather"])
def test_typed_columns_keep_their_types(batch, folder, name):
    """Dates, decimals, lists and structs keep the types that they have in the file."""
    write_table(folder / name)

    result = batch("typed", name)

    assert result.code == 0, result.err
    texts = [line["body"]["messages"][0]["content"] for line in requests_in(folder / "out")]
    assert texts == [
        "(datetime.date(2026, 1, 31), Decimal('1.50'), ['a', 'b'], {'x': 1})",
        "(datetime.date(2026, 2, 28), Decimal('2.25'), ['c'], None)",
    ]


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_invalid_table_file(batch, folder, name):
    """A file that is not a table is reported by name."""
    (folder / name).write_bytes(b"no table")

    result = batch("typed", name)

    assert result.code == 2
    assert f"'{name}' cannot be read: " in result.err


def test_missing_library(batch, folder, monkeypatch):
    """Without pyarrow, the error contains the command that installs it."""
    write_table(folder / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)

    result = batch("typed", "t.parquet")

    assert result.code == 2
    assert f"reading .parquet files needs pyarrow: run {install_command('batch')}" in result.err


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has a file that cannot be read")
@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t"])
def test_read_error(batch, folder, name):
    """A read error is reported with the table's name."""
    (folder / name).symlink_to("/proc/self/mem")

    result = batch("triage", name)

    assert (result.code, result.err) == (2, f"promptkit: {name!r} cannot be read: Input/output error\n")


@pytest.mark.parametrize(
    ("name", "data", "columns"),
    [
        ("t.tsv", b"a\tb\n1\t2\n", ["a", "b"]),
        ("t.csv", b"\xef\xbb\xbfa,b\n1,2\n", ["a", "b"]),
        ("t.ndjson", b'\xef\xbb\xbf{"a": "1", "b": "2"}\n', None),
        ("unknown", b'  {"a": "1", "b": "2"}\n', None),
        ("unknown", b"a,b\n1,2", ["a", "b"]),
        ("t.csv", b'a,b\r\n"1",2\r\n\r\n', ["a", "b"]),
        ("t.csv", b"a;b\n1;2\n", ["a", "b"]),
        ("t.csv", b"a\tb\n1\t2\n", ["a", "b"]),
        ("unknown", b"\n \na\tb\n1\t2\n", ["a", "b"]),
        ("t.csv", b'"a";"b"\n"1";2\n', ["a", "b"]),
        ("t.json", b'[{"a": "1", "b": "2"}]', None),
        ("t.json", b'\xef\xbb\xbf\n[\n  {\n "a": "1",\n "b": "2"\n }\n]\n', None),
        ("t.json", b'{"a": "1", "b": "2"}\n', None),
        ("unknown", b' [{"a": "1", "b": "2"}]', None),
        ("t.jsonl", b'[{"a": "1", "b": "2"}]', None),
    ],
)
def test_formats_of_text(tmp_path, name, data, columns):
    """
    The suffix determines the format, or otherwise the first character.

    The delimiter is detected in the header.
    """
    (tmp_path / name).write_bytes(data)

    with open_table(str(tmp_path / name)) as table:
        rows = [table.parse(raw) for chunk in table.chunks for _, _, raw in chunk.iterate_rows()]

    assert table.columns == columns
    assert rows == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(
    ("delimiter", "name", "data"),
    [
        ("|", "t.csv", "a|b;c,d\n1|2\n"),
        ("|", "t.jsonl", "a|b;c,d\n1|2\n"),
        (",", "t.tsv", "a,b;c\td\n1,2\n"),
    ],
)
def test_named_delimiter(tmp_path, delimiter, name, data):
    """A named delimiter overrides the detection and the suffix."""
    (tmp_path / name).write_text(data, encoding="utf-8")

    with open_table(str(tmp_path / name), delimiter) as table:
        raws = [raw for chunk in table.chunks for _, _, raw in chunk.iterate_rows()]
        rows = [list(table.parse(raw).values()) for raw in raws]

    assert table.columns[0] == "a"
    assert rows == [["1", "2"]]


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("text", ["text"]),
        ("a;b,c", ["a;b", "c"]),
        ("name;size, cm;text", ["name", "size, cm", "text"]),
        ('"a;b;c",d', ["a;b;c", "d"]),
        ('"a\nb",c', ["a\nb", "c"]),
    ],
)
def test_detected_delimiter(tmp_path, header, columns):
    """The delimiter is the one that gives the most cells outside quotes; on a tie, it is a comma."""
    (tmp_path / "t.csv").write_text(f"{header}\n", encoding="utf-8")

    with open_table(str(tmp_path / "t.csv")) as table:
        assert table.columns == columns


def test_lines_of_an_array(tmp_path):
    """The items of a JSON array have the numbers of the lines on which they start."""
    text = '[\n{"a": "[1,\\n"},\n\n  {\n"a": [\n1]}, 7,\n"x", {"a": "[1,\\n"}]'
    (tmp_path / "t.json").write_text(text, encoding="utf-8")

    with open_table(str(tmp_path / "t.json")) as table:
        (chunk,) = table.chunks

    assert [line for line, _ in chunk.rows] == [2, 4, 6, 7, 7]
    assert chunk.end == len(text) - 1


def test_invalid_items_of_an_array(batch, folder):
    """Invalid items of a JSON array are rejected, and the other items are processed."""
    (folder / "t.json").write_bytes(b'[{"ticket": "a"},\n{"ticket": "\xff"},\n7, {"ticket": "b"}]')

    assert batch("triage", "t.json").code == 1
    assert len(requests_in(folder / "out")) == 2
    assert rejected_in(folder / "out") == [
        (2, None, "the line is not UTF-8: save the file as UTF-8"),
        (3, None, 'the line is not a JSON object: write {"COLUMN": VALUE, ...}'),
    ]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.json", b'[{"ticket": "a"}', "'t.json' is not a valid JSON array: "),
        ("t.json", b'[{"ticket": "a"}]\n[]', "'t.json' is not a valid JSON array: "),
        ("t.json", b"[" * 100_000, "'t.json' is not a valid JSON array: "),
        (
            "t.json",
            b"[" + b" " * 300 + b"]",
            "'t.json' is a JSON array of more than 256 bytes: convert it to",
        ),
        ("t.csv", "text".encode("utf-16"), "the header is not UTF-8: save the table as UTF-8"),
        ("t.csv", b"\n", "the table has no header: write the column names in the first line"),
    ],
    ids=range(6),
)
def test_invalid_text(batch, monkeypatch, name, data, message):
    """An invalid array, encoding or header is reported before anything is written."""
    monkeypatch.setattr("promptkit.batch.tables._MAX_ARRAY", 256 if b" " * 300 in data else 10**6)
    Path(name).write_bytes(data)

    result = batch("triage", name)

    assert result.code == 2
    assert message in result.err
    assert not Path("out").exists()


def test_rows_with_another_delimiter(batch, folder):
    """An invalid row names the delimiter of its table."""
    (folder / "t.csv").write_text("ticket;votes\na;1\nb;c;2\n", encoding="utf-8")

    assert batch("triage", "t.csv").code == 1
    ((line, _, reason),) = rejected_in(folder / "out")
    assert line == 3
    assert reason == "the line has 3 cells, but the header has 2: quote cells that contain ';'"


@pytest.mark.parametrize(
    ("delimiter", "character"), [("|", "|"), ("tab", "\t"), ("\\t", "\t"), ("\u00a6", "\u00a6")]
)
def test_delimiter_option(batch, folder, delimiter, character):
    """--delimiter takes one character, or the word tab."""
    (folder / "t.csv").write_text(f"ticket{character}votes\na,;b{character}7\n", encoding="utf-8")

    assert batch("triage", "t.csv", "--delimiter", delimiter).code == 0
    (line,) = requests_in(folder / "out")
    assert "Ticket: a,;b\nSeverity: low, votes: 7" in line["body"]["messages"][0]["content"]


@pytest.mark.parametrize("delimiter", ["", ";;", "\n", '"', "TAB"])
def test_invalid_delimiter_option(batch, folder, capsys, delimiter):
    """Any other value of --delimiter is rejected."""
    with pytest.raises(SystemExit):
        batch("triage", "t.csv", "--delimiter", delimiter)

    assert (
        f"{delimiter!r} is not a delimiter: write one character, or the word tab" in capsys.readouterr().err
    )


@pytest.mark.parametrize(("suffix", "row"), [("csv", "x\n"), ("jsonl", '{"a": 1}\n')])
def test_sizes_of_chunks(tmp_path, suffix, row):
    """
    A chunk has at most a 32nd of the rows before it, so that workers finish at about the same time.

    The first chunk has at most 16 rows, and no chunk has more than 1,000.
    """
    header = "a\n" if suffix == "csv" else ""
    (tmp_path / f"t.{suffix}").write_text(header + row * 50_000, encoding="utf-8")

    with open_table(str(tmp_path / f"t.{suffix}")) as table:
        chunks = list(table.chunks)

    assert [chunk.first for chunk in chunks] == [1, *(chunk.last + 1 for chunk in chunks[:-1])]
    assert all(len(chunk.rows) <= max(16, chunk.first // 32) for chunk in chunks)
    assert max(len(chunk.rows) for chunk in chunks) == 1_000
    assert chunks[-1].last == 50_000
    assert all(chunk.end == len(header) + chunk.last * len(row) for chunk in chunks)
    assert table.size == chunks[-1].end


@given(
    st.lists(st.sampled_from(['{"a": 1}', "", " ", '{"a": "' + "x" * 30 + '"}', "y" * 70, "{", "z" * 50])),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_lines_are_rows(lines, line_end, is_ended):
    """Each line of JSON that is not blank is one row, with the number of its line, unless it is too long."""
    text = line_end.join(lines) + (line_end if is_ended else "")
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("promptkit.batch.tables._MAX_ROW", 52)
        file = Path(folder, "t.jsonl")
        file.write_text(text, encoding="utf-8", newline="")
        with open_table(str(file)) as table:
            rows = [(line, raw) for chunk in table.chunks for _, line, raw in chunk.iterate_rows()]

    expected = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    assert [line for line, _ in rows] == [line for line, _ in expected]
    for (_, raw), (_, line) in zip(rows, expected, strict=True):
        if len(line) == 70:
            assert str(raw) == "the line is longer than 52 bytes"
        else:
            assert raw.strip() == line.encode()


def test_server_imports_no_batches():
    """Serving prompts imports neither batches nor exports."""
    script = (
        "import sys, promptkit, promptkit.server, promptkit.transports.stdio, promptkit.cli.serve\n"
        "print([name for name in sys.modules if name.startswith(('promptkit.batch', 'promptkit.exports'))])"
    )

    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert result.stdout == "[]\n"
