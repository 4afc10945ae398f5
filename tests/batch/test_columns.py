"""Columns whose names are spelt unlike the arguments: blanks, case, and near misses."""

from textwrap import dedent

import pytest

from promptkit import prompt
from promptkit.batch import ColumnError, Renderer
from tests.batch.conftest import rejected_in, requests_in

NEAR_MISSES = ["Votes", "VOTES", "vote", "voets"]


@prompt
def ask(ticket: str, votes: int = 0) -> str:
    """Ask about a ticket."""
    return f"{ticket}: {votes}"


@prompt
def join(names: list[str]) -> str:
    """Join names."""
    return "+".join(names)


def spelling_error(column):
    return (
        f"the table has no column 'votes', but it has a similar column {column!r}: rename that column, "
        "map it to the argument, or set a value for all rows"
    )


@pytest.mark.parametrize(
    "header", ["ticket, votes", " ticket ,votes ", "ticket,\u00a0votes", "ticket,votes,"]
)
def test_blanks_in_a_header_are_ignored(batch, folder, header):
    """Blanks around a column name in CSV are ignored, and so are columns without a name."""
    (folder / "t.csv").write_text(f"{header}\nslow,7{',' * (header.count(',') - 1)}\n", encoding="utf-8")

    result = batch("triage", "t.csv")

    assert result.code == 0, result.err
    assert "votes: 7" in requests_in(folder / "out")[0]["body"]["messages"][0]["content"]
    assert "not used" not in result.out


@pytest.mark.parametrize("column", NEAR_MISSES)
class TestNearMisses:
    def test_in_a_header(self, batch, folder, column):
        """A column that is probably a misspelt argument is rejected before anything is written."""
        (folder / "t.csv").write_text(f"ticket,{column}\nslow,7\n", encoding="utf-8")

        result = batch("triage", "t.csv")

        assert (result.code, result.err) == (2, f"promptkit: {spelling_error(column)}\n")
        assert not (folder / "out").exists()

    @pytest.mark.parametrize("options", [["--map", "{}=votes"], ["--set", "votes=7"]], ids=["map", "set"])
    def test_options_that_resolve_it(self, batch, folder, column, options):
        """A misspelt column is accepted with --map, which uses it, or with --set, which ignores it."""
        (folder / "t.csv").write_text(f"ticket,{column}\nslow,7\n", encoding="utf-8")

        result = batch("triage", "t.csv", *(option.format(column) for option in options))

        assert result.code == 0, result.err
        assert "votes: 7" in requests_in(folder / "out")[0]["body"]["messages"][0]["content"]

    @pytest.mark.parametrize("engine", ["pyarrow", "polars", "pandas"])
    def test_in_a_data_frame(self, engine, column):
        """`Renderer` rejects a data frame with a misspelt column."""
        library = pytest.importorskip(engine)
        data = {"ticket": ["a"], column: [7]}
        table = library.table(data) if engine == "pyarrow" else library.DataFrame(data)

        with pytest.raises(ColumnError) as caught:
            Renderer(ask)(table)

        assert str(caught.value) == spelling_error(column)
        assert Renderer(ask, columns={column: "votes"})(table)["messages"][0] is not None


def test_key_is_not_a_near_miss(batch, folder):
    """The key column is used, so it is not taken for a misspelt argument."""
    (folder / "t.csv").write_text("ticket,vote\na,x-1\n", encoding="utf-8")

    assert batch("triage", "t.csv", "--key", "vote").code == 0


def test_unused_columns_are_listed(batch, folder):
    """The summary lists the columns that no argument uses; other names are not an error."""
    (folder / "t.csv").write_text("id,ticket,created_at,voter_count\n1,a,b,3\n", encoding="utf-8")

    with_key, without_key = batch("triage", "t.csv", "--key", "id"), batch("triage", "t.csv", out="other")

    assert with_key.out.splitlines()[-1] == "columns not used: 'created_at', 'voter_count'"
    assert without_key.out.splitlines()[-1] == "columns not used: 'id', 'created_at', 'voter_count'"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_unused_columns_of_json_are_listed(batch, folder, workers):
    """In JSON, where each row can have different columns, the summary lists the unused ones of all rows."""
    rows = [
        '{"id": 1, "ticket": "a", "z": 1}',
        '{"id": 2, "ticket": "b", "a": 1}',
        '{"id": 3, "ticket": "c", "": 1}',
    ]
    (folder / "t.jsonl").write_text("\n".join(rows), encoding="utf-8")

    result = batch("triage", "t.jsonl", "--key", "id", "--workers", workers)

    assert result.out.splitlines()[-1] == "columns not used: 'z', 'a'"


def test_number_of_unused_columns_is_limited(batch, folder):
    """Names of unused columns do not fill the memory, even if each row has a different column."""
    rows = "".join(f'{{"ticket": "a", "c{number}": 1}}\n' for number in range(5_000))
    (folder / "t.jsonl").write_text(rows, encoding="utf-8")

    listed, _, count = batch("triage", "t.jsonl").out.splitlines()[-1].rpartition(", and ")

    assert listed.startswith("columns not used: 'c0', 'c1', ")
    assert int(count.removesuffix(" more").replace(",", "")) < 2_000


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_empty_cells_are_missing(batch, folder, name):
    """An empty cell in CSV means that the argument is missing, even for text. In JSON, "" is a value."""
    source = """
        from promptkit import prompt

        @prompt
        def say(text: str, to: str = "all", at: str | None = None):
            return f"{text!r} {to!r} {at!r}"
    """
    (folder / "say.py").write_text(dedent(source), encoding="utf-8")
    separator = "," if name == "t.csv" else "\t"
    rows = ["text,to,at", 'a,,""', ",you,", "b,you,now"]
    (folder / name).write_text("\n".join(rows).replace(",", separator), encoding="utf-8")
    (folder / "t.jsonl").write_text('{"text": "", "to": "", "at": ""}\n', encoding="utf-8")

    assert batch("say", name, "--target", "say.py").code == 1
    texts = [request["body"]["messages"][0]["content"] for request in requests_in(folder / "out")]
    assert texts == ["'a' 'all' None", "'b' 'you' 'now'"]
    assert rejected_in(folder / "out") == [(3, "text", "'text' is missing")]
    assert batch("say", "t.jsonl", "--target", "say.py", out="json").code == 0
    (request,) = requests_in(folder / "json")
    assert request["body"]["messages"][0]["content"] == "'' '' None"


def test_names_that_are_not_text():
    """A pandas frame can have columns whose names are not text."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"ticket": ["a"], 7: [1], None: [2], ("votes",): [3]})

    assert Renderer(ask)(frame)["error"][0] is None


NUMBERS = """
from typing import Annotated, NewType

import msgspec

from promptkit import prompt

Name = NewType("Name", str)

@prompt
def ask(
    ident: str,
    other: str | None = None,
    name: Name = Name("a"),
    short: Annotated[str, msgspec.Meta(max_length=5)] = "a",
    either: int | str = 0,
    count: int = 0,
) -> str:
    return repr((ident, other, name, short, either, count))
"""


class TestWholeNumbers:
    @pytest.fixture
    def render(self, batch, folder, recipes):
        """A function that renders the rows of a table, and returns the text of each."""
        recipes(numbers=NUMBERS)

        def render(name):
            result = batch("ask", name)
            assert result.code == 0, (folder / "out" / "rejected.jsonl").read_text(encoding="utf-8")
            return [line["body"]["messages"][0]["content"] for line in requests_in(folder / "out")]

        return render

    def test_in_json_lines(self, folder, render):
        """
        A whole number in JSON becomes text for every parameter that is text, but not for a union with int.
        """
        row = '{"ident": 42, "other": -7, "name": 0, "short": 12345, "either": 42}'
        (folder / "t.jsonl").write_text(row, encoding="utf-8")

        assert render("t.jsonl") == ["('42', '-7', '0', '12345', 42, 0)"]

    def test_in_parquet(self, folder, render):
        """A column of integers in Parquet becomes text for a parameter that is text."""
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        columns = {"ident": [2**63 - 1, 42], "other": pa.array([None, 7], pa.int8())}
        parquet.write_table(pa.table(columns), folder / "t.parquet")

        assert render("t.parquet") == [
            "('9223372036854775807', None, 'a', 'a', 0, 0)",
            "('42', '7', 'a', 'a', 0, 0)",
        ]

    def test_in_numpy(self):
        """A NumPy integer becomes text for a parameter that is text."""
        numpy = pytest.importorskip("numpy")

        (row,) = Renderer(ask)([{"ticket": numpy.int64(42)}])

        assert row["messages"] == [{"role": "user", "content": "42: 0"}]

    @pytest.mark.parametrize("kind", ["list", "tuple", "numpy", "pyarrow", "pandas", "polars"])
    def test_in_a_list(self, kind):
        """
        Whole numbers in a list, in any kind of table, become text for a parameter that is a list of strings.
        """
        module = pytest.importorskip(kind) if kind not in ("list", "tuple") else None
        columns = {"names": [[1, 22]]}
        tables = {
            "list": lambda: [{"names": [1, 22]}],
            "tuple": lambda: [{"names": (1, 22)}],
            "numpy": lambda: [{"names": module.array([1, 22])}],
            "pyarrow": lambda: module.table(columns),
            "pandas": lambda: module.DataFrame(columns),
            "polars": lambda: module.DataFrame(columns),
        }

        rendered = Renderer(join)(tables[kind]())

        rows = rendered if isinstance(rendered, list) else list(rendered["messages"])
        messages = rows[0]["messages"] if isinstance(rendered, list) else rows[0]
        assert str(messages).count("1+22") == 1

    @pytest.mark.parametrize("value", ["1.10", "1.0", "true", "[1]", '{"a": 1}'])
    def test_other_values_are_rejected(self, batch, folder, recipes, value):
        """Other values do not become text: 1.10 would lose its last digit."""
        recipes(numbers=NUMBERS)
        (folder / "t.jsonl").write_text(f'{{"ident": {value}}}', encoding="utf-8")

        assert batch("ask", "t.jsonl").code == 1
        ((_, argument, reason),) = rejected_in(folder / "out")
        assert argument == "ident"
        assert reason.endswith(", not text")

    @pytest.mark.parametrize(("cell", "count"), [("1.0", 1), ("-12.00", -12), (" +3.0 ", 3), ("0.0", 0)])
    def test_fraction_of_zeros(self, folder, render, cell, count):
        """A whole number with a fraction of zeros in CSV is an integer."""
        (folder / "t.csv").write_text(f"ident,count\n1.0,{cell}\n", encoding="utf-8")

        assert render("t.csv") == [f"('1.0', None, 'a', 'a', 0, {count})"]

    @pytest.mark.parametrize("cell", ["1.5", "1.", ".0", "1e3", "1.0.0", "1.0x", "--1.0", "1" * 4400 + ".0"])
    def test_invalid_integer(self, batch, folder, recipes, cell):
        """Cells such as 1.5, .0 and 1e3, and numbers with thousands of digits, are not integers."""
        recipes(numbers=NUMBERS)
        (folder / "t.csv").write_text(f"ident,count\na,{cell}\n", encoding="utf-8")

        assert batch("ask", "t.csv").code == 1
        ((_, argument, _),) = rejected_in(folder / "out")
        assert argument == "count"
