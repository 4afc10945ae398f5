"""Scopes over HTTP: who could get them is told which, and all others are told of nothing."""

import asyncio
import json

import pytest

from promptkit.asgi import Principal, VerifierUnavailableError, app
from tests.posting import answer_to, post
from tests.scoped_recipes import RECIPES
from tests.wire import initialize, modern, request

RESOURCE = "https://prompts.example/mcp"
ISSUER = "https://issuer.example"
METADATA = "https://prompts.example/.well-known/oauth-protected-resource/mcp"


class Named:
    """Takes tokens that say who bears them: a subject, and scopes."""

    def __init__(self):
        self.revoked = set()
        self.narrowed = set()
        self.unknown = set()

    def verify(self, token):
        """Return who bears a token."""
        subject, *scopes = token.split(".")
        if token in self.revoked:
            return None
        if token in self.unknown:
            raise VerifierUnavailableError
        return Principal(subject, scopes[: -1 if token in self.narrowed else None])


@pytest.fixture
def made(recipes):
    """A function that makes an application, which ends with the test."""
    apps = []

    def make(issuer=ISSUER, **options):
        given = {"verifier": Named(), "issuer": issuer, "public_url": RESOURCE, "watch": False}
        apps.append(app(recipes(greet=RECIPES), **{**given, **options}))
        return apps[-1]

    yield make
    for one in apps:
        one.close(1)


def ask(application, token, method, params=None, **fields):
    """Send a modern request."""
    return answer_to(application, modern(7, method, params), authorization=f"Bearer {token}", **fields)


OPERATIONS = [
    pytest.param("prompts/get", {"name": "rotate"}, "admin team", id="get"),
    pytest.param("tools/call", {"name": "rotate"}, "admin team", id="call"),
    pytest.param("resources/read", {"uri": "docs://handbook"}, "admin", id="read"),
    pytest.param("resources/read", {"uri": "notes://monday"}, "team", id="read by a template"),
    pytest.param(
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "rotate"}, "argument": {"name": "key", "value": ""}},
        "admin team",
        id="complete",
    ),
    pytest.param(
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "notes://{day}"}, "argument": {"name": "day", "value": ""}},
        "team",
        id="complete a template",
    ),
]


class TestStepUp:
    @pytest.mark.parametrize(("method", "params", "scopes"), OPERATIONS)
    def test_who_can_get_scopes_is_told_which(self, made, method, params, scopes):
        """
        403 with all scopes of the operation, and where to get them; then it works.
        """
        application = made(tools=True, required_scopes=["base"])
        refused = ask(application, "ada.base", method, params)

        assert refused.status == 403
        said = f"this token lacks a scope: needed are base {scopes}"
        assert refused.header("www-authenticate") == (
            f'Bearer realm="mcp", error="insufficient_scope", error_description="{said}", '
            f'scope="base {scopes}", resource_metadata="{METADATA}"'
        )
        assert refused.json["error"]["message"] == said
        assert refused.json["id"] == 7
        assert refused.header("cache-control") == "no-store"
        granted = "ada.base." + scopes.replace(" ", ".")
        assert ask(application, granted, method, params).status == 200

    def test_who_has_one_of_two_is_told_both(self, made):
        """
        A client that asks for what the challenge names does not lose what it had.
        """
        refused = ask(made(), "ada.team", "prompts/get", {"name": "rotate"})

        assert 'scope="admin team"' in refused.header("www-authenticate")

    def test_older_clients(self, made):
        """
        Whatever the revision.
        """
        message = request(1, "prompts/get", {"name": "rotate"})
        answer = answer_to(made(), message, authorization="Bearer ada", mcp_protocol_version="2025-11-25")

        assert answer.status == 403

    def test_a_batch(self, made):
        """
        One that holds anything that needs scopes is refused with all of them.
        """
        batch = [
            request(1, "prompts/get", {"name": "greet"}),
            request(2, "prompts/get", {"name": "people"}),
            request(3, "resources/read", {"uri": "notes://monday"}),
        ]
        answer = answer_to(made(), batch, authorization="Bearer ada", mcp_protocol_version="2025-03-26")

        assert answer.status == 403
        assert 'scope="admin team"' in answer.header("www-authenticate")
        assert "id" not in answer.json

    @pytest.mark.parametrize(
        ("method", "params", "code"),
        [
            ("prompts/get", {"name": "rotates"}, -32602),
            ("tools/call", {"name": "people"}, -32602),
            ("resources/read", {"uri": "docs://handbooks"}, -32602),
            ("prompts/list", {"cursor": "x-1"}, -32602),
        ],
    )
    def test_what_there_is_not(self, made, method, params, code):
        """
        No scope helps with what does not exist, and nothing is hinted at.
        """
        answer = ask(made(tools=True), "ada", method, params)

        assert (answer.status, answer.code) == (200, code)
        assert "did you mean" not in answer.json["error"]["message"]

    @pytest.mark.parametrize("token", ["ada", "ada.team"])
    def test_the_tool_that_gets_prompts(self, made, token):
        """
        The prompt that it is to get counts.
        """
        application = made(tools="search")
        params = {"name": "get_prompt", "arguments": {"name": "rotate"}}

        assert ask(application, token, "tools/call", params).status == 403
        assert ask(application, f"{token}.admin.team", "tools/call", params).status == 200
        for name in ("people", "unknown", 5, None):
            params = {"name": "get_prompt", "arguments": {"name": name}}
            assert ask(application, token, "tools/call", params).status == 200

    def test_lists_are_no_operation(self, made):
        """
        A list shows what its caller may see, and challenges nobody.
        """
        application = made()
        names = {
            token: [one["name"] for one in ask(application, token, "prompts/list").json["result"]["prompts"]]
            for token in ("ada", "bob.admin", "eve.admin.team")
        }

        assert names == {
            "ada": ["greet"],
            "bob.admin": ["greet", "people"],
            "eve.admin.team": ["greet", "people", "rotate"],
        }

    def test_the_audit_knows_of_it(self, recipes, tmp_path):
        """
        Who asked for what, and that it was refused.
        """
        from promptkit.compiler.compilation import compile
        from promptkit.transports.auth.authorizer import protect
        from promptkit.transports.http.application import Application
        from promptkit.transports.http.settings import Settings

        authorizer = protect(verifier=Named(), issuer=ISSUER, resource=RESOURCE)
        settings = Settings(authorizer=authorizer, audit=str(tmp_path / "audit"), hosts=["prompts.example"])
        application = Application(compile(str(recipes(greet=RECIPES))), settings)
        ask(application, "ada", "prompts/get", {"name": "rotate"})
        ask(application, "bob.admin.team", "prompts/get", {"name": "rotate"})
        application.close(1)
        lines = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]

        found = [(one["subject"], one["method"], one["outcome"]) for one in lines]
        assert found == [("ada", "prompts/get", "error"), ("bob", "prompts/get", "ok")]


class TestWithoutStepUp:
    @pytest.mark.parametrize(("method", "params", "scopes"), OPERATIONS)
    def test_who_cannot_get_scopes_is_told_of_nothing(self, made, method, params, scopes):
        """
        Where no issuer is named, it is unknown, as what there is not.
        """
        application = made(issuer=None, tools=True)
        refused = ask(application, "ada", method, params)

        assert refused.status == 200
        assert "unknown" in refused.body.decode()
        assert scopes not in refused.body.decode()
        assert ask(application, "ada." + scopes.replace(" ", "."), method, params).status == 200

    def test_without_tokens_the_process_has_scopes(self, made):
        """
        All callers have the same: none, unless it is said.
        """
        plain = {"verifier": None, "issuer": None}
        message = modern(1, "prompts/get", {"name": "people"})

        assert answer_to(made(**plain), message).code == -32602
        assert answer_to(made(**plain, scopes=["admin"]), message).code is None
        with pytest.raises(ValueError, match="is not a scope"):
            made(**plain, scopes=["a\\b"])

    def test_scopes_of_the_process_are_not_for_tokens(self, made):
        """
        Both at once are a mistake.
        """
        with pytest.raises(ValueError, match="tokens say it"):
            made(scopes=["admin"])


class TestReplies:
    def test_nothing_is_stored(self, made):
        """
        Where tokens are asked for, no reply is kept by anybody on the way. Elsewhere nothing is said of it.
        """
        with_tokens, without = made(), made(verifier=None, issuer=None)
        for message in (modern(1, "prompts/list"), modern(1, "server/discover"), initialize("2025-11-25")):
            answer = answer_to(with_tokens, message, authorization="Bearer ada")
            assert answer.header("cache-control") == "no-store"
            assert answer_to(without, message).header("cache-control") is None

    @pytest.mark.parametrize("held", ["team", "admin"])
    def test_sessions(self, made, held):
        """
        A session is of no use to another subject. With another token of the same subject, it allows what that
        token allows.
        """
        application = made()
        opened = answer_to(application, initialize("2025-11-25"), authorization=f"Bearer ada.{held}")
        session = opened.header("mcp-session-id")

        def listed(token):
            fields = {"authorization": f"Bearer {token}", "mcp_session_id": session}
            return answer_to(application, request(1, "resources/list"), **fields)

        assert listed(f"bob.{held}").status == 404
        assert listed("ada").json["result"]["resources"] == []
        assert len(listed("ada.admin").json["result"]["resources"]) == 1


class TestStreams:
    @pytest.mark.parametrize(
        ("change", "goes_on"),
        [("nothing", True), ("revoked", False), ("narrowed", False), ("unknown", False)],
    )
    def test_a_stream_ends_with_its_token(self, made, monkeypatch, change, goes_on):
        """
        A token is looked at again each time that a comment keeps a stream alive: one that is no longer valid,
        allows something else, or of which nobody can tell, as it does not say when it expires, ends it.
        """
        verifier = Named()
        application = made(verifier=verifier)
        monkeypatch.setattr(application, "comment_interval", 0.05)
        listen = modern("s", "subscriptions/listen", {"notifications": {"promptsListChanged": True}})

        async def run():
            caller = post(application, listen, authorization="Bearer ada.admin")
            await caller.until(lambda answer: b"acknowledged" in answer.body)
            if change != "nothing":
                getattr(verifier, change).add("ada.admin")
            comments = caller.answer.body.count(b":\n\n")
            if goes_on:
                answer = await caller.until(lambda answer: answer.body.count(b":\n\n") > comments + 1)
                assert not answer.complete
                caller.gone.set()
            answer = await caller.result()
            return answer.complete

        assert asyncio.run(run()) is not goes_on
