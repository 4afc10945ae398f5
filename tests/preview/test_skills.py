from hashlib import sha256

from tests.preview.test_pages import extract_links, extract_text

SKILLS = '''
from promptkit import prompt, skill

@prompt
def review(code: str):
    """Ask for a review."""
    return code

@skill(license="MIT", metadata={"by": "<us>"}, files={"references/words.md": "# Words", "logo.bin": b"\\xff"})
def code_review():
    """Review a change. Use it often."""
    return "# Review\\n\\nRead [words](references/words.md)."
'''

PAGE = "/resources?uri=skill%3A%2F%2Fcode-review%2FSKILL.md"


class TestLists:
    def test_gallery_links_to_skills(self, serve_preview):
        """The gallery links to each skill and shows its description."""
        page = serve_preview(shelf=SKILLS).page("/")

        assert "1 prompt, 1 skill" in extract_text(page)
        assert extract_links(page)["code-review"] == PAGE
        assert "Review a change. Use it often." in extract_text(page)

    def test_search_finds_skills(self, serve_preview):
        """The gallery's search finds skills."""
        preview = serve_preview(shelf=SKILLS)

        assert "code-review" in preview.page("/gallery?q=often")
        assert "code-review" not in preview.page("/gallery?q=never")

    def test_skills_are_listed_next_to_pages(self, serve_preview):
        """Skills are in the list next to other pages."""
        assert extract_links(serve_preview(shelf=SKILLS).page("/prompts/review"))["code-review"] == PAGE


class TestPage:
    def test_page_shows_the_whole_skill(self, serve_preview):
        """A skill's page shows its fields, its Markdown, and its files with their digests."""
        page = serve_preview(shelf=SKILLS).page(PAGE)
        text = extract_text(page)

        assert "license MIT" in text
        assert "<us>" not in page
        assert "u003cus" in text
        assert '<p class="level level-1">Review</p>' in page
        assert extract_links(page)["references/words.md"].endswith("code-review%2Freferences%2Fwords.md")
        assert sha256(b"# Words").hexdigest() in page

    def test_file_is_shown_within_its_skill(self, serve_preview):
        """A skill's file is shown within its skill's page."""
        page = serve_preview(shelf=SKILLS).page(
            "/resources?uri=skill%3A%2F%2Fcode-review%2Freferences%2Fwords.md"
        )

        assert '<p class="level level-1">Words</p>' in page
        assert "license MIT" in extract_text(page)
        assert (
            'aria-current="page" href="/resources?uri=skill%3A%2F%2Fcode-review%2Freferences%2Fwords.md"'
            in page
        )
