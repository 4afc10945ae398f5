"""Tool calls with valid and invalid values for every type of argument."""

import json
from functools import cache
from typing import Annotated, Literal

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit import Arg, prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.server import Server
from promptkit.types.unstructuring import json_of
from tests.laws.test_types import (
    ALL,
    JSON,
    TYPES,
    close_schema,
    is_beyond_schemas,
    is_lenient,
    share,
    values_near,
)
from tests.wire import initialize, line, request


class ToolServer:
    """A server with one tool, whose only argument has the given type."""

    def __init__(self, annotation):
        self.received, self.sent = [], []

        def typed(value) -> str:
            self.received.append(value)
            return "Called."

        typed.__annotations__["value"] = annotation
        typed_prompt = prompt(typed)
        self.validator = jsonschema.Draft202012Validator(
            close_schema(typed_prompt.compiled.schema),
            format_checker=jsonschema.FormatChecker(["date", "uuid", "duration"]),
        )
        self.server = Server(compile(Recipes(prompts=(typed_prompt,))), self.sent.append, tools=True)
        self.server.receive_data(line(initialize("2025-11-25")))

    def call(self, value):
        """Return the result of a call, and the values that the function received."""
        self.received.clear()
        self.sent.clear()
        params = {"name": "typed", "arguments": {"value": value}}
        self.server.receive_data(line(request(1, "tools/call", params)))
        return json.loads(self.sent[0])["result"], list(self.received)


tool_of = cache(ToolServer)


def wire_value(value):
    """Return a value as a client sends it."""
    return json.loads(json.dumps(json_of(value)))


@ALL
@settings(max_examples=share(15), deadline=None)
@given(st.data())
def test_valid_value_reaches_the_function(annotation, data):
    """For every type, the function receives exactly the value that is valid for `inputSchema`."""
    value = data.draw(TYPES[annotation])

    result, received = tool_of(annotation).call(wire_value(value))

    assert (received, "isError" in result) == ([value], False)


@ALL
@settings(max_examples=share(30), deadline=None)
@given(st.data())
def test_invalid_value_is_an_error(annotation, data):
    """
    For every type, a value that is invalid for `inputSchema` gives an error for the model, and the function
    is not called. Text may be accepted leniently.
    """
    valid = wire_value(data.draw(TYPES[annotation]))
    value = data.draw(values_near(valid) | JSON)
    server = tool_of(annotation)
    result, received = server.call(value)

    if server.validator.is_valid({"value": value}):
        assert (result["content"][0]["text"], len(received)) == ("Called.", 1) or is_beyond_schemas(
            annotation, value
        )
    elif not is_lenient(annotation, value) or value is None:
        assert result["isError"] is True
        assert result["content"][0]["text"].startswith("prompt 'typed': ")
        assert received == []


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int | str, "5"),
        (bool | str, "yes"),
        (list[int | str], ["5", 5]),
        (str | None, ""),
        (str | None, None),
        (list[str] | str, "a, b"),
        (Annotated[int | None, Arg("How many")], None),
        (Literal["a"] | None, None),
        (Literal["", "a"], ""),
        (bytes, ""),
    ],
    ids=str,
)
def test_ambiguous_values_have_their_json_type(annotation, value):
    """
    In tool calls, ambiguous values have their JSON type: "5" is text, and an empty string is not omitted.
    """
    _, received = tool_of(annotation).call(value)

    assert received == [b"" if annotation is bytes else value]
