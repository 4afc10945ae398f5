"""Lists of a server: pages, limits, duplicates and invalid items."""

import pytest

from promptkit.errors.rules import Rule
from promptkit.foreign import listing as module
from promptkit.foreign.listing import NoReplyError, RequestError, parse_listing, read_listing
from tests.foreign.replies import ScriptedConnection

PROMPTS = {"prompts": {}}
ALL = {"prompts": {}, "resources": {}, "tools": {}}


def page(*names, cursor=None):
    """Return a page of prompts."""
    return {"prompts": [{"name": name} for name in names], **({"nextCursor": cursor} if cursor else {})}


def rules(listing):
    """Return the rules of a listing's diagnostics."""
    return [diagnostic.rule for diagnostic in listing.diagnostics]


def test_all_pages_are_read():
    connection = ScriptedConnection(prompts_list=[page("a", cursor="1"), page("b", cursor="2"), page("c")])

    listing = read_listing(connection, PROMPTS)

    assert [prompt.name for prompt in listing.prompts] == ["a", "b", "c"]
    assert [params for _, params in connection.requests] == [{}, {"cursor": "1"}, {"cursor": "2"}]
    assert listing.diagnostics == []


def test_only_declared_lists_are_requested():
    connection = ScriptedConnection()

    read_listing(connection, {"extensions": {"io.modelcontextprotocol/ui": {}}})

    assert connection.requests == []


def test_a_cursor_that_repeats_ends_the_list_with_a_diagnostic():
    listing = read_listing(ScriptedConnection(prompts_list=page("a", cursor="1")), PROMPTS)

    assert rules(listing) == [Rule.BROKEN_PAGES, Rule.DUPLICATE_ITEM]
    assert "'1' is returned twice" in listing.diagnostics[0].message


def test_endless_pages_end_at_the_limit(monkeypatch):
    monkeypatch.setattr(module, "MAX_PAGES", 5)
    numbers = iter(range(100))
    connection = ScriptedConnection(prompts_list=lambda _: page(cursor=str(next(numbers))))

    listing = read_listing(connection, PROMPTS)

    assert rules(listing) == [Rule.BROKEN_PAGES]
    assert len(connection.requests) == 5


def test_items_beyond_the_limit_are_omitted(monkeypatch):
    monkeypatch.setattr(module, "MAX_ITEMS", 10)
    numbers = iter(range(100))

    def reply(_):
        number = next(numbers)
        return page(*(f"p{number}-{i}" for i in range(4)), cursor=str(number))

    listing = read_listing(ScriptedConnection(prompts_list=reply), PROMPTS)

    assert len(listing.prompts) == 10
    assert rules(listing) == [Rule.BROKEN_PAGES]


def test_the_first_of_two_items_with_one_name_counts():
    listing = read_listing(
        ScriptedConnection(
            tools_list={
                "tools": [
                    {"name": "t", "inputSchema": {}, "description": "first"},
                    {"name": "t", "inputSchema": {}, "description": "second"},
                ]
            },
            prompts_list=page(),
            resources_list={"resources": []},
        ),
        ALL,
    )

    assert [tool.description for tool in listing.tools] == ["first"]
    assert [d.message for d in listing.diagnostics] == ["tool 't': tools/list lists it twice"]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            {"prompts": [{"name": 5}, {"name": "fine"}]},
            "prompt 1 of prompts/list: it is invalid: Expected `str`",
        ),
        ({"prompts": "x"}, "prompts/list: its result does not contain the list 'prompts'"),
        (RequestError(-32603, "broken"), "prompts/list: it fails: broken (code -32603)"),
        (NoReplyError("did not answer"), "prompts/list: the server did not answer"),
    ],
)
def test_an_invalid_reply_is_reported_and_the_rest_is_used(reply, message):
    listing = read_listing(ScriptedConnection(prompts_list=reply), PROMPTS)

    (diagnostic,) = listing.diagnostics
    assert diagnostic.rule is Rule.INVALID_REPLY
    assert diagnostic.message.startswith(message)
    assert [prompt.name for prompt in listing.prompts] in ([], ["fine"])


def test_a_server_without_templates_need_not_have_their_method():
    listing = read_listing(ScriptedConnection(resources_list={"resources": []}), {"resources": {}})

    assert listing.diagnostics == []


def test_a_file_has_the_same_lists():
    prompts = [{"name": "a", "arguments": [{"name": "x", "required": True}]}]

    listing = parse_listing({"prompts": prompts, "texts": {}})

    assert listing.prompts[0].arguments[0].required
    with pytest.raises(ValueError, match="'tools' is not a list"):
        parse_listing({"tools": {}})
