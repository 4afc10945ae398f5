from hashlib import sha256

from tests.preview.test_pages import links, text_of

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
    def test_the_gallery(self, preview):
        """The gallery links to each skill and shows its description."""
        page = preview(shelf=SKILLS).page("/")

        assert "1 prompt, 1 skill" in text_of(page)
        assert links(page)["code-review"] == PAGE
        assert "Review a change. Use it often." in text_of(page)

    def test_search(self, preview):
        """The gallery's search and the palette find skills."""
        shown = preview(shelf=SKILLS)

        assert "code-review" in shown.page("/gallery?q=often")
        assert "code-review" not in shown.page("/gallery?q=never")
        assert links(shown.page("/palette?q=code"))["code-review skill"] == PAGE

    def test_beside_other_pages(self, preview):
        """Skills are in the list next to other pages."""
        assert links(preview(shelf=SKILLS).page("/prompts/review"))["code-review"] == PAGE


class TestPage:
    def test_all_of_it(self, preview):
        """A skill's page shows its fields, its Markdown, and its files with their digests."""
        page = preview(shelf=SKILLS).page(PAGE)
        said = text_of(page)

        assert "license MIT" in said
        assert "<us>" not in page
        assert "u003cus" in said
        assert '<p class="level level-1">Review</p>' in page
        assert links(page)["references/words.md"].endswith("code-review%2Freferences%2Fwords.md")
        assert sha256(b"# Words").hexdigest() in page

    def test_another_file(self, preview):
        """A skill's file is shown within its skill's page."""
        page = preview(shelf=SKILLS).page("/resources?uri=skill%3A%2F%2Fcode-review%2Freferences%2Fwords.md")

        assert '<p class="level level-1">Words</p>' in page
        assert "license MIT" in text_of(page)
        assert (
            'aria-current="page" href="/resources?uri=skill%3A%2F%2Fcode-review%2Freferences%2Fwords.md"'
            in page
        )
