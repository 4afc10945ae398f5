"""Forms and tabs over HTTP: the requests of htmx and their replies."""

import re
from html import unescape
from urllib.parse import unquote

import pytest
from starlette.datastructures import QueryParams

from tests.preview import submission

SHELF = '''
from typing import Annotated
from promptkit import Arg, prompt

def branches(typed, chosen):
    return [f"{chosen.get('code', 'none')}/{typed}", "main"]

@prompt
def look(
    code: str,
    image: bytes | None = None,
    branch: Annotated[str, Arg(complete=branches)] = "main",
    token: Annotated[str, Arg(secret=True)] = "",
):
    """Look at it."""
    return f"{code} on {branch}: {image!r} {token}"
'''


def form_of(page):
    """Return the form data of a page as a dictionary."""
    return dict(submission.submission_of(page).multi_items())


def faults_of(page, name):
    return unescape(re.search(rf'id="faults-of-{name}"[^>]*>(.*?)</div>', page, re.DOTALL)[1])


class TestForms:
    def test_a_file_stays_with_the_form(self, preview):
        """An uploaded file fills its argument in every later submission, without being sent again."""
        shown = preview(shelf=SHELF)
        file = {"image.file": ("dot.png", b"\x89PNG", "image/png")}

        first = shown.client.post("/prompts/look/render", data={"code": "x"}, files=file)
        sent = form_of(first.text)
        second = shown.client.post("/prompts/look/render", data=sent)

        assert "dot.png" in first.text
        assert "iVBORw==" not in str(sent)
        assert "b&#39;\\x89PNG&#39;" in second.text
        assert form_of(second.text) == sent
        assert "image" not in second.headers["hx-replace-url"]

    def test_a_file_that_is_no_text_is_a_fault_at_its_field(self, preview):
        """A binary file for a text argument shows an error at its field and no conversation."""
        shown = preview(shelf=SHELF)
        page = shown.client.post(
            "/prompts/look/render", data={"image": "aGk="}, files={"code.file": ("a.bin", b"\xff")}
        ).text

        assert "it is not UTF-8 text (byte 1)" in faults_of(page, "code")
        assert "on main" not in page

    def test_the_address_is_read_back(self, preview):
        """The address of a rendering restores the form, except for secrets."""
        shown = preview(shelf=SHELF)
        answer = shown.client.post(
            "/prompts/look/render", data={"code": "a&b\r\nc", "branch.empty": "on", "token": "hunter2"}
        )
        address = answer.headers["hx-replace-url"]

        assert dict(QueryParams(address.partition("?")[2])) == {"code": "a&b\nc", "branch.empty": "on"}
        assert "hunter2" not in unquote(address)
        sent = form_of(shown.page(address))
        assert (sent["code"], sent["branch.empty"], sent["token"]) == ("a&b\r\nc", "on", "")

    def test_unknown_arguments_of_a_link_have_fields(self, preview):
        """An unknown argument in a link gets a field with a suggestion."""
        page = preview(shelf=SHELF).page("/prompts/look?code=x&brnach=next")

        assert "did you mean 'branch'?" in faults_of(page, "unknown-1")
        assert form_of(page)["brnach"] == "next"

    def test_values_are_offered(self, preview):
        """A completion function receives the typed text and the values of the other fields."""
        shown = preview(shelf=SHELF)
        page = shown.client.post("/prompts/look/complete/branch", data={"code": "x", "branch": "x/"}).text

        assert re.findall(r'<option value="([^"]*)">', page) == ["x/x/"]

    @pytest.mark.parametrize("is_told", [True, False])
    def test_a_form_that_is_too_large_is_not_read(self, preview, monkeypatch, is_told):
        """A form that is too large is rejected with 413, with or without a Content-Length."""
        monkeypatch.setattr("promptkit.preview.media._MAX_FORM_SIZE", 1_000)
        headers = {"content-type": "application/x-www-form-urlencoded", "hx-request": "true"}
        headers |= {"content-length": "10000"} if is_told else {}
        client = preview(shelf=SHELF).client
        answer = client.post("/prompts/look/render", content=iter([b"x" * 100] * 100), headers=headers)

        assert answer.status_code == 413
        assert 'hx-target="#wrong"' in answer.text
        assert "too large: the preview takes" in answer.text


class TestTabs:
    def test_each_tab_is_shown_for_the_values_of_the_form(self, preview):
        """Each tab reads its choice from the query and the values from the form."""
        shown = preview(shelf=SHELF)

        def tab(name, **values):
            return shown.client.post(f"/prompts/look/tabs/{name}", data=values).text

        assert "on main: None" in tab("wire?choice=2024-11-05", code="choice")
        assert (
            'aria-pressed="true"'
            in tab("vendors?choice=gemini", code="x").partition('id="choice-gemini"')[2][:40]
        )
        assert "def test_look_says_the_same():" in re.sub("<[^>]*>", "", tab("test", code="x"))
        assert "promptkit render recipes look code=x" in re.sub("<[^>]*>", "", tab("command-line", code="x"))
        assert "does not offer this prompt" in tab("clients?choice=zed", code="x")

    def test_an_unknown_tab(self, preview):
        """An unknown tab is rejected with 404."""
        assert preview(shelf=SHELF).client.post("/prompts/look/tabs/other").status_code == 404
