"""Tokens from an issuer: accepted and rejected tokens, and the requests to the issuer."""

import asyncio
import json
import time
from base64 import urlsafe_b64encode
from threading import Event

import pytest
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey, import_key

from promptkit.protocol.http.messages import HttpResponse
from promptkit.protocol.principals import Principal, VerifierUnavailableError
from promptkit.transports.auth import issuer as issuers
from promptkit.transports.auth.authorizer import CACHE_S, Authorizer, BearerScheme
from promptkit.transports.auth.issuer import (
    COOL_DOWN_S,
    MAX_KEY_AGE_S,
    REFRESH_AFTER_S,
    DocumentUnavailableError,
    Issuer,
    fetch_document,
)
from promptkit.transports.auth.jwt_verifier import LEEWAY_S, JwtVerifier
from tests.issuer import ALGORITHMS, issuing, key_for, sign_token
from tests.posting import head

RESOURCE = "https://prompts.example/mcp"
METADATA = "https://prompts.example/.well-known/oauth-protected-resource/mcp"


class Clock:
    """A clock that the test advances."""

    def __init__(self):
        self.now = time.time()

    def __call__(self):
        """Return the time, in seconds."""
        return self.now


@pytest.fixture
def issuer():
    """An issuer with one key."""
    with issuing() as issuer:
        yield issuer


@pytest.fixture
def clock():
    """The clock of the server."""
    return Clock()


def make_authorizer(issuer, clock=time.time, scopes=(), resource=RESOURCE):
    """Return an authorizer that accepts tokens of *issuer*."""
    scheme = BearerScheme(resource, issuer.url, scopes)
    return Authorizer(scheme, JwtVerifier(Issuer(issuer.url, clock=clock), resource, clock), clock)


def check(authorizer, token, query=b"", prefix="Bearer "):
    """Return the principal of a request with *token*, or the response that rejects it."""
    values = [f"{prefix}{value}" for value in token] if isinstance(token, list) else f"{prefix}{token}"
    return asyncio.run(authorizer.check(head(authorization=values), query))


def challenge(response):
    """Return the status and the challenge of a response, which must have exactly one challenge."""
    assert isinstance(response, HttpResponse), response
    (value,) = [value.decode() for name, value in response.headers if name == b"www-authenticate"]
    return response.status, value


def unsigned_token(header, claims):
    """Return a token without a signature."""
    parts = [urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims)]
    return ".".join([*parts, ""])


class TestAcceptedTokens:
    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_every_asymmetric_algorithm_is_accepted(self, issuer, algorithm, recwarn):
        """A token signed with any asymmetric algorithm is accepted, with its subject and scopes."""
        issuer.list_key(algorithm, "second")

        principal = check(
            make_authorizer(issuer), issuer.token(RESOURCE, algorithm, "second", scope="read write")
        )

        assert (principal.subject, principal.scopes) == ("ada", {"read", "write"})
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
            "invalid scope",
            "exact text",
            "a program on behalf of a user",
            "a program",
            "a program, by OpenID Connect",
        ],
    )
    def test_variants_of_claims(self, issuer, changed, principal):
        """
        Scopes are in `scope` or `scp`. Without a subject, the client id identifies a program, never a user
        whose subject is the same string.
        """
        authenticated = check(make_authorizer(issuer), issuer.token(RESOURCE, **changed))

        assert (authenticated.identity, authenticated.scopes) == (principal.identity, principal.scopes)

    @pytest.mark.parametrize("typ", [None, "JWT", "jwt", "at+jwt", "application/at+jwt"])
    def test_accepted_token_types(self, issuer, typ):
        """The `typ` header names an access token, a generic JWT, or is missing."""
        assert check(make_authorizer(issuer), issuer.token(RESOURCE, header={"typ": typ})).subject == "ada"

    def test_unused_header_parameters_are_ignored(self, issuer):
        """Header parameters that contain or locate a key have no effect."""
        foreign_key = key_for("ES256", 1)
        parameters = {
            "jwk": foreign_key.as_dict(private=False),
            "jku": "https://evil.example",
            "x5t": "x" * 700,
        }
        authorizer = make_authorizer(issuer)

        assert check(authorizer, issuer.token(RESOURCE, header=parameters)).subject == "ada"
        assert (
            challenge(check(authorizer, issuer.token(RESOURCE, header=parameters, key=foreign_key)))[0] == 401
        )

    def test_token_without_a_key_id(self, issuer):
        """A token without a key id is accepted only if the issuer has one key."""
        token = issuer.token(RESOURCE, kid=None)

        assert check(make_authorizer(issuer), token).subject == "ada"
        issuer.list_key("ES256", "second", 1)
        assert challenge(check(make_authorizer(issuer), token))[0] == 401

    @pytest.mark.parametrize("path", ["", "/tenant"])
    @pytest.mark.parametrize("missing", [False, True])
    def test_metadata_locations(self, path, missing):
        """The metadata is found at the path of RFC 8414 or of OpenID Connect."""
        with issuing(path) as issuer:
            if missing:
                issuer.answers[f"/.well-known/oauth-authorization-server{path}"] = (404, {})
            assert check(make_authorizer(issuer), issuer.token(RESOURCE)).subject == "ada"

    def test_clock_skew_is_tolerated(self, issuer, clock):
        """The clocks of the issuer and the server can differ by half a minute."""
        now = int(clock.now)
        late = issuer.token(RESOURCE, exp=now - LEEWAY_S + 5)
        early = issuer.token(RESOURCE, nbf=now + LEEWAY_S - 5, iat=now + LEEWAY_S - 5)

        assert [check(make_authorizer(issuer, clock), token).subject for token in (late, early)] == [
            "ada",
            "ada",
        ]


class TestRejectedTokens:
    @pytest.fixture
    def invalid_tokens(self, issuer):
        """Tokens that are each invalid in one way, with the reason that standard error reports."""
        now = int(time.time())
        public = key_for("ES256").as_pem(private=False)
        shared_key = OctKey.import_key(public.replace(b"-----BEGIN", b"-----begin"))
        valid = issuer.token(RESOURCE)
        signed_part, _, signature = valid.rpartition(".")
        claims = issuer.claims(RESOURCE)
        is_ec = {"alg": "ES256", "kid": "first"}
        return {
            "algorithm none": (unsigned_token({"alg": "none"}, claims), "unsupported algorithm"),
            "algorithm None": (
                unsigned_token({"alg": "None", "kid": "first"}, claims),
                "unsupported algorithm",
            ),
            "no algorithm": (unsigned_token({"kid": "first"}, claims), "missing algorithm"),
            "no signature": (f"{signed_part}.", "bad signature"),
            "a shared key": (
                sign_token({"alg": "HS256", "kid": "first"}, claims, shared_key),
                "unsupported algorithm",
            ),
            "another key": (issuer.token(RESOURCE, key=key_for("ES256", 1)), "bad signature"),
            "another algorithm": (
                issuer.token(RESOURCE, "RS256"),
                "invalid key type",
            ),
            "changed": (f"{signed_part}.{signature[::-1]}", "bad signature"),
            "another audience": (
                issuer.token("https://other.example/mcp"),
                "invalid claim (aud)",
            ),
            "the audience and more": (issuer.token(RESOURCE + "/"), "invalid claim (aud)"),
            "no audience": (
                issuer.token(None),
                "missing claim (aud)",
            ),
            "an audience of numbers": (issuer.token([1, 2]), "invalid claim (aud)"),
            "another issuer": (
                issuer.token(RESOURCE, iss="https://evil.example"),
                "invalid claim (iss)",
            ),
            "no issuer": (
                issuer.token(RESOURCE, iss=None),
                "missing claim (iss)",
            ),
            "expired": (issuer.token(RESOURCE, exp=now - LEEWAY_S - 1), "expired token (exp)"),
            "no expiry": (
                issuer.token(RESOURCE, exp=None),
                "missing claim (exp)",
            ),
            "invalid expiry": (
                issuer.token(RESOURCE, exp="tomorrow"),
                "invalid claim (exp)",
            ),
            "not yet": (issuer.token(RESOURCE, nbf=now + LEEWAY_S + 60), "invalid claim (nbf)"),
            "from the future": (
                issuer.token(RESOURCE, iat=now + LEEWAY_S + 60),
                "invalid claim (iat)",
            ),
            "no subject": (issuer.token(RESOURCE, sub=None), "missing claim (sub)"),
            "numeric client id": (
                issuer.token(RESOURCE, sub=None, client_id=5),
                "missing claim (sub)",
            ),
            "half a surrogate": (
                issuer.token(RESOURCE, sub="ada\ud800"),
                "invalid claim (sub)",
            ),
            "half a surrogate, a program": (
                issuer.token(RESOURCE, sub=None, client_id="\udfff"),
                "invalid claim (sub)",
            ),
            "a logout": (
                issuer.token(RESOURCE, header={"typ": "logout+jwt"}),
                "unsupported header",
            ),
            "critical": (
                sign_token({**is_ec, "crit": ["b64"], "b64": True}, claims, key_for("ES256")),
                "unsupported header",
            ),
            "encrypted": ("a.b.c.d.e", "it is not a JSON Web Token"),
            "opaque": ("opaque-token", "it is not a JSON Web Token"),
            "dots": ("..", "it is not a JSON Web Token"),
            "deep": (
                urlsafe_b64encode(b'{"alg":' + b"[" * 5000).decode() + ".e30.e30",
                "it is not a JSON Web Token",
            ),
            "invalid key id": (
                unsigned_token({"alg": "ES256", "kid": 5}, claims),
                "invalid header value",
            ),
            "a list": (
                sign_token(is_ec, claims, key_for("ES256")).split(".")[0] + ".W10.e30",
                "bad signature",
            ),
        }

    def test_invalid_tokens_are_rejected(self, issuer, invalid_tokens, capfd):
        """
        The client gets 401 with the same challenge for every reason; standard error reports the reason
        without the token.
        """
        for kind, (token, reason) in invalid_tokens.items():
            status, header = challenge(check(make_authorizer(issuer, scopes=["read", "list"]), token))

            assert (kind, status) == (kind, 401)
            assert header == (
                'Bearer realm="mcp", error="invalid_token", error_description="this token is not valid here: '
                'it is unknown, has expired, or is for another server", scope="read list", '
                f'resource_metadata="{METADATA}"'
            )
            stderr = capfd.readouterr().err
            assert stderr == f"promptkit: a token was rejected: {reason} (this is reported only once)\n", kind
            assert all(part not in stderr for part in token.split(".") if len(part) > 8), kind

    def test_rejection_is_reported_once(self, issuer, capfd):
        """Repeated invalid tokens do not fill the log."""
        authorizer = make_authorizer(issuer)
        for _ in range(3):
            check(authorizer, "opaque")
        assert capfd.readouterr().err.count("\n") == 1

    @pytest.mark.parametrize("token", ["a b", "a,b", 'a"b', "ä", "a\x7f", "x\x00"])
    def test_malformed_token_is_rejected(self, issuer, token):
        """A malformed token is rejected with 400 before the issuer is contacted."""
        status, header = challenge(check(make_authorizer(issuer), token))

        assert (status, 'error="invalid_request"' in header) == (400, True)
        assert issuer.key_requests == 0

    def test_repeated_authorization_header_is_rejected(self, issuer):
        """Two Authorization headers are rejected with 400, even if they are equal."""
        status, header = challenge(check(make_authorizer(issuer), [issuer.token(RESOURCE)] * 2))

        assert status == 400
        assert 'error_description="the Authorization header was sent more than once"' in header

    @pytest.mark.parametrize("query", [b"access_token=%b", b"a=1&access%%5ftoken=%b", b"access_token=%b&a"])
    def test_token_in_the_url_is_rejected(self, issuer, query):
        """A token in the URL is rejected with 400 even with a valid header, because URLs are logged."""
        token = issuer.token(RESOURCE).encode()
        authorizer = make_authorizer(issuer)
        without_header = asyncio.run(authorizer.check(head(), query % token))
        with_header = check(authorizer, token.decode(), query % token)

        for response in (without_header, with_header):
            status, header = challenge(response)
            assert (status, 'error="invalid_request"' in header) == (400, True)
            assert token not in response.body + header.encode()

    @pytest.mark.parametrize("value", [None, "Basic YTpi", "", "Token x"])
    def test_missing_token_is_rejected(self, issuer, value):
        """
        A request without a token gets a challenge with the metadata and the scopes, but without an error.
        """
        response = asyncio.run(make_authorizer(issuer, scopes=["read"]).check(head(authorization=value), b""))

        assert challenge(response) == (
            401,
            f'Bearer realm="mcp", scope="read", resource_metadata="{METADATA}"',
        )

    def test_missing_scope_is_rejected(self, issuer):
        """A missing scope is rejected with 403, and the challenge names all scopes of the operation."""
        authorizer = make_authorizer(issuer, scopes=["read", "write"])
        status, header = challenge(check(authorizer, issuer.token(RESOURCE, scope="read other")))

        assert status == 403
        assert header == (
            'Bearer realm="mcp", error="insufficient_scope", '
            'error_description="this token lacks a required scope: '
            f'it needs read write", scope="read write", resource_metadata="{METADATA}"'
        )
        assert check(authorizer, issuer.token(RESOURCE, scope="other write read")).subject == "ada"


class TestKeys:
    @pytest.mark.filterwarnings("ignore:Key size should be")
    @pytest.mark.parametrize("bits", [1024, 1536, 2040])
    def test_weak_rsa_key_with_leading_zeros_is_rejected(self, issuer, bits):
        """Leading zeros do not count towards the size of an RSA key."""
        weak = RSAKey.generate_key(bits)
        modulus = weak.public_key.public_numbers().n.to_bytes(300)
        jwk = {**weak.as_dict(private=False), "n": urlsafe_b64encode(modulus).decode(), "kid": "weak"}
        issuer.keys.append(jwk)

        assert import_key(jwk).public_key.key_size == bits
        assert (
            challenge(check(make_authorizer(issuer), issuer.token(RESOURCE, "RS256", "weak", weak)))[0] == 401
        )
        issuer.list_key("RS256", "strong")
        assert check(make_authorizer(issuer), issuer.token(RESOURCE, "RS256", "strong")).subject == "ada"

    @pytest.mark.parametrize(
        ("algorithm", "key"),
        [
            ("ES256", ECKey.generate_key("secp256k1")),
            ("ES512", ECKey.generate_key("P-256")),
            ("Ed25519", OKPKey.generate_key("Ed448")),
        ],
        ids=["another curve", "a smaller curve", "another curve of Edwards"],
    )
    def test_key_of_another_curve_is_rejected(self, issuer, algorithm, key, capfd):
        """A key on a curve other than the algorithm's verifies no signature."""
        issuer.keys.append({**key.as_dict(private=False), "kid": "other"})
        token = issuer.token(RESOURCE, algorithm, "other")

        assert challenge(check(make_authorizer(issuer), token))[0] == 401
        assert "a token was rejected: invalid key curve" in capfd.readouterr().err


class TestRequestsToTheIssuer:
    def test_verified_token_is_cached(self, issuer, clock, monkeypatch):
        """A token is cached for five minutes or until it expires."""
        authorizer = make_authorizer(issuer, clock)
        token, short = issuer.token(RESOURCE), issuer.token(RESOURCE, exp=int(clock.now) + 10)
        assert [check(authorizer, each).subject for each in (token, short)] == ["ada", "ada"]
        monkeypatch.setattr(authorizer, "_verifier", None)

        clock.now += 9
        assert [check(authorizer, each).subject for each in (token, short)] == ["ada", "ada"]
        clock.now += LEEWAY_S + 1
        assert check(authorizer, token).subject == "ada"
        assert check(authorizer, short).status == 503
        clock.now += CACHE_S
        assert check(authorizer, token).status == 503

    def test_token_cache_is_bounded(self, issuer, monkeypatch):
        """The oldest token is evicted, and verified again when it returns."""
        monkeypatch.setattr("promptkit.transports.auth.authorizer._MAX_CACHED", 3)
        authorizer = make_authorizer(issuer)
        for number in range(10):
            assert check(authorizer, issuer.token(RESOURCE, jti=str(number))).subject == "ada"
        assert len(authorizer._cached) == 3

    def test_unknown_key_ids_do_not_flood_the_issuer(self, issuer, clock):
        """However many unknown key ids arrive, the issuer is contacted at most once per cool-down."""
        authorizer = make_authorizer(issuer, clock)
        tokens = [issuer.token(RESOURCE, kid=f"k{number}") for number in range(50)]

        for cool_downs in range(1, 4):
            for token in tokens:
                assert challenge(check(authorizer, token))[0] == 401
            assert issuer.key_requests == cool_downs
            clock.now += COOL_DOWN_S

    def test_concurrent_requests_share_one_fetch(self, issuer):
        """Requests on several event loops wait for the same first fetch of the keys."""
        authorizer = make_authorizer(issuer)
        token = issuer.token(RESOURCE)

        async def authenticate_many():
            return await asyncio.gather(
                *(authorizer.check(head(authorization=f"Bearer {token}"), b"") for _ in range(20))
            )

        async def run_loops():
            return await asyncio.gather(
                *(asyncio.to_thread(asyncio.run, authenticate_many()) for _ in range(4))
            )

        subjects = [principal.subject for principals in asyncio.run(run_loops()) for principal in principals]
        assert (subjects, issuer.key_requests) == (["ada"] * 80, 1)

    def test_cancelled_request_does_not_cancel_the_shared_fetch(self, issuer):
        """A disconnected client does not affect other requests that wait for the same keys."""
        authorizer = make_authorizer(issuer)
        token = issuer.token(RESOURCE)

        async def authenticate_two():
            request = head(authorization=f"Bearer {token}")
            tasks = [asyncio.ensure_future(authorizer.check(request, b"")) for _ in range(2)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            return (await asyncio.gather(*tasks, return_exceptions=True))[1]

        assert asyncio.run(authenticate_two()).subject == "ada"

    def test_new_key_is_fetched(self, issuer, clock):
        """Keys are fetched again for the first token with a new key id."""
        authorizer = make_authorizer(issuer, clock)
        assert check(authorizer, issuer.token(RESOURCE)).subject == "ada"
        issuer.list_key("ES256", "second", 1)
        clock.now += COOL_DOWN_S

        principal = check(authorizer, issuer.token(RESOURCE, kid="second", key=key_for("ES256", 1)))

        assert (principal.subject, issuer.key_requests) == ("ada", 2)

    def test_tokens_of_a_withdrawn_key_are_rejected(self, issuer, clock):
        """The keys are fetched again after five minutes, and cached tokens expire within another five."""
        authorizer = make_authorizer(issuer, clock)
        token, uncached = issuer.token(RESOURCE), issuer.token(RESOURCE, jti="2")
        check(authorizer, token)
        issuer.keys.clear()
        issuer.list_key("ES256", "second", 1)
        clock.now += REFRESH_AFTER_S + 1

        assert [check(authorizer, each).status for each in (uncached, token)] == [401, 401]

    def test_unavailable_issuer(self, issuer, clock, capfd):
        """
        Until the keys are first fetched, requests are rejected with 503. Fetched keys are trusted for an
        hour.
        """
        authorizer = make_authorizer(issuer, clock)
        token = issuer.token(RESOURCE, exp=int(clock.now) + 10**6)
        issuer.answers["/jwks"] = (500, {})
        assert [check(authorizer, token).status for _ in range(3)] == [503] * 3
        assert issuer.key_requests == 1
        assert capfd.readouterr().err == (
            f"promptkit: the keys of {issuer.url} cannot be fetched: {issuer.origin}/jwks: HTTP Error 500: "
            "Internal Server Error; the next attempt is in 30 s at the earliest\n"
        )
        clock.now += COOL_DOWN_S
        del issuer.answers["/jwks"]
        assert check(authorizer, token).subject == "ada"

        issuer.answers["/jwks"] = (500, {})
        clock.now += MAX_KEY_AGE_S - 1
        assert check(authorizer, token).subject == "ada"
        assert check(authorizer, issuer.token(RESOURCE, kid="new", exp=int(clock.now) + 600)).status == 503
        clock.now += CACHE_S + 2
        assert check(authorizer, token).status == 503

    def test_stream_stays_open_while_the_issuer_is_unavailable(self, issuer, clock):
        """A stream whose token cannot be verified again stays open until the token expires."""
        authorizer = make_authorizer(issuer, clock)
        expiry = int(clock.now + MAX_KEY_AGE_S + 600)
        request = head(authorization=f"Bearer {issuer.token(RESOURCE, exp=expiry)}")
        principal = asyncio.run(authorizer.check(request, b""))
        issuer.answers["/jwks"] = (500, {})

        clock.now += MAX_KEY_AGE_S + 1
        assert asyncio.run(authorizer.check(request, b"")).status == 503
        assert asyncio.run(authorizer.still_admits(request, principal))
        clock.now = expiry + LEEWAY_S
        assert not asyncio.run(authorizer.still_admits(request, principal))

    def test_503_has_a_retry_after_header(self, issuer):
        """A 503 response has a Retry-After header, but no challenge, so that the client keeps its token."""
        issuer.answers["/jwks"] = (500, {})
        response = check(make_authorizer(issuer), issuer.token(RESOURCE))

        assert (b"retry-after", b"1") in response.headers
        assert b"www-authenticate" not in dict(response.headers)

    @pytest.mark.parametrize(
        ("path", "answer", "expected"),
        [
            ("/jwks", (200, b"{"), "Input data was truncated"),
            ("/jwks", (200, []), "Expected `object`, got `array`"),
            ("/jwks", (200, {"keys": []}), "it contains no usable key"),
            (
                "/jwks",
                (200, {"keys": [{"kty": "oct", "k": "c2VjcmV0"}, 5]}),
                "it contains no usable key",
            ),
            ("/jwks", (200, {"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}), "contains no usable key"),
            (
                "/jwks",
                (200, {"keys": [{"kty": "EC", "crv": "P-257", "x": "a", "y": "b"}]}),
                "it contains no usable key",
            ),
            ("/jwks", (200, b" " * 1_100_000), "it is larger than 1,048,576 bytes"),
            ("/jwks", (302, b"", {"location": "http://127.0.0.1:1/jwks"}), "HTTP Error 302: Found"),
            ("/jwks", (200, b'{"keys":' * 100_000), "while deserializing an object"),
            ("meta", (200, {"issuer": "https://evil.example"}), "it is the metadata of another issuer"),
            ("meta", (200, {}), "it is the metadata of another issuer: None"),
            ("meta", (500, {}), "HTTP Error 500"),
            ("meta", (404, {}), "HTTP Error 404"),
        ],
    )
    def test_unusable_documents_of_the_issuer(self, issuer, path, answer, expected, capfd):
        """
        If a document of the issuer is unusable, requests are rejected with 503, and the reason is reported.
        """
        paths = [path]
        if path == "meta":
            paths = [
                f"/.well-known/{name}" for name in ("oauth-authorization-server", "openid-configuration")
            ]
        issuer.answers.update(dict.fromkeys(paths, answer))

        assert check(make_authorizer(issuer), issuer.token(RESOURCE)).status == 503
        assert expected in capfd.readouterr().err

    @pytest.mark.parametrize(
        "answer", [(404, b"none"), (302, b"", {"location": "/jwks"}), (500, b"x" * 100_000)]
    )
    def test_error_response_is_closed(self, issuer, answer):
        """The response of a failed fetch is closed, even while the exception is referenced."""
        issuer.answers["/keys"] = answer
        with pytest.raises(DocumentUnavailableError, match=f"HTTP Error {answer[0]}") as caught:
            fetch_document(f"{issuer.origin}/keys")
        assert caught.value.__context__.closed

    @pytest.mark.parametrize("url", ["http://keys.example/jwks", "file:///etc/passwd", 5, None])
    def test_insecure_key_locations_are_rejected(self, issuer, url, capfd):
        """Keys are fetched over HTTPS or from this machine only."""
        metadata = {**issuer.metadata(), "jwks_uri": url}
        issuer.answers["/.well-known/oauth-authorization-server"] = (200, metadata)

        assert check(make_authorizer(issuer), issuer.token(RESOURCE)).status == 503
        assert (
            "cannot be used: write an https" if isinstance(url, str) else "it does not contain a jwks_uri"
        ) in capfd.readouterr().err

    def test_wait_for_the_issuer_is_bounded(self, issuer, monkeypatch):
        """A request stops waiting after a timeout; the fetch continues and serves later requests."""
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
def test_invalid_issuer_url_is_rejected(url):
    """The URL of an issuer must use HTTPS and have no query."""
    with pytest.raises(ValueError, match="cannot be used: write an https"):
        Issuer(url)
