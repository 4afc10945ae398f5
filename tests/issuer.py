"""A local token issuer: keys, metadata, and the endpoints from which a client gets a token."""

import json
import secrets
import time
from base64 import urlsafe_b64encode
from collections import Counter
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from joserfc import jws
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

#: The key type of each algorithm.
ALGORITHMS = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    "ES256": "P-256",
    "ES384": "P-384",
    "ES512": "P-521",
    "EdDSA": "Ed25519",
    "Ed25519": "Ed25519",
}


def key_for(algorithm, number=0):
    """Return a private key; keys with different numbers are different."""
    return _generate_key(ALGORITHMS[algorithm], number)


@cache
def _generate_key(kind, _number):
    if kind == "RSA":
        return RSAKey.generate_key(2048)
    return OKPKey.generate_key(kind) if kind == "Ed25519" else ECKey.generate_key(kind)


class _Registry(JWSRegistry):
    """A registry that signs with any algorithm, without a warning."""

    max_header_length = 10**6
    max_payload_length = 10**7

    def get_alg(self, name):
        return self.algorithms[name]


def sign_token(header, claims, key):
    """Return a token with this header and these claims."""
    payload = json.dumps(claims).encode()
    return jws.serialize_compact(header, payload, key, registry=_Registry(strict_check_header=False))


class Issuer:
    """
    A token issuer, with an HTTP server for clients and servers.

    Attributes:
        url: The issuer's identifier.
        asked: The number of requests for each path.
        keys: The listed public keys, as JSON data.
        grants: How many of the requested scopes to grant, for each token; later tokens get all scopes.
        answers: Replies that replace the issuer's own, by path: a status and a body.
    """

    def __init__(self, path=""):
        self.asked, self.answers, self.grants, self.keys = Counter(), {}, [], []
        self.clients, self.codes = {}, {}
        self.list_key("ES256", "first")
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"issuer": self}))
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.path, self.url = path, f"{self.origin}{path}"

    def list_key(self, algorithm, kid, number=0, **members):
        """List the public half of a key."""
        public = key_for(algorithm, number).as_dict(private=False)
        self.keys.append({**public, "kid": kid, **members})

    def claims(self, audience, **changed):
        """Return the claims of a valid token with these changes; None removes a claim."""
        now = int(time.time())
        valid_claims = {
            "iss": self.url,
            "aud": audience,
            "sub": "ada",
            "iat": now,
            "exp": now + 600,
            "scope": "read",
        }
        return {name: value for name, value in {**valid_claims, **changed}.items() if value is not None}

    def token(self, audience, algorithm="ES256", kid="first", key=None, header=None, **changed):
        """Return a token that is valid for *audience*, apart from the changes."""
        head = {"alg": algorithm, "kid": kid, "typ": "at+jwt", **(header or {})}
        head = {name: value for name, value in head.items() if value is not None}
        return sign_token(head, self.claims(audience, **changed), key or key_for(algorithm))

    @property
    def key_requests(self):
        """The number of requests for the keys."""
        return self.asked["/jwks"]

    def metadata(self):
        """Return the metadata of the authorization server."""
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.origin}/jwks",
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
        }

    def authorize(self, request):
        """Return the redirect URL after the user's consent."""
        assert (request["response_type"], request["code_challenge_method"]) == ("code", "S256")
        code = secrets.token_urlsafe()
        self.codes[code] = request
        parameters = {"code": code, "state": request["state"], "iss": self.url}
        return f"{request['redirect_uri']}?{urlencode(parameters)}"

    def exchange(self, form):
        """Return the token response for a code, and check the client's proof key."""
        request = self.codes.pop(form["code"])
        proof = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        assert (proof, form["resource"]) == (request["code_challenge"], request["resource"])
        scopes = request.get("scope", "").split()
        if self.grants:
            scopes = scopes[: self.grants.pop(0)]
        token = self.token(form["resource"], scope=" ".join(scopes))
        return {"access_token": token, "token_type": "Bearer", "expires_in": 600, "scope": " ".join(scopes)}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, query = urlsplit(self.path)[2:4]
        if self.answered(path):
            return
        before, after = f"/.well-known/oauth-authorization-server{self.issuer.path}", self.issuer.path
        if path in (before, f"{after}/.well-known/openid-configuration"):
            self.reply(200, self.issuer.metadata())
        elif path == "/jwks":
            self.reply(200, {"keys": self.issuer.keys})
        elif path == "/authorize":
            self.reply(302, {}, location=self.issuer.authorize(dict(parse_qsl(query))))
        else:
            self.reply(404, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.answered(self.path):
            return
        if self.path == "/register":
            registration = json.loads(body)
            self.reply(201, {**registration, "client_id": "c1", "token_endpoint_auth_method": "none"})
        elif self.path == "/token":
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            self.reply(200, self.issuer.exchange(form))
        else:
            self.reply(404, {})

    def answered(self, path):
        """Count the request, and send the reply that the test has set for this path, if any."""
        self.issuer.asked[path] += 1
        if path not in self.issuer.answers:
            return False
        status, body, *fields = self.issuer.answers[path]
        self.reply(status, body, **(fields[0] if fields else {}))
        return True

    def reply(self, status, body, **fields):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        headers = {"content-type": "application/json", "content-length": str(len(data)), **fields}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Discard the server's log messages."""


@contextmanager
def issuing(path=""):
    """Run an issuer."""
    issuer = Issuer(path)
    thread = Thread(target=issuer.server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        issuer.server.shutdown()
        issuer.server.server_close()
        thread.join()
