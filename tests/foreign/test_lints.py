"""Lints for servers: names, descriptions, arguments, schemas of tools, and errors."""

import pytest

from promptkit.errors.rules import Rule
from promptkit.foreign.lints import lint_listing, lint_replies
from promptkit.foreign.listing import NoReplyError, RequestError, parse_listing
from tests.foreign.replies import NO_METHOD, UNKNOWN, ScriptedConnection

PROMPT = {"name": "review", "description": "Review it."}
TOOL = {"name": "add", "description": "Add numbers.", "inputSchema": {"type": "object"}}

#: What fastmcp 4 and 2 add to the descriptions of arguments.
FASTMCP_4 = "Provide a value matching the following JSON schema: {}. Encode non-string values as JSON."
FASTMCP_2 = "Provide as a JSON string matching the following schema: {}"


def lint(instructions=None, **lists):
    """Return the rule and the message of each diagnostic for a server's lists."""
    diagnostics = lint_listing(parse_listing(lists), instructions)
    return [(diagnostic.rule, diagnostic.message) for diagnostic in diagnostics]


def test_a_sound_server_has_no_diagnostics():
    arguments = [{"name": "code", "description": "The code", "required": True}]
    resources = [{"uri": "a:b", "name": "a", "description": "A"}]

    assert lint(prompts=[{**PROMPT, "arguments": arguments}], tools=[TOOL], resources=resources) == []


def test_missing_descriptions_are_reported_once_for_each_item():
    arguments = [{"name": "a"}, {"name": "b", "title": "B"}, {"name": "c"}]

    assert lint(
        prompts=[{"name": "x", "arguments": arguments}],
        tools=[{**TOOL, "description": ""}],
        resources=[{"uri": "a:b", "name": "a"}, {"uri": "a:c", "name": "c"}],
    ) == [
        (Rule.NO_DESCRIPTION, "prompt 'x': it has no description"),
        (Rule.NO_DESCRIPTION, "prompt 'x': a description is missing for 2 arguments: a, c"),
        (Rule.NO_DESCRIPTION, "the server: a description is missing for 2 resources: a:b, a:c"),
        (Rule.NO_DESCRIPTION, "tool 'add': it has no description"),
    ]


def test_the_files_of_a_skill_need_no_description():
    file = {"uri": "skill://a/rules.md", "digest": "sha256:00", "size": 1}
    skill = {"uri": "skill://a/SKILL.md", "frontmatter": {}, "resources": [file]}

    assert lint(skills=[skill], resources=[{"uri": "skill://a/rules.md", "name": "rules.md"}]) == []


def test_a_name_that_clients_cannot_show_is_reported():
    rules = [rule for rule, _ in lint(prompts=[{**PROMPT, "name": "a b"}], tools=[{**TOOL, "name": "a.b"}])]

    assert rules == [Rule.BAD_NAME, Rule.BAD_NAME]


@pytest.mark.parametrize("length", [2048, 2049])
def test_a_description_above_2048_characters_is_reported(length):
    text = "x" * length

    messages = lint(text, prompts=[{**PROMPT, "description": text}], tools=[{**TOOL, "description": text}])

    assert [rule for rule, _ in messages] == [Rule.LONG_DESCRIPTION] * (3 * (length > 2048))


@pytest.mark.parametrize(
    ("description", "is_json"),
    [
        ("A JSON object with the options", True),
        ("The items, as JSON", True),
        ("Paste valid JSON here", True),
        (FASTMCP_4.format('{"items":{"type":"string"},"type":"array"}'), True),
        (FASTMCP_2.format('{"properties":{},"type":"object"}'), True),
        (FASTMCP_2.format('{"anyOf":[{"type":"object"},{"type":"null"}]}'), True),
        (FASTMCP_4.format('{"type":"integer"}'), False),
        (FASTMCP_2.format('{"anyOf":[{"type":"number"},{"type":"null"}]}'), False),
        ("The path of a JSON file", False),
        ("Respond in json or yaml", False),
        (None, False),
    ],
)
def test_arguments_for_which_people_must_write_json_are_reported(description, is_json):
    argument = {"name": "options", "title": "Options", "description": description}

    rules = [rule for rule, _ in lint(prompts=[{**PROMPT, "arguments": [argument]}])]

    assert rules == [Rule.JSON_ARGUMENT] * is_json


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "fail in Genkit"),
        ({"properties": {"a": {"enum": [1, 2]}}}, "Gemini accepts only text"),
        ({"properties": {"a": {"enum": ["1", None]}}}, None),
        ({"properties": {"enum": {"type": "string"}}}, None),
        ({"properties": {"a": {"type": "array", "prefixItems": [{}, {}]}}}, "AutoGen sends text"),
        ({"properties": {"a": {"anyOf": [{"items": [{}, {}]}]}}}, "AutoGen sends text"),
        (
            {"$defs": {"n": {"properties": {"of": {"items": {"$ref": "#/$defs/n"}}}}}},
            "AutoGen cannot convert",
        ),
        (
            {"$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"items": {"$ref": "#/$defs/a"}}}},
            "AutoGen cannot convert",
        ),
        ({"properties": {"a": {"items": {"$ref": "#"}}}}, "AutoGen cannot convert"),
        ({"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}, None),
    ],
)
def test_what_clients_lose_of_a_schema_is_reported_for_all_tools_together(schema, message):
    tools = [{**TOOL, "name": name, "inputSchema": schema} for name in ("one", "two")]

    messages = [message for _, message in lint(tools=tools)]

    assert len(messages) == (message is not None)
    if message is not None:
        assert "2 tools (one, two): " in messages[0]
        assert message in messages[0]


def test_two_arguments_with_one_name_are_reported():
    arguments = [{"name": "a", "title": "A"}, {"name": "a", "title": "B"}]

    assert lint(prompts=[{**PROMPT, "arguments": arguments}]) == [
        (Rule.DUPLICATE_ITEM, "prompt 'review': it has two arguments called 'a'")
    ]


LISTING = parse_listing(
    {
        "prompts": [{**PROMPT, "arguments": [{"name": "code", "required": True}]}],
        "resources": [{"uri": "a:b", "name": "a"}],
    }
)


def test_correct_errors_have_no_diagnostics():
    connection = ScriptedConnection(prompts_get=UNKNOWN, resources_read=RequestError(-32002, "not found"))

    assert list(lint_replies(LISTING, connection, "2025-11-25", render=True)) == []


def test_wrong_errors_are_reported():
    connection = ScriptedConnection(
        prompts_get=RequestError(0, "Unknown prompt: x"),
        resources_read={"contents": []},
        promptkit_unknown=NoReplyError("did not answer"),
    )

    messages = [d.message for d in lint_replies(LISTING, connection, "2026-07-28")]

    assert messages == [
        "the server: an unknown prompt is answered with the error code 0: 'Unknown prompt: x'",
        "the server: an unknown resource is answered as if the request were valid",
        "the server: an unknown method is not answered with an error: the server did not answer",
    ]


def test_the_code_for_an_unknown_resource_depends_on_the_revision():
    connection = ScriptedConnection(prompts_get=UNKNOWN, resources_read=RequestError(-32002, "not found"))

    assert len(list(lint_replies(LISTING, connection, "2026-07-28"))) == 1


def test_a_prompt_is_requested_without_its_arguments_only_if_prompts_may_be_rendered():
    for render in (False, True):
        connection = ScriptedConnection(prompts_get=UNKNOWN, resources_read=UNKNOWN)

        list(lint_replies(LISTING, connection, "2026-07-28", render=render))

        assert (("prompts/get", {"name": "review"}) in connection.requests) is render
        assert all(method != "tools/call" for method, _ in connection.requests)


def test_a_cursor_is_tested_only_for_lists_with_several_pages():
    listing = parse_listing({})
    listing.paged.append("tools/list")
    connection = ScriptedConnection(tools_list={"tools": []}, promptkit_unknown=NO_METHOD)

    (diagnostic,) = lint_replies(listing, connection, "2025-11-25")

    assert (
        diagnostic.message
        == "the server: an unknown cursor in tools/list is answered as if the request were valid"
    )
