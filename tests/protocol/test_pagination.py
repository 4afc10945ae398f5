from itertools import product
from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from promptkit import prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from tests.wire import MODERN, REVISIONS, Client, initialize, line

#: Methods, keys of the results, and first letters of the names.
LISTS = [
    ("prompts/list", "prompts", "p"),
    ("resources/list", "resources", "n"),
    ("resources/templates/list", "resourceTemplates", "t"),
]


def numbered_prompts(count, words="Greet."):
    """Return *count* prompts."""
    return tuple(prompt(name=f"p{i:03}", description=words)(lambda: "x") for i in range(count))


def documents(count):
    """Return *count* resources and as many templates."""
    plain = [resource(f"notes://{i:03}", name=f"n{i}")(lambda: "x") for i in range(count)]
    return (*plain, *[resource(f"notes://{i:03}/{{x}}", name=f"t{i}")(lambda x: x) for i in range(count)])


def catalog_of(prompts=3, resources=0, words="Greet."):
    return compile(Recipes(prompts=numbered_prompts(prompts, words), resources=documents(resources)))


SEVEN = catalog_of(7)


def walk(client, method, key):
    """Return the names on each page of a list, and the cursors between the pages."""
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
    """Following the cursors returns every item once and in order, on pages of the configured size."""
    client = Client(catalog_of(7, 7), revision, page_size=3)

    pages, _ = walk(client, method, key)

    assert [len(page) for page in pages] == [3, 3, 1]
    names = [name for page in pages for name in page]
    assert [(name[0], int(name[1:])) for name in names] == [(letter, number) for number in range(7)]


@given(count=st.integers(0, 12), size=st.integers(1, 13))
def test_number_of_pages(count, size):
    """There is at least one page, and no empty page after it."""
    pages, cursors = walk(Client(catalog_of(count), page_size=size), "prompts/list", "prompts")

    assert (len(pages), len(set(cursors))) == (max(1, ceil(count / size)), len(pages) - 1)
    assert sum(map(len, pages)) == count


def test_default_page_size():
    """A page has 1,000 items by default, because many frameworks read only the first page."""
    pages, _ = walk(Client(catalog_of(1001)), "prompts/list", "prompts")

    assert [len(page) for page in pages] == [1000, 1]


@pytest.mark.requirement("base/stateless/other-process")
@pytest.mark.parametrize("revision", REVISIONS)
def test_cursors_outlive_their_server(revision):
    """A server accepts the cursors of another server with the same prompts."""
    _, (cursor, _) = walk(Client(catalog_of(5), revision, page_size=2), "prompts/list", "prompts")
    later = Client(catalog_of(5), revision, page_size=2)

    result = later.ask("prompts/list", {"cursor": cursor})["result"]

    assert [item["name"] for item in result["prompts"]] == ["p002", "p003"]


@pytest.mark.requirement("pagination/stable")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(("method", "key"), [row[:2] for row in LISTS])
def test_cursor_is_reusable(revision, method, key):
    """A cursor always leads to the same page, whenever and in whatever order it is sent."""
    client = Client(catalog_of(7, 7), revision, page_size=2)
    pages, cursors = walk(client, method, key)

    again = {cursor: client.ask(method, {"cursor": cursor})["result"] for cursor in reversed(cursors)}

    assert [[item["name"] for item in again[cursor][key]] for cursor in cursors] == pages[1:]
    assert client.ask(method, {"cursor": cursors[0]})["result"] == again[cursors[0]]


@pytest.mark.requirement("pagination/invalid-cursor", "pagination/empty-cursor")
@pytest.mark.parametrize("revision", REVISIONS)
def test_unknown_cursor(revision):
    """An unknown cursor leads to -32602 with an explanation."""
    client = Client(catalog_of(7, 7), revision, page_size=3)
    for method, cursor in product(
        [row[0] for row in LISTS], ["", "x", "0", "-1", "b2Zmc2V0PTE", "\x00", "p003"]
    ):
        error = client.ask(method, {"cursor": cursor})["error"]
        assert (error["code"], "request it again" in error["message"]) == (-32602, True)


@pytest.mark.requirement("pagination/graceful")
@given(revision=st.sampled_from(REVISIONS), cursor=st.text(st.characters(codec="utf-8")))
@example(revision=MODERN, cursor="x" * 100_000)
@example(revision="2024-11-05", cursor="x" * 100_000)
def test_arbitrary_cursor(revision, cursor):
    """An arbitrary cursor is rejected, and the next request is served."""
    client = Client(SEVEN, revision, page_size=3)
    rejected = client.ask("prompts/list", {"cursor": cursor})
    listed = client.ask("prompts/list")

    assert (rejected["error"]["code"], len(listed["result"]["prompts"])) == (-32602, 3)


def test_cursor_of_another_list():
    """A cursor is invalid for other lists and other page sizes."""
    client = Client(catalog_of(7, 7), page_size=3)
    cursor = client.ask("prompts/list")["result"]["nextCursor"]
    other = Client(catalog_of(7, 7), page_size=4)

    assert client.ask("resources/list", {"cursor": cursor})["error"]["code"] == -32602
    assert other.ask("prompts/list", {"cursor": cursor})["error"]["code"] == -32602


@pytest.mark.parametrize("later", [catalog_of(8), catalog_of(7, words="Greet again.")], ids=["more", "other"])
@pytest.mark.parametrize("page_size", [3, 4], ids=["three pages", "two pages"])
def test_cursor_of_a_replaced_catalog(later, page_size):
    """The cursors of a replaced catalog are rejected; the list can be read from the start."""
    client = Client(catalog_of(7), page_size=page_size, changes=True)
    cursor = client.ask("prompts/list")["result"]["nextCursor"]

    client.server.replace(later)

    assert client.ask("prompts/list", {"cursor": cursor})["error"]["code"] == -32602
    assert "result" in client.ask("prompts/list")


@pytest.mark.requirement("pagination/graceful")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("cursor", [True, 3, {}], ids=str)
def test_cursor_of_another_type(revision, cursor):
    """A cursor that is not a string leads to -32602."""
    assert Client(SEVEN, revision).ask("prompts/list", {"cursor": cursor})["error"]["code"] == -32602


@pytest.mark.requirement("prompts/list/empty", "resources/list/empty")
@pytest.mark.parametrize(("method", "key"), [row[:2] for row in LISTS[:2]])
def test_catalog_of_templates(method, key):
    """In a catalog with only templates, the lists of prompts and resources are empty."""
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
def test_empty_catalog(method, key, revision):
    """Every list of an empty catalog is answered, because some clients stop after an error."""
    client = Client(compile(Recipes()), revision)

    result = client.ask(method)["result"]

    assert result[key] == []
    assert "nextCursor" not in result
    assert client.ask(method, {"cursor": "x"})["error"]["code"] == -32602


@pytest.mark.parametrize("changes", [True, False])
def test_declared_lists_are_answered(changes):
    """In the modern era, exactly the declared lists are answered."""
    client = Client(compile(Recipes()), MODERN, changes=changes)

    declared = client.ask("server/discover")["result"]["capabilities"]

    assert {f"{kind}/list" for kind in declared if kind not in ("completions", "extensions")} == {
        method
        for method in ("prompts/list", "resources/list", "tools/list", "roots/list", "tasks/list")
        if "result" in client.ask(method)
    }


@pytest.mark.requirement("prompts/list/same-for-all", "resources/list/same-for-all")
@pytest.mark.parametrize("method", [row[0] for row in LISTS])
def test_list_does_not_depend_on_the_client(method):
    """The lists do not depend on capabilities, earlier requests, errors, streams or handshakes."""
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
