"""`parse_answer`: answers as models send them."""

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import prompt
from promptkit.answers import AnswerError, parse_answer, parsing
from promptkit.types.structuring import _converters


@dataclass
class Finding:
    file: str
    line: int | None
    severity: Literal["low", "high"] = "low"


@dataclass
class Review:
    summary: str
    findings: list[Finding]
    approved: bool = False


@dataclass
class Node:
    name: str
    below: "list[Node]"


class Verdict(Enum):
    APPROVE = "approve"
    REJECT = "reject"


class Options(TypedDict):
    query: str
    limit: int


HANGS = Review("One loop hangs.", [Finding("a.py", 3, "high")])
HANGS_JSON = '{"summary": "One loop hangs.", "findings": [{"file": "a.py", "line": 3, "severity": "high"}]}'
FINE = Review("Fine.", [])

#: Answers that have a value: the answer, its type, and the value.
VALID: dict[str, tuple[str, Any, Any]] = {
    "only JSON": (HANGS_JSON, Review, HANGS),
    "indented": (f"\n\n{json.dumps(json.loads(HANGS_JSON), indent=2)}\n", Review, HANGS),
    "fence": (f"```json\n{HANGS_JSON}\n```", Review, HANGS),
    "fence without a language, and Windows line endings": (f"```\r\n{HANGS_JSON}\r\n```\r\n", Review, HANGS),
    "prose around a fence": (
        f"Sure! Here's the review:\n\n```json\n{HANGS_JSON}\n```\n\nLet me know if it's useful :)",
        Review,
        HANGS,
    ),
    "prose around JSON": (f"I read the diff [see above]. My answer: {HANGS_JSON} That's all!", Review, HANGS),
    "fence that is not closed": (f"Here it is:\n```json\n{HANGS_JSON}", Review, HANGS),
    "fence on one line": (f"```json {HANGS_JSON} ```", Review, HANGS),
    "fence of tildes, indented": (f"1. The answer:\n   ~~~ json\n   {HANGS_JSON}\n   ~~~", Review, HANGS),
    "nested fences": (f"````markdown\n## Review\n\n```json\n{HANGS_JSON}\n```\n````", Review, HANGS),
    "thinking with a draft": (
        (
            '<think>\nThe form is {"summary": ..., "findings": [...]}. A draft:\n{"summary": "Fine.", '
            f'"findings": []}}\nBut I missed a.py.\n</think>\n\n{HANGS_JSON}'
        ),
        Review,
        HANGS,
    ),
    "thinking with a bracket that is not closed": (
        f'Let me start with {{"summary": "It... no, first the facts.\n\n```json\n{HANGS_JSON}\n```',
        Review,
        HANGS,
    ),
    "correction after the first answer": (
        '{"summary": "Fine.", "findings": []}\n\nWait, I missed the loop. Corrected:\n\n' + HANGS_JSON,
        Review,
        HANGS,
    ),
    "valid answer before an invalid one": (
        HANGS_JSON + '\nIn short: {"verdict": "reject"} [1]',
        Review,
        HANGS,
    ),
    "footnote after the answer": (f"{HANGS_JSON}\n\n[1]: see [the docs](x:/{{id}})", Review, HANGS),
    "braces of a template": ('{{"summary": "Fine.", "findings": []}}', Review, FINE),
    "trailing commas": ('{"summary": "Fine.", "findings": [], }', Review, FINE),
    "trailing comma in a list of objects": (
        '{"summary": "One loop hangs.", "findings": [{"file": "a.py", "line": 3, "severity": "high",},],}',
        Review,
        HANGS,
    ),
    "single quotes": ("{'summary': 'Fine.', 'findings': []}", Review, FINE),
    "single quotes with an apostrophe": (
        "{'summary': 'It doesn't end.', 'findings': []}",
        Review,
        Review("It doesn't end.", []),
    ),
    "Python constants": (
        "{'summary': 'Fine.', 'findings': [{'file': 'a.py', 'line': None}], 'approved': True}",
        Review,
        Review("Fine.", [Finding("a.py", None)], approved=True),
    ),
    "keys without quotes": ('{summary: "Fine.", findings: []}', Review, FINE),
    "typographic quotes": ("{“summary”: “Fine.”, “findings”: []}", Review, FINE),
    "comments": (
        '{\n  "summary": "Fine.", // in one sentence\n  /* none */ "findings": []\n}',
        Review,
        FINE,
    ),
    "missing commas": ('{\n  "summary": "Fine."\n  "findings": []\n}', Review, FINE),
    "quotes in text that are not escaped": (
        '{"summary": "Rename "tmp" to "cache".", "findings": []}',
        Review,
        Review('Rename "tmp" to "cache".', []),
    ),
    "line breaks in text": (
        '{"summary": "One.\n\nTwo: {see [1]}.", "findings": []}',
        Review,
        Review("One.\n\nTwo: {see [1]}.", []),
    ),
    "code fence in text with line breaks": (
        '```json\n{"summary": "Write\n```python\nrun()\n```\ninstead.", "findings": []}\n```',
        Review,
        Review("Write\n```python\nrun()\n```\ninstead.", []),
    ),
    "fence within valid text": (
        json.dumps({"summary": "Write\n```python\nrun()\n```", "findings": []}),
        Review,
        Review("Write\n```python\nrun()\n```", []),
    ),
    "ellipsis in a list": ('{"summary": "Fine.", "findings": [...]}', Review, FINE),
    "missing bracket": (
        '{"summary": "One loop hangs.", "findings": [{"file": "a.py", "line": 3, "severity": "high"}}',
        Review,
        HANGS,
    ),
    "semicolon, and prose": ('result = {"summary": "Fine.", "findings": []};', Review, FINE),
    "list": ("The files:\n[\"a.py\", 'b.py',]", list[str], ["a.py", "b.py"]),
    "citations do not count": ('As [1] shows:\n["a.py"]\nSee [a] and [1, 2].', list[str], ["a.py"]),
    "word in quotes": ('"reject"', Verdict, Verdict.REJECT),
    "word on the last line": ('The loop hangs.\n\n"reject"\n', Literal["approve", "reject"], "reject"),
    "number on a line": ("Confidence:\n0.75\n", Annotated[float, msgspec.Meta(ge=0, le=1)], 0.75),
    "null": ("null", Finding | None, None),
    "recursive class": (
        'The tree:\n{"name": "a", "below": [{"name": "b", "below": [],}, {"name": "c", "below": []}]}',
        Node,
        Node("a", [Node("b", []), Node("c", [])]),
    ),
    "dictionary of dates": ('{"start": "2026-01-31"}', dict[str, date], {"start": date(2026, 1, 31)}),
    "escapes": (
        r'{"query": "\u00e9 \ud83d\ude00 \"x\" C:\\", "limit": 1}',
        Options,
        {"query": 'é 😀 "x" C:\\', "limit": 1},
    ),
    "other languages": (
        '答えは次のとおりです。\n```json\n{"query": "検索", "limit": 2}\n```',
        Options,
        {"query": "検索", "limit": 2},
    ),
}

#: Answers without a valid value: the answer, its type, and the path and the reason of each problem.
INVALID: dict[str, tuple[str, Any, dict[str, str]]] = {
    "refusal": (
        "I'm sorry, but I can't help with that.",
        Review,
        {"": "contains no JSON: expected a JSON object with summary, findings, approved"},
    ),
    "nothing": ("", list[str], {"": "contains no JSON: expected a list"}),
    "several problems": (
        (
            '{"summry": "x", "findings": [{"file": 7, "line": "three", "severity": "hgih"}, {"line": 1}], '
            '"approved": "yes"}'
        ),
        Review,
        {
            "summary": "is missing",
            "findings[0].file": "is 7, not text",
            "findings[0].line": "is 'three', not a whole number",
            "findings[0].severity": "is 'hgih', not one of low, high",
            "findings[1].file": "is missing",
            "approved": "is 'yes', not true or false",
            "summry": "is not a member of this object",
        },
    ),
    "other kind of value": (
        "[1, 2]",
        Finding,
        {"": "is [1, 2], not a JSON object with file, line, severity"},
    ),
    "list around the value": (
        '[{"file": "a.py", "line": 1}]',
        Finding,
        {"": "is [{'file': 'a.py', 'line': 1}], not a JSON object with file, line, severity"},
    ),
    "problems of the longest value": (
        '{"summary": 3, "findings": []}\nSee [1].',
        Review,
        {"summary": "is 3, not text"},
    ),
    "problems of the answer after an open bracket": (
        'Let me start with {"summary": "It... no, first the facts. '
        + "The loop hangs. " * 20
        + '\n```\n{"summary": 3, "findings": []}\n```',
        Review,
        {"summary": "is 3, not text"},
    ),
    "cut in a text": (HANGS_JSON[:20], Review, {"": "is cut off: its end is missing"}),
    "cut after a value": (HANGS_JSON[:-2], Review, {"": "is cut off: its end is missing"}),
    "cut in a fence": (f"Here:\n```json\n{HANGS_JSON[:60]}", Review, {"": "is cut off: its end is missing"}),
    "cut after a draft": (
        f"{HANGS_JSON} Better:\n{HANGS_JSON[:60]}",
        Review,
        {"": "is cut off: its end is missing"},
    ),
    "cut within a valid inner value": (
        '{"name": "a", "below": [{"name": "b", "below": []}, {"name"',
        Node,
        {"": "is cut off: its end is missing"},
    ),
    "missing value": (
        'Here:\n{\n  "summary": ,\n  "findings": []\n}',
        Review,
        {"": "is not valid JSON at line 3, column 14: invalid character"},
    ),
    "NaN": ("[1.5, NaN]", list[float], {"[1]": "is 'NaN', not a number"}),
    "half of an emoji": (
        r'{"summary": "\ud83d", "findings": []}',
        Review,
        {"": "is not valid JSON at line 1, column 20: unexpected end of escaped utf-16 surrogate pair"},
    ),
    "deep": ("[" * 101 + "]" * 101, list[Any], {"": "is nested more than 100 levels deep"}),
}


@pytest.mark.parametrize(("text", "answer", "value"), VALID.values(), ids=VALID)
def test_a_valid_answer_is_returned(text, answer, value):
    """The last valid JSON value of the answer is returned, as a value of the type."""
    assert parse_answer(text, answer) == value


@pytest.mark.parametrize(("text", "answer", "problems"), INVALID.values(), ids=INVALID)
def test_an_error_names_every_problem(text, answer, problems):
    """The error has the path and the reason of every problem, and the answer."""
    with pytest.raises(AnswerError) as caught:
        parse_answer(text, answer)

    assert {error.path: error.reason for error in caught.value.errors} == problems
    assert caught.value.text == text
    assert all(f"- {error}\n" in caught.value.for_model() for error in caught.value.errors)


def test_there_are_many_answers():
    """The tables have at least forty answers."""
    assert len(VALID) + len(INVALID) >= 40


def objects(texts):
    """Return JSON objects whose names and strings are *texts*."""
    parts = st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | texts,
        lambda part: st.lists(part, max_size=3) | st.dictionaries(texts, part, max_size=3),
        max_leaves=8,
    )
    return st.dictionaries(texts, parts, max_size=3)


#: Objects whose texts have brackets, quotation marks and fences in them, and objects of words.
OBJECTS = objects(st.text(st.sampled_from("ab \"'\\“”{}[],:`~\n")) | st.just("\n```json\n"))
WORD_OBJECTS = objects(st.text("abé ._", min_size=1).filter(lambda text: text.strip() == text))


class TestLaws:
    @given(OBJECTS, st.sampled_from([None, 2]), st.sampled_from(["", "So: ", "I'm [sure].\n```json\n"]))
    def test_valid_json_is_found_unchanged(self, value, indent, before):
        """Valid JSON is found as it is, whatever strings are in it."""
        assert parse_answer(f"{before}{json.dumps(value, indent=indent)}\n```\n", dict[str, Any]) == value

    @pytest.mark.parametrize(
        "write",
        [
            repr,
            lambda value: re.sub(r"(?<=[^\[{\s])([\]}])", r",\1", json.dumps(value, ensure_ascii=False)),
        ],
        ids=["as Python writes it", "with trailing commas"],
    )
    @given(WORD_OBJECTS)
    def test_usual_mistakes_do_not_change_the_value(self, write, value):
        """Python's repr, and JSON with trailing commas, are parsed to the same value as valid JSON."""
        assert parse_answer(f"So: {write(value)}", dict[str, Any]) == value

    @given(OBJECTS, st.data())
    def test_a_cut_answer_is_never_valid(self, value, data):
        """If the end of an object is missing, no part of it counts."""
        text = json.dumps({"part": value}, ensure_ascii=False)

        with pytest.raises(AnswerError):
            parse_answer(text[: data.draw(st.integers(1, len(text) - 1))], dict[str, Any])

    @given(st.text(st.sampled_from("ab1 \"'\\“”{}[],:`\n/#")))
    def test_any_text_has_a_value_or_an_error(self, text):
        """Any text gives a value that JSON can represent, or raises an AnswerError."""
        for allow_cut in (False, True):
            try:
                value = parse_answer(text, dict[str, Any], allow_cut=allow_cut)
            except AnswerError as error:
                value = {str(part): None for part in error.errors}
            assert json.loads(json.dumps(value)) == value


#: Cut answers, and their values with `allow_cut`, or the paths of their problems.
CUT: dict[str, tuple[str, Any]] = {
    "in a text": ('{"findings": [], "summary": "It', Review("It", [])),
    "after an item": (
        '{"summary": "x", "findings": [{"file": "a", "line": 1},',
        Review("x", [Finding("a", 1)]),
    ),
    "in a name": ('{"summary": "x", "findings": [], "appr', Review("x", [])),
    "after a name": ('{"summary": "x", "findings": [], "approved":', Review("x", [])),
    "in single quotes": ("```json\n{'summary': 'x', 'findings': [", Review("x", [])),
    "after a draft": (HANGS_JSON + '\nBetter:\n{"summary": "y", "findings": [', Review("y", [])),
    "before a required member": ('{"summary": "It', ["findings"]),
    "in a first name": (
        '{"summary": "x", "findings": [{"file": "a", "line": 1}, {"fi',
        Review("x", [Finding("a", 1)]),
    ),
    "before a required member of an item": (
        '{"summary": "x", "findings": [{"file": "a", "line": 1}, {"file": "b"',
        ["findings[1].line"],
    ),
}


@pytest.mark.parametrize(("text", "outcome"), CUT.values(), ids=CUT)
def test_a_cut_answer_can_be_allowed(text, outcome):
    """A truncated answer is an error. With `allow_cut`, it is accepted if the rest is valid."""
    with pytest.raises(AnswerError, match="is cut"):
        parse_answer(text, Review)

    if isinstance(outcome, Review):
        assert parse_answer(text, Review, allow_cut=True) == outcome
    else:
        with pytest.raises(AnswerError) as caught:
            parse_answer(text, Review, allow_cut=True)
        assert [error.path for error in caught.value.errors] == outcome


class TestWithoutTheExtra:
    @pytest.fixture(autouse=True)
    def no_library(self, monkeypatch):
        """An environment without json-repair."""
        monkeypatch.setitem(sys.modules, "json_repair", None)

    @pytest.mark.parametrize(
        "name", ["only JSON", "prose around a fence", "nested fences", "correction after the first answer"]
    )
    def test_valid_json_is_found(self, name):
        """Prose and fences around valid JSON need no extra."""
        text, answer, value = VALID[name]

        assert parse_answer(text, answer) == value

    def test_malformed_json_is_an_error(self):
        """Malformed JSON is an error with its location, and a note on how to install the extra."""
        with pytest.raises(AnswerError, match="line 2, column 1: trailing comma") as caught:
            parse_answer("[1,\n]", list[int])

        assert "answers" in caught.value.__notes__[0]

    def test_other_errors_have_no_note(self):
        """The extra is not suggested where it would not help."""
        with pytest.raises(AnswerError) as caught:
            parse_answer('["x"]', list[int])

        assert not hasattr(caught.value, "__notes__")


class TestLimits:
    def test_a_long_answer_is_rejected(self):
        """An answer of more than 1 MiB is rejected."""
        longest = " " * (1024 * 1024 - 3) + "[1]"

        assert parse_answer(longest, list[int]) == [1]
        with pytest.raises(AnswerError, match="more than 1,048,576 characters"):
            parse_answer(longest + " ", list[int])

    def test_deep_values(self):
        """A value can be nested 100 levels deep; a deeper value before it is skipped."""
        deepest = "[" * 100 + "]" * 100

        assert json.dumps(parse_answer(deepest, list[Any])) == deepest
        assert parse_answer(f"[{deepest}]\n```\n[1]", list[Any]) == [1]

    def test_the_last_values_are_tried(self):
        """Of many values, the last hundred are tried."""
        many = "{} " * 99

        assert parse_answer("[1] " + many, list[int]) == [1]
        with pytest.raises(AnswerError):
            parse_answer("[1] {} " + many, list[int])

    @pytest.mark.parametrize(
        "text",
        [
            '{"a": "' + '["' * 5_000,
            '{"a": ' + "(" * 10_000 + "}",
            '[,{"a":"' * 1_000,
            "{" + ']a \\"{' * 2_000 + "}",
            '["a"a' * 1_000,
            '{"a": 1,]' * 1_000,
            "{'a': '" + "it's, " * 2_000 + "'",
            '{"a":' * 2_000,
            "[" * 10_000,
            '"' * 10_000 + "{" * 10_000,
            "{a: b " + "' " * 10_000,
        ],
        ids=lambda text: text[:12],
    )
    def test_the_work_on_hostile_answers_is_limited(self, monkeypatch, text):
        """However malformed the JSON is, the number of function calls is limited."""
        monkeypatch.setattr(parsing, "_MAX_READ", 20_000)
        calls = Counter[str]()

        before = sys.getprofile()
        sys.setprofile(lambda _frame, event, _arg: calls.update((event,)))
        try:
            with pytest.raises(AnswerError):
                parse_answer(text, list[int], allow_cut=True)
        finally:
            sys.setprofile(before)

        assert calls["call"] + calls["c_call"] < 20 * (20_000 + len(text))


class TestTypes:
    def test_equal_types_are_inspected_once(self):
        """A type that is a new object in each call is inspected only once."""
        parse_answer("[]", list[Node])
        before = len(_converters)

        for _ in range(3):
            assert parse_answer("[]", list[Node]) == []

        assert len(_converters) == before

    def test_order_in_unions(self):
        """Types that are equal but list their members in another order are distinct."""
        values = [parse_answer("[1]", answer)[0] for answer in (list[int | float], list[float | int])]

        assert [type(value) for value in values] == [int, float]

    @pytest.mark.parametrize("answer", [object, list[object], 3, Node("a", [])], ids=str)
    def test_unsupported_type(self, answer):
        """An unsupported type is a TypeError, like in `answer_format`."""
        with pytest.raises(TypeError, match="cannot be the type of an answer"):
            parse_answer("{}", answer)

    @pytest.mark.parametrize("text", [None, b"{}", {"a": 1}])
    def test_an_answer_that_is_not_text_is_rejected(self, text):
        """An answer that is not text raises a TypeError; SDKs return None for some refusals."""
        with pytest.raises(TypeError, match="an answer must be text"):
            parse_answer(text, Review)


class TestPrompts:
    def test_a_prompt_parses_its_answers(self):
        """A prompt that declares the type of its answer parses answers."""

        @prompt(answer=Review)
        def review(diff: str) -> str:
            return diff

        assert review.parse_answer(f"Sure: {HANGS_JSON}") == HANGS
        assert review.parse_answer('{"summary": "x", "findings": [', allow_cut=True) == Review("x", [])
        with pytest.raises(AnswerError):
            review.parse_answer("no")

    def test_other_prompts_do_not_parse_answers(self):
        """A prompt that does not declare the type of its answer has no `parse_answer`."""

        @prompt
        def review(diff: str) -> str:
            return diff

        assert not hasattr(review, "parse_answer")
