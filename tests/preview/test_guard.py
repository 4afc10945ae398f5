import re

import pytest

from promptkit.catalog.catalog import Catalog
from promptkit.preview.live import Live
from tests.preview.conftest import HOST, TOKEN

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@pytest.fixture
def browser(stranger):
    """A browser without a token, at a preview of an empty catalog."""
    return stranger(Live(Catalog()))


def test_the_first_address_gives_a_cookie_and_hides_its_token(browser):
    """The printed address sets an HttpOnly, SameSite cookie and redirects to the address without a token."""
    answer = browser.get(f"/prompts/a?token=mine&access-token={TOKEN}&x=1+2")

    assert (answer.status_code, answer.headers["location"]) == (303, "/prompts/a?token=mine&x=1+2")
    assert re.fullmatch(
        r"promptkit-8137=[\w-]{32}; HttpOnly; Path=/; SameSite=strict", answer.headers["set-cookie"]
    )
    assert browser.get("/").status_code == 200


def test_the_cookie_is_another_secret(browser, stranger):
    """The cookie differs from the token and between starts, because browsers send it to every port."""
    cookies = []
    for each in (browser, stranger(Live(Catalog()))):
        each.get(f"/?access-token={TOKEN}")
        cookies.append(each.cookies["promptkit-8137"])

    assert len({TOKEN, *cookies}) == 3
    browser.cookies.clear()
    assert browser.get(f"/?access-token={cookies[0]}").status_code == 403
    browser.cookies.set("promptkit-8137", TOKEN)
    assert browser.get("/").status_code == 403


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example", "///evil.example"])
def test_the_first_address_leads_to_no_other_host(browser, path):
    """Leading slashes in the path cannot redirect to another host."""
    answer = browser.get(f"http://{HOST}{path}?access-token={TOKEN}")

    assert answer.headers["location"].startswith("/evil.example")


@pytest.mark.parametrize("path", ["/", "/prompts/a", "/events", "/gallery", "/media/1", "/resources?uri=a:b"])
@pytest.mark.parametrize("token", ["", "?access-token=wrong", "?access-token="])
def test_without_the_token_nothing_is_shown(browser, path, token):
    """Without a valid token, every page is a 403 that explains what to do."""
    answer = browser.get(path + token)

    assert answer.status_code == 403
    assert "Open the whole address that it printed" in answer.text
    assert "set-cookie" not in answer.headers


def test_a_wrong_cookie_is_no_token(browser):
    """A cookie of an earlier start is rejected, also for posts."""
    browser.cookies.set("promptkit-8137", "old")

    assert browser.get("/").status_code == 403
    assert browser.post("/prompts/a/render").status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8137", "127.0.0.1", "127.0.0.1:80", ""])
def test_a_foreign_host_is_refused(browser, host):
    """A request whose Host header is not the preview's is rejected with 403, even with the token."""
    answer = browser.get(f"/?access-token={TOKEN}", headers={"host": host})

    assert answer.status_code == 403
    assert f"This page has another host than &#39;{host}&#39;" in answer.text


def test_localhost_is_this_machine(stranger):
    """`localhost` is accepted as a host."""
    browser = stranger(Live(Catalog()), "localhost:8137")

    assert browser.get(f"/?access-token={TOKEN}").status_code == 303
    assert browser.get("/").status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9", f"https://{HOST}"])
def test_a_foreign_origin_is_refused(browser, origin):
    """A request with a foreign Origin header is rejected with 403, even with the cookie."""
    browser.get(f"/?access-token={TOKEN}")
    answer = browser.post("/prompts/a/render", headers={"origin": origin})

    assert answer.status_code == 403
    assert "only this page itself may" in answer.text


SITES = pytest.mark.parametrize("site", ["cross-site", "same-site"])

#: Headers that browsers send when a link is followed or a script navigates.
NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}

RUNS = """
from promptkit import prompt

ran = []

@prompt
def a(x: str):
    ran.append(x)
    return x
"""


@SITES
@pytest.mark.parametrize("purpose", ["image", "empty", "iframe", "frame", "embed", "object", ""])
def test_a_foreign_page_asks_nothing_in_the_background(browser, site, purpose):
    """Background requests and frames of other pages are rejected, so that they cannot render prompts."""
    browser.get(f"/?access-token={TOKEN}")
    mode = "navigate" if "frame" in purpose else "no-cors"
    background = {"sec-fetch-site": site, "sec-fetch-dest": purpose, "sec-fetch-mode": mode}
    refused = browser.get("/", headers=background)

    assert (refused.status_code, "Show it" in refused.text) == (403, False)
    assert browser.get("/", headers={**background, "sec-fetch-site": "same-origin"}).status_code == 200


@SITES
@pytest.mark.parametrize("knows", [True, False])
def test_a_link_of_another_page_runs_nothing_until_a_click(preview, site, knows):
    """A link from another page shows a confirmation and renders nothing, with or without the cookie."""
    shown = preview(a=RUNS)
    ran = shown.live.newest.catalog["a"].renderer.function.__globals__["ran"]
    if not knows:
        shown.client.cookies.clear()
    answer = shown.client.get("/prompts/a?x=1+2&x=%22%3E", headers={**NAVIGATION, "sec-fetch-site": site})

    assert (answer.status_code, ran) == (403, [])
    assert '<a class="button" href="/prompts/a?x=1+2&amp;x=%22%3E">Show it</a>' in answer.text
    assert "refresh" not in answer.headers


@SITES
@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("//evil.example/x", "/evil.example/x"),
        ("/\\evil.example", "/evil.example"),
        ("/javascript:alert(1)", "/javascript%3Aalert%281%29"),
        ("/%22onclick=alert%281%29//", "/%22onclick%3Dalert%281%29//"),
    ],
)
def test_the_page_that_asks_leads_to_this_host_alone(browser, site, path, place):
    """The link on the confirmation page always leads to this host."""
    answer = browser.get(f"http://{HOST}{path}", headers={**NAVIGATION, "sec-fetch-site": site})

    assert f'<a class="button" href="{place}">Show it</a>' in answer.text


@SITES
def test_a_file_that_leads_to_the_first_address(browser, site):
    """A cross-site navigation to the printed address refreshes instead of redirecting, to send the cookie."""
    answer = browser.get(f"/?access-token={TOKEN}&q=a", headers={**NAVIGATION, "sec-fetch-site": site})

    assert (answer.status_code, answer.headers["refresh"]) == (200, "0;url=/?q=a")
    assert TOKEN not in answer.text
    assert browser.get("/").status_code == 200


def test_the_page_itself_may_post(browser):
    """A post with the page's own origin is accepted."""
    browser.get(f"/?access-token={TOKEN}")
    answer = browser.post("/prompts/a/render", headers={"origin": f"http://{HOST}"})

    assert "This prompt no longer exists" in answer.text


@pytest.mark.parametrize("path", ["/", "/prompts/none", "/nowhere", "/static/preview.css", "/media/none"])
@pytest.mark.parametrize("known", [True, False])
def test_every_reply_carries_the_policy(browser, path, known):
    """Every reply carries the security headers, whether the browser has sent the token or not."""
    if known:
        browser.get(f"/?access-token={TOKEN}")
    answer = browser.get(path)

    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "file", ["preview.css", "preview.js", "navigation.js", "htmx.min.js", "htmx.LICENSE", "icon.svg"]
)
def test_static_files(browser, file):
    """Static files need no token."""
    answer = browser.get(f"/static/{file}")
    assert answer.status_code == 200


@pytest.mark.parametrize("file", ["..%2fguard.py", "..%2ftemplates%2fbase.html", "%2fetc%2fpasswd", "none"])
def test_nothing_else_is_static(browser, file):
    """Files outside the static folder are not found."""
    assert browser.get(f"/static/{file}").status_code == 404
