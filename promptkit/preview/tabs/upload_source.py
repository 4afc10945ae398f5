"""Python source for uploads: the expression that reads the files beside a test."""

from typing import Any

from promptkit.preview.tabs.python_source import Source, text_source
from promptkit.preview.uploads import Upload

__all__ = ["data_sources", "upload_source"]


def upload_source(source: Source, value: Any, upload: Upload | None) -> str:
    """
    Return the expression that makes a value of an upload; any other one is written as it is.

    Args:
        source:
            Collects imports.

        value:
            The value.

        upload:
            What it was read from; None if from none.

    Raises:
        UnwritableError: If there is no expression that is sure to make it.
    """
    files = () if upload is None else upload.files
    if upload is None or not files:
        return source.of(value)
    if type(value) is bytes and len(files) == 1:
        return data_sources(source, upload)[0]
    if type(value) is list and len(value) == len(files) and all(type(one) is bytes for one in value):
        return f"[{', '.join(data_sources(source, upload))}]"
    if value == upload.value and len(files) == 1:
        return f'{_path(source, files[0])}.read_text(encoding="utf-8")'
    return source.of(value)


def data_sources(source: Source, upload: Upload) -> list[str]:
    """
    Return an expression for the bytes of each file.

    Args:
        source:
            Collects imports.

        upload:
            What was read from the files.
    """
    return [f"{_path(source, name)}.read_bytes()" for name in upload.files]


def _path(source: Source, name: str) -> str:
    source.add("pathlib", "import pathlib")
    return f"pathlib.Path(__file__).with_name({text_source(name)})"
