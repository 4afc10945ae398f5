"""Reading tables and results takes linear time: 16 times the size takes at most 24 times as long."""

import itertools
import json
import sys
import time
from math import inf

import msgspec
import pytest

from benchmarks.hostile import TIMES, Growth
from promptkit.batch.checkpoints import Checkpoint
from promptkit.batch.joining import joined
from promptkit.batch.request_lines import LINE_FORMATS
from promptkit.batch.rows import RowError, row_of
from promptkit.batch.shards import Shards
from promptkit.batch.tables import open_table
from promptkit.files.folder import Folder

pytestmark = pytest.mark.timeout(120)

#: How often an input is measured before it counts as not linear.
CHANCES = 12


def growth(kind, small, large):
    """Return the growth of the CPU time from *small* to *large*, using the minimum of several runs."""
    times = [inf, inf]
    for _ in range(CHANCES):
        for number, measured in enumerate((small, large)):
            began = time.process_time()
            measured()
            times[number] = min(times[number], time.process_time() - began)
        if Growth(kind, *times).linear:
            break
    return Growth(kind, *times)


def read(path):
    """Read all rows of a table."""
    with open_table(str(path)) as table:
        for _, _, raw in table.rows():
            try:
                row_of(raw, table.read)
            except RowError:
                continue


def names(size):
    return [f"column {number}" for number in range(size)]


#: By kind: a file suffix, the small table's size, and a function from size to text.
TEXTS = {
    "columns of CSV": (".csv", 1_000, lambda size: f"{','.join(names(size))}\n{',' * (size - 1)}\n"),
    "columns of TSV": (".tsv", 1_000, lambda size: "\t".join(names(size)) + "\n"),
    "rows of CSV": (".csv", 1_000, lambda size: "a,b\n" + "1,2\n" * size),
    "blank lines of CSV": (".csv", 1_000, lambda size: "a\n" + "\n" * size),
    "cells in a row of CSV": (".csv", 10_000, lambda size: "a\n" + "," * size),
    "lines in quotes without end": (".csv", 1_000, lambda size: 'a\n"' + "x\n" * size),
    "quotes in a cell": (".csv", 10_000, lambda size: 'a\n"' + '""' * size + '"\n'),
    "rows with invalid quotes": (".csv", 1_000, lambda size: "a\n" + '"x"y\n' * size),
    "keys of a row of JSON lines": (".jsonl", 1_000, lambda size: json.dumps(dict.fromkeys(names(size)))),
    "one key many times": (".jsonl", 10_000, lambda size: "{" + '"a":1,' * size + '"a":1}'),
    "rows of JSON lines": (".jsonl", 1_000, lambda size: '{"a":1}\n' * size),
    "blank lines of JSON lines": (".jsonl", 10_000, lambda size: "\n" * size),
    "escapes in a string": (".jsonl", 10_000, lambda size: '{"a":"' + "\\u00e9" * size + '"}'),
    "brackets without end": (".jsonl", 10_000, lambda size: "[" * size),
    "blanks at the beginning": ("", 10_000, lambda size: " " * size),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_tables_of_text(kind, tmp_path):
    """Reading a text table takes linear time."""
    suffix, size, text = TEXTS[kind]
    small, large = tmp_path / f"small{suffix}", tmp_path / f"large{suffix}"
    for path, count in ((small, size), (large, size * TIMES)):
        path.write_text(text(count), encoding="utf-8")

    assert growth(kind, lambda: read(small), lambda: read(large)).linear


@pytest.mark.parametrize("reader", ["pyarrow", "polars"])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("kind", ["columns", "rows", "rows of which one is odd"])
def test_tables_of_types(kind, suffix, reader, tmp_path, monkeypatch):
    """Reading Parquet and Arrow tables takes linear time with either library."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    if reader == "polars":
        pytest.importorskip("polars")
        monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)

    def write(name, size):
        if kind == "columns":
            table = pa.table({column: [1] for column in names(size)})
        else:
            odd = 2**60 if "odd" in kind else 0
            days = pa.array([odd, *range(size)], pa.int64()).view(pa.timestamp("ms"))
            table = pa.table({"day": days})
        path = tmp_path / f"{name}{suffix}"
        if suffix == ".parquet":
            parquet.write_table(table, path)
        else:
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
        return path

    small, large = write("small", 1_000), write("large", 1_000 * TIMES)

    assert growth(kind, lambda: read(small), lambda: read(large)).linear


@pytest.mark.parametrize("kind", ["lines", "lines of one row", "parts", "wrappers"])
def test_results(kind, tmp_path):
    """Joining results takes linear time."""

    def write(name, size):
        line = '{{"custom_id":"{}-0123456789abcdef","result":{}}}\n'
        answer = '{"content":[{"text":"A"}]}'
        match kind:
            case "lines":
                text = "".join(line.format(number, answer) for number in range(1, size))
            case "lines of one row":
                text = line.format(1, answer) * size
            case "parts":
                text = line.format(1, '{"content":[' + '{"text":"A"},' * size + "7]}")
            case "wrappers":
                text = line.format(1, '{"message":' * 200 + "1" + "}" * 200) * (size // 100)
        results, rows = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.csv"
        results.write_text(text, encoding="utf-8")
        rows.write_text("a\n" + "1\n" * (size if kind == "lines" else 1), encoding="utf-8")
        return results, rows

    def join(results, rows):
        with open_table(str(rows)) as table:
            for _ in joined(table, results, None):
                pass

    small, large = write("small", 1_000), write("large", 1_000 * TIMES)

    assert growth(kind, lambda: join(*small), lambda: join(*large)).linear


@pytest.mark.parametrize("kind", ["requests", "files"])
def test_batches_that_are_resumed(kind, tmp_path):
    """Checking an unfinished batch and reading its identifiers takes linear time."""
    form, line = LINE_FORMATS["gemini"], b'{"key":"1"}\n'

    def write(name, size):
        folder = tmp_path / name
        folder.mkdir()
        files = size if kind == "files" else 1
        lines = size // files
        for number in range(1, files + 1):
            (folder / f"requests-{number:05}.jsonl").write_bytes(line * lines)
        done = Checkpoint("it", rows=size, shard=files, lines=lines, requests=size, last="x")
        done.size, done.bytes = lines * len(line), size * len(line)
        (folder / ".promptkit-batch.json").write_bytes(msgspec.json.encode(done).ljust(512))
        return Folder(folder)

    def resume(folder):
        with Shards(folder, form, "it", resume=True) as shards:
            assert sum(1 for _ in shards.identifiers()) == shards.done.requests

    size = 100 if kind == "files" else 1_000
    small, large = write("small", size), write("large", size * TIMES)

    assert growth(kind, lambda: resume(small), lambda: resume(large)).linear


def test_quadratic_time_is_seen():
    """The measurement recognizes quadratic time."""

    def pairs(size):
        return sum(1 for _ in itertools.product(range(size), repeat=2))

    assert not growth("quadratic", lambda: pairs(100), lambda: pairs(100 * TIMES)).linear
