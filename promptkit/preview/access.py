"""Who may see the pages: a browser on this machine that was given the address with its token."""

import hmac
import secrets
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from promptkit.preview.templating import page

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


class PageGuard:
    """
    Lets a request pass that names this host, comes from no foreign page, and shows the token.

    The first address holds the token, and is answered with a cookie of another secret, that no script can
    read and no other site can send. A link of another page leads to a page that asks: to follow it runs
    nothing.

    Args:
        application:
            What answers.

        target:
            How the pages call what they show.

        token:
            What a browser has to show.

        hosts:
            How the page is called, each with its port.
    """

    def __init__(self, application: ASGIApp, target: str, token: str, hosts: Iterable[str]) -> None:
        self._application = application
        self._target = target
        self._token = token
        self._cookie = secrets.token_urlsafe(24)
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

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
        place = _place(scope["path"], [pair for pair in query if pair[0] != TOKEN])
        if any(name == TOKEN and _is_same(value, self._token) for name, value in query):
            return self._welcome(place, host, headers)
        if _is_from_elsewhere(headers):
            return self._ask(place) if _is_navigation(headers) else self._refuse(_FOREIGN_PAGE)
        cookie = cookie_parser(headers.get("cookie", "")).get(_cookie_name(host), "")
        return None if _is_same(cookie, self._cookie) else self._refuse(_UNKNOWN_BROWSER)

    def _welcome(self, place: str, host: str, headers: Headers) -> Response:
        """Give the cookie, and lead to the page without the token."""
        response: Response
        if _is_from_elsewhere(headers):
            # What another page or file began, browsers follow without the cookie, also after a redirection.
            response = self._ask(place, 200)
            response.headers["refresh"] = f"0;url={place}"
        else:
            response = RedirectResponse(place, status_code=303)
        response.set_cookie(_cookie_name(host), self._cookie, httponly=True, samesite="strict")
        return response

    def _ask(self, place: str, status: int = 403) -> Response:
        """Return the page that shows another one when somebody clicks. It comes from here, so it may."""
        return self._page("asks.html", status, place=place)

    def _refuse(self, reason: str) -> Response:
        return self._page("error.html", 403, reason=reason)

    def _page(self, template: str, status: int, **values: Any) -> Response:
        return HTMLResponse(page(template, target=self._target, version=None, **values), status)


def _is_same(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode(errors="replace"), secret.encode())


def _place(path: str, query: list[tuple[str, str]]) -> str:
    # Two slashes in front would lead to another host.
    return "/" + quote(path.lstrip("/\\")) + (f"?{urlencode(query)}" if query else "")


def _is_from_elsewhere(headers: Headers) -> bool:
    """Whether another page asks, be it one of another port."""
    return headers.get("sec-fetch-site") in ("same-site", "cross-site")


def _is_navigation(headers: Headers) -> bool:
    """Whether what is asked for would fill a window of its own, as by a link."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _cookie_name(host: str) -> str:
    """Several previews on one machine share their cookies, as those know no ports."""
    return f"promptkit-{host.rpartition(':')[2]}"
