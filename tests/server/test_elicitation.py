import gc
import json
import threading
import time
from enum import Enum
from functools import partial
from queue import Queue
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from promptkit import Arg, prompt, user
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol import key_ring
from promptkit.protocol.jsonrpc import JsonRpcError
from promptkit.protocol.limits import Limits
from promptkit.server import Server
from promptkit.server.elicitation import Elicitation
from tests.wire import HANDSHAKES, MODERN, Client, initialize, line, notification, request, validate

FORM = {"elicitation": {}}
#: The revisions that can ask.
ASKING = ["2025-06-18", "2025-11-25", MODERN]
#: Those of them that have sessions, and those whose clients say how they can be asked.
SESSIONS, MODES = ASKING[:2], ASKING[1:]


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
    @pytest.mark.requirement("elicitation/message", "elicitation/form", "elicitation/accepted")
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

    @pytest.mark.requirement("elicitation/validated", "mrtr/asked-again")
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

    @pytest.mark.requirement("elicitation/validated", "mrtr/unexpected")
    @pytest.mark.parametrize("revision", ASKING)
    def test_nothing_else_is_taken_from_an_answer(self, revision):
        """
        Only what was missing is: what was given stays, what is unknown is ignored.
        """
        asked = Asked(client_of(revision), diff="x")

        reply = asked.accept(tone="calm", depth=1, diff="other", language="de", nonsense=3)

        assert text(reply) == "x|calm|2|en"

    @pytest.mark.requirement("elicitation/declined", "elicitation/dismissed", "elicitation/refusals")
    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize("action", ["decline", "cancel"])
    def test_a_person_may_refuse(self, revision, action):
        """
        The request is then answered with what was missing; the same request asks anew.
        """
        asked = Asked(client_of(revision), diff="x")
        error = asked.answer({"action": action})["error"]
        again = Asked(asked.client, diff="x")

        assert (error["code"], error["message"]) == (
            -32602,
            "prompt 'review': 'tone' is missing; 'depth' is missing",
        )
        assert text(again.accept(tone="calm", depth=1)) == "x|calm|2|en"

    @pytest.mark.requirement("elicitation/validated")
    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize(
        ("entered", "wrong"),
        [
            ({"tone": "angry", "depth": 1}, ["tone"]),
            ({"tone": "calm", "depth": "many"}, ["depth"]),
            ({"tone": "calm", "depth": 1.5}, ["depth"]),
            ({"tone": "calm", "depth": [1]}, ["depth"]),
            ({"tone": {"a": 1}, "depth": True}, ["tone", "depth"]),
        ],
        ids=str,
    )
    def test_an_answer_that_does_not_fit(self, revision, entered, wrong):
        """
        An invalid choice or type is refused as in any argument.
        """
        error = Asked(client_of(revision), diff="x").accept(**entered)["error"]

        assert (error["code"], [fault["argument"] for fault in error["data"]["errors"]]) == (-32602, wrong)

    @pytest.mark.requirement("elicitation/validated")
    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize("content", [{}, {"content": {}}, {"content": None}], ids=str)
    def test_an_answer_without_content(self, revision, content):
        """
        Who accepts and enters nothing is asked again.
        """
        asked = Asked(client_of(revision), diff="x")
        asked.answer({"action": "accept", **content})

        assert text(asked.accept(tone="calm", depth=1)) == "x|calm|2|en"

    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize(
        "content",
        [
            {},
            {"content": None},
            {"content": {"tone": ""}},
            {"content": {"tone": None, "depth": ""}},
            {"content": {"unknown": "x", "diff": "y"}},
            {"content": {"depth": 1}},
            {"content": {f"field-{number}": "x" for number in range(2000)}},
        ],
        ids=lambda content: str(content)[:60],
    )
    def test_nobody_is_asked_without_end(self, revision, content):
        """
        Who leaves something out is asked once more, and told so; then the request is answered with
        what is missing. The same request asks anew.
        """
        asked = Asked(client_of(revision), diff="x")
        first = asked.question["message"]
        asked.answer({"action": "accept", **content})
        second = asked.question["message"]
        error = asked.answer({"action": "accept", **content})["error"]

        assert first == "The prompt 'Review a change' needs tone and depth."
        assert second.startswith("Not everything was entered: the prompt 'Review a change' still needs tone")
        assert (error["code"], error["data"]["errors"][0]["argument"]) == (-32602, "tone")
        assert Asked(asked.client, diff="x").question["message"] == first

    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize(
        ("answer", "code"),
        [
            ({"action": "decline"}, -32602),
            ({"action": "cancel"}, -32602),
            ({"action": "accept", "content": {"tone": "angry", "depth": 1}}, -32602),
            ({"action": "accept", "content": [1]}, -32602),
            (None, -32602),
        ],
        ids=str,
    )
    def test_the_second_question_ends_as_the_first_does(self, revision, answer, code):
        """
        A person may refuse it, or enter what does not fit.
        """
        asked = Asked(client_of(revision), diff="x")
        asked.accept()

        assert asked.answer(answer)["error"]["code"] == code
        assert asked.question is None

    @pytest.mark.parametrize("revision", ASKING)
    def test_a_type_that_always_says_it_is_missing(self, revision):
        """
        An author's type that finds nothing in whatever is entered does not have people asked for ever.
        """

        @prompt(elicit=True)
        def never(code: str, many: Annotated[list[int], "Numbers"]):
            return code

        asked = Asked(Client(compile(Recipes(prompts=(never,))), revision, capabilities=FORM), "never")
        rounds = 0
        while asked.question is not None:
            asked.accept(code="", many="")
            rounds += 1

        assert (rounds <= 2, asked.found["error"]["code"]) == (True, -32602)

    @pytest.mark.parametrize("revision", ASKING)
    def test_an_answer_is_limited_as_arguments_are(self, revision):
        """
        What a person enters may be no longer than an argument, and no more than all of them.
        """
        limits = Limits(argument=1000, arguments=3)
        catalog = compile(Recipes(prompts=(review,)))
        client = Client(catalog, revision, capabilities=FORM, limits=limits)
        long = Asked(client, tone="calm", depth=1).accept(diff="x" * 1001)["error"]
        many = Asked(client, diff="x", language="en").accept(tone="calm", depth=1)["error"]

        assert (long["code"], many["code"]) == (-32602, -32602)
        assert long["message"] == "'diff' has 1,003 characters of JSON: at most 1,000 are taken"
        assert many["message"] == "there are 4 arguments: at most 3 are taken"

    @pytest.mark.requirement("elicitation/refusals", "mrtr/valid-responses", "mrtr/protocol-errors")
    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize(
        "result", [{}, {"action": "perhaps"}, {"action": "accept", "content": 3}, [], 3, None], ids=str
    )
    def test_an_answer_that_is_none(self, revision, result):
        """
        A malformed answer is -32602, and the next request is served.
        """
        asked = Asked(client_of(revision), diff="x")

        assert asked.answer(result)["error"]["code"] == -32602
        assert "result" in asked.client.get("plain", diff="x")

    @pytest.mark.parametrize(
        "result",
        [
            b'{"action":"accept","content":{"depth":1e400}}',
            b"[" * 200 + b"]" * 200,
            b"[" + b"0," * 60_000 + b"0]",
        ],
        ids=["a number too large", "too deep", "too many values"],
    )
    def test_an_answer_that_cannot_be_read(self, result):
        """
        It counts as none: the request is answered at once, and the answer is not.
        """
        client = client_of(SESSIONS[0])
        number = json.dumps(Asked(client, diff="x").found["id"]).encode()

        (reply,) = client.send(b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (number, result))

        assert (reply["id"], reply["error"]["code"]) == (5, -32602)
        assert "'tone' is missing" in reply["error"]["message"]
        assert "result" in client.get("plain", diff="x")

    @pytest.mark.requirement("elicitation/modes", "elicitation/form-implied")
    @pytest.mark.parametrize("revision", MODES)
    @pytest.mark.parametrize("modes", [{}, {"form": {}}, {"form": {}, "url": {}}], ids=str)
    def test_a_client_that_shows_forms(self, revision, modes):
        """
        A client that declares forms, or no mode at all, is asked by form.
        """
        asked = Asked(client_of(revision, {"elicitation": modes}), diff="x")

        assert asked.question["mode"] == "form"


class TestNotAsking:
    @pytest.mark.requirement("elicitation/modes", "elicitation/no-url-error", "mrtr/undeclared")
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

        assert (error["code"], len(error["data"]["errors"])) == (-32602, 2)

    @pytest.mark.requirement("elicitation/sensitive", "elicitation/no-url-error")
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

    @pytest.mark.requirement("elicitation/no-url-error")
    def test_there_is_no_error_that_demands_a_url(self):
        """
        No error has the code that has the person sent elsewhere.
        """
        assert -32042 not in {kind.code for kind in JsonRpcError.__subclasses__()}


class TestState:
    def retry(self, **changed):
        """The reply to a retry with an answer and some other members."""
        asked = Asked(client_of(MODERN), diff="x")
        return asked.answer({"action": "accept", "content": {"tone": "calm", "depth": 1}}, **changed)

    @pytest.mark.requirement("mrtr/state")
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

    @pytest.mark.requirement("mrtr/state-rejected", "mrtr/state-origin")
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

    @pytest.mark.requirement("mrtr/hostile-state")
    @given(st.text(st.characters(codec="utf-8")))
    @example("v1." + "9" * 100_000)
    @example("{}")
    def test_any_text_for_a_state(self, state):
        """
        Whatever a client makes up is refused, and the next request is served.
        """
        client = client_of(MODERN)
        params = {"name": "review", "arguments": {"diff": "x"}, "requestState": state}

        assert client.ask("prompts/get", params)["error"]["code"] == -32602
        assert text(client.get("plain", diff="x")) == "x"

    @pytest.mark.requirement("mrtr/hostile-state")
    @pytest.mark.parametrize("state", [None, 0, True, [], {}, ["v1"]], ids=str)
    def test_a_state_is_text(self, state):
        """
        Any other JSON is refused before it is looked at.
        """
        error = self.retry(requestState=state)["error"]

        assert (error["code"], "requestState" in error["message"]) == (-32602, True)

    @pytest.mark.requirement("mrtr/state-integrity", "mrtr/state-rejected")
    def test_every_character_counts(self):
        """
        With one character replaced the state is refused, whichever it is, and nothing is asked.
        """
        asked = Asked(client_of(MODERN), diff="x")
        state = asked.found["result"]["requestState"]
        changed = [state[:i] + ("1" if state[i] == "0" else "0") + state[i + 1 :] for i in range(len(state))]

        retries = [{**asked.params, "requestState": each} for each in changed]
        replies = [asked.client.ask("prompts/get", retry) for retry in retries]

        assert [reply.get("error", {}).get("code") for reply in replies] == [-32602] * len(state)

    @pytest.mark.requirement("mrtr/state-integrity")
    def test_another_server_takes_none(self):
        """
        A state that was sealed with another key is refused.
        """
        state = Asked(client_of(MODERN), diff="x").found["result"]["requestState"]

        assert self.retry(requestState=state)["error"]["message"].startswith("requestState was changed")

    @pytest.mark.requirement("mrtr/state-expiry")
    @pytest.mark.parametrize(("later", "taken"), [(899, True), (902, False)])
    def test_it_lasts_for_a_quarter_of_an_hour(self, later, taken, monkeypatch):
        """
        After that it does not count, nor does the answer that comes with it: the question is asked again.
        """
        now = [1_790_000_000.0]
        signer = partial(key_ring.RequestStateSigner, clock=lambda: now[0])
        monkeypatch.setattr("promptkit.server.elicitation.RequestStateSigner", signer)
        asked = Asked(client_of(MODERN), diff="x")

        now[0] += later
        reply = asked.accept(tone="calm", depth=1)

        assert reply["result"]["resultType"] == ("complete" if taken else "input_required")

    def test_a_state_nobody_needs_is_checked_all_the_same(self):
        """
        A prompt that asks for nothing refuses a state that is not from here.
        """
        params = {"name": "plain", "arguments": {"diff": "x"}, "requestState": "v1.x"}

        assert client_of(MODERN).ask("prompts/get", params)["error"]["code"] == -32602

    @pytest.mark.parametrize(
        "answer", [{"action": "cancel"}, {"action": "accept", "content": {"tone": "calm"}}]
    )
    def test_answers_without_a_state(self, answer):
        """
        Answers to a question that was never asked do not count: it is asked now.
        """
        params = {"name": "review", "arguments": {"diff": "x"}, "inputResponses": {"arguments": answer}}

        result = client_of(MODERN).ask("prompts/get", params)["result"]

        assert result["resultType"] == "input_required"
        assert "requestState" in result

    def test_answers_without_a_state_to_a_client_that_shows_no_forms(self):
        """
        It is told what is missing, as ever.
        """
        params = {"name": "review", "inputResponses": {"arguments": {"action": "accept"}}}

        error = client_of(MODERN).ask("prompts/get", params, capabilities={})["error"]

        assert "'diff' is missing" in error["message"]

    @pytest.mark.requirement("mrtr/asked-again")
    @pytest.mark.parametrize("responses", [{}, {"other": {"action": "accept", "content": {}}}], ids=str)
    def test_no_answer_is_asked_for_again(self, responses):
        """
        A retry without the answer gets the question once more; unknown keys are ignored.
        """
        assert self.retry(inputResponses=responses)["result"]["resultType"] == "input_required"

    @pytest.mark.parametrize(
        "changed", [{}, {"inputResponses": {}}, {"inputResponses": {"other": 1}}], ids=str
    )
    def test_a_client_that_never_answers(self, changed):
        """
        A state says how often was asked: who comes back again and again without an answer is refused.
        """
        asked = Asked(client_of(MODERN), diff="x")
        states = []
        while asked.question is not None:
            states.append(asked.found["result"]["requestState"])
            retry = {**asked.params, "requestState": states[-1], **changed}
            asked.note(asked.client.ask("prompts/get", retry))

        assert (len(states), asked.found["error"]["code"]) == (2, -32602)
        assert "'tone' is missing" in asked.found["error"]["message"]

    @pytest.mark.parametrize("count", ["0", "1", "3", "10", "-1", "01", " 2", "٢", ""])
    def test_a_state_that_counts_otherwise(self, count):
        """
        A client cannot make a state say that it was asked less often.
        """
        asked = Asked(client_of(MODERN), diff="x")
        asked.accept()
        _, _, token = asked.found["result"]["requestState"].partition(".")

        for state in (f"{count}.{token}", token):
            error = asked.client.ask("prompts/get", {**asked.params, "requestState": state})["error"]
            assert (error["code"], "requestState" in error["message"]) == (-32602, True)

    @pytest.mark.requirement("mrtr/unexpected")
    def test_answers_to_what_was_not_asked(self):
        """
        Beside the answer they are ignored, whatever they are.
        """
        accepted = {"action": "accept", "content": {"tone": "calm", "depth": 1, "x": [1]}, "more": {}}
        answers = {"arguments": accepted, "other": {"action": "perhaps"}, "": 3}

        assert text(self.retry(inputResponses=answers)) == "x|calm|2|en"

    @pytest.mark.requirement("mrtr/valid-responses", "mrtr/protocol-errors")
    @pytest.mark.parametrize("answers", [None, [], [{}], "accept", 3, True], ids=str)
    def test_answers_that_are_no_object(self, answers):
        """
        Answers come by their keys; anything else is an error, and no question.
        """
        error = self.retry(inputResponses=answers)["error"]

        assert (error["code"], "inputResponses" in error["message"]) == (-32602, True)

    def test_a_client_that_does_not_show_forms_any_more(self):
        """
        If the retry lacks the capability, the error names it.
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

    @pytest.mark.requirement("mrtr/undeclared")
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
        The client is notified; an answer that comes all the same is ignored.
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
        A request that waits for a person when the client hangs up is answered all the same, and
        the question is taken back.
        """
        asked = Asked(client_of("2025-11-25"), diff="x")
        asked.client.sent.clear()

        asked.client.server.close(0)

        reply, withdrawn = asked.client.replies()
        assert (reply["id"], reply["error"]["code"]) == (5, -32602)
        assert withdrawn == notification("notifications/cancelled", {"requestId": asked.found["id"]})


class TestRounds:
    @pytest.mark.requirement(
        "mrtr/instead-of-requests", "mrtr/keys", "mrtr/kinds", "mrtr/state", "mrtr/something"
    )
    def test_the_result_asks(self):
        """
        A modern client gets one question under one key, with a state; it is a request for
        elicitation, without an id of its own.
        """
        reply = client_of(MODERN).get("review", diff="x")

        ((key, asked),) = reply["result"]["inputRequests"].items()
        validate({key: asked}, MODERN, "InputRequests")
        assert (set(reply), reply["id"]) == ({"jsonrpc", "id", "result"}, 1)
        assert (set(asked), asked["method"]) == ({"method", "params"}, "elicitation/create")
        assert asked["params"]["requestedSchema"]["required"] == ["tone", "depth"]
        assert isinstance(reply["result"]["requestState"], str)

    @pytest.mark.requirement("mrtr/instead-of-requests", "mrtr/something")
    def test_no_request_is_ever_sent(self):
        """
        Through all rounds, and at the end, no line has a method: who gives a whole answer
        gets a prompt, and all the others are asked in results that hold a question and a state.
        """
        asked = Asked(client_of(MODERN), diff="x")
        content = [{"depth": 1}, {"tone": "calm", "depth": 1}]
        found = [asked.found, *[asked.accept(**entered) for entered in content]]
        asked.client.sent.clear()
        asked.client.server.close(0)

        kinds = [reply["result"]["resultType"] for reply in found]
        asking = [reply["result"] for reply in found[:-1]]
        assert kinds == ["input_required"] * 2 + ["complete"]
        assert [bool(each["inputRequests"] and each["requestState"]) for each in asking] == [True] * 2
        assert [reply for reply in found if "method" in reply] + asked.client.replies() == []

    @pytest.mark.requirement("mrtr/only-where-allowed")
    @pytest.mark.parametrize(
        ("method", "params"),
        [
            ("server/discover", {}),
            ("prompts/list", {}),
            (
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": "review"},
                    "argument": {"name": "tone", "value": ""},
                },
            ),
        ],
    )
    def test_nothing_but_a_prompt_asks(self, method, params):
        """
        Other results are complete, though they are about a prompt that asks.
        """
        result = client_of(MODERN).ask(method, params)["result"]

        assert (result["resultType"], "inputRequests" in result) == ("complete", False)

    @pytest.mark.requirement("mrtr/only-where-allowed")
    def test_a_stream_does_not_ask(self):
        """
        Nor does what opens and ends a stream of notifications.
        """
        client = client_of(MODERN)
        (opened,) = client.post("subscriptions/listen", {"notifications": {"promptsListChanged": True}})
        client.sent.clear()
        client.server.close(0)

        assert opened["method"] == "notifications/subscriptions/acknowledged"
        assert client.replies()[0]["result"]["resultType"] == "complete"

    @pytest.mark.requirement("elicitation/may-fail", "mrtr/no-retry")
    def test_nobody_has_to_come_back(self):
        """
        A client that never answers leaves nothing behind: neither a thread nor an id in use, and
        nothing that is said at the end. Its next request is served with what it brings.
        """
        client = client_of(MODERN)
        threads = set(threading.enumerate())  # those of other tests may end meanwhile
        for _ in range(20):
            assert client.get("review")["result"]["resultType"] == "input_required"

        assert set(threading.enumerate()) <= threads
        assert text(client.get("review", diff="x", tone="calm", depth="1")) == "x|calm|2|en"
        client.sent.clear()
        client.server.close(0)
        assert client.replies() == []


def held(thing):
    """All text that *thing* holds on to, however deep, but for what modules hold."""
    found, todo = {}, [thing]
    while todo:
        current = todo.pop()
        if id(current) in found or isinstance(current, type | ModuleType):
            continue
        found[id(current)] = current
        if isinstance(current, msgspec.Struct):
            todo += msgspec.structs.astuple(current)
        elif isinstance(current, FunctionType):
            todo += [cell.cell_contents for cell in current.__closure__ or ()]
        elif not isinstance(current, BuiltinFunctionType):  # where the client keeps what it was sent
            todo += gc.get_referents(current)
    return " ".join(
        value if isinstance(value, str) else value.decode(errors="replace")
        for value in found.values()
        if isinstance(value, str | bytes)
    )


class TestMemory:
    @pytest.mark.requirement("elicitation/stored-state", "elicitation/may-fail", "mrtr/no-retry")
    def test_between_question_and_answer(self):
        """
        Nothing of a modern request is kept while its person thinks.
        """
        asked = Asked(client_of(MODERN), diff="given by somebody")
        found = held(asked.client.server)

        assert ("How deep to look" in found, "given by somebody" in found) == (True, False)

    @pytest.mark.requirement("elicitation/stored-state")
    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize("action", ["accept", "decline"])
    def test_after_the_answer(self, revision, action):
        """
        What was given and what was entered is forgotten once the request is answered; in a
        session the request is all that is kept until then.
        """
        asked = Asked(client_of(revision), diff="given by somebody")
        before = "given by somebody" in held(asked.client.server)
        entered = {"tone": "entered by somebody", "depth": 1}
        asked.answer({"action": action, "content": entered})
        found = held(asked.client.server)

        assert before is (revision in SESSIONS)
        assert ("given by" in found, "entered by" in found) == (False, False)


def at_once(*calls):
    """Call each of these on a thread of its own, all at the same moment."""
    ready = threading.Barrier(len(calls))
    threads = [threading.Thread(target=lambda call=call: (ready.wait(), call())) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class TestPatience:
    def after(self, client, seconds):
        """What is sent when so many seconds have passed."""
        client.sent.clear()
        client.server._dispatcher._expire(time.monotonic() + seconds)
        return client.replies()

    def next(self, client):
        """The next messages of a server that answers on its own threads."""
        deadline = time.monotonic() + 20
        while not client.sent and time.monotonic() < deadline:
            time.sleep(0.005)
        return client.replies()

    @pytest.mark.requirement("lifecycle/timeouts/sent")
    @pytest.mark.parametrize("revision", SESSIONS)
    def test_every_question_has_a_limit(self, revision):
        """
        Whatever is sent that wants an answer is waited for for a quarter of an hour.
        """
        client = Asked(client_of(revision), diff="x").client

        assert (self.after(client, 899), len(self.after(client, 901))) == ([], 2)

    @pytest.mark.requirement("lifecycle/timeouts/sent", "lifecycle/timeouts/cancelled")
    @pytest.mark.parametrize("revision", SESSIONS)
    def test_a_question_that_nobody_answers(self, revision):
        """
        Its request is answered with what was missing, and it is taken back.
        """
        asked = Asked(client_of(revision), diff="x")

        reply, withdrawn = self.after(asked.client, 901)

        assert withdrawn == notification("notifications/cancelled", {"requestId": asked.found["id"]})
        assert (reply["id"], reply["error"]["code"], reply["error"]["message"]) == (
            5,
            -32602,
            "prompt 'review': 'tone' is missing; 'depth' is missing",
        )

    @pytest.mark.parametrize("revision", SESSIONS)
    def test_what_comes_too_late(self, revision):
        """
        An answer, and a cancellation, that come after that are ignored, and the id is free.
        """
        asked = Asked(client_of(revision), diff="x")
        client = asked.client
        self.after(client, 901)

        assert client.answer(asked.found["id"], {"action": "cancel"}) == []
        assert client.send(line(notification("notifications/cancelled", {"requestId": 5}))) == []
        assert "result" in client.ask("prompts/list", {}, 5)
        assert self.after(client, 901) == []

    @pytest.mark.parametrize("revision", SESSIONS)
    @pytest.mark.parametrize(
        "message",
        [
            {"id": "promptkit-1", "result": {"action": "decline"}},
            {"id": "promptkit-1", "error": {"code": -1, "message": "no"}},
            {"method": "notifications/cancelled", "params": {"requestId": 5}},
        ],
        ids=["answer", "error", "cancelled"],
    )
    def test_a_question_that_is_open_no_longer(self, revision, message):
        """
        Once it is answered or taken back nothing waits for it.
        """
        client = Asked(client_of(revision), diff="x").client
        client.send(line({"jsonrpc": "2.0", **message}))

        assert self.after(client, 901) == []

    @pytest.mark.parametrize(
        "message",
        [
            {"id": "promptkit-1", "result": {"action": "accept", "content": {"tone": "calm", "depth": 1}}},
            {"method": "notifications/cancelled", "params": {"requestId": 5}},
        ],
        ids=["answer", "cancelled"],
    )
    def test_at_the_same_moment(self, message):
        """
        Whichever thread comes first, the request is answered once, or, cancelled, at most once.
        """
        for _ in range(60):
            client = Asked(client_of("2025-11-25"), diff="x").client
            client.sent.clear()
            received = partial(client.server.receive_data, line({"jsonrpc": "2.0", **message}))
            at_once(partial(client.server._dispatcher._expire, time.monotonic() + 901), received)

            replies = [found for found in client.replies() if "method" not in found]
            assert len(replies) == 1 if "result" in message else len(replies) <= 1
            assert "result" in client.ask("prompts/list", {}, 5)

    @pytest.mark.parametrize("revision", SESSIONS)
    def test_an_answer_while_the_request_is_being_refused(self, revision):
        """
        It is ignored, also before the client learns that the request has ended.
        """
        asked = Asked(client_of(revision), diff="x")
        server, result = asked.client.server, {"action": "accept", "content": {"tone": "calm", "depth": 1}}
        late = line({"jsonrpc": "2.0", "id": asked.found["id"], "result": result})

        def answer_at_once(data):
            asked.client.sent.append(data)
            if b"error" in data:
                server.receive_data(late)

        server._dispatcher._send = answer_at_once
        replies = [found for found in self.after(asked.client, 901) if "method" not in found]

        assert [(reply["id"], "error" in reply) for reply in replies] == [(5, True)]

    @pytest.mark.requirement("lifecycle/timeouts/sent", "lifecycle/timeouts/cancelled")
    @pytest.mark.parametrize("revision", SESSIONS)
    def test_the_server_looks_at_the_clock(self, revision, monkeypatch):
        """
        Nothing has to arrive for a question to be given up when its time is over: it is taken back, or not
        asked at all if its time was over before.
        """
        monkeypatch.setattr("promptkit.server.server.Elicitation", partial(Elicitation, answer_within=0.01))
        told = Queue()
        server = Server(compile(Recipes(prompts=(review,))), told.put)
        opening = [initialize(revision, capabilities=FORM), notification("notifications/initialized")]
        server.receive_data(b"".join(map(line, opening)))
        told.get(timeout=10)

        server.receive_data(line(request(5, "prompts/get", {"name": "review"})))

        wanted = ["elicitation/create", 5, "notifications/cancelled"]
        sent = []
        while sent not in ([5], wanted):
            for text in told.get(timeout=50).splitlines():
                found = json.loads(text)
                sent.append(found.get("method", found.get("id")))
        assert told.empty()

    @pytest.mark.parametrize("revision", SESSIONS)
    def test_the_limit_after_a_late_answer(self, revision):
        """
        Once the person has answered, the prompt has its whole time limit, and no more.
        """
        release = threading.Event()

        @prompt(elicit=True)
        def hangs(name: str):
            release.wait(50)
            return name

        catalog = compile(Recipes(prompts=(hangs,)))
        limits = Limits(timeout=0.5)
        client = Client(catalog, revision, capabilities=FORM, threads=True, limits=limits)
        client.post("prompts/get", {"name": "hangs"}, 5)
        (asked,) = self.next(client)
        time.sleep(0.7)
        client.answer(asked["id"], {"action": "accept", "content": {"name": "Ada"}})
        (reply,) = self.next(client)
        release.set()

        assert "took longer than its limit of 0.5 s" in reply["error"]["message"]

    @pytest.mark.parametrize("revision", SESSIONS)
    @pytest.mark.parametrize("moment", ["held", "expected", "sent"])
    def test_a_request_that_is_over_while_it_is_being_asked_for(self, revision, moment, monkeypatch):
        """
        Whenever its time is over, a question that is asked is taken back, after it was asked; none is left.
        """
        client = client_of(revision)
        server = client.server
        elicitation, dispatcher = server._elicitation, server._dispatcher
        owner, name = {
            "held": (dispatcher, "hold"),
            "expected": (server._connection, "expect"),
            "sent": (elicitation, "_send"),
        }[moment]
        original = getattr(owner, name)
        others = []

        def over_then(*args):
            result = original(*args)
            if not others:
                later = (time.monotonic() + 901,)
                others.append(threading.Thread(target=dispatcher._expire, args=later, daemon=True))
                others[0].start()
                others[0].join(0.1)  # it may have to wait for what is done here
            return result

        monkeypatch.setattr(owner, name, over_then)
        client.send(line(request(5, "prompts/get", {"name": "review", "arguments": {"diff": "x"}})))
        others[0].join(20)

        told = [found.get("method", found.get("id")) for found in client.replies()]
        asked = told.count("elicitation/create")
        assert (told.count(5), told.count("notifications/cancelled"), len(told)) == (1, asked, 1 + 2 * asked)
        assert not asked or told.index("elicitation/create") < told.index("notifications/cancelled")
        assert (elicitation._open, server._connection._expected) == ({}, set())
