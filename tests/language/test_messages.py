import copy
import pickle
import re
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple
from unittest.mock import ANY

import attrs
import mcp.types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import prompt, resource
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import Audio, Image
from promptkit.language.messages import Message, Workflow
from promptkit.language.results import convert_result
from promptkit.language.text import Text
from promptkit.language.turns import assistant, cache_point, system, user
from promptkit.language.validation import UnsendableError, describe

LINK = ResourceLink("a:b", name="a")


class Role(Enum):
    SYSTEM = "system"


class Named(NamedTuple):
    role: str
    text: str


def make_function(name):
    """Return a function with this name."""

    def function() -> str:
        return name

    function.__name__ = name
    return function


NOTE = Text("note", priority=1)

SAY_WHAT_BYTES_ARE = "pass the bytes to Image(...), Audio(...) or EmbeddedResource(..., blob=...)"

roles = st.sampled_from(["user", "assistant"])
turns = st.sampled_from([user, assistant])
nonblank_texts = st.text().filter(lambda text: text and not text.isspace())
blanks = st.sampled_from(["", " ", "\n\t", None, False, Text(""), Text(" ", priority=1)])
content = st.one_of(
    nonblank_texts.map(Text), nonblank_texts.map(lambda text: Text(text, audience="user")), st.just(LINK)
)
messages = st.builds(Message, roles, content)
workflows = st.lists(messages, max_size=5).map(Workflow)


class Drawing:
    def __init__(self, data):
        self.data = data

    def _repr_png_(self):
        return self.data


class TestTurn:
    @pytest.mark.parametrize(
        ("parts", "contents"),
        [
            ([], []),
            (["a"], [Text("a")]),
            (["a", "b"], [Text("a\n\nb")]),
            (["a", Text("b"), "c"], [Text("a\n\nb\n\nc")]),
            (["a", LINK, "b"], [Text("a"), LINK, Text("b")]),
            ([LINK, LINK], [LINK, LINK]),
            (["a", None, False, "", "  ", Text("\n"), "b"], [Text("a\n\nb")]),
            ([None, LINK, None], [LINK]),
            ([Text("a", priority=1), Text("b", priority=1)], [Text("a\n\nb", priority=1)]),
            (["a", NOTE, "b"], [Text("a"), NOTE, Text("b")]),
            (["  a\n", "\tb "], [Text("  a\n\n\n\tb ")]),
        ],
        ids=[
            "nothing",
            "one",
            "two",
            "text among strings",
            "content between",
            "content twice",
            "empty parts vanish",
            "content alone",
            "equal annotations",
            "other annotations",
            "space is kept",
        ],
    )
    @pytest.mark.parametrize("turn", [user, assistant])
    def test_adjacent_texts_are_joined(self, turn, parts, contents):
        """Adjacent texts become one block; every other part is a separate message."""
        assert turn(*parts) == Workflow([Message(turn.__name__, block) for block in contents])

    def test_figure_becomes_an_image(self, png):
        """An object that renders itself as PNG becomes an image."""
        assert user("Look:", Drawing(png), "What is it?") == user("Look:", Image(png), "What is it?")

    def test_content_parts_keep_their_order(self, png, wav):
        """Content parts keep their order, one message each."""
        parts = [Image(png), Audio(wav), EmbeddedResource("a:b", text="c"), LINK, Text("d")]

        assert [message.content for message in user(*parts)] == parts

    @pytest.mark.parametrize(
        ("part", "message"),
        [
            (3, "an int (3): convert it to text with str(...) or an f-string"),
            (0, "an int (0): convert it to text with str(...) or an f-string"),
            (True, "a bool (True): convert it to text with str(...) or an f-string"),
            (
                b"a",
                f"a bytes (b'a'): {SAY_WHAT_BYTES_ARE}",
            ),
            (["a", "b"], "a list (['a', 'b']): unpack it with *"),
            (("a",), "a tuple (('a',)): unpack it with *"),
            ({"a": 1}, "a dict ({'a': 1}): convert it to text with promptkit.fragments.json_block(...)"),
            (len, "the function 'len': call it"),
            (int, "the class 'int': call it"),
        ],
        ids=["int", "zero", "bool", "bytes", "list", "tuple", "dict", "function", "class"],
    )
    @pytest.mark.parametrize("turn", [user, assistant])
    def test_invalid_part_is_rejected_with_its_position(self, turn, part, message):
        """The error has the position of an invalid part, a description and a fix."""
        with pytest.raises(TypeError) as caught:
            turn("a", part, "b")

        assert str(caught.value) == f"{turn.__name__}(...): part 2 is {message}"

    @pytest.mark.parametrize(
        ("part", "hint"),
        [
            (Path("a.png"), "read it with .read_text() or Image.from_path(...)"),
            (user("a"), "join turns with +, for example user(...) + message"),
            (Message("user", "a"), "join turns with +, for example user(...) + message"),
            ((text for text in "ab"), "unpack it with *"),
            ({"a"}, "sort it with sorted(...)"),
            (user, "call it"),
            (
                prompt(make_function("plan")),
                "call the prompt: `return plan(...)` or `yield plan(...)`",
            ),
            (
                resource("a:b")(make_function("log")),
                "embed it with .embed(...), or link to it with .link(...)",
            ),
            (ValueError("a"), "raise it, or convert it to text with str(...)"),
            (Role.SYSTEM, "convert it to text with .value or .name"),
            (memoryview(b"a"), SAY_WHAT_BYTES_ARE),
            ({}.values(), "unpack it with *"),
            (range(3), "unpack it with *"),
            (..., "convert it to text with str(...) or an f-string"),
        ],
        ids=[
            "path",
            "workflow",
            "message",
            "generator",
            "set",
            "function",
            "prompt",
            "resource",
            "exception",
            "enum",
            "memory",
            "view",
            "range",
            "ellipsis",
        ],
    )
    def test_common_mistake_has_a_hint(self, part, hint):
        """The error for a common mistake has a specific hint."""
        with pytest.raises(TypeError) as caught:
            user(part)

        assert str(caught.value).endswith(f": {hint}")

    def test_long_value_is_truncated_in_the_error(self):
        """The error truncates long values."""
        with pytest.raises(TypeError) as caught:
            user(b"x" * 1_000_000)

        assert len(str(caught.value)) < 200

    @given(st.lists(nonblank_texts | blanks), turns)
    def test_strings_are_joined(self, parts, turn):
        """Strings are joined with blank lines, without blank ones."""
        texts = [part for part in parts if isinstance(part, str) and part.strip()]

        assert turn(*(part for part in parts if not isinstance(part, Text))) == turn("\n\n".join(texts))

    @given(st.lists(nonblank_texts | content, max_size=6), blanks, st.integers(0, 6), turns)
    def test_empty_parts_are_omitted(self, parts, nothing, position, turn):
        """Empty parts are omitted at every position, so ``x if cond else None`` works."""
        assert turn(*parts[:position], nothing, *parts[position:]) == turn(*parts)

    @given(st.lists(nonblank_texts | content | blanks, max_size=6))
    def test_both_roles_treat_parts_the_same_way(self, parts):
        """Both roles treat parts the same way."""
        assert [m.content for m in user(*parts)] == [m.content for m in assistant(*parts)]
        assert {m.role for m in assistant(*parts)} <= {"assistant"}

    @given(st.lists(nonblank_texts | content, max_size=6))
    def test_texts_are_kept_in_order(self, parts):
        """The result contains every text in order."""
        transcript = "".join(str(message.content) for message in user(*parts))

        position = 0
        for part in parts:
            position = transcript.index(str(part), position) + len(str(part))

    @given(st.lists(nonblank_texts | content | blanks, max_size=6))
    def test_adjacent_messages_could_not_be_joined(self, parts):
        """Adjacent messages never contain texts that could be one block."""
        blocks = [message.content for message in user(*parts)]

        assert not any(
            isinstance(a, Text) and isinstance(b, Text) and a.annotations == b.annotations
            for a, b in pairwise(blocks)
        )


class TestMessage:
    def test_string_becomes_text(self):
        """A string becomes a `Text`."""
        assert Message("user", "a").content == Text("a")
        assert Message("user", LINK).content is LINK

    def test_figure_becomes_an_image(self, png):
        """An object that renders itself as PNG becomes an image."""
        assert Message("assistant", Drawing(png)).content == Image(png)

    @pytest.mark.parametrize(
        ("role", "message"),
        [
            (
                "system",
                "a message cannot have the role 'system': write system(...) next to the turns",
            ),
            ("developer", "role 'developer' is not one of user, assistant"),
            ("User", "role 'User' is not one of user, assistant"),
            ("", "role '' is not one of user, assistant"),
            (None, "role None is not one of user, assistant"),
            ([], "role [] is not one of user, assistant"),
        ],
        ids=["system", "developer", "case", "empty", "None", "list"],
    )
    def test_other_roles_are_rejected(self, role, message):
        """The error for the system role explains `system`; any other lists the roles."""
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is compared)
            Message(role, "a")

        assert str(caught.value) == message

    @pytest.mark.parametrize("nothing", ["", " \n", None, False, Text("")], ids=repr)
    def test_empty_content_is_rejected(self, nothing):
        """A message rejects empty content."""
        with pytest.raises(
            ValueError, match=r"^the content of a message is empty: pass text or other content$"
        ):
            Message("user", nothing)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (3, "an int (3): convert it to text with str(...) or an f-string"),
            (["a"], "a list (['a']): unpack it with *"),
            (
                user("a"),
                (
                    "a Workflow (Workflow([Mes..., Text('a'))])): "
                    "join turns with +, for example user(...) + message"
                ),
            ),
        ],
        ids=["int", "list", "workflow"],
    )
    def test_other_content_is_rejected(self, value, message):
        """A message rejects anything but one block of content."""
        with pytest.raises(TypeError) as caught:
            Message("user", value)

        assert str(caught.value) == message

    def test_messages_are_immutable_values(self):
        """Messages are compared by value and immutable."""
        message = Message("user", "a")

        assert message == Message("user", Text("a"))
        assert message != Message("assistant", "a")
        assert hash(message) == hash(Message("user", "a"))
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            message.role = "assistant"

    def test_str_shows_the_role(self):
        """str() is a transcript, and repr() evaluates to an equal message."""
        message = Message("assistant", "a\nb")

        assert str(message) == "[assistant]\na\nb"
        assert repr(message) == "Message('assistant', Text('a\\nb'))"
        assert eval(repr(message)) == message  # noqa: S307 (tests the repr)


class TestWorkflow:
    @given(workflows, st.slices(5), st.integers(-6, 6))
    def test_workflow_is_a_sequence_of_messages(self, workflow, cut, index):
        """A workflow behaves like the tuple of its messages."""
        items = workflow.messages

        assert isinstance(workflow, Sequence)
        assert tuple(workflow) == items
        assert len(workflow) == len(items)
        assert tuple(reversed(workflow)) == items[::-1]
        assert workflow[cut] == Workflow(items[cut])
        if -len(items) <= index < len(items):
            assert workflow[index] == items[index]
            assert items[index] in workflow
        else:
            with pytest.raises(IndexError):
                workflow[index]

    @given(workflows, workflows)
    def test_workflows_are_compared_by_value(self, workflow, other):
        """Workflows with equal messages are equal and have the same hash."""
        assert (workflow == other) == (workflow.messages == other.messages)
        assert workflow == Workflow(list(workflow))
        assert hash(workflow) == hash(Workflow(list(workflow)))

    @given(workflows)
    def test_workflow_can_be_pickled_and_copied(self, workflow):
        """A workflow is equal to its pickled and copied self."""
        assert pickle.loads(pickle.dumps(workflow)) == workflow  # noqa: S301 (our own pickle)
        assert copy.deepcopy(workflow) == workflow

    @given(workflows)
    def test_repr_evaluates_to_an_equal_workflow(self, workflow):
        """Evaluating the repr gives an equal workflow."""
        plain = Workflow([message for message in workflow if message.content != LINK])

        assert eval(repr(plain)) == plain  # noqa: S307 (tests the repr)

    def test_workflow_is_immutable(self):
        """A workflow and its messages are immutable."""
        workflow = user("a")

        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            workflow.messages = ()
        with pytest.raises(TypeError, match="does not support item assignment"):
            workflow[0] = Message("user", "b")
        assert not hasattr(workflow, "__dict__")

    def test_empty_workflow_is_false(self):
        """An empty workflow is false."""
        assert not user()
        assert not Workflow()
        assert user("a")

    def test_workflow_does_not_equal_a_tuple_or_text(self):
        """A workflow does not equal a tuple or text."""
        assert user("a") != (Message("user", "a"),)
        assert user("a") != "a"

    def test_str_is_a_transcript(self, png):
        """str() shows each message below its role, and media by type, size and digest."""
        workflow = user("Look at this:", Image(png)) + assistant("A red dot.") + user(LINK)

        assert str(workflow) == (
            "[user]\nLook at this:\n\n"
            f"[user]\n{Image(png)!s}\n\n"
            "[assistant]\nA red dot.\n\n"
            "[user]\n[a](a:b)"
        )  # fmt: skip
        assert str(Image(png)).startswith(f"<image/png {len(png)} B sha256:")

    @pytest.mark.parametrize(
        ("items", "message"),
        [
            (["a"], "item 0 of a Workflow is a str ('a'), not a message: create messages with user(...)"),
            ([Message("user", "a"), LINK], "item 1 of a Workflow is a ResourceLink"),
            ([user("a")], "item 0 of a Workflow is a Workflow"),
            (Message("user", "a"), "Workflow() takes a list of messages"),
            (None, "Workflow() takes a list of messages"),
        ],
        ids=["str", "content", "workflow", "message alone", "None"],
    )
    def test_item_that_is_not_a_message_is_rejected(self, items, message):
        """The error has the position of an item that is not a message."""
        with pytest.raises(TypeError) as caught:
            Workflow(items)

        assert str(caught.value).startswith(message)


class TestEquality:
    @given(messages)
    def test_workflow_of_one_message_equals_the_message(self, message):
        """A workflow of one message equals that message, with the same hash."""
        turn = Workflow([message])

        assert turn == message
        assert message == turn
        assert (turn != message, message != turn) == (False, False)
        assert hash(turn) == hash(message)
        assert {turn, message} == {message}
        assert (turn + turn)[1] == turn

    @given(messages, messages, workflows)
    def test_equality_is_transitive(self, message, other, workflow):
        """Equality between messages and workflows is transitive."""
        assert (
            (message == other) == (Workflow([message]) == other) == (Workflow([message]) == Workflow([other]))
        )
        assert (workflow == message) == (workflow.messages == (message,)) == (message == workflow)
        assert (workflow != message) == (message != workflow) != (workflow == message)

    @pytest.mark.parametrize("other", ["a", Text("a"), None, ("user", "a"), [Message("user", "a")], 3])
    def test_other_types_are_not_equal(self, other):
        """No other type equals a workflow, unless its own `__eq__` accepts it."""
        for value in (user("a"), Message("user", "a"), user("a", LINK)):
            assert value != other
            assert other != value
            assert value == ANY


class TestContains:
    @pytest.mark.parametrize(
        ("part", "words"),
        [
            ("Make a Plan.", ["Plan", "a Plan", ""]),
            (Text("Make a Plan.", priority=1), ["Plan"]),
            (EmbeddedResource("logs://today", text="Plan B"), ["Plan", "logs://", "today"]),
            (EmbeddedResource("logs://today", blob=b"Plan"), ["logs://today"]),
            (
                ResourceLink("logs://x", name="log", title="Plans", description="Old Plan"),
                ["logs", "log", "Plans", "Old"],
            ),
        ],
        ids=["str", "Text", "embedded", "blob", "link"],
    )
    @pytest.mark.parametrize(
        "before", [user(), user("first"), assistant("first")], ids=["", "user", "assistant"]
    )
    def test_in_finds_text(self, part, words, before):
        """`in` finds text in texts, documents, URIs and names."""
        workflow = before + user(part)

        for word in words:
            assert word in workflow
            assert word in workflow[-1]
            assert word in workflow.text
            assert word in workflow[-1].text

    @pytest.mark.parametrize("word", ["secret", "user", "[user]", "image/png", "sha256", "first\n\nPlan"])
    def test_in_does_not_find_roles_and_descriptions(self, word, png):
        """`in` does not find roles, descriptions of images or text across messages."""
        workflow = user("first") + user("Plan", Image(png))

        assert word not in workflow

    @given(workflows, messages)
    def test_in_compares_messages_by_value(self, workflow, message):
        """`in` compares messages and content by value, and a workflow as a consecutive run."""
        assert (message in workflow) == (message in list(workflow))
        assert (message.content in workflow) == (message.content in [m.content for m in workflow])
        assert workflow[1:3] in workflow
        assert (workflow + message) not in workflow

    @pytest.mark.parametrize(
        "item", [3, None, b"Plan", ("user", "Plan"), ["Plan"], re.compile("Plan")], ids=repr
    )
    def test_in_rejects_other_types(self, item):
        """`in` rejects other types, for which ``not in`` would always be true."""
        for value in (user("Plan"), Message("user", "Plan")):
            with pytest.raises(
                TypeError, match=r"a message can be searched only for text or content, not for (?:an? |None)"
            ):
                assert item not in value

    def test_text_omits_images(self, png):
        """`text` is all text, without images."""
        workflow = user("a", Image(png), LINK) + assistant("b")

        assert workflow.text == "a\n\na\na:b\n\nb"
        assert workflow[1].text == ""
        assert Workflow().text == ""


class TestFormat:
    @pytest.mark.parametrize(
        "value",
        [user("a"), user("a")[0], LINK, EmbeddedResource("a:b", text="c")],
        ids=["Workflow", "Message", "link", "embedded"],
    )
    def test_f_string_rejects_content(self, value):
        """An f-string rejects content that would lose its role or type; an explicit str() is accepted."""
        with pytest.raises(TypeError, match=r"is not text,? and .* f-string"):
            f"Look: {value}"
        with pytest.raises(TypeError, match="is not text"):
            "Look: {}".format(value)  # noqa: UP032 (tests str.format)
        assert f"{value!s}" == str(value)

    def test_f_string_rejects_images(self, png):
        """An f-string rejects an image with the hint to pass it as a separate part."""
        with pytest.raises(
            TypeError, match=r"Image is not text and .* pass it to user\(\.\.\.\) as a separate part"
        ):
            f"Look: {Image(png)}"

    def test_f_string_accepts_text(self):
        """An f-string accepts a `Text`, with a format specification."""
        assert f"{Text('ab'):>3}" == " ab"


class TestPlus:
    @given(workflows, workflows, workflows)
    def test_plus_is_associative_and_keeps_the_order(self, a, b, c):
        """Adding is associative, and neither reorders nor merges messages."""
        assert (a + b) + c == a + (b + c)
        assert list(a + b) == [*a, *b]

    @given(workflows)
    def test_adding_an_empty_workflow_changes_nothing(self, workflow):
        """Adding an empty workflow changes nothing, so `sum` can start with it."""
        assert workflow + user() == workflow
        assert user() + workflow == workflow
        assert sum([workflow, workflow], Workflow()) == workflow + workflow

    @pytest.mark.parametrize(
        "workflow",
        [
            user("a") + "b",
            "a" + user("b"),
            user("a") + Text("b"),
            Text("a") + user("b"),
            user("a") + Message("user", "b"),
            Message("user", "a") + user("b"),
            Message("user", "a") + Message("user", "b"),
            Message("user", "a") + "b",
            "a" + Message("user", "b"),
            Text("a") + Message("user", "b"),
            user("a") + "" + user("b"),
        ],
        ids=lambda workflow: str(len(workflow)),
    )
    def test_plus_joins_workflows_messages_and_strings(self, workflow):
        """Workflows and messages can be added to each other, and to strings and content as user turns."""
        assert workflow == Workflow([Message("user", "a"), Message("user", "b")])

    def test_added_string_becomes_a_user_turn(self):
        """A string becomes a user turn, even after the assistant."""
        assert assistant("a") + "b" == Workflow([Message("assistant", "a"), Message("user", "b")])

    def test_augmented_assignment_creates_a_new_workflow(self):
        """`+=` creates a new workflow and does not change the old one."""
        before = workflow = user("a")
        workflow += assistant("b")

        assert workflow == user("a") + assistant("b")
        assert before == user("a")

    @pytest.mark.parametrize(
        "workflow",
        [user("a") + None, None + user("a"), Message("user", "a") + None, None + Message("user", "a")],
        ids=["workflow, None", "None, workflow", "message, None", "None, message"],
    )
    def test_plus_ignores_none(self, workflow):
        """Adding None on either side gives the same turns, as when there is no history."""
        assert isinstance(workflow, Workflow)
        assert workflow == user("a")

    def test_plus_none_keeps_system_part_and_cache_points(self):
        """Adding None keeps the system part and the cache points."""
        workflow = system("a", cache_point()) + user("b", cache_point())

        for same in (workflow + None, None + workflow):
            assert same == workflow
            assert same.cache_points == workflow.cache_points

    @pytest.mark.parametrize("other", [3, False, ["a"], b"a", {"a": 1}], ids=repr)
    @pytest.mark.parametrize("turns", [user("a"), Message("user", "a")], ids=["workflow", "message"])
    def test_plus_rejects_other_types(self, turns, other):
        """Adding any other type raises a TypeError on either side."""
        with pytest.raises(TypeError):
            turns + other
        with pytest.raises(TypeError):
            other + turns


#: The hint for a turn in the form of another library.
A_TURN = "write user(...) or assistant(...) for a turn, or a list for several parts"
NO_SYSTEM = "write system(...) for a system part"
MESSAGES = "convert a list of messages with Workflow.from_messages(...)"


class TestForeignTurns:
    @pytest.mark.parametrize(
        ("value", "hint"),
        [
            (("user", "Hello"), A_TURN),
            (("system", "Be nice"), NO_SYSTEM),
            (("Summary", "Details"), A_TURN),
            (("", ""), A_TURN),
            (("user", Text("Hello")), A_TURN),
            (("Human", ["Hello"]), A_TURN),
            (("assistant", None), A_TURN),
            (("user", "a", "b"), A_TURN),
            (Named("user", "Hello"), A_TURN),
            ({"role": "user", "content": "Hello"}, MESSAGES),
            ({"role": "developer", "content": [{"type": "text", "text": "x"}]}, MESSAGES),
            ({"role": "model", "parts": [{"text": "Hello"}]}, A_TURN),
            ({"messages": [{"role": "user", "content": "x"}]}, MESSAGES),
            ({"contents": []}, A_TURN),
            ({"type": "text", "text": "Hello"}, A_TURN),
            (MappingProxyType({"role": "user"}), A_TURN),
            (SimpleNamespace(role="user", content="Hello"), A_TURN),
            (SimpleNamespace(role="model", parts=[]), A_TURN),
            (SimpleNamespace(type="system", content="Be nice"), A_TURN),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: ["a", [v]], lambda v: iter([v])])
    def test_turn_of_another_library_is_rejected(self, value, hint, wrap):
        """Turns in the form of other libraries are rejected with a hint, at any depth."""
        with pytest.raises(UnsendableError) as caught:
            convert_result(wrap(value))

        assert str(caught.value) == f"{describe(value)}: {hint}"

    def test_user_rejects_turns_of_other_libraries(self):
        """`user` also rejects turns in the form of other libraries."""
        with pytest.raises(TypeError, match=re.escape(MESSAGES)):
            user({"role": "user", "content": "Hello"})

    def test_message_of_the_official_sdk_is_rejected(self):
        """A message of the official SDK is rejected, too, and the error names the conversion once."""
        message = mcp.types.PromptMessage(
            role="user", content=mcp.types.TextContent(type="text", text="Hello")
        )

        with pytest.raises(UnsendableError, match=re.escape(MESSAGES)) as caught:
            convert_result([message])

        assert str(caught.value).count("from_messages") == 1

    @pytest.mark.parametrize(
        "value",
        [
            ["user", "Hello"],
            ("a", "b", "c"),
            ("a", Text("b")),
            ("a", None),
            (None, "b"),
            ("a",),
            ("a", user("b")),
        ],
        ids=repr,
    )
    def test_sequence_of_parts_is_accepted(self, value):
        """A list, or a tuple that is not a pair of strings, is a sequence of parts."""
        assert all(isinstance(message, Message) for message in convert_result(value))


class TestWorkflowFrom:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (None, []),
            (False, []),
            ("", []),
            ("a", ["a"]),
            (LINK, [LINK]),
            (Message("user", "a"), ["a"]),
            (user("a", LINK), ["a", LINK]),
            ([], []),
            (["a", "b"], ["a", "b"]),
            (("a", None, [LINK, ["b", user("c")]]), ["a", LINK, "b", "c"]),
            (iter(["a", LINK]), ["a", LINK]),
            ((text for text in "ab"), ["a", "b"]),
        ],
        ids=[
            "None",
            "False",
            "empty",
            "str",
            "content",
            "message",
            "workflow",
            "no items",
            "list",
            "nested",
            "iterator",
            "generator",
        ],
    )
    def test_result_is_flattened_in_order(self, value, expected):
        """Text and content become user turns, and nested sequences are flattened in order."""
        assert list(convert_result(value)) == [Message("user", item) for item in expected]

    def test_roles_are_kept(self):
        """Messages keep their roles."""
        assert convert_result([assistant("a"), "b"]) == assistant("a") + "b"

    @pytest.mark.parametrize(
        ("value", "path"),
        [(3, ()), ([3], (0,)), (["a", None, 3], (2,)), (["a", [user("b"), [b"c"]]], (1, 1, 0))],
        ids=["alone", "first", "after nothing", "nested"],
    )
    def test_error_has_the_path_to_the_invalid_part(self, value, path):
        """The error has the path to the invalid part, outermost position first."""
        with pytest.raises(UnsendableError) as caught:
            convert_result(value)

        assert caught.value.path == path

    def test_sequence_that_renders_itself_is_an_image(self, png):
        """A sequence that renders itself as PNG is an image."""

        class Film(list):
            def _repr_png_(self):
                return png

        assert convert_result(Film([1, 2])) == user(Film([1, 2]))


@pytest.mark.parametrize(
    ("value", "description"),
    [
        (3, "an int (3)"),
        ("a", "a str ('a')"),
        (None, "None"),
        (AttributeError(), "an AttributeError (AttributeError())"),
        ("x" * 100, "a str ('xxxxxxxxxxxx...xxxxxxxxxxxxx')"),
    ],
    ids=["int", "str", "None", "vowel", "long"],
)
def test_value_is_described(value, description):
    """A description has the value's type with the right article, and its truncated repr."""
    assert describe(value) == description
