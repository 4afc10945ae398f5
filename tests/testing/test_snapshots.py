"""Snapshots are equal only for equal workflows."""

import datetime as dt
import re

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from promptkit import (
    Audio,
    EmbeddedResource,
    Image,
    Message,
    ResourceLink,
    Text,
    Workflow,
    assistant,
    user,
)
from promptkit.testing.snapshots import MarkdownSnapshots
from promptkit.testing.transcripts import transcript

#: Text that could be mistaken for other parts of a snapshot: headers, line ends and their symbols, brackets.
LINES = ("\n", "\n\n", "\r", "\r\n", "\v", "\f", "\x85", "\u2028", "\u2029")
SIGNS = ("␍", "␋", "␤", "↵", "¶", "␠", "␉", "␊", "\\")
WORDS = (
    "[user]",
    "[assistant]",
    "[user] Image",
    "](",
    ")",
    "[a:b]",
    "(a)",
    ": ",
    ", ",
    "1 B",
    "'",
    "a",
    " ",
    "\t",
)
PIECES = (*LINES, *SIGNS, *WORDS, " ", "\t")
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=2), max_size=6).map("".join)
NAMES = TEXTS.filter(str.strip)
URIS = st.sampled_from(["a:b", "a:b](c:d", "b:c", "a:b)", "a:b]"])
TYPES = st.none() | st.sampled_from(["", "text/plain", "None", "a\n[user]\nb"])
ZONES = st.integers(-23, 23).map(lambda hours: dt.timezone(dt.timedelta(hours=hours)))
FIRST, LAST = map(dt.datetime.fromisoformat, ("1900-01-01", "2100-01-01"))
MOMENTS = st.datetimes(FIRST, LAST, timezones=ZONES) | st.sampled_from(
    [dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), dt.datetime.fromisoformat("2026-01-31T13:00:00+01:00")]
)
ANNOTATIONS = {
    "audience": st.sampled_from([(), ("user",), ("assistant",), ("user", "assistant")]),
    "priority": st.sampled_from([None, 0, 0.0, 0.5, 1, 1.0]),
    "last_modified": st.none() | MOMENTS,
}


def annotated_content(content_type, *values: SearchStrategy, **named: SearchStrategy) -> SearchStrategy:
    """Return a strategy for content with any annotations."""
    return st.builds(content_type, *values, **{**ANNOTATIONS, **named})


@pytest.fixture(scope="module")
def workflows(png, wav):
    """A strategy for workflows with every kind of content, from few pieces, so that some are equal."""
    content = st.one_of(
        annotated_content(Text, NAMES),
        annotated_content(Image, st.sampled_from([png, png + b"\0"])),
        annotated_content(Audio, st.sampled_from([wav, wav + b"\0"])),
        annotated_content(EmbeddedResource, URIS, text=TEXTS, mime_type=TYPES),
        annotated_content(EmbeddedResource, URIS, blob=st.sampled_from([b"a", b"b"]), mime_type=TYPES),
        annotated_content(
            ResourceLink,
            URIS,
            name=NAMES,
            title=st.none() | TEXTS,
            description=st.none() | TEXTS,
            mime_type=TYPES,
            size=st.none() | st.integers(0, 3),
        ),
    )
    message = st.builds(Message, st.sampled_from(["user", "assistant"]), content)
    return st.lists(message, max_size=3).map(Workflow)


#: Pairs that are not equal, but used to look the same.
UNEQUAL = [
    (user("a\n\n[assistant]\nb"), user("a") + assistant("b")),
    (user("a\n\n\\[assistant]\nb"), user("a\n\n[assistant]\nb")),
    (user("a\r\nb"), user("a\nb")),
    (user("a\rb"), user("a\nb")),
    (user("a\rb"), user("a␍b")),
    (user("a\\\rb"), user("a\\␍b")),
    (user("a\x85b"), user("a\u2028b")),
    (user("a\n"), user("a")),
    (user("a\x0c"), user("a")),
    (user("a "), user("a␠")),
    (user("a\\ "), user("a\\␠")),
    (user("a\t\nb"), user("a \nb")),
    (user("a\n"), user("a␊")),
    (user("a\\\n"), user("a\\\\␊")),
    (user(ResourceLink("a:b", name="c")), user(ResourceLink("a:b", name="c", title="c"))),
    (user(ResourceLink("d:e", name="a](b:c")), user(ResourceLink("b:c](d:e", name="a"))),
    (user(ResourceLink("a:b", name="c", title="d")), user(ResourceLink("a:b", name="d", description="(c)"))),
    (user(Text("a", priority=0.25)), user(Text("a", priority=0.5))),
    (Workflow(), user("a")),
]


@pytest.mark.parametrize(("left", "right"), UNEQUAL)
def test_different_turns_have_different_snapshots(left, right):
    """Text that looks like another turn is not mistaken for a turn, and every line end is visible."""
    assert left != right
    assert transcript(left) != transcript(right)


def test_equal_content_has_equal_snapshots():
    """Different notations of a number or a time give the same snapshot."""
    left = Text("a", priority=1, last_modified="2026-01-31T12:00:00Z")
    right = Text("a", priority=1.0, last_modified="2026-01-31T13:00:00+01:00")

    assert left == right
    assert transcript(user(left)) == transcript(user(right)[0])


@given(st.data())
def test_snapshots_are_equal_only_for_equal_workflows(workflows, data):
    """Two workflows, with any content and annotations, have equal snapshots if and only if they are equal."""
    left, right = data.draw(workflows), data.draw(workflows)

    assert (transcript(left) == transcript(right)) == (left == right)


def rewrite_annotations(content, zone):
    """Return equal content, with its priority and its time in another notation."""
    priority, moment = content.priority, content.last_modified
    return attrs.evolve(
        content,
        priority=None if priority is None else float(priority),
        last_modified=None if moment is None else moment.astimezone(zone),
    )


@given(st.data(), ZONES)
def test_equal_workflows_have_equal_snapshots(workflows, data, zone):
    """Equal workflows have equal snapshots, whatever the notation of their annotations."""
    workflow = data.draw(workflows)
    rewritten = Workflow(
        Message(message.role, rewrite_annotations(message.content, zone)) for message in workflow
    )

    assert workflow == rewritten
    assert transcript(workflow) == transcript(rewritten)


@given(st.data())
def test_changed_turn_changes_the_snapshot(workflows, data):
    """Workflows that differ in at most one turn have equal snapshots if and only if they are equal."""
    workflow = data.draw(workflows.filter(len))
    index = data.draw(st.integers(0, len(workflow) - 1))
    message = data.draw(workflows.filter(len))[0]
    changed = Workflow([*workflow[:index], message, *workflow[index + 1 :]])

    assert (transcript(workflow) == transcript(changed)) == (workflow == changed)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
@example("a", "b", "a\n\n[assistant]\nb", "")
def test_differently_split_text_has_a_different_snapshot(first, second, third, fourth):
    """
    The snapshot of two turns differs from the snapshots of one turn and of turns that are split elsewhere.
    """
    left = user(first) + assistant(second)
    right = user(third) + assistant(fourth)

    assert (transcript(left) == transcript(right)) == (left == right)


@given(st.data())
def test_snapshot_survives_a_file(workflows, tmp_path_factory, data):
    """A snapshot survives a round trip through a file, in which no line end changes on any system."""
    snapshot = transcript(data.draw(workflows))
    file = tmp_path_factory.getbasetemp() / "snapshot.md"
    file.write_text(snapshot, encoding="utf-8", newline="\r\n")

    assert file.read_text(encoding="utf-8") == snapshot
    assert len(snapshot.splitlines()) == len(snapshot.removesuffix("\n").split("\n")) * bool(snapshot)


@given(st.data())
def test_whitespace_fixers_change_no_snapshot(workflows, data):
    """
    The hooks `trailing-whitespace` and `end-of-file-fixer` of pre-commit leave a snapshot as it is.
    """
    file = MarkdownSnapshots().serialize(data.draw(workflows | TEXTS))
    lines = [re.sub(r"[ \t\v\f\r]+$", "", line) for line in file.split("\n")]
    content = "\n".join(lines).rstrip("\n")

    assert file == (f"{content}\n" if content else "")


@given(TEXTS, TEXTS)
@example("a ", "a␠")
@example("", "\n")
def test_different_strings_have_different_snapshots(left, right):
    """Two strings have equal snapshots if and only if they are equal."""
    snapshots = MarkdownSnapshots()

    assert (snapshots.serialize(left) == snapshots.serialize(right)) == (left == right)


def test_snapshot_takes_linear_time():
    """A snapshot takes linear time, even for thousands of backslashes and headers."""
    text = "\\" * 200_000 + "\n" + "[user]\r" * 20_000 + " " * 200_000 + "a"

    assert len(transcript(user(text))) > len(text)
