from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import prompt, resource
from promptkit.compiler import compile
from promptkit.loader import Recipes
from tests.wire import REVISIONS, Client


def numbered(count, words="Say it."):
    """That many prompts."""
    return tuple(prompt(name=f"p{i:03}", description=words)(lambda: "x") for i in range(count))


def documents(count):
    """That many resources, and as many templates."""
    plain = [resource(f"notes://{i:03}", name=f"n{i}")(lambda: "x") for i in range(count)]
    return (*plain, *[resource(f"notes://{i:03}/{{x}}", name=f"t{i}")(lambda x: x) for i in range(count)])


def catalog_of(prompts=3, resources=0, words="Say it."):
    return compile(Recipes(prompts=numbered(prompts, words), resources=documents(resources)))


def walk(client, method, key):
    """The names on each page of a list, and the cursors between the pages."""
    pages, cursors, params = [], [], {}
    while True:
        result = client.ask(method, params)["result"]
        pages.append([item["name"] for item in result[key]])
        if "nextCursor" not in result:
            return pages, cursors
        cursors.append(result["nextCursor"])
        params = {"cursor": result["nextCursor"]}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("method", "key", "letter"),
    [
        ("prompts/list", "prompts", "p"),
        ("resources/list", "resources", "n"),
        ("resources/templates/list", "resourceTemplates", "t"),
    ],
)
def test_every_item_is_on_one_page(revision, method, key, letter):
    """
    Following the cursors gives every item once, in one order, a page never longer than agreed.
    """
    client = Client(catalog_of(7, 7), revision, page_size=3)

    pages, _ = walk(client, method, key)

    assert [len(page) for page in pages] == [3, 3, 1]
    names = [name for page in pages for name in page]
    assert names == sorted(set(names), key=lambda name: int(name[1:]))
    assert {name[0] for name in names} == {letter}


@given(count=st.integers(0, 12), size=st.integers(1, 13))
def test_the_number_of_pages(count, size):
    """
    There are as many pages as it takes, one at least, and no empty one after it.
    """
    pages, cursors = walk(Client(catalog_of(count), page_size=size), "prompts/list", "prompts")

    assert (len(pages), len(set(cursors))) == (max(1, ceil(count / size)), len(pages) - 1)
    assert sum(map(len, pages)) == count


def test_a_hundred_on_a_page():
    """
    Unless somebody says otherwise.
    """
    pages, _ = walk(Client(catalog_of(101)), "prompts/list", "prompts")

    assert [len(page) for page in pages] == [100, 1]


def test_cursors_outlive_their_server():
    """
    A server with the same prompts takes the cursors of another one.
    """
    _, (cursor, _) = walk(Client(catalog_of(5), page_size=2), "prompts/list", "prompts")
    later = Client(catalog_of(5), page_size=2)

    result = later.ask("prompts/list", {"cursor": cursor})["result"]

    assert [item["name"] for item in result["prompts"]] == ["p002", "p003"]


def test_a_cursor_may_be_used_again():
    """
    Asking twice for a page gives the same bytes.
    """
    client = Client(catalog_of(5), page_size=2)
    cursor = client.ask("prompts/list")["result"]["nextCursor"]

    assert client.ask("prompts/list", {"cursor": cursor}) == client.ask("prompts/list", {"cursor": cursor})


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("cursor", ["", "x", "0", "-1", "3", "b2Zmc2V0PTE", "\x00", "p003"])
def test_an_unknown_cursor_is_refused(revision, cursor):
    """
    What was never given out is -32602, and says what to do.
    """
    error = Client(catalog_of(7, 1), revision, page_size=3).ask("prompts/list", {"cursor": cursor})["error"]

    assert error == {
        "code": -32602,
        "message": "unknown cursor: the list may have changed, so list again from the start",
    }


def test_a_cursor_belongs_to_one_list():
    """
    Other lists, and other lengths of page, refuse it.
    """
    client = Client(catalog_of(7, 7), page_size=3)
    cursor = client.ask("prompts/list")["result"]["nextCursor"]
    other = Client(catalog_of(7, 7), page_size=4)

    assert client.ask("resources/list", {"cursor": cursor})["error"]["code"] == -32602
    assert other.ask("prompts/list", {"cursor": cursor})["error"]["code"] == -32602


@pytest.mark.parametrize(
    "later", [catalog_of(8), catalog_of(7, words="Say it again.")], ids=["more", "other"]
)
def test_a_cursor_goes_with_its_catalog(later):
    """
    Once another catalog is served, its cursors are refused; the list can be had anew.
    """
    client = Client(catalog_of(7), page_size=3, changes=True)
    cursor = client.ask("prompts/list")["result"]["nextCursor"]

    client.server.replace(later)

    assert client.ask("prompts/list", {"cursor": cursor})["error"]["code"] == -32602
    assert "result" in client.ask("prompts/list")


@pytest.mark.parametrize("cursor", [None, 3, {}], ids=str)
def test_a_cursor_is_text(cursor):
    """
    Anything else is -32602.
    """
    assert Client(catalog_of()).ask("prompts/list", {"cursor": cursor})["error"]["code"] == -32602
