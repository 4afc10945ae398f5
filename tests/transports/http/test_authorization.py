"""Authorization in the application: which requests need a token, and the replies without a valid one."""

import asyncio
import json
import secrets

import pytest

from promptkit.asgi import Principal, VerifierUnavailableError, app
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.limits import Limits
from promptkit.transports.auth.authorizer import create_authorizer
from promptkit.transports.http.application import Application
from promptkit.transports.http.settings import Settings
from tests.posting import Caller, answer_to, post
from tests.wire import initialize, modern

RESOURCE = "https://prompts.example/mcp"
ISSUER = "https://issuer.example"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
TOKEN = secrets.token_urlsafe(32)

RECIPE = '''
from promptkit import prompt

@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}."
'''


ASKING = """
from promptkit import prompt

@prompt(elicit=True)
def ask(city: str):
    \"\"\"Go somewhere.\"\"\"
    return f"To {city}."
"""


class Verifier:
    """A verifier that accepts one token, and fails for some others."""

    def __init__(self):
        self.seen = []

    def verify(self, token):
        """Return the principal of *token*."""
        self.seen.append(token)
        match token:
            case "later":
                raise VerifierUnavailableError
            case "fails":
                msg = f"what a token: {token}"
                raise RuntimeError(msg)
            case "odd":
                return "ada"
        return Principal("ada", "read") if token == TOKEN else None


class AsyncVerifier(Verifier):
    """The same verifier, with an asynchronous method."""

    async def verify(self, token):
        """Return the principal of *token*."""
        await asyncio.sleep(0)
        return super().verify(token)


@pytest.fixture
def make_app(recipes):
    """A function that creates an application, which is closed after the test."""
    apps = []

    def create(source=RECIPE, **options):
        apps.append(app(recipes(greet=source), watch=False, **options))
        return apps[-1]

    yield create
    for application in apps:
        application.close(1)


def get(application, path, method="GET", **fields):
    """Request a document, and return the response."""

    async def send():
        return await Caller(application, method=method, path=path, **fields).result()

    return asyncio.run(send())


def ask(application, token=None, message=None, **fields):
    """Request the list of prompts, or send *message*, and return the response."""
    credentials = {} if token is None else {"authorization": f"Bearer {token}"}
    return answer_to(application, message or modern(1, "prompts/list"), **credentials, **fields)


class TestVerifiers:
    @pytest.mark.parametrize("kind", [Verifier, AsyncVerifier])
    def test_verifier_is_called_with_the_token(self, make_app, kind):
        """The verifier gets each token; a request without a token is rejected without calling it."""
        verifier = kind()
        application = make_app(verifier=verifier)

        assert ask(application, TOKEN).json["result"]["prompts"][0]["name"] == "greet"
        assert (ask(application, "x").status, ask(application).status) == (401, 401)
        assert verifier.seen == [TOKEN, "x"]

    @pytest.mark.parametrize("kind", [Verifier, AsyncVerifier])
    def test_failing_verifier(self, make_app, kind, capfd):
        """
        A failing verifier leads to 503, so that clients keep valid tokens; standard error names the location
        without the token.
        """
        application = make_app(verifier=kind())

        assert [ask(application, token).status for token in ("later", "fails", "odd")] == [503] * 3
        lines = capfd.readouterr().err.splitlines()
        assert len(lines) == 2
        assert lines[0].startswith(f"promptkit: a token could not be verified: RuntimeError at {__file__}:")
        assert "TypeError" in lines[1]
        assert "what a token" not in "".join(lines)

    def test_paths_without_authorization(self, make_app):
        """Health checks and the metadata need no token."""
        application = make_app(verifier=Verifier(), issuer=ISSUER, public_url=RESOURCE)

        for path in ("/healthz", "/readyz", WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
            assert get(application, path).status == 200

    def test_invalid_requests_are_rejected_before_authorization(self, make_app):
        """A request with an invalid host, path or form is rejected without calling the verifier."""
        verifier = Verifier()
        application = make_app(verifier=verifier)
        answers = [
            ask(application, TOKEN, host="evil.example"),
            ask(application, TOKEN, path="/other"),
            ask(application, TOKEN, content_type="text/plain"),
            ask(application, "x" * 40_000),
        ]

        assert [answer.status for answer in answers] == [421, 404, 415, 431]
        assert verifier.seen == []

    def test_long_token_is_verified(self, make_app):
        """Any token that fits into the request head is passed to the verifier."""
        application = make_app(verifier=Verifier())

        assert ask(application, "x" * 30_000).status == 401

    def test_requests_have_their_own_principal(self, make_app, monkeypatch):
        """Each concurrent request, and each request of a batch, has the principal of its own token."""
        application = make_app(verifier=_NamingVerifier())
        seen, receive = {}, application._endpoint.receive

        def record(head, body, channel):
            requests = receive(head, body, channel)
            for request in requests if isinstance(requests, list) else []:
                seen.setdefault(request.principal.subject, []).append(request.id)
            return requests

        monkeypatch.setattr(application._endpoint, "receive", record)
        batch = [{"jsonrpc": "2.0", "id": f"ada{n}", "method": "prompts/list"} for n in range(2)]

        async def send_all():
            single = [
                post(application, modern(name, "prompts/list"), authorization=f"Bearer {name}")
                for name in ("bob", "cleo")
            ]
            batched = post(application, json.dumps(batch).encode(), authorization="Bearer ada")
            return [(await caller.result()).status for caller in (*single, batched)]

        assert asyncio.run(send_all()) == [200] * 3
        assert seen == {"bob": ["bob"], "cleo": ["cleo"], "ada": ["ada0", "ada1"]}

    def test_every_era_needs_a_token(self, make_app):
        """
        The handshake needs a token, and so does each later request, because a session id is not a credential.
        """
        application = make_app(verifier=Verifier())
        opened = ask(application, TOKEN, initialize("2025-11-25"))
        session = {"mcp_session_id": opened.header("mcp-session-id"), "mcp_protocol_version": "2025-11-25"}
        listing = {"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}

        assert ask(application, None, initialize("2025-11-25")).status == 401
        assert ask(application, TOKEN, listing, **session).status == 200
        assert ask(application, None, listing, **session).status == 401

    def test_audit_names_the_subject(self, make_app, tmp_path):
        """
        The audit records the subject of every request in each era, even in batches and for rejected requests.
        """
        catalog = compile(Recipes())
        settings = Settings(
            authorizer=create_authorizer(verifier=_NamingVerifier()), audit=str(tmp_path / "audit")
        )
        application = Application(catalog, settings)
        listing = {"jsonrpc": "2.0", "id": "b", "method": "prompts/list"}
        pages = {"jsonrpc": "2.0", "id": "p", "method": "prompts/list", "params": {"cursor": 5}}
        batch = [listing, {"jsonrpc": "2.0", "id": "ping", "method": "ping"}]
        ask(application, "ada")
        ask(application, "bob", initialize("2025-11-25", "i"))
        ask(application, "cleo", json.dumps(batch).encode())
        ask(application, "dan", pages)
        ask(application, "eve", modern("m", "prompts/list"), mcp_method="tools/list")
        application.close(1)

        lines = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
        assert {line["id"]: line["subject"] for line in lines} == {
            1: "ada",
            "i": "bob",
            "b": "cleo",
            "ping": "cleo",
            "p": "dan",
            "m": "eve",
        }


class _NamingVerifier:
    """A verifier that returns each token as the subject; tokens in capitals belong to programs."""

    def verify(self, token):
        """Return the principal of *token*."""
        return Principal(token.lower(), program=token.isupper())


@pytest.fixture(params=["a verifier", "a program", "a file", "an empty subject"])
def callers(request, tmp_path):
    """The options of an authorizer, and the tokens of two principals that are easily confused."""
    names = {"a verifier": ("ada", "bob"), "a program": ("ada", "ADA")}.get(request.param)
    if names is not None:
        return {"verifier": _NamingVerifier()}, names
    if request.param == "an empty subject":
        return {"verifier": _EmptySubjectVerifier()}, ("ada", "nobody")
    tokens = tuple(secrets.token_urlsafe(32) for _ in range(2))
    file = tmp_path / "tokens"
    file.write_text("张三 {}\n李四 {}\n".format(*tokens), encoding="utf-8")
    file.chmod(0o600)
    return {"token_file": str(file)}, tokens


class _EmptySubjectVerifier:
    """A verifier that returns the empty subject for the token `nobody`."""

    def verify(self, token):
        """Return the principal of *token*."""
        return Principal(token.removeprefix("nobody"))


class TestTwoPrincipals:
    def test_session_belongs_to_its_principal(self, make_app, callers):
        """A session of another principal is reported as ended, so that the client starts a new one."""
        options, (owner, stranger) = callers
        application = make_app(**options)
        opened = ask(application, owner, initialize("2025-11-25")).header("mcp-session-id")
        listing = {"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}
        statuses = [
            ask(application, token, listing, mcp_session_id=opened).status
            for token in (owner, stranger, owner)
        ]

        assert statuses == [200, 404, 200]

    def test_request_state_belongs_to_its_principal(self, make_app, callers):
        """Request state that another principal sends is rejected."""
        options, (owner, stranger) = callers
        application = make_app(**options, source=ASKING)
        capable = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        params = {"name": "ask", "arguments": {}}
        result = ask(application, owner, modern(1, "prompts/get", params, **capable)).json["result"]
        (key,) = result["inputRequests"]
        retry_params = {
            **params,
            "requestState": result["requestState"],
            "inputResponses": {key: {"action": "accept", "content": {"city": "Rome"}}},
        }
        retry = modern(2, "prompts/get", retry_params, **capable)

        assert ask(application, stranger, retry).code == -32602
        assert ask(application, owner, retry).json["result"]["messages"][0]["content"]["text"] == "To Rome."

    def test_rate_limit_is_per_principal(self, make_app, callers):
        """A principal does not use up the rate of another."""
        options, (first, second) = callers
        application = make_app(**options, limits=Limits(rate=0.01))

        assert [ask(application, token).code for token in (first, first, second)] == [None, 429, None]

    def test_anonymous_session_belongs_to_no_principal(self, make_app):
        """
        A session from a server without authorization is invalid at a server with the same keys and
        authorization, even for an empty subject.
        """
        key = secrets.token_bytes(32)
        opened = ask(make_app(keys=[key]), None, initialize("2025-11-25")).header("mcp-session-id")
        listing = {"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}
        application = make_app(keys=[key], verifier=_EmptySubjectVerifier())

        assert ask(application, "nobody", listing, mcp_session_id=opened).status == 404

    def test_audit_distinguishes_principals(self, tmp_path, callers):
        """The audit records the exact subject, and whether it is a program."""
        options, tokens = callers
        settings = Settings(authorizer=create_authorizer(**options), audit=str(tmp_path / "audit"))
        application = Application(compile(Recipes()), settings)
        for token in tokens:
            ask(application, token)
        application.close(1)

        lines = [json.loads(line) for line in (tmp_path / "audit").read_text("ascii").splitlines()]
        recorded = [(line["subject"], line.get("program", False)) for line in lines]
        verified = map(settings.authorizer._verifier.verify, tokens)
        assert recorded == [(principal.subject, principal.program) for principal in verified]
        assert len(set(recorded)) == 2

    def test_audit_distinguishes_long_subjects(self, tmp_path):
        """Two subjects with the same first 300 characters are recorded in full."""
        settings = Settings(
            authorizer=create_authorizer(verifier=_NamingVerifier()), audit=str(tmp_path / "audit")
        )
        application = Application(compile(Recipes()), settings)
        subjects = [f"{'a' * 300}{number}" for number in range(2)]
        for token in subjects:
            ask(application, token)
        application.close(1)

        lines = (tmp_path / "audit").read_text().splitlines()
        assert [json.loads(line)["subject"] for line in lines] == subjects


@pytest.mark.parametrize("subject", ["\ud800", "ada\udfff"])
def test_subject_with_a_lone_surrogate_is_rejected(make_app, subject, capfd):
    """
    A verifier that returns such a subject has failed, so the error is reported, and the request rejected.
    """

    class SurrogateVerifier:
        def verify(self, _token):
            return Principal(subject)

    assert ask(make_app(verifier=SurrogateVerifier()), TOKEN).status == 503
    assert "a token could not be verified: UnicodeEncodeError at" in capfd.readouterr().err
    with pytest.raises(ValueError, match="surrogates not allowed"):
        Principal(subject)


class TestMetadata:
    @pytest.mark.parametrize(
        ("url", "path_of_url"),
        [
            (RESOURCE, "/mcp"),
            ("https://prompts.example/team/mcp", "/team/mcp"),
            ("https://prompts.example", ""),
        ],
    )
    def test_metadata_document(self, make_app, url, path_of_url):
        """The metadata is at the root and at the path of the endpoint, with the exact public URL."""
        application = make_app(
            verifier=Verifier(), issuer=ISSUER, public_url=url, required_scopes=["read", "a"]
        )

        for path in ("", "/mcp", path_of_url):
            answer = get(application, WELL_KNOWN + path, host="prompts.example")
            assert answer.json == {
                "resource": url,
                "authorization_servers": [ISSUER],
                "bearer_methods_supported": ["header"],
                "scopes_supported": ["read", "a"],
            }
        challenge = ask(application).header("www-authenticate")
        assert f'resource_metadata="https://prompts.example{WELL_KNOWN}{path_of_url}"' in challenge

    def test_allowed_origins_can_read_the_metadata(self, make_app):
        """Browsers send a preflight request first, because of the header with the revision."""
        application = make_app(
            verifier=Verifier(), issuer=ISSUER, public_url=RESOURCE, origins=["https://chat.example"]
        )
        preflight = get(application, WELL_KNOWN, "OPTIONS", origin="https://chat.example")
        read = get(application, WELL_KNOWN, origin="https://chat.example")
        unauthorized = ask(application, origin="https://chat.example")

        assert (preflight.status, preflight.header("access-control-allow-methods")) == (204, "GET")
        assert "mcp-protocol-version" in preflight.header("access-control-allow-headers")
        assert (read.status, read.header("access-control-allow-origin")) == (200, "https://chat.example")
        assert "www-authenticate" in unauthorized.header("access-control-expose-headers")
        assert get(application, WELL_KNOWN).header("vary") == "origin"  # a cache can store it
        assert get(application, WELL_KNOWN, origin="https://evil.example").status == 403

    def test_metadata_is_read_only(self, make_app):
        """Other methods and unknown hosts are rejected."""
        application = make_app(verifier=Verifier(), issuer=ISSUER, public_url=RESOURCE)

        answer = get(application, WELL_KNOWN, "POST")
        assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")
        assert get(application, WELL_KNOWN, host="evil.example").status == 421

    def test_no_metadata_without_an_issuer(self, make_app):
        """
        Without an issuer, the challenge does not name the metadata, because clients cannot get a token by
        themselves.
        """
        application = make_app(verifier=Verifier(), public_url=RESOURCE)

        assert get(application, WELL_KNOWN).status == 404
        assert ask(application).header("www-authenticate") == 'Bearer realm="mcp"'


class TestConfiguration:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"issuer": ISSUER}, "issuer= requires resource=: pass"),
            (
                {"issuer": ISSUER, "resource": "http://prompts.example/mcp"},
                "cannot be used: write",
            ),
            (
                {"issuer": "issuer.example", "resource": RESOURCE},
                "'issuer.example' cannot be used: write",
            ),
            ({"verifier": Verifier(), "scopes": ["a b"]}, "'a b' is not a scope"),
            ({"verifier": Verifier(), "scopes": ['a"']}, "is not a scope"),
            ({"scopes": ["a"]}, "scopes require tokens: add an issuer, a token file or a verifier"),
            ({"token_file": "a", "verifier": Verifier()}, "a token file cannot be combined with an issuer"),
        ],
    )
    def test_inconsistent_options_are_rejected(self, options, expected):
        """The error names the missing or conflicting option."""
        with pytest.raises(ValueError, match=expected):
            create_authorizer(**options)

    def test_no_authorization_by_default(self):
        """Without an issuer, token file or verifier, no authorizer is created."""
        assert create_authorizer(resource=RESOURCE) is None
