"""inspect_ai: prompts as the samples of a data set, and renderings as messages."""

from collections.abc import Mapping
from typing import Any, Final

from promptkit.batch.columns import RowError
from promptkit.batch.dataframes import columns_of, rows_of, to_supported_table
from promptkit.batch.renderer import Renderer
from promptkit.declarations.prompts import Prompt
from promptkit.exports.vendor_messages import ExportError, File, Part, Vendor, turns_of
from promptkit.language.media import IMAGE_TYPES
from promptkit.language.messages import Workflow
from promptkit.language.turns import user

__all__ = ["messages", "samples"]

_AUDIO: Final = {"audio/wav": "wav", "audio/mpeg": "mp3"}


def samples(  # noqa: PLR0913 (each is an option, and most are options of `Renderer`)
    prompt: Prompt[..., Any],
    rows: Any,
    *,
    target: str | None = None,
    key: str | None = None,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
    lossy: bool = False,
) -> list[Any]:
    """
    Return a sample for each row of a table: the rendered prompt, and the data that a scorer needs.

    Columns are matched to parameters by name, as in `promptkit.batch.Renderer`. The ``metadata`` of each
    sample is its row.

    Args:
        prompt:
            The prompt.

        rows:
            A list of mappings, a pyarrow table, or a Polars or pandas data frame.

        target:
            The name of the column that contains the correct answer.

        key:
            The name of the column that contains the ``id`` of each sample.

        columns:
            A mapping of column names to parameter names, for columns whose names differ from their
            parameter's.

        values:
            Values that are the same for every row, keyed by parameter name, in the form that clients send.

        lossy:
            Whether to replace content that inspect_ai does not support with a text description.

    Returns:
        The samples, which you can pass to ``MemoryDataset(...)`` or ``Task(dataset=...)``.

    Raises:
        RowError: If a row is invalid. The message contains the number of the first invalid row, and the
            reason.

        ColumnError: If the key column or the column for a required parameter is missing, or if a column name
            is probably misspelt.

        KeyError: If a row does not have the column *target* or *key*.

        ModuleNotFoundError: If inspect_ai is not installed.

    See Also:
        https://inspect.aisi.org.uk/datasets.html
    """
    from inspect_ai.dataset import Sample

    renderer = Renderer(prompt, columns=columns or {}, values=values or {}, key=key)
    table, samples = to_supported_table(rows), []
    if (names := columns_of(table)) is not None:
        renderer.matched.check(names)
    for number, row in enumerate(rows_of(table, names or ()), 1):
        try:
            rendering = renderer.render_row(*renderer.matched.extract_arguments(row))
            input_messages = messages(
                user(rendering) if isinstance(rendering, str) else rendering, lossy=lossy
            )
        except (RowError, ExportError) as error:
            reason = error.reason if isinstance(error, ExportError) else error
            msg = f"row {number}: {reason}"
            raise RowError.of(msg) from None
        sample = Sample(
            input=input_messages,
            target="" if target is None else row[target],
            id=None if key is None else row[key],
            metadata=dict(row),
        )
        samples.append(sample)
    return samples


def messages(workflow: Workflow, *, lossy: bool = False) -> list[Any]:
    """
    Convert a rendering to the messages of a sample.

    Args:
        workflow:
            The rendering of a prompt.

        lossy:
            Whether to replace content that inspect_ai does not support with a text description.

    Returns:
        A ``ChatMessageSystem`` for the system part, if there is one, and a ``ChatMessageUser`` or a
        ``ChatMessageAssistant`` for each turn. Consecutive messages with the same role form one turn.

    Raises:
        ExportError: If the rendering has content that inspect_ai does not support, and *lossy* is False.

        ModuleNotFoundError: If inspect_ai is not installed.

    See Also:
        https://inspect.aisi.org.uk/reference/inspect_ai.model.html#messages
    """
    from inspect_ai import model

    classes = {
        "system": model.ChatMessageSystem,
        "user": model.ChatMessageUser,
        "assistant": model.ChatMessageAssistant,
    }
    turns = turns_of(workflow, _INSPECT, lossy=lossy, has_system=True)
    return [classes[turn.role](content=turn.content) for turn in turns]


def _image_part(url: str) -> Part:
    return {"type": "image", "image": url}


def _audio_part(file: File) -> Part:
    return {"type": "audio", "audio": file.data_url, "format": _AUDIO[file.mime_type]}


_INSPECT: Final = Vendor(
    "inspect_ai",
    lambda text: {"type": "text", "text": text},
    request="messages",
    files={
        **dict.fromkeys(IMAGE_TYPES, lambda file: _image_part(file.data_url)),
        **dict.fromkeys(_AUDIO, _audio_part),
        "application/pdf": lambda file: {"type": "document", "document": file.data_url},
    },
    links=dict.fromkeys(IMAGE_TYPES, _image_part),
)
