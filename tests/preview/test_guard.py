import re

import pytest

from promptkit.catalog.catalog import Catalog
from promptkit.preview.live import LiveCatalog
from tests.preview.conftest import HOST, TOKEN

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@pytest.fixture
def browser(make_client):
    """A browser without a token, at a preview of an empty catalog."""
    return make_client(LiveCatalog(Catalog()))


def test_printed_address_sets_a_cookie_and_drops_the_token(browser):
    """The printed address sets an HttpOnly, SameSite cookie and redirects to the address without a token."""
    response = browser.get(f"/prompts/a?token=mine&access-token={TOKEN}&x=1+2")

    assert (response.status_code, response.headers["location"]) == (303, "/prompts/a?token=mine&x=1+2")
    assert re.fullmatch(
        r"promptkit-8137=[\w-]{32}; HttpOnly; Path=/; SameSite=strict", response.headers["set-cookie"]
    )
    assert browser.get("/").status_code == 200


def test_cookie_is_not_the_token(browser, make_client):
    """The cookie is not the token and changes with each start, because browsers send it to every port."""
    cookies = []
    for client in (browser, make_client(LiveCatalog(Catalog()))):
        client.get(f"/?access-token={TOKEN}")
        cookies.append(client.cookies["promptkit-8137"])

    assert len({TOKEN, *cookies}) == 3
    browser.cookies.clear()
    assert browser.get(f"/?access-token={cookies[0]}").status_code == 403
    browser.cookies.set("promptkit-8137", TOKEN)
    assert browser.get("/").status_code == 403


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example", "///evil.example"])
def test_redirect_stays_on_this_host(browser, path):
    """Leading slashes in the path cannot redirect to another host."""
    response = browser.get(f"http://{HOST}{path}?access-token={TOKEN}")

    assert response.headers["location"].startswith("/evil.example")


@pytest.mark.parametrize("path", ["/", "/prompts/a", "/events", "/gallery", "/media/1", "/resources?uri=a:b"])
@pytest.mark.parametrize("token", ["", "?access-token=wrong", "?access-token="])
def test_pages_require_the_token(browser, path, token):
    """Without a valid token, every page is a 403 that explains what to do."""
    response = browser.get(path + token)

    assert response.status_code == 403
    assert "Open the full address that promptkit dev printed" in response.text
    assert "set-cookie" not in response.headers


def test_stale_cookie_is_rejected(browser):
    """A cookie of an earlier start is rejected, even for posts."""
    browser.cookies.set("promptkit-8137", "old")

    assert browser.get("/").status_code == 403
    assert browser.post("/prompts/a/render").status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8137", "127.0.0.1", "127.0.0.1:80", ""])
def test_foreign_host_is_rejected(browser, host):
    """A request whose Host header is not the preview's is rejected with 403, even with the token."""
    response = browser.get(f"/?access-token={TOKEN}", headers={"host": host})

    assert response.status_code == 403
    assert f"The preview is not served under the host &#39;{host}&#39;" in response.text


def test_localhost_is_accepted(make_client):
    """`localhost` is accepted as a host."""
    browser = make_client(LiveCatalog(Catalog()), "localhost:8137")

    assert browser.get(f"/?access-token={TOKEN}").status_code == 303
    assert browser.get("/").status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9", f"https://{HOST}"])
def test_foreign_origin_is_rejected(browser, origin):
    """A request with a foreign Origin header is rejected with 403, even with the cookie."""
    browser.get(f"/?access-token={TOKEN}")
    response = browser.post("/prompts/a/render", headers={"origin": origin})

    assert response.status_code == 403
    assert "Only pages of the preview can send requests to it" in response.text


SITES = pytest.mark.parametrize("site", ["cross-site", "same-site"])

#: Headers that browsers send when a link is followed or a script navigates.
NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}

RECIPE = """
from promptkit import prompt

ran = []

@prompt
def a(x: str):
    ran.append(x)
    return x
"""


@SITES
@pytest.mark.parametrize("purpose", ["image", "empty", "iframe", "frame", "embed", "object", ""])
def test_background_request_of_another_page_is_rejected(browser, site, purpose):
    """Background requests and frames of other pages are rejected, so that they cannot render prompts."""
    browser.get(f"/?access-token={TOKEN}")
    mode = "navigate" if "frame" in purpose else "no-cors"
    headers = {"sec-fetch-site": site, "sec-fetch-dest": purpose, "sec-fetch-mode": mode}
    response = browser.get("/", headers=headers)

    assert (response.status_code, "Open the page" in response.text) == (403, False)
    assert browser.get("/", headers={**headers, "sec-fetch-site": "same-origin"}).status_code == 200


@SITES
@pytest.mark.parametrize("has_cookie", [True, False])
def test_link_from_another_page_renders_nothing(serve_preview, site, has_cookie):
    """A link from another page shows a confirmation and renders nothing, with or without the cookie."""
    preview = serve_preview(a=RECIPE)
    ran = preview.live.newest.catalog["a"].renderer.function.__globals__["ran"]
    if not has_cookie:
        preview.client.cookies.clear()
    response = preview.client.get("/prompts/a?x=1+2&x=%22%3E", headers={**NAVIGATION, "sec-fetch-site": site})

    assert (response.status_code, ran) == (403, [])
    assert '<a class="button" href="/prompts/a?x=1+2&amp;x=%22%3E">Open the page</a>' in response.text
    assert "refresh" not in response.headers


@SITES
@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("//evil.example/x", "/evil.example/x"),
        ("/\\evil.example", "/evil.example"),
        ("/javascript:alert(1)", "/javascript%3Aalert%281%29"),
        ("/%22onclick=alert%281%29//", "/%22onclick%3Dalert%281%29//"),
    ],
)
def test_confirmation_links_to_this_host(browser, site, path, link):
    """The link on the confirmation page always leads to this host."""
    response = browser.get(f"http://{HOST}{path}", headers={**NAVIGATION, "sec-fetch-site": site})

    assert f'<a class="button" href="{link}">Open the page</a>' in response.text


@SITES
def test_cross_site_navigation_refreshes_instead_of_redirecting(browser, site):
    """
    A cross-site navigation to the printed address gets a refresh, because no cookie is sent after a redirect.
    """
    response = browser.get(f"/?access-token={TOKEN}&q=a", headers={**NAVIGATION, "sec-fetch-site": site})

    assert (response.status_code, response.headers["refresh"]) == (200, "0;url=/?q=a")
    assert TOKEN not in response.text
    assert browser.get("/").status_code == 200


def test_own_origin_can_post(browser):
    """A post with the page's own origin is accepted."""
    browser.get(f"/?access-token={TOKEN}")
    response = browser.post("/prompts/a/render", headers={"origin": f"http://{HOST}"})

    assert "Unknown prompt" in response.text


@pytest.mark.parametrize("path", ["/", "/prompts/none", "/nowhere", "/static/preview.css", "/media/none"])
@pytest.mark.parametrize("has_token", [True, False])
def test_every_response_has_security_headers(browser, path, has_token):
    """Every reply carries the security headers, whether the browser has sent the token or not."""
    if has_token:
        browser.get(f"/?access-token={TOKEN}")
    response = browser.get(path)

    assert response.headers["content-security-policy"] == POLICY
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "same-origin"
    assert response.headers["cross-origin-opener-policy"] == "same-origin"
    assert response.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "file", ["preview.css", "preview.js", "navigation.js", "htmx.min.js", "htmx.LICENSE", "icon.svg"]
)
def test_static_file_needs_no_token(browser, file):
    """Static files need no token."""
    response = browser.get(f"/static/{file}")
    assert response.status_code == 200


@pytest.mark.parametrize("file", ["..%2fguard.py", "..%2ftemplates%2fbase.html", "%2fetc%2fpasswd", "none"])
def test_other_files_are_not_served(browser, file):
    """Files outside the static folder are not found."""
    assert browser.get(f"/static/{file}").status_code == 404
