"""One side of a comparison: a process that runs foreign code."""

import json
import os

import pytest

from promptkit.cli.differences import sides
from promptkit.cli.differences.changes import changes_between
from promptkit.cli.differences.process_answers import AnswerError, Lists, Renderings, decode_answer
from promptkit.cli.differences.revisions import RevisionError
from promptkit.cli.differences.sides import Side, ask_side

PROMPT = """
from promptkit import prompt

@prompt
def review(code: str = "x"):
    return f"Review {code}"
"""

#: Writes to every descriptor except the standard ones, and exits with 0.
FORGED_ANSWER = """
import os
for descriptor in range(3, 32):
    try:
        os.write(descriptor, {!r})
    except OSError:
        pass
os._exit(0)
"""

EMPTY = {"lists": {}, "places": {}, "examples": {}, "shown": {}, "faults": []}


def test_side_that_hangs_times_out(recipes, monkeypatch):
    """A hanging side times out, even if its input is more than a pipe can hold."""
    monkeypatch.setattr(sides, "_MAX_S", 1.0)
    folder = recipes(hangs="import time\ntime.sleep(60)\n")

    with (
        Side(sides.__name__, folder.parent, [folder.name]) as side,
        pytest.raises(RevisionError, match="did not end within 1 s"),
    ):
        side.answer({"asked": "x" * 1_000_000}, Lists)


@pytest.mark.parametrize("reads", ["input()", "sys.stdin.buffer.readline()", "os.read(0, 100)"])
def test_standard_input_is_empty(reads, recipes):
    """Recipes cannot read the questions for their process."""
    source = f"import os, sys\ntry:\n    assert not {reads}\nexcept EOFError:\n    pass\n{PROMPT}"
    folder = recipes(reads=source)

    answer = ask_side(folder.parent, [folder.name])

    assert answer["faults"] == []
    assert [item["name"] for item in answer["lists"]["prompts"]] == ["review"]


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (b"noise", "is not understood: its output is not JSON"),
        (b"\xff\xfe", "is not understood: its output is not JSON"),
        (b"[" * 100_000, "is not understood: its output is not JSON"),
        (b"[]", "is not understood: its output is not an answer: Expected `object`, got `array`"),
        (b"{}", "is not understood: its output is not an answer: Object missing required field `lists`"),
        (b'{"unloadable": 1, "target": 2}', "is not understood: its output is not an answer: Expected "),
        (b'{"failed": "on purpose"}', "failed: on purpose"),
        (b"", "exited with code 0 without an answer"),
    ],
)
def test_forged_answer(printed, reason, recipes):
    """The error names the side and the reason in one line."""
    folder = recipes(forges=FORGED_ANSWER.format(printed))

    with pytest.raises(RevisionError) as error:
        ask_side(folder.parent, [folder.name])

    assert str(error.value).startswith(f"the process that loads {folder.name!r} {reason}")
    assert "\n" not in str(error.value)


def test_answer_that_is_too_large(recipes, monkeypatch):
    """An answer above the limit is rejected without being held in memory."""
    monkeypatch.setattr(sides, "_MAX_BYTES", 1000)
    folder = recipes(forges=FORGED_ANSWER.format(b" " * 1001))

    with pytest.raises(RevisionError, match="printed more than 1,000 bytes"):
        ask_side(folder.parent, [folder.name])


def test_internal_error_is_one_line(recipes, monkeypatch, capfd):
    """An error in promptkit, for example because a recipe broke it, takes one line."""
    broken = (
        "import promptkit.cli.differences.sides as s\nimport sys\nsys.modules['__main__'].side_of = None\n"
    )
    folder = recipes(breaks=broken + PROMPT)

    with pytest.raises(RevisionError, match="failed: TypeError: 'NoneType' object is not callable"):
        ask_side(folder.parent, [folder.name])

    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise KeyboardInterrupt", "failed: KeyboardInterrupt"),
        (
            "import os\nfor n in range(3, 32):\n    try: os.close(n)\n    except OSError: pass",
            "exited with code ",
        ),
        ("import os\nos.kill(os.getpid(), 9)", "exited with code -9 without an answer"),
    ],
    ids=["interrupts", "closes", "kills"],
)
@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_side_that_exits(source, reason, recipes, capfd):
    """A process that ends early is reported in one line without a traceback."""
    folder = recipes(ends=source)

    with pytest.raises(RevisionError, match=reason):
        ask_side(folder.parent, [folder.name])

    assert "Traceback" not in capfd.readouterr().err


def lists_with_prompt(**fields):
    """Return lists that contain one prompt."""
    argument = {"name": "x", "required": True, "schema": {}, "type": "str", "words": None, **fields}
    return {"lists": {"prompts": [{"name": "p", "$defs": {}, "arguments": [argument]}]}}


@pytest.mark.parametrize(
    "part",
    [
        {"lists": []},
        {"lists": {"prompts": [{}]}},
        {"lists": {"prompts": [{"name": ["p"], "$defs": {}}]}},
        {"lists": {"prompts": [{"name": "p", "$defs": {}, "_meta": []}]}},
        {"lists": {"prompts": [{"name": "p", "$defs": {}, "scopes": [[]]}]}},
        {"lists": {"resources": [{"name": "r"}]}},
        {"lists": {"skills": [{"uri": "skill://x/SKILL.md", "resources": [{}]}]}},
        lists_with_prompt(required="yes"),
        lists_with_prompt(schema=[]),
        lists_with_prompt(schema={"anyOf": [1]}),
        lists_with_prompt(schema={"$ref": 1}),
        lists_with_prompt(schema={"type": ["integer"]}),
        lists_with_prompt(schema={"enum": 1}),
        {"places": {"prompt 'x'": ["a"]}},
        {"places": {"prompt 'x'": [1, 2]}},
        {"examples": {"prompt 'x'": [1]}},
        {"shown": {"prompt 'x'": [{"for": 1, "text": None, "failure": None}]}},
        {"shown": {"prompt 'x'": [{}]}},
        {"faults": [["a", "b", "c"]]},
        {"faults": [1]},
    ],
)
def test_answer_of_another_structure_is_rejected(part):
    """The types of an answer are validated, because later code relies on them."""
    with pytest.raises(AnswerError, match="is not an answer: "):
        decode_answer(json.dumps({**EMPTY, **part}), Lists)


@pytest.mark.parametrize(
    "part", [{"said": {"p": {"x": 1}}}, {"said": []}, {"cases": {"p": {"x": 1}}}, {"faults": None}]
)
def test_renderings_of_another_structure_are_rejected(part):
    """Transcripts must be strings, and cases must be wire arguments."""
    with pytest.raises(AnswerError, match="is not an answer: "):
        decode_answer(json.dumps({"cases": {}, "said": {}, "faults": [], **part}), Renderings)


def test_lone_surrogates_are_valid():
    """A transcript can contain every Python string."""
    data = {**EMPTY, "places": {"\ud800": ["\udcff", 1]}}

    assert decode_answer(json.dumps(data), Lists) == {**data, "places": {"\ud800": ["\udcff", 1]}}


@pytest.mark.parametrize(
    ("schema", "definitions"),
    [
        ({"$ref": "#/$defs/none"}, {}),
        ({"$ref": "elsewhere"}, {}),
        ({"$ref": "#/$defs/a"}, {"a": {"$ref": "#/$defs/a"}}),
        ({"$ref": "#/$defs/a"}, {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}),
        (
            {"$ref": "#/$defs/0"},
            {str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}, {"items": {}}] * 2} for n in range(200)},
        ),
    ],
    ids=["missing", "foreign", "itself", "circle", "many"],
)
def test_circular_references_are_bounded(schema, definitions):
    """Forged schemas with missing or circular references are compared in bounded time."""
    forged, honest = lists_with_prompt(schema=schema), lists_with_prompt(schema={"type": "integer"})
    forged["lists"]["prompts"][0]["$defs"] = definitions
    answers = [decode_answer(json.dumps({**EMPTY, **item}), Lists) for item in (forged, honest)]

    assert changes_between(*answers)
    assert changes_between(*reversed(answers))
    assert changes_between(answers[0], answers[0]) is not None
