import asyncio
import datetime as dt
import gc
import pickle
import sys
import threading
import weakref
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import pytest

from promptkit import (
    Arg,
    Audio,
    CompileError,
    Context,
    PromptError,
    Text,
    assistant,
    prompt,
    resource,
    testing,
    user,
)
from promptkit.compiler.compilation import compile
from promptkit.errors import LoadError, MissingClientCapabilityError
from promptkit.loader.loader import load
from promptkit.loader.recipes import Recipes
from promptkit.testing import Client, ProtocolError
from tests.wire import MODERN, REVISIONS

EVERY_REVISION = pytest.mark.parametrize("revision", REVISIONS)
KINDS = Path(__file__).parents[1] / "clients" / "recipes"


@prompt
def review(code: Annotated[str, Arg("The code")], language: Literal["python", "rust"] = "python"):
    """Ask for a review."""
    return user(f"Review this {language} code.", code) + assistant("Gladly.")


@prompt(elicit=True)
def release(version: str, notes: Literal["short", "long"]):
    """Write the notes."""
    return f"{version}: {notes}"


class Tone(Enum):
    WARM = 1
    COLD = 2


@prompt
async def plan(day: dt.date, hours: list[int], tone: Tone = Tone.WARM):
    """Plan a day."""
    await asyncio.sleep(0)
    return f"{day:%A}: {sum(hours)} {tone.name}"


@resource("shelf://notice", title="The notice")
def notice() -> str:
    """What hangs at the door."""
    return "Closed."


@resource("shelf://books/{title}")
def book(title: Annotated[str, Arg(complete=["Emma", "Dune"])]) -> bytes:
    """One book."""
    return title.encode()


ALL = [review, release, plan, notice, book]


class TestMethods:
    @EVERY_REVISION
    def test_prompts(self, revision):
        """A workflow arrives as it was composed, with arguments as text or as other values."""
        client = Client(ALL, revision=revision)

        assert client.get_prompt("review", {"code": "x"}) == user(
            "Review this python code.", "x"
        ) + assistant("Gladly.")
        sent = {"day": dt.date(2026, 1, 31), "hours": [1, 2], "tone": Tone.COLD}
        assert client.get_prompt("plan", sent).text == "Saturday: 3 COLD"
        assert client.get_prompt("review", {"code": "x", "language": None})[0].text.count("python") == 1

    @EVERY_REVISION
    def test_lists(self, revision):
        """Lists are complete, and each item has the attributes of the revision."""
        client = Client(ALL, revision=revision)
        has_titles = revision >= "2025-06-18"

        assert [listed_prompt.name for listed_prompt in client.list_prompts()] == [
            "plan",
            "release",
            "review",
        ]
        assert [
            (listed_prompt.name, listed_prompt.required)
            for listed_prompt in client.list_prompts()[2].arguments
        ] == [
            ("code", True),
            ("language", False),
        ]
        (listed,) = client.list_resources()
        assert (listed.uri, listed.name, listed.title) == (
            "shelf://notice",
            "notice",
            "The notice" if has_titles else None,
        )
        (template,) = client.list_resource_templates()
        assert (template.uri_template, template.name) == ("shelf://books/{title}", "book")
        assert bool(client.list_prompts()[0].meta) == has_titles

    def test_all_pages_of_a_list_are_requested(self):
        """The client requests all pages of a list."""
        many = [prompt(name=f"p{number:04}")(lambda: "Hi.") for number in range(1234)]

        assert [each.name for each in Client(many).list_prompts()] == [each.options.name for each in many]

    @EVERY_REVISION
    def test_tools(self, revision):
        """
        With `tools=True`, each prompt is listed and called as a tool; values are sent as JSON, and content is
        returned.
        """
        client = Client(ALL, revision=revision, tools=True, answers={"notes": "long"})
        tools = client.list_tools()

        assert [tool.name for tool in tools] == ["plan", "release", "review"]
        assert tools[2].input_schema == review.compiled.schema
        hints = tools[2].annotations
        assert hints.read_only_hint if revision > "2024-11-05" else hints is None
        result = client.call_tool("review", {"code": "x"})
        transcript = "[user]\n\nReview this python code.\n\nx\n\n[assistant]\n\nGladly."
        assert result.content == (Text(transcript),)
        sent = {"day": dt.date(2026, 1, 31), "hours": [1, 2], "tone": Tone.COLD}
        assert client.call_tool("plan", sent).text == "Saturday: 3 COLD"
        release_result = client.call_tool("release", {"version": "1"})
        has_forms = revision >= "2025-06-18"
        assert release_result.is_error is not has_forms
        assert release_result.text == ("1: long" if has_forms else "prompt 'release': 'notes' is missing")

    def test_search_tools(self):
        """`tools="search"` lists the two tools for large catalogs; by default there are no tools."""
        client = Client(ALL, tools="search")

        assert [tool.name for tool in client.list_tools()] == ["find_prompts", "get_prompt"]
        assert "Ask for a review" in client.call_tool("find_prompts", {"query": "review"}).text
        assert Client(ALL).list_tools() == []
        with pytest.raises(ProtocolError, match="method not found: tools/call"):
            Client(ALL).call_tool("review")
        with pytest.raises(ProtocolError, match="unknown tool 'review'"):
            client.call_tool("review", {"code": "x"})

    def test_required_capability(self):
        """
        A prompt can require a client capability; a client without it gets the error that the protocol
        defines.
        """

        @prompt
        def needy(context: Context):
            context.require("elicitation")
            return "It can."

        assert Client(needy, answers={}).get_prompt("needy").text == "It can."
        with pytest.raises(ProtocolError, match="capability 'elicitation', which the client") as caught:
            Client(needy).get_prompt("needy")
        assert (caught.value.code, caught.value.data) == (
            -32021,
            {"requiredCapabilities": {"elicitation": {}}},
        )
        with pytest.raises(ProtocolError, match="capability 'elicitation', which the client"):
            Client(needy, tools=True).call_tool("needy")
        with pytest.raises(MissingClientCapabilityError):
            needy.render()

    @EVERY_REVISION
    def test_resources(self, revision):
        """A resource has its text or its bytes."""
        client = Client(ALL, revision=revision)

        assert client.read_resource("shelf://notice").text == "Closed."
        assert client.read_resource("shelf://books/Emma").blob == b"Emma"

    @EVERY_REVISION
    def test_completion(self, revision):
        """Arguments of prompts and variables of templates are completed."""
        client = Client(ALL, revision=revision)

        assert client.complete("review", "language", "py").values == ("python",)
        assert client.complete("review", "language").total == 2
        assert client.complete("shelf://books/{title}", "title", "e", {"shelf": "1"}).values[0] == "Emma"

    @EVERY_REVISION
    def test_raw_request(self, revision):
        """`request` sends params unchanged, and returns the raw result."""
        result = Client(ALL, revision=revision).request(
            "prompts/get", {"name": "review", "arguments": {"code": "x"}}
        )

        assert result["messages"][1] == {"role": "assistant", "content": {"type": "text", "text": "Gladly."}}
        assert ("resultType" in result) == (revision == MODERN)

    def test_context_of_a_prompt(self):
        """A prompt sees the client's name and revision, by default the newest revision."""

        @prompt
        def who(context: Context):
            return f"{context.client_name} {context.revision}"

        assert Client(who, name="zed").get_prompt("who").text == f"zed {MODERN}"
        assert Client(who, revision="2025-06-18").get_prompt("who").text == "promptkit.testing 2025-06-18"


class TestContent:
    @pytest.mark.parametrize(("revision", "kind"), [("2024-11-05", "EmbeddedResource"), (MODERN, "Audio")])
    def test_content_is_lowered_for_older_revisions(self, revision, kind, wav):
        """Content that a revision lacks arrives in another form, as in a real client."""
        play = prompt(name="play")(lambda: Audio(wav))
        (message,) = Client(play, revision=revision).get_prompt("play")

        assert type(message.content).__name__ == kind

    def test_annotations_arrive(self):
        """The annotations audience, priority and last-modified arrive."""
        text = Text("a", audience="user", priority=0.5, last_modified="2026-01-31T12:00:00Z")

        assert Client(prompt(name="say")(lambda: text)).get_prompt("say") == user(text)

    def test_every_kind_of_content_arrives(self):
        """Content of each kind arrives as the prompt returned it."""
        client, catalog = Client(str(KINDS)), compile(load(KINDS))

        for name in ("image", "audio", "embedded_text", "embedded_blob", "link", "turns"):
            assert client.get_prompt(name) == catalog.render(name)


class TestElicitation:
    @EVERY_REVISION
    def test_answers_become_arguments(self, revision):
        """The answers become arguments in both eras, if the revision has forms."""
        client = Client(release, revision=revision, answers={"version": "1.0", "notes": "long", "more": 1})
        if revision >= "2025-06-18":
            assert client.get_prompt("release").text == "1.0: long"
            assert client.get_prompt("release", {"notes": "short"}).text == "1.0: short"
        else:
            with pytest.raises(ProtocolError, match="'version' is missing"):
                client.get_prompt("release")

    @pytest.mark.parametrize("revision", REVISIONS[2:])
    @pytest.mark.parametrize("answers", [None, {}, {"version": "1.0"}, {"other": "1.0"}])
    def test_unanswered_arguments_are_missing(self, revision, answers):
        """If the client has no forms, or the answers are declined or incomplete, the prompt is rejected."""
        with pytest.raises(ProtocolError, match="'notes' is missing") as caught:
            Client(release, revision=revision, answers=answers).get_prompt("release")

        assert caught.value.code == -32602


class TestErrors:
    @EVERY_REVISION
    def test_error_has_code_message_and_data(self, revision):
        """
        Every error reply raises a `ProtocolError` with the code, message and data that a client receives.
        """
        client = Client(ALL, revision=revision)

        with pytest.raises(ProtocolError, match="unknown prompt 'reveiw'; did you mean 'review'") as caught:
            client.get_prompt("reveiw")
        assert (caught.value.code, caught.value.data) == (-32602, {"name": "reveiw", "nearest": "review"})
        for send in (
            lambda: client.request("prompts/sing"),
            lambda: client.read_resource("shelf://nothing"),
            lambda: client.complete("review", "nothing", ""),
            lambda: client.get_prompt("review", {"code": "x", "language": "cobol"}),
        ):
            with pytest.raises(ProtocolError):
                send()
        assert client.get_prompt("review", {"code": "x"})

    def test_only_prompt_errors_reach_the_client(self, capfd):
        """
        A `PromptError` reaches the client; the text of any other exception only goes to the server's stderr.
        """

        @prompt
        def rejects():
            msg = "Choose another day."
            raise PromptError(msg)

        @prompt
        def fails():
            raise ZeroDivisionError("a secret of the server")

        client = Client([rejects, fails])

        with pytest.raises(ProtocolError, match=r"^Choose another day\.$"):
            client.get_prompt("rejects")
        with pytest.raises(ProtocolError, match=r"^prompt 'fails' failed \(error [0-9a-f]{8}\)$") as caught:
            client.get_prompt("fails")
        assert caught.value.code == -32603
        assert "ZeroDivisionError: a secret of the server" in capfd.readouterr().err

    def test_error_can_be_printed_and_pickled(self):
        """The text of the error is its message, and the error survives pickling."""
        error = ProtocolError(-32602, "no", {"a": 1})
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own)

        assert str(error) == "no"
        assert (copy.code, copy.message, copy.data) == (-32602, "no", {"a": 1})

    def test_unknown_revision(self):
        """An unknown revision is an error that suggests the nearest one."""
        with pytest.raises(
            ValueError, match=r"unknown protocol revision '2025-6-18': choose one of 2024-11-05, "
        ):
            Client(review, revision="2025-6-18")


class TestTargets:
    @pytest.mark.parametrize(
        "target",
        [
            str(KINDS),
            KINDS,
            f"{KINDS / 'typed.py'}",
            f"{KINDS / 'typed.py'}:typed",
            compile(load(KINDS)),
        ],
        ids=["folder", "path", "file", "object", "catalog"],
    )
    def test_targets_of_a_folder(self, target):
        """A client accepts a folder, a path, a file, an object in it, and a compiled catalog."""
        assert "3 functions in ruby" in Client(target).get_prompt("typed", {"count": 3, "language": "ruby"})

    def test_modules_and_objects_as_targets(self):
        """A client accepts a module, one prompt or resource, and any iterable of these."""
        for target in (sys.modules[__name__], review, [review], iter(ALL), (review, notice)):
            assert "review" in [listed.name for listed in Client(target).list_prompts()]
        assert [listed.name for listed in Client(notice).list_resources()] == ["notice"]

    def test_missing_file(self):
        """A missing file raises the loader's error."""
        with pytest.raises(LoadError, match="there is no such file or folder"):
            Client("./nowhere/at/all")

    def test_invalid_prompt_is_an_error(self):
        """A prompt that cannot be compiled is an error; a catalog is served without its invalid prompts."""

        @prompt
        def bad(anything):
            return "x"

        with pytest.raises(CompileError, match="PK301"):
            Client([bad, review])
        assert len(Client(compile(Recipes([bad, review]))).list_prompts()) == 1


class TestLoops:
    def test_client_works_in_asynchronous_tests(self):
        """All methods work within a running event loop, even for prompts that run a loop themselves."""

        @prompt
        def runs_a_loop():
            return asyncio.run(asyncio.sleep(0, "done"))

        async def test():
            for revision in REVISIONS:
                client = Client(
                    [*ALL, runs_a_loop], revision=revision, answers={"version": "1", "notes": "long"}
                )
                assert client.get_prompt("runs_a_loop").text == "done"
                assert client.get_prompt("plan", {"day": "2026-01-31", "hours": "1, 2"}).text.endswith("WARM")
                assert client.read_resource("shelf://notice").text == "Closed."
                assert client.complete("review", "language", "r").values[0] == "rust"
                if revision >= "2025-06-18":
                    assert client.get_prompt("release").text == "1: long"

        asyncio.run(test())

    def test_threads_can_share_a_client(self):
        """Several threads can share a client, and each gets its own replies."""
        client, replies = Client(review), {}

        def ask(code):
            for _ in range(20):
                replies.setdefault(code, set()).add(client.get_prompt("review", {"code": code})[0].text[-1])

        threads = [threading.Thread(target=ask, args=(str(number),)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert replies == {str(number): {str(number)} for number in range(5)}


class TestClosing:
    def test_context_manager(self):
        """A `with` block closes the client; a second close is harmless, and a later request is an error."""
        with Client(ALL) as client:
            client.get_prompt("plan", {"day": "2026-01-31", "hours": "1"})
        client.close()
        with pytest.raises(RuntimeError, match="the client is closed"):
            client.list_prompts()

    def test_unreferenced_client_is_freed(self):
        """A client without references is freed, and its threads end."""
        before = set(threading.enumerate())
        client = Client(ALL)
        client.get_prompt("plan", {"day": "2026-01-31", "hours": "1"})
        reference = weakref.ref(client)
        del client
        gc.collect()

        assert reference() is None
        for thread in set(threading.enumerate()) - before:
            thread.join(5)
            assert not thread.is_alive()


def test_public_names_of_the_package():
    """The package lists its public names before they are imported, and has no other names."""
    assert {*testing.__all__} <= {*dir(testing)}
    assert all(getattr(testing, name).__name__ == name for name in testing.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Clint'"):
        testing.Clint  # noqa: B018 (the access is tested)
