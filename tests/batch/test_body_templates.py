"""Encoding request bodies with cached templates: the bytes equal those of the vendor's function."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Image, ResourceLink, Text, Workflow, assistant, cache_point, system, user
from promptkit.batch.body_templates import Bodies
from promptkit.batch.request_lines import LINE_FORMATS
from promptkit.exports import ExportError

VENDORS = pytest.mark.parametrize("vendor", LINE_FORMATS)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
TURNS = st.lists(st.tuples(st.sampled_from([user, assistant]), TEXTS), min_size=1, max_size=5)

#: A text that equals a placeholder of the cached templates.
HOLE = "a placeholder of promptkit, number 0."


def both(vendor, **fields):
    """Return the template encoder and the plain encoder of a vendor."""
    form = LINE_FORMATS[vendor]

    def make(workflow):
        return form.body(workflow, "m", fields)

    return Bodies(make), lambda workflow: msgspec.json.encode(make(workflow))


@VENDORS
@given(st.lists(st.tuples(TURNS, st.none() | TEXTS), min_size=1, max_size=4))
def test_every_body_is_as_the_vendors_function_makes_it(vendor, said):
    """Any conversation, with or without a system prompt, encodes to the same bytes."""
    bodies, encoded = both(vendor)

    for turns, instructions in said:
        workflow = sum(
            (turn(text) for turn, text in turns), Workflow() if instructions is None else system(instructions)
        )
        assert bytes(bodies.of(workflow)) == encoded(workflow)


@VENDORS
def test_what_is_more_than_text(vendor, png):
    """Media, links, annotations and cache points are encoded correctly, also the second time."""
    bodies, encoded = both(vendor)
    workflows = [
        user("a", Image(png)),
        user(ResourceLink("https://example.org/x.png", name="x", mime_type="image/png")),
        user(Text("a", audience=["assistant"])),
        user("long", cache_point(), "short"),
        user("longer", cache_point(), "short") + assistant("a"),
        user("long" + "short"),
    ]

    for workflow in workflows * 2:
        assert bytes(bodies.of(workflow)) == encoded(workflow)


def test_what_a_vendor_does_not_take_is_told_each_time(png):
    """Unsupported content raises an error with the message's number, each time."""
    bodies, _ = both("anthropic")

    for _ in range(2):
        with pytest.raises(ExportError, match="message 2 holds image/png of the assistant"):
            bodies.of(user("a") + assistant(Image(png)))


@pytest.mark.parametrize("fields", [{"user": HOLE}, {"metadata": {HOLE: "x"}}])
def test_what_says_what_stands_for_a_text(fields):
    """A text that equals a placeholder is preserved."""
    bodies, encoded = both("openai-chat", **fields)

    for workflow in (user("a"), user(HOLE), user(HOLE) + assistant(HOLE)):
        assert bytes(bodies.of(workflow)) == encoded(workflow)


def test_only_so_many_sequences_of_turns_are_kept():
    """At most 64 templates are cached, and other conversations are still encoded correctly."""
    bodies, encoded = both("anthropic")
    workflows = [sum([user("a"), assistant("b")] * number, Workflow()) for number in range(1, 100)]

    for workflow in workflows:
        assert bytes(bodies.of(workflow)) == encoded(workflow)
    assert len(bodies._templates) == 64


def test_half_of_a_character():
    """A lone surrogate raises UnicodeEncodeError."""
    bodies, _ = both("openai-chat")

    with pytest.raises(UnicodeEncodeError):
        bodies.of(user("\ud83d"))
