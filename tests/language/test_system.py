import json
import pickle

import pytest

from promptkit import Image, Message, PromptError, Text, Workflow, assistant, prompt, system, user
from promptkit.preview.conversation import ConversationBuilder
from promptkit.preview.media import MediaStore
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import REVISIONS
from promptkit.testing import Client
from promptkit.testing.transcripts import explain, transcript
from tests.wire import validate

BRIEF = system("Be brief.")
CONVERSATION = BRIEF + user("Why?") + assistant("Because.")


@prompt
def ask(question: str):
    """Ask briefly."""
    yield system("Be brief.")
    yield user(question)
    yield assistant("Because.")


class TestValue:
    def test_parts_are_joined(self):
        """Texts are joined with a blank line, without empty parts."""
        assert system(*["a", None, Text("b"), False, " "]).system == Text("a\n\nb")
        assert system().system is None

    def test_system_part_is_not_a_message(self):
        """A system part is not a message."""
        assert BRIEF.messages == ()
        assert CONVERSATION.messages == (*user("Why?"), *assistant("Because."))
        assert len(CONVERSATION) == 2

    @pytest.mark.parametrize(
        ("part", "description"), [(3, "an int (3)"), (b"x", "a bytes (b'x')"), (user("x"), "a Workflow")]
    )
    def test_anything_but_text_is_rejected(self, part, description):
        """Anything but text raises an error with its position."""
        with pytest.raises(TypeError) as caught:
            system("a", part)

        assert str(caught.value).startswith(f"system(...): part 2 is {description}")
        assert str(caught.value).endswith("system parts must be text; put it into a turn")

    def test_image_is_rejected(self, png):
        """An image is rejected, because it belongs in a turn."""
        with pytest.raises(TypeError, match="put it into a turn"):
            system(Image(png))

    def test_different_annotations_cannot_be_joined(self):
        """Texts with different annotations cannot be joined."""
        assert system(Text("a", priority=1), Text("b", priority=1)).system == Text("a\n\nb", priority=1)
        with pytest.raises(ValueError, match="different annotations"):
            system("a", Text("b", priority=1))

    def test_workflow_constructor(self):
        """`Workflow` converts a system text, drops a blank one and rejects other types."""
        assert Workflow(user("x"), system="a") == system("a") + user("x")
        assert Workflow(user("x"), " ") == user("x")
        with pytest.raises(
            TypeError, match=r"the system part must be text, not a Workflow .*system\(\.\.\.\)"
        ):
            Workflow((), user("x"))


class TestSums:
    def test_system_part_can_be_added_on_either_side(self):
        """A system part can be added on either side of turns."""
        assert (
            user("Why?") + BRIEF == BRIEF + user("Why?") == BRIEF + "Why?" == BRIEF + Message("user", "Why?")
        )

    def test_several_system_parts_are_joined(self):
        """Several system parts are joined in order with a blank line."""
        assert (BRIEF + user("x") + system("Be kind.")).system == Text("Be brief.\n\nBe kind.")
        with pytest.raises(ValueError, match="different annotations"):
            BRIEF + system(Text("b", priority=1))

    def test_slices_do_not_include_the_system_part(self):
        """Slices and items do not include the system part."""
        assert CONVERSATION[:] == user("Why?") + assistant("Because.")
        assert CONVERSATION[0] == user("Why?")


class TestComparison:
    def test_equality(self):
        """The system part counts for equality and hashing."""
        assert BRIEF + user("Why?") + assistant("Because.") == CONVERSATION
        assert CONVERSATION[:] != CONVERSATION
        assert BRIEF + user("x") != Message("user", "x")
        assert Message("user", "x") != BRIEF + user("x")
        assert hash(CONVERSATION) == hash(BRIEF + user("Why?") + assistant("Because."))
        assert pickle.loads(pickle.dumps(CONVERSATION)) == CONVERSATION  # noqa: S301 (our own pickle)

    def test_membership(self):
        """`in` finds the system text; a workflow with a system part must have the same one."""
        assert "brief" in CONVERSATION
        assert Text("Be brief.") in CONVERSATION
        assert BRIEF in CONVERSATION
        assert BRIEF + assistant("Because.") in CONVERSATION
        assert system("Be kind.") not in CONVERSATION
        assert user("Be brief.") not in CONVERSATION
        assert Message("user", "Be brief.") not in CONVERSATION

    def test_texts(self):
        """The system part comes before all turns in text and transcript."""
        assert CONVERSATION.text == "Be brief.\n\nWhy?\n\nBecause."
        assert str(CONVERSATION) == "[system]\nBe brief.\n\n[user]\nWhy?\n\n[assistant]\nBecause."
        assert repr(BRIEF + user("x")) == "Workflow([Message('user', Text('x'))], system=Text('Be brief.'))"

    def test_transcripts(self):
        """Transcripts and diffs distinguish a system part from a turn with the same text."""
        assert transcript(CONVERSATION).startswith("[system]\nBe brief.\n\n[user]\n")
        assert transcript(user("[system]\nBe brief.")) == "[user]\n\\[system]\nBe brief."
        assert explain("==", BRIEF + user("x"), system("Be kind.") + user("x")) == [
            "Workflow == Workflow: the transcripts differ (- right, + left)",
            "the system part:",
            "- Be kind.",
            "+ Be brief.",
        ]


class TestPrompts:
    def test_generator_can_yield_a_system_part(self):
        """A generator can yield a system part next to its turns."""
        assert ask.render("Why?") == CONVERSATION
        assert ask.render_wire({"question": "Why?"}) == CONVERSATION

    def test_prompt_without_turns_is_rejected(self):
        """A prompt with only a system part raises an error."""

        @prompt
        def silent():
            return BRIEF

        with pytest.raises(PromptError) as caught:
            silent.render()

        assert str(caught.value) == "prompt 'silent' has a system part but no turn: add a user(...)"

    def test_error_for_the_role_suggests_system(self):
        """The error for the role 'system' suggests `system`."""
        with pytest.raises(
            ValueError, match=r"cannot have the role 'system': write system\(\.\.\.\) next to the turns"
        ):
            Message("system", "Be brief.")


@pytest.mark.parametrize("revision", REVISIONS)
def test_system_part_is_sent_as_a_user_message(revision):
    """In every revision, the system part is the first user message; the result of a tool labels it."""
    lowering = lowering_for(REVISIONS[revision])
    result = json.loads(lowering.result(ask.compiled, CONVERSATION))
    called = json.loads(lowering.tool_result(CONVERSATION))

    validate(result, revision, "GetPromptResult")
    assert [(m["role"], m["content"]["text"]) for m in result["messages"]] == [
        ("user", "Be brief."),
        ("user", "Why?"),
        ("assistant", "Because."),
    ]
    (block,) = called["content"]
    assert block["text"] == "[system]\n\nBe brief.\n\n[user]\n\nWhy?\n\n[assistant]\n\nBecause."


def test_client_receives_a_turn():
    """A client receives the system part as a turn."""
    assert Client(ask).get_prompt("ask", {"question": "Why?"}) == Workflow(CONVERSATION.sent)


def test_preview_shows_the_system_part_first():
    """The preview shows the system part first, with its own role."""
    turns = ConversationBuilder(MediaStore()).build_turns(CONVERSATION)

    assert [(turn.number, turn.message.role) for turn in turns] == [
        (1, "system"),
        (2, "user"),
        (3, "assistant"),
    ]
