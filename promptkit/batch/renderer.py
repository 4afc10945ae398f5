"""Rendering a prompt for each row of a table, as messages or as request bodies for vendors' batch APIs."""

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
    A prompt as a function that adds a column of renderings and a column of errors to a table.

    It can be pickled, so that data engines can call it in other processes. It returns a table of the same
    kind as the one it receives: a pyarrow Table or RecordBatch, a Polars or pandas data frame, a Polars
    Series of structs, or a list of mappings. For any other object with ``__arrow_c_stream__``, it returns a
    pyarrow Table.

    Columns are matched to parameters by name. Other columns are ignored, but it is an error if a parameter
    has no column and the name of another column is similar. Values keep their types, except that text is
    parsed like text from a client. None means that the argument is missing. Two columns are added:
    ``messages`` or ``request``, and ``error``. In each row, exactly one of these two is None.

    Args:
        prompt:
            The prompt.

        to:
            The format of a rendering. ``"messages"`` means messages with a role and text, which inference
            engines accept. The name of a vendor means the body of a request, as JSON text: ``"openai-chat"``,
            ``"openai-responses"``, ``"anthropic"``, ``"gemini"`` or ``"bedrock"``.

        model:
            The model that each request names. It is ignored for formats whose requests do not name a model.

        columns:
            A mapping of column names to parameter names, for columns whose names differ from their
            parameter's.

        values:
            Values that are the same for every row, keyed by parameter name, in the form that clients send.

        fields:
            Additional fields of each request body, such as ``{"temperature": 0}``. With ``"lossy": True``,
            content that the vendor does not support is replaced with a text description.

        key:
            The name of a column that `batches` copies to its output, converted to text.

    Raises:
        ValueError: If *to* is not one of these formats, or *fields* would replace the prompt. Other errors
            are raised on first use: `ColumnError`, `ArgumentsError` for invalid *values*, `CompileError` for
            an invalid prompt, and `UnsupportedAnswerError` for an answer type that the vendor does not
            support.

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
        """The columns of a table, matched to the prompt's parameters."""
        return Columns.of(self.prompt.compiled.arguments, self.columns, self.values, self.key)

    @property
    def column(self) -> str:
        """The name of the column that contains the renderings: ``messages`` or ``request``."""
        return MESSAGES if self.to == MESSAGES else _REQUEST

    @property
    def schema(self) -> str:
        """
        The schema of the record batches that `batches` yields, in Spark's syntax.

        The columns are the key, if there is one, the rendering and the error.
        """
        key = "" if self.key is None else f"`{self.key}` string, "
        form = "array<struct<role: string, content: string>>" if self.to == MESSAGES else "string"
        return f"{key}{self.column} {form}, {_ERROR_COLUMN} string"

    def __call__(self, table: T) -> T:
        """
        Return *table* with the renderings and the errors added as columns.

        Raises:
            TypeError: If *table* is not a table.

            ColumnError: If the key column or the column for a required parameter is missing, or if a column
                name is probably misspelt.
        """
        supported = to_supported_table(table)
        return with_columns(supported, self._render_table(supported))  # type: ignore[no-any-return]  # of that kind

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """
        Render the rows of Arrow record batches. Pass this method to Spark's ``mapInArrow``.

        Args:
            batches:
                The record batches.

        Returns:
            For each record batch, a record batch with the columns of `schema`.

        Raises:
            ColumnError: If the key column or the column for a required parameter is missing, or if a column
                name is probably misspelt.
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
        Render the prompt for one row. If the result is a single user message of text, return that text.

        Args:
            sent:
                Values in the form that clients send, keyed by parameter name.

            typed:
                Values that already have their parameter's type, keyed by parameter name.

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
        except BaseException as error:  # noqa: BLE001 (prompts can raise anything)
            row_error = _convert_error(error)
        if (arguments := compiled.arguments).secret:  # the prompt's error messages can repeat secrets
            redact = Redactor.of(arguments, {**sent, **typed}).redacted
            row_error = RowError(
                tuple(replace(invalid, reason=redact(invalid.reason)) for invalid in row_error.errors)
            )
        raise row_error

    def row_error(self, error: Exception) -> RowError:
        """
        Convert *error*, which was raised while a row was processed, to a `RowError`.

        Raises:
            UnsupportedAnswerError: If *error* is an UnsupportedAnswerError, because every row would raise it.
        """
        if isinstance(error, RowError):
            return error
        if isinstance(error, UnsupportedAnswerError):
            raise error
        # The message of an unexpected error can repeat the row's values.
        text = "" if self.prompt.compiled.arguments.secret else f": {error}"
        return RowError.of(f"the row cannot be rendered: {type(error).__name__}{text}")

    def _encode_body(self, workflow: Workflow) -> bytes:
        return msgspec.json.encode(LINE_FORMATS[self.to].build_body(workflow, self.model, self.fields))

    @cached_property
    def _text_body(self) -> tuple[bytes, bytes]:
        """The JSON before and after the text, in the body of a request with a single user message."""
        mark = uuid4().hex
        workflow = make_workflow(user(mark).messages, answer=self.prompt.compiled.renderer.answer)
        head, _, tail = self._encode_body(workflow).partition(mark.encode())
        return head, tail

    def body(self, rendering: RenderedRow) -> Any:
        """
        Return the body of the request for a rendering, as JSON in a `msgspec.Raw`.

        Raises:
            RowError: If the vendor does not support the content, or the answer type that the rendering has
                set.

            UnicodeEncodeError: If the text contains an unpaired surrogate.

            UnsupportedAnswerError: If the vendor does not support the answer type that the prompt declares.
        """
        try:
            if isinstance(rendering, str):
                head, tail = self._text_body
                return msgspec.Raw(head + msgspec.json.encode(rendering)[1:-1] + tail)
            return msgspec.Raw(self._encode_body(rendering))
        except UnsupportedAnswerError as error:
            if self.prompt.options.answer is not None:  # every row would fail with this error
                raise
            raise RowError.of(str(error)) from None
        except ExportError as error:
            raise RowError.of(error.reason) from None

    def _build_cell(self, rendering: RenderedRow) -> Any:
        if self.to != MESSAGES:
            return bytes(self.body(rendering)).decode()
        messages = (
            [{"role": "user", "content": rendering}]
            if isinstance(rendering, str)
            else _text_messages(rendering)
        )
        msgspec.json.encode(messages)  # rejects unpaired surrogates, which no engine accepts
        return messages


def _text_messages(workflow: Workflow) -> list[Any]:
    try:
        messages = openai_chat(make_workflow(workflow.messages, workflow.system), system_role="system")
    except ExportError as error:
        raise RowError.of(error.reason) from None
    if all(type(message["content"]) is str for message in messages):
        return messages
    msg = (
        "the format 'messages' supports only text, but the rendering has other content: use "
        "to='openai-chat' or the name of another vendor"
    )
    raise RowError.of(msg)


def _convert_error(error: BaseException) -> RowError:
    """Convert *error*, which the prompt raised for a row, to a `RowError`."""
    if isinstance(error, ArgumentsError):
        return RowError(error.errors)
    if isinstance(error, PromptError | ResultError):
        return RowError.of(str(error))
    return RowError.of(f"the prompt raised {type(error).__name__}: {error}")
