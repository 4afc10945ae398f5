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
from tests.laws.test_types import ALL, JSON, TYPES, beyond_schemas, closed, lenient, near, share
from tests.wire import initialize, line, request


class Called:
    """A server with one tool, whose only argument has the given type."""

    def __init__(self, annotation):
        self.got, self.sent = [], []

        def typed(value) -> str:
            self.got.append(value)
            return "Called."

        typed.__annotations__["value"] = annotation
        made = prompt(typed)
        self.validator = jsonschema.Draft202012Validator(
            closed(made.compiled.schema),
            format_checker=jsonschema.FormatChecker(["date", "uuid", "duration"]),
        )
        self.server = Server(compile(Recipes(prompts=(made,))), self.sent.append, tools=True)
        self.server.receive_data(line(initialize("2025-11-25")))

    def with_value(self, value):
        """Return the result of a call, and the values that the function received."""
        self.got.clear()
        self.sent.clear()
        params = {"name": "typed", "arguments": {"value": value}}
        self.server.receive_data(line(request(1, "tools/call", params)))
        return json.loads(self.sent[0])["result"], list(self.got)


tool_of = cache(Called)


def sent_of(value):
    """Return a value as a client sends it."""
    return json.loads(json.dumps(json_of(value)))


@ALL
@settings(max_examples=share(15), deadline=None)
@given(st.data())
def test_what_fits_the_schema_calls_with_that_value(annotation, data):
    """For every type, the function receives exactly the value that is valid for `inputSchema`."""
    value = data.draw(TYPES[annotation])

    result, got = tool_of(annotation).with_value(sent_of(value))

    assert (got, "isError" in result) == ([value], False)


@ALL
@settings(max_examples=share(30), deadline=None)
@given(st.data())
def test_what_does_not_fit_is_a_fault(annotation, data):
    """
    For every type, a value that is invalid for `inputSchema` gives an error for the model, and the function
    is not called. Text may be accepted leniently.
    """
    valid = sent_of(data.draw(TYPES[annotation]))
    value = data.draw(near(valid) | JSON)
    called = tool_of(annotation)
    result, got = called.with_value(value)

    if called.validator.is_valid({"value": value}):
        assert (result["content"][0]["text"], len(got)) == ("Called.", 1) or beyond_schemas(annotation, value)
    elif not lenient(annotation, value) or value is None:
        assert result["isError"] is True
        assert result["content"][0]["text"].startswith("prompt 'typed': ")
        assert got == []


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
def test_what_means_two_things_is_what_the_schema_says(annotation, value):
    """
    In tool calls, ambiguous values have their JSON type: "5" is text, and an empty string is not omitted.
    """
    _, got = tool_of(annotation).with_value(value)

    assert got == [b"" if annotation is bytes else value]
