"""What a reader looks for is found: by the search of the site, in its navigation, and on its first page."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from html import unescape
from importlib import import_module
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from promptkit import errors

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]

#: What people type into the search, and the heading that they are to find.
SOUGHT = {
    "hidden": "Hidden prompts",
    "deprecated": "Deprecated prompts",
    "pydantic": "Pydantic models",
    "folder": "What is served of a folder",
    "package": "A package in a program",
    "other teams": "Packages for other teams",
    "load by name": "Load prompts by name, in a service",
    "extras": "Extras",
    "secrets": "Secrets",
    "completion": "Completion",
    "continuous integration": "In continuous integration",
}

#: Where the search of the site cuts words.
SEPARATOR = re.compile(r"[\s\-_,:!=\[\]()\\\"`/]+|\.(?!\d)")


def words_of(text):
    """The words of a text, as the search has them."""
    return {word for word in SEPARATOR.split(text.lower()) if word}


def sections(page):
    """The headings of a page, each with the words of its section."""
    found, tokens = {}, MarkdownIt().parse(page.read_text(encoding="utf-8"))
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and before.type == "heading_open":
            title = "".join(child.content for child in token.children)
            found[title] = set()
        elif found:
            found[title] |= words_of(token.content)
    return found


def by_search(sought, index):
    """The headings that have all the words that are sought."""
    return [title for title in index if words_of(sought) <= words_of(title)]


@pytest.mark.parametrize(("sought", "title"), SOUGHT.items(), ids=SOUGHT)
def test_a_heading_says_it(sought, title):
    """
    One heading of the pages has all the words that are typed, and there is something below it.
    """
    index = {title: words for page in DOCS.glob("*.md") for title, words in sections(page).items()}

    assert title in by_search(sought, index)
    assert len(index[title]) > 20


def pages_in(navigation):
    """The pages that a navigation leads to, in order."""
    for entry in navigation:
        for target in entry.values():
            yield from [target] if isinstance(target, str) else pages_in(target)


def test_every_page_is_in_the_navigation():
    """
    Once.
    """
    assert sorted(pages_in(SITE["nav"])) == sorted(page.name for page in DOCS.glob("*.md"))


def test_the_landing_page_links_to_every_page():
    """
    The landing page links to every other page of the documentation.
    """
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", page))

    assert linked == {page.name for page in DOCS.glob("*.md")} - {"index.md"}


#: The modules that users import from.
PUBLIC = ("", "compiler", "fragments", "workspace", "testing", "exports", "batch", "asgi")


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_has_every_public_name(module):
    """
    Those of errors are there with their module.
    """
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    listed = re.findall(r"^      members: \[(.*)\]$", page, re.MULTILINE)
    shown = {*re.findall(r"^::: .*\b(\w+)$", page, re.MULTILINE), *", ".join(listed).split(", ")}
    names = import_module(f"promptkit.{module}".rstrip(".")).__all__

    assert set(names) - shown - {*errors.__all__, "__version__"} == set()


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """The index of the search: titles of sections with the addresses that they lead to."""
    pytest.importorskip("zensical", reason="it is in the extra 'docs'")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs")
    configuration = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    (folder / "zensical.toml").write_text(
        configuration.replace('paths = ["."]', f"paths = [{json.dumps(str(ROOT))}]"), encoding="utf-8"
    )
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    items = json.loads((folder / "site" / "search.json").read_text(encoding="utf-8"))["items"]
    return {unescape(re.sub("<[^>]+>", "", item["title"])): item["location"] for item in items}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("sought", "title"), SOUGHT.items(), ids=SOUGHT)
def test_the_search_of_the_site_finds_it(sought, title, index):
    """
    The index that zensical makes has the heading, and it leads to a page.
    """
    assert title in by_search(sought, index)
    assert index[title]


@pytest.mark.timeout(300)
def test_the_index_has_what_is_read_here(index):
    """
    So the test above, which needs no zensical, reads headings as the search does.
    """
    read = {title for page in DOCS.glob("*.md") if page.name != "reference.md" for title in sections(page)}

    assert read <= set(index)
