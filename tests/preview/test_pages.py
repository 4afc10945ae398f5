import asyncio
import re
from contextlib import closing
from html import unescape

import pytest
from starlette.testclient import TestClient

from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load
from promptkit.preview.live import Live
from promptkit.preview.prompt_pages import PANELS
from promptkit.preview.routes import application
from tests.preview.conftest import HOST, TOKEN, cookie_of

SHELF = '''
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


def text_of(page):
    """Return the text of a page, with whitespace collapsed."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", page)).split())


def links(page):
    """Return the address of each link by its text."""
    return {
        text_of(text): unescape(place)
        for place, text in re.findall(r'<a [^>]*href="([^"]*)"[^>]*>(.*?)</a>', page, re.DOTALL)
    }


class TestGallery:
    def test_every_prompt_is_a_link_of_its_name(self, preview):
        """The gallery lists each prompt with a link, its title, description, arguments and tags."""
        page = preview(shelf=SHELF).page("/")

        assert links(page)["review"] == "/prompts/review"
        assert links(page)["plan"] == "/prompts/plan"
        assert "review Review code Ask for a review. code * language code quality" in text_of(page)
        assert "2 prompts, 1 resource" in text_of(page)

    def test_resources_are_listed(self, preview):
        """A templated resource is listed under its URI template."""
        page = preview(shelf=SHELF).page("/")

        assert links(page)["style://{language}"] == "/resources?uri=style%3A%2F%2F%7Blanguage%7D"

    def test_search(self, preview):
        """Every word of a query must match a name, title, description, tag or argument."""
        shown = preview(shelf=SHELF)
        found = {
            typed: re.findall(r'href="/prompts/(\w+)"', shown.page(f"/?q={typed}"))
            for typed in ("", "QUALITY", "review+lang", "make", "steps+review")
        }

        assert found == {
            "": ["plan", "review"],
            "QUALITY": ["review"],
            "review+lang": ["review"],
            "make": ["plan"],
            "steps+review": [],
        }

    def test_search_looks_for_resources_too(self, preview):
        """The search also matches resources, and its counts and messages agree with the list."""
        shown = preview(shelf=SHELF)
        found = {typed: text_of(shown.page(f"/gallery?q={typed}")) for typed in ("write+lang", "make", "zz")}
        listed = {typed: "style://{language}" in page for typed, page in found.items()}

        assert listed == {"write+lang": True, "make": False, "zz": False}
        assert "0 of 2 prompts, 1 resource" in found["write+lang"]
        assert "1 of 2 prompts, 0 of 1 resource" in found["make"]
        sentences = {
            typed: re.findall(r"\w+ (?:prompt )?match(?:es)?\b", page) for typed, page in found.items()
        }
        assert sentences == {"write+lang": ["No prompt matches"], "make": [], "zz": ["Nothing matches"]}

    def test_a_search_that_finds_many(self, preview):
        """A search shows at most 100 matches; without a search all prompts are shown."""
        source = "from promptkit import prompt\n" + "".join(
            f"@prompt\ndef many_{n}():\n    return 'a'\n" for n in range(130)
        )
        shown = preview(many=source)

        assert len(re.findall('href="/prompts/', shown.page("/"))) == 130
        for path in ("/gallery?q=many", "/gallery?q=many&current=many_1"):
            found = shown.page(path)
            assert len(re.findall('href="/prompts/', found)) == 100
            assert "And 30 more: type on to find fewer." in text_of(found)

    def test_beside_a_page_the_current_prompt_is_marked(self, preview):
        """The list next to a page marks the current prompt and shows names only."""
        shown = preview(shelf=SHELF)

        for page in (shown.page("/prompts/plan"), shown.page("/gallery?q=&current=plan")):
            assert re.findall(r'<a aria-current="page" href="([^"]*)"', page) == ["/prompts/plan"]
            assert "Ask for a review." not in page

    def test_faults_with_their_line(self, preview):
        """A diagnostic shows its message, as `check` prints it, with its source line."""
        shown = preview(
            shelf=SHELF, broken="from promptkit import prompt\n\n@prompt\ndef bare(text):\n    return text\n"
        )
        page = shown.page("/")

        assert "<mark>text</mark>" in page
        assert (
            "error PK301 prompt &#39;bare&#39;: parameter &#39;text&#39; has no annotation"
            in page.replace('</span> <code class="rule">', " ").replace("</code>", "")
        )
        assert "1 error" in text_of(page)

    def test_an_empty_folder(self, preview):
        """An empty gallery explains how to add a recipe."""
        assert "Save a recipe, and it appears here." in preview().page("/")


class TestScopes:
    def test_who_sees_it_is_said(self, preview):
        """The page shows every prompt and resource, and names the scopes that callers need."""
        release = '@prompt(scopes=["ship", "review"])\ndef release():\n    return "Ship it."\n'
        shown = preview(shelf=SHELF + release)

        assert "Only callers with the scopes review and ship see it." in text_of(
            shown.page("/prompts/release")
        )
        assert "Only callers with the scope review see it." in text_of(
            shown.page("/resources?uri=style://python")
        )
        assert "Only callers" not in shown.page("/prompts/plan")


class TestPrompt:
    def test_the_address_holds_the_arguments(self, preview):
        """A prompt's page is rendered with the arguments of its address."""
        page = preview(shelf=SHELF).page("/prompts/review?code=y+%3D+2&language=rust")

        assert "y = 2</textarea>" in page
        assert "<strong>y = 2</strong>" in page
        assert "Review this rust:" in page

    def test_a_form_is_rendered(self, preview):
        """Submitting the form returns only the changed parts and the address of the same page."""
        shown = preview(shelf=SHELF)
        answer = shown.client.post("/prompts/review/render", data={"code": "a & b", "language": "rust"})

        assert answer.headers["hx-replace-url"] == "/prompts/review?code=a+%26+b&language=rust"
        assert "<html" not in answer.text
        assert "<strong>a &amp; b</strong>" in answer.text
        assert "2 messages, about" in text_of(answer.text)
        assert re.findall(r'hx-target="(#[\w-]+)"', answer.text)[:3] == [
            "#fields",
            "#no-arguments",
            "#wrong",
        ]

    def test_turns(self, preview):
        """Each turn has its role, its text formatted and raw, and its approximate token count."""
        page = preview(shelf=SHELF).page("/prompts/review?code=x")
        turns = re.findall(r'<li class="turn (\w+)" id="turn-(\d)">', page)

        assert turns == [("user", "1"), ("assistant", "2")]
        assert "<li><strong>x</strong></li>" in page
        assert '<pre class="said raw" hx-ignore>\nReview this python:\n\n- **x**</pre>' in page
        assert "about 3 tokens" in page

    def test_faults_stand_at_their_fields(self, preview):
        """Errors are shown at their fields and summarized in the state."""
        text = preview(shelf=SHELF).render("review", language="pyton")

        assert len(re.findall(r'<div class="faults-of-field"[^>]*><p>', text)) == 2
        assert "2 arguments need attention: language, code" in text_of(text)
        assert "did you mean python ?" in text_of(text)

    def test_the_authors_example(self, preview):
        """A page without arguments starts with the author's examples."""
        page = preview(shelf=SHELF).page("/prompts/review")

        assert "x = 1</textarea>" in page
        assert "<strong>x = 1</strong>" in page

    def test_what_a_prompt_raises(self, preview):
        """A `PromptError` shows its message, and any other exception a traceback of the author's code."""
        shown = preview(shelf=SHELF)

        assert "nine steps are enough" in shown.render("plan", steps="10")
        failed = shown.render("plan", steps="0")
        assert "ZeroDivisionError" in failed
        assert "shelf.py" in failed
        assert "site-packages" not in failed

    def test_an_unknown_prompt(self, preview):
        """An unknown or removed prompt gets a 404, and the page of an unknown one a suggestion."""
        shown = preview(shelf=SHELF)
        answer = shown.client.get("/prompts/revew")

        assert answer.status_code == 404
        assert "did you mean &#39;review&#39;?" in answer.text
        gone = shown.client.post("/prompts/revew/render", data={}, headers={"hx-request": "true"})
        assert gone.status_code == 404
        assert "The prompt is gone" in gone.text
        assert "unknown prompt" in gone.text

    def test_a_long_address_is_not_shown(self, preview):
        """An address that would be too long omits the arguments."""
        shown = preview(shelf=SHELF)
        answer = shown.client.post("/prompts/review/render", data={"code": "x" * 7000})

        assert answer.headers["hx-replace-url"] == "/prompts/review"

    def test_the_newest_recipes_are_shown(self, preview, recipes):
        """After a reload, pages use the new catalog."""
        shown = preview(shelf=SHELF)
        assert "more" not in links(shown.page("/"))
        shown.live.publish(
            compile(load(recipes(shelf=SHELF + "\n@prompt\ndef more():\n    return 'More.'\n")))
        )

        assert links(shown.page("/"))["more"] == "/prompts/more"
        assert "<p>More.</p>" in shown.page("/prompts/more")

    def test_a_page_that_was_made_during_a_save_is_told_of_it(self, preview, recipes):
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
        shown = preview(slow=source)
        newer = compile(load(recipes(slow=source.replace("Old.", "New."))))
        function = shown.live.newest.catalog["slow"].renderer.function
        function.__globals__["saves"].append(lambda: shown.live.publish(newer))

        page = shown.page("/prompts/slow")
        assert "<p>Old.</p>" in page
        assert 'data-version="0"' in page
        page = shown.page("/prompts/slow")
        assert "<p>New.</p>" in page
        assert 'data-version="1"' in page


class TestResource:
    def test_a_template(self, preview):
        """A template's page shows its description and reads no resource."""
        page = preview(shelf=SHELF).page("/resources?uri=style://{language}")

        assert "How we write." in page
        assert "Plain" not in page

    def test_a_uri_is_read(self, preview):
        """The page of a resource shows its contents."""
        page = preview(shelf=SHELF).page("/resources?uri=style://rust")

        assert "# Plain rust" in page

    def test_what_cannot_be_read(self, preview):
        """The page of an invalid or unknown URI shows the reason."""
        shown = preview(shelf=SHELF)

        assert "did you mean &#39;rust&#39;" in shown.page("/resources?uri=style://rus")
        assert "unknown resource" in shown.page("/resources?uri=no://where")

    def test_a_great_many_messages(self, preview):
        """Of many messages, 200 are shown until all are requested."""
        source = "from promptkit import prompt\n@prompt\ndef many(n: int):\n    return ['a'] * n\n"
        shown = preview(many=source)

        cut = shown.render("many", n="1000")
        assert cut.count('<li class="turn') == 200
        assert "1,000 messages" in text_of(cut)
        assert "200 of 1,000 messages are shown." in text_of(cut)
        whole = shown.client.post("/prompts/many/render", data={"n": "1000", "show-all": "-1"}).text
        assert whole.count('<li class="turn') == 1000
        assert "are shown" not in whole
        assert "unknown" not in whole

    def test_defaults_that_are_refused(self, preview):
        """A refusal of the default values is shown as "Not rendered", not as a failure."""
        source = """
        from promptkit import PromptError, prompt

        @prompt
        def review(ref: str = "HEAD"):
            raise PromptError(f"there is no difference to {ref}")
        """
        shown = preview(review=source)

        assert "Not rendered: there is no difference to HEAD" in text_of(shown.page("/prompts/review"))
        assert "failed" not in text_of(shown.page("/prompts/review"))
        assert "It failed" in text_of(shown.page("/prompts/review?ref=main"))

    def test_a_prompt_that_is_not_to_be_sampled(self, preview):
        """A prompt with `sample=False` runs only when the user presses the button, not when a tab opens."""
        source = """
        from promptkit import prompt

        CALLS = []

        @prompt(sample=False)
        def publish():
            CALLS.append(1)
            return f"Call {len(CALLS)}."
        """
        shown = preview(publish=source)

        assert "Not rendered: sample=False" in text_of(shown.page("/prompts/publish"))
        for tab in PANELS:
            assert "Call" not in text_of(shown.client.post(f"/prompts/publish/tabs/{tab}").text)
        assert "Call 1." in text_of(
            shown.client.post("/prompts/publish/render", data={"render-it": "yes"}).text
        )

    def test_the_command_of_one_of_several_targets(self, recipes, preview):
        """With several targets, the command line names the one that contains the prompt."""
        shown = preview(shelf=SHELF)
        targets = [recipes("other"), recipes()]
        pages = application(shown.live, targets, TOKEN, [HOST])
        with closing(TestClient(pages, base_url=f"http://{HOST}", follow_redirects=False)) as client:
            client.get(f"/?access-token={TOKEN}")
            answer = client.post("/prompts/review/tabs/command-line", data={"code": "x"})

        assert f"promptkit render {targets[1]} review" in text_of(answer.text)

    def test_a_great_error(self, preview):
        """A long error message is truncated."""
        source = """
        from promptkit import PromptError, prompt

        @prompt
        def fails(text: str = "x"):
            raise PromptError(text * 10**6)
        """
        page = preview(fails=source).page("/prompts/fails?text=x")

        assert len(page) < 40_000
        assert "20,000 of 1,000,000 characters are shown." in page

    def test_a_reload_waits_for_nothing_old(self, preview, recipes):
        """After a reload, hanging calls of the old version do not block the new one."""
        hangs = """
        import threading
        from promptkit import prompt

        @prompt(timeout=0.05)
        def one():
            threading.Event().wait(5)
            return "Late."
        """
        shown = preview(one=hangs)
        said = [shown.render("one") for _ in range(5)]
        assert ["4 calls of it still run" in each for each in said] == [False] * 4 + [True]
        mended = "from promptkit import prompt\n@prompt\ndef one():\n    return 'Fine.'\n"
        shown.live.publish(compile(load(recipes(one=mended))))

        assert "<p>Fine.</p>" in shown.render("one")


class TestCompletion:
    SOURCE = """
    from typing import Annotated
    from promptkit import Arg, prompt

    def names(typed, chosen):
        if typed == "fail":
            raise LookupError("no names")
        return [f"{chosen.get('team', 'nobody')}-{n}" for n in range(3)]

    @prompt
    def greet(name: Annotated[str, Arg("A name", complete=names)], team: str = ""):
        return f"Hello, {name}."
    """

    def test_values_follow_from_what_was_typed_and_chosen(self, preview):
        """A completion function's values for the form are returned as options."""
        answer = preview(greet=self.SOURCE).client.post(
            "/prompts/greet/complete/name", data={"name": "blue", "team": "blue"}
        )

        assert re.findall('<option value="([^"]*)">', answer.text) == ["blue-0", "blue-1", "blue-2"]

    def test_an_author_whose_function_fails_is_told(self, preview):
        """An error in a completion function is reported, and the form keeps working."""
        answer = preview(greet=self.SOURCE).client.post("/prompts/greet/complete/name", data={"name": "fail"})

        assert (answer.status_code, "<option" in answer.text) == (200, False)
        assert "LookupError: no names" in answer.text


class TestTabs:
    def test_each_is_shown(self, preview):
        """Each of the seven tabs renders the form's values, escaped."""
        shown = preview(shelf=SHELF)
        page = shown.page("/prompts/review?code=x")
        tabs = re.findall(r'hx-post="(/prompts/review/tabs/[\w-]+)"', page)

        assert len(tabs) == 7
        for tab in tabs:
            answer = shown.client.post(tab, data={"code": "a <b>"})
            assert answer.status_code == 200
            assert "<b>" not in answer.text
        assert shown.client.post("/prompts/review/tabs/none").status_code == 404


class TestSuperseded:
    @pytest.mark.parametrize("arrived", [b"code=x", b"code=" + b"x" * 10], ids=["rendering", "sending"])
    def test_nobody_waits_any_more(self, arrived, recipes):
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
        live = Live(compile(load(recipes(waits=source))))
        pages = application(live, "recipes", TOKEN, [HOST])
        headers = [(b"host", HOST.encode()), (b"cookie", cookie_of(pages))]
        headers += [(b"content-type", b"application/x-www-form-urlencoded"), (b"content-length", b"15")]
        scope = {"type": "http", "method": "POST", "path": "/prompts/waits/render", "headers": headers}
        scope |= {"query_string": b"", "root_path": "", "http_version": "1.1", "scheme": "http"}
        is_whole = arrived == b"code=x"
        coming = [{"type": "http.request", "body": arrived, "more_body": not is_whole}]
        coming += [{"type": "http.disconnect"}]
        sent = []

        async def scenario():
            async def receive():
                await asyncio.sleep(0.05)
                return coming.pop(0)

            async def send(message):
                sent.append(message)

            await pages(scope, receive, send)
            function = live.newest.catalog["waits"].renderer.function
            while is_whole and not function.__globals__["cancelled"]:  # noqa: ASYNC110 (on its thread)
                await asyncio.sleep(0.01)

        asyncio.run(scenario())
        assert (sent[0]["status"], coming) == (499, [])
