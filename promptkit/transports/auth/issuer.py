"""
The public keys of an issuer, fetched on a thread on demand, and again when a token names an unknown key.

Documents are fetched only from the configured issuer, with a timeout and a maximum size. See
https://www.rfc-editor.org/rfc/rfc8414, https://www.rfc-editor.org/rfc/rfc7517 and
https://openid.net/specs/openid-connect-discovery-1_0.html.
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
from joserfc.errors import JoseError
from joserfc.jwa import JWSAlgModel
from joserfc.jwk import Key, RSAKey, import_key

from promptkit.protocol.principals import VerifierUnavailableError
from promptkit.standard_error import say
from promptkit.transports.auth.bearer_header import secure_url
from promptkit.version import VERSION

#: How long keys are used without fetching them again, in seconds; and how long if the issuer is unreachable.
FRESH_S: Final = 300.0
TRUSTED_S: Final = 3600.0

#: Minimum time between two fetches, in seconds, whatever tokens arrive.
COOL_DOWN_S: Final = 30.0

#: How long a request waits for keys, in seconds.
_WAIT_S: Final = 10.0

#: Minimum size of an RSA key: smaller ones can be factored (RFC 7518, section 3.3). The size of an elliptic
#: curve key follows from its algorithm.
_RSA_BITS: Final = 2048

#: Timeouts of one socket operation, and of the whole response, in seconds.
_PART_S: Final = 5.0
_WHOLE_S: Final = 8.0

_MAX_BYTES: Final = 1024 * 1024


class DocumentUnavailableError(Exception):
    """A document could not be fetched or is not usable; the text gives the reason."""


class _NoRedirects(HTTPRedirectHandler):
    """Rejects redirects: another server must not decide which keys this one trusts."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _DeadlineHandler(HTTPSHandler, HTTPHandler):
    """Opens connections and closes them at a deadline, because a socket's timeout restarts with each byte."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.is_expired = False
        self._seconds = seconds
        self._socket: socket.socket | None = None
        self._timer = Timer(seconds, self._disconnect)
        self._timer.daemon = True
        self._timer.start()

    def do_open(self, http_class: Any, req: Request, **arguments: Any) -> HTTPResponse:
        def create_connection(*args: Any, **kwargs: Any) -> HTTPConnection:
            connection: HTTPConnection = http_class(*args, **kwargs)
            connection._create_connection = self._connect  # type: ignore[attr-defined]  # noqa: SLF001 (there is no public way)
            return connection

        return super().do_open(create_connection, req, **arguments)

    def check(self) -> None:
        """Raise TimeoutError if the deadline has passed."""
        if self.is_expired:
            msg = f"it did not arrive within {self._seconds:g} s"
            raise TimeoutError(msg)

    def end(self) -> None:
        """Cancel the timer and release the connection."""
        self._timer.cancel()
        if self._socket is not None:
            self._socket.close()

    def _connect(self, *address: Any) -> socket.socket:
        connected = socket.create_connection(*address)
        self._socket = connected.dup()  # TLS detaches the original
        if self.is_expired:
            self._disconnect()
        return connected

    def _disconnect(self) -> None:
        self.is_expired = True
        if self._socket is not None:
            with suppress(OSError):  # the peer has closed it already
                self._socket.shutdown(socket.SHUT_RDWR)


def fetch_document(url: str, seconds: float = _WHOLE_S) -> dict[str, Any]:
    """
    Fetch the JSON object at a URL. This blocks on the network.

    Args:
        url:
            An ``https`` URL, or an ``http`` URL of this machine.

        seconds:
            The timeout, after which the connection is closed.

    Raises:
        DocumentUnavailableError: If it cannot be fetched in time, is too large, or is not a JSON object.
    """
    try:
        document = msgspec.json.decode(_read(secure_url(url), seconds), type=dict[str, Any])
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        if isinstance(error, HTTPError):  # it holds an open response
            error.close()
        msg = f"{url}: {error}"
        raise DocumentUnavailableError(msg) from None
    return document


def _read(url: str, seconds: float) -> bytes:
    request = Request(url, headers={"accept": "application/json", "user-agent": f"promptkit/{VERSION}"})  # noqa: S310 (the URL is checked)
    handler = _DeadlineHandler(seconds)
    proxies = [ProxyHandler({})] if urlsplit(url).scheme == "http" else []  # no proxy on this machine
    try:
        with build_opener(_NoRedirects, handler, *proxies).open(request, timeout=_PART_S) as response:
            data: bytes = response.read(_MAX_BYTES + 1)
    except HTTPError:
        raise
    except (OSError, HTTPException):
        handler.check()
        raise
    finally:
        handler.end()
    handler.check()  # a connection that was shut down can look like the end of the document
    if len(data) > _MAX_BYTES:
        msg = f"it has more than {_MAX_BYTES:,} bytes"
        raise ValueError(msg)
    return data


class Issuer:
    """
    The cached public keys of an issuer.

    Args:
        url:
            The issuer's identifier.

        fetch:
            Fetches the JSON object at a URL.

        clock:
            Returns a monotonic time, in seconds.

    Raises:
        ValueError: If the URL is invalid.
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
        self._keys: list[Key] = []
        self._fetched_at = self._last_attempt = -inf
        self._has_failed = False
        self._pending: Future[None] | None = None
        self._lock = Lock()

    async def find(self, kid: str | None, algorithm: JWSAlgModel) -> Key | None:
        """
        Return the key that a token names; None if the issuer has no such key for the algorithm.

        Args:
            kid:
                The key's id. None means the only key for the algorithm.

            algorithm:
                The algorithm of the token's signature.

        Raises:
            VerifierUnavailableError: If the keys cannot be fetched.
        """
        key = self._cached_key(kid, algorithm)
        if key is None or self._age() > FRESH_S:
            await self._wait_for_refresh()
            key = self._cached_key(kid, algorithm)
        if self._age() > TRUSTED_S or (key is None and self._has_failed):
            raise VerifierUnavailableError
        return key

    def _age(self) -> float:
        return self._clock() - self._fetched_at

    def _cached_key(self, kid: str | None, algorithm: JWSAlgModel) -> Key | None:
        matching = [key for key in self._keys if kid in (None, key.get("kid")) and _fits(key, algorithm)]
        return matching[0] if len(matching) == 1 else None

    async def _wait_for_refresh(self) -> None:
        """Wait until the keys are fetched, unless they were fetched a moment ago."""
        pending = self._start_refresh()
        if pending is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(pending), _WAIT_S)

    def _start_refresh(self) -> "Future[None] | None":
        """Return the pending fetch, and start one if there is none. Requests on all event loops share it."""
        with self._lock:
            if self._pending is None:
                if self._clock() - self._last_attempt < COOL_DOWN_S:
                    return None
                self._last_attempt = self._clock()
                pending: Future[None] = Future()
                pending.set_running_or_notify_cancel()  # a client that disconnects must not cancel it
                Thread(target=self._load, args=[pending], name="promptkit-issuer", daemon=True).start()
                self._pending = pending
            return self._pending

    def _load(self, pending: "Future[None]") -> None:
        try:
            self._keys = self._fetch_keys()
            self._fetched_at, self._has_failed = self._clock(), False
        except DocumentUnavailableError as error:
            self._has_failed = True
            say(f"the keys of {self.url} cannot be fetched: {error}; not asked again for {COOL_DOWN_S:g} s")
        finally:
            with self._lock:
                self._pending = None
            pending.set_result(None)

    def _fetch_keys(self) -> list[Key]:
        url = self._discover_keys_url()
        jwks = self._fetch(url).get("keys")
        keys = [key for entry in (jwks if isinstance(jwks, list) else []) if (key := _public_key(entry))]
        if not keys:
            msg = f"{url}: there is no key that can be used"
            raise DocumentUnavailableError(msg)
        return keys

    def _discover_keys_url(self) -> str:
        """Return the URL of the issuer's keys, from the first metadata document that exists."""
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
                msg = f"{url}: it has no jwks_uri"
                raise DocumentUnavailableError(msg)
            return keys_url
        msg = "; ".join(failures)
        raise DocumentUnavailableError(msg)


def _metadata_urls(issuer: str) -> list[str]:
    """Return the possible URLs of an issuer's metadata, in the order of the specification."""
    parts = urlsplit(issuer)
    host, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = [
        f"{host}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")
    ]
    return [*urls, f"{host}{path}/.well-known/openid-configuration"] if path else urls


def _public_key(entry: object) -> Key | None:
    """Return the key of a JWK; None if it cannot verify an issuer's signatures."""
    if not isinstance(entry, dict) or entry.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    try:
        key = import_key(entry)
    except Exception:  # noqa: BLE001 (the library may not know its type yet)
        return None
    return None if isinstance(key, RSAKey) and key.public_key.key_size < _RSA_BITS else key


def _fits(key: Key, algorithm: JWSAlgModel) -> bool:
    try:
        algorithm.check_key(key)
    except JoseError:
        return False
    return True
