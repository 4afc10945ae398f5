"""One side of a comparison: a process in which foreign code runs."""

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

#: Writes to every descriptor but the standard ones, and ends with code 0.
FORGES = """
import os
for descriptor in range(3, 32):
    try:
        os.write(descriptor, {!r})
    except OSError:
        pass
os._exit(0)
"""

EMPTY = {"lists": {}, "places": {}, "examples": {}, "shown": {}, "faults": []}


def test_a_side_that_hangs_is_given_up(recipes, monkeypatch):
    """
    Also where it is asked for more than a pipe holds, and reads nothing of it.
    """
    monkeypatch.setattr(sides, "_MAX_S", 1.0)
    folder = recipes(hangs="import time\ntime.sleep(60)\n")

    with (
        Side(sides.__name__, folder.parent, [folder.name]) as side,
        pytest.raises(RevisionError, match="did not end within 1 s"),
    ):
        side.answer({"asked": "x" * 1_000_000}, Lists)


@pytest.mark.parametrize("reads", ["input()", "sys.stdin.buffer.readline()", "os.read(0, 100)"])
def test_standard_input_is_empty_for_recipes(reads, recipes):
    """
    A recipe cannot read the questions for its process.
    """
    source = f"import os, sys\ntry:\n    assert not {reads}\nexcept EOFError:\n    pass\n{PROMPT}"
    folder = recipes(reads=source)

    answer = ask_side(folder.parent, [folder.name])

    assert answer["faults"] == []
    assert [one["name"] for one in answer["lists"]["prompts"]] == ["review"]


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
def test_an_answer_that_is_forged(printed, reason, recipes):
    """
    The error names the side and the reason in one line.
    """
    folder = recipes(forges=FORGES.format(printed))

    with pytest.raises(RevisionError) as caught:
        ask_side(folder.parent, [folder.name])

    assert str(caught.value).startswith(f"the process that loads {folder.name!r} {reason}")
    assert "\n" not in str(caught.value)


def test_an_answer_that_is_too_large(recipes, monkeypatch):
    """
    An answer above the limit is refused, and not held in memory.
    """
    monkeypatch.setattr(sides, "_MAX_BYTES", 1000)
    folder = recipes(forges=FORGES.format(b" " * 1001))

    with pytest.raises(RevisionError, match="printed more than 1,000 bytes"):
        ask_side(folder.parent, [folder.name])


def test_what_a_side_raises_is_one_line(recipes, monkeypatch, capfd):
    """
    Also where promptkit itself is broken by a recipe.
    """
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
def test_a_side_that_ends_itself(source, reason, recipes, capfd):
    """
    There is one line, and no traceback.
    """
    folder = recipes(ends=source)

    with pytest.raises(RevisionError, match=reason):
        ask_side(folder.parent, [folder.name])

    assert "Traceback" not in capfd.readouterr().err


def prompt(**more):
    """A prompt in a list."""
    argument = {"name": "x", "required": True, "schema": {}, "type": "str", "words": None, **more}
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
        prompt(required="yes"),
        prompt(schema=[]),
        prompt(schema={"anyOf": [1]}),
        prompt(schema={"$ref": 1}),
        prompt(schema={"type": ["integer"]}),
        prompt(schema={"enum": 1}),
        {"places": {"prompt 'x'": ["a"]}},
        {"places": {"prompt 'x'": [1, 2]}},
        {"examples": {"prompt 'x'": [1]}},
        {"shown": {"prompt 'x'": [{"for": 1, "text": None, "failure": None}]}},
        {"shown": {"prompt 'x'": [{}]}},
        {"faults": [["a", "b", "c"]]},
        {"faults": [1]},
    ],
)
def test_an_answer_of_another_shape_is_refused(part):
    """
    Later code relies on the types of an answer.
    """
    with pytest.raises(AnswerError, match="is not an answer: "):
        decode_answer(json.dumps({**EMPTY, **part}), Lists)


@pytest.mark.parametrize(
    "part", [{"said": {"p": {"x": 1}}}, {"said": []}, {"cases": {"p": {"x": 1}}}, {"faults": None}]
)
def test_renderings_of_another_shape_are_refused(part):
    """
    Transcripts are texts, and cases are what clients send.
    """
    with pytest.raises(AnswerError, match="is not an answer: "):
        decode_answer(json.dumps({"cases": {}, "said": {}, "faults": [], **part}), Renderings)


def test_halves_of_surrogates_are_text():
    """
    A transcript may hold anything that Python calls a string.
    """
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
def test_references_that_lead_nowhere_end(schema, definitions):
    """
    Schemas of a forged answer are compared in bounded time.
    """
    forged, honest = prompt(schema=schema), prompt(schema={"type": "integer"})
    forged["lists"]["prompts"][0]["$defs"] = definitions
    sides_ = [decode_answer(json.dumps({**EMPTY, **one}), Lists) for one in (forged, honest)]

    assert changes_between(*sides_)
    assert changes_between(*reversed(sides_))
    assert changes_between(sides_[0], sides_[0]) is not None
