"""The application with somebody who asks for tokens: who is asked, and what is answered without one."""

import asyncio
import json
import secrets

import pytest

from promptkit.asgi import Principal, VerifierUnavailableError, app
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.limits import Limits
from promptkit.transports.auth.authorizer import protect
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
    """Takes one token, and does with others what they say."""

    def __init__(self):
        self.seen = []

    def verify(self, token):
        """Return who bears a token."""
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
    """Does so later."""

    async def verify(self, token):
        """Return who bears a token."""
        await asyncio.sleep(0)
        return super().verify(token)


@pytest.fixture
def made(recipes):
    """A function that makes an application, which ends with the test."""
    apps = []

    def make(source=RECIPE, **options):
        apps.append(app(recipes(greet=source), watch=False, **options))
        return apps[-1]

    yield make
    for one in apps:
        one.close(1)


def get(application, path, method="GET", **fields):
    """Ask for a document."""

    async def ask():
        return await Caller(application, method=method, path=path, **fields).result()

    return asyncio.run(ask())


def ask(application, token=None, message=None, **fields):
    """Ask for the list of prompts."""
    given = {} if token is None else {"authorization": f"Bearer {token}"}
    return answer_to(application, message or modern(1, "prompts/list"), **given, **fields)


class TestVerifiers:
    @pytest.mark.parametrize("kind", [Verifier, AsyncVerifier])
    def test_who_bears_a_token(self, made, kind):
        """
        A verifier is asked, with the token alone; without a token nobody is.
        """
        verifier = kind()
        application = made(verifier=verifier)

        assert ask(application, TOKEN).json["result"]["prompts"][0]["name"] == "greet"
        assert (ask(application, "x").status, ask(application).status) == (401, 401)
        assert verifier.seen == [TOKEN, "x"]

    @pytest.mark.parametrize("kind", [Verifier, AsyncVerifier])
    def test_a_verifier_that_fails(self, made, kind, capfd):
        """
        503, so that no client drops a token that is right. Standard error says where, without the token.
        """
        application = made(verifier=kind())

        assert [ask(application, token).status for token in ("later", "fails", "odd")] == [503] * 3
        said = capfd.readouterr().err.splitlines()
        assert len(said) == 2
        assert said[0].startswith(f"promptkit: a token could not be verified: RuntimeError at {__file__}:")
        assert "TypeError" in said[1]
        assert "what a token" not in "".join(said)

    def test_what_needs_no_token(self, made):
        """
        Probes, and what tells clients where to get one.
        """
        application = made(verifier=Verifier(), issuer=ISSUER, public_url=RESOURCE)

        for path in ("/healthz", "/readyz", WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
            assert get(application, path).status == 200

    def test_what_comes_first(self, made):
        """
        A request that is refused for its host, path or form is not asked for a token.
        """
        verifier = Verifier()
        application = made(verifier=verifier)
        refused = [
            ask(application, TOKEN, host="evil.example"),
            ask(application, TOKEN, path="/other"),
            ask(application, TOKEN, content_type="text/plain"),
            ask(application, "x" * 40_000),
        ]

        assert [answer.status for answer in refused] == [421, 404, 415, 431]
        assert verifier.seen == []

    def test_a_long_token(self, made):
        """
        What fits into a head is a token like any other.
        """
        application = made(verifier=Verifier())

        assert ask(application, "x" * 30_000).status == 401

    def test_requests_know_their_principal(self, made, monkeypatch):
        """
        Each request, and each of a batch, has that of its own token, also at the same time.
        """
        application = made(verifier=_Echo())
        seen, receive = {}, application._endpoint.receive

        def note(given, body, channel):
            found = receive(given, body, channel)
            for request in found if isinstance(found, list) else []:
                seen.setdefault(request.principal.subject, []).append(request.id)
            return found

        monkeypatch.setattr(application._endpoint, "receive", note)
        batch = [{"jsonrpc": "2.0", "id": f"ada{n}", "method": "prompts/list"} for n in range(2)]

        async def everybody():
            one = [
                post(application, modern(name, "prompts/list"), authorization=f"Bearer {name}")
                for name in ("bob", "cleo")
            ]
            several = post(application, json.dumps(batch).encode(), authorization="Bearer ada")
            return [(await caller.result()).status for caller in (*one, several)]

        assert asyncio.run(everybody()) == [200] * 3
        assert seen == {"bob": ["bob"], "cleo": ["cleo"], "ada": ["ada0", "ada1"]}

    def test_every_era(self, made):
        """
        A handshake needs a token, too, and so does each request after it: a session id is none.
        """
        application = made(verifier=Verifier())
        opened = ask(application, TOKEN, initialize("2025-11-25"))
        session = {"mcp_session_id": opened.header("mcp-session-id"), "mcp_protocol_version": "2025-11-25"}
        listing = {"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}

        assert ask(application, None, initialize("2025-11-25")).status == 401
        assert ask(application, TOKEN, listing, **session).status == 200
        assert ask(application, None, listing, **session).status == 401

    def test_the_audit_names_the_subject(self, made, tmp_path):
        """
        Of every request, by every way of an answer: in every era, in batches, and if it is refused.
        """
        catalog = compile(Recipes())
        settings = Settings(authorizer=protect(verifier=_Echo()), audit=str(tmp_path / "audit"))
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

        lines = [json.loads(one) for one in (tmp_path / "audit").read_text().splitlines()]
        assert {one["id"]: one["subject"] for one in lines} == {
            1: "ada",
            "i": "bob",
            "b": "cleo",
            "ping": "cleo",
            "p": "dan",
            "m": "eve",
        }


class _Echo:
    """Takes every token for a name; those in capitals for a program's."""

    def verify(self, token):
        """Return who bears a token."""
        return Principal(token.lower(), program=token.isupper())


@pytest.fixture(params=["a verifier", "a program", "a file", "an empty subject"])
def pair(request, tmp_path):
    """Who takes tokens, and those of two senders who are easily taken for one."""
    names = {"a verifier": ("ada", "bob"), "a program": ("ada", "ADA")}.get(request.param)
    if names is not None:
        return {"verifier": _Echo()}, names
    if request.param == "an empty subject":
        return {"verifier": _Empty()}, ("ada", "nobody")
    tokens = tuple(secrets.token_urlsafe(32) for _ in range(2))
    file = tmp_path / "tokens"
    file.write_text("张三 {}\n李四 {}\n".format(*tokens), encoding="utf-8")
    file.chmod(0o600)
    return {"token_file": str(file)}, tokens


class _Empty:
    """Somebody whose subject is empty is somebody all the same."""

    def verify(self, token):
        """Return who bears a token."""
        return Principal(token.removeprefix("nobody"))


class TestTwoSenders:
    def test_a_session_is_that_of_its_opener(self, made, pair):
        """
        To another one it has ended, so that its client opens one of its own.
        """
        asks, (one, other) = pair
        application = made(**asks)
        opened = ask(application, one, initialize("2025-11-25")).header("mcp-session-id")
        listing = {"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}
        statuses = [
            ask(application, token, listing, mcp_session_id=opened).status for token in (one, other, one)
        ]

        assert statuses == [200, 404, 200]

    def test_a_question_is_answered_by_the_one_asked(self, made, pair):
        """
        The state that comes back with the answer is that of one sender. Another one's is refused.
        """
        asks, (one, other) = pair
        application = made(**asks, source=ASKING)
        capable = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        params = {"name": "ask", "arguments": {}}
        asked = ask(application, one, modern(1, "prompts/get", params, **capable)).json["result"]
        (key,) = asked["inputRequests"]
        answered = {
            **params,
            "requestState": asked["requestState"],
            "inputResponses": {key: {"action": "accept", "content": {"city": "Rome"}}},
        }
        again = modern(2, "prompts/get", answered, **capable)

        assert ask(application, other, again).code == -32602
        assert ask(application, one, again).json["result"]["messages"][0]["content"]["text"] == "To Rome."

    def test_a_rate_is_one_senders(self, made, pair):
        """
        Nobody uses up what another one may ask for.
        """
        asks, (one, other) = pair
        application = made(**asks, limits=Limits(rate=0.01))

        assert [ask(application, token).code for token in (one, one, other)] == [None, 429, None]

    def test_a_session_without_tokens_is_nobodys(self, made):
        """
        Not even theirs whose subject is empty, where another server with the same keys asks for tokens.
        """
        key = secrets.token_bytes(32)
        opened = ask(made(keys=[key]), None, initialize("2025-11-25")).header("mcp-session-id")
        listing = {"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}
        application = made(keys=[key], verifier=_Empty())

        assert ask(application, "nobody", listing, mcp_session_id=opened).status == 404

    def test_the_audit_tells_them_apart(self, tmp_path, pair):
        """
        A subject is written whole, as it is, and a program as one.
        """
        asks, tokens = pair
        settings = Settings(authorizer=protect(**asks), audit=str(tmp_path / "audit"))
        application = Application(compile(Recipes()), settings)
        for token in tokens:
            ask(application, token)
        application.close(1)

        lines = [json.loads(one) for one in (tmp_path / "audit").read_text("ascii").splitlines()]
        senders = [(one["subject"], one.get("program", False)) for one in lines]
        verified = map(settings.authorizer._verifier.verify, tokens)
        assert senders == [(found.subject, found.program) for found in verified]
        assert len(set(senders)) == 2

    def test_the_audit_tells_long_subjects_apart(self, tmp_path):
        """
        Two that begin alike for hundreds of characters are two.
        """
        settings = Settings(authorizer=protect(verifier=_Echo()), audit=str(tmp_path / "audit"))
        application = Application(compile(Recipes()), settings)
        subjects = [f"{'a' * 300}{number}" for number in range(2)]
        for token in subjects:
            ask(application, token)
        application.close(1)

        lines = (tmp_path / "audit").read_text().splitlines()
        assert [json.loads(one)["subject"] for one in lines] == subjects


@pytest.mark.parametrize("subject", ["\ud800", "ada\udfff"])
def test_a_subject_that_is_no_text(made, subject, capfd):
    """
    A verifier that hands on half of a surrogate pair has failed, and says so; nobody is let in by it.
    """

    class Careless:
        def verify(self, _token):
            return Principal(subject)

    assert ask(made(verifier=Careless()), TOKEN).status == 503
    assert "a token could not be verified: ValueError at" in capfd.readouterr().err
    with pytest.raises(ValueError, match=r"^a subject is text that UTF-8 can write: this one holds half"):
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
    def test_the_document(self, made, url, path_of_url):
        """
        It is at the root, and at the path of the endpoint, with the URL exactly as clients use it.
        """
        application = made(verifier=Verifier(), issuer=ISSUER, public_url=url, required_scopes=["read", "a"])

        for path in ("", "/mcp", path_of_url):
            answer = get(application, WELL_KNOWN + path, host="prompts.example")
            assert answer.json == {
                "resource": url,
                "authorization_servers": [ISSUER],
                "bearer_methods_supported": ["header"],
                "scopes_supported": ["read", "a"],
            }
        named = ask(application).header("www-authenticate")
        assert f'resource_metadata="https://prompts.example{WELL_KNOWN}{path_of_url}"' in named

    def test_pages_may_read_it(self, made):
        """
        As far as they may send requests. A browser asks before, because of the header with the revision.
        """
        application = made(
            verifier=Verifier(), issuer=ISSUER, public_url=RESOURCE, origins=["https://chat.example"]
        )
        asked = get(application, WELL_KNOWN, "OPTIONS", origin="https://chat.example")
        read = get(application, WELL_KNOWN, origin="https://chat.example")
        refused = ask(application, origin="https://chat.example")

        assert (asked.status, asked.header("access-control-allow-methods")) == (204, "GET")
        assert "mcp-protocol-version" in asked.header("access-control-allow-headers")
        assert (read.status, read.header("access-control-allow-origin")) == (200, "https://chat.example")
        assert "www-authenticate" in refused.header("access-control-expose-headers")
        assert get(application, WELL_KNOWN).header("vary") == "origin"  # a cache may keep it
        assert get(application, WELL_KNOWN, origin="https://evil.example").status == 403

    def test_it_is_only_read(self, made):
        """
        Other methods are refused, and other hosts.
        """
        application = made(verifier=Verifier(), issuer=ISSUER, public_url=RESOURCE)

        answer = get(application, WELL_KNOWN, "POST")
        assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")
        assert get(application, WELL_KNOWN, host="evil.example").status == 421

    def test_without_an_issuer_there_is_none(self, made):
        """
        Nor is it named: a client cannot get a token by itself.
        """
        application = made(verifier=Verifier(), public_url=RESOURCE)

        assert get(application, WELL_KNOWN).status == 404
        assert ask(application).header("www-authenticate") == 'Bearer realm="mcp"'


class TestPuttingTogether:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"issuer": ISSUER}, "an issuer makes tokens for one URL: say by which one clients call"),
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
            ({"scopes": ["a"]}, "scopes are those of tokens: name an issuer, a file of tokens or a verifier"),
            ({"token_file": "a", "verifier": Verifier()}, "tokens come from a file, or from somebody else"),
        ],
    )
    def test_what_does_not_go_together(self, options, said):
        """
        The error says what is missing.
        """
        with pytest.raises(ValueError, match=said):
            protect(**options)

    def test_nobody_asks(self):
        """
        Without any of them, there is nothing to ask for.
        """
        assert protect(resource=RESOURCE) is None
