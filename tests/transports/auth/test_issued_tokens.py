"""Tokens of an issuer: which are taken, which are refused, and how often the issuer is asked."""

import asyncio
import json
import sys
import time
from base64 import urlsafe_b64encode
from threading import Event

import pytest
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey, import_key

from promptkit.protocol.http.messages import HttpResponse
from promptkit.protocol.principals import Principal, VerifierUnavailableError
from promptkit.transports.auth import issuer as issuers
from promptkit.transports.auth.authorizer import CACHE_S, Authorizer
from promptkit.transports.auth.bearer_header import BearerScheme
from promptkit.transports.auth.issuer import (
    COOL_DOWN_S,
    FRESH_S,
    TRUSTED_S,
    DocumentUnavailableError,
    Issuer,
    fetch_document,
)
from promptkit.transports.auth.jwt_verifier import LEEWAY_S, JwtVerifier
from tests.issuer import ALGORITHMS, issuing, key_for, signed
from tests.posting import head

RESOURCE = "https://prompts.example/mcp"
METADATA = "https://prompts.example/.well-known/oauth-protected-resource/mcp"


class Clock:
    """A time that passes when the test says so."""

    def __init__(self):
        self.now = time.time()

    def __call__(self):
        """The time, in seconds."""
        return self.now


@pytest.fixture
def issuer():
    """An issuer with one key."""
    with issuing() as one:
        yield one


@pytest.fixture
def clock():
    """The time of the server."""
    return Clock()


def server_of(issuer, clock=time.time, scopes=(), resource=RESOURCE):
    """What asks for tokens of an issuer."""
    scheme = BearerScheme(resource, issuer.url, scopes)
    return Authorizer(scheme, JwtVerifier(Issuer(issuer.url, clock=clock), resource, clock), clock)


def check(server, token, query=b"", prefix="Bearer "):
    """Who sends a request with a token, or the response that refuses it."""
    values = [f"{prefix}{one}" for one in token] if isinstance(token, list) else f"{prefix}{token}"
    return asyncio.run(server.check(head(authorization=values), query))


def challenge(response):
    """The status and the challenge of a refusal, of which nothing else is sent."""
    assert isinstance(response, HttpResponse), response
    (value,) = [value.decode() for name, value in response.headers if name == b"www-authenticate"]
    return response.status, value


def unsigned(header, claims):
    """A token without a signature."""
    parts = [urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims)]
    return ".".join([*parts, ""])


class TestTaken:
    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_every_algorithm_with_a_public_key(self, issuer, algorithm, recwarn):
        """
        A token names its key and says who bears it and what it allows.
        """
        issuer.list_key(algorithm, "second")

        found = check(server_of(issuer), issuer.token(RESOURCE, algorithm, "second", scope="read write"))

        assert (found.subject, found.scopes) == ("ada", {"read", "write"})
        assert not recwarn

    @pytest.mark.parametrize(
        ("changed", "principal"),
        [
            ({"aud": ["https://other.example", RESOURCE]}, Principal("ada", "read")),
            ({"scope": None, "scp": ["read", "write"]}, Principal("ada", "read write")),
            ({"scope": None, "scp": "read write"}, Principal("ada", "read write")),
            ({"scope": None}, Principal("ada")),
            ({"scope": 5}, Principal("ada")),
            ({"sub": "张三"}, Principal("张三", "read")),
            ({"client_id": "robot", "azp": "robot"}, Principal("ada", "read")),
            ({"sub": None, "client_id": "ada"}, Principal("ada", "read", program=True)),
            ({"sub": None, "azp": "ada"}, Principal("ada", "read", program=True)),
        ],
        ids=[
            "several audiences",
            "scp, a list",
            "scp",
            "not a scope",
            "odd scope",
            "exact text",
            "a program for somebody",
            "a program",
            "a program, by OpenID Connect",
        ],
    )
    def test_claims_as_issuers_write_them(self, issuer, changed, principal):
        """
        Scopes are in `scope` or `scp`; a program that acts for itself may have no subject but its own id.
        It is nobody's who has that id as subject.
        """
        found = check(server_of(issuer), issuer.token(RESOURCE, **changed))

        assert (found.identity, found.scopes) == (principal.identity, principal.scopes)

    @pytest.mark.parametrize("typ", [None, "JWT", "jwt", "at+jwt", "application/at+jwt"])
    def test_types(self, issuer, typ):
        """
        A token may say that it is an access token, or nothing.
        """
        assert check(server_of(issuer), issuer.token(RESOURCE, header={"typ": typ})).subject == "ada"

    def test_a_header_with_more_than_is_needed(self, issuer):
        """
        What a header holds besides is ignored, above all keys that it brings along.
        """
        other = key_for("ES256", 1)
        brought = {"jwk": other.as_dict(private=False), "jku": "https://evil.example", "x5t": "x" * 700}
        server = server_of(issuer)

        assert check(server, issuer.token(RESOURCE, header=brought)).subject == "ada"
        assert challenge(check(server, issuer.token(RESOURCE, header=brought, key=other)))[0] == 401

    def test_a_token_without_a_key_id(self, issuer):
        """
        Without a name, the only key for the algorithm is meant; among several, none is.
        """
        issuer.list_key("RS256", "other kind")
        token = issuer.token(RESOURCE, kid=None)

        assert check(server_of(issuer), token).subject == "ada"
        issuer.list_key("ES256", "second", 1)
        assert challenge(check(server_of(issuer), token))[0] == 401

    @pytest.mark.parametrize("path", ["", "/tenant"])
    @pytest.mark.parametrize("missing", [False, True])
    def test_where_the_metadata_is(self, path, missing):
        """
        It is where RFC 8414 says, or where OpenID Connect does.
        """
        with issuing(path) as issuer:
            if missing:
                issuer.answers[f"/.well-known/oauth-authorization-server{path}"] = (404, {})
            assert check(server_of(issuer), issuer.token(RESOURCE)).subject == "ada"

    def test_the_clocks_differ(self, issuer, clock):
        """
        By half a minute they may.
        """
        now = int(clock.now)
        late = issuer.token(RESOURCE, exp=now - LEEWAY_S + 5)
        early = issuer.token(RESOURCE, nbf=now + LEEWAY_S - 5, iat=now + LEEWAY_S - 5)

        assert [check(server_of(issuer, clock), token).subject for token in (late, early)] == ["ada", "ada"]


class TestRefused:
    @pytest.fixture
    def wrong(self, issuer):
        """Tokens that are each wrong in one way, and what standard error says of it."""
        now = int(time.time())
        public = key_for("ES256").as_pem(private=False)
        shared = OctKey.import_key(public.replace(b"-----BEGIN", b"-----begin"))
        right = issuer.token(RESOURCE)
        beginning, _, signature = right.rpartition(".")
        claims = issuer.claims(RESOURCE)
        is_ec = {"alg": "ES256", "kid": "first"}
        return {
            "algorithm none": (unsigned({"alg": "none"}, claims), "its algorithm is not allowed"),
            "algorithm None": (
                unsigned({"alg": "None", "kid": "first"}, claims),
                "its algorithm is not allowed",
            ),
            "no algorithm": (unsigned({"kid": "first"}, claims), "its header cannot be read"),
            "no signature": (f"{beginning}.", "its signature is wrong"),
            "a shared key": (
                signed({"alg": "HS256", "kid": "first"}, claims, shared),
                "its algorithm is not allowed",
            ),
            "another key": (issuer.token(RESOURCE, key=key_for("ES256", 1)), "its signature is wrong"),
            "another algorithm": (
                issuer.token(RESOURCE, "RS256"),
                "the issuer has no such key",
            ),
            "changed": (f"{beginning}.{signature[::-1]}", "its signature is wrong"),
            "another audience": (
                issuer.token("https://other.example/mcp"),
                "it is for another server (aud)",
            ),
            "the audience and more": (issuer.token(RESOURCE + "/"), "it is for another server (aud)"),
            "no audience": (issuer.token(None), "it is for another server (aud)"),
            "an audience of numbers": (issuer.token([1, 2]), "it is for another server (aud)"),
            "another issuer": (
                issuer.token(RESOURCE, iss="https://evil.example"),
                "it is of another issuer (iss)",
            ),
            "no issuer": (issuer.token(RESOURCE, iss=None), "it is of another issuer (iss)"),
            "expired": (issuer.token(RESOURCE, exp=now - LEEWAY_S - 1), "it has expired"),
            "for ever": (issuer.token(RESOURCE, exp=None), "it has no expiry (exp)"),
            "odd end": (issuer.token(RESOURCE, exp="tomorrow"), "it has no expiry (exp)"),
            "not yet": (issuer.token(RESOURCE, nbf=now + LEEWAY_S + 60), "it is not valid yet (nbf)"),
            "from the future": (
                issuer.token(RESOURCE, iat=now + LEEWAY_S + 60),
                "it was issued in the future (iat)",
            ),
            "nobody's": (issuer.token(RESOURCE, sub=None), "it has no subject (sub)"),
            "a number's": (
                issuer.token(RESOURCE, sub=None, client_id=5),
                "it has no subject (sub)",
            ),
            "half a surrogate": (
                issuer.token(RESOURCE, sub="ada\ud800"),
                "its subject (sub) is not a string",
            ),
            "half a surrogate, a program": (
                issuer.token(RESOURCE, sub=None, client_id="\udfff"),
                "its subject (sub) is not a string",
            ),
            "a logout": (
                issuer.token(RESOURCE, header={"typ": "logout+jwt"}),
                "it is of a kind that is not for this use",
            ),
            "critical": (
                signed({**is_ec, "crit": ["b64"], "b64": True}, claims, key_for("ES256")),
                "it is of a kind that is not for this use",
            ),
            "encrypted": ("a.b.c.d.e", "it is not a signed JSON Web Token"),
            "opaque": ("opaque-token", "it is not a signed JSON Web Token"),
            "dots": ("..", "its header cannot be read"),
            "deep": (
                urlsafe_b64encode(b'{"alg":' + b"[" * 5000).decode() + ".e30.e30",
                "its header cannot be read",
            ),
            "odd key id": (unsigned({"alg": "ES256", "kid": 5}, claims), "its header cannot be read"),
            "a list": (
                signed(is_ec, claims, key_for("ES256")).split(".")[0] + ".W10.e30",
                "its signature is wrong",
            ),
        }

    def test_tokens_that_are_wrong_in_each_way(self, issuer, wrong, capfd):
        """
        401 with one challenge for all: clients learn nothing, and standard error says why, without the token.
        """
        for way, (token, reason) in wrong.items():
            status, said = challenge(check(server_of(issuer, scopes=["read", "list"]), token))

            assert (way, status) == (way, 401)
            assert said == (
                'Bearer realm="mcp", error="invalid_token", error_description="this token is not valid here: '
                'it is unknown, has expired, or is for another server", scope="read list", '
                f'resource_metadata="{METADATA}"'
            )
            shown = capfd.readouterr().err
            assert shown == f"promptkit: a token was refused: {reason}. This is reported once\n", way
            assert all(part not in shown for part in token.split(".") if len(part) > 8), way

    def test_a_reason_is_said_once(self, issuer, capfd):
        """
        Clients may send as many wrong tokens as they like.
        """
        server = server_of(issuer)
        for _ in range(3):
            check(server, "opaque")
        assert capfd.readouterr().err.count("\n") == 1

    @pytest.mark.parametrize("wrong", ["", "a b", "a,b", 'a"b', "ä", "a\x7f", "x\x00"])
    def test_what_is_no_token(self, issuer, wrong):
        """
        400: the request is malformed, whatever the issuer may think of it.
        """
        status, said = challenge(check(server_of(issuer), wrong))

        assert (status, 'error="invalid_request"' in said) == (400, True)
        assert issuer.asked_for_keys == 0

    def test_a_token_that_is_sent_twice(self, issuer):
        """
        400, even if it is the same.
        """
        status, said = challenge(check(server_of(issuer), [issuer.token(RESOURCE)] * 2))

        assert status == 400
        assert 'error_description="Authorization was sent more than once"' in said

    @pytest.mark.parametrize("query", [b"access_token=%b", b"a=1&access%%5ftoken=%b", b"access_token=%b&a"])
    def test_a_token_in_the_url(self, issuer, query):
        """
        400, whether or not there is one in the header: logs keep URLs.
        """
        token = issuer.token(RESOURCE).encode()
        server = server_of(issuer)
        alone = asyncio.run(server.check(head(), query % token))
        both = check(server, token.decode(), query % token)

        for refused in (alone, both):
            status, said = challenge(refused)
            assert (status, 'error="invalid_request"' in said) == (400, True)
            assert token not in refused.body + said.encode()

    @pytest.mark.parametrize("sent", [None, "Basic YTpi", "", "Token x"])
    def test_no_token(self, issuer, sent):
        """
        401 without an error: nothing is wrong with a token. The metadata and the scopes are named.
        """
        refused = asyncio.run(server_of(issuer, scopes=["read"]).check(head(authorization=sent), b""))

        assert challenge(refused) == (
            401,
            f'Bearer realm="mcp", scope="read", resource_metadata="{METADATA}"',
        )

    def test_a_scope_is_lacking(self, issuer):
        """
        403 with all scopes of the operation, so that the client can ask for them at once.
        """
        server = server_of(issuer, scopes=["read", "write"])
        status, said = challenge(check(server, issuer.token(RESOURCE, scope="read other")))

        assert status == 403
        assert said == (
            'Bearer realm="mcp", error="insufficient_scope", error_description="this token lacks a scope: '
            f'needed are read write", scope="read write", resource_metadata="{METADATA}"'
        )
        assert check(server, issuer.token(RESOURCE, scope="other write read")).subject == "ada"


class TestKeys:
    @pytest.mark.filterwarnings("ignore:Key size should be")
    @pytest.mark.parametrize("bits", [1024, 1536, 2040])
    def test_a_weak_key_in_a_long_spelling(self, issuer, bits):
        """
        A key of RSA has the size of its number, however many zeros are written in front of that.
        """
        weak = RSAKey.generate_key(bits)
        modulus = weak.public_key.public_numbers().n.to_bytes(300)
        listed = {**weak.as_dict(private=False), "n": urlsafe_b64encode(modulus).decode(), "kid": "weak"}
        issuer.keys.append(listed)

        assert import_key(listed).public_key.key_size == bits
        assert challenge(check(server_of(issuer), issuer.token(RESOURCE, "RS256", "weak", weak)))[0] == 401
        issuer.list_key("RS256", "strong")
        assert check(server_of(issuer), issuer.token(RESOURCE, "RS256", "strong")).subject == "ada"

    @pytest.mark.parametrize(
        ("algorithm", "key"),
        [
            ("ES256", ECKey.generate_key("secp256k1")),
            ("ES512", ECKey.generate_key("P-256")),
            ("Ed25519", OKPKey.generate_key("Ed448")),
        ],
        ids=["another curve", "a smaller curve", "another curve of Edwards"],
    )
    def test_a_key_of_another_curve(self, issuer, algorithm, key, capfd):
        """
        An algorithm names its curve, and with it the size: a key of any other verifies nothing.
        """
        issuer.keys.append({**key.as_dict(private=False), "kid": "other"})
        token = issuer.token(RESOURCE, algorithm, "other")

        assert challenge(check(server_of(issuer), token))[0] == 401
        assert "a token was refused: the issuer has no such key" in capfd.readouterr().err


class TestAsking:
    def test_a_known_token_is_not_verified_again(self, issuer, clock, monkeypatch):
        """
        Until five minutes are over, or it expires.
        """
        server = server_of(issuer, clock)
        token, short = issuer.token(RESOURCE), issuer.token(RESOURCE, exp=int(clock.now) + 10)
        assert [check(server, one).subject for one in (token, short)] == ["ada", "ada"]
        monkeypatch.setattr(server, "_verifier", None)

        clock.now += 9
        assert [check(server, one).subject for one in (token, short)] == ["ada", "ada"]
        clock.now += LEEWAY_S + 1
        assert check(server, token).subject == "ada"
        assert check(server, short).status == 503
        clock.now += CACHE_S
        assert check(server, token).status == 503

    def test_a_known_token_costs_little(self, issuer):
        """
        A request pays for one digest, and for few calls besides.
        """
        server = server_of(issuer)
        asked = head(authorization=f"Bearer {issuer.token(RESOURCE)}")
        asyncio.run(server.check(asked, b""))
        calls = []
        checking = server.check(asked, b"")
        sys.setprofile(lambda _frame, event, _argument: calls.append(event) if "call" in event else None)
        try:
            checking.send(None)
        except StopIteration as found:
            principal = found.value
        finally:
            sys.setprofile(None)

        assert principal.subject == "ada"
        assert len(calls) <= 16

    def test_known_tokens_are_bounded(self, issuer, monkeypatch):
        """
        The oldest one is forgotten, and verified again.
        """
        monkeypatch.setattr("promptkit.transports.auth.authorizer._MAX_CACHED", 3)
        server = server_of(issuer)
        for number in range(10):
            assert check(server, issuer.token(RESOURCE, jti=str(number))).subject == "ada"
        assert len(server._cached) == 3

    def test_a_flood_of_key_ids(self, issuer, clock):
        """
        The issuer is asked once a cool-down, whatever tokens name.
        """
        server = server_of(issuer, clock)
        tokens = [issuer.token(RESOURCE, kid=f"k{number}") for number in range(50)]

        for cool_downs in range(1, 4):
            for token in tokens:
                assert challenge(check(server, token))[0] == 401
            assert issuer.asked_for_keys == cool_downs
            clock.now += COOL_DOWN_S

    def test_many_requests_wait_for_one_answer(self, issuer):
        """
        They come at the same time, in several event loops, while the first keys are fetched.
        """
        server = server_of(issuer)
        token = issuer.token(RESOURCE)

        async def ask():
            return await asyncio.gather(
                *(server.check(head(authorization=f"Bearer {token}"), b"") for _ in range(20))
            )

        async def everywhere():
            return await asyncio.gather(*(asyncio.to_thread(asyncio.run, ask()) for _ in range(4)))

        found = [one.subject for answers in asyncio.run(everywhere()) for one in answers]
        assert (found, issuer.asked_for_keys) == (["ada"] * 80, 1)

    def test_a_client_that_leaves_ends_the_wait_of_no_other(self, issuer):
        """
        What it waited for goes on.
        """
        server = server_of(issuer)
        token = issuer.token(RESOURCE)

        async def ask():
            asked = head(authorization=f"Bearer {token}")
            tasks = [asyncio.ensure_future(server.check(asked, b"")) for _ in range(2)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            return (await asyncio.gather(*tasks, return_exceptions=True))[1]

        assert asyncio.run(ask()).subject == "ada"

    def test_a_new_key(self, issuer, clock):
        """
        It is fetched for the first token that names it.
        """
        server = server_of(issuer, clock)
        assert check(server, issuer.token(RESOURCE)).subject == "ada"
        issuer.list_key("ES256", "second", 1)
        clock.now += COOL_DOWN_S

        found = check(server, issuer.token(RESOURCE, kid="second", key=key_for("ES256", 1)))

        assert (found.subject, issuer.asked_for_keys) == ("ada", 2)

    def test_a_key_is_withdrawn(self, issuer, clock):
        """
        After five minutes the keys are fetched again, and after five more no token of it is known.
        """
        server = server_of(issuer, clock)
        token, other = issuer.token(RESOURCE), issuer.token(RESOURCE, jti="2")
        check(server, token)
        issuer.keys.clear()
        issuer.list_key("ES256", "second", 1)
        clock.now += FRESH_S + 1

        assert [check(server, one).status for one in (other, token)] == [401, 401]

    def test_the_issuer_is_away(self, issuer, clock, capfd):
        """
        503 before its keys are known. After that, they are used for an hour without it.
        """
        server = server_of(issuer, clock)
        token = issuer.token(RESOURCE, exp=int(clock.now) + 10**6)
        issuer.answers["/jwks"] = (500, {})
        assert [check(server, token).status for _ in range(3)] == [503] * 3
        assert issuer.asked_for_keys == 1
        assert capfd.readouterr().err == (
            f"promptkit: the keys of {issuer.url} cannot be fetched: {issuer.origin}/jwks: HTTP Error 500: "
            "Internal Server Error; not asked again for 30 s\n"
        )
        clock.now += COOL_DOWN_S
        del issuer.answers["/jwks"]
        assert check(server, token).subject == "ada"

        issuer.answers["/jwks"] = (500, {})
        clock.now += TRUSTED_S - 1
        assert check(server, token).subject == "ada"
        assert check(server, issuer.token(RESOURCE, kid="new", exp=int(clock.now) + 600)).status == 503
        clock.now += CACHE_S + 2
        assert check(server, token).status == 503

    def test_a_stream_while_the_issuer_is_away(self, issuer, clock):
        """
        Nobody can say whether its token is still valid: it is, until it expires.
        """
        server = server_of(issuer, clock)
        end = int(clock.now + TRUSTED_S + 600)
        sent = head(authorization=f"Bearer {issuer.token(RESOURCE, exp=end)}")
        principal = asyncio.run(server.check(sent, b""))
        issuer.answers["/jwks"] = (500, {})

        clock.now += TRUSTED_S + 1
        assert asyncio.run(server.check(sent, b"")).status == 503
        assert asyncio.run(server.still_admits(sent, principal))
        clock.now = end + LEEWAY_S
        assert not asyncio.run(server.still_admits(sent, principal))

    def test_503_says_when_to_try_again(self, issuer):
        """
        No client takes it for a refusal of its token.
        """
        issuer.answers["/jwks"] = (500, {})
        refused = check(server_of(issuer), issuer.token(RESOURCE))

        assert (b"retry-after", b"1") in refused.headers
        assert b"www-authenticate" not in dict(refused.headers)

    @pytest.mark.parametrize(
        ("path", "answer", "said"),
        [
            ("/jwks", (200, b"{"), "Input data was truncated"),
            ("/jwks", (200, []), "Expected `object`, got `array`"),
            ("/jwks", (200, {"keys": []}), "there is no key that can be used"),
            (
                "/jwks",
                (200, {"keys": [{"kty": "oct", "k": "c2VjcmV0"}, 5]}),
                "there is no key that can be used",
            ),
            ("/jwks", (200, {"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}), "there is no key"),
            (
                "/jwks",
                (200, {"keys": [{"kty": "EC", "crv": "P-257", "x": "a", "y": "b"}]}),
                "there is no key",
            ),
            ("/jwks", (200, b" " * 1_100_000), "it has more than 1,048,576 bytes"),
            ("/jwks", (302, b"", {"location": "http://127.0.0.1:1/jwks"}), "HTTP Error 302: Found"),
            ("/jwks", (200, b'{"keys":' * 100_000), "while deserializing an object"),
            ("meta", (200, {"issuer": "https://evil.example"}), "it is the metadata of another issuer"),
            ("meta", (200, {}), "it is the metadata of another issuer: None"),
            ("meta", (500, {}), "HTTP Error 500"),
            ("meta", (404, {}), "HTTP Error 404"),
        ],
    )
    def test_answers_of_an_issuer_that_cannot_be_used(self, issuer, path, answer, said, capfd):
        """
        503, and standard error says what is wrong with them.
        """
        paths = [path]
        if path == "meta":
            paths = [
                f"/.well-known/{name}" for name in ("oauth-authorization-server", "openid-configuration")
            ]
        issuer.answers.update(dict.fromkeys(paths, answer))

        assert check(server_of(issuer), issuer.token(RESOURCE)).status == 503
        assert said in capfd.readouterr().err

    @pytest.mark.parametrize(
        "answer", [(404, b"none"), (302, b"", {"location": "/jwks"}), (500, b"x" * 100_000)]
    )
    def test_an_answer_that_is_an_error_is_closed(self, issuer, answer):
        """
        Nothing of it is left open, whoever keeps the exception.
        """
        issuer.answers["/keys"] = answer
        with pytest.raises(DocumentUnavailableError, match=f"HTTP Error {answer[0]}") as caught:
            fetch_document(f"{issuer.origin}/keys")
        assert caught.value.__context__.closed

    @pytest.mark.parametrize("url", ["http://keys.example/jwks", "file:///etc/passwd", 5, None])
    def test_keys_elsewhere(self, issuer, url, capfd):
        """
        They are fetched over https, or from this machine.
        """
        metadata = {**issuer.metadata(), "jwks_uri": url}
        issuer.answers["/.well-known/oauth-authorization-server"] = (200, metadata)

        assert check(server_of(issuer), issuer.token(RESOURCE)).status == 503
        assert (
            "cannot be used: write an https" if isinstance(url, str) else "it has no jwks_uri"
        ) in capfd.readouterr().err

    def test_an_issuer_that_never_ends_its_answer(self, issuer, monkeypatch):
        """
        Requests wait for a bounded time; what is fetched after it serves later ones.
        """
        monkeypatch.setattr(issuers, "_WAIT_S", 0.05)
        released = Event()

        def fetch(_url):
            released.wait(20)
            return {"issuer": issuer.url, "jwks_uri": issuer.url, "keys": issuer.keys}

        keys = Issuer(issuer.url, fetch)
        verifier = JwtVerifier(keys, RESOURCE)
        with pytest.raises(VerifierUnavailableError):
            asyncio.run(verifier.verify(issuer.token(RESOURCE)))
        running = keys._pending
        released.set()
        running.result(20)
        assert asyncio.run(verifier.verify(issuer.token(RESOURCE))).subject == "ada"


@pytest.mark.parametrize(
    "url",
    [
        "http://issuer.example",
        "ftp://issuer.example",
        "issuer",
        "https://",
        "https://a?b",
        "https://a/\n",
        "https://u:p@a",
    ],
)
def test_what_is_no_issuer(url):
    """
    An issuer has a URL of https, without a query.
    """
    with pytest.raises(ValueError, match="cannot be used: write an https"):
        Issuer(url)
