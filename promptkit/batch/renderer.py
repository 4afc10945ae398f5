"""Renders a prompt for the rows of a table, in any process and on any engine."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, TypeVar

import attrs
import msgspec
from msgspec.structs import replace

from promptkit.batch.body_templates import Bodies, Said
from promptkit.batch.dataframes import ColumnTypes, columns_of, known_table, rows_of, with_columns
from promptkit.batch.request_lines import LINE_FORMATS
from promptkit.batch.rows import Columns, RowError
from promptkit.catalog.redaction import Redactor
from promptkit.declarations.prompts import Prompt
from promptkit.errors.exceptions import ArgumentsError, PromptError, ResultError
from promptkit.errors.suggestions import nearest
from promptkit.exports import ExportError, UnsupportedAnswerError, openai_chat
from promptkit.language.messages import Workflow, workflow_of

T = TypeVar("T")

#: The form that engines of models take: messages of a role and text.
MESSAGES: Final = "messages"

_HALF: Final = "the prompt says half of a character"

_REQUEST: Final = "request"
_FAULT: Final = "fault"


def _form(to: str) -> str:
    if to not in (known := (MESSAGES, *LINE_FORMATS)):
        meant = nearest(to, known)
        hint = f"did you mean {meant!r}?" if meant else f"there are {', '.join(known)}"
        msg = f"there is no form {to!r}: {hint}"
        raise ValueError(msg)
    return to


@attrs.frozen
class Renderer:
    """
    A prompt as a function of tables: it adds what the prompt says to each row, and what is wrong with it.

    It can be pickled, so that engines call it in other processes. Calling it returns the kind of table that
    it was given: a pyarrow Table or RecordBatch, a frame of Polars or pandas, a Series of structs of Polars,
    or a list of mappings; for anything else that has ``__arrow_c_stream__``, a pyarrow Table.

    A column is the parameter of its name, and other columns are left alone. Values keep their types; text is
    read as a client's, and None is what is not given. Two columns are added: ``messages`` or ``request``, and
    ``fault``, of which one is None.

    Args:
        prompt:
            The prompt.

        to:
            ``"messages"`` for messages of a role and text, as engines of models take them; or a vendor, for
            the body of a request to it as JSON text: ``"openai-chat"``, ``"openai-responses"``,
            ``"anthropic"``, ``"gemini"`` or ``"bedrock"``.

        model:
            The model that requests name.

        columns:
            Parameters by the columns that they are read from, where names differ.

        values:
            Values by parameter that are the same for all rows, as a client sends them.

        fields:
            What else is in the body of each request, such as ``{"temperature": 0}``. With ``"lossy": True``,
            what the vendor does not take becomes text.

        key:
            The column that `batches` passes on, as text.

    Raises:
        ValueError: If there is no such form. Of what else is wrong, the first use says what: `ColumnError`,
            `ArgumentsError` for *values*, `CompileError` for the prompt, `UnsupportedAnswerError` for its
                answer.

    See Also:
        https://platform.openai.com/docs/guides/batch
    """

    prompt: Prompt[..., Any]
    to: str = attrs.field(default=MESSAGES, converter=_form)
    model: str | None = attrs.field(default=None, kw_only=True)
    columns: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    values: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True, repr=False)
    fields: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)
    key: str | None = attrs.field(default=None, kw_only=True)

    @cached_property
    def matched(self) -> Columns:
        """The column of each parameter."""
        return Columns.of(self.prompt.compiled.arguments, self.columns, self.values)

    @property
    def column(self) -> str:
        """The name of the column that is added beside ``fault``."""
        return MESSAGES if self.to == MESSAGES else _REQUEST

    @property
    def schema(self) -> str:
        """What `batches` yields, as Spark writes it: the key if there is one, what is said, and the fault."""
        key = "" if self.key is None else f"`{self.key}` string, "
        form = "array<struct<role: string, content: string>>" if self.to == MESSAGES else "string"
        return f"{key}{self.column} {form}, {_FAULT} string"

    @property
    def types(self) -> ColumnTypes:
        """Whether each added column holds messages; else it holds text."""
        return {self.column: self.to == MESSAGES, _FAULT: False}

    def __call__(self, table: T) -> T:
        """
        Return *table* with the columns that are added.

        Raises:
            TypeError: If it is no table.

            ColumnError: If it has no column for a parameter that is required.
        """
        known = known_table(table)
        return with_columns(known, self._rendered(known), self.types)  # type: ignore[no-any-return]  # of that kind

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """
        Yield a record batch of `schema` for each of *batches*: what ``DataFrame.mapInArrow`` of Spark takes.

        Raises:
            ColumnError: If they have no column for a parameter that is required, or for the key.
        """
        for batch in batches:
            rendered = with_columns(batch, self._rendered(batch, self.key), self.types)
            if self.key is not None:
                keys = [None if key is None else str(key) for key in batch.column(self.key).to_pylist()]
                rendered = with_columns(rendered, {self.key: keys}, {self.key: False})
            yield rendered.select([*([] if self.key is None else [self.key]), *self.types])

    def _rendered(self, table: Any, key: str | None = None) -> dict[str, list[Any]]:
        matched, said, faults = self.matched, list[Any](), list[str | None]()
        if (names := columns_of(table)) is not None:
            matched.check(names, key)
        for row in rows_of(table, {column for column, _ in matched.pairs}):
            try:
                said.append(self._column(self.said(*matched.given(row))))
                faults.append(None)
            except Exception as error:  # noqa: BLE001 (one odd row does not end the table)
                said.append(None)
                faults.append(str(self.row_error(error)))
        return {self.column: said, _FAULT: faults}

    def said(self, sent: Mapping[str, Any], typed: dict[str, Any]) -> Said:
        """
        Render one row. One text of the user, which is what most prompts say, is no workflow yet.

        Args:
            sent:
                Values by parameter, as a client sends them.

            typed:
                Values that have their parameter's type.

        Raises:
            RowError: If a value is wrong, or the prompt refuses it or raises anything else.
        """
        compiled = self.prompt.compiled
        renderer = compiled.renderer
        try:
            values = compiled.bind(sent, known=typed)
            return renderer.render(**values) if renderer.is_async else renderer.render_sync(values)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 (authors raise anything: the other rows go on)
            refused = _refused(error)
        if (arguments := compiled.arguments).secret:  # which what authors say may repeat
            hidden = Redactor.of(arguments, {**sent, **typed}).redacted
            refused = RowError(tuple(replace(one, reason=hidden(one.reason)) for one in refused.errors))
        raise refused

    def row_error(self, error: Exception) -> RowError:
        """
        Return the error of the row for which *error* was raised.

        Raises:
            UnsupportedAnswerError: If it is *error*, because each row would raise it.
        """
        if isinstance(error, RowError):
            return error
        if isinstance(error, UnsupportedAnswerError):
            raise error
        # The text of an unexpected error can repeat values of the row.
        text = "" if self.prompt.compiled.arguments.secret else f": {error}"
        return RowError.of(f"the row cannot be rendered: {type(error).__name__}{text}")

    @cached_property
    def _bodies(self) -> Bodies:
        make, answer = LINE_FORMATS[self.to].body, self.prompt.compiled.renderer.answer
        return Bodies(lambda workflow: make(workflow, self.model, self.fields), answer)

    def body(self, said: Said) -> Any:
        """
        Return the body of the request: JSON, as `msgspec.Raw` has it.

        Raises:
            RowError: If the vendor does not take what it holds, or its answer, or it is no text.

            UnsupportedAnswerError: If the vendor takes no such answer as the prompt declares.
        """
        try:
            return self._bodies.of(said)
        except ExportError as error:
            raise RowError.of(error.reason) from None
        except UnsupportedAnswerError as error:
            if self.prompt.options.answer is not None:  # it is so for every row
                raise
            raise RowError.of(str(error)) from None
        except UnicodeEncodeError:
            raise RowError.of(_HALF) from None

    def _column(self, said: Said) -> Any:
        if self.to != MESSAGES:
            return bytes(self.body(said)).decode()
        found = [{"role": "user", "content": said}] if isinstance(said, str) else _messages(said)
        try:
            msgspec.json.encode(found)
        except UnicodeEncodeError:
            raise RowError.of(_HALF) from None
        return found


def _messages(workflow: Workflow) -> list[Any]:
    try:
        found = openai_chat(workflow_of(workflow.messages, workflow.system), system_role="system")
    except ExportError as error:
        raise RowError.of(error.reason) from None
    if all(type(message["content"]) is str for message in found):
        return found
    msg = "messages are text alone, and it holds more: write to='openai-chat', or another vendor"
    raise RowError.of(msg)


def _refused(error: BaseException) -> RowError:
    """What is said of a row for which the prompt has raised *error*."""
    if isinstance(error, ArgumentsError):
        return RowError(error.errors)
    with suppress(Exception):  # an author's class may be unable to show itself
        if isinstance(error, PromptError | ResultError):
            return RowError.of(str(error))
        return RowError.of(f"the prompt raised {type(error).__name__}: {error}")
    return RowError.of(f"the prompt raised {type(error).__name__}")
