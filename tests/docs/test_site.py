"""The site's search, navigation and index page lead to every topic."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from html import unescape
from importlib import import_module
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from docs import render_clients, render_reference

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]

#: Search queries, and the heading that each must find.
QUERIES = {
    "hidden": "Hidden prompts",
    "deprecated": "Deprecated prompts",
    "pydantic": "Pydantic models",
    "folder": "Files in a recipe folder",
    "package": "A package in a program",
    "other teams": "Packages for other teams",
    "load by name": "Load prompts by name, in a service",
    "extras": "Extras",
    "secrets": "Secrets",
    "completion": "Completion",
    "continuous integration": "In continuous integration",
}

#: Where the site's search splits words.
SEPARATOR = re.compile(r"[\s\-_,:!=\[\]()\\\"`/]+|\.(?!\d)")


def words_of(text):
    """Return the words of a string, split as by the site's search."""
    return {word for word in SEPARATOR.split(text.lower()) if word}


@cache
def sections(page):
    """Return the headings of a page, each with the words of its section."""
    words_by_title, tokens = {}, MarkdownIt().parse(page.read_text(encoding="utf-8"))
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and before.type == "heading_open":
            title = "".join(child.content for child in token.children)
            words_by_title[title] = set()
        elif words_by_title:
            words_by_title[title] |= words_of(token.content)
    return words_by_title


def search_headings(query, index):
    """Return the headings that contain all words of a query."""
    return [title for title in index if words_of(query) <= words_of(title)]


@pytest.mark.parametrize(("query", "title"), QUERIES.items(), ids=QUERIES)
def test_query_finds_its_heading(query, title):
    """A heading contains all words of the query, and its section is not empty."""
    index = {title: words for page in DOCS.glob("*.md") for title, words in sections(page).items()}

    assert title in search_headings(query, index)
    assert len(index[title]) > 20


def pages_in(navigation):
    """Yield the pages of a navigation, in order."""
    for entry in navigation:
        for target in entry.values():
            yield from [target] if isinstance(target, str) else pages_in(target)


def test_every_page_is_in_the_navigation():
    """Every page appears in the navigation once."""
    assert sorted(pages_in(SITE["nav"])) == sorted(page.name for page in DOCS.glob("*.md"))


def test_index_page_links_every_page():
    """Every page is linked once in the index page's list, except the index page and the tutorial."""
    pages = (DOCS / "index.md").read_text(encoding="utf-8").partition("\n## Pages\n")[2].partition("\n## ")[0]
    linked = re.findall(r"\]\(([a-z-]+\.md)\)", pages)

    assert sorted(["index.md", "tutorial.md", *linked]) == sorted(page.name for page in DOCS.glob("*.md"))


#: The modules that users import from.
PUBLIC = ("", "compiler", "fragments", "workspace", "testing", "exports", "batch", "asgi")


@pytest.mark.parametrize("module", PUBLIC)
def test_reference_has_every_public_name(module):
    """The reference documents every public name; exceptions of the top level are in `promptkit.errors`."""
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^### promptkit\S*\.(\w+)$", page, re.MULTILINE))
    names = import_module(f"promptkit.{module}".rstrip(".")).__all__

    assert set(names) - documented == {"__version__"} & set(names)


def test_reference_is_current():
    """The reference has the signatures and docstrings of the code."""
    assert render_reference.render() == render_reference.PAGE.read_text(encoding="utf-8")


def test_table_of_tested_clients_is_current():
    """The page of clients has the observations of the tests."""
    assert render_clients.render() == render_clients.PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """The search index: section titles and their addresses."""
    pytest.importorskip("zensical", reason="it is in the extra 'docs'")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs")
    configuration = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    (folder / "zensical.toml").write_text(configuration, encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    items = json.loads((folder / "site" / "search.json").read_text(encoding="utf-8"))["items"]
    return {unescape(re.sub("<[^>]+>", "", item["title"])): item["location"] for item in items}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("query", "title"), QUERIES.items(), ids=QUERIES)
def test_site_search_finds_the_heading(query, title, index):
    """The search index of zensical contains the heading with an address."""
    assert title in search_headings(query, index)
    assert index[title]


@pytest.mark.timeout(300)
def test_search_index_has_every_heading(index):
    """The index contains every heading found here, so that the tests without zensical are valid."""
    headings = {
        title for page in DOCS.glob("*.md") if page.name != "reference.md" for title in sections(page)
    }

    assert headings <= set(index)
