"""inspect_ai: prompts as samples of a data set, and renderings as messages."""

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


def samples(  # noqa: PLR0913 (each is an option, most of them those of `Renderer`)
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

    Columns are matched to parameters by name, as in `promptkit.batch.Renderer`. Each sample has its row as
    ``metadata``.

    Args:
        prompt:
            The prompt.

        rows:
            A list of mappings, a pyarrow table, or a Polars or pandas data frame.

        target:
            The column with the correct answer.

        key:
            The column with the ``id`` of each sample.

        columns:
            Parameters by column, for columns whose names differ.

        values:
            Values by parameter that are the same for all rows, as a client sends them.

        lossy:
            Whether to replace content that inspect_ai does not support with a text description.

    Returns:
        The samples, for ``MemoryDataset(...)`` or ``Task(dataset=...)``.

    Raises:
        RowError: For the first invalid row, with its number and the reason in the message.

        ColumnError: If the key column or a column for a parameter is missing.

        KeyError: If a row lacks the column *target* or *key*.

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
    Return the messages of a sample.

    Args:
        workflow:
            The rendering of a prompt.

        lossy:
            Whether to replace content that inspect_ai does not support with a text description.

    Returns:
        A ``ChatMessageSystem`` for the system part, if there is one, and a ``ChatMessageUser`` or a
        ``ChatMessageAssistant`` per turn. Consecutive messages of the same role form one turn.

    Raises:
        ExportError: If there is content that inspect_ai does not support, unless *lossy*.

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


def _image(url: str) -> Part:
    return {"type": "image", "image": url}


def _audio(file: File) -> Part:
    return {"type": "audio", "audio": file.data_url, "format": _AUDIO[file.mime_type]}


_INSPECT: Final = Vendor(
    "inspect_ai",
    lambda text: {"type": "text", "text": text},
    request="messages",
    files={
        **dict.fromkeys(IMAGE_TYPES, lambda file: _image(file.data_url)),
        **dict.fromkeys(_AUDIO, _audio),
        "application/pdf": lambda file: {"type": "document", "document": file.data_url},
    },
    links=dict.fromkeys(IMAGE_TYPES, _image),
)
