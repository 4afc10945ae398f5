"""`promptkit batch --join`: rows joined with the returned answers."""

import json

import pytest

from promptkit.batch.joining import answer_of

ANSWERS = {
    "openai-chat": {
        "id": "r",
        "custom_id": "1-ab",
        "response": {
            "status_code": 200,
            "body": {"choices": [{"message": {"role": "assistant", "content": "Yes."}}]},
        },
        "error": None,
    },
    "openai-responses": {
        "custom_id": "1-ab",
        "response": {
            "status_code": 200,
            "body": {
                "error": None,
                "output": [
                    {"type": "reasoning", "summary": [], "content": [{"type": "x", "text": "Hm."}]},
                    {"type": "message", "content": [{"type": "output_text", "text": "Yes."}]},
                ],
            },
        },
        "error": None,
    },
    "anthropic": {
        "custom_id": "1-ab",
        "result": {
            "type": "succeeded",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
        },
    },
    "gemini": {
        "key": "1-ab",
        "response": {
            "candidates": [{"content": {"parts": [{"text": "Hm.", "thought": True}, {"text": "Yes."}]}}]
        },
    },
    "bedrock": {
        "recordId": "1-ab",
        "modelInput": {"messages": []},
        "modelOutput": {"content": [{"type": "text", "text": "Yes."}]},
    },
}

FAILED_RESULTS = {
    "openai": (
        {
            "custom_id": "1",
            "response": {"status_code": 400, "body": {"error": {"message": "no"}}},
            "error": None,
        },
        '{"message":"no"}',
    ),
    "expired": (
        {"custom_id": "1", "response": None, "error": {"code": "batch_expired"}},
        '{"code":"batch_expired"}',
    ),
    "anthropic": (
        {"custom_id": "1", "result": {"type": "errored", "error": {"type": "invalid_request"}}},
        '{"type":"invalid_request"}',
    ),
    "canceled": (
        {"custom_id": "1", "result": {"type": "canceled"}},
        'the result does not contain an answer: {"type":"canceled"}',
    ),
    "gemini": ({"key": "1", "error": {"code": 3}}, '{"code":3}'),
    "bedrock": ({"recordId": "1", "error": {"errorCode": 400}}, '{"errorCode":400}'),
    "refused": (
        {"custom_id": "1", "response": {"body": {"choices": [{"message": {"refusal": "no"}}]}}},
        'the result does not contain an answer: {"choices":[{"message":{"refusal":"no"}}]}',
    ),
}


def result_with_reason(vendor, member, reason):
    """Return a vendor's result whose *member* has the reason why the model stopped."""
    result = json.loads(json.dumps(ANSWERS[vendor]))
    match vendor:
        case "openai-chat":
            result["response"]["body"]["choices"][0][member] = reason
        case "openai-responses" if member == "status":
            result["response"]["body"]["status"] = reason
        case "openai-responses":
            result["response"]["body"] |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
        case "anthropic":
            result["result"]["message"][member] = reason
        case "gemini":
            result["response"]["candidates"][0][member] = reason
        case "bedrock":
            result["modelOutput"][member] = reason
    return result


@pytest.mark.parametrize(
    ("vendor", "member", "reason"),
    [
        ("openai-chat", "finish_reason", "length"),
        ("openai-chat", "finish_reason", "content_filter"),
        ("openai-responses", "incomplete_details.reason", "max_output_tokens"),
        ("openai-responses", "status", "in_progress"),
        ("anthropic", "stop_reason", "max_tokens"),
        ("anthropic", "stop_reason", "model_context_window_exceeded"),
        ("anthropic", "stop_reason", "refusal"),
        ("anthropic", "stop_reason", "tool_use"),
        ("gemini", "finishReason", "MAX_TOKENS"),
        ("gemini", "finishReason", "SAFETY"),
        ("bedrock", "stop_reason", "max_tokens"),
    ],
)
def test_incomplete_answer(vendor, member, reason):
    """An answer that was cut off is an error that names the vendor's reason."""
    assert answer_of(result_with_reason(vendor, member, reason)) == (
        None,
        f"the answer is incomplete: {member} is {reason!r}",
    )


@pytest.mark.parametrize(
    ("vendor", "member", "reason"),
    [
        ("openai-chat", "finish_reason", "stop"),
        ("openai-chat", "finish_reason", "eos"),
        ("openai-chat", "finish_reason", None),
        ("openai-responses", "status", "completed"),
        ("anthropic", "stop_reason", "end_turn"),
        ("anthropic", "stop_reason", "stop_sequence"),
        ("gemini", "finishReason", "STOP"),
        ("bedrock", "stop_reason", "end_turn"),
    ],
)
def test_complete_answer(vendor, member, reason):
    """If the model stopped by itself, its answer is complete."""
    assert answer_of(result_with_reason(vendor, member, reason)) == ("Yes.", None)


@pytest.mark.parametrize("vendor", ANSWERS)
def test_answer_of_each_vendor(vendor):
    """The answer is the text of the first choice, without the model's reasoning."""
    assert answer_of(ANSWERS[vendor]) == ("Yes.", None)


@pytest.mark.parametrize(("failed_result", "error"), FAILED_RESULTS.values(), ids=FAILED_RESULTS)
def test_error_of_a_failed_result(failed_result, error):
    """A failed result yields the vendor's error, or the text that the result has instead of an answer."""
    assert answer_of(failed_result) == (None, error)


def result_line(identifier, text):
    message = {"content": [{"type": "text", "text": text}]}
    return json.dumps({"custom_id": identifier, "result": {"type": "succeeded", "message": message}}) + "\n"


def test_answers_are_in_the_order_of_the_rows(batch, folder):
    """Answers are joined in the order of the rows, across any number of result files."""
    (folder / "t.csv").write_text("ticket\na\nb\nc\nd,d\ne\n", encoding="utf-8")
    results = folder / "results"
    results.mkdir()
    (results / "b.jsonl").write_text(
        result_line("3-0123456789abcdef", "C") + result_line("1-0123456789abcdef", "A"), encoding="utf-8"
    )
    (results / "a.jsonl").write_text("\n" + result_line("2-0123456789abcdef", "B"), encoding="utf-8")

    result = batch("--join", results, "t.csv")

    joined_rows = [json.loads(line) for line in result.out.splitlines()]
    assert [
        (joined_row["row"] and joined_row["row"]["ticket"], joined_row["answer"])
        for joined_row in joined_rows
    ] == [
        ("a", "A"),
        ("b", "B"),
        ("c", "C"),
        (None, None),
        ("e", None),
    ]
    assert [joined_row["error"] for joined_row in joined_rows] == [
        *[None] * 3,
        "the line has 2 cells, but the header has 1: quote cells that contain a comma",
        "the row has no result",
    ]
    assert (result.code, result.err) == (1, "promptkit: 2 rows without an answer: see their 'error' field\n")


def test_keys_match_results(batch, folder):
    """Keys of any type match the results' identifiers."""
    (folder / "t.jsonl").write_text(
        '{"id": 7, "ticket": "a"}\n{"id": "x-1", "ticket": "b"}\n', encoding="utf-8"
    )
    (folder / "r.jsonl").write_text(result_line("x-1", "B") + result_line("7", "A"), encoding="utf-8")

    result = batch("--join", "r.jsonl", "t.jsonl", "--key", "id")

    assert [json.loads(line)["answer"] for line in result.out.splitlines()] == ["A", "B"]
    assert result.code == 0


def test_byte_order_mark(batch, folder):
    """A byte order mark before the results is ignored."""
    (folder / "t.csv").write_text("id,ticket\n7,a\n", encoding="utf-8-sig")
    (folder / "r.jsonl").write_text(result_line("7", "A"), encoding="utf-8-sig")

    result = batch("--join", "r.jsonl", "t.csv", "--key", "id")

    assert (result.code, json.loads(result.out)["answer"]) == (0, "A")


def test_duplicate_results_and_keys(batch, folder):
    """A successful result wins over a failed one, and only the first row with a key gets the answer."""
    rows = ['{"id": "a"}', '{"id": "a"}', '{"id": null}', '{"id": "b"}']
    (folder / "t.jsonl").write_text("\n".join(rows), encoding="utf-8")
    failed = json.dumps({"custom_id": "b", "error": "expired"}) + "\n"
    (folder / "r.jsonl").write_text(
        failed + result_line("b", "B") + result_line("a", "A") + result_line("None", "no"), encoding="utf-8"
    )

    result = batch("--join", "r.jsonl", "t.jsonl", "--key", "id")

    assert [
        (joined_row["answer"], joined_row["error"]) for joined_row in map(json.loads, result.out.splitlines())
    ] == [
        ("A", None),
        (None, "an earlier row has the same key"),
        (None, "the row has no key"),
        ("B", None),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            (
                "the identifier '7' in 'r.jsonl' does not contain a row number: specify the key column "
                "with --key"
            ),
        ),
        (["--key", "nosuch"], "the key column 'nosuch' does not exist; the columns are 'id'"),
    ],
)
def test_missing_and_unknown_key_columns(batch, folder, arguments, message):
    """A key is not mistaken for a row number, and an unknown key column is reported."""
    (folder / "t.csv").write_text("id\n7\n", encoding="utf-8")
    (folder / "r.jsonl").write_text(result_line("7", "A"), encoding="utf-8")

    result = batch("--join", "r.jsonl", "t.csv", *arguments)

    assert (result.code, result.err) == (2, f"promptkit: {message}\n")


@pytest.mark.parametrize("line", ["{", "[]", '{"id": 1}'])
def test_invalid_result(batch, folder, line):
    """An invalid result is reported with its file and byte offset."""
    (folder / "t.csv").write_text("ticket\na\n", encoding="utf-8")
    (folder / "r.jsonl").write_text(result_line("1-0123456789abcdef", "A") + line, encoding="utf-8")

    result = batch("--join", "r.jsonl", "t.csv")

    offset = len(result_line("1-0123456789abcdef", "A"))
    assert result.code == 2
    assert (
        f"'r.jsonl' has no result at byte {offset}: each line must be a JSON object with one of the fields "
        in result.err
    )


class TestRejectedRows:
    @pytest.fixture
    def table(self, batch, folder):
        """A table with two invalid rows, one of them with the key of a valid row."""
        rows = "id,ticket,votes\na,x,many\na,y,1\nb,z,few\nc,z,2\n"
        (folder / "t.csv").write_text(rows, encoding="utf-8")
        return folder / "t.csv"

    def test_by_key(self, batch, folder, table):
        """A rejected row has the reason of the rejection, and not the answer of another row with its key."""
        batch("triage", "t.csv", "--key", "id")
        (folder / "r.jsonl").write_text(result_line("a", "A"), encoding="utf-8")

        result = batch("--join", "r.jsonl", "t.csv", "--key", "id", "-o", "out")

        rows = list(map(json.loads, result.out.splitlines()))
        assert [(row["answer"], row["error"]) for row in rows] == [
            (None, "the batch rejected the row: 'votes' is 'many', not a whole number"),
            ("A", None),
            (None, "the batch rejected the row: 'votes' is 'few', not a whole number"),
            (None, "the row has no result"),
        ]
        assert result.code == 1

    def test_by_number(self, batch, folder, table):
        """Without a key, rejected rows are recognized by their line numbers."""
        batch("triage", "t.csv")
        (folder / "r.jsonl").write_text(result_line("2-0123456789abcdef", "A"), encoding="utf-8")

        result = batch("--join", "r.jsonl", "t.csv", "-o", "out")

        rows = list(map(json.loads, result.out.splitlines()))
        assert rows[1]["answer"] == "A"
        assert rows[2]["error"] == "the batch rejected the row: 'votes' is 'few', not a whole number"
        assert rows[3]["error"] == "the row has no result"

    @pytest.mark.parametrize("name", ["results.jsonl", "requests-00001.jsonl.out"])
    def test_results_in_the_folder_of_the_batch(self, batch, folder, table, name):
        """Results can be in the folder of the batch, under the names that vendors give them."""
        batch("triage", "t.csv", "--key", "id")
        (folder / "out" / name).write_text(result_line("a", "A") + result_line("c", "C"), encoding="utf-8")

        result = batch("--join", "out", "t.csv", "--key", "id", "-o", "out")

        rows = list(map(json.loads, result.out.splitlines()))
        assert [row["answer"] for row in rows] == [None, "A", None, "C"]
        assert result.err == "promptkit: 2 rows without an answer: see their 'error' field\n"

    def test_of_another_table(self, batch, folder, table):
        """Rejected rows of a table with other keys are ignored."""
        batch("triage", "t.csv", "--key", "id")
        with (folder / "out" / "rejected.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"line": 2**70, "argument": None, "reason": "no"}) + "\n")
        (folder / "other.csv").write_text("id,ticket\nx,1\ny,2\n", encoding="utf-8")
        (folder / "r.jsonl").write_text(result_line("x", "X"), encoding="utf-8")

        result = batch("--join", "r.jsonl", "other.csv", "--key", "id", "-o", "out")

        rows = list(map(json.loads, result.out.splitlines()))
        assert [(row["answer"], row["error"]) for row in rows] == [
            ("X", None),
            (None, "the row has no result"),
        ]

    @pytest.mark.parametrize("line", ["{", "7", '{"line": "x"}', '{"line": ' + "9" * 5000 + "}"])
    def test_invalid_file(self, batch, folder, table, line):
        """An invalid `rejected.jsonl` is reported."""
        (folder / "out").mkdir()
        (folder / "out" / "rejected.jsonl").write_text(line, encoding="utf-8")
        (folder / "r.jsonl").write_text(result_line("a", "A"), encoding="utf-8")

        result = batch("--join", "r.jsonl", "t.csv", "--key", "id", "-o", "out")

        message = (
            "promptkit: 'out/rejected.jsonl' has no rejected row at byte 0: specify the batch's folder "
            "with -o\n"
        )
        assert (result.code, result.err) == (2, message)


@pytest.mark.parametrize(
    ("arguments", "identifier", "keys"),
    [(["--key", "id"], "{}", "'a', 'b'"), ([], "{}-0123456789abcdef", "'2', '3'")],
    ids=["key", "number"],
)
def test_results_without_a_row(batch, folder, arguments, identifier, keys):
    """Results that belong to no row are reported."""
    (folder / "t.csv").write_text("id,ticket\n1,x\n", encoding="utf-8")
    lines = [result_line(identifier.format(key), "A") for key in ("1", *keys.replace("'", "").split(", "))]
    (folder / "r.jsonl").write_text("".join(lines), encoding="utf-8")

    result = batch("--join", "r.jsonl", "t.csv", *arguments)

    assert json.loads(result.out)["answer"] == "A"
    assert (result.code, result.err) == (1, f"promptkit: 2 results without a row: {keys}\n")


def test_many_results_without_a_row(batch, folder):
    """The error lists the first identifiers, and the number of the remaining ones."""
    (folder / "t.csv").write_text("id\nx\n", encoding="utf-8")
    lines = (result_line(f"{number:03}", "A") for number in range(100))
    (folder / "r.jsonl").write_text("".join(lines), encoding="utf-8")

    result = batch("--join", "r.jsonl", "t.csv", "--key", "id")

    assert "promptkit: 100 results without a row: '000', '001'," in result.err
    assert result.err.endswith("'019', and 80 more\n")


class TestParsedAnswers:
    @pytest.fixture
    def join_answers(self, batch, folder):
        """
        A function that joins answers with rows, and returns the joined rows and the result of the command.
        """

        def join(*arguments, answers=("ok",)):
            rows = "".join(f"{number},x\n" for number in range(len(answers)))
            (folder / "t.csv").write_text(f"id,ticket\n{rows}", encoding="utf-8")
            lines = "".join(result_line(str(number), answer) for number, answer in enumerate(answers))
            (folder / "r.jsonl").write_text(lines, encoding="utf-8")
            result = batch(*arguments, "--join", "r.jsonl", "t.csv", "--key", "id")
            return [json.loads(line) for line in result.out.splitlines()], result

        return join

    def test_answers_are_parsed(self, join_answers):
        """With the name of a prompt that declares `answer=`, each row has a parsed answer or an error."""
        answers = (
            'Sure:\n```json\n{"label": "bug", "reason": "It hangs."}\n```',
            "{'label': 'bug', 'reason': 'It hangs.',}",
            '{"label": 3}',
        )

        rows, result = join_answers("judge", answers=answers)

        verdict = {"label": "bug", "reason": "It hangs."}
        assert [(row["answer"], row["parsed"], row["error"]) for row in rows] == [
            (answers[0], verdict, None),
            (answers[1], verdict, None),
            (answers[2], None, "'label' is 3, not text; 'reason' is missing"),
        ]
        assert (result.code, result.err) == (
            1,
            "promptkit: 1 row without a valid answer: see their 'error' field\n",
        )

    def test_without_a_prompt(self, join_answers):
        """Without the name of a prompt, answers stay text."""
        rows, result = join_answers(answers=['{"label": 3}'])

        assert [*rows[0]] == ["line", "row", "answer", "error"]
        assert (rows[0]["answer"], result.code) == ('{"label": 3}', 0)

    def test_a_row_without_a_result(self, join_answers, folder, batch):
        """A row without a result has no parsed answer."""
        join_answers("judge")
        (folder / "t.csv").write_text("id,ticket\nnone,x\n", encoding="utf-8")

        result = batch("judge", "--join", "r.jsonl", "t.csv", "--key", "id")

        row = json.loads(result.out)
        assert (row["answer"], row["parsed"], row["error"]) == (None, None, "the row has no result")

    def test_a_prompt_without_a_type_of_answers(self, join_answers, capsys):
        """A prompt that does not declare `answer=` is a usage error."""
        with pytest.raises(SystemExit) as caught:
            join_answers("triage")

        assert caught.value.code == 2
        assert "prompt 'triage' does not declare answer=" in capsys.readouterr().err

    def test_an_unknown_prompt(self, join_answers):
        """The name of an unknown prompt is a usage error."""
        rows, result = join_answers("jugde")

        assert (rows, result.code) == ([], 2)
        assert "did you mean 'judge'?" in result.err
