"""`promptkit batch`: from a table to the files of a vendor's batch API."""

import json

import pytest

from promptkit.batch.vendor_formats import LINE_FORMATS
from tests.batch.conftest import rejected_in, requests_in

DEEP = "[" * 900 + "]" * 900

TICKETS = [{"ticket": "It is slow", "severity": "high", "votes": 3}, {"ticket": "It is ugly"}]


@pytest.fixture
def tickets(folder):
    """A JSON Lines file with two tickets."""
    path = folder / "tickets.jsonl"
    path.write_text("".join(json.dumps(ticket) + "\n" for ticket in TICKETS), encoding="utf-8")
    return path


class TestLines:
    def test_line_for_openai_chat(self, batch, tickets, folder):
        """An OpenAI line contains a unique identifier, the method, the URL and the request body."""
        result = batch("triage", tickets)

        first, second = requests_in(folder / "out")
        assert result.code == 0
        assert first["custom_id"].startswith("1-")
        assert {key: first[key] for key in ("method", "url")} == {
            "method": "POST",
            "url": "/v1/chat/completions",
        }
        text = "Ticket: It is slow\nSeverity: high, votes: 3"
        assert first["body"] == {"messages": [{"role": "user", "content": text}], "model": "m"}
        assert second["body"]["messages"][0]["content"] == "Ticket: It is ugly\nSeverity: low, votes: 0"
        assert not (folder / "out" / "rejected.jsonl").exists()
        assert {file.name for file in (folder / "out").iterdir()} == {"requests-00001.jsonl"}

    @pytest.mark.parametrize(
        ("vendor", "members"),
        [
            ("openai-responses", {"custom_id", "method", "url", "body"}),
            ("anthropic", {"custom_id", "params"}),
            ("gemini", {"key", "request"}),
        ],
    )
    def test_lines_for_other_vendors(self, batch, tickets, folder, vendor, members):
        """Each vendor's lines have the fields that its API expects."""
        batch("judge", tickets, vendor=vendor)

        assert all(line.keys() == members for line in requests_in(folder / "out"))

    def test_anthropic_requests_limit_the_answer(self, batch, tickets, folder):
        """Anthropic requests get a limit of 4,096 tokens, unless --field sets another."""
        batch("triage", tickets, vendor="anthropic", out="usual")
        batch("triage", tickets, "--field", "max_tokens=10", vendor="anthropic", out="chosen")

        assert requests_in(folder / "usual")[0]["params"]["max_tokens"] == 4096
        assert requests_in(folder / "chosen")[0]["params"]["max_tokens"] == 10

    def test_bedrock_requests_name_no_model(self, batch, tickets, folder):
        """A request for Bedrock has the version of Anthropic's API, and no model."""
        batch("triage", tickets, vendor="bedrock")
        (line, _) = requests_in(folder / "out")
        assert line["recordId"].startswith("1-")
        assert line["modelInput"]["anthropic_version"] == "bedrock-2023-05-31"
        assert "model" not in line["modelInput"]

    def test_gemini_requests_follow_the_rest_layout(self, batch, tickets, folder):
        """Gemini requests follow the REST layout, and --field merges into the generation config."""
        batch("judge", tickets, "--field", 'generation_config={"temperature":0}', vendor="gemini")

        request = requests_in(folder / "out")[0]["request"]
        assert request["system_instruction"] == {"parts": [{"text": "Be brief."}]}
        assert request["generation_config"]["temperature"] == 0
        assert request["generation_config"]["response_mime_type"] == "application/json"


class TestColumns:
    def test_mapped_columns_and_fixed_values(self, batch, folder):
        """--map assigns a column to another parameter, and --set fixes a value for all rows."""
        (folder / "t.csv").write_text("text,votes\nSlow,7\n", encoding="utf-8")

        batch("triage", "t.csv", "--map", "text=ticket", "--set", "severity=high")

        content = requests_in(folder / "out")[0]["body"]["messages"][0]["content"]
        assert content == "Ticket: Slow\nSeverity: high, votes: 7"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--map", "text=tickte"], "prompt 'triage' has no argument 'tickte'; its arguments are ticket"),
            (["--set", "severity=hihg"], "'severity' is 'hihg', not one of low, high"),
            (
                ["--map", "text=ticket", "--set", "ticket=x"],
                "argument 'ticket' has both a value for all rows and column 'text': remove one of them",
            ),
            (
                [],
                (
                    "prompt 'triage' requires 'ticket' from the table, "
                    "but the table's columns are 'text', 'votes'"
                ),
            ),
            (
                ["--map", "text=ticket", "--key", "id"],
                "the key column 'id' does not exist; the columns are 'text', 'votes'",
            ),
            (["--map", "text"], "'text' does not have the form NAME=VALUE"),
            (
                ["--field", "tier=flex"],
                "'flex' is not valid JSON: write text in double quotes, for example 'tier=\"flex\"'",
            ),
            (["--workers", "0"], "'0' is not a whole number from 1"),
            (
                ["--map", "text=ticket", "--field", "workflow=1"],
                "multiple values for argument 'workflow'",
            ),
            (
                ["--map", "text=ticket", "--field", "messages=[]"],
                "--field: the field 'messages' contains the prompt and cannot be set: change the prompt",
            ),
            (
                ["--map", "nosuch=severity", "--map", "text=ticket"],
                "prompt 'triage' requires 'nosuch' from the table",
            ),
        ],
    )
    def test_invalid_options(self, batch, folder, capsys, arguments, message):
        """Invalid options are reported before anything is written."""
        (folder / "t.csv").write_text("text,votes\nSlow,7\n", encoding="utf-8")

        try:
            result = batch("triage", "t.csv", *arguments)
            code, err = result.code, result.err
        except SystemExit as exit_error:
            code, err = exit_error.code, capsys.readouterr().err

        assert code in (1, 2)
        assert message in err
        assert not (folder / "out").exists()

    def test_json_values(self, batch, folder):
        """JSON numbers, lists and objects are used directly, and null means not given."""
        row = {"day": "2026-01-31", "price": 1.5, "tags": ["a", "b"], "at": {"x": 1}}
        rows = [row, {**row, "price": "2.50", "tags": "a, b", "at": None}]
        (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

        batch("typed", "t.jsonl")

        texts = [line["body"]["messages"][0]["content"] for line in requests_in(folder / "out")]
        day = "datetime.date(2026, 1, 31)"
        assert texts == [
            f"({day}, Decimal('1.5'), ['a', 'b'], {{'x': 1}})",
            f"({day}, Decimal('2.50'), ['a', 'b'], None)",
        ]


class TestBadRows:
    def test_invalid_json_lines(self, batch, folder):
        """Invalid JSON lines are rejected with line and reason, and all other rows are processed."""
        lines = [
            b'{"ticket": "fine"}',
            b"",
            b'{"ticket": "x", "votes": "many"}',
            b'{"votes": 1}',
            b"[1]",
            b"{",
            b'{"ticket": "\xff"}',
            b'{"ticket": "x", "severity": "hihg"}',
            b'{"ticket": "last"}',
        ]
        (folder / "t.jsonl").write_bytes(b"\n".join(lines))

        result = batch("triage", "t.jsonl")

        assert result.code == 1
        assert "wrote 2 requests" in result.out
        assert "rejected 6 rows: see 'out/rejected.jsonl'" in result.out
        assert rejected_in(folder / "out") == [
            (3, "votes", "'votes' is 'many', not a whole number"),
            (4, "ticket", "'ticket' is missing"),
            (5, None, 'the line is not a JSON object: write {"COLUMN": VALUE, ...}'),
            (6, None, "the line is not valid JSON: Input data was truncated"),
            (7, None, "the line is not UTF-8: save the file as UTF-8"),
            (8, "severity", "'severity' is 'hihg', not one of low, high (did you mean 'high'?)"),
        ]

    def test_invalid_csv_rows(self, batch, folder):
        """CSV rows with extra cells, bad quotes or invalid UTF-8 are rejected; other rows are processed."""
        lines = [
            b"ticket,votes",
            b"fine,1",
            b"a,b,1",
            b'"two\nlines",2',
            b"\xff,1",
            b'"wrong"x,1',
            b"last,3",
            b'"open,4',
        ]
        (folder / "t.csv").write_bytes(b"\n".join(lines))

        result = batch("triage", "t.csv")

        texts = [line["body"]["messages"][0]["content"] for line in requests_in(folder / "out")]
        assert result.code == 1
        assert [text.splitlines()[0] for text in texts] == ["Ticket: fine", "Ticket: two", "Ticket: last"]
        assert rejected_in(folder / "out") == [
            (3, None, "the line has 3 cells, but the header has 2: quote cells that contain a comma"),
            (6, None, "the line is not UTF-8: save the table as UTF-8"),
            (7, None, "the line is not valid CSV: ',' expected after '\"'"),
            (9, None, "the line is not valid CSV: unexpected end of data"),
        ]

    def test_carriage_returns(self, batch, folder):
        """A carriage return outside of quotes is reported, in a row and as the end of all lines."""
        (folder / "t.csv").write_bytes(b'ticket,votes\na\rb,1\n"c\rd",2\n')
        (folder / "mac.csv").write_bytes(b"ticket,votes\ra,1\rb,2\r")

        rows, header = batch("triage", "t.csv"), batch("triage", "mac.csv", out="mac")

        ((line, _, reason),) = rejected_in(folder / "out")
        assert (rows.code, line) == (1, 2)
        assert reason.startswith("the line is not valid CSV: new-line character seen in unquoted field")
        assert header.code == 2
        assert header.err.startswith("promptkit: the header cannot be read: new-line character seen")

    @pytest.mark.parametrize("name", ["t.jsonl", "t.csv"])
    def test_line_of_100_mb(self, batch, folder, name):
        """A line of 100 MB is rejected."""
        head, first, last = {
            "t.jsonl": (b"", b'{"ticket": "a"}\n', b'{"ticket": "b"}\n'),
            "t.csv": (b"ticket\n", b"a\n", b"b\n"),
        }[name]
        with (folder / name).open("wb") as file:
            file.write(head + first)
            for _ in range(100):
                file.write(b"x" * 1_000_000)
            file.write(b"\n" + last)

        assert batch("triage", name).code == 1
        assert len(requests_in(folder / "out")) == 2
        ((_, argument, reason),) = rejected_in(folder / "out")
        assert (argument, reason) == (None, "the line is longer than 16,777,216 bytes")

    def test_rows_that_the_prompt_rejects(self, batch, folder):
        """A rejection quotes a `PromptError` without secrets, and names other exceptions."""
        tickets = ("refuse", "raise", "leave", "half", "fine")
        rows = [{"ticket": ticket, "token": "s3cr3t-t0k3n"} for ticket in tickets]
        (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

        assert batch("fails", "t.jsonl").code == 1
        assert rejected_in(folder / "out") == [
            (1, None, "not with <secret>"),
            (2, None, "the prompt raised KeyError: 'raise'"),
            (3, None, "the prompt raised SystemExit: 0"),
            (4, None, "the prompt raised FileNotFoundError: [Errno 2] no such file: 'a\\udcff'"),
        ]
        assert len(requests_in(folder / "out")) == 1

    def test_duplicate_and_invalid_keys(self, batch, folder):
        """The first valid row of each key is used; duplicate and invalid keys are rejected."""
        rows = [
            {"id": "a", "ticket": "x", "votes": "bad"},
            {"id": "a", "ticket": "first"},
            {"id": "a", "ticket": "second"},
            {"id": "no blanks", "ticket": "x"},
            {"ticket": "x"},
            {"id": 7, "ticket": "number"},
        ]
        (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

        batch("triage", "t.jsonl", "--key", "id", vendor="anthropic")

        assert [line["custom_id"] for line in requests_in(folder / "out")] == ["a", "7"]
        assert rejected_in(folder / "out") == [
            (1, "votes", "'votes' is 'bad', not a whole number", "a"),
            (3, None, "an earlier row has the same key", "a"),
            (
                4,
                None,
                (
                    "its 'id' is not a valid identifier: an identifier for anthropic must consist of 1 to 64 "
                    "letters, digits, hyphens and underscores"
                ),
                "no blanks",
            ),
            (
                5,
                None,
                (
                    "its 'id' is not a valid identifier: an identifier for anthropic must consist of 1 to 64 "
                    "letters, digits, hyphens and underscores"
                ),
            ),
        ]

    @pytest.mark.parametrize("value", ['"' + "k" * 600 + '"', DEEP, "-" + "1" * 4200, "7.5"], ids=range(4))
    def test_odd_key_of_a_rejected_row(self, batch, folder, value):
        """The entry of a rejected row contains its key as text, which is truncated at a limit."""
        (folder / "t.jsonl").write_text(f'{{"id": {value}, "ticket": "x", "votes": "bad"}}', encoding="utf-8")

        assert batch("triage", "t.jsonl", "--key", "id").code == 1
        ((*_, key),) = rejected_in(folder / "out")
        assert len(key) <= 512
        assert key.startswith(value.strip('"')[:512])


class TestFiles:
    def test_files_stay_within_the_limits(self, batch, folder, monkeypatch):
        """Request files stay within the vendor's limits on lines and bytes, and keep the rows' order."""
        (folder / "t.csv").write_text("ticket\n" + "".join(f"t{n}\n" for n in range(25)), encoding="utf-8")
        monkeypatch.setattr(
            "promptkit.cli.batch.LINE_FORMATS",
            {"openai-chat": _with_limits(LINE_FORMATS["openai-chat"], max_lines=10)},
        )
        batch("triage", "t.csv", out="lines")
        monkeypatch.setattr(
            "promptkit.cli.batch.LINE_FORMATS",
            {"openai-chat": _with_limits(LINE_FORMATS["openai-chat"], max_bytes=1000)},
        )
        batch("triage", "t.csv", out="bytes")

        by_lines, by_bytes = (sorted((folder / name).iterdir()) for name in ("lines", "bytes"))
        assert [file.read_bytes().count(b"\n") for file in by_lines] == [10, 10, 5]
        assert all(750 < file.stat().st_size <= 1000 for file in by_bytes[:-1])
        assert b"".join(map(_read_bytes, by_lines)) == b"".join(map(_read_bytes, by_bytes))

    def test_runs_are_reproducible(self, batch, tickets, folder):
        """Every run writes the same bytes, with one process or two."""
        (folder / "t.csv").write_text("ticket\n" + "".join(f"t{n}\n" for n in range(2500)), encoding="utf-8")

        for out, workers in (("one", 1), ("again", 1), ("two", 2)):
            assert batch("triage", "t.csv", "--workers", workers, out=out).code == 0

        single, repeated, parallel = (
            {file.name: file.read_bytes() for file in (folder / name).iterdir()}
            for name in ("one", "again", "two")
        )
        assert single == repeated == parallel

    def test_dry_run(self, batch, tickets, folder):
        """A dry run prints the number of requests, bytes and tokens, and writes nothing."""
        result = batch("triage", tickets, "--dry-run")
        full_run = batch("triage", tickets)

        size = (folder / "out" / "requests-00001.jsonl").stat().st_size
        assert result.out.splitlines() == [
            f"would write 2 requests ({size:,} bytes) to 1 file in 'out'",
            "the requests contain about 21 tokens of text",
        ]
        assert full_run.out == f"wrote 2 requests ({size:,} bytes) to 1 file in 'out'\n"

    def test_files_that_promptkit_did_not_write_are_kept(self, batch, tickets, folder):
        """A file with a reserved name that no batch has written is not overwritten."""
        (folder / "out").mkdir()
        (folder / "out" / "rejected.jsonl").write_text("mine", encoding="utf-8")

        assert batch("triage", tickets).code == 2
        assert (folder / "out" / "rejected.jsonl").read_text(encoding="utf-8") == "mine"

    def test_finished_batch_is_kept(self, batch, tickets, folder):
        """A finished batch is not overwritten, and --resume reports that nothing is left to do."""
        batch("triage", tickets)
        before = requests_in(folder / "out")

        second_run, resumed = batch("triage", tickets), batch("triage", tickets, "--resume")

        message = (
            "promptkit: 'out' already contains a finished batch: replace it with --force, or choose another "
        )
        message += "folder with -o\n"
        assert (second_run.code, second_run.err) == (2, message)
        assert (resumed.code, resumed.out) == (
            0,
            "'out' already contains a finished batch: nothing is left to do\n",
        )
        assert requests_in(folder / "out") == before

    @pytest.mark.parametrize("is_finished", [True, False])
    def test_forced(self, batch, tickets, folder, monkeypatch, is_finished):
        """--force replaces a batch, finished or not, with all of its files."""
        (folder / "t.csv").write_text("ticket,votes\n" + "a,1\n" * 25 + "b,x\n", encoding="utf-8")
        form = _with_limits(LINE_FORMATS["openai-chat"], max_lines=10)
        monkeypatch.setattr("promptkit.cli.batch.LINE_FORMATS", {"openai-chat": form})
        batch("triage", "t.csv")
        assert len(list((folder / "out").iterdir())) == 4
        if not is_finished:
            (folder / "out" / ".promptkit-batch.json").write_text("{}", encoding="utf-8")

        result = batch("triage", tickets, "--force")

        assert result.code == 0, result.err
        assert [file.name for file in (folder / "out").iterdir()] == ["requests-00001.jsonl"]
        assert len(requests_in(folder / "out")) == 2

    def test_forced_and_interrupted(self, batch, tickets, folder, monkeypatch):
        """A forced batch that is interrupted leaves an unfinished batch, which can be resumed."""
        batch("triage", tickets)
        with monkeypatch.context() as patch:
            patch.setattr("promptkit.batch.shards.BatchWriter.write", _raise_eof)
            assert batch("triage", tickets, "--set", "votes=9", "--force").code == 1

        assert batch("triage", tickets).code == 2
        assert batch("triage", tickets, "--set", "votes=9", "--resume").code == 0
        assert "votes: 9" in requests_in(folder / "out")[0]["body"]["messages"][0]["content"]

    def test_forced_in_a_new_folder(self, batch, tickets, folder):
        """--force needs no batch to replace."""
        assert batch("triage", tickets, "--force").code == 0
        assert len(requests_in(folder / "out")) == 2

    def test_other_request_files_are_kept(self, batch, tickets, folder):
        """
        --force does not replace a batch next to other request files, because these would be uploaded too.
        """
        batch("triage", tickets)
        (folder / "out" / "requests-mine.jsonl").write_text("mine", encoding="utf-8")
        before = {file.name: file.read_bytes() for file in (folder / "out").iterdir()}

        result = batch("triage", tickets, "--force")

        message = (
            "promptkit: 'out' contains request files that do not belong to a batch: choose another folder "
            "with -o\n"
        )
        assert (result.code, result.err) == (2, message)
        assert {file.name: file.read_bytes() for file in (folder / "out").iterdir()} == before

    def test_empty_table(self, batch, folder):
        """An empty table yields no requests and no files."""
        (folder / "t.jsonl").write_bytes(b"")

        result = batch("triage", "t.jsonl")

        assert (result.code, result.out) == (0, "wrote 0 requests (0 bytes) to 0 files in 'out'\n")
        assert list((folder / "out").iterdir()) == []


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["triage"], "PROMPT is missing: write PROMPT ROWS, or --join RESULTS ROWS"),
            (
                ["triage", "t.jsonl"],
                "specify a vendor with --for, because each vendor has its own file format",
            ),
            (
                ["triage", "t.jsonl", "--for", "openai-chat"],
                "specify the model with --model, because every request must name it",
            ),
        ],
    )
    def test_missing_arguments(self, tickets, folder, capsys, arguments, message):
        """A missing argument or option is reported with what to write."""
        from promptkit.cli import main

        tickets.rename(folder / "t.jsonl")

        with pytest.raises(SystemExit) as caught:
            main(["batch", *arguments])

        assert caught.value.code == 2
        assert message in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("triaeg", "t.jsonl"), "unknown prompt 'triaeg'; did you mean 'triage'?"),
            (
                ("lists", "t.jsonl"),
                "OpenAI does not support the answer type: list is not an object; wrap it in",
            ),
            (("triage", "nosuch.csv"), "promptkit: 'nosuch.csv' cannot be read: No such file or directory\n"),
            (("triage", "empty.csv"), "the table has no header: write the column names in the first line"),
            (
                ("triage", "twice.csv"),
                "the header contains 'a' more than once: use each column name only once",
            ),
        ],
    )
    def test_unknown_prompt_and_invalid_tables(self, batch, folder, arguments, message):
        """An unknown prompt, a missing file or an invalid header is reported, and nothing is written."""
        (folder / "t.jsonl").write_bytes(b"{}")
        (folder / "empty.csv").write_bytes(b"")
        (folder / "twice.csv").write_bytes(b"a,a\n1,2\n")

        result = batch(*arguments)

        assert message in result.err
        assert result.code in (1, 2)
        assert not (folder / "out").exists()


def _with_limits(form, **limits):
    from msgspec.structs import replace

    return replace(form, **limits)


def _read_bytes(file):
    return file.read_bytes()


def _raise_eof(writer, chunk):
    raise EOFError
