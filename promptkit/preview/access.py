"""Access control: only a local browser that has opened the URL with the token can see the pages."""

import hmac
import secrets
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from promptkit.preview.templating import render_template

#: The query parameter with the token. No prompt argument can have this name.
TOKEN: Final = "access-token"  # noqa: S105 (the parameter's name)

#: Public files, so that the page for rejected requests is styled as well.
_PUBLIC: Final = "/static/"

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    # With "no-referrer", browsers would omit the origin from the page's own requests.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

_FOREIGN_HOST: Final = (
    "The preview is not served under the host {!r}. Open the address that promptkit dev printed."
)
_FOREIGN_ORIGIN: Final = (
    "A page at {!r} sent this request. Only pages of the preview can send requests to it."
)
_FOREIGN_PAGE: Final = "Another page sent this request. Only pages of the preview can send requests to it."
_UNAUTHORIZED: Final = (
    "This request has no valid token. Open the full address that promptkit dev printed, including the part "
    "after the question mark. The token changes each time promptkit dev starts."
)


class PageGuard:
    """
    A guard that accepts only requests with the token, for an allowed host, from the preview's own pages.

    The first URL contains the token. The response sets a cookie with another secret, which scripts cannot
    read and other sites cannot send. A link on another page leads to a confirmation page, so that following
    the link does not run any prompts.

    Args:
        application:
            The guarded application.

        target:
            The name of the target to show on the pages.

        token:
            The token that a browser must present.

        hosts:
            The allowed hosts, each with its port.
    """

    def __init__(self, application: ASGIApp, target: str, token: str, hosts: Iterable[str]) -> None:
        self._application = application
        self._target = target
        self._token = token
        self._cookie = secrets.token_urlsafe(24)
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        response = self._intercept(scope) or self._application
        await response(scope, receive, send_guarded)

    def _intercept(self, scope: Scope) -> Response | None:
        """Return a response to send in place of the page, or None to serve the page."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self._hosts:
            return self._reject(_FOREIGN_HOST.format(host))
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return self._reject(_FOREIGN_ORIGIN.format(origin))
        if scope["path"].startswith(_PUBLIC):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        path = _build_path(scope["path"], [pair for pair in query if pair[0] != TOKEN])
        if any(name == TOKEN and _matches(value, self._token) for name, value in query):
            return self._accept_token(path, host, headers)
        if _is_cross_origin(headers):
            return self._confirm(path) if _is_navigation(headers) else self._reject(_FOREIGN_PAGE)
        cookie = cookie_parser(headers.get("cookie", "")).get(_cookie_name(host), "")
        return None if _matches(cookie, self._cookie) else self._reject(_UNAUTHORIZED)

    def _accept_token(self, path: str, host: str, headers: Headers) -> Response:
        """Return a response that sets the cookie, and redirects to the page without the token."""
        response: Response
        if _is_cross_origin(headers):
            # If another page or a file started a navigation, browsers omit the cookie even after a redirect.
            response = self._confirm(path, 200)
            response.headers["refresh"] = f"0;url={path}"
        else:
            response = RedirectResponse(path, status_code=303)
        response.set_cookie(_cookie_name(host), self._cookie, httponly=True, samesite="strict")
        return response

    def _confirm(self, path: str, status: int = 403) -> Response:
        """Return a page with a link to *path*. When users click it, browsers send a same-origin request."""
        return self._render("confirm.html", status, path=path)

    def _reject(self, reason: str) -> Response:
        return self._render("error.html", 403, reason=reason)

    def _render(self, template: str, status: int, **values: Any) -> Response:
        return HTMLResponse(render_template(template, target=self._target, version=None, **values), status)


def _matches(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode(errors="replace"), secret.encode())


def _build_path(path: str, query: list[tuple[str, str]]) -> str:
    # A path that starts with two slashes would lead to another host.
    return "/" + quote(path.lstrip("/\\")) + (f"?{urlencode(query)}" if query else "")


def _is_cross_origin(headers: Headers) -> bool:
    """Return whether another page sent the request, including a page on another port."""
    return headers.get("sec-fetch-site") in ("same-site", "cross-site")


def _is_navigation(headers: Headers) -> bool:
    """Return whether the request loads a whole page, for instance because the user follows a link."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _cookie_name(host: str) -> str:
    """Return a cookie name with the port, because all ports of a host share their cookies."""
    return f"promptkit-{host.rpartition(':')[2]}"
