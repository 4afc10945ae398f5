import re

import pytest

from promptkit import Audio, EmbeddedResource, Image, ResourceLink, Text, Workflow, user
from promptkit.preview.conversation import ConversationBuilder
from promptkit.preview.media import MediaStore
from promptkit.preview.templating import environment, format_markdown
from tests.preview import submission

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def render_turns(*contents, media=None, redact=str, full_turn=0):
    """Return the HTML of a workflow's turns, truncated except for turn number *full_turn*."""
    turn = environment().get_template("conversation.html").module.turn
    workflow = Workflow([message for content in contents for message in user(content)])
    return "".join(
        turn(item)
        for item in ConversationBuilder(media or MediaStore(), redact).build_turns(workflow, full_turn)
    )


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<hx-partial hx-target='body'>x</hx-partial>",
    "</pre></div><script>alert(1)</script>",
    "`</code><script>alert(1)</script>`",
    '```"><script>alert(1)</script>\nx\n```',
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](vbscript:x) [b](file:///etc/passwd) [c](/prompts/x) [d](//evil.example)",
    "<javascript:alert(1)>",
    "![a](https://evil.example/x.png)",
    '![a](x" onerror="alert(1))',
    '[a](https://example.org "x\\" onclick=\\"alert(1)")',
    "[a]: javascript:alert(1)\n\n[a]",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;script>",
    "{{ 7 * 7 }} {% raw %}",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_escaped(text):
    """Hostile text yields only tags, attributes and link schemes that the template writes."""
    page = render_turns(text)
    tags = re.findall(r"<[^>]*>", page)
    attributes = "class|id|type|data-copy|data-full-text|aria-label|hx-ignore|href|rel|target|title"
    allowed_tag = rf'</?(li|div|span|pre|p|button|strong|em|code|a|ul)( ({attributes})(="[^"]*")?)*>'

    assert [tag for tag in tags if not re.fullmatch(allowed_tag, tag)] == []
    assert not re.search(r'href="(?!https:|http:|mailto:)', page)
    assert "49" not in page


@pytest.mark.parametrize("uri", ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "app://x"])
def test_unsafe_link_is_shown_as_text(uri):
    """A resource link with an unsafe scheme is shown as text, in full."""
    page = render_turns(ResourceLink(uri, name="Click me"))

    assert "<a" not in page
    assert f"<code>{uri}</code>" in page


def test_web_link_sends_no_referrer():
    """A web link opens outside the page and sends no referrer."""
    page = render_turns(
        ResourceLink("https://example.org/a", name="a", title="The <b>", size=2000, mime_type="a/b")
    )

    assert (
        '<a href="https://example.org/a" rel="noreferrer noopener" target="_blank">The &lt;b&gt;</a>' in page
    )
    assert "a · a/b · 2 kB" in page


def test_markdown_link_sends_no_referrer():
    """Links in Markdown open outside the page, like resource links."""
    page = render_turns("[a](https://example.org) <mailto:a@example.org>")

    assert '<a href="https://example.org" rel="noreferrer noopener" target="_blank">a</a>' in page
    assert 'href="mailto:a@example.org"' in page


def test_invisible_characters_are_escaped():
    """Control characters, direction marks and tag characters are escaped in Markdown and raw text."""
    page = render_turns("a\u202eb \x1b[0m \U000e0041 \ud800")

    assert page.count(r"a\u202eb \x1b[0m \U000e0041 \ud800") == 2
    page.encode()


def test_headings_become_styled_paragraphs():
    """Headings in a prompt are styled paragraphs, not headings of the page."""
    page = render_turns("# One\n\n### Three")

    assert '<p class="level level-1">One</p>' in page
    assert '<p class="level level-3">Three</p>' in page
    assert "<h" not in page


def test_long_text_is_truncated_until_requested():
    """Long text is truncated until the user requests all of it, so that the page stays small."""
    text = "word " * 10_000
    cut, full = render_turns(text), render_turns(text, full_turn=1)

    assert len(cut) < 50_000
    assert "20,000 of 50,000 characters are shown." in cut
    assert '<button type="submit" form="arguments" name="show-all" value="1">Show all</button>' in cut
    assert len(full) > 100_000
    assert "Show all" not in full


@pytest.mark.parametrize("text", ["word " * 10_000, "a\u202eb\ufeff", "\ufeffa"])
def test_original_text_can_be_copied(text):
    """When text is truncated or escaped, the copy button links to the original text."""
    media = MediaStore()
    digest = re.search(r'data-copy="turn-1" data-full-text="/media/(\w+)"', render_turns(text, media=media))[
        1
    ]

    assert media.build_response(digest).body.decode() == text
    assert "data-full-text" not in render_turns("plain\n\tè 🐍", media=media)


def test_image_has_a_stable_address(png):
    """An image has a stable address that serves its bytes."""
    media = MediaStore()
    page = render_turns(Image(png), media=media)
    address = re.search(r'<img class="content" src="(/media/\w+)" alt="image of turn 1">', page)[1]

    assert render_turns(Image(png), media=media) == page
    response = media.build_response(address.removeprefix("/media/"))
    assert (response.body, response.media_type) == (png, "image/png")
    assert "image/png" in page


def test_recording_is_an_audio_player(wav):
    """A recording is shown as an audio player."""
    assert re.search(
        r'<audio class="content" controls [^>]*src="/media/\w+" aria-label="audio of turn 1">',
        render_turns(Audio(wav)),
    )


@pytest.mark.parametrize("content", [{"text": SVG}, {"blob": SVG.encode()}])
def test_svg_is_a_sandboxed_image(content):
    """SVG is shown as an image and is sandboxed when opened as a document."""
    media = MediaStore()
    page = render_turns(EmbeddedResource("a://b", mime_type="image/svg+xml", **content), media=media)
    digest = re.search(r'<img class="content" src="/media/(\w+)" alt="a://b">', page)[1]
    response = media.build_response(digest)

    assert "<svg" not in page
    assert response.headers["content-type"] == "image/svg+xml"
    assert response.headers["content-security-policy"].endswith("; sandbox")


def test_html_document_is_downloaded():
    """An HTML document is downloaded, not displayed."""
    media = MediaStore()
    page = render_turns(EmbeddedResource("a://b", blob=b"<script>", mime_type="text/html"), media=media)
    response = media.build_response(re.search(r'href="/media/(\w+)" download', page)[1])

    assert response.media_type == "application/octet-stream"
    assert response.headers["content-disposition"] == "attachment"


def test_oldest_media_are_evicted(monkeypatch):
    """The oldest media are evicted when the store is full."""
    monkeypatch.setattr("promptkit.preview.media._MAX_MEDIA_BYTES", 256)
    media = MediaStore()
    first = media.store(bytes(200), "image/png")
    last = media.store(b"1" * 100, "image/png")

    assert media.build_response(first.removeprefix("/media/")).status_code == 404
    assert media.build_response(last.removeprefix("/media/")).status_code == 200


def test_embedded_text_is_shown_under_its_uri():
    """Embedded Markdown is formatted and other text is shown raw, each under its URI."""
    page = render_turns(
        EmbeddedResource("doc://a", text="**x** <b>", mime_type="text/markdown"),
        EmbeddedResource("doc://b", text="**y** <b>", mime_type="text/x-python"),
    )

    assert "<code>doc://a</code>" in page
    assert "<strong>x</strong>" in page
    assert '<pre class="content raw unformatted" hx-ignore>\n**y** &lt;b&gt;</pre>' in page


def test_annotations_are_shown():
    """A turn shows its audience, its priority and when it was last modified."""
    labels = re.findall(
        r'<span class="role">(.*?)</span>\s*<span class="details">(.*?)</span>',
        render_turns(Text("a", audience="user", priority=0.5, last_modified="2026-01-02T00:00:00Z")),
        re.DOTALL,
    )

    assert labels == [("user", "text · about 1 token · for the user · priority 0.5 · changed 2026-01-02")]


def test_secrets_are_hidden():
    """Secrets are hidden in text, documents, links and link names."""
    page = render_turns(
        "key",
        EmbeddedResource("a://key", text="key"),
        ResourceLink("https://key.example", name="key", description="key"),
        redact=lambda text: text.replace("key", "<secret>"),
    )

    assert "key" not in page


@pytest.mark.parametrize("language", ["python", "nothing-of-that-name", "", "html"])
def test_code_is_highlighted(language):
    """Syntax highlighting adds only spans with classes, and leaves the code's text unchanged."""
    code = "def f():\n    return '<script>alert(1)</script>'\n"
    html = str(format_markdown(f"```{language}\n{code}```"))
    tree = submission.parse_html(html)

    body = tree.find("body")
    assert {element.tag for element in body.iter()} <= {"body", "pre", "code", "span"}
    assert "".join(body.itertext()).strip() == code.strip()
    assert ('<span class="k">def</span>' in html) == (language == "python")
