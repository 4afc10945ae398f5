"""Columns whose names are spelt unlike the arguments: blanks, case, and near misses."""

import pickle

import pytest

from promptkit import prompt
from promptkit.batch import ColumnError, Renderer
from tests.batch.conftest import rejected_in, requests_in

NEAR_MISSES = ["Votes", "VOTES", "vote", "voets"]


@prompt
def ask(ticket: str, votes: int = 0) -> str:
    """Ask about a ticket."""
    return f"{ticket}: {votes}"


def spelling_error(column):
    return (
        f"there is no column 'votes', but there is {column!r}: rename or map it, or set a value for all rows"
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
        """A column that is probably a misspelt argument is refused before anything is written."""
        (folder / "t.csv").write_text(f"ticket,{column}\nslow,7\n", encoding="utf-8")

        result = batch("triage", "t.csv")

        assert (result.code, result.err) == (2, f"promptkit: {spelling_error(column)}\n")
        assert not (folder / "out").exists()

    def test_in_json_lines(self, batch, folder, column):
        """In JSON Lines, each row with a misspelt column is rejected."""
        rows = f'{{"ticket": "a", "{column}": 7}}\n{{"ticket": "b", "votes": 1, "{column}": 7}}\n'
        (folder / "t.jsonl").write_text(rows, encoding="utf-8")

        result = batch("triage", "t.jsonl")

        assert result.code == 1
        assert rejected_in(folder / "out") == [(1, None, spelling_error(column))]
        assert len(requests_in(folder / "out")) == 1

    @pytest.mark.parametrize("options", [["--map", "{}=votes"], ["--set", "votes=7"]], ids=["map", "set"])
    @pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
    def test_options_that_resolve_it(self, batch, folder, column, options, name):
        """--map uses the column, and --set makes clear that it is another one."""
        rows = {"t.csv": f"ticket,{column}\nslow,7\n", "t.jsonl": f'{{"ticket": "slow", "{column}": "7"}}\n'}
        (folder / name).write_text(rows[name], encoding="utf-8")

        result = batch("triage", name, *(option.format(column) for option in options))

        assert result.code == 0, result.err
        assert "votes: 7" in requests_in(folder / "out")[0]["body"]["messages"][0]["content"]

    @pytest.mark.parametrize("engine", ["pyarrow", "polars", "pandas"])
    def test_in_a_data_frame(self, engine, column):
        """`Renderer` refuses a data frame with a misspelt column."""
        library = pytest.importorskip(engine)
        data = {"ticket": ["a"], column: [7]}
        table = library.table(data) if engine == "pyarrow" else library.DataFrame(data)

        with pytest.raises(ColumnError) as caught:
            Renderer(ask)(table)

        assert str(caught.value) == spelling_error(column)
        assert Renderer(ask, columns={column: "votes"})(table)["messages"][0] is not None

    def test_in_a_list(self, column):
        """In a list of mappings, each row with a misspelt column has an error."""
        renderer = pickle.loads(pickle.dumps(Renderer(ask)))  # noqa: S301 (its own data)

        rows = renderer([{"ticket": "a", column: 7}, {"ticket": "a", "votes": 7}])

        assert [row["error"] for row in rows] == [spelling_error(column), None]


def test_blank_in_a_name_of_json(batch, folder):
    """A name with blanks in JSON Lines is a misspelt column."""
    (folder / "t.jsonl").write_text('{"ticket": "a", " votes ": 7}\n', encoding="utf-8")

    assert batch("triage", "t.jsonl").code == 1
    assert rejected_in(folder / "out") == [(1, None, spelling_error(" votes "))]


def test_key_is_not_a_near_miss(batch, folder):
    """The key column is used, so it is not taken for a misspelt argument."""
    (folder / "t.jsonl").write_text('{"ticket": "a", "vote": "x-1"}\n', encoding="utf-8")
    (folder / "t.csv").write_text("ticket,vote\na,x-1\n", encoding="utf-8")

    for name in ("t.jsonl", "t.csv"):
        assert batch("triage", name, "--key", "vote", out=name[2:]).code == 0


def test_unused_columns_are_listed(batch, folder):
    """The summary lists the columns that no argument uses; other names are not an error."""
    (folder / "t.csv").write_text("id,ticket,created_at,voter_count\n1,a,b,3\n", encoding="utf-8")

    with_key, without_key = batch("triage", "t.csv", "--key", "id"), batch("triage", "t.csv", out="other")

    assert with_key.out.splitlines()[-1] == "not used: 'created_at', 'voter_count'"
    assert without_key.out.splitlines()[-1] == "not used: 'id', 'created_at', 'voter_count'"


def test_names_that_are_not_text():
    """Column names that are not text, and very long ones, are not compared."""
    rows = Renderer(ask)([{"ticket": "a", 7: 1, None: 2, ("votes",): 3, "votes" + " " * 1000: 4}])

    assert rows[0]["error"] is None
