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
from promptkit.server import Server, elicitation
from tests.wire import HANDSHAKES, MODERN, Client, initialize, line, notification, request, validate

FORM = {"elicitation": {}}
#: The revisions with elicitation.
ASKING = ["2025-06-18", "2025-11-25", MODERN]
#: Those of them with sessions, and those in which clients declare modes.
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


@prompt(elicit=False)
def plain(diff: str):
    return diff


@prompt
def brief(topic: str, length: int = 3, token: Annotated[str, Arg(secret=True)] = ""):
    return f"{topic}|{length}"


@prompt(elicit="always")
def standup(since: str = "yesterday", limit: int = 3, token: Annotated[str, Arg(secret=True)] = ""):
    return f"{since}|{limit}"


PROMPTS = (review, login, plain, brief, standup)


def client_of(revision, capabilities=FORM):
    catalog = compile(Recipes(prompts=PROMPTS))
    assert catalog.diagnostics == ()
    return Client(catalog, revision, capabilities=capabilities)


def text(reply):
    (message,) = reply["result"]["messages"]
    return message["content"]["text"]


class Elicited:
    """A `prompts/get` request and its question, in either style of elicitation."""

    def __init__(self, client, name="review", **arguments):
        self.client, self.params = client, {"name": name, "arguments": arguments}
        (message,) = client.post("prompts/get", self.params, 5)
        self.record(message)

    def record(self, message):
        """Store the reply and its question, if any."""
        self.reply, self.question = message, None
        if message.get("method") == "elicitation/create":
            self.question = message["params"]
        elif message.get("result", {}).get("resultType") == "input_required":
            ((self.key, question),) = message["result"]["inputRequests"].items()
            self.question = question["params"]

    def answer(self, result, **changed):
        """Return the reply to an answer; *changed* replaces fields of a modern retry."""
        if self.reply.get("method"):
            (message,) = self.client.answer(self.reply["id"], result)
        else:
            state = {"requestState": self.reply["result"]["requestState"]}
            retry = {**self.params, "inputResponses": {self.key: result}, **state, **changed}
            (message,) = self.client.post("prompts/get", retry, 6)
        self.record(message)
        return message

    def accept(self, **content):
        """Return the reply after the person has entered *content*."""
        return self.answer({"action": "accept", "content": content})


class TestAsking:
    @pytest.mark.requirement("elicitation/message", "elicitation/form", "elicitation/accepted")
    @pytest.mark.parametrize("revision", ASKING)
    def test_missing_arguments_are_requested(self, revision):
        """
        A form asks for the missing arguments, and the optional ones with their defaults; the prompt is
        rendered with the answers.
        """
        elicited = Elicited(client_of(revision), diff="--- a")

        has_defaults = revision != "2025-06-18"
        mode = {"mode": "form"} if has_defaults else {}
        language = {"type": "string", "enum": ["en", "de"], "default": "en"}
        optional = {"language": language} if has_defaults else {}
        assert elicited.question == {
            **mode,
            "message": "The prompt 'Review a change' needs tone and depth.",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "tone": {"type": "string", "enum": ["calm", "brisk"]},
                    "depth": {"type": "integer", "description": "How deep to look (a whole number)"},
                    **optional,
                },
                "required": ["tone", "depth"],
            },
        }
        assert text(elicited.accept(tone="brisk", depth=3)) == "--- a|brisk|4|en"

    @pytest.mark.parametrize("revision", ASKING)
    def test_complete_arguments_need_no_form(self, revision):
        """With all required arguments, the prompt is rendered without a form."""
        elicited = Elicited(client_of(revision), diff="x", tone="calm", depth="1", language="de")

        assert text(elicited.reply) == "x|calm|2|de"

    @pytest.mark.requirement("elicitation/validated", "mrtr/asked-again")
    @pytest.mark.parametrize("revision", ASKING)
    def test_partial_answer_is_followed_by_another_form(self, revision):
        """A partial answer leads to another question, not to an error."""
        elicited = Elicited(client_of(revision), diff="x")
        elicited.accept(tone="calm")

        assert "depth" in elicited.question["requestedSchema"]["required"]
        assert text(elicited.accept(tone="calm", depth=1)) == "x|calm|2|en"

    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize("blank", ["", None])
    def test_blank_argument_is_missing(self, revision, blank):
        """A blank argument is requested, and the answer replaces it."""
        elicited = Elicited(client_of(revision), diff="x", tone=blank, depth="1")

        assert text(elicited.accept(tone="calm")) == "x|calm|2|en"

    @pytest.mark.requirement("elicitation/validated", "mrtr/unexpected")
    @pytest.mark.parametrize("revision", ASKING)
    def test_unrequested_fields_are_ignored(self, revision):
        """Fields that were not requested do not replace arguments, and unknown fields are ignored."""
        elicited = Elicited(client_of(revision), diff="x")

        reply = elicited.accept(tone="calm", depth=1, diff="other", nonsense=3)

        assert text(reply) == "x|calm|2|en"

    @pytest.mark.parametrize("revision", ASKING)
    def test_optional_arguments_can_be_entered(self, revision):
        """An optional argument that was not given can be entered in a form that shows its default."""
        elicited = Elicited(client_of(revision), diff="x")

        reply = elicited.accept(tone="calm", depth=1, language="de")

        assert text(reply) == ("x|calm|2|en" if revision == "2025-06-18" else "x|calm|2|de")

    @pytest.mark.requirement("elicitation/declined", "elicitation/dismissed", "elicitation/refusals")
    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize("action", ["decline", "cancel"])
    def test_declined_form(self, revision, action):
        """A declined form ends the request with the missing arguments; the same request asks again."""
        elicited = Elicited(client_of(revision), diff="x")
        error = elicited.answer({"action": action})["error"]
        again = Elicited(elicited.client, diff="x")

        assert (error["code"], error["message"]) == (
            -32602,
            "prompt 'review': 'tone' is missing; 'depth' is missing",
        )
        assert text(again.accept(tone="calm", depth=1)) == "x|calm|2|en"

    @pytest.mark.requirement("elicitation/validated")
    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize(
        ("entered", "invalid"),
        [
            ({"tone": "angry", "depth": 1}, ["tone"]),
            ({"tone": "calm", "depth": "many"}, ["depth"]),
            ({"tone": "calm", "depth": 1.5}, ["depth"]),
            ({"tone": "calm", "depth": [1]}, ["depth"]),
            ({"tone": {"a": 1}, "depth": True}, ["tone", "depth"]),
        ],
        ids=str,
    )
    def test_invalid_answer(self, revision, entered, invalid):
        """A value of an invalid choice or type is asked for once more, then rejected like any argument."""
        elicited = Elicited(client_of(revision), diff="x")

        elicited.accept(**entered)
        again = elicited.question
        error = elicited.accept(**entered)["error"]

        assert set(invalid) <= {*again["requestedSchema"]["properties"]}
        assert (error["code"], [item["argument"] for item in error["data"]["errors"]]) == (-32602, invalid)

    @pytest.mark.requirement("elicitation/validated")
    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize("content", [{}, {"content": {}}, {"content": None}], ids=str)
    def test_accepted_form_without_content(self, revision, content):
        """A form that is accepted without content is followed by another question."""
        elicited = Elicited(client_of(revision), diff="x")
        elicited.answer({"action": "accept", **content})

        assert text(elicited.accept(tone="calm", depth=1)) == "x|calm|2|en"

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
    def test_number_of_questions_is_limited(self, revision, content):
        """
        After an incomplete answer the question is asked once more, then the request fails.

        The second question mentions the missing values. The same request asks again.
        """
        elicited = Elicited(client_of(revision), diff="x")
        first = elicited.question["message"]
        elicited.answer({"action": "accept", **content})
        second = elicited.question["message"]
        error = elicited.answer({"action": "accept", **content})["error"]

        assert first == "The prompt 'Review a change' needs tone and depth."
        assert second.startswith("The prompt 'Review a change' needs tone")
        assert (error["code"], error["data"]["errors"][0]["argument"]) == (-32602, "tone")
        assert Elicited(elicited.client, diff="x").question["message"] == first

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
    def test_second_question_can_be_declined_or_invalid(self, revision, answer, code):
        """Declining the second question, or an invalid answer to it, is an error."""
        elicited = Elicited(client_of(revision), diff="x")
        elicited.accept()

        assert elicited.answer(answer)["error"]["code"] == code
        assert elicited.question is None

    @pytest.mark.parametrize("revision", ASKING)
    def test_type_that_is_always_missing(self, revision):
        """A type that treats every value as missing does not cause endless questions."""

        @prompt(elicit=True)
        def never(code: str, many: Annotated[list[int], "Numbers"]):
            return code

        elicited = Elicited(Client(compile(Recipes(prompts=(never,))), revision, capabilities=FORM), "never")
        rounds = 0
        while elicited.question is not None:
            elicited.accept(code="", many="")
            rounds += 1

        assert (rounds <= 2, elicited.reply["error"]["code"]) == (True, -32602)

    @pytest.mark.parametrize("revision", ASKING)
    def test_limits_apply_to_answers(self, revision):
        """The limits on the size and number of arguments include the answer."""
        limits = Limits(argument=1000, arguments=3)
        catalog = compile(Recipes(prompts=(review,)))
        client = Client(catalog, revision, capabilities=FORM, limits=limits)
        long = Elicited(client, tone="calm", depth=1).accept(diff="x" * 1001)["error"]
        many = Elicited(client, diff="x", language="en").accept(tone="calm", depth=1)["error"]

        assert (long["code"], many["code"]) == (-32602, -32602)
        assert long["message"] == "'diff' is 1,003 bytes long as JSON: the limit is 1,000"
        assert many["message"] == "the request has 4 arguments: the limit is 3"

    @pytest.mark.requirement("elicitation/refusals", "mrtr/valid-responses", "mrtr/protocol-errors")
    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize(
        "result", [{}, {"action": "perhaps"}, {"action": "accept", "content": 3}, [], 3, None], ids=str
    )
    def test_malformed_answer(self, revision, result):
        """A malformed answer leads to -32602, and the next request is served."""
        elicited = Elicited(client_of(revision), diff="x")

        assert elicited.answer(result)["error"]["code"] == -32602
        assert "result" in elicited.client.get("plain", diff="x")

    @pytest.mark.parametrize(
        "result",
        [
            b'{"action":"accept","content":{"depth":1e400}}',
            b"[" * 200 + b"]" * 200,
            b"[" + b"0," * 60_000 + b"0]",
        ],
        ids=["a number too large", "too deep", "too many values"],
    )
    def test_unreadable_answer(self, result):
        """An unreadable answer ends the request with the missing arguments, and gets no reply itself."""
        client = client_of(SESSIONS[0])
        number = json.dumps(Elicited(client, diff="x").reply["id"]).encode()

        (reply,) = client.send(b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (number, result))

        assert (reply["id"], reply["error"]["code"]) == (5, -32602)
        assert "'tone' is missing" in reply["error"]["message"]
        assert "result" in client.get("plain", diff="x")

    @pytest.mark.requirement("elicitation/modes", "elicitation/form-implied")
    @pytest.mark.parametrize("revision", MODES)
    @pytest.mark.parametrize("modes", [{}, {"form": {}}, {"form": {}, "url": {}}], ids=str)
    def test_client_with_forms(self, revision, modes):
        """A client that declares the form mode, or no mode at all, is sent a form."""
        elicited = Elicited(client_of(revision, {"elicitation": modes}), diff="x")

        assert elicited.question["mode"] == "form"


class TestClaudeCode:
    """A client that gives each argument one word, drops the rest, and refuses missing arguments itself."""

    def client(self, revision, name="claude-code"):
        """Return a client with forms and this name."""
        catalog = compile(Recipes(prompts=PROMPTS))
        return Client(catalog, revision, capabilities=FORM, name=name)

    def required(self, client):
        """Return whether each argument is required, by the names of its prompt and the argument."""
        reply = client.post("prompts/list", {}, 9)[0]
        return {
            (entry["name"], argument["name"]): argument["required"]
            for entry in reply["result"]["prompts"]
            for argument in entry["arguments"]
        }

    @pytest.mark.parametrize("revision", ASKING)
    def test_arguments_that_a_form_asks_for_are_not_required(self, revision):
        """Arguments that a form asks for are listed as optional; secrets and `elicit=False` stay required."""
        required = self.required(self.client(revision))

        assert {name for name, is_required in required.items() if is_required} == {
            ("login", "token"),
            ("plain", "diff"),
        }

    @pytest.mark.parametrize("revision", ASKING)
    def test_other_clients_see_which_arguments_are_required(self, revision):
        """Other clients see the true `required`, and the arguments in the same order."""
        mine, others = self.required(self.client(revision)), self.required(self.client(revision, "other"))

        assert others["review", "diff"] is others["login", "user_name"] is True
        assert [*mine] == [*others]

    @pytest.mark.parametrize("revision", ASKING)
    def test_given_strings_are_in_the_form(self, revision):
        """
        If a form is shown, it has a field for each string that was given, because words may have been
        dropped.
        """
        elicited = Elicited(self.client(revision), "brief", topic="bees", length="many")

        fields = elicited.question["requestedSchema"]
        assert [*fields["properties"]] == ["topic", "length"]
        assert fields["properties"]["topic"].get("default") == (None if revision == "2025-06-18" else "bees")
        assert text(elicited.accept(topic="bees and trees", length=2)) == "bees and trees|2"

    @pytest.mark.parametrize("revision", ASKING)
    def test_valid_arguments_need_no_form(self, revision):
        """A prompt whose arguments are valid is rendered without a form."""
        assert text(Elicited(self.client(revision), "brief", topic="bees").reply) == "bees|3"


class TestOptionalArguments:
    """With `elicit="always"`, a form asks for optional arguments that were not sent."""

    @pytest.mark.parametrize("revision", MODES)
    def test_form_shows_the_defaults(self, revision):
        """In the form, no field is required, each field shows its default, and secrets have no field."""
        elicited = Elicited(client_of(revision), "standup")

        assert elicited.question["message"] == "Choose since and limit for the prompt 'standup'."
        assert elicited.question["requestedSchema"] == {
            "type": "object",
            "properties": {
                "since": {"type": "string", "description": "default yesterday", "default": "yesterday"},
                "limit": {"type": "integer", "description": "a whole number; default 3", "default": 3},
            },
            "required": [],
        }
        assert text(elicited.accept(since="last week")) == "last week|3"

    @pytest.mark.parametrize("revision", MODES)
    def test_form_has_the_arguments_that_were_not_sent(self, revision):
        """An argument that was sent has no field, and a request with all arguments has no form."""
        elicited = Elicited(client_of(revision), "standup", since="today")

        assert [*elicited.question["requestedSchema"]["properties"]] == ["limit"]
        assert text(elicited.accept()) == "today|3"
        assert text(Elicited(client_of(revision), "standup", since="today", limit="1").reply) == "today|1"

    @pytest.mark.parametrize("revision", MODES)
    def test_invalid_value_is_asked_for_again(self, revision):
        """After an invalid answer, the form has the same fields, and explains the error."""
        elicited = Elicited(client_of(revision), "standup")
        elicited.accept(since="today", limit="many")

        assert "'limit' is 'many', not a whole number." in elicited.question["message"]
        assert text(elicited.accept(since="today", limit=1)) == "today|1"

    @pytest.mark.parametrize("revision", MODES)
    @pytest.mark.parametrize("action", ["decline", "cancel"])
    def test_declined_form_is_an_error(self, revision, action):
        """The prompt of a declined form is not rendered."""
        reply = Elicited(client_of(revision), "standup").answer({"action": action})

        assert reply["error"]["message"] == "prompt 'standup': the form was not filled in"

    @pytest.mark.parametrize(
        ("revision", "capabilities"), [("2025-06-18", FORM), ("2025-11-25", {}), (MODERN, {})]
    )
    def test_without_fields_for_defaults(self, revision, capabilities):
        """A client without forms, or whose forms have no defaults, gets the rendered prompt."""
        assert text(client_of(revision, capabilities).get("standup")) == "yesterday|3"


@pytest.mark.parametrize("revision", ASKING)
def test_invalid_arguments_are_requested(revision):
    """An invalid argument is asked for, with the reason, and an optional one can be left empty."""
    elicited = Elicited(client_of(revision), "brief", topic="bees", length="many")

    assert elicited.question["message"] == (
        "The prompt 'brief' needs length. 'length' is 'many', not a whole number."
    )
    assert [*elicited.question["requestedSchema"]["properties"]] == ["length"]
    assert text(elicited.accept()) == "bees|3"


@pytest.mark.parametrize(("sent", "rendered"), [("$2", "bees|3"), ("7", "bees|7")])
def test_unfilled_placeholders_are_not_given(sent, rendered):
    """
    A placeholder such as ``$2``, which opencode sends for an optional argument, means that it was not given.
    """
    assert text(client_of(MODERN).get("brief", topic="bees", length=sent)) == rendered


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
    def test_client_without_forms(self, revision, capabilities):
        """A client without forms, or with a revision that has none, gets -32602."""
        error = Elicited(client_of(revision, capabilities), diff="x").reply["error"]

        assert (error["code"], len(error["data"]["errors"])) == (-32602, 2)

    @pytest.mark.requirement("elicitation/sensitive", "elicitation/no-url-error")
    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            pytest.param("plain", {}, id="prompt-does-not-ask"),
            pytest.param("login", {"user_name": "a"}, id="secret"),
            pytest.param("login", {}, id="secret-among-others"),
            pytest.param("review", {"diff": "x", "tone": "calm", "depth": "[1]", "x": "y"}, id="unknown"),
            pytest.param("review", {"nonsense": "x"}, id="unknown-too"),
        ],
    )
    def test_arguments_that_are_not_requested(self, revision, name, arguments):
        """Nothing is requested with `elicit=False`, for secrets, or if there are unknown arguments."""
        assert Elicited(client_of(revision), name, **arguments).reply["error"]["code"] == -32602

    @pytest.mark.requirement("elicitation/no-url-error")
    def test_url_elicitation_error_does_not_exist(self):
        """No error has the code that sends the person to a URL."""
        assert -32042 not in {kind.code for kind in JsonRpcError.__subclasses__()}


class TestState:
    def retry(self, **changed):
        """Return the reply to a retry with a valid answer and *changed* fields."""
        elicited = Elicited(client_of(MODERN), diff="x")
        return elicited.answer({"action": "accept", "content": {"tone": "calm", "depth": 1}}, **changed)

    @pytest.mark.requirement("mrtr/state")
    def test_state_can_be_used_twice(self):
        """A state is accepted with its request more than once."""
        elicited = Elicited(client_of(MODERN), diff="x")
        state = elicited.reply["result"]["requestState"]
        answer = {elicited.key: {"action": "accept", "content": {"tone": "calm", "depth": 1}}}
        retry = {**elicited.params, "inputResponses": answer, "requestState": state}

        replies = [elicited.client.ask("prompts/get", retry, number) for number in (7, 8)]

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
    def test_state_is_bound_to_its_request(self, changed):
        """A changed state, and a state of another request, are rejected."""
        error = self.retry(**changed)["error"]

        assert (error["code"], "requestState" in error["message"]) == (-32602, True)

    @pytest.mark.requirement("mrtr/hostile-state")
    @given(st.text(st.characters(codec="utf-8")))
    @example("v1." + "9" * 100_000)
    @example("{}")
    def test_arbitrary_state_is_rejected(self, state):
        """A state that the client made up is rejected, and the next request is served."""
        client = client_of(MODERN)
        params = {"name": "review", "arguments": {"diff": "x"}, "requestState": state}

        assert client.ask("prompts/get", params)["error"]["code"] == -32602
        assert text(client.get("plain", diff="x")) == "x"

    @pytest.mark.requirement("mrtr/hostile-state")
    @pytest.mark.parametrize("state", [0, True, [], {}, ["v1"]], ids=str)
    def test_state_of_another_type_is_rejected(self, state):
        """A state that is not a string is rejected."""
        error = self.retry(requestState=state)["error"]

        assert (error["code"], "requestState" in error["message"]) == (-32602, True)

    @pytest.mark.requirement("mrtr/state-integrity", "mrtr/state-rejected")
    def test_altered_character_is_rejected(self):
        """A state with any one character replaced is rejected, and nothing is asked."""
        elicited = Elicited(client_of(MODERN), diff="x")
        state = elicited.reply["result"]["requestState"]
        changed = [state[:i] + ("1" if state[i] == "0" else "0") + state[i + 1 :] for i in range(len(state))]

        retries = [{**elicited.params, "requestState": each} for each in changed]
        replies = [elicited.client.ask("prompts/get", retry) for retry in retries]

        assert [reply.get("error", {}).get("code") for reply in replies] == [-32602] * len(state)

    @pytest.mark.requirement("mrtr/state-integrity")
    def test_state_of_another_server_is_rejected(self):
        """A state that was signed with another key is rejected."""
        state = Elicited(client_of(MODERN), diff="x").reply["result"]["requestState"]

        assert self.retry(requestState=state)["error"]["message"].startswith("requestState was not issued")

    @pytest.mark.requirement("mrtr/state-expiry")
    @pytest.mark.parametrize(("later", "accepted"), [(899, True), (902, False)])
    def test_state_expires_after_15_minutes(self, later, accepted, monkeypatch):
        """An expired state and its answer are ignored, so the question is asked again."""
        now = [1_790_000_000.0]
        signer = partial(key_ring.RequestStateSigner, clock=lambda: now[0])
        monkeypatch.setattr("promptkit.server.elicitation.RequestStateSigner", signer)
        elicited = Elicited(client_of(MODERN), diff="x")

        now[0] += later
        reply = elicited.accept(tone="calm", depth=1)

        assert reply["result"]["resultType"] == ("complete" if accepted else "input_required")

    def test_unneeded_state_is_checked(self):
        """A prompt without missing arguments rejects an invalid state."""
        params = {"name": "plain", "arguments": {"diff": "x"}, "requestState": "v1.x"}

        assert client_of(MODERN).ask("prompts/get", params)["error"]["code"] == -32602

    @pytest.mark.parametrize(
        "answer", [{"action": "cancel"}, {"action": "accept", "content": {"tone": "calm"}}]
    )
    def test_answers_without_a_state(self, answer):
        """Answers to a question that was never asked are ignored, and the question is asked."""
        params = {"name": "review", "arguments": {"diff": "x"}, "inputResponses": {"arguments": answer}}

        result = client_of(MODERN).ask("prompts/get", params)["result"]

        assert result["resultType"] == "input_required"
        assert "requestState" in result

    def test_answers_without_a_state_from_a_client_without_forms(self):
        """For a client without forms, missing arguments are an error."""
        params = {"name": "review", "inputResponses": {"arguments": {"action": "accept"}}}

        error = client_of(MODERN).ask("prompts/get", params, capabilities={})["error"]

        assert "'diff' is missing" in error["message"]

    @pytest.mark.requirement("mrtr/asked-again")
    @pytest.mark.parametrize("responses", [{}, {"other": {"action": "accept", "content": {}}}], ids=str)
    def test_retry_without_the_answer_asks_again(self, responses):
        """A retry without the answer gets the question again; unknown keys are ignored."""
        assert self.retry(inputResponses=responses)["result"]["resultType"] == "input_required"

    @pytest.mark.parametrize(
        "changed", [{}, {"inputResponses": {}}, {"inputResponses": {"other": 1}}], ids=str
    )
    def test_client_that_never_answers(self, changed):
        """The state counts the questions, so repeated retries without an answer end in an error."""
        elicited = Elicited(client_of(MODERN), diff="x")
        states = []
        while elicited.question is not None:
            states.append(elicited.reply["result"]["requestState"])
            retry = {**elicited.params, "requestState": states[-1], **changed}
            elicited.record(elicited.client.ask("prompts/get", retry))

        assert (len(states), elicited.reply["error"]["code"]) == (2, -32602)
        assert "'tone' is missing" in elicited.reply["error"]["message"]

    @pytest.mark.parametrize("count", ["0", "1", "3", "10", "-1", "01", " 2", "٢", ""])
    def test_changed_count_is_rejected(self, count):
        """A client cannot change the number of questions in the state."""
        elicited = Elicited(client_of(MODERN), diff="x")
        elicited.accept()
        _, _, token = elicited.reply["result"]["requestState"].partition(".")

        for state in (f"{count}.{token}", token):
            error = elicited.client.ask("prompts/get", {**elicited.params, "requestState": state})["error"]
            assert (error["code"], "requestState" in error["message"]) == (-32602, True)

    @pytest.mark.requirement("mrtr/unexpected")
    def test_unexpected_answers_are_ignored(self):
        """Unexpected answers next to the expected one are ignored, whatever they are."""
        accepted = {"action": "accept", "content": {"tone": "calm", "depth": 1, "x": [1]}, "more": {}}
        answers = {"arguments": accepted, "other": {"action": "perhaps"}, "": 3}

        assert text(self.retry(inputResponses=answers)) == "x|calm|2|en"

    @pytest.mark.requirement("mrtr/valid-responses", "mrtr/protocol-errors")
    @pytest.mark.parametrize("answers", [[], [{}], "accept", 3, True], ids=str)
    def test_answers_that_are_not_an_object(self, answers):
        """Answers that are not an object are an error, and no question is asked."""
        error = self.retry(inputResponses=answers)["error"]

        assert (error["code"], "inputResponses" in error["message"]) == (-32602, True)

    def test_retry_without_the_capability(self):
        """If the retry lacks the capability, the error names the capability."""
        elicited = Elicited(client_of(MODERN), diff="x")
        retry = {**elicited.params, "requestState": elicited.reply["result"]["requestState"]}

        error = elicited.client.ask("prompts/get", retry, capabilities={})["error"]

        assert (error["code"], error["data"]) == (
            -32021,
            {"requiredCapabilities": {"elicitation": {"form": {}}}},
        )

    def test_sessions_ignore_state(self):
        """In a session, `requestState` and `inputResponses` are ignored."""
        params = {"name": "plain", "arguments": {"diff": "x"}, "requestState": "v1.x", "inputResponses": {}}

        assert text(client_of("2025-11-25").ask("prompts/get", params)) == "x"

    @pytest.mark.requirement("mrtr/undeclared")
    def test_capabilities_are_per_request(self):
        """The capabilities of one request are not remembered for the next."""
        elicited = Elicited(client_of(MODERN), diff="x")

        assert elicited.client.ask("prompts/get", elicited.params, capabilities={})["error"]["code"] == -32602


class TestSessions:
    def test_other_requests_are_served_before_the_answer(self):
        """Only the request that needs the answer waits for it, and its id stays in use."""
        elicited = Elicited(client_of("2025-06-18"), diff="x")
        client = elicited.client

        assert text(client.get("plain", diff="y")) == "y"
        assert client.ask("prompts/get", elicited.params, 5)["error"]["code"] == -32600
        assert text(elicited.accept(tone="calm", depth=1)) == "x|calm|2|en"
        assert "result" in client.ask("prompts/list", {}, 5)

    def test_cancelled_request_cancels_its_question(self):
        """When a request is cancelled, its question is cancelled as well; a later answer is ignored."""
        elicited = Elicited(client_of("2025-06-18"), diff="x")
        number = elicited.reply["id"]

        messages = elicited.client.send(line(notification("notifications/cancelled", {"requestId": 5})))

        assert messages == [notification("notifications/cancelled", {"requestId": number})]
        assert elicited.client.answer(number, {"action": "cancel"}) == []
        assert "result" in elicited.client.ask("prompts/list", {}, 5)

    def test_error_as_an_answer(self):
        """If the client answers with an error, the request fails with the missing arguments."""
        elicited = Elicited(client_of("2025-11-25"), diff="x")
        refusal = {"jsonrpc": "2.0", "id": elicited.reply["id"], "error": {"code": -1, "message": "no"}}

        (reply,) = elicited.client.send(line(refusal))

        assert (reply["id"], reply["error"]["code"]) == (5, -32602)

    def test_waiting_request_is_answered_at_shutdown(self):
        """At shutdown, a request that waits for an answer gets its error, and its question is cancelled."""
        elicited = Elicited(client_of("2025-11-25"), diff="x")
        elicited.client.sent.clear()

        elicited.client.server.close(0)

        reply, withdrawn = elicited.client.replies()
        assert (reply["id"], reply["error"]["code"]) == (5, -32602)
        assert withdrawn == notification("notifications/cancelled", {"requestId": elicited.reply["id"]})


class TestRounds:
    @pytest.mark.requirement(
        "mrtr/instead-of-requests", "mrtr/keys", "mrtr/kinds", "mrtr/state", "mrtr/something"
    )
    def test_question_in_a_result(self):
        """A modern client gets one question under one key, with a state; the question has no request id."""
        reply = client_of(MODERN).get("review", diff="x")

        ((key, question),) = reply["result"]["inputRequests"].items()
        validate({key: question}, MODERN, "InputRequests")
        assert (set(reply), reply["id"]) == ({"jsonrpc", "id", "result"}, 1)
        assert (set(question), question["method"]) == ({"method", "params"}, "elicitation/create")
        assert question["params"]["requestedSchema"]["required"] == ["tone", "depth"]
        assert isinstance(reply["result"]["requestState"], str)

    @pytest.mark.requirement("mrtr/instead-of-requests", "mrtr/something")
    def test_server_sends_no_requests(self):
        """The server sends no requests, so incomplete answers lead to results with a question and a state."""
        elicited = Elicited(client_of(MODERN), diff="x")
        content = [{"depth": 1}, {"tone": "calm", "depth": 1}]
        replies = [elicited.reply, *[elicited.accept(**entered) for entered in content]]
        elicited.client.sent.clear()
        elicited.client.server.close(0)

        kinds = [reply["result"]["resultType"] for reply in replies]
        questions = [reply["result"] for reply in replies[:-1]]
        assert kinds == ["input_required"] * 2 + ["complete"]
        assert [bool(each["inputRequests"] and each["requestState"]) for each in questions] == [True] * 2
        assert [reply for reply in replies if "method" in reply] + elicited.client.replies() == []

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
    def test_only_prompts_ask(self, method, params):
        """The results of other methods are complete, even if they are about a prompt that asks."""
        result = client_of(MODERN).ask(method, params)["result"]

        assert (result["resultType"], "inputRequests" in result) == ("complete", False)

    @pytest.mark.requirement("mrtr/only-where-allowed")
    def test_stream_does_not_ask(self):
        """The messages that open and end a stream of notifications contain no question."""
        client = client_of(MODERN)
        (opened,) = client.post("subscriptions/listen", {"notifications": {"promptsListChanged": True}})
        client.sent.clear()
        client.server.close(0)

        assert opened["method"] == "notifications/subscriptions/acknowledged"
        assert client.replies()[0]["result"]["resultType"] == "complete"

    @pytest.mark.requirement("elicitation/may-fail", "mrtr/no-retry")
    def test_client_that_never_retries(self):
        """A question without a retry leaves no thread, no id in use and no message at shutdown."""
        client = client_of(MODERN)
        threads = set(threading.enumerate())  # threads of other tests can end meanwhile
        for _ in range(20):
            assert client.get("review")["result"]["resultType"] == "input_required"

        assert set(threading.enumerate()) <= threads
        assert text(client.get("review", diff="x", tone="calm", depth="1")) == "x|calm|2|en"
        client.sent.clear()
        client.server.close(0)
        assert client.replies() == []


def reachable_text(thing):
    """Return all text that is reachable from *thing*, except through modules."""
    visited, todo = {}, [thing]
    while todo:
        current = todo.pop()
        if id(current) in visited or isinstance(current, type | ModuleType):
            continue
        visited[id(current)] = current
        if isinstance(current, msgspec.Struct):
            todo += msgspec.structs.astuple(current)
        elif isinstance(current, FunctionType):
            todo += [cell.cell_contents for cell in current.__closure__ or ()]
        elif not isinstance(current, BuiltinFunctionType):  # the client's list of received messages
            todo += gc.get_referents(current)
    return " ".join(
        value if isinstance(value, str) else value.decode(errors="replace")
        for value in visited.values()
        if isinstance(value, str | bytes)
    )


class TestMemory:
    @pytest.mark.requirement("elicitation/stored-state", "elicitation/may-fail", "mrtr/no-retry")
    def test_modern_request_is_not_stored(self):
        """While a modern client's question is unanswered, the server stores nothing of the request."""
        elicited = Elicited(client_of(MODERN), diff="given by the client")
        server_text = reachable_text(elicited.client.server)

        assert ("How deep to look" in server_text, "given by the client" in server_text) == (True, False)

    @pytest.mark.requirement("elicitation/stored-state")
    @pytest.mark.parametrize("revision", ASKING)
    @pytest.mark.parametrize("action", ["accept", "decline"])
    def test_answered_request_is_not_stored(self, revision, action):
        """
        Arguments and answers are freed once the request is answered; until then, only sessions store them.
        """
        elicited = Elicited(client_of(revision), diff="given by the client")
        before = "given by the client" in reachable_text(elicited.client.server)
        entered = {"tone": "entered by the person", "depth": 1}
        elicited.answer({"action": action, "content": entered})
        if elicited.question is not None:  # the tone is invalid
            elicited.answer({"action": "decline"})
        server_text = reachable_text(elicited.client.server)

        assert before is (revision in SESSIONS)
        assert ("given by" in server_text, "entered by" in server_text) == (False, False)


def run_concurrently(*calls):
    """Call each function on a separate thread, all at the same moment."""
    ready = threading.Barrier(len(calls))
    threads = [threading.Thread(target=lambda call=call: (ready.wait(), call())) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class TestTimeouts:
    def messages_after(self, client, seconds):
        """Return the messages that are sent when this many seconds have passed."""
        client.sent.clear()
        client.server._dispatcher._expire_requests(time.monotonic() + seconds)
        return client.replies()

    def next_messages(self, client):
        """Return the next messages of a server that answers on background threads."""
        deadline = time.monotonic() + 20
        while not client.sent and time.monotonic() < deadline:
            time.sleep(0.005)
        return client.replies()

    @pytest.mark.requirement("lifecycle/timeouts/sent")
    @pytest.mark.parametrize("revision", SESSIONS)
    def test_questions_time_out(self, revision):
        """A question times out after 15 minutes."""
        client = Elicited(client_of(revision), diff="x").client

        assert (self.messages_after(client, 899), len(self.messages_after(client, 901))) == ([], 2)

    @pytest.mark.requirement("lifecycle/timeouts/sent", "lifecycle/timeouts/cancelled")
    @pytest.mark.parametrize("revision", SESSIONS)
    def test_unanswered_question(self, revision):
        """After the timeout, the request fails with the missing arguments, and its question is cancelled."""
        elicited = Elicited(client_of(revision), diff="x")

        reply, withdrawn = self.messages_after(elicited.client, 901)

        assert withdrawn == notification("notifications/cancelled", {"requestId": elicited.reply["id"]})
        assert (reply["id"], reply["error"]["code"], reply["error"]["message"]) == (
            5,
            -32602,
            "prompt 'review': 'tone' is missing; 'depth' is missing",
        )

    @pytest.mark.parametrize("revision", SESSIONS)
    def test_messages_after_the_timeout_are_ignored(self, revision):
        """After the timeout, an answer and a cancellation are ignored, and the id is free."""
        elicited = Elicited(client_of(revision), diff="x")
        client = elicited.client
        self.messages_after(client, 901)

        assert client.answer(elicited.reply["id"], {"action": "cancel"}) == []
        assert client.send(line(notification("notifications/cancelled", {"requestId": 5}))) == []
        assert "result" in client.ask("prompts/list", {}, 5)
        assert self.messages_after(client, 901) == []

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
    def test_completed_question_does_not_time_out(self, revision, message):
        """An answered or cancelled question does not time out."""
        client = Elicited(client_of(revision), diff="x").client
        client.send(line({"jsonrpc": "2.0", **message}))

        assert self.messages_after(client, 901) == []

    @pytest.mark.parametrize(
        "message",
        [
            {"id": "promptkit-1", "result": {"action": "accept", "content": {"tone": "calm", "depth": 1}}},
            {"method": "notifications/cancelled", "params": {"requestId": 5}},
        ],
        ids=["answer", "cancelled"],
    )
    def test_timeout_and_message_at_the_same_time(self, message):
        """Whichever thread comes first, the request is answered once, or at most once if it is cancelled."""
        for _ in range(60):
            client = Elicited(client_of("2025-11-25"), diff="x").client
            client.sent.clear()
            received = partial(client.server.receive_data, line({"jsonrpc": "2.0", **message}))
            run_concurrently(
                partial(client.server._dispatcher._expire_requests, time.monotonic() + 901), received
            )

            replies = [reply for reply in client.replies() if "method" not in reply]
            assert len(replies) == 1 if "result" in message else len(replies) <= 1
            assert "result" in client.ask("prompts/list", {}, 5)

    @pytest.mark.parametrize("revision", SESSIONS)
    def test_answer_while_the_error_is_sent(self, revision):
        """An answer that arrives while the timeout error is being sent is ignored."""
        elicited = Elicited(client_of(revision), diff="x")
        server, result = elicited.client.server, {"action": "accept", "content": {"tone": "calm", "depth": 1}}
        late = line({"jsonrpc": "2.0", "id": elicited.reply["id"], "result": result})

        def answer_at_once(data):
            elicited.client.sent.append(data)
            if b"error" in data:
                server.receive_data(late)

        server._dispatcher._send = answer_at_once
        replies = [
            message for message in self.messages_after(elicited.client, 901) if "method" not in message
        ]

        assert [(reply["id"], "error" in reply) for reply in replies] == [(5, True)]

    @pytest.mark.requirement("lifecycle/timeouts/sent", "lifecycle/timeouts/cancelled")
    @pytest.mark.parametrize("revision", SESSIONS)
    def test_question_times_out_without_further_input(self, revision, monkeypatch):
        """A question times out without further input; it is not asked if its deadline has already passed."""
        monkeypatch.setattr(elicitation, "_ANSWER_WITHIN_S", 0.01)
        output = Queue()
        server = Server(compile(Recipes(prompts=(review,))), output.put)
        opening = [initialize(revision, capabilities=FORM), notification("notifications/initialized")]
        server.receive_data(b"".join(map(line, opening)))
        output.get(timeout=10)

        server.receive_data(line(request(5, "prompts/get", {"name": "review"})))

        expected = ["elicitation/create", 5, "notifications/cancelled"]
        sent = []
        while sent not in ([5], expected):
            for text in output.get(timeout=50).splitlines():
                message = json.loads(text)
                sent.append(message.get("method", message.get("id")))
        assert output.empty()

    @pytest.mark.parametrize("revision", SESSIONS)
    def test_prompt_timeout_starts_after_the_answer(self, revision):
        """Once the person has answered, the prompt has its whole time limit, but no more time."""
        release = threading.Event()

        @prompt(elicit=True)
        def hangs(name: str):
            release.wait(50)
            return name

        catalog = compile(Recipes(prompts=(hangs,)))
        limits = Limits(timeout=0.5)
        client = Client(catalog, revision, capabilities=FORM, threads=True, limits=limits)
        client.post("prompts/get", {"name": "hangs"}, 5)
        (elicited,) = self.next_messages(client)
        time.sleep(0.7)
        client.answer(elicited["id"], {"action": "accept", "content": {"name": "Ada"}})
        (reply,) = self.next_messages(client)
        release.set()

        assert "took longer than its limit of 0.5 s" in reply["error"]["message"]

    @pytest.mark.parametrize("revision", SESSIONS)
    @pytest.mark.parametrize("moment", ["held", "sent"])
    def test_timeout_while_the_question_is_sent(self, revision, moment, monkeypatch):
        """A request that times out while its question is sent gets one reply; the question is cancelled."""
        client = client_of(revision)
        server = client.server
        elicitation, dispatcher = server._elicitation, server._dispatcher
        owner, name = {
            "held": (dispatcher, "hold"),
            "sent": (elicitation, "_send"),
        }[moment]
        original = getattr(owner, name)
        expirations = []

        def call_and_expire(*args):
            result = original(*args)
            if not expirations:
                later = (time.monotonic() + 901,)
                expirations.append(
                    threading.Thread(target=dispatcher._expire_requests, args=later, daemon=True)
                )
                expirations[0].start()
                expirations[0].join(0.1)  # it can block until this call returns
            return result

        monkeypatch.setattr(owner, name, call_and_expire)
        client.send(line(request(5, "prompts/get", {"name": "review", "arguments": {"diff": "x"}})))
        expirations[0].join(20)

        sent = [message.get("method", message.get("id")) for message in client.replies()]
        questions = sent.count("elicitation/create")
        assert (sent.count(5), sent.count("notifications/cancelled"), len(sent)) == (
            1,
            questions,
            1 + 2 * questions,
        )
        assert not questions or sent.index("elicitation/create") < sent.index("notifications/cancelled")
        assert elicitation._open == {}
