"""The files of the site for models."""

import re

from docs import llms


def test_index_has_every_page(tmp_path):
    """llms.txt links to each page with a sentence, and llms-full.txt contains all of them."""
    assert llms.main(str(tmp_path)) == 0
    index = (tmp_path / "llms.txt").read_text(encoding="utf-8")
    full = (tmp_path / "llms-full.txt").read_text(encoding="utf-8")
    files = {file for _, _, file in llms.pages()}

    assert index.startswith("# promptkit\n\n> ")
    assert {f"{name}.md" for name in re.findall(r"\]\(([a-z-]+)/\): [A-Za-z`]", index)} == files - {
        "index.md"
    }
    assert files == {page.name for page in llms.DOCS.glob("*.md")}
    for page in llms.DOCS.glob("*.md"):
        assert page.read_text(encoding="utf-8").strip() in full
