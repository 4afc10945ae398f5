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
from promptkit.language.results import convert_result
from promptkit.language.turns import CachePoint
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import REVISIONS
from promptkit.testing.transcripts import transcript

LINK = ResourceLink("a:b", name="a")
HERE = cache_point()

texts = st.sampled_from(["a", "bb", "\n\nc", "d\n\n", " e "])
blanks = st.sampled_from(["", " ", None, False, Text("")])
points = st.just(HERE)
system_parts = st.lists(texts | texts.map(Text) | blanks | points, max_size=6)
parts = st.lists(
    texts
    | texts.map(Text)
    | texts.map(lambda text: Text(text, priority=1))
    | st.just(LINK)
    | blanks
    | points,
    max_size=8,
)
workflows = st.one_of(
    parts.map(lambda parts: user(*parts)),
    parts.map(lambda parts: assistant(*parts)),
    system_parts.map(lambda parts: system(*parts)),
    points,
)


def drop_cache_points(parts):
    """Return the parts that are not cache points."""
    return [part for part in parts if not isinstance(part, CachePoint)]


def describe_messages_before(workflow, position):
    """Return the roles and contents before a position, without the blank line in front of it."""
    index, offset = position
    complete, partial = workflow.messages[:index], workflow.messages[index : index + 1]
    truncated = [Message(message.role, message.content.text[: offset - 2]) for message in partial if offset]
    assert all(message.content.text[offset - 2 : offset] == "\n\n" for message in partial if offset)
    return tuple((message.role, str(message.content)) for message in (*complete, *truncated))


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
            "after it",
            "before it",
            "around other content",
            "twice",
            "equal annotations",
            "other annotations",
            "several",
        ],
    )
    def test_positions_in_a_turn(self, parts, positions):
        """
        A point within text has the offset of the next character; any other point precedes the next message.
        """
        assert user(*parts).cache_points == assistant(*parts).cache_points == positions
        assert user(*parts) == user(*drop_cache_points(parts))

    @pytest.mark.parametrize(
        ("parts", "positions"),
        [
            (["a", HERE, "b"], ((-1, 3),)),
            (["a", HERE], ((-1, 1),)),
            ([HERE, "a", None, HERE, HERE], ((-1, 0), (-1, 1))),
            ([HERE], ((-1, 0),)),
        ],
        ids=["in the text", "after it", "around it", "alone"],
    )
    def test_positions_in_a_system_part(self, parts, positions):
        """The system part is message -1, in which the end is a valid offset."""
        assert system(*parts).cache_points == positions
        assert system(*parts) == system(*drop_cache_points(parts))

    @given(parts)
    def test_content_before_a_point_comes_from_the_parts_before_it(self, parts):
        """The content before a point is what the parts before it would produce alone."""
        prefixes = [
            user(*drop_cache_points(parts[:i]))
            for i, part in enumerate(parts)
            if isinstance(part, CachePoint)
        ]
        workflow = user(*parts)

        assert {describe_messages_before(workflow, position) for position in workflow.cache_points} == {
            tuple((message.role, str(message.content)) for message in prefix) for prefix in prefixes
        }

    @given(system_parts)
    def test_system_text_before_a_point_comes_from_the_parts_before_it(self, parts):
        """In a system part, the blank line at a point belongs to the text before it."""
        prefixes = [
            system(*drop_cache_points(parts[:i]))
            for i, part in enumerate(parts)
            if isinstance(part, CachePoint)
        ]
        workflow = system(*parts)
        text = str(workflow.system or "")
        ends = {offset - 2 if 0 < offset < len(text) else offset for _, offset in workflow.cache_points}

        assert {text[:end] for end in ends} == {str(prefix.system or "") for prefix in prefixes}


class TestSums:
    def test_sums_shift_positions(self):
        """Adding shifts positions by the messages and system text in front."""
        workflow = system("a", HERE) + user("b", HERE, "c") + HERE + system("d", HERE, "e") + user("f") + HERE

        assert str(workflow.system) == "a\n\nd\n\ne"
        assert workflow.cache_points == ((-1, 3), (-1, 6), (0, 3), (1, 0), (2, 0))
        assert ("a" + HERE + Message("user", "b") + HERE).cache_points == ((1, 0), (2, 0))
        assert (Text("a") + HERE).cache_points == (Message("user", "a") + HERE).cache_points == ((1, 0),)

    @example(system("a"), system(HERE), system("b"))
    @given(workflows, workflows, workflows)
    def test_sums_are_associative(self, first, second, third):
        """Adding is associative, and equal to yielding the same parts from a prompt."""
        workflow = (first + second) + third

        assert workflow.cache_points == (first + (second + third)).cache_points
        assert workflow.cache_points == convert_result([first, [second, None], third]).cache_points
        assert (
            (Workflow() + workflow).cache_points
            == (workflow + Workflow()).cache_points
            == workflow.cache_points
        )

    @given(st.lists(workflows, max_size=6))
    def test_positions_are_within_the_workflow(self, turns):
        """Positions are sorted, unique and within the workflow."""
        workflow = sum(turns, Workflow())
        system_text = str(workflow.system or "")

        assert workflow.cache_points == tuple(sorted(set(workflow.cache_points)))
        for message, offset in workflow.cache_points:
            assert -1 <= message <= len(workflow)
            if message == -1:
                assert 0 <= offset <= len(system_text)
            elif offset:
                assert offset < len(workflow[message].content.text)

    @given(st.lists(workflows, max_size=6))
    def test_points_change_nothing_else(self, turns):
        """Points change neither equality, hash, text nor the bytes of any revision."""
        marked = sum(turns, Workflow())
        plain = Workflow(marked.messages, marked.system)

        assert plain.cache_points == ()
        assert marked == plain
        for function in (hash, str, repr, transcript):
            assert function(marked) == function(plain)
        for revision in REVISIONS.values():
            lowering = lowering_for(revision)
            assert lowering.result(nothing.compiled, marked) == lowering.result(nothing.compiled, plain)
            assert lowering.tool_result(marked) == lowering.tool_result(plain)


@prompt
def nothing():
    """Return nothing."""


class TestWorkflows:
    @given(st.lists(workflows, max_size=4))
    def test_slices_drop_points_and_copies_keep_them(self, turns):
        """Slices drop the points, because positions refer to the whole; copies keep them."""
        workflow = sum(turns, Workflow())

        assert workflow[:].cache_points == ()
        assert copy.deepcopy(workflow).cache_points == workflow.cache_points
        assert pickle.loads(pickle.dumps(workflow)).cache_points == workflow.cache_points  # noqa: S301 (our own pickle)

    def test_point_is_an_empty_workflow(self):
        """A point equals an empty workflow; its repr is the call that creates it."""
        assert Workflow() == HERE
        assert (len(HERE), str(HERE), repr(HERE)) == (0, "", "cache_point()")
        assert pickle.loads(pickle.dumps(HERE)).cache_points == ((0, 0),)  # noqa: S301 (our own pickle)


class TestPrompts:
    def test_points_in_results_are_kept(self):
        """Points are kept if a prompt yields, returns or adds them, and if it has an answer type."""

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

    def test_prompt_with_only_a_point_is_rejected(self):
        """A prompt that returns only a point raises an error."""

        @prompt
        def silent():
            return cache_point()

        with pytest.raises(PromptError, match="prompt 'silent'"):
            silent.render()


class TestMistakes:
    def test_point_is_not_text(self):
        """A point in place of text raises an error that says where it belongs."""
        with pytest.raises(TypeError, match=r"not CachePoint; pass it to user\(\.\.\.\) next to"):
            section("Rules", "Be brief.", HERE)
        with pytest.raises(TypeError, match=r"a CachePoint \(cache_point\(\)\): join turns with \+"):
            Message("user", HERE)
        with pytest.raises(TypeError, match="a CachePoint is not text"):
            f"{HERE}"

    def test_function_itself_is_rejected(self):
        """Passing the function `cache_point` raises an error with the hint to call it."""
        with pytest.raises(TypeError, match=r"part 2 is the function 'cache_point': call it"):
            user("a", cache_point)
