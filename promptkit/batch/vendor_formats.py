"""The formats of vendors' batch files: request bodies, lines, identifiers, and limits on the files."""

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from msgspec import Struct

from promptkit.exports import (
    anthropic_request,
    gemini_request,
    openai_chat_request,
    openai_responses_request,
)
from promptkit.language.messages import Workflow

#: A function that builds the body of a request from a workflow, the model, and additional fields.
_BodyBuilder: TypeAlias = Callable[[Workflow, str | None, Mapping[str, Any]], dict[str, Any]]

_MB: Final = 1_000_000

#: The default for the maximum number of tokens in an answer, a field that Anthropic requires.
_DEFAULT_MAX_TOKENS: Final = 4096

#: The size of the digest in an identifier that contains a row number, in bytes.
_DIGEST_SIZE: Final = 8

#: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html
_BEDROCK_VERSION: Final = "bedrock-2023-05-31"


class LineFormat(Struct, frozen=True):
    """
    The format of a vendor's batch files, with one request per line.

    Args:
        build_body:
            A function that builds the body of a request.

        build_line:
            A function that builds the object for a line from an identifier and a body.

        prompt_fields:
            The names of the body's fields that contain the prompt.

        max_lines:
            The maximum number of lines in a file.

        max_bytes:
            The maximum size of a file, in bytes.

        identifier:
            The name of the field in a line that contains the identifier.

        identifier_pattern:
            A regular expression that matches valid identifiers.

        identifier_description:
            A phrase for error messages that describes valid identifiers.

        has_model:
            Whether the body must name the model. If not, the batch job names it.
    """

    build_body: _BodyBuilder
    build_line: Callable[[str, dict[str, Any]], dict[str, Any]]
    prompt_fields: tuple[str, ...]
    max_lines: int
    max_bytes: int
    identifier: str = "custom_id"
    identifier_pattern: str = r"[^\x00-\x1f]{1,512}"
    identifier_description: str = "1 to 512 characters, none of them a control character"
    has_model: bool = True

    def check_fields(self, fields: Iterable[str]) -> None:
        """Raise ValueError if one of *fields* would replace the prompt in a request."""
        for name in fields:
            if name in self.prompt_fields:
                msg = f"the field {name!r} contains the prompt and cannot be set: change the prompt instead"
                raise ValueError(msg)


def numbered_identifier(number: int, content: bytes) -> str:
    """Return the identifier for a row without a key: its number and a digest of its *content*."""
    return f"{number}-{blake2b(content, digest_size=_DIGEST_SIZE).hexdigest()}"


def row_number_of(identifier: str) -> str | None:
    """Return the row number in an identifier from `numbered_identifier`; None for any other identifier."""
    match = re.fullmatch(rf"(\d+)-[0-9a-f]{{{2 * _DIGEST_SIZE}}}", identifier)
    return None if match is None else match[1]


def _openai_format(url: str, request: Callable[..., dict[str, Any]], *prompt_fields: str) -> LineFormat:
    """Return the format for one of OpenAI's APIs: https://developers.openai.com/api/docs/guides/batch."""

    def body(workflow: Workflow, model: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
        return request(workflow, **{"model": model, **fields})

    def line(identifier: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"custom_id": identifier, "method": "POST", "url": url, "body": body}

    return LineFormat(body, line, prompt_fields, 50_000, 200 * _MB)


def _anthropic_body(workflow: Workflow, model: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    return anthropic_request(workflow, **{"model": model, "max_tokens": _DEFAULT_MAX_TOKENS, **fields})


def _bedrock_body(workflow: Workflow, _: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    defaults = {"anthropic_version": _BEDROCK_VERSION, "max_tokens": _DEFAULT_MAX_TOKENS}
    return anthropic_request(workflow, **{**defaults, **fields})


def _gemini_body(workflow: Workflow, _: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Build the body for the REST API, in which the system part and the generation config are separate."""
    remaining = dict(fields)
    request = gemini_request(workflow, lossy=remaining.pop("lossy", False))
    config = request.pop("config", {})
    if (system := config.pop("system_instruction", None)) is not None:
        request["system_instruction"] = {"parts": [{"text": system}]}
    if generation := {**config, **remaining.pop("generation_config", {})}:
        request["generation_config"] = generation
    return {**request, **remaining}


#: The formats, keyed by the names that users choose.
#: Anthropic: https://platform.claude.com/docs/en/build-with-claude/batch-processing;
#: Gemini: https://ai.google.dev/gemini-api/docs/batch-api; Bedrock:
#: https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-data.html and the quotas of Bedrock.
LINE_FORMATS: Final[dict[str, LineFormat]] = {
    "openai-chat": _openai_format("/v1/chat/completions", openai_chat_request, "messages"),
    "openai-responses": _openai_format("/v1/responses", openai_responses_request, "input", "instructions"),
    "anthropic": LineFormat(
        _anthropic_body,
        lambda identifier, body: {"custom_id": identifier, "params": body},
        ("messages", "system"),
        max_lines=100_000,
        max_bytes=256 * _MB,
        identifier_pattern="[a-zA-Z0-9_-]{1,64}",
        identifier_description="1 to 64 letters, digits, hyphens and underscores",
    ),
    "gemini": LineFormat(
        _gemini_body,
        lambda identifier, body: {"key": identifier, "request": body},
        ("contents", "system_instruction"),
        identifier="key",
        max_lines=1_000_000,
        max_bytes=2_000 * _MB,
        has_model=False,
    ),
    "bedrock": LineFormat(
        _bedrock_body,
        lambda identifier, body: {"recordId": identifier, "modelInput": body},
        ("messages", "system"),
        identifier="recordId",
        max_lines=50_000,
        max_bytes=1_000 * _MB,
        has_model=False,
    ),
}
