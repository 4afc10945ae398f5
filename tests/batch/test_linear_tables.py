"""Reading tables and results takes linear time: 16 times the size takes at most 24 times the calls."""

import json
import sys

import msgspec
import pytest

from promptkit.batch.columns import RowError
from promptkit.batch.joining import join_results, open_results
from promptkit.batch.shards import Checkpoint, open_batch
from promptkit.batch.tables import open_table, parse_row
from promptkit.batch.vendor_formats import LINE_FORMATS
from promptkit.files.folder import Folder


def count_calls(function, *arguments):
    """Return the number of calls, of Python and C functions, that one call of *function* makes."""
    count = 0

    def on_event(frame, event, function):
        nonlocal count
        count += event in ("call", "c_call")

    previous = sys.getprofile()
    sys.setprofile(on_event)
    try:
        function(*arguments)
    finally:
        sys.setprofile(previous)
    return count


def is_linear(function, make, size):
    """
    Return whether the number of calls that *function* makes is linear in the size of its input from *make*.
    """
    small, large = make("small", size), make("large", 16 * size)
    function(*small)  # fills caches
    return count_calls(function, *large) <= 24 * count_calls(function, *small)


def read_rows(path):
    """Read all rows of a table."""
    with open_table(str(path)) as table:
        for chunk in table.chunks:
            for _, _, raw in chunk.iterate_rows():
                try:
                    parse_row(raw, table.parse)
                except RowError:
                    continue


def column_names(size):
    return [f"column {number}" for number in range(size)]


#: By kind: a file suffix, and a function from size to text.
TEXTS = {
    "columns of CSV": (".csv", lambda size: f"{','.join(column_names(size))}\n{',' * (size - 1)}\n"),
    "rows of CSV": (".csv", lambda size: "a,b\n" + "1,2\n" * size),
    "blank lines of CSV": (".csv", lambda size: "a\n" + "\n" * size),
    "lines in quotes without end": (".csv", lambda size: 'a\n"' + "x\n" * size),
    "rows with invalid quotes": (".csv", lambda size: "a\n" + '"x"y\n' * size),
    "keys of a row of JSON lines": (".jsonl", lambda size: json.dumps(dict.fromkeys(column_names(size)))),
    "rows of JSON lines": (".jsonl", lambda size: '{"a":1}\n' * size),
    "items of a JSON array": (".json", lambda size: f"[{'7,' * size}7]"),
    "lines of a JSON array": (".json", lambda size: "[\n{}" + ",\n\n{}" * size + "]"),
    "blank lines of JSON lines": (".jsonl", lambda size: "\n" * size),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_text_tables(kind, tmp_path):
    """Reading a text table takes linear time."""
    suffix, text = TEXTS[kind]

    def make(name, size):
        path = tmp_path / f"{name}{suffix}"
        path.write_text(text(size), encoding="utf-8")
        return (path,)

    assert is_linear(read_rows, make, 200)


@pytest.mark.parametrize("kind", ["columns", "rows"])
def test_parquet_tables(kind, tmp_path):
    """Reading a Parquet table takes linear time."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def make(name, size):
        if kind == "columns":
            table = pa.table({column: [1] for column in column_names(size)})
        else:
            table = pa.table({"day": pa.array(range(size), pa.timestamp("ms"))})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
        return (tmp_path / f"{name}.parquet",)

    assert is_linear(read_rows, make, 100)


@pytest.mark.parametrize("kind", ["lines", "lines of one row", "parts"])
def test_joining_results(kind, tmp_path):
    """Joining results takes linear time."""

    def make(name, size):
        line = '{{"custom_id":"{}-0123456789abcdef","result":{}}}\n'
        answer = '{"content":[{"text":"A"}]}'
        if kind == "lines":
            text = "".join(line.format(number, answer) for number in range(1, size))
        elif kind == "lines of one row":
            text = line.format(1, answer) * size
        else:
            text = line.format(1, '{"content":[' + '{"text":"A"},' * size + "7]}")
        results, rows = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.csv"
        results.write_text(text, encoding="utf-8")
        rows.write_text("a\n" + "1\n" * (size if kind == "lines" else 1), encoding="utf-8")
        return results, rows

    def join(results, rows):
        batch = Folder(tmp_path / "batch")
        with open_table(str(rows)) as table, open_results(results, batch, by_number=True) as opened:
            for _ in join_results(table, opened, None):
                pass

    assert is_linear(join, make, 200)


@pytest.mark.parametrize("kind", ["requests", "files"])
def test_resumed_batches(kind, tmp_path):
    """Checking an unfinished batch and reading its identifiers takes linear time."""
    form, line = LINE_FORMATS["gemini"], b'{"key":"1"}\n'

    def make(name, size):
        folder = tmp_path / name
        folder.mkdir()
        files = size if kind == "files" else 1
        lines = size // files
        for number in range(1, files + 1):
            (folder / f"requests-{number:05}.jsonl").write_bytes(line * lines)
        checkpoint = Checkpoint("it", rows=size, shard=files, lines=lines, requests=size, last="x")
        checkpoint.size, checkpoint.bytes = lines * len(line), size * len(line)
        (folder / ".promptkit-batch.json").write_bytes(msgspec.json.encode(checkpoint).ljust(512))
        return (Folder(folder),)

    def resume(folder):
        with open_batch(folder, form, "it", resume=True) as writer:
            writer.require_unique_keys()

    assert is_linear(resume, make, 100)


def test_quadratic_time_is_detected():
    """The measurement recognizes quadratic time."""

    def pairs(size):
        for number in range(size):
            for other in range(number):
                abs(other)

    assert not is_linear(pairs, lambda _, size: (size,), 20)
