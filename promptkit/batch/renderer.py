"""Rendering of a prompt for the rows of a table, on any engine, or as requests in vendors' batch formats."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar
from uuid import uuid4

import attrs
import msgspec
from msgspec.structs import replace

from promptkit.batch.columns import Columns, RowError
from promptkit.batch.dataframes import (
    MESSAGES,
    columns_of,
    prepend_text_column,
    rows_of,
    to_supported_table,
    with_columns,
)
from promptkit.batch.vendor_formats import LINE_FORMATS
from promptkit.catalog.redaction import Redactor
from promptkit.declarations.prompts import Prompt
from promptkit.errors.exceptions import ArgumentsError, PromptError, ResultError
from promptkit.exports import (
    ExportError,
    UnsupportedAnswerError,
    openai_chat,
)
from promptkit.language.messages import Workflow, make_workflow
from promptkit.language.turns import user

T = TypeVar("T")

#: A rendering of one row: a workflow, or the text of a single user message, which is the common case.
RenderedRow: TypeAlias = Workflow | str

_REQUEST: Final = "request"
_ERROR_COLUMN: Final = "error"


def _validate_format(to: str) -> str:
    if to not in (formats := (MESSAGES, *LINE_FORMATS)):
        msg = f"unknown format {to!r}: choose one of {', '.join(formats)}"
        raise ValueError(msg)
    return to


@attrs.frozen
class Renderer:
    """
    A prompt as a function on tables, which adds a column with renderings and a column with errors.

    It can be pickled, so that engines can call it in other processes. It returns a table of the same kind
    that it receives: a pyarrow Table or RecordBatch, a Polars or pandas data frame, a Polars Series of
    structs, or a list of mappings. For any other object with ``__arrow_c_stream__``, it returns a pyarrow
    Table.

    Columns are matched to parameters by name. Other columns are ignored, but it is an error if a parameter
    has no column and one of the others has a similar name. Values keep their types, text is parsed like text
    from a client, and None means that an argument is missing. Two columns are added: ``messages`` or
    ``request``, and ``error``. In each row, exactly one of the two is None.

    Args:
        prompt:
            The prompt.

        to:
            ``"messages"`` for messages with a role and text, which model engines accept; or, for the body of
            a request as JSON text, a vendor: ``"openai-chat"``, ``"openai-responses"``, ``"anthropic"``,
            ``"gemini"`` or ``"bedrock"``.

        model:
            The model in requests.

        columns:
            Parameters by column, for columns whose names differ.

        values:
            Values by parameter that are the same for all rows, as a client sends them.

        fields:
            Other fields of each request body, such as ``{"temperature": 0}``. With ``"lossy": True``, content
            that the vendor does not support is replaced with a text description.

        key:
            A column that `batches` also yields, converted to text.

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
        """The name of the column with the renderings: ``messages`` or ``request``."""
        return MESSAGES if self.to == MESSAGES else _REQUEST

    @property
    def schema(self) -> str:
        """The columns that `batches` yields, in Spark's syntax: rendering and error, after any key."""
        key = "" if self.key is None else f"`{self.key}` string, "
        form = "array<struct<role: string, content: string>>" if self.to == MESSAGES else "string"
        return f"{key}{self.column} {form}, {_ERROR_COLUMN} string"

    def __call__(self, table: T) -> T:
        """
        Return *table* with the added columns.

        Raises:
            TypeError: If *table* is not a table.

            ColumnError: If the key column or the column of a required parameter is missing, or a column is
                probably misspelt.
        """
        supported = to_supported_table(table)
        return with_columns(supported, self._render_table(supported))  # type: ignore[no-any-return]  # of that kind

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """
        Yield a record batch with the columns of `schema` for each of *batches*, for Spark's ``mapInArrow``.

        Raises:
            ColumnError: If the key column or the column of a required parameter is missing, or if a column is
                probably misspelt.
        """
        names = [self.column, _ERROR_COLUMN]
        for batch in batches:
            rendered = with_columns(batch, self._render_table(batch)).select(names)
            if self.key is not None:
                keys = [None if key is None else str(key) for key in batch.column(self.key).to_pylist()]
                rendered = prepend_text_column(rendered, self.key, keys)
            yield rendered

    def _render_table(self, table: Any) -> dict[str, list[Any]]:
        matched, renderings, errors = self.matched, list[Any](), list[str | None]()
        if (names := columns_of(table)) is not None:
            matched.check(names)
        for row in rows_of(table, {column for column, _ in matched.pairs}):
            try:
                renderings.append(self._build_cell(self.render_row(*matched.extract_arguments(row))))
                errors.append(None)
            except Exception as error:  # noqa: BLE001 (a failing row does not stop the table)
                renderings.append(None)
                errors.append(str(self.row_error(error)))
        return {self.column: renderings, _ERROR_COLUMN: errors}

    def render_row(self, sent: Mapping[str, Any], typed: dict[str, Any]) -> RenderedRow:
        """
        Render one row. If the rendering is a single user message of text, return that text.

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
        if (arguments := compiled.arguments).secret:  # authors' error messages can repeat secrets
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
        # The message of an unexpected error can repeat values of the row.
        text = "" if self.prompt.compiled.arguments.secret else f": {error}"
        return RowError.of(f"the row cannot be rendered: {type(error).__name__}{text}")

    def _encode_body(self, workflow: Workflow) -> bytes:
        return msgspec.json.encode(LINE_FORMATS[self.to].build_body(workflow, self.model, self.fields))

    @cached_property
    def _text_body(self) -> tuple[bytes, bytes]:
        """The body of a request with a single user message, as the parts before and after its text."""
        mark = uuid4().hex
        workflow = make_workflow(user(mark).messages, answer=self.prompt.compiled.renderer.answer)
        head, _, tail = self._encode_body(workflow).partition(mark.encode())
        return head, tail

    def body(self, rendering: RenderedRow) -> Any:
        """
        Encode the body of a request as JSON, in a `msgspec.Raw`.

        Raises:
            RowError: If the vendor does not support the content or the row's answer type.

            UnicodeEncodeError: If the text contains an unpaired surrogate.

            UnsupportedAnswerError: If the vendor does not support the answer type that the prompt declares.
        """
        try:
            if isinstance(rendering, str):
                head, tail = self._text_body
                return msgspec.Raw(head + msgspec.json.encode(rendering)[1:-1] + tail)
            return msgspec.Raw(self._encode_body(rendering))
        except UnsupportedAnswerError as error:
            if self.prompt.options.answer is not None:  # every row has this error
                raise
            raise RowError.of(str(error)) from None
        except ExportError as error:
            raise RowError.of(error.reason) from None

    def _build_cell(self, rendering: RenderedRow) -> Any:
        if self.to != MESSAGES:
            return bytes(self.body(rendering)).decode()
        messages = (
            [{"role": "user", "content": rendering}] if isinstance(rendering, str) else _messages(rendering)
        )
        msgspec.json.encode(messages)  # rejects unpaired surrogates, which no engine accepts
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
    """Convert *error*, which the prompt raised for a row, to the error of the row."""
    if isinstance(error, ArgumentsError):
        return RowError(error.errors)
    if isinstance(error, PromptError | ResultError):
        return RowError.of(str(error))
    return RowError.of(f"the prompt raised {type(error).__name__}: {error}")
