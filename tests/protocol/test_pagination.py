from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from promptkit import prompt, resource
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.pagination import lists_equal, pages_of
from promptkit.protocol.revisions import LATEST_HANDSHAKE
from tests.wire import MODERN, REVISIONS, Client, initialize, line

LOWERING = lowering_for(LATEST_HANDSHAKE)

#: What lists, where a result holds it, and how the names begin here.
LISTS = [
    ("prompts/list", "prompts", "p"),
    ("resources/list", "resources", "n"),
    ("resources/templates/list", "resourceTemplates", "t"),
]
UNKNOWN = {
    "code": -32602,
    "message": "unknown cursor: the list may have changed, so list again from the start",
}


def numbered(count, words="Say it."):
    """That many prompts."""
    return tuple(prompt(name=f"p{i:03}", description=words)(lambda: "x") for i in range(count))


def documents(count):
    """That many resources, and as many templates."""
    plain = [resource(f"notes://{i:03}", name=f"n{i}")(lambda: "x") for i in range(count)]
    return (*plain, *[resource(f"notes://{i:03}/{{x}}", name=f"t{i}")(lambda x: x) for i in range(count)])


def catalog_of(prompts=3, resources=0, words="Say it."):
    return compile(Recipes(prompts=numbered(prompts, words), resources=documents(resources)))


SEVEN = catalog_of(7)


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


@pytest.mark.requirement("pagination/operations", "pagination/next-cursor", "pagination/continues")
@pytest.mark.requirement("prompts/list/answered", "resources/list/answered")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(("method", "key", "letter"), LISTS)
def test_every_item_is_on_one_page(revision, method, key, letter):
    """
    Following the cursors gives every item once, in one order, a page never longer than agreed.
    """
    client = Client(catalog_of(7, 7), revision, page_size=3)

    pages, _ = walk(client, method, key)

    assert [len(page) for page in pages] == [3, 3, 1]
    names = [name for page in pages for name in page]
    assert [(name[0], int(name[1:])) for name in names] == [(letter, number) for number in range(7)]


@given(count=st.integers(0, 12), size=st.integers(1, 13))
def test_the_number_of_pages(count, size):
    """
    There are as many pages as it takes, one at least, and no empty one after it.
    """
    pages, cursors = walk(Client(catalog_of(count), page_size=size), "prompts/list", "prompts")

    assert (len(pages), len(set(cursors))) == (max(1, ceil(count / size)), len(pages) - 1)
    assert sum(map(len, pages)) == count


def test_a_thousand_on_a_page():
    """
    That is the default: many frameworks read the first page alone.
    """
    pages, _ = walk(Client(catalog_of(1001)), "prompts/list", "prompts")

    assert [len(page) for page in pages] == [1000, 1]


@pytest.mark.requirement("base/stateless/other-process")
@pytest.mark.parametrize("revision", REVISIONS)
def test_cursors_outlive_their_server(revision):
    """
    A server with the same prompts takes the cursors of another one.
    """
    _, (cursor, _) = walk(Client(catalog_of(5), revision, page_size=2), "prompts/list", "prompts")
    later = Client(catalog_of(5), revision, page_size=2)

    result = later.ask("prompts/list", {"cursor": cursor})["result"]

    assert [item["name"] for item in result["prompts"]] == ["p002", "p003"]


@pytest.mark.requirement("pagination/stable")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(("method", "key"), [row[:2] for row in LISTS])
def test_a_cursor_may_be_used_again(revision, method, key):
    """
    Whenever a cursor is sent, and in whatever order, it gives the page that it gave at first.
    """
    client = Client(catalog_of(7, 7), revision, page_size=2)
    pages, cursors = walk(client, method, key)

    again = {cursor: client.ask(method, {"cursor": cursor})["result"] for cursor in reversed(cursors)}

    assert [[item["name"] for item in again[cursor][key]] for cursor in cursors] == pages[1:]
    assert client.ask(method, {"cursor": cursors[0]})["result"] == again[cursors[0]]


@pytest.mark.requirement("pagination/invalid-cursor", "pagination/empty-cursor")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("method", [row[0] for row in LISTS])
@pytest.mark.parametrize("cursor", ["", "x", "0", "-1", "3", "b2Zmc2V0PTE", "\x00", "p003"])
def test_an_unknown_cursor_is_refused(revision, method, cursor):
    """
    What was never given out is -32602, and says what to do.
    """
    error = Client(catalog_of(7, 7), revision, page_size=3).ask(method, {"cursor": cursor})["error"]

    assert error == UNKNOWN


@pytest.mark.requirement("pagination/graceful")
@given(revision=st.sampled_from(REVISIONS), cursor=st.text(st.characters(codec="utf-8")))
@example(revision=MODERN, cursor="x" * 100_000)
@example(revision="2024-11-05", cursor="x" * 100_000)
def test_no_cursor_does_harm(revision, cursor):
    """
    Whatever is sent for a cursor, it is refused and the next request is served.
    """
    client = Client(SEVEN, revision, page_size=3)
    refused = client.ask("prompts/list", {"cursor": cursor})
    listed = client.ask("prompts/list")

    assert (refused["error"], len(listed["result"]["prompts"])) == (UNKNOWN, 3)


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


@pytest.mark.requirement("pagination/graceful")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("cursor", [None, 3, {}], ids=str)
def test_a_cursor_is_text(revision, cursor):
    """
    Anything else is -32602.
    """
    assert Client(SEVEN, revision).ask("prompts/list", {"cursor": cursor})["error"]["code"] == -32602


@pytest.mark.requirement("prompts/list/empty", "resources/list/empty")
@pytest.mark.parametrize(("method", "key"), [row[:2] for row in LISTS[:2]])
def test_an_empty_list(method, key):
    """
    Where there are only templates, prompts and plain resources are listed all the same: none.
    """
    template = resource("notes://{x}")(lambda x: x)
    client = Client(compile(Recipes(resources=(template,))), MODERN)

    assert client.ask(method)["result"][key] == []
    assert len(client.ask("resources/templates/list")["result"]["resourceTemplates"]) == 1


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("tools/list", "tools"),
    ],
)
def test_a_list_of_nothing(method, key, revision):
    """
    Every list is answered where there is nothing, as clients ask for all of them and give up on an error.
    """
    client = Client(compile(Recipes()), revision)

    result = client.ask(method)["result"]

    assert result[key] == []
    assert "nextCursor" not in result
    assert client.ask(method, {"cursor": "x"})["error"]["code"] == -32602


@pytest.mark.parametrize("changes", [True, False])
def test_what_is_declared_is_what_is_answered(changes):
    """
    In the modern era the declared lists are those that are answered.
    """
    client = Client(compile(Recipes()), MODERN, changes=changes)

    declared = client.ask("server/discover")["result"]["capabilities"]

    assert {f"{kind}/list" for kind in declared if kind not in ("completions", "extensions")} == {
        method
        for method in ("prompts/list", "resources/list", "tools/list", "roots/list", "tasks/list")
        if "result" in client.ask(method)
    }


@pytest.mark.requirement("prompts/list/same-for-all", "resources/list/same-for-all")
@pytest.mark.parametrize("method", [row[0] for row in LISTS])
def test_a_list_is_the_same_for_all(method):
    """
    No other capability, request, error, stream or handshake changes what a modern client is shown.
    """
    catalog = catalog_of(3, 3)
    first = Client(catalog, MODERN, changes=True).ask(method)
    client = Client(catalog, MODERN, changes=True)
    client.ask("prompts/get", {"name": "p001"})
    client.ask("prompts/get", {"name": "nowhere"})
    client.ask("resources/read", {"uri": "notes://001"})
    client.post("subscriptions/listen", {"notifications": {"promptsListChanged": True}}, "s")
    client.server.receive_data(line(initialize("2024-11-05")))
    client.sent.clear()
    able = {"roots": {}, "sampling": {}, "elicitation": {"form": {}}}

    assert client.ask(method) == first
    assert client.ask(method, capabilities=able) == first


POOL = [*catalog_of(8).values(), *catalog_of(8, words="Say it again.").values()]
catalogs = st.lists(st.sampled_from(POOL), unique_by=lambda one: one.name).map(Catalog)


@given(before=catalogs, after=catalogs)
def test_a_list_that_follows_another(before, after):
    """
    It is the list that would be made of nothing, and what both catalogs hold is encoded once.
    """
    first = pages_of("prompts/list", before, LOWERING, 3)
    again = pages_of("prompts/list", after, LOWERING, 3, before=(before, first))
    anew = pages_of("prompts/list", after, LOWERING, 3)

    assert [again.page(cursor) for cursor in again.cursors] == [anew.page(cursor) for cursor in anew.cursors]
    known = dict(zip(map(id, before.prompts), first.items, strict=True))
    assert all(one is known.get(id(item), one) for item, one in zip(after.prompts, again.items, strict=True))
    assert lists_equal("prompts/list", before, after, LOWERING) is (first.items == anew.items)
