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
        'there is no answer in it: {"type":"canceled"}',
    ),
    "gemini": ({"key": "1", "error": {"code": 3}}, '{"code":3}'),
    "bedrock": ({"recordId": "1", "error": {"errorCode": 400}}, '{"errorCode":400}'),
    "refused": (
        {"custom_id": "1", "response": {"body": {"choices": [{"message": {"refusal": "no"}}]}}},
        'there is no answer in it: {"choices":[{"message":{"refusal":"no"}}]}',
    ),
}


@pytest.mark.parametrize("vendor", ANSWERS)
def test_answer_of_each_vendor(vendor):
    """The answer is the text of the first choice, without the model's reasoning."""
    assert answer_of(ANSWERS[vendor]) == ("Yes.", None)


@pytest.mark.parametrize(("failed_result", "error"), FAILED_RESULTS.values(), ids=FAILED_RESULTS)
def test_error_of_a_failed_result(failed_result, error):
    """A failed result yields the vendor's error, or whatever replaces the answer."""
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
        "there is no result",
    ]
    assert (result.code, result.err) == (1, "promptkit: 2 rows without an answer: 'error' says why\n")


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
        (None, "its key is that of an earlier row"),
        (None, "it has no key"),
        ("B", None),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "'r.jsonl' has '7', which is not a row number: name the key column with --key"),
        (["--key", "nosuch"], "there is no column 'nosuch', which is the key; there are 'id'"),
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
        f"'r.jsonl' has no result at byte {offset}: each line is an object with custom_id or key or"
        in result.err
    )
