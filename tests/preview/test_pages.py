import asyncio
import re
from contextlib import closing
from html import unescape

import pytest
from starlette.testclient import TestClient

from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load
from promptkit.preview.live import LiveCatalog
from promptkit.preview.prompt_pages import PANELS
from promptkit.preview.routes import create_application
from promptkit.protocol.capabilities import ServerInfo
from tests.preview.conftest import HOST, TOKEN, get_cookie

BUDGET = """
from typing import Annotated
from promptkit import Arg, prompt
from promptkit.fragments import fit, optional

@prompt
def summarize(notes: Annotated[str, Arg(secret=True)]):
    return fit(
        "Summarize.",
        optional("history " * 50, priority=0.7, trim="start"),
        optional(notes.ljust(200, "x"), priority=0.2),
        tokens=40,
    )
"""

RECIPE = '''
from typing import Annotated, Literal
from promptkit import Arg, PromptError, assistant, prompt, resource, user

@prompt(title="Review code", tags=["code", "quality"])
def review(
    code: Annotated[str, Arg("The code", examples=["x = 1"])], language: Literal["python", "rust"] = "python"
):
    """Ask for a review."""
    yield user(f"Review this {language}:\\n\\n- **{code}**")
    yield assistant("Of course.")

@prompt
def plan(steps: int):
    """Make a plan."""
    if steps > 9:
        raise PromptError("nine steps are enough")
    return "step\\n" * (10 // steps)

@resource("style://{language}", scopes=["review"])
def style(language: Literal["python", "rust"]) -> str:
    """How we write."""
    return f"# Plain {language}"
'''


def extract_text(page):
    """Return the text of a page, with whitespace collapsed."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", page)).split())


def extract_links(page):
    """Return the address of each link by its text."""
    return {
        extract_text(text): unescape(address)
        for address, text in re.findall(r'<a [^>]*href="([^"]*)"[^>]*>(.*?)</a>', page, re.DOTALL)
    }


class TestGallery:
    def test_prompts_are_listed_with_links(self, serve_preview):
        """The gallery lists each prompt with a link, its title, description, arguments and tags."""
        page = serve_preview(shelf=RECIPE).page("/")

        assert extract_links(page)["review"] == "/prompts/review"
        assert extract_links(page)["plan"] == "/prompts/plan"
        assert "review Review code Ask for a review. code * language code quality" in extract_text(page)
        assert "2 prompts, 1 resource" in extract_text(page)

    def test_resources_are_listed(self, serve_preview):
        """A templated resource is listed under its URI template."""
        page = serve_preview(shelf=RECIPE).page("/")

        assert extract_links(page)["style://{language}"] == "/resources?uri=style%3A%2F%2F%7Blanguage%7D"

    def test_every_word_of_a_query_must_match(self, serve_preview):
        """Every word of a query must match a name, title, description, tag or argument."""
        preview = serve_preview(shelf=RECIPE)
        names_by_query = {
            query: re.findall(r'href="/prompts/(\w+)"', preview.page(f"/?q={query}"))
            for query in ("", "QUALITY", "review+lang", "make", "steps+review")
        }

        assert names_by_query == {
            "": ["plan", "review"],
            "QUALITY": ["review"],
            "review+lang": ["review"],
            "make": ["plan"],
            "steps+review": [],
        }

    def test_search_matches_resources(self, serve_preview):
        """The search also matches resources, and its counts and messages agree with the list."""
        preview = serve_preview(shelf=RECIPE)
        texts = {
            query: extract_text(preview.page(f"/gallery?q={query}")) for query in ("write+lang", "make", "zz")
        }
        listed = {query: "style://{language}" in text for query, text in texts.items()}

        assert listed == {"write+lang": True, "make": False, "zz": False}
        assert "0 of 2 prompts, 1 resource" in texts["write+lang"]
        assert "1 of 2 prompts, 0 of 1 resource" in texts["make"]
        sentences = {
            query: re.findall(r"\w+ (?:prompt )?match(?:es)?\b", text) for query, text in texts.items()
        }
        assert sentences == {"write+lang": ["No prompt matches"], "make": [], "zz": ["Nothing matches"]}

    def test_search_shows_at_most_100_matches(self, serve_preview):
        """A search shows at most 100 matches; without a search all prompts are shown."""
        source = "from promptkit import prompt\n" + "".join(
            f"@prompt\ndef many_{n}():\n    return 'a'\n" for n in range(130)
        )
        preview = serve_preview(many=source)

        assert len(re.findall('href="/prompts/', preview.page("/"))) == 130
        for path in ("/gallery?q=many", "/gallery?q=many&current=many_1"):
            page = preview.page(path)
            assert len(re.findall('href="/prompts/', page)) == 100
            assert "And 30 more. Refine your search to see them." in extract_text(page)

    def test_list_marks_the_current_prompt(self, serve_preview):
        """The list next to a page shows only names, and marks the current prompt."""
        preview = serve_preview(shelf=RECIPE)

        for page in (preview.page("/prompts/plan"), preview.page("/gallery?q=&current=plan")):
            assert re.findall(r'<a aria-current="page" href="([^"]*)"', page) == ["/prompts/plan"]
            assert "Ask for a review." not in page

    def test_diagnostic_shows_its_source_line(self, serve_preview):
        """A diagnostic shows its message, as `check` prints it, with its source line."""
        preview = serve_preview(
            shelf=RECIPE, broken="from promptkit import prompt\n\n@prompt\ndef bare(text):\n    return text\n"
        )
        page = preview.page("/")

        assert "<mark>text</mark>" in page
        assert (
            "error PK301 prompt &#39;bare&#39;: parameter &#39;text&#39; has no annotation"
            in page.replace('</span> <code class="rule">', " ").replace("</code>", "")
        )
        assert "1 error" in extract_text(page)

    def test_empty_gallery_explains_how_to_start(self, serve_preview):
        """An empty gallery explains how to add a recipe."""
        assert "Save a recipe to see it here" in serve_preview().page("/")


class TestScopes:
    def test_page_names_the_required_scopes(self, serve_preview):
        """The page shows every prompt and resource, and names the scopes that callers need."""
        release = '@prompt(scopes=["ship", "review"])\ndef release():\n    return "Ship it."\n'
        preview = serve_preview(shelf=RECIPE + release)

        assert "Visible only to callers with the scopes review and ship" in extract_text(
            preview.page("/prompts/release")
        )
        assert "Visible only to callers with the scope review" in extract_text(
            preview.page("/resources?uri=style://python")
        )
        assert "Visible only to callers" not in preview.page("/prompts/plan")


class TestPrompt:
    def test_page_renders_the_arguments_of_its_address(self, serve_preview):
        """A prompt's page is rendered with the arguments of its address."""
        page = serve_preview(shelf=RECIPE).page("/prompts/review?code=y+%3D+2&language=rust")

        assert "y = 2</textarea>" in page
        assert "<strong>y = 2</strong>" in page
        assert "Review this rust:" in page

    def test_submission_returns_only_the_changed_parts(self, serve_preview):
        """Submitting the form returns only the changed parts and the address of the same page."""
        preview = serve_preview(shelf=RECIPE)
        response = preview.client.post("/prompts/review/render", data={"code": "a & b", "language": "rust"})

        assert response.headers["hx-replace-url"] == "/prompts/review?code=a+%26+b&language=rust"
        assert "<html" not in response.text
        assert "<strong>a &amp; b</strong>" in response.text
        assert "2 messages, about" in extract_text(response.text)
        assert re.findall(r'hx-target="(#[\w-]+)"', response.text)[:3] == [
            "#fields",
            "#no-arguments",
            "#problems",
        ]

    def test_turn_shows_role_text_and_tokens(self, serve_preview):
        """Each turn has its role, its text formatted and raw, and its approximate token count."""
        page = serve_preview(shelf=RECIPE).page("/prompts/review?code=x")
        turns = re.findall(r'<li class="turn (\w+)" id="turn-(\d)">', page)

        assert turns == [("user", "1"), ("assistant", "2")]
        assert "<li><strong>x</strong></li>" in page
        assert '<pre class="content raw" hx-ignore>\nReview this python:\n\n- **x**</pre>' in page
        assert "about 3 tokens" in page

    def test_parts_omitted_by_fit_are_shown(self, serve_preview):
        """The parts that `fit` dropped or cut are listed below the turns, without secrets."""
        page = serve_preview(shelf=BUDGET).page("/prompts/summarize?notes=hunter2hunter2")
        text = extract_text(page)

        assert "To stay within 40 tokens, fit omitted:" in text
        assert "part 3, priority 0.2: 200 characters:" in text
        assert "text of part 2, priority 0.7: " in text
        assert "of 400 characters are kept" in text
        assert "hunter2" not in page.replace('value="hunter2hunter2"', "")
        assert "fit omitted" not in extract_text(serve_preview(shelf=RECIPE).page("/prompts/review?code=x"))

    def test_errors_are_shown_once(self, serve_preview):
        """Errors are shown only at their fields; the status line of the page names the fields."""
        page = serve_preview(shelf=RECIPE).render("review", language="pyton")
        text = extract_text(page)

        assert len(re.findall(r'<div class="field-errors"[^>]*><p>', page)) == 2
        assert "2 arguments need attention: language, code" in text
        assert text.count("did you mean") == 1
        assert text.count("'code' is missing") == 1

    def test_page_starts_with_the_example(self, serve_preview):
        """A page without arguments starts with the author's examples."""
        page = serve_preview(shelf=RECIPE).page("/prompts/review")

        assert "x = 1</textarea>" in page
        assert "<strong>x = 1</strong>" in page

    def test_exceptions_are_shown(self, serve_preview):
        """A `PromptError` shows its message; any other exception shows a traceback of the author's code."""
        preview = serve_preview(shelf=RECIPE)

        assert "nine steps are enough" in preview.render("plan", steps="10")
        failed = preview.render("plan", steps="0")
        assert "ZeroDivisionError" in failed
        assert "shelf.py" in failed
        assert "site-packages" not in failed

    def test_unknown_prompt_is_not_found(self, serve_preview):
        """The page of an unknown or removed prompt is a 404; for an unknown name, with a suggestion."""
        preview = serve_preview(shelf=RECIPE)
        response = preview.client.get("/prompts/revew")

        assert response.status_code == 404
        assert "did you mean &#39;review&#39;?" in response.text
        gone = preview.client.post("/prompts/revew/render", data={}, headers={"hx-request": "true"})
        assert gone.status_code == 404
        assert "Prompt not found" in gone.text
        assert "Unknown prompt" in gone.text

    def test_too_long_address_omits_the_arguments(self, serve_preview):
        """An address that would be too long omits the arguments."""
        preview = serve_preview(shelf=RECIPE)
        response = preview.client.post("/prompts/review/render", data={"code": "x" * 7000})

        assert response.headers["hx-replace-url"] == "/prompts/review"

    def test_pages_use_the_new_catalog_after_a_reload(self, serve_preview, recipes):
        """After a reload, pages use the new catalog."""
        preview = serve_preview(shelf=RECIPE)
        assert "more" not in extract_links(preview.page("/"))
        preview.live.publish(
            compile(load(recipes(shelf=RECIPE + "\n@prompt\ndef more():\n    return 'More.'\n")))
        )

        assert extract_links(preview.page("/"))["more"] == "/prompts/more"
        assert "<p>More.</p>" in preview.page("/prompts/more")

    def test_page_rendered_during_a_save_has_the_old_version(self, serve_preview, recipes):
        """A page rendered during a save carries its older catalog version, so that it reloads."""
        source = """
        from promptkit import prompt

        saves = []

        @prompt
        def slow():
            for save in saves:
                save()
            return "Old."
        """
        preview = serve_preview(slow=source)
        newer = compile(load(recipes(slow=source.replace("Old.", "New."))))
        function = preview.live.newest.catalog["slow"].renderer.function
        function.__globals__["saves"].append(lambda: preview.live.publish(newer))

        page = preview.page("/prompts/slow")
        assert "<p>Old.</p>" in page
        assert 'data-version="0"' in page
        page = preview.page("/prompts/slow")
        assert "<p>New.</p>" in page
        assert 'data-version="1"' in page


class TestResource:
    def test_template_page_reads_nothing(self, serve_preview):
        """A template's page shows its description and reads no resource."""
        page = serve_preview(shelf=RECIPE).page("/resources?uri=style://{language}")

        assert "How we write." in page
        assert "Plain" not in page

    def test_resource_page_shows_its_contents(self, serve_preview):
        """The page of a resource shows its contents."""
        page = serve_preview(shelf=RECIPE).page("/resources?uri=style://rust")

        assert "# Plain rust" in page

    def test_unreadable_uri_shows_the_reason(self, serve_preview):
        """The page of an invalid or unknown URI shows the reason."""
        preview = serve_preview(shelf=RECIPE)

        assert "did you mean &#39;rust&#39;" in preview.page("/resources?uri=style://rus")
        assert "unknown resource" in preview.page("/resources?uri=no://where")

    def test_refused_defaults_are_not_a_failure(self, serve_preview):
        """A refusal of the default values is shown as "Not rendered", not as a failure."""
        source = """
        from promptkit import PromptError, prompt

        @prompt
        def review(ref: str = "HEAD"):
            raise PromptError(f"there is no difference to {ref}")
        """
        preview = serve_preview(review=source)

        assert "Not rendered: there is no difference to HEAD" in extract_text(preview.page("/prompts/review"))
        assert "failed" not in extract_text(preview.page("/prompts/review"))
        assert "This prompt failed" in extract_text(preview.page("/prompts/review?ref=main"))

    def test_unsampled_prompt_runs_only_on_request(self, serve_preview):
        """A prompt with `sample=False` runs only when the user presses the button, not when a tab opens."""
        source = """
        from promptkit import prompt

        CALLS = []

        @prompt(sample=False)
        def publish():
            CALLS.append(1)
            return f"Call {len(CALLS)}."
        """
        preview = serve_preview(publish=source)

        assert "Not rendered: sample=False" in extract_text(preview.page("/prompts/publish"))
        for tab in PANELS:
            assert "Call" not in extract_text(preview.client.post(f"/prompts/publish/tabs/{tab}").text)
        assert "Call 1." in extract_text(
            preview.client.post("/prompts/publish/render", data={"render-now": "yes"}).text
        )

    def test_command_line_names_the_target_of_the_prompt(self, recipes, serve_preview):
        """With several targets, the command line names the target that contains the prompt."""
        preview = serve_preview(shelf=RECIPE)
        targets = [recipes("other"), recipes()]
        app = create_application(preview.live, targets, TOKEN, [HOST])
        with closing(TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)) as client:
            client.get(f"/?access-token={TOKEN}")
            response = client.post("/prompts/review/tabs/command-line", data={"code": "x"})

        assert f"promptkit render {targets[1]} review" in extract_text(response.text)

    def test_long_error_is_truncated(self, serve_preview):
        """A long error message is truncated."""
        source = """
        from promptkit import PromptError, prompt

        @prompt
        def fails(text: str = "x"):
            raise PromptError(text * 10**6)
        """
        page = serve_preview(fails=source).page("/prompts/fails?text=x")

        assert len(page) < 40_000
        assert "20,000 of 1,000,000 characters are shown." in page

    def test_hanging_old_calls_do_not_block_a_reload(self, serve_preview, recipes):
        """After a reload, hanging calls of the old version do not block the new one."""
        hangs = """
        import threading
        from promptkit import prompt

        @prompt(timeout=0.05)
        def one():
            threading.Event().wait(5)
            return "Late."
        """
        preview = serve_preview(one=hangs)
        replies = [preview.render("one") for _ in range(5)]
        assert ["4 calls that are still running" in reply for reply in replies] == [False] * 4 + [True]
        fixed = "from promptkit import prompt\n@prompt\ndef one():\n    return 'Fine.'\n"
        preview.live.publish(compile(load(recipes(one=fixed))))

        assert "<p>Fine.</p>" in preview.render("one")


class TestCompletion:
    SOURCE = """
    from typing import Annotated
    from promptkit import Arg, prompt

    def names(typed, chosen):
        if typed == "fail":
            raise LookupError("no names")
        return [f"{chosen.get('team', 'none')}-{n}" for n in range(3)]

    @prompt
    def greet(name: Annotated[str, Arg("A name", complete=names)], team: str = ""):
        return f"Hello, {name}."
    """

    def test_completion_values_are_returned_as_options(self, serve_preview):
        """A completion function's values for the form are returned as options."""
        response = serve_preview(greet=self.SOURCE).client.post(
            "/prompts/greet/complete/name", data={"name": "blue", "team": "blue"}
        )

        assert re.findall('<option value="([^"]*)">', response.text) == ["blue-0", "blue-1", "blue-2"]

    def test_failing_completion_function_is_reported(self, serve_preview):
        """An error in a completion function is reported, and the form keeps working."""
        response = serve_preview(greet=self.SOURCE).client.post(
            "/prompts/greet/complete/name", data={"name": "fail"}
        )

        assert (response.status_code, "<option" in response.text) == (200, False)
        assert "LookupError: no names" in response.text


class TestTabs:
    def test_each_tab_renders_the_values(self, serve_preview):
        """Each of the seven tabs renders the form's values, escaped."""
        preview = serve_preview(shelf=RECIPE)
        page = preview.page("/prompts/review?code=x")
        tabs = re.findall(r'hx-post="(/prompts/review/tabs/[\w-]+)"', page)

        assert len(tabs) == 7
        for tab in tabs:
            response = preview.client.post(tab, data={"code": "a <b>"})
            assert response.status_code == 200
            assert "<b>" not in response.text
        assert preview.client.post("/prompts/review/tabs/none").status_code == 404


class TestDisconnect:
    @pytest.mark.parametrize("body", [b"code=x", b"code=" + b"x" * 10], ids=["rendering", "sending"])
    def test_disconnect_cancels_the_rendering(self, body, recipes):
        """If the client disconnects, the reply is 499 and a running asynchronous prompt is cancelled."""
        source = """
        import asyncio
        from promptkit import prompt

        cancelled = []

        @prompt
        async def waits(code: str):
            try:
                await asyncio.sleep(50)
            except asyncio.CancelledError:
                cancelled.append(code)
                raise
        """
        live = LiveCatalog(compile(load(recipes(waits=source))))
        app = create_application(live, "recipes", TOKEN, [HOST])
        headers = [(b"host", HOST.encode()), (b"cookie", get_cookie(app))]
        headers += [(b"content-type", b"application/x-www-form-urlencoded"), (b"content-length", b"15")]
        scope = {"type": "http", "method": "POST", "path": "/prompts/waits/render", "headers": headers}
        scope |= {"query_string": b"", "root_path": "", "http_version": "1.1", "scheme": "http"}
        is_complete = body == b"code=x"
        incoming = [{"type": "http.request", "body": body, "more_body": not is_complete}]
        incoming += [{"type": "http.disconnect"}]
        sent = []

        async def scenario():
            async def receive():
                await asyncio.sleep(0.05)
                return incoming.pop(0)

            async def send(message):
                sent.append(message)

            await app(scope, receive, send)
            function = live.newest.catalog["waits"].renderer.function
            while is_complete and not function.__globals__["cancelled"]:  # noqa: ASYNC110 (on its thread)
                await asyncio.sleep(0.01)

        asyncio.run(scenario())
        assert (sent[0]["status"], incoming) == (499, [])


def test_markdown_prompt(recipes, make_client):
    """The page of a Markdown prompt has its form, renders its case, and links to its file in an editor."""
    folder = recipes()
    file = folder / "fix.prompt.md"
    file.write_text(
        "---\narguments:\n  issue: The issue\ncases:\n  one: {issue: number 7}\n---\nFix {{issue}}."
    )
    live = LiveCatalog(compile(load(folder)))
    app = create_application(live, str(folder), TOKEN, [HOST], editor="vscode")
    with closing(make_client(live, app=app)) as client:
        client.get(f"/?access-token={TOKEN}")
        page = client.get("/prompts/fix").text

    assert f"vscode://file/{str(file).lstrip('/')}:1" in page
    assert "The issue" in page
    assert "Fix number 7." in extract_text(page)


def test_gallery_shows_the_server(recipes):
    """The first page shows the server's identity and instructions, and the Wire tab shows the identity."""
    identity = ServerInfo("acme", "3.2.1", "Plan <first>.", "Acme", "Prompts.", "https://acme.example")
    live = LiveCatalog(compile(load(recipes(review=RECIPE))), identity)
    app = create_application(live, "recipes", TOKEN, [HOST])
    with closing(TestClient(app, base_url=f"http://{HOST}")) as client:
        page = client.get(f"/?access-token={TOKEN}").text
        wire = client.post("/prompts/review/tabs/wire", data={"code": "x"}).text

    assert "Acme acme 3.2.1 https://acme.example" in extract_text(page)
    assert "Plan <first>." in extract_text(page)
    assert "3.2.1" in extract_text(wire)
