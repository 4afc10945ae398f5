"""Batch lines validated against the types that the vendors publish."""

import json
from functools import cache

import msgspec
import pytest
from pydantic import TypeAdapter
from pydantic_core import SchemaValidator

from promptkit import cache_point, prompt, system, user
from promptkit.batch import Renderer
from promptkit.batch.vendor_formats import LINE_FORMATS
from promptkit.exports import REQUEST_FUNCTIONS
from promptkit.language.messages import make_workflow
from tests.exports.test_requests import Review
from tests.exports.test_vendors import content
from tests.exports.vendors import make_strict, validate_request

EVERY_VENDOR = pytest.mark.parametrize("vendor", LINE_FORMATS)


@cache
def _anthropic_validator():
    from anthropic.types.messages.batch_create_params import Request

    return SchemaValidator(make_strict(TypeAdapter(Request).core_schema))


def validate_line(vendor, line):
    """Raise `pydantic.ValidationError` if the vendor's types reject a line."""
    if vendor == "gemini":
        from google.genai.types import Content, GenerationConfig

        assert line.keys() == {"key", "request"}
        request = line["request"]
        assert request.keys() <= {"contents", "system_instruction", "generation_config"}
        for item in (*request["contents"], request.get("system_instruction", {})):
            Content.model_validate_json(json.dumps(item))
        GenerationConfig.model_validate_json(json.dumps(request.get("generation_config", {})))
    elif vendor == "anthropic":
        _anthropic_validator().validate_python(line)
    elif vendor == "bedrock":
        assert line.keys() == {"recordId", "modelInput"}
        body = dict(line["modelInput"])
        assert body.pop("anthropic_version") == "bedrock-2023-05-31"
        validate_request("anthropic", {"model": "m", **body})
    else:
        assert line.keys() == {"custom_id", "method", "url", "body"}
        validate_request(vendor, line["body"])


@EVERY_VENDOR
@pytest.mark.parametrize("answer", [None, Review], ids=["text", "answer"])
@pytest.mark.parametrize("has_system", [False, True], ids=["turns", "system"])
def test_lines_match_the_vendors_types(vendor, has_system, answer, png, wav):
    """Lines match the vendor's types for all content, with and without the optional parts."""
    form = LINE_FORMATS[vendor]
    for kind in content(png, wav).values():
        for turns in (user("Look:", kind), user("Look:", cache_point(), kind)):
            rendered = (system("Be brief.") + turns) if has_system else turns
            workflow = make_workflow(rendered.messages, rendered.system, answer, rendered.cache_points)
            line = form.build_line("1-ab", form.build_body(workflow, "m", {"lossy": True}))

            validate_line(vendor, json.loads(msgspec.json.encode(line)))


@pytest.mark.parametrize("vendor", REQUEST_FUNCTIONS)
def test_line_contains_the_request(vendor):
    """A batch line contains the same messages as the SDK's call."""
    workflow = system("Be brief.") + user("Why?")
    member = {"openai-responses": "input", "gemini": "contents"}.get(vendor, "messages")
    fields = {"max_tokens": 10} if vendor == "anthropic" else {}

    body = LINE_FORMATS[vendor].build_body(workflow, "m", fields)
    request = REQUEST_FUNCTIONS[vendor](workflow, model="m", **fields)

    assert body[member] == request[member]
    if vendor != "gemini":
        assert body == request


def test_limits_of_files():
    """The limits of batch files equal the documented ones."""
    limits = {vendor: (form.max_lines, form.max_bytes) for vendor, form in LINE_FORMATS.items()}

    assert limits == {
        "openai-chat": (50_000, 200_000_000),
        "openai-responses": (50_000, 200_000_000),
        "anthropic": (100_000, 256_000_000),
        "gemini": (1_000_000, 2_000_000_000),
        "bedrock": (50_000, 1_000_000_000),
    }


@prompt
def ask() -> str:
    """Ask."""
    return "Why?"


@EVERY_VENDOR
def test_fields_that_contain_the_prompt(vendor):
    """A field of the request cannot replace the prompt."""
    form = LINE_FORMATS[vendor]
    body = form.build_body(system("<prompt>") + user("<prompt>"), None, {})
    prompt_fields = {name for name, value in body.items() if "<prompt>" in json.dumps(value)}

    assert set(form.prompt_fields) == prompt_fields
    for name in prompt_fields:
        with pytest.raises(
            ValueError, match=f"the field '{name}' contains the prompt and cannot be set: change the prompt"
        ):
            Renderer(ask, vendor, fields={name: []})
