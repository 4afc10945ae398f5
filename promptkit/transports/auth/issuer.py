"""
Token issuers: fetching an issuer's metadata and public keys, and checking the signatures of its tokens.

The keys are fetched on demand, in a separate thread, and again when a token names an unknown key. Documents
are fetched only from the configured issuer and from the key URL in its metadata, with a timeout and a maximum
size. See https://www.rfc-editor.org/rfc/rfc8414, https://www.rfc-editor.org/rfc/rfc7517,
https://www.rfc-editor.org/rfc/rfc8725 and https://openid.net/specs/openid-connect-discovery-1_0.html.
"""

import asyncio
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from math import inf
from threading import Lock, Thread, Timer
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

import msgspec
from joserfc import errors, jwt
from joserfc.jwa import JWSAlgModel
from joserfc.jwk import Key, KeySet, OctKey, RSAKey, import_key
from joserfc.jws import JWSRegistry

from promptkit.protocol.principals import VerifierUnavailableError
from promptkit.standard_error import say
from promptkit.transports.auth.urls import secure_url
from promptkit.version import VERSION

#: Age after which keys are fetched again, and maximum age of keys while the issuer is unreachable, in
#: seconds.
REFRESH_AFTER_S: Final = 300.0
MAX_KEY_AGE_S: Final = 3600.0

#: Minimum time between two fetches, in seconds, regardless of the tokens that arrive.
COOL_DOWN_S: Final = 30.0

#: How long a request waits for keys, in seconds.
_WAIT_S: Final = 10.0

#: Minimum size of an RSA key, because smaller ones can be factored (RFC 7518, section 3.3). The size of an
#: elliptic curve key follows from its algorithm.
_RSA_BITS: Final = 2048

#: Timeouts for one socket operation and for the whole response, in seconds.
_SOCKET_TIMEOUT_S: Final = 5.0
_FETCH_TIMEOUT_S: Final = 8.0

_MAX_BYTES: Final = 1024 * 1024

#: Allowed signature algorithms. All of them are asymmetric, because with a shared key, the verifier could
#: also sign tokens. A token must be signed with the algorithm that it names.
ALGORITHMS: Final = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
)


class DocumentUnavailableError(Exception):
    """A document cannot be fetched or used. The message gives the reason."""


class _NoRedirects(HTTPRedirectHandler):
    """Rejects redirects, because another server must not decide which keys this server trusts."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _DeadlineHandler(HTTPSHandler, HTTPHandler):
    """Opens connections that a timer shuts down, because the timeout of a socket restarts with each byte."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.is_expired = False
        self._socket: socket.socket | None = None
        self._timer = Timer(seconds, self._shut_down)
        self._timer.daemon = True

    def do_open(self, http_class: Any, req: Request, **arguments: Any) -> HTTPResponse:
        def create_connection(*args: Any, **kwargs: Any) -> HTTPConnection:
            connection: HTTPConnection = http_class(*args, **kwargs)
            connection._create_connection = self._connect  # type: ignore[attr-defined]  # noqa: SLF001 (there is no public API)
            return connection

        return super().do_open(create_connection, req, **arguments)

    def end(self) -> None:
        """Cancel the timer and release the connection."""
        self._timer.cancel()
        if self._socket is not None:
            self._socket.close()

    def _connect(self, *address: Any) -> socket.socket:
        connected = socket.create_connection(*address)
        self._socket = connected.dup()  # TLS detaches the original
        self._timer.start()
        return connected

    def _shut_down(self) -> None:
        self.is_expired = True
        if self._socket is not None:
            with suppress(OSError):  # the peer has closed it already
                self._socket.shutdown(socket.SHUT_RDWR)


def fetch_document(url: str, seconds: float = _FETCH_TIMEOUT_S) -> dict[str, Any]:
    """
    Fetch the JSON object at a URL, blocking until it has arrived.

    Args:
        url:
            An ``https`` URL, or an ``http`` URL on this machine.

        seconds:
            The timeout for the whole response, after which the connection is closed.

    Raises:
        DocumentUnavailableError: If the document cannot be fetched in time, is too large, or is not a JSON
            object.
    """
    handler = _DeadlineHandler(seconds)
    try:
        document = msgspec.json.decode(_read(secure_url(url), handler), type=dict[str, Any])
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        if isinstance(error, HTTPError):  # the error holds an open response
            error.close()
        reason = f"it did not arrive within {seconds:g} s" if handler.is_expired else error
        msg = f"{url}: {reason}"
        raise DocumentUnavailableError(msg) from None
    finally:
        handler.end()
    return document


def _read(url: str, handler: _DeadlineHandler) -> bytes:
    request = Request(url, headers={"accept": "application/json", "user-agent": f"promptkit/{VERSION}"})  # noqa: S310 (the URL is checked)
    proxies = [ProxyHandler({})] if urlsplit(url).scheme == "http" else []  # no proxy for this machine
    with build_opener(_NoRedirects, handler, *proxies).open(request, timeout=_SOCKET_TIMEOUT_S) as response:
        data: bytes = response.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        msg = f"it is larger than {_MAX_BYTES:,} bytes"
        raise ValueError(msg)
    return data


class _Registry(JWSRegistry):
    """The library's algorithms, restricted to `ALGORITHMS`. Unknown header fields are ignored."""

    max_header_length = 8192

    def get_alg(self, name: str) -> JWSAlgModel:
        if name not in ALGORITHMS:
            raise errors.UnsupportedAlgorithmError
        return self.algorithms[name]  # without the library's warning about EdDSA, which issuers still use


_REGISTRY: Final = _Registry(strict_check_header=False)


class Issuer:
    """
    A token issuer and its cached public keys.

    Args:
        url:
            The issuer's identifier, which is a URL.

        fetch:
            Fetches the JSON object at a URL.

        clock:
            Returns a monotonic time, in seconds.

    Raises:
        ValueError: If *url* is not valid.
    """

    def __init__(
        self,
        url: str,
        fetch: Callable[[str], dict[str, Any]] = fetch_document,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = secure_url(url)
        self._fetch = fetch
        self._clock = clock
        self._keys = KeySet([])
        self._fetched_at = self._last_attempt = -inf
        self._has_failed = False
        self._pending: Future[None] | None = None
        self._lock = Lock()

    async def decode(self, token: str) -> jwt.Token:
        """
        Check that this issuer has signed a token, and return the token's content without validating it.

        Args:
            token:
                Any text. If a token has no key id, the issuer must have only one key.

        Raises:
            VerifierUnavailableError: If the keys cannot be fetched.

            Exception: An error from `joserfc`, or any other exception, if the text is not a token that the
                issuer has signed.
        """
        if self._age() > REFRESH_AFTER_S:
            await self._refresh()
        if self._age() > MAX_KEY_AGE_S:
            raise VerifierUnavailableError
        try:
            return jwt.decode(token, self._keys, registry=_REGISTRY)
        except errors.InvalidKeyIdError:
            await self._refresh()
        if self._has_failed:
            raise VerifierUnavailableError
        return jwt.decode(token, self._keys, registry=_REGISTRY)

    def _age(self) -> float:
        return self._clock() - self._fetched_at

    async def _refresh(self) -> None:
        """
        Fetch the keys, unless the last attempt was too recent, and wait for any fetch that is running.

        Requests on all event loops share one fetch.
        """
        with self._lock:
            if self._pending is None and self._clock() - self._last_attempt >= COOL_DOWN_S:
                self._last_attempt = self._clock()
                pending: Future[None] = Future()
                pending.set_running_or_notify_cancel()  # a client that disconnects must not cancel it
                Thread(target=self._load, args=[pending], name="promptkit-issuer", daemon=True).start()
                self._pending = pending
            current = self._pending
        if current is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(current), _WAIT_S)

    def _load(self, pending: "Future[None]") -> None:
        try:
            self._keys = self._fetch_keys()
            self._fetched_at, self._has_failed = self._clock(), False
        except DocumentUnavailableError as error:
            self._has_failed = True
            say(
                f"the keys of {self.url} cannot be fetched: {error}; "
                f"the next attempt is in {COOL_DOWN_S:g} s at the earliest"
            )
        finally:
            with self._lock:
                self._pending = None
            pending.set_result(None)

    def _fetch_keys(self) -> KeySet:
        url = self._discover_keys_url()
        jwks = self._fetch(url).get("keys")
        keys = [key for entry in (jwks if isinstance(jwks, list) else []) if (key := _public_key(entry))]
        if not keys:
            msg = f"{url}: it contains no usable key"
            raise DocumentUnavailableError(msg)
        return KeySet(keys)

    def _discover_keys_url(self) -> str:
        """Return the URL of the issuer's keys, from the first metadata document that can be fetched."""
        failures = list[str]()
        for url in _metadata_urls(self.url):
            try:
                metadata = self._fetch(url)
            except DocumentUnavailableError as error:
                failures.append(str(error))
                continue
            if metadata.get("issuer") != self.url:
                msg = f"{url}: it is the metadata of another issuer: {metadata.get('issuer')!r:.200}"
                raise DocumentUnavailableError(msg)
            keys_url = metadata.get("jwks_uri")
            if not isinstance(keys_url, str):
                msg = f"{url}: it does not contain a jwks_uri"
                raise DocumentUnavailableError(msg)
            return keys_url
        msg = "; ".join(failures)
        raise DocumentUnavailableError(msg)


def _metadata_urls(issuer: str) -> list[str]:
    """Return the possible URLs of an issuer's metadata, in the order that the specification defines."""
    parts = urlsplit(issuer)
    host, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = [
        f"{host}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")
    ]
    return [*urls, f"{host}{path}/.well-known/openid-configuration"] if path else urls


def _public_key(entry: Any) -> Key | None:
    """Return the key in a JWK, or None if the key cannot be used to verify an issuer's signatures."""
    try:
        key = import_key(entry)
    except Exception:  # noqa: BLE001 (the library may not support its type)
        return None
    is_weak = isinstance(key, RSAKey) and key.public_key.key_size < _RSA_BITS
    return None if is_weak or isinstance(key, OctKey) else key
