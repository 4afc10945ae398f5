"""`Renderer`: a prompt as a function on every kind of table."""

import datetime as dt
import json
import pickle
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional
from zoneinfo import ZoneInfo

import msgspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Arg, Image, PromptError, assistant, prompt, system, user
from promptkit.batch import ColumnError, Renderer
from promptkit.errors import ArgumentsError
from promptkit.exports import REQUEST_FUNCTIONS, UnsupportedAnswerError


@dataclass
class Verdict:
    label: str
    reason: str | None


@dataclass
class Point:
    day: dt.date
    price: Decimal


@prompt
def triage(ticket: str, severity: Literal["low", "high"] = "low", votes: int = 0) -> str:
    """Triage a ticket."""
    if ticket == "refuse":
        raise PromptError("not this one")
    if ticket == "raise":
        raise KeyError(ticket)
    return f"{ticket} ({severity}, {votes})"


@prompt(answer=Verdict)
def judge(ticket: str):
    """Judge a ticket."""
    yield system("Be brief.")
    yield user("An example.")
    yield assistant("Understood.")
    yield user(ticket)


@prompt
def show_all(  # noqa: PLR0917 (each is of another type)
    ticket: str,
    severity: Literal["low", "high"] = "low",
    votes: int | None = None,
    due: dt.date | None = None,
    at: dt.datetime | None = None,
    price: Decimal | None = None,
    urgent: bool | None = None,  # noqa: FBT001 (an argument of a prompt)
    tags: list[str] | None = None,
) -> str:
    """Show what each value is."""
    return repr((ticket, severity, votes, due, at, price, urgent, tags))


#: By kind: functions that create a table from rows and return its rows.
TABLES = {
    "list": (list, list),
    "pyarrow": (pa.Table.from_pylist, pa.Table.to_pylist),
    "batch": (pa.RecordBatch.from_pylist, pa.RecordBatch.to_pylist),
    "polars": (pl.DataFrame, pl.DataFrame.to_dicts),
    "pandas": (pd.DataFrame, lambda frame: frame.to_dict("records")),
}
EVERY_KIND = pytest.mark.parametrize("kind", TABLES)

ROWS = [
    {"id": 1, "ticket": "Slow", "severity": "high", "votes": 3},
    {"id": 2, "ticket": "Ugly", "severity": None, "votes": None},
    {"id": 3, "ticket": None, "severity": "hihg", "votes": 1},
    {"id": 4, "ticket": "refuse", "severity": "low", "votes": 1},
    {"id": 5, "ticket": "raise", "severity": "low", "votes": 1},
]
ERRORS = [
    None,
    None,
    "'severity' is 'hihg', not one of low, high (did you mean 'high'?); 'ticket' is missing",
    "not this one",
    "the prompt raised KeyError: 'raise'",
]


def user_message(text):
    return {"role": "user", "content": text}


def renderings_and_errors(rows, column="messages"):
    """Return the rendering and the error of each row."""
    return [(row[column], row["error"]) for row in rows]


class TestTables:
    @EVERY_KIND
    def test_table_keeps_its_type_and_gains_two_columns(self, kind):
        """A table keeps its type and columns, and gains the columns `messages` and `error`."""
        make, rows_of = TABLES[kind]
        table = make(ROWS)

        rendered = Renderer(triage)(table)

        rows = rows_of(rendered)
        assert type(rendered) is type(table)
        assert list(rows[0]) == ["id", "ticket", "severity", "votes", "messages", "error"]
        assert [(row["id"], row["ticket"]) for row in rows[:2]] == [(1, "Slow"), (2, "Ugly")]
        texts = ["Slow (high, 3)", "Ugly (low, 0)"]
        messages = [*([user_message(text)] for text in texts), None, None, None]
        assert renderings_and_errors(rows) == list(zip(messages, ERRORS, strict=True))

    @EVERY_KIND
    def test_requests_are_json(self, kind):
        """The `request` column contains the request body as JSON text."""
        make, rows_of = TABLES[kind]

        rows = rows_of(
            Renderer(triage, to="openai-chat", model="m", fields={"temperature": 0})(make(ROWS[:1]))
        )

        ((request, error),) = renderings_and_errors(rows, "request")
        body = {"messages": [user_message("Slow (high, 3)")], "model": "m", "temperature": 0}
        assert (json.loads(request), error) == (body, None)

    @EVERY_KIND
    @pytest.mark.parametrize("to", ["messages", "anthropic"])
    def test_empty_table(self, kind, to):
        """An empty table also gains the two columns."""
        make, rows_of = TABLES[kind]
        table = make(ROWS)[:0]

        rendered = Renderer(triage, to=to)(table)

        assert rows_of(rendered) == []
        if kind != "list":
            column = "messages" if to == "messages" else "request"
            assert list(Renderer(triage, to=to)(table).to_pandas() if kind != "pandas" else rendered) == [
                *ROWS[0],
                column,
                "error",
            ]

    @EVERY_KIND
    def test_existing_columns_are_replaced(self, kind):
        """Existing columns with the same names are replaced."""
        make, rows_of = TABLES[kind]
        table = make([{"error": 7, "ticket": "a", "messages": "old"}])

        (row,) = rows_of(Renderer(triage)(table))

        assert row == {"error": None, "ticket": "a", "messages": [user_message("a (low, 0)")]}
        assert list(row) == ["error", "ticket", "messages"]

    @EVERY_KIND
    def test_other_columns_are_ignored(self, kind):
        """Columns that are not parameters are ignored, and each row is still rendered."""
        make, rows_of = TABLES[kind]

        rows = rows_of(Renderer(triage, values={"ticket": "same"})(make([{"n": 1}, {"n": 2}])))

        assert renderings_and_errors(rows) == [([user_message("same (low, 0)")], None)] * 2

    @EVERY_KIND
    def test_mapped_columns_and_fixed_values(self, kind):
        """Columns can be mapped to parameters, and fixed values override columns."""
        make, rows_of = TABLES[kind]
        renderer = Renderer(triage, columns={"text": "ticket"}, values={"severity": "HIGH"})

        rows = rows_of(renderer(make([{"text": "a", "severity": "low", "votes": "7"}])))

        assert renderings_and_errors(rows) == [([user_message("a (high, 7)")], None)]

    def test_missing_columns(self):
        """In a list, a row can lack a column; in other tables, a missing column is an error."""
        assert Renderer(triage)([{"ticket": "a"}, {}])[1]["error"] == "'ticket' is missing"
        for make, _ in (TABLES[kind] for kind in TABLES if kind != "list"):
            with pytest.raises(ColumnError, match="prompt 'triage' requires 'ticket'"):
                Renderer(triage)(make([{"text": "a"}]))

    def test_index_of_pandas_is_kept(self):
        """The index of a pandas frame is preserved, even if it is not unique or not sorted."""
        frame = pd.DataFrame({"ticket": ["a", "b", "c"]}, index=[7, 1, 7])

        rendered = Renderer(triage)(frame)

        assert list(rendered.index) == [7, 1, 7]
        assert [messages[0]["content"][0] for messages in rendered["messages"]] == ["a", "b", "c"]

    def test_subclass_of_a_frame(self):
        """A subclass of a pandas frame keeps its type."""

        class Frame(pd.DataFrame):
            @property
            def _constructor(self):
                return Frame

        assert type(Renderer(triage)(Frame({"ticket": ["a"]}))) is Frame

    def test_polars_expression(self):
        """In eager and lazy Polars expressions, the result is a series of structs with the two columns."""
        kind = pl.Struct({"request": pl.String, "error": pl.String})
        rendered = pl.struct("ticket", "votes").map_batches(Renderer(triage, to="gemini"), return_dtype=kind)
        frame = pl.DataFrame({"ticket": ["a", None], "votes": [1, 2]})

        for result_frame in (
            frame.select(rendered.alias("said")),
            frame.lazy().select(rendered.alias("said")).collect(),
        ):
            first, second = result_frame["said"].to_list()
            assert result_frame.schema == {"said": kind}
            assert json.loads(first["request"])["contents"][0]["parts"] == [{"text": "a (low, 1)"}]
            assert second == {"request": None, "error": "'ticket' is missing"}
        null_rows = pl.Series("rows", [None], dtype=pl.Struct({"ticket": pl.String}))
        assert Renderer(triage)(null_rows).to_list() == [{"messages": None, "error": "'ticket' is missing"}]

    def test_arrow_stream(self):
        """An object with `__arrow_c_stream__` is rendered to a pyarrow table."""

        class Relation:
            def __arrow_c_stream__(self, requested_schema=None):
                return pa.table({"ticket": ["a", "b"]}).__arrow_c_stream__(requested_schema)

        rendered = Renderer(triage)(Relation())

        assert type(rendered) is pa.Table
        assert rendered["error"].to_pylist() == [None, None]

    @pytest.mark.parametrize(
        "table",
        [7, "ticket", b"ticket", {"ticket": ["a"]}, iter([]), pl.LazyFrame({"ticket": ["a"]}), None],
        ids=lambda table: type(table).__name__,
    )
    def test_unsupported_table(self, table):
        """A value of any other type raises a TypeError that names the type and the supported types."""
        with pytest.raises(TypeError) as caught:
            Renderer(triage)(table)

        assert str(caught.value) == (
            f"an object of type {type(table).__name__} is not a table: pass a pyarrow Table, a Polars or "
            f"pandas DataFrame, or a list of mappings"
        )

    def test_unsupported_row(self):
        """A list with anything but mappings raises a TypeError."""
        with pytest.raises(TypeError, match="'str' object is not a mapping"):
            Renderer(triage)([{"ticket": "a"}, "b"])


class TestBatches:
    """Iterators of record batches, as used by Spark."""

    def test_batches_match_the_schema(self):
        """Batches have the columns of the schema, with the key as text."""
        renderer = Renderer(triage, to="openai-chat", key="id")
        batches = [
            pa.RecordBatch.from_pylist(ROWS[:1]),
            pa.RecordBatch.from_pylist([{**ROWS[2], "id": None}]),
        ]

        rendered = list(renderer.batches(iter(batches)))

        assert renderer.schema == "`id` string, request string, error string"
        names = [("id", pa.string()), ("request", pa.string()), ("error", pa.string())]
        assert [
            list(zip(record_batch.schema.names, record_batch.schema.types, strict=True))
            for record_batch in rendered
        ] == [names] * 2
        assert rendered[0]["id"].to_pylist() == ["1"]
        assert rendered[1].to_pylist() == [{"id": None, "request": None, "error": ERRORS[2]}]

    def test_messages(self):
        """Messages are arrays of structs in Spark's schema."""
        renderer = Renderer(triage)

        (rendered,) = renderer.batches([pa.RecordBatch.from_pylist(ROWS[:1])])

        assert renderer.schema == "messages array<struct<role: string, content: string>>, error string"
        assert rendered.to_pylist() == [{"messages": [user_message("Slow (high, 3)")], "error": None}]

    def test_missing_key(self):
        """A missing key column raises an error."""
        with pytest.raises(ColumnError, match="the key column 'number' does not exist"):
            list(Renderer(triage, key="number").batches([pa.RecordBatch.from_pylist(ROWS)]))


def receive_values(annotation, table):
    """
    Return the values that a prompt function receives from the column ``value``, and the errors of the rows.
    """
    values: list[Any] = []

    def record(value=None):
        values.append(value)
        return "seen"

    record.__annotations__ = {"value": Optional[annotation]}  # noqa: UP045 (some have no |)
    errors = Renderer(prompt(record))(table)["error"]
    error_list = errors.to_pylist() if isinstance(errors, pa.ChunkedArray) else errors.to_list()
    return values, list(filter(None, error_list))


BERLIN = ZoneInfo("Europe/Berlin")
MOMENT = dt.datetime(2026, 1, 31, 12, 30, 15, 123456)  # noqa: DTZ001 (some tables have no zones)

#: By name: a parameter's type, a value of it, and column types that can hold it.
TYPES = {
    "text": (str, "größer 👍", [pa.string(), pa.large_string(), pa.string_view(), "str", "string", "object"]),
    "dictionary": (str, "low", [pa.dictionary(pa.int8(), pa.string()), "category"]),
    "choice": (
        Literal["low", "high"],
        "low",
        [pa.large_string(), pa.dictionary(pa.int8(), pa.string()), "category"],
    ),
    "integer": (
        int,
        7,
        [pa.int64(), pa.uint8(), pa.float64(), pa.decimal128(5, 0), "int64", "Int64", "float64"],
    ),
    "number": (float, 1.5, [pa.float32(), pa.float64(), "float64", "Float64"]),
    "boolean": (bool, True, [pa.bool_(), "bool", "boolean", "object"]),
    "date": (dt.date, dt.date(2026, 1, 31), [pa.date32(), pa.date64(), "object"]),
    "moment": (
        dt.datetime,
        MOMENT,
        [pa.timestamp("us"), pa.timestamp("ns"), "datetime64[us]", "datetime64[ns]"],
    ),
    "zoned": (
        dt.datetime,
        MOMENT.replace(tzinfo=BERLIN),
        [pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ns", "UTC"), "datetime64[us, Europe/Berlin]"],
    ),
    "time": (dt.time, dt.time(12, 30, 15, 7), [pa.time64("us"), pa.time64("ns"), "object"]),
    "duration": (
        dt.timedelta,
        dt.timedelta(hours=1, microseconds=7),
        [pa.duration("us"), pa.duration("ns"), "timedelta64[us]", "timedelta64[ns]"],
    ),
    "exact number": (Decimal, Decimal("1.50"), [pa.decimal128(10, 2), pa.decimal256(40, 2), "object"]),
    "bytes": (bytes, b"\xff\0", [pa.binary(), pa.large_binary(), pa.binary(2), "object"]),
    "list": (list[str], ["a", "b"], [pa.list_(pa.string()), pa.large_list(pa.string()), "object"]),
    "dates": (list[dt.date], [dt.date(2026, 1, 31)], [pa.list_(pa.date32()), "object"]),
    "numbers": (tuple[int, ...], (1, 2), [pa.list_(pa.int64()), pa.list_(pa.int64(), 2)]),
    "map": (
        dict[str, int],
        {"x": 1},
        [pa.map_(pa.string(), pa.int64()), pa.struct({"x": pa.int64()}), "object"],
    ),
    "record": (
        Point,
        Point(dt.date(2026, 1, 31), Decimal("1.50")),
        [pa.struct({"day": pa.date32(), "price": pa.decimal128(5, 2)})],
    ),
}


def columns(of):
    """Return test parameters: a parameter's type, a value, and a column type of pyarrow or pandas."""
    return [
        pytest.param(annotation, value, kind, id=f"{name}: {kind}")
        for name, (annotation, value, kinds) in TYPES.items()
        for kind in kinds
        if isinstance(kind, of)
    ]


class TestTypes:
    @pytest.mark.parametrize(("annotation", "value", "kind"), columns(pa.DataType) + columns(str))
    def test_values_keep_their_types(self, annotation, value, kind):
        """The function receives a column's values with the parameter's type, and null as the default."""
        plain = vars(value) if isinstance(value, Point) else value
        if isinstance(kind, pa.DataType):
            table = pa.table({"value": pa.array([plain, None], kind)})
        else:
            table = pd.DataFrame(
                {"value": pd.Series([plain] if kind in ("bool", "int64") else [plain, None], dtype=kind)}
            )

        values, errors = receive_values(annotation, table)

        assert errors == []
        assert values[:1] == [value]
        assert type(values[0]) is type(value)
        assert values[1:] in ([None], [])

    @pytest.mark.parametrize(("annotation", "value", "kind"), columns(pa.DataType))
    def test_values_keep_their_types_in_polars(self, annotation, value, kind):
        """Values of the same column types keep their types in Polars."""
        if pa.types.is_map(kind) or pa.types.is_decimal256(kind) or pa.types.is_date64(kind):
            pytest.skip("Polars has no such type")
        plain = vars(value) if isinstance(value, Point) else value

        values, errors = receive_values(
            annotation, pl.DataFrame(pa.table({"value": pa.array([plain, None], kind)}))
        )

        assert (values, type(values[0]), errors) == ([value, None], type(value), [])

    def test_timestamp_as_date(self):
        """A timestamp at midnight is accepted as a date, and any other time is an error."""
        column = pd.to_datetime(["2026-01-31 00:00", "2026-01-31 12:30", None], format="mixed")

        values, errors = receive_values(dt.date, pd.DataFrame({"value": column}))

        assert (values, type(values[0])) == ([dt.date(2026, 1, 31), None], dt.date)
        assert errors == ["'value' is '2026-01-31T12:30:00', not a date such as 2026-01-31"]

    def test_constraints_apply(self):
        """Constraints also apply to values that already have the parameter's type."""

        @prompt
        def zoned(at: Annotated[dt.datetime, msgspec.Meta(tz=True)]) -> str:
            return at.isoformat()

        rows = Renderer(zoned)(pa.table({"at": [MOMENT]})).to_pylist()

        error = "'at' has no offset: add an offset, for example 2026-01-31T12:00+01:00"
        assert renderings_and_errors(rows) == [(None, error)]

    def test_bytes_are_not_text(self):
        """Bytes are rejected for a text parameter instead of being converted to base64."""
        values, errors = receive_values(str, pa.table({"value": [b"text"]}))

        assert (values, errors) == (
            [],
            ["'value' has the unsupported type bytes: convert it to text or JSON"],
        )

    def test_nanoseconds_are_truncated(self):
        """Nanoseconds are truncated."""
        column = pa.array([1_000_000_001], pa.timestamp("ns"))

        (values,), errors = receive_values(dt.datetime, pa.table({"value": column}))

        assert (values, type(values), errors) == (dt.datetime(1970, 1, 1, 0, 0, 1), dt.datetime, [])  # noqa: DTZ001

    def test_nan(self):
        """NaN is a missing value in pandas and an invalid number elsewhere."""
        values = [1.5, float("nan")]

        assert receive_values(float, pd.DataFrame({"value": values})) == ([1.5, None], [])
        assert receive_values(float, pa.table({"value": values})) == ([1.5], ["'value' is nan, not a number"])
        assert Renderer(triage)([{"ticket": "a", "votes": float("nan")}])[0]["error"] == (
            "'votes' is nan, not a whole number"
        )

    @pytest.mark.parametrize(
        ("annotation", "column", "error"),
        [
            (int, [1.5], "'value' is 1.5, not a whole number"),
            (int, ["many"], "'value' is 'many', not a whole number"),
            (dt.date, ["soon"], "'value' is 'soon', not a date such as 2026-01-31"),
            (str, [["a"]], "'value' is ['a'], not text"),
            (list[int], [["a"]], "'value[0]' is 'a', not a whole number"),
        ],
    )
    def test_invalid_values(self, annotation, column, error):
        """Invalid values yield the same errors as a client would receive."""
        assert receive_values(annotation, pa.table({"value": column})) == ([], [error])


class TestRenderings:
    def test_messages_are_text_only(self, png):
        """Messages put the system prompt first; for media, the error suggests a vendor format."""

        @prompt
        def mixed(ticket: str):
            yield user(ticket, Image(png))

        first, *_, last = Renderer(judge)([{"ticket": "a"}])[0]["messages"]
        assert (first, last) == ({"role": "system", "content": "Be brief."}, user_message("a"))
        (row,) = Renderer(mixed)([{"ticket": "a"}])
        hint = "use to='openai-chat' or the name of another vendor"
        assert (
            row["error"]
            == f"the format 'messages' supports only text, but the rendering has other content: {hint}"
        )
        (row,) = Renderer(mixed, "openai-chat")([{"ticket": "a"}])
        assert row["error"] is None

    def test_unsupported_content(self, png):
        """Unsupported content is an error of the row, unless `lossy` replaces it by text."""

        @prompt
        def drawn(ticket: str):
            yield user(ticket) + assistant(Image(png))

        (row,) = Renderer(drawn, "anthropic")([{"ticket": "a"}])
        assert row["error"].startswith(
            "Anthropic cannot represent the rendering: message 2 (assistant) contains image/png"
        )
        (row,) = Renderer(drawn, "anthropic", fields={"lossy": True})([{"ticket": "a"}])
        assert "<image/png" in row["request"]

    def test_unsupported_answer(self):
        """An unsupported answer type raises on the first use, because it affects every row."""

        @prompt(answer=dict[str, int])
        def count(ticket: str) -> str:
            return ticket

        with pytest.raises(UnsupportedAnswerError, match="OpenAI does not support the answer type"):
            Renderer(count, "openai-chat")([{"ticket": "a"}])
        assert Renderer(count)([{"ticket": "a"}])[0]["error"] is None

    def test_unknown_format(self):
        """An unknown format raises a ValueError on construction."""
        formats = "messages, openai-chat, openai-responses, anthropic, gemini, bedrock"
        with pytest.raises(ValueError, match=f"^unknown format 'x': choose one of {formats}$"):
            Renderer(triage, to="x")

    def test_invalid_columns_and_fixed_values(self):
        """Invalid columns and fixed values raise on the first use, because they affect every row."""
        with pytest.raises(ColumnError, match="no argument 'tickte'; its arguments are ticket"):
            Renderer(triage, columns={"text": "tickte"})([])
        with pytest.raises(ArgumentsError, match="'votes' is 'many', not a whole number"):
            Renderer(triage, values={"votes": "many"})([])

    def test_lone_surrogate(self):
        """A lone surrogate is an error of its row."""
        rows = Renderer(triage, "openai-chat")([{"ticket": "\ud83d"}, {"ticket": "b"}])

        assert "surrogates not allowed" in rows[0]["error"]
        assert rows[1]["error"] is None

    def test_asynchronous_prompts(self):
        """Asynchronous prompts are rendered."""

        @prompt
        async def later(ticket: str) -> str:
            return ticket

        assert renderings_and_errors(Renderer(later)([{"ticket": "a"}])) == [([user_message("a")], None)]

    def test_values_from_the_environment(self, monkeypatch):
        """An argument without a column is read from its environment variable."""

        @prompt
        def signed(ticket: str, team: Annotated[str, Arg(env="TEAM")]) -> str:
            return f"{ticket} by {team}"

        monkeypatch.setenv("TEAM", "core")
        assert renderings_and_errors(Renderer(signed)(pa.table({"ticket": ["a"]})).to_pylist()) == [
            ([user_message("a by core")], None)
        ]


class TestPickles:
    @pytest.mark.parametrize("to", ["messages", "openai-chat"])
    def test_renderer_can_be_pickled(self, to):
        """A renderer can be pickled before and after its first use."""
        renderer = Renderer(triage, to, model="m", values={"votes": 2}, key="id")
        before = pickle.loads(pickle.dumps(renderer))  # noqa: S301 (it is our own)
        expected = renderer([{"ticket": "a"}])

        after = pickle.loads(pickle.dumps(renderer))  # noqa: S301 (it is our own)

        assert before == after == renderer
        assert before([{"ticket": "a"}]) == after([{"ticket": "a"}]) == expected


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = {
    "ticket": TEXTS,
    "severity": st.sampled_from(["low", "High", "hihg", ""]),
    "votes": st.integers(-(2**31), 2**31),
    "due": st.dates(),
    "at": st.datetimes().map(lambda moment: moment.replace(fold=0)),  # table formats cannot store `fold`
    "price": st.decimals(-10_000, 10_000, places=2),
    "urgent": st.booleans(),
    "tags": st.lists(TEXTS, max_size=3),
}
ARROW = pa.schema(
    {
        "ticket": pa.large_string(),
        "severity": pa.dictionary(pa.int8(), pa.string()),
        "votes": pa.int64(),
        "due": pa.date32(),
        "at": pa.timestamp("us"),
        "price": pa.decimal128(10, 2),
        "urgent": pa.bool_(),
        "tags": pa.list_(pa.string()),
    }
)
ROW = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})


@given(st.lists(ROW, max_size=5))
def test_every_kind_of_table_gives_equal_columns(rows):
    """Equal rows yield equal columns in every kind of table, including nulls."""
    expected = renderings_and_errors(Renderer(show_all)(rows))
    table = pa.Table.from_pylist(rows, ARROW)
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], ARROW)]

    assert renderings_and_errors(Renderer(show_all)(table).to_pylist()) == expected
    assert [
        pair for batch in batches for pair in renderings_and_errors(Renderer(show_all)(batch).to_pylist())
    ] == expected
    assert renderings_and_errors(Renderer(show_all)(pl.DataFrame(table)).to_dicts()) == expected
    assert (
        renderings_and_errors(Renderer(show_all)(pl.DataFrame(table).to_struct("rows")).to_list()) == expected
    )
    frame = pd.DataFrame(rows, columns=list(VALUES))
    assert renderings_and_errors(Renderer(show_all)(frame).to_dict("records")) == expected


@pytest.mark.parametrize("vendor", REQUEST_FUNCTIONS)
@pytest.mark.parametrize("subject", [show_all, judge])
@given(ticket=TEXTS.filter(str.strip))
def test_requests_equal_those_of_the_exports(vendor, subject, ticket):
    """Request bodies equal those of the exports, except that Gemini's bodies have the layout of REST."""
    fields = {"model": "m", "max_tokens": 9} if vendor == "anthropic" else {"model": "m"}
    (row,) = Renderer(subject, vendor, model="m", fields=fields if vendor != "gemini" else {})(
        [{"ticket": ticket}]
    )
    request = REQUEST_FUNCTIONS[vendor](subject.render(ticket), **fields)
    body = json.loads(row["request"])

    if vendor == "gemini":
        config = request.get("config", {})
        assert body["contents"] == request["contents"]
        assert body.get("system_instruction", {}).get("parts") == (
            [{"text": config["system_instruction"]}] if config else None
        )
        assert body.get("generation_config", {}) == {
            name: value for name, value in config.items() if name != "system_instruction"
        }
    else:
        assert body == request
