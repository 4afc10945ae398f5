import copy
import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from promptkit import (
    Message,
    PromptError,
    ResourceLink,
    Text,
    Workflow,
    assistant,
    cache_point,
    prompt,
    system,
    user,
)
from promptkit.fragments import section
from promptkit.language.results import workflow_from
from promptkit.language.turns import CachePoint
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import REVISIONS
from promptkit.testing.transcripts import transcript

LINK = ResourceLink("a:b", name="a")
HERE = cache_point()

said = st.sampled_from(["a", "bb", "\n\nc", "d\n\n", " e "])
blank = st.sampled_from(["", " ", None, False, Text("")])
points = st.just(HERE)
system_parts = st.lists(said | said.map(Text) | blank | points, max_size=6)
parts = st.lists(
    said | said.map(Text) | said.map(lambda text: Text(text, priority=1)) | st.just(LINK) | blank | points,
    max_size=8,
)
workflows = st.one_of(
    parts.map(lambda some: user(*some)),
    parts.map(lambda some: assistant(*some)),
    system_parts.map(lambda some: system(*some)),
    points,
)


def without(some):
    """Return the parts that are not cache points."""
    return [part for part in some if not isinstance(part, CachePoint)]


def before(workflow, position):
    """Return the messages before a position, without the blank line in front of it."""
    message, offset = position
    whole, cut = workflow.messages[:message], workflow.messages[message : message + 1]
    text = [Message(one.role, one.content.text[: offset - 2]) for one in cut if offset]
    assert all(one.content.text[offset - 2 : offset] == "\n\n" for one in cut if offset)
    return tuple((one.role, str(one.content)) for one in (*whole, *text))


class TestParts:
    @pytest.mark.parametrize(
        ("parts", "positions"),
        [
            ([HERE], ((0, 0),)),
            (["a", HERE, "b"], ((0, 3),)),
            (["a", HERE], ((1, 0),)),
            ([HERE, "a"], ((0, 0),)),
            (["a", HERE, LINK, HERE, "b"], ((1, 0), (2, 0))),
            (["a", HERE, None, HERE, " ", "b"], ((0, 3),)),
            ([Text("a", priority=1), HERE, Text("b", priority=1)], ((0, 3),)),
            ([Text("a", priority=1), HERE, "b"], ((1, 0),)),
            (["a", HERE, Text("b"), "c", HERE, "d"], ((0, 3), (0, 9))),
        ],
        ids=[
            "alone",
            "in a text",
            "behind it",
            "before it",
            "around other content",
            "twice",
            "equal annotations",
            "other annotations",
            "several",
        ],
    )
    def test_positions_in_a_turn(self, parts, positions):
        """A point within a text has the offset of the next character; others precede the next message."""
        assert user(*parts).cache_points == assistant(*parts).cache_points == positions
        assert user(*parts) == user(*without(parts))

    @pytest.mark.parametrize(
        ("parts", "positions"),
        [
            (["a", HERE, "b"], ((-1, 3),)),
            (["a", HERE], ((-1, 1),)),
            ([HERE, "a", None, HERE, HERE], ((-1, 0), (-1, 1))),
            ([HERE], ((-1, 0),)),
        ],
        ids=["in the text", "behind it", "around it", "alone"],
    )
    def test_positions_in_a_system_part(self, parts, positions):
        """The system part is message -1, in which the end is a valid offset."""
        assert system(*parts).cache_points == positions
        assert system(*parts) == system(*without(parts))

    @given(parts)
    def test_what_stands_before_a_point_is_what_the_parts_before_it_make(self, parts):
        """The content before a point is what the parts before it would produce alone."""
        made = [user(*without(parts[:i])) for i, part in enumerate(parts) if isinstance(part, CachePoint)]
        whole = user(*parts)

        assert {before(whole, position) for position in whole.cache_points} == {
            tuple((one.role, str(one.content)) for one in some) for some in made
        }

    @given(system_parts)
    def test_so_is_what_stands_before_it_in_a_system_part(self, parts):
        """In a system part, the blank line at a point belongs to the text before it."""
        made = [system(*without(parts[:i])) for i, part in enumerate(parts) if isinstance(part, CachePoint)]
        whole = system(*parts)
        text = str(whole.system or "")
        ends = {offset - 2 if 0 < offset < len(text) else offset for _, offset in whole.cache_points}

        assert {text[:end] for end in ends} == {str(one.system or "") for one in made}


class TestSums:
    def test_positions(self):
        """Adding shifts positions by the messages and system text in front."""
        whole = system("a", HERE) + user("b", HERE, "c") + HERE + system("d", HERE, "e") + user("f") + HERE

        assert str(whole.system) == "a\n\nd\n\ne"
        assert whole.cache_points == ((-1, 3), (-1, 6), (0, 3), (1, 0), (2, 0))
        assert ("a" + HERE + Message("user", "b") + HERE).cache_points == ((1, 0), (2, 0))
        assert (Text("a") + HERE).cache_points == (Message("user", "a") + HERE).cache_points == ((1, 0),)

    @example(system("a"), system(HERE), system("b"))
    @given(workflows, workflows, workflows)
    def test_they_are_associative(self, one, two, three):
        """Adding is associative, and equal to yielding the same parts from a prompt."""
        whole = (one + two) + three

        assert whole.cache_points == (one + (two + three)).cache_points
        assert whole.cache_points == workflow_from([one, [two, None], three]).cache_points
        assert (Workflow() + whole).cache_points == (whole + Workflow()).cache_points == whole.cache_points

    @given(st.lists(workflows, max_size=6))
    def test_positions_are_inside(self, some):
        """Positions are sorted, unique and within the workflow."""
        whole = sum(some, Workflow())
        system_text = str(whole.system or "")

        assert whole.cache_points == tuple(sorted(set(whole.cache_points)))
        for message, offset in whole.cache_points:
            assert -1 <= message <= len(whole)
            if message == -1:
                assert 0 <= offset <= len(system_text)
            elif offset:
                assert offset < len(whole[message].content.text)

    @given(st.lists(workflows, max_size=6))
    def test_nothing_else_is_changed(self, some):
        """Points change neither equality, hash, text nor the bytes of any revision."""
        marked = sum(some, Workflow())
        plain = Workflow(marked.messages, marked.system)

        assert plain.cache_points == ()
        assert marked == plain
        for shown in (hash, str, repr, transcript):
            assert shown(marked) == shown(plain)
        for revision in REVISIONS.values():
            lowering = lowering_for(revision)
            assert lowering.result(nothing.compiled, marked) == lowering.result(nothing.compiled, plain)
            assert lowering.tool_result(marked) == lowering.tool_result(plain)


@prompt
def nothing():
    """Say nothing."""


class TestWorkflows:
    @given(st.lists(workflows, max_size=4))
    def test_slices_have_none_and_copies_have_all(self, some):
        """Slices drop the points, because positions refer to the whole; copies keep them."""
        whole = sum(some, Workflow())

        assert whole[:].cache_points == ()
        assert copy.deepcopy(whole).cache_points == whole.cache_points
        assert pickle.loads(pickle.dumps(whole)).cache_points == whole.cache_points  # noqa: S301 (our own pickle)

    def test_a_point_is_a_workflow_that_says_nothing(self):
        """A point equals an empty workflow; its repr is the call that creates it."""
        assert Workflow() == HERE
        assert (len(HERE), str(HERE), repr(HERE)) == (0, "", "cache_point()")
        assert pickle.loads(pickle.dumps(HERE)).cache_points == ((0, 0),)  # noqa: S301 (our own pickle)


class TestPrompts:
    def test_yielded_and_returned(self):
        """Points are kept whether a prompt yields, returns or adds them, and with an answer type."""

        @prompt(answer=list[int])
        def ask(question: str):
            yield system("Count.", cache_point())
            yield [user("One, two.", cache_point(), "Three."), cache_point()]
            yield question
            return cache_point()

        @prompt
        async def later(question: str):
            yield ask(question)

        @prompt
        def summed(question: str):
            return user("Look.") + cache_point() + question

        assert ask.render("And?").cache_points == ((-1, 6), (0, 11), (1, 0), (2, 0))
        assert ask.render("And?").answer == list[int]
        assert later.render_wire({"question": "And?"}).cache_points == ((-1, 6), (0, 11), (1, 0))
        assert summed.render("And?").cache_points == ((1, 0),)

    def test_a_point_alone_says_nothing(self):
        """A prompt that returns only a point raises an error."""

        @prompt
        def silent():
            return cache_point()

        with pytest.raises(PromptError, match="prompt 'silent'"):
            silent.render()


class TestMistakes:
    def test_it_is_no_text(self):
        """A point in place of text raises an error that says where it belongs."""
        with pytest.raises(TypeError, match=r"not CachePoint; pass it to user\(\.\.\.\) next to"):
            section("Rules", "Be brief.", HERE)
        with pytest.raises(TypeError, match=r"a CachePoint \(cache_point\(\)\): join turns with \+"):
            Message("user", HERE)
        with pytest.raises(TypeError, match="a CachePoint is not text"):
            f"{HERE}"

    def test_the_function_itself(self):
        """Passing the function `cache_point` raises an error with the hint to call it."""
        with pytest.raises(TypeError, match=r"part 2 is the function 'cache_point': call it"):
            user("a", cache_point)
