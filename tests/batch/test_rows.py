"""Tables in files: typed columns, kinds that are told by their beginning, and what memory a table takes."""

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from promptkit.batch.rows import open_table
from tests.batch.conftest import requests_in

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

ROWS = {
    "day": [date(2026, 1, 31), date(2026, 2, 28)],
    "price": [Decimal("1.50"), Decimal("2.25")],
    "tags": [["a", "b"], ["c"]],
    "at": [{"x": 1}, None],
    "when": [datetime(2026, 1, 1, 9, tzinfo=UTC)] * 2,
}


def write(path):
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


@pytest.fixture(params=["pyarrow", "polars"])
def reader(request, monkeypatch):
    """Which of the two libraries is there."""
    other = {"pyarrow": "polars", "polars": "pyarrow"}[request.param]
    if request.param == "polars":
        monkeypatch.setitem(sys.modules, f"{other}.dataset", None)
    return request.param


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather"])
def test_typed_columns_keep_their_types(batch, folder, reader, name):
    """
    Dates, decimals, lists and structs are what the file has, and no text that is read again.
    """
    write(folder / name)

    ran = batch("typed", name)

    assert ran.code == 0, ran.err
    said = [line["body"]["messages"][0]["content"] for line in requests_in(folder / "out")]
    assert said == [
        "(datetime.date(2026, 1, 31), Decimal('1.50'), ['a', 'b'], {'x': 1})",
        "(datetime.date(2026, 2, 28), Decimal('2.25'), ['c'], None)",
    ]


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_a_file_that_is_none(batch, folder, reader, name):
    """
    The file is named.
    """
    (folder / name).write_bytes(b"no table")

    ran = batch("typed", name)

    assert ran.code == 2
    assert f"'{name}' cannot be read: " in ran.err


def test_without_a_library_the_extra_is_named(batch, folder, monkeypatch):
    """
    The command installs what reads such files.
    """
    write(folder / "t.parquet")
    for module in ("pyarrow.dataset", "polars"):
        monkeypatch.setitem(sys.modules, module, None)

    ran = batch("typed", "t.parquet")

    assert ran.code == 2
    assert "to read parquet, run: pip install" in ran.err
    assert "[batch]" in ran.err


@pytest.mark.parametrize(
    ("name", "data", "columns"),
    [
        ("t.tsv", b"a\tb\n1\t2\n", ["a", "b"]),
        ("t.csv", b"\xef\xbb\xbfa,b\n1,2\n", ["a", "b"]),
        ("t.ndjson", b'\xef\xbb\xbf{"a": "1", "b": "2"}\n', None),
        ("unknown", b'  {"a": "1", "b": "2"}\n', None),
        ("unknown", b"a,b\n1,2", ["a", "b"]),
        ("t.csv", b'a,b\r\n"1",2\r\n\r\n', ["a", "b"]),
    ],
)
def test_kinds_of_text(tmp_path, name, data, columns):
    """
    The suffix says what it is, or else the first character; a byte order mark is none.
    """
    (tmp_path / name).write_bytes(data)

    with open_table(str(tmp_path / name)) as table:
        rows = [table.read(raw) for chunk in table.chunks() for _, raw in chunk.rows]

    assert table.columns == columns
    assert rows == [{"a": "1", "b": "2"}]


def test_chunks_say_how_far_the_file_was_read(tmp_path):
    """
    At the end, all of it.
    """
    (tmp_path / "t.csv").write_text("a\n" + "x\n" * 600, encoding="utf-8")

    with open_table(str(tmp_path / "t.csv")) as table:
        found = [(chunk.first, len(chunk.rows), chunk.end) for chunk in table.chunks()]

    assert found == [(1, 250, 502), (251, 250, 1002), (501, 100, 1202)]
    assert table.size == 1202


def test_a_server_imports_nothing_of_it():
    """
    Neither batches nor the vendors' forms are loaded where prompts are served.
    """
    script = (
        "import sys, promptkit, promptkit.server, promptkit.transports.stdio, promptkit.cli.serve\n"
        "print([name for name in sys.modules if name.startswith(('promptkit.batch', 'promptkit.exports'))])"
    )

    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout == "[]\n"
