"""Who may see the pages: a browser on this machine that was given the address with its token."""

import hmac
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["TOKEN", "Guard"]

#: The parameter of the first address. No argument of a prompt has a name like this.
TOKEN: Final = "access-token"  # noqa: S105 (the name of it)

#: What is public: the same for everybody, so that the page that refuses looks like the others.
_PUBLIC: Final = "/static/"

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    # With "no-referrer", browsers would name no origin in what the page itself sends.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

_FOREIGN_HOST: Final = "This page is not called {!r}. Open the address that promptkit dev has printed."
_FOREIGN_ORIGIN: Final = "A page of {!r} has sent this request, and only this page itself may."
_FOREIGN_PAGE: Final = "Another page has sent this request, and only this page itself may."
_UNKNOWN_BROWSER: Final = (
    "This browser has not shown the token of promptkit dev. Open the address that it has printed, "
    "with all that follows the question mark. Each start has another token."
)


class Guard:
    """
    Lets a request pass that names this host, comes from no foreign page, and shows the token.

    The first address holds the token. It is put into a cookie that no script can read and no other site
    can send, and taken out of the address.

    Args:
        application:
            What answers.

        token:
            What a browser has to show.

        hosts:
            How the page is called, each with its port.

        refuse:
            Makes the page that says why nothing is shown.
    """

    def __init__(
        self, application: ASGIApp, token: str, hosts: Iterable[str], refuse: Callable[[str], Response]
    ) -> None:
        self._application = application
        self._token = token
        self._hosts = frozenset(hosts)
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":  # the start and the end of the server: nothing else is routed
            await self._application(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(scope) or self._application
        await answer(scope, receive, send_guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """Return what is answered in place of the page; None if that may be shown."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self._hosts:
            return self._refuse(_FOREIGN_HOST.format(host))
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return self._refuse(_FOREIGN_ORIGIN.format(origin))
        if scope["path"].startswith(_PUBLIC):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        for name, value in query:
            if name == TOKEN and self._is_token(value):
                return self._welcome(scope["path"], [pair for pair in query if pair[0] != TOKEN], host)
        if _is_from_elsewhere(headers):
            return self._refuse(_FOREIGN_PAGE)
        cookie = cookie_parser(headers.get("cookie", "")).get(_cookie_name(host), "")
        return None if self._is_token(cookie) else self._refuse(_UNKNOWN_BROWSER)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(errors="replace"), self._token.encode())

    def _welcome(self, path: str, query: list[tuple[str, str]], host: str) -> Response:
        # Two slashes in front would lead to another host.
        place = "/" + quote(path.lstrip("/\\")) + (f"?{urlencode(query)}" if query else "")
        response = RedirectResponse(place, status_code=303)
        response.set_cookie(_cookie_name(host), self._token, httponly=True, samesite="strict")
        return response


def _is_from_elsewhere(headers: Headers) -> bool:
    """Whether another page asks in the background; a link that somebody follows is no such request."""
    site, purpose = headers.get("sec-fetch-site"), headers.get("sec-fetch-dest")
    return site in ("same-site", "cross-site") and purpose != "document"


def _cookie_name(host: str) -> str:
    """Several previews on one machine share their cookies, as those know no ports."""
    return f"promptkit-{host.rpartition(':')[2]}"
