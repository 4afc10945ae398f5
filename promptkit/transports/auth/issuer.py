"""
The keys of an issuer: fetched when they are needed, on a thread, and again when a token names another one.

Documents come from where the issuer was named to be alone, within a time and a size. See
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

#: How long keys are used without asking again, in seconds; and how long if the issuer cannot be reached.
FRESH_S: Final = 300.0
TRUSTED_S: Final = 3600.0

#: How long the issuer is not asked again, in seconds, whatever tokens come.
COOL_DOWN_S: Final = 30.0

#: How long a request waits for keys, in seconds.
_WAIT_S: Final = 10.0

#: Smaller keys of RSA can be factored (RFC 7518, section 3.3). Those of curves have the size of their curve,
#: which the algorithm names.
_RSA_BITS: Final = 2048

#: How long one part of a response may take, and all of it, in seconds.
_PART_S: Final = 5.0
_WHOLE_S: Final = 8.0

_MAX_BYTES: Final = 1024 * 1024


class DocumentUnavailableError(Exception):
    """A document was not fetched, or cannot be used; the text says why."""


class _Stay(HTTPRedirectHandler):
    """Follows no redirect: another server must not get to say what this one trusts."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Timed(HTTPSHandler, HTTPHandler):
    """Connects to a server or its proxy, and disconnects in time: sockets begin again with each byte."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.is_over = False
        self._seconds = seconds
        self._connected: socket.socket | None = None
        self._timer = Timer(seconds, self._disconnect)
        self._timer.daemon = True
        self._timer.start()

    def do_open(self, http_class: Any, req: Request, **arguments: Any) -> HTTPResponse:
        def connection(*given: Any, **named: Any) -> HTTPConnection:
            made: HTTPConnection = http_class(*given, **named)
            made._create_connection = self._connect  # type: ignore[attr-defined]  # noqa: SLF001 (it has no other way)
            return made

        return super().do_open(connection, req, **arguments)

    def check(self) -> None:
        """Raise TimeoutError if the time is up."""
        if self.is_over:
            msg = f"it did not arrive within {self._seconds:g} s"
            raise TimeoutError(msg)

    def end(self) -> None:
        """Stop the clock, and let go of the connection."""
        self._timer.cancel()
        if self._connected is not None:
            self._connected.close()

    def _connect(self, *address: Any) -> socket.socket:
        connected = socket.create_connection(*address)
        self._connected = connected.dup()  # TLS takes the other one over
        if self.is_over:
            self._disconnect()
        return connected

    def _disconnect(self) -> None:
        self.is_over = True
        if self._connected is not None:
            with suppress(OSError):  # the other side was faster
                self._connected.shutdown(socket.SHUT_RDWR)


def fetch_document(url: str, seconds: float = _WHOLE_S) -> dict[str, Any]:
    """
    Return the JSON object at a URL. This waits for the network.

    Args:
        url:
            A URL of https, or on this machine of http.

        seconds:
            How long it may take. Then the connection is closed.

    Raises:
        DocumentUnavailableError: If it cannot be had in time, is too large, or is no JSON object.
    """
    try:
        found = msgspec.json.decode(_read(secure_url(url), seconds), type=dict[str, Any])
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        if isinstance(error, HTTPError):  # it is an answer, too, and would keep its connection open
            error.close()
        msg = f"{url}: {error}"
        raise DocumentUnavailableError(msg) from None
    return found


def _read(url: str, seconds: float) -> bytes:
    request = Request(url, headers={"accept": "application/json", "user-agent": f"promptkit/{VERSION}"})  # noqa: S310 (it is checked)
    timed = _Timed(seconds)
    proxies = [ProxyHandler({})] if urlsplit(url).scheme == "http" else []  # on this machine, there is none
    try:
        with build_opener(_Stay, timed, *proxies).open(request, timeout=_PART_S) as response:
            data: bytes = response.read(_MAX_BYTES + 1)
    except HTTPError:
        raise
    except (OSError, HTTPException):
        timed.check()
        raise
    finally:
        timed.end()
    timed.check()  # a connection that is shut down may look like the end of the document
    if len(data) > _MAX_BYTES:
        msg = f"it has more than {_MAX_BYTES:,} bytes"
        raise ValueError(msg)
    return data


class Issuer:
    """
    Knows the public keys of an issuer.

    Args:
        url:
            The URL by which the issuer calls itself.

        fetch:
            Returns the JSON object at a URL.

        clock:
            Returns a time that never goes back, in seconds.

    Raises:
        ValueError: If the URL is none.
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
        self._fetched = self._asked = -inf
        self._has_failed = False
        self._running: Future[None] | None = None
        self._lock = Lock()

    async def find(self, kid: str | None, algorithm: JWSAlgModel) -> Key | None:
        """
        Return the key that a token names; None if the issuer has none of that name for that algorithm.

        Args:
            kid:
                The name. Without one, the only key for the algorithm is meant.

            algorithm:
                What the token is signed with.

        Raises:
            VerifierUnavailableError: If the issuer cannot be asked.
        """
        key = self._held(kid, algorithm)
        if key is None or self._age() > FRESH_S:
            await self._refreshed()
            key = self._held(kid, algorithm)
        if self._age() > TRUSTED_S or (key is None and self._has_failed):
            raise VerifierUnavailableError
        return key

    def _age(self) -> float:
        return self._clock() - self._fetched

    def _held(self, kid: str | None, algorithm: JWSAlgModel) -> Key | None:
        fitting = [key for key in self._keys if kid in (None, key.get("kid")) and _fits(key, algorithm)]
        return fitting[0] if len(fitting) == 1 else None

    async def _refreshed(self) -> None:
        """Wait until the keys are fetched, unless the issuer was asked just before."""
        running = self._refresh()
        if running is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(running), _WAIT_S)

    def _refresh(self) -> "Future[None] | None":
        """Begin to fetch the keys, in whatever event loop this is. Many requests wait for one fetch."""
        with self._lock:
            if self._running is None:
                if self._clock() - self._asked < COOL_DOWN_S:
                    return None
                self._asked = self._clock()
                running: Future[None] = Future()
                running.set_running_or_notify_cancel()  # a client that leaves must not end it
                Thread(target=self._load, args=[running], name="promptkit-issuer", daemon=True).start()
                self._running = running
            return self._running

    def _load(self, running: "Future[None]") -> None:
        try:
            self._keys = self._fetched_keys()
            self._fetched, self._has_failed = self._clock(), False
        except DocumentUnavailableError as error:
            self._has_failed = True
            say(f"the keys of {self.url} cannot be fetched: {error}; not asked again for {COOL_DOWN_S:g} s")
        finally:
            with self._lock:
                self._running = None
            running.set_result(None)

    def _fetched_keys(self) -> list[Key]:
        url = self._discovered()
        listed = self._fetch(url).get("keys")
        keys = [key for one in (listed if isinstance(listed, list) else []) if (key := _public_key(one))]
        if not keys:
            msg = f"{url}: there is no key that can be used"
            raise DocumentUnavailableError(msg)
        return keys

    def _discovered(self) -> str:
        """Where the issuer has its keys, by the first metadata that there is."""
        failures = list[str]()
        for url in _metadata_urls(self.url):
            try:
                found = self._fetch(url)
            except DocumentUnavailableError as error:
                failures.append(str(error))
                continue
            if found.get("issuer") != self.url:
                msg = f"{url}: it is the metadata of another issuer: {found.get('issuer')!r:.200}"
                raise DocumentUnavailableError(msg)
            keys_url = found.get("jwks_uri")
            if not isinstance(keys_url, str):
                msg = f"{url}: it has no jwks_uri"
                raise DocumentUnavailableError(msg)
            return keys_url
        msg = "; ".join(failures)
        raise DocumentUnavailableError(msg)


def _metadata_urls(issuer: str) -> list[str]:
    """Where the metadata of an issuer may be, in the order of the specification."""
    parts = urlsplit(issuer)
    host, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    before = [
        f"{host}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")
    ]
    return [*before, f"{host}{path}/.well-known/openid-configuration"] if path else before


def _public_key(listed: object) -> Key | None:
    """A key that is listed; None if it cannot verify what an issuer signs."""
    if not isinstance(listed, dict) or listed.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    try:
        key = import_key(listed)
    except Exception:  # noqa: BLE001 (it may be of a kind that is newer than the library)
        return None
    return None if isinstance(key, RSAKey) and key.public_key.key_size < _RSA_BITS else key


def _fits(key: Key, algorithm: JWSAlgModel) -> bool:
    try:
        algorithm.check_key(key)
    except JoseError:
        return False
    return True
