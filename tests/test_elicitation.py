from enum import Enum
from typing import Annotated, Literal

import pytest

from promptkit import Arg, prompt, user
from promptkit.compiler import compile
from promptkit.loader import Recipes
from tests.wire import HANDSHAKES, MODERN, Client, line, notification

FORM = {"elicitation": {}}
#: The revisions that can ask.
ASKING = ["2025-06-18", "2025-11-25", MODERN]


class Tone(Enum):
    CALM = "calm"
    BRISK = "brisk"


@prompt(elicit=True, title="Review a change")
def review(
    diff: Annotated[str, Arg("The change")],
    tone: Tone,
    depth: Annotated[int, "How deep to look"],
    language: Literal["en", "de"] = "en",
):
    """Review a change."""
    return user(f"{diff}|{tone.value}|{depth + 1}|{language}")


@prompt(elicit=True)
def login(user_name: str, token: Annotated[str, Arg(secret=True)]):
    return f"{user_name} {token}"


@prompt
def plain(diff: str):
    return diff


def client_of(revision, capabilities=FORM):
    catalog = compile(Recipes(prompts=(review, login, plain)))
    assert catalog.diagnostics == ()
    return Client(catalog, revision, capabilities=capabilities)


def text(reply):
    (message,) = reply["result"]["messages"]
    return message["content"]["text"]


class Asked:
    """A request for a prompt, whichever way its revision asks for what is missing."""

    def __init__(self, client, name="review", **arguments):
        self.client, self.params = client, {"name": name, "arguments": arguments}
        (found,) = client.post("prompts/get", self.params, 5)
        self.note(found)

    def note(self, found):
        """Look for a question in what has been sent back."""
        self.found, self.question = found, None
        if found.get("method") == "elicitation/create":
            self.question = found["params"]
        elif found.get("result", {}).get("resultType") == "input_required":
            ((self.key, asked),) = found["result"]["inputRequests"].items()
            self.question = asked["params"]

    def answer(self, result, **changed):
        """The reply once the person has answered; *changed* are other members of the retry."""
        if self.found.get("method"):
            (found,) = self.client.answer(self.found["id"], result)
        else:
            state = {"requestState": self.found["result"]["requestState"]}
            retry = {**self.params, "inputResponses": {self.key: result}, **state, **changed}
            (found,) = self.client.post("prompts/get", retry, 6)
        self.note(found)
        return found

    def accept(self, **content):
        """The reply once the person has entered *content*."""
        return self.answer({"action": "accept", "content": content})


class TestAsking:
    @pytest.mark.parametrize("revision", ASKING)
    def test_what_is_missing_is_asked_for(self, revision):
        """
        A form for the missing arguments is shown, and the prompt is rendered with what comes back.
        """
        asked = Asked(client_of(revision), diff="--- a")

        mode = {} if revision == "2025-06-18" else {"mode": "form"}
        assert asked.question == {
            **mode,
            "message": "The prompt 'Review a change' needs tone and depth.",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "tone": {"type": "string", "enum": ["calm", "brisk"]},
                    "depth": {"type": "integer", "description": "How deep to look (a whole number)"},
                },
                "required": ["tone", "depth"],
            },
        }
        assert text(asked.accept(tone="brisk", depth=3)) == "--- a|brisk|4|en"

    @pytest.mark.parametrize("revision", ASKING)
    def test_nothing_is_asked_that_was_given(self, revision):
        """
        With all required arguments there, the prompt is rendered at once.
        """
        asked = Asked(client_of(revision), diff="x", tone="calm", depth="1", language="de")

        assert text(asked.found) == "x|calm|2|de"

    @pytest.mark.parametrize("revision", ASKING)
    def test_what_is_still_missing_is_asked_for_again(self, revision):
        """
        Half an answer leads to another question, not to an error.
        """
        asked = Asked(client_of(revision), diff="x")
        asked.accept(tone="calm")

        assert "depth" in asked.question["requestedSchema"]["required"]
        assert text(asked.accept(tone="calm", depth=1)) == "x|calm|2|en"

    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize("blank", ["", None])
    def test_a_blank_is_missing(self, revision, blank):
        """
        An empty form field is asked for, and what comes back takes its place.
        """
        asked = Asked(client_of(revision), diff="x", tone=blank, depth="1")

        assert text(asked.accept(tone="calm")) == "x|calm|2|en"

    @pytest.mark.parametrize("revision", ASKING)
    def test_nothing_else_is_taken_from_an_answer(self, revision):
        """
        Only what was missing is: what was given stays, what is unknown is ignored.
        """
        asked = Asked(client_of(revision), diff="x")

        reply = asked.accept(tone="calm", depth=1, diff="other", language="de", nonsense=3)

        assert text(reply) == "x|calm|2|en"

    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize("action", ["decline", "cancel"])
    def test_a_person_may_refuse(self, revision, action):
        """
        The request is then answered with what was missing.
        """
        error = Asked(client_of(revision), diff="x").answer({"action": action})["error"]

        assert (error["code"], error["message"]) == (
            -32602,
            "prompt 'review': 'tone' is missing; 'depth' is missing",
        )

    @pytest.mark.parametrize("revision", ASKING)
    def test_an_answer_that_does_not_fit(self, revision):
        """
        A value of another type is refused as any argument is.
        """
        error = Asked(client_of(revision), diff="x").accept(tone="angry", depth=1)["error"]

        assert (error["code"], error["data"]["faults"][0]["argument"]) == (-32602, "tone")

    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize(
        "result", [{}, {"action": "perhaps"}, {"action": "accept", "content": 3}, 3], ids=str
    )
    def test_an_answer_that_is_none(self, revision, result):
        """
        A malformed answer is -32602, and the next request is served.
        """
        asked = Asked(client_of(revision), diff="x")

        assert asked.answer(result)["error"]["code"] == -32602
        assert "result" in asked.client.get("plain", diff="x")


class TestNotAsking:
    @pytest.mark.parametrize(
        ("revision", "capabilities"),
        [
            *[(revision, {}) for revision in [*HANDSHAKES, MODERN]],
            *[(revision, {"elicitation": {"url": {}}}) for revision in ["2025-11-25", MODERN]],
            *[(revision, {"elicitation": True}) for revision in ["2025-06-18", MODERN]],
            *[(revision, FORM) for revision in ["2024-11-05", "2025-03-26"]],
        ],
    )
    def test_a_client_that_cannot_ask(self, revision, capabilities):
        """
        A client that shows no forms, or a revision that has none, gets -32602.
        """
        error = Asked(client_of(revision, capabilities), diff="x").found["error"]

        assert (error["code"], len(error["data"]["faults"])) == (-32602, 2)

    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            pytest.param("plain", {}, id="prompt-does-not-ask"),
            pytest.param("login", {"user_name": "a"}, id="secret"),
            pytest.param("login", {}, id="secret-among-others"),
            pytest.param("review", {"tone": "angry"}, id="wrong-too"),
            pytest.param("review", {"nonsense": "x"}, id="unknown-too"),
        ],
    )
    def test_what_is_not_asked_for(self, revision, name, arguments):
        """
        Prompts that do not say so do not ask; secrets are never asked for; and where more is
        wrong than that something is missing, that is said first.
        """
        assert Asked(client_of(revision), name, **arguments).found["error"]["code"] == -32602


class TestState:
    def retry(self, **changed):
        """The reply to a retry with an answer and some other members."""
        asked = Asked(client_of(MODERN), diff="x")
        return asked.answer({"action": "accept", "content": {"tone": "calm", "depth": 1}}, **changed)

    def test_it_comes_back_as_it_was(self):
        """
        The state is taken with the request that it was given for, more than once.
        """
        asked = Asked(client_of(MODERN), diff="x")
        state = asked.found["result"]["requestState"]
        answer = {asked.key: {"action": "accept", "content": {"tone": "calm", "depth": 1}}}
        retry = {**asked.params, "inputResponses": answer, "requestState": state}

        replies = [asked.client.ask("prompts/get", retry, number) for number in (7, 8)]

        assert [text(reply) for reply in replies] == ["x|calm|2|en"] * 2

    @pytest.mark.parametrize(
        "changed",
        [
            pytest.param({"requestState": "v1.9999999999." + "0" * 64}, id="forged"),
            pytest.param({"requestState": ""}, id="empty"),
            pytest.param({"requestState": "\ud7ff"}, id="text"),
            pytest.param({"arguments": {"diff": "y"}}, id="other-arguments"),
            pytest.param({"arguments": {}}, id="no-arguments"),
            pytest.param({"name": "plain"}, id="other-prompt"),
        ],
    )
    def test_it_belongs_to_one_request(self, changed):
        """
        Changed, or with another request, it is refused.
        """
        error = self.retry(**changed)["error"]

        assert (error["code"], "requestState" in error["message"]) == (-32602, True)

    def test_a_state_nobody_needs_is_checked_all_the_same(self):
        """
        A prompt that asks for nothing refuses a state that is not from here.
        """
        params = {"name": "plain", "arguments": {"diff": "x"}, "requestState": "v1.x"}

        assert client_of(MODERN).ask("prompts/get", params)["error"]["code"] == -32602

    def test_answers_without_a_state(self):
        """
        Answers to a question that this request does not bear the state of are refused.
        """
        params = {"name": "review", "inputResponses": {"arguments": {"action": "cancel"}}}

        error = client_of(MODERN).ask("prompts/get", params)["error"]

        assert error == {
            "code": -32602,
            "message": "inputResponses came without requestState: send back the one that asked for them",
        }

    @pytest.mark.parametrize("responses", [{}, {"other": {"action": "accept", "content": {}}}], ids=str)
    def test_no_answer_is_asked_for_again(self, responses):
        """
        A retry without the answer is asked once more; keys that nobody asked for are ignored.
        """
        assert self.retry(inputResponses=responses)["result"]["resultType"] == "input_required"

    def test_a_client_that_does_not_show_forms_any_more(self):
        """
        If the retry does not declare what it takes to go on, the client is told what to declare.
        """
        asked = Asked(client_of(MODERN), diff="x")
        retry = {**asked.params, "requestState": asked.found["result"]["requestState"]}

        error = asked.client.ask("prompts/get", retry, capabilities={})["error"]

        assert (error["code"], error["data"]) == (
            -32021,
            {"requiredCapabilities": {"elicitation": {"form": {}}}},
        )

    def test_a_session_has_no_states(self):
        """
        In a session these members mean nothing.
        """
        params = {"name": "plain", "arguments": {"diff": "x"}, "requestState": "v1.x", "inputResponses": {}}

        assert text(client_of("2025-11-25").ask("prompts/get", params)) == "x"

    def test_every_request_speaks_for_itself(self):
        """
        What one request declares is not remembered for the next.
        """
        asked = Asked(client_of(MODERN), diff="x")

        assert asked.client.ask("prompts/get", asked.params, capabilities={})["error"]["code"] == -32602


class TestSessions:
    def test_others_are_served_while_a_person_thinks(self):
        """
        Nothing waits for the answer but the request that needs it, and its id is in use.
        """
        asked = Asked(client_of("2025-06-18"), diff="x")
        client = asked.client

        assert text(client.get("plain", diff="y")) == "y"
        assert client.ask("prompts/get", asked.params, 5)["error"]["code"] == -32600
        assert text(asked.accept(tone="calm", depth=1)) == "x|calm|2|en"
        assert "result" in client.ask("prompts/list", {}, 5)

    def test_a_cancelled_request_takes_its_question_back(self):
        """
        The client is told that no answer is wanted; one that comes all the same is ignored.
        """
        asked = Asked(client_of("2025-06-18"), diff="x")
        number = asked.found["id"]

        told = asked.client.send(line(notification("notifications/cancelled", {"requestId": 5})))

        assert told == [notification("notifications/cancelled", {"requestId": number})]
        assert asked.client.answer(number, {"action": "cancel"}) == []
        assert "result" in asked.client.ask("prompts/list", {}, 5)

    def test_an_error_for_an_answer(self):
        """
        A client that fails to ask leaves the request with what was missing.
        """
        asked = Asked(client_of("2025-11-25"), diff="x")
        refusal = {"jsonrpc": "2.0", "id": asked.found["id"], "error": {"code": -1, "message": "no"}}

        (reply,) = asked.client.send(line(refusal))

        assert (reply["id"], reply["error"]["code"]) == (5, -32602)

    def test_the_end_answers_what_was_asked(self):
        """
        A request that waits for a person when the client hangs up is answered all the same.
        """
        asked = Asked(client_of("2025-11-25"), diff="x")
        asked.client.sent.clear()

        asked.client.server.close(0)

        assert [(reply["id"], reply["error"]["code"]) for reply in asked.client.replies()] == [(5, -32602)]
