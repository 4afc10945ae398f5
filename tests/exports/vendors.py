"""
The vendors' own types, made strict: they reject unknown keys.

The types are imported on demand, because they are large and most pytest processes need none.
"""

import inspect
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator


def _message_type(form: str) -> Any:
    if form == "openai-chat":
        from openai.types.chat import ChatCompletionMessageParam as Message
    elif form == "openai-responses":
        from openai.types.responses import EasyInputMessageParam as Message
    elif form == "anthropic":
        from anthropic.types import MessageParam as Message
    else:
        from google.genai.types import Content as Message
    return Message


def make_strict(schema: Any) -> Any:
    """Return a copy of a core schema that rejects unknown keys, and iterables other than lists."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(make_strict, schema))
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "model":  # a response class, which would accept a dictionary with any key
        return {"type": "is-instance", "cls": schema["cls"], "ref": schema.get("ref")}
    members = {key: value if key == "metadata" else make_strict(value) for key, value in schema.items()}
    if members.get("type") == "typed-dict":
        members["extra_behavior"] = "forbid"
    if members.get("type") == "generator":  # its items would only be validated during iteration
        members["type"] = "list"
    return members


@cache
def _validator(form: str) -> SchemaValidator:
    return SchemaValidator(make_strict(TypeAdapter(_message_type(form)).core_schema))


def validate(form: str, messages: list[Any]) -> None:
    """Raise `pydantic.ValidationError` if a vendor's SDK rejects one of *messages*."""
    for message in messages:
        if form == "gemini":
            _message_type(form).model_validate(message)
        else:
            _validator(form).validate_python(message)


def _request_type(vendor: str) -> Any:
    if vendor == "openai-chat":
        from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as Request
    elif vendor == "openai-responses":
        from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as Request
    else:
        from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as Request
    return Request


@cache
def _request_validator(vendor: str) -> SchemaValidator:
    return SchemaValidator(make_strict(TypeAdapter(_request_type(vendor)).core_schema))


def validate_request(vendor: str, request: dict[str, Any]) -> None:
    """
    Raise `pydantic.ValidationError` or `TypeError` if the vendor's SDK rejects the arguments of a request.
    """
    if vendor != "gemini":
        _request_validator(vendor).validate_python(request)
        return
    from google.genai.models import Models
    from google.genai.types import GenerateContentConfig

    inspect.signature(Models.generate_content).bind(None, **request)
    validate(vendor, request["contents"])
    GenerateContentConfig.model_validate(request.get("config", {}))
