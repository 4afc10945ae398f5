"""Forms and tabs over HTTP: the requests of htmx and their replies."""

import re
from html import unescape
from urllib.parse import unquote

import pytest
from starlette.datastructures import QueryParams

from tests.preview import submission

RECIPE = '''
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


def parse_form(page):
    """Return the form data of a page as a dictionary."""
    return dict(submission.collect_form_data(page).multi_items())


def find_field_errors(page, name):
    """Return the errors that a page shows at a field."""
    return unescape(re.search(rf'id="errors-of-{name}"[^>]*>(.*?)</div>', page, re.DOTALL)[1])


class TestForms:
    def test_upload_is_kept_in_later_submissions(self, serve_preview):
        """An uploaded file stays the value of its argument in later submissions, without being sent again."""
        preview = serve_preview(shelf=RECIPE)
        file = {"image.file": ("dot.png", b"\x89PNG", "image/png")}

        first = preview.client.post("/prompts/look/render", data={"code": "x"}, files=file)
        form_data = parse_form(first.text)
        second = preview.client.post("/prompts/look/render", data=form_data)

        assert "dot.png" in first.text
        assert "iVBORw==" not in str(form_data)
        assert "b&#39;\\x89PNG&#39;" in second.text
        assert parse_form(second.text) == form_data
        assert "image" not in second.headers["hx-replace-url"]

    def test_binary_file_for_text_is_an_error(self, serve_preview):
        """A binary file for a text argument shows an error at its field and no conversation."""
        preview = serve_preview(shelf=RECIPE)
        page = preview.client.post(
            "/prompts/look/render", data={"image": "aGk="}, files={"code.file": ("a.bin", b"\xff")}
        ).text

        assert "it is not UTF-8 text (byte 1)" in find_field_errors(page, "code")
        assert "on main" not in page

    def test_address_restores_the_form(self, serve_preview):
        """The address of a rendering restores the form, except for secrets."""
        preview = serve_preview(shelf=RECIPE)
        response = preview.client.post(
            "/prompts/look/render", data={"code": "a&b\r\nc", "branch.empty": "on", "token": "hunter2"}
        )
        address = response.headers["hx-replace-url"]

        assert dict(QueryParams(address.partition("?")[2])) == {"code": "a&b\nc", "branch.empty": "on"}
        assert "hunter2" not in unquote(address)
        form_data = parse_form(preview.page(address))
        assert (form_data["code"], form_data["branch.empty"], form_data["token"]) == ("a&b\r\nc", "on", "")

    def test_unknown_argument_in_a_link_has_a_field(self, serve_preview):
        """An unknown argument in a link gets a field with a suggestion."""
        page = serve_preview(shelf=RECIPE).page("/prompts/look?code=x&brnach=next")

        assert "did you mean 'branch'?" in find_field_errors(page, "unknown-1")
        assert parse_form(page)["brnach"] == "next"

    def test_completion_receives_the_other_values(self, serve_preview):
        """A completion function receives the typed text and the values of the other fields."""
        preview = serve_preview(shelf=RECIPE)
        page = preview.client.post("/prompts/look/complete/branch", data={"code": "x", "branch": "x/"}).text

        assert re.findall(r'<option value="([^"]*)">', page) == ["x/x/"]

    @pytest.mark.parametrize("is_async", [False, True])
    def test_text_files_that_were_read_are_checked(self, is_async, serve_preview, tmp_path):
        """
        The page has a warning about a placeholder without a value in a text file that the prompt has read.
        """
        (tmp_path / "recipes").mkdir()
        (tmp_path / "recipes" / "guide.md").write_text("{{name}} {{nam}}")
        source = (
            "from promptkit import Text, prompt\n\n@prompt\ndef guide(name: str = 'guide'):\n"
            "    return Text.below('.', name + '.md', name=name)\n"
        )
        preview = serve_preview(guide=source.replace("def", "async def") if is_async else source)

        page = preview.client.get("/prompts/guide").text

        assert '<code class="rule">PK218</code> prompt &#39;guide&#39;: {{nam}} in guide.md:1' in page

    @pytest.mark.parametrize("has_length", [True, False])
    def test_too_large_form_is_rejected(self, serve_preview, monkeypatch, has_length):
        """A form that is too large is rejected with 413, with or without a Content-Length."""
        monkeypatch.setattr("promptkit.preview.media._MAX_FORM_SIZE", 1_000)
        headers = {"content-type": "application/x-www-form-urlencoded", "hx-request": "true"}
        headers |= {"content-length": "10000"} if has_length else {}
        client = serve_preview(shelf=RECIPE).client
        response = client.post("/prompts/look/render", content=iter([b"x" * 100] * 100), headers=headers)

        assert response.status_code == 413
        assert 'hx-target="#problems"' in response.text
        assert "too large: the preview accepts" in response.text


class TestTabs:
    def test_tabs_render_the_values_of_the_form(self, serve_preview):
        """Each tab reads its choice from the query and the values from the form."""
        preview = serve_preview(shelf=RECIPE)

        def render_tab(name, **values):
            return preview.client.post(f"/prompts/look/tabs/{name}", data=values).text

        assert "on main: None" in render_tab("wire?choice=2024-11-05", code="choice")
        assert (
            'aria-pressed="true"'
            in render_tab("vendors?choice=gemini", code="x").partition('id="choice-gemini"')[2][:40]
        )
        assert "look.case_wire(" in re.sub("<[^>]*>", "", render_tab("new-case", code="x"))
        assert "promptkit render recipes look code=x" in re.sub(
            "<[^>]*>", "", render_tab("command-line", code="x")
        )
        assert "does not offer this prompt" in render_tab("clients?choice=zed", code="x")

    def test_unknown_tab_is_rejected(self, serve_preview):
        """An unknown tab is rejected with 404."""
        assert serve_preview(shelf=RECIPE).client.post("/prompts/look/tabs/other").status_code == 404
