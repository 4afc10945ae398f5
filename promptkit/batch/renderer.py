"""Rendering of a prompt for the rows of a table, on any engine, or as requests in vendors' batch formats."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar
from uuid import uuid4

import attrs
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from promptkit.batch.columns import Columns, RowError
from promptkit.batch.dataframes import ColumnTypes, columns_of, rows_of, to_supported_table, with_columns
from promptkit.catalog.redaction import Redactor
from promptkit.declarations.prompts import Prompt
from promptkit.errors.exceptions import ArgumentsError, PromptError, ResultError
from promptkit.errors.suggestions import nearest
from promptkit.exports import (
    ExportError,
    UnsupportedAnswerError,
    anthropic_request,
    gemini_request,
    openai_chat,
    openai_chat_request,
    openai_responses_request,
)
from promptkit.language.messages import Workflow, make_workflow
from promptkit.language.turns import user

#: Creates the body of a request from a workflow, the model, and other fields.
_Body: TypeAlias = Callable[[Workflow, str | None, Mapping[str, Any]], dict[str, Any]]

_MB: Final = 1_000_000

#: The maximum length of an answer in tokens, which Anthropic requires.
_MAX_TOKENS: Final = 4096

#: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html
_BEDROCK_VERSION: Final = "bedrock-2023-05-31"


class LineFormat(Struct, frozen=True):
    """
    The format of a vendor's batch files, with one request per line.

    Args:
        body:
            Creates the body of a request.

        line:
            Creates a line from an identifier and a body.

        prompt_fields:
            The members of the body that contain the prompt.

        max_lines:
            The maximum number of lines in a file.

        max_bytes:
            The maximum size of a file in bytes.

        identifier:
            The member with the identifier.

        identifier_pattern:
            A regular expression for valid identifiers.

        identifier_description:
            A description of valid identifiers.

        has_model:
            Whether the body contains the model. Otherwise the batch job selects it.

        model_substrings:
            Substrings of model names; a valid name contains at least one of them.
    """

    body: _Body
    line: Callable[[str, dict[str, Any]], dict[str, Any]]
    prompt_fields: tuple[str, ...]
    max_lines: int
    max_bytes: int
    identifier: str = "custom_id"
    identifier_pattern: str = r"[^\x00-\x1f]{1,512}"
    identifier_description: str = "1 to 512 characters"
    has_model: bool = True
    model_substrings: tuple[str, ...] = ("",)

    def check_fields(self, fields: Iterable[str]) -> None:
        """Raise ValueError if one of the other fields of a request would replace the prompt."""
        for name in fields:
            if name in self.prompt_fields:
                msg = f"{name!r} is the prompt's own field: change the prompt instead"
                raise ValueError(msg)


def _openai(url: str, request: Callable[..., dict[str, Any]], *prompt_fields: str) -> LineFormat:
    """Return the format of one OpenAI API: https://developers.openai.com/api/docs/guides/batch."""

    def body(workflow: Workflow, model: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
        return request(workflow, **{"model": model, **fields})

    def line(identifier: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"custom_id": identifier, "method": "POST", "url": url, "body": body}

    return LineFormat(body, line, prompt_fields, 50_000, 200 * _MB)


def _anthropic_body(workflow: Workflow, model: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    return anthropic_request(workflow, **{"model": model, "max_tokens": _MAX_TOKENS, **fields})


def _bedrock_body(workflow: Workflow, _: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    defaults = {"anthropic_version": _BEDROCK_VERSION, "max_tokens": _MAX_TOKENS}
    return anthropic_request(workflow, **{**defaults, **fields})


def _gemini_body(workflow: Workflow, _: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body for the REST API, which separates the system part and the generation config."""
    remaining = dict(fields)
    request = gemini_request(workflow, lossy=remaining.pop("lossy", False))
    config = request.pop("config", {})
    if (system := config.pop("system_instruction", None)) is not None:
        request["system_instruction"] = {"parts": [{"text": system}]}
    if generation := {**config, **remaining.pop("generation_config", {})}:
        request["generation_config"] = generation
    return {**request, **remaining}


#: The formats, by the vendors' names.
#: Anthropic: https://platform.claude.com/docs/en/build-with-claude/batch-processing;
#: Gemini: https://ai.google.dev/gemini-api/docs/batch-api; Bedrock:
#: https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-data.html and its quotas.
LINE_FORMATS: Final[dict[str, LineFormat]] = {
    "openai-chat": _openai("/v1/chat/completions", openai_chat_request, "messages"),
    "openai-responses": _openai("/v1/responses", openai_responses_request, "input", "instructions"),
    "anthropic": LineFormat(
        _anthropic_body,
        lambda identifier, body: {"custom_id": identifier, "params": body},
        ("messages", "system"),
        max_lines=100_000,
        max_bytes=256 * _MB,
        identifier_pattern="[a-zA-Z0-9_-]{1,64}",
        identifier_description="1 to 64 letters, digits, - and _",
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
        model_substrings=("anthropic", "claude"),
    ),
}

T = TypeVar("T")

#: A rendering of one row: a workflow, or a single user text, which most prompts return.
RenderedRow: TypeAlias = Workflow | str

#: The default format, which model engines accept: messages with a role and text.
MESSAGES: Final = "messages"

_LONE_SURROGATE: Final = "the rendering contains an unpaired surrogate"

_REQUEST: Final = "request"
_ERROR_COLUMN: Final = "error"


def _validate_format(to: str) -> str:
    if to not in (formats := (MESSAGES, *LINE_FORMATS)):
        suggestion = nearest(to, formats)
        hint = f"did you mean {suggestion!r}?" if suggestion else f"choose one of {', '.join(formats)}"
        msg = f"unknown format {to!r}: {hint}"
        raise ValueError(msg)
    return to


@attrs.frozen
class Renderer:
    """
    A prompt as a function on tables: it adds a column with renderings, and a column with errors.

    It can be pickled, so that engines can call it in other processes. It returns the kind of table that it
    gets: a pyarrow Table or RecordBatch, a Polars or pandas data frame, a Polars Series of structs, or a list
    of mappings. For other objects with ``__arrow_c_stream__`` it returns a pyarrow Table.

    Columns are matched to parameters by name. Other columns are ignored, unless one has a name similar to a
    parameter without a column, which is an error. Values keep their types; text is parsed like text from a
    client, and None means that an argument is missing. Two columns are added: ``messages`` or ``request``,
    and ``error``. In each row, exactly one of the two is None.

    Args:
        prompt:
            The prompt.

        to:
            ``"messages"`` for messages with a role and text, as model engines accept them; or a vendor, for
            the body of a request as JSON text: ``"openai-chat"``, ``"openai-responses"``, ``"anthropic"``,
            ``"gemini"`` or ``"bedrock"``.

        model:
            The model in requests.

        columns:
            Parameters by column, where the names differ.

        values:
            Values by parameter that are the same for all rows, as a client sends them.

        fields:
            Other fields of each request body, such as ``{"temperature": 0}``. With ``"lossy": True``, content
            that the vendor does not support is replaced with a text description.

        key:
            The column that `batches` passes on, as text.

    Raises:
        ValueError: If *to* is unknown, or *fields* would replace the prompt. Other errors are raised on first
            use: `ColumnError`, `ArgumentsError` for *values*, `CompileError` for the prompt,
            `UnsupportedAnswerError` for its answer type.

    See Also:
        https://platform.openai.com/docs/guides/batch
    """

    prompt: Prompt[..., Any]
    to: str = attrs.field(default=MESSAGES, converter=_validate_format)
    model: str | None = attrs.field(default=None, kw_only=True)
    columns: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    values: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True, repr=False)
    fields: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)
    key: str | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.to != MESSAGES:
            LINE_FORMATS[self.to].check_fields(self.fields)

    @cached_property
    def matched(self) -> Columns:
        """The mapping of columns to parameters."""
        return Columns.of(self.prompt.compiled.arguments, self.columns, self.values, self.key)

    @property
    def column(self) -> str:
        """The name of the column that is added next to ``error``."""
        return MESSAGES if self.to == MESSAGES else _REQUEST

    @property
    def schema(self) -> str:
        """The columns that `batches` yields, in Spark's syntax: the key, if any, rendering and error."""
        key = "" if self.key is None else f"`{self.key}` string, "
        form = "array<struct<role: string, content: string>>" if self.to == MESSAGES else "string"
        return f"{key}{self.column} {form}, {_ERROR_COLUMN} string"

    @property
    def types(self) -> ColumnTypes:
        """For each added column, whether it contains messages instead of text."""
        return {self.column: self.to == MESSAGES, _ERROR_COLUMN: False}

    def __call__(self, table: T) -> T:
        """
        Return *table* with the added columns.

        Raises:
            TypeError: If *table* is not a table.

            ColumnError: If the column of a required parameter is missing, or a column is probably misspelt.
        """
        supported = to_supported_table(table)
        return with_columns(supported, self._render_table(supported), self.types)  # type: ignore[no-any-return]  # of that kind

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """
        Yield a record batch with the columns of `schema` for each of *batches*, for Spark's ``mapInArrow``.

        Raises:
            ColumnError: If the key column or the column of a required parameter is missing, or if a column is
                probably misspelt.
        """
        for batch in batches:
            rendered = with_columns(batch, self._render_table(batch, self.key), self.types)
            if self.key is not None:
                keys = [None if key is None else str(key) for key in batch.column(self.key).to_pylist()]
                rendered = with_columns(rendered, {self.key: keys}, {self.key: False})
            yield rendered.select([*([] if self.key is None else [self.key]), *self.types])

    def _render_table(self, table: Any, key: str | None = None) -> dict[str, list[Any]]:
        matched, renderings, errors = self.matched, list[Any](), list[str | None]()
        if (names := columns_of(table)) is not None:
            matched.check(names, key)
        for row in rows_of(table, {column for column, _ in matched.pairs}):
            try:
                renderings.append(self._column(self.render_row(*matched.extract_arguments(row))))
                errors.append(None)
            except Exception as error:  # noqa: BLE001 (a failing row does not stop the table)
                renderings.append(None)
                errors.append(str(self.row_error(error)))
        return {self.column: renderings, _ERROR_COLUMN: errors}

    def render_row(self, sent: Mapping[str, Any], typed: dict[str, Any]) -> RenderedRow:
        """
        Render one row. A single user text, the most common rendering, is returned as a string.

        Args:
            sent:
                Values by parameter, as a client sends them.

            typed:
                Values that have their parameter's type.

        Raises:
            RowError: If a value is invalid, or the prompt raises an exception.
        """
        compiled = self.prompt.compiled
        renderer = compiled.renderer
        try:
            values = compiled.bind(sent, known=typed)
            return renderer.render(**values) if renderer.is_async else renderer.render_sync(values)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 (prompts can raise anything; other rows continue)
            row_error = _convert_error(error)
        if (arguments := compiled.arguments).secret:  # error messages of authors can repeat secrets
            redact = Redactor.of(arguments, {**sent, **typed}).redacted
            row_error = RowError(
                tuple(replace(invalid, reason=redact(invalid.reason)) for invalid in row_error.errors)
            )
        raise row_error

    def row_error(self, error: Exception) -> RowError:
        """
        Convert *error*, which was raised for a row, to a `RowError`.

        Raises:
            UnsupportedAnswerError: If *error* is an UnsupportedAnswerError, which every row would raise.
        """
        if isinstance(error, RowError):
            return error
        if isinstance(error, UnsupportedAnswerError):
            raise error
        # The text of an unexpected error can repeat values of the row.
        text = "" if self.prompt.compiled.arguments.secret else f": {error}"
        return RowError.of(f"the row cannot be rendered: {type(error).__name__}{text}")

    def _encode_body(self, workflow: Workflow) -> bytes:
        return msgspec.json.encode(LINE_FORMATS[self.to].body(workflow, self.model, self.fields))

    @cached_property
    def _text_body(self) -> tuple[bytes, bytes]:
        """The body of a request for a single user text, before and after that text."""
        mark = uuid4().hex
        workflow = make_workflow(user(mark).messages, answer=self.prompt.compiled.renderer.answer)
        head, _, tail = self._encode_body(workflow).partition(mark.encode())
        return head, tail

    def body(self, rendering: RenderedRow) -> Any:
        """
        Encode the body of a request as JSON, in a `msgspec.Raw`.

        Raises:
            RowError: If the vendor does not support the content or the row's answer type, or a text cannot be
                encoded.

            UnsupportedAnswerError: If the vendor does not support the answer type that the prompt declares.
        """
        try:
            if isinstance(rendering, str):
                head, tail = self._text_body
                return msgspec.Raw(head + msgspec.json.encode(rendering)[1:-1] + tail)
            return msgspec.Raw(self._encode_body(rendering))
        except ExportError as error:
            raise RowError.of(error.reason) from None
        except UnsupportedAnswerError as error:
            if self.prompt.options.answer is not None:  # every row has this error
                raise
            raise RowError.of(str(error)) from None
        except UnicodeEncodeError:
            raise RowError.of(_LONE_SURROGATE) from None

    def _column(self, rendering: RenderedRow) -> Any:
        if self.to != MESSAGES:
            return bytes(self.body(rendering)).decode()
        messages = (
            [{"role": "user", "content": rendering}] if isinstance(rendering, str) else _messages(rendering)
        )
        try:
            msgspec.json.encode(messages)
        except UnicodeEncodeError:
            raise RowError.of(_LONE_SURROGATE) from None
        return messages


def _messages(workflow: Workflow) -> list[Any]:
    try:
        messages = openai_chat(make_workflow(workflow.messages, workflow.system), system_role="system")
    except ExportError as error:
        raise RowError.of(error.reason) from None
    if all(type(message["content"]) is str for message in messages):
        return messages
    msg = (
        "messages support only text, but the rendering has other content: use to='openai-chat' or "
        "another vendor"
    )
    raise RowError.of(msg)


def _convert_error(error: BaseException) -> RowError:
    """Return the error of a row for which the prompt raised *error*."""
    if isinstance(error, ArgumentsError):
        return RowError(error.errors)
    with suppress(Exception):  # formatting an author's exception can fail
        if isinstance(error, PromptError | ResultError):
            return RowError.of(str(error))
        return RowError.of(f"the prompt raised {type(error).__name__}: {error}")
    return RowError.of(f"the prompt raised {type(error).__name__}")
