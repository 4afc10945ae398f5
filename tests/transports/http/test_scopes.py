"""Scopes over HTTP: step-up challenges where an issuer is configured, and hidden items elsewhere."""

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


class ScopedVerifier:
    """A verifier of tokens that consist of a subject and scopes."""

    def __init__(self):
        self.revoked = set()
        self.narrowed = set()
        self.unknown = set()

    def verify(self, token):
        """Return the principal of *token*."""
        subject, *scopes = token.split(".")
        if token in self.revoked:
            return None
        if token in self.unknown:
            raise VerifierUnavailableError
        return Principal(subject, scopes[: -1 if token in self.narrowed else None])


@pytest.fixture
def make_app(recipes):
    """A function that creates an application, which is closed after the test."""
    apps = []

    def create(issuer=ISSUER, **options):
        defaults = {"verifier": ScopedVerifier(), "issuer": issuer, "public_url": RESOURCE, "watch": False}
        apps.append(app(recipes(greet=RECIPES), **{**defaults, **options}))
        return apps[-1]

    yield create
    for application in apps:
        application.close(1)


def ask(application, token, method, params=None, **fields):
    """Send a request of the modern era, and return the response."""
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
    def test_challenge_names_the_missing_scopes(self, make_app, method, params, scopes):
        """
        The challenge is a 403 with all scopes of the operation and the metadata; with these scopes, the
        request succeeds.
        """
        application = make_app(tools=True, required_scopes=["base"])
        rejected = ask(application, "ada.base", method, params)

        assert rejected.status == 403
        description = f"this token lacks a required scope: it needs base {scopes}"
        assert rejected.header("www-authenticate") == (
            f'Bearer realm="mcp", error="insufficient_scope", error_description="{description}", '
            f'scope="base {scopes}", resource_metadata="{METADATA}"'
        )
        assert rejected.json["error"]["message"] == description
        assert rejected.json["id"] == 7
        assert rejected.header("cache-control") == "no-store"
        granted = "ada.base." + scopes.replace(" ", ".")
        assert ask(application, granted, method, params).status == 200

    def test_challenge_includes_granted_scopes(self, make_app):
        """A client that requests the scopes of the challenge keeps the scopes that it already has."""
        rejected = ask(make_app(), "ada.team", "prompts/get", {"name": "rotate"})

        assert 'scope="admin team"' in rejected.header("www-authenticate")

    def test_challenge_in_older_revisions(self, make_app):
        """Requests of the older eras are challenged as well."""
        message = request(1, "prompts/get", {"name": "rotate"})
        answer = answer_to(make_app(), message, authorization="Bearer ada", mcp_protocol_version="2025-11-25")

        assert answer.status == 403

    def test_batch_needs_the_scopes_of_all_requests(self, make_app):
        """A batch with an operation that needs scopes is rejected with all of them."""
        batch = [
            request(1, "prompts/get", {"name": "greet"}),
            request(2, "prompts/get", {"name": "people"}),
            request(3, "resources/read", {"uri": "notes://monday"}),
        ]
        answer = answer_to(make_app(), batch, authorization="Bearer ada", mcp_protocol_version="2025-03-26")

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
    def test_unknown_items_are_not_challenged(self, make_app, method, params, code):
        """An unknown item leads to an error without a scope or a hint."""
        answer = ask(make_app(tools=True), "ada", method, params)

        assert (answer.status, answer.code) == (200, code)
        assert "did you mean" not in answer.json["error"]["message"]

    @pytest.mark.parametrize("token", ["ada", "ada.team"])
    def test_search_tool_needs_the_scopes_of_the_prompt(self, make_app, token):
        """A call of the tool that gets a prompt needs the scopes of that prompt."""
        application = make_app(tools="search")
        params = {"name": "get_prompt", "arguments": {"name": "rotate"}}

        assert ask(application, token, "tools/call", params).status == 403
        assert ask(application, f"{token}.admin.team", "tools/call", params).status == 200
        for name in ("people", "unknown", 5, None):
            params = {"name": "get_prompt", "arguments": {"name": name}}
            assert ask(application, token, "tools/call", params).status == 200

    def test_lists_are_not_challenged(self, make_app):
        """A list shows the items that its caller can access."""
        application = make_app()
        names = {
            token: [
                listed["name"] for listed in ask(application, token, "prompts/list").json["result"]["prompts"]
            ]
            for token in ("ada", "bob.admin", "eve.admin.team")
        }

        assert names == {
            "ada": ["greet"],
            "bob.admin": ["greet", "people"],
            "eve.admin.team": ["greet", "people", "rotate"],
        }

    def test_audit_records_the_rejection(self, recipes, tmp_path):
        """The audit records the subject, the method and the outcome of a rejected request."""
        from promptkit.compiler.compilation import compile
        from promptkit.transports.auth.authorizer import create_authorizer
        from promptkit.transports.http.application import Application
        from promptkit.transports.http.settings import Settings

        authorizer = create_authorizer(verifier=ScopedVerifier(), issuer=ISSUER, resource=RESOURCE)
        settings = Settings(authorizer=authorizer, audit=str(tmp_path / "audit"), hosts=["prompts.example"])
        application = Application(compile(str(recipes(greet=RECIPES))), settings)
        ask(application, "ada", "prompts/get", {"name": "rotate"})
        ask(application, "bob.admin.team", "prompts/get", {"name": "rotate"})
        application.close(1)
        lines = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]

        outcomes = [(line["subject"], line["method"], line["outcome"]) for line in lines]
        assert outcomes == [("ada", "prompts/get", "error"), ("bob", "prompts/get", "ok")]


class TestWithoutStepUp:
    @pytest.mark.parametrize(("method", "params", "scopes"), OPERATIONS)
    def test_items_are_hidden_without_an_issuer(self, make_app, method, params, scopes):
        """Without an issuer, an item with scopes is reported as unknown."""
        application = make_app(issuer=None, tools=True)
        rejected = ask(application, "ada", method, params)

        assert rejected.status == 200
        assert "unknown" in rejected.body.decode()
        assert scopes not in rejected.body.decode()
        assert ask(application, "ada." + scopes.replace(" ", "."), method, params).status == 200

    def test_scopes_of_the_process(self, make_app):
        """Without tokens, all callers have the configured scopes, by default none."""
        anonymous = {"verifier": None, "issuer": None}
        message = modern(1, "prompts/get", {"name": "people"})

        assert answer_to(make_app(**anonymous), message).code == -32602
        assert answer_to(make_app(**anonymous, scopes=["admin"]), message).code is None
        with pytest.raises(ValueError, match="is not a scope"):
            make_app(**anonymous, scopes=["a\\b"])

    def test_process_scopes_conflict_with_tokens(self, make_app):
        """Scopes of the process cannot be combined with tokens."""
        with pytest.raises(ValueError, match="tokens have their own scopes"):
            make_app(scopes=["admin"])


class TestReplies:
    def test_replies_to_tokens_are_not_stored(self, make_app):
        """Replies of a server with authorization forbid caching; other servers send no such header."""
        with_tokens, without_tokens = make_app(), make_app(verifier=None, issuer=None)
        for message in (modern(1, "prompts/list"), modern(1, "server/discover"), initialize("2025-11-25")):
            answer = answer_to(with_tokens, message, authorization="Bearer ada")
            assert answer.header("cache-control") == "no-store"
            assert answer_to(without_tokens, message).header("cache-control") is None

    @pytest.mark.parametrize("scope", ["team", "admin"])
    def test_session_has_the_scopes_of_each_token(self, make_app, scope):
        """
        A session is invalid for another subject; for the same subject, the scopes of the current token apply.
        """
        application = make_app()
        opened = answer_to(application, initialize("2025-11-25"), authorization=f"Bearer ada.{scope}")
        session = opened.header("mcp-session-id")

        def list_resources(token):
            fields = {"authorization": f"Bearer {token}", "mcp_session_id": session}
            return answer_to(application, request(1, "resources/list"), **fields)

        assert list_resources(f"bob.{scope}").status == 404
        assert list_resources("ada").json["result"]["resources"] == []
        assert len(list_resources("ada.admin").json["result"]["resources"]) == 1


class TestStreams:
    @pytest.mark.parametrize(
        ("change", "stays_open"),
        [("nothing", True), ("revoked", False), ("narrowed", False), ("unknown", False)],
    )
    def test_stream_ends_with_its_token(self, make_app, monkeypatch, change, stays_open):
        """
        The token is checked at every keep-alive comment, so a stream ends when its token is revoked or
        narrowed, or cannot be verified and has no known expiry.
        """
        verifier = ScopedVerifier()
        application = make_app(verifier=verifier)
        monkeypatch.setattr(application, "comment_interval", 0.05)
        listen = modern("s", "subscriptions/listen", {"notifications": {"promptsListChanged": True}})

        async def run():
            caller = post(application, listen, authorization="Bearer ada.admin")
            await caller.until(lambda answer: b"acknowledged" in answer.body)
            if change != "nothing":
                getattr(verifier, change).add("ada.admin")
            comments = caller.answer.body.count(b":\n\n")
            if stays_open:
                answer = await caller.until(lambda answer: answer.body.count(b":\n\n") > comments + 1)
                assert not answer.complete
                caller.gone.set()
            answer = await caller.result()
            return answer.complete

        assert asyncio.run(run()) is not stays_open
