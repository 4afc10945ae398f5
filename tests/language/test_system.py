import json
import pickle

import pytest

from promptkit import Image, Message, PromptError, Text, Workflow, assistant, prompt, system, user
from promptkit.preview.conversation import Conversation
from promptkit.preview.media import MediaStore
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import REVISIONS
from promptkit.testing import Client
from promptkit.testing.transcripts import explain, transcript
from tests.wire import validate

BRIEF = system("Be brief.")
ASKED = BRIEF + user("Why?") + assistant("Because.")


@prompt
def ask(question: str):
    """Ask briefly."""
    yield system("Be brief.")
    yield user(question)
    yield assistant("Because.")


class TestValue:
    def test_parts(self):
        """
        Texts are joined with a blank line; what is empty is left out.
        """
        assert system(*["a", None, Text("b"), False, " "]).system == Text("a\n\nb")
        assert system().system is None

    def test_no_messages(self):
        """
        A system part is no message.
        """
        assert BRIEF.messages == ()
        assert ASKED.messages == (*user("Why?"), *assistant("Because."))
        assert len(ASKED) == 2

    @pytest.mark.parametrize(
        ("part", "what"), [(3, "an int (3)"), (b"x", "a bytes (b'x')"), (user("x"), "a Workflow")]
    )
    def test_no_text(self, part, what):
        """
        Only text has a place there; the error says which part has none.
        """
        with pytest.raises(TypeError) as refused:
            system("a", part)

        assert str(refused.value).startswith(f"system(...): part 2 is {what}")
        assert str(refused.value).endswith("a system part is text; put it into a turn")

    def test_an_image(self, png):
        """
        Images belong into turns.
        """
        with pytest.raises(TypeError, match="put it into a turn"):
            system(Image(png))

    def test_annotations(self):
        """
        One block has one set of annotations.
        """
        assert system(Text("a", priority=1), Text("b", priority=1)).system == Text("a\n\nb", priority=1)
        with pytest.raises(ValueError, match="different annotations"):
            system("a", Text("b", priority=1))

    def test_a_workflow_made_by_hand(self):
        """
        Text becomes a `Text`; blank text is none; anything else is refused.
        """
        assert Workflow(user("x"), system="a") == system("a") + user("x")
        assert Workflow(user("x"), " ") == user("x")
        with pytest.raises(TypeError, match=r"the system part is text, not a Workflow .*system\(\.\.\.\)"):
            Workflow((), user("x"))


class TestSums:
    def test_turns(self):
        """
        Wherever it is added, it is the workflow's.
        """
        assert (
            user("Why?") + BRIEF == BRIEF + user("Why?") == BRIEF + "Why?" == BRIEF + Message("user", "Why?")
        )

    def test_several(self):
        """
        Several are joined in order, with a blank line between.
        """
        assert (BRIEF + user("x") + system("Be kind.")).system == Text("Be brief.\n\nBe kind.")
        with pytest.raises(ValueError, match="different annotations"):
            BRIEF + system(Text("b", priority=1))

    def test_slices(self):
        """
        Slices have turns alone.
        """
        assert ASKED[:] == user("Why?") + assistant("Because.")
        assert ASKED[0] == user("Why?")


class TestComparison:
    def test_equality(self):
        """
        It counts; and equal workflows have equal hashes.
        """
        assert BRIEF + user("Why?") + assistant("Because.") == ASKED
        assert ASKED[:] != ASKED
        assert BRIEF + user("x") != Message("user", "x")
        assert Message("user", "x") != BRIEF + user("x")
        assert hash(ASKED) == hash(BRIEF + user("Why?") + assistant("Because."))
        assert pickle.loads(pickle.dumps(ASKED)) == ASKED  # noqa: S301 (it is ours)

    def test_membership(self):
        """
        Its text is found; as a part of a workflow it has to be the same.
        """
        assert "brief" in ASKED
        assert Text("Be brief.") in ASKED
        assert BRIEF in ASKED
        assert BRIEF + assistant("Because.") in ASKED
        assert system("Be kind.") not in ASKED
        assert user("Be brief.") not in ASKED
        assert Message("user", "Be brief.") not in ASKED
        assert ASKED.count("Be brief.") == 0

    def test_texts(self):
        """
        It comes before all turns.
        """
        assert ASKED.text == "Be brief.\n\nWhy?\n\nBecause."
        assert str(ASKED) == "[system]\nBe brief.\n\n[user]\nWhy?\n\n[assistant]\nBecause."
        assert repr(BRIEF + user("x")) == "Workflow([Message('user', Text('x'))], system=Text('Be brief.'))"

    def test_transcripts(self):
        """
        Snapshots tell a system part from a turn that reads like one.
        """
        assert transcript(ASKED).startswith("[system]\nBe brief.\n\n[user]\n")
        assert transcript(user("[system]\nBe brief.")) == "[user]\n\\[system]\nBe brief."
        assert explain("==", BRIEF + user("x"), system("Be kind.") + user("x")) == [
            "Workflow == Workflow: the transcripts differ (- right, + left)",
            "the system part:",
            "  [system]",
            "- Be kind.",
            "+ Be brief.",
            "  [user]",
        ]


class TestPrompts:
    def test_yielded(self):
        """
        A generator yields it next to its turns; a function adds it.
        """
        assert ask.render("Why?") == ASKED
        assert ask.render_wire({"question": "Why?"}) == ASKED

    def test_no_turn(self):
        """
        A prompt with a system part alone says nothing that anybody could answer.
        """

        @prompt
        def silent():
            return BRIEF

        with pytest.raises(PromptError) as refused:
            silent.render()

        assert str(refused.value) == "prompt 'silent' has a system part and no turn: add a user(...)"

    def test_the_role(self):
        """
        A message has no such role; the error says what to write.
        """
        with pytest.raises(ValueError, match=r"no role 'system': write system\(\.\.\.\) next to the turns"):
            Message("system", "Be brief.")


@pytest.mark.parametrize("revision", REVISIONS)
def test_on_the_wire(revision):
    """
    In each revision it is the first message, of the user; a tool says that it is the system part.
    """
    lowering = lowering_for(REVISIONS[revision])
    result = json.loads(lowering.result(ask.compiled, ASKED))
    called = json.loads(lowering.tool_result(ASKED))

    validate(result, revision, "GetPromptResult")
    assert [(m["role"], m["content"]["text"]) for m in result["messages"]] == [
        ("user", "Be brief."),
        ("user", "Why?"),
        ("assistant", "Because."),
    ]
    (block,) = called["content"]
    assert block["text"] == "[system]\n\nBe brief.\n\n[user]\n\nWhy?\n\n[assistant]\n\nBecause."


def test_what_a_client_gets():
    """
    A client cannot tell it from a turn: it gets what was sent.
    """
    assert Client(ask).get_prompt("ask", {"question": "Why?"}) == Workflow(ASKED.sent)


def test_in_the_preview():
    """
    The page shows it first, under its own name.
    """
    turns = Conversation(MediaStore()).turns(ASKED)

    assert [(turn.number, turn.message.role) for turn in turns] == [
        (1, "system"),
        (2, "user"),
        (3, "assistant"),
    ]
