"""Text files beside recipes: read as text with holes, and kept until they change."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from promptkit.errors.exceptions import MediaError, shortened
from promptkit.files.reading import Stamp, file_stamp
from promptkit.language import files
from promptkit.language.placeholders import TextWithPlaceholders

#: Properties in front of Markdown, as many tools write them in YAML: they are not for the model. A block
#: between two lines of hyphens is text if it begins with none, behind blank lines and comments.
_PROPERTY: Final = r"[\"']?[^\W\d][\w .-]*[\"']?[ \t]*:.*\n"
_FRONT_MATTER: Final = re.compile(
    rf"\A---[ \t]*\n(?:(?:[ \t]*(?:#.*)?\n)*{_PROPERTY}(?:{_PROPERTY}|(?:[ \t#-].*|)\n)*?)?---[ \t]*(?:\n|\Z)"
)

#: How many files are kept at most: a path may be made of an argument.
_MOST_KEPT: Final = 1_000


@attrs.define
class _KeptText:
    """A file as it was read, and where its holes are for the names that it was filled with."""

    path: str
    stamp: Stamp | None
    text: str
    by_names: dict[tuple[str, ...], TextWithPlaceholders] = attrs.field(factory=dict)
    is_current: bool = True

    def is_as_read(self) -> bool:
        """Whether the file has not changed."""
        self.is_current = file_stamp(self.path) == self.stamp
        return self.is_current


#: What was read, by the recipe that reads it and the path that stands there.
_KEPT: Final[dict[tuple[str | None, str], _KeptText]] = {}


def filled_file(recipe: str | None, path: str, texts: Mapping[str, str | None]) -> str:
    """
    Return a text file with its holes filled.

    Args:
        recipe:
            The file of the code that asks for it; None if that has none.

        path:
            The text file, below the folder of the recipe.

        texts:
            What is put into its holes.

    Raises:
        MediaError: If it is no file below that folder, or no UTF-8.

        ValueError: If there is no hole for a text.
    """
    key = recipe, path
    kept = _KEPT.get(key)
    if kept is None or not ((kept.is_current and files.reads_once.is_set()) or kept.is_as_read()):
        if len(_KEPT) >= _MOST_KEPT:
            _KEPT.clear()
        kept = _KEPT[key] = _read(files.folder_of(recipe), path)
    if files.files_read.get() is not None:  # a module is imported that depends on it
        files.note_read(Path(kept.path))
    names = tuple(texts)
    if (read := kept.by_names.get(names)) is None:
        read = kept.by_names[names] = TextWithPlaceholders.read(kept.text, names, path)
    return read.filled(texts)


def filled_file_below(root: Path, path: str | Path, texts: Mapping[str, str | None]) -> str:
    """Do the same for a file below *root*, whose *path* may come from an argument."""
    text = text_below(root, path)
    return TextWithPlaceholders.read(text, tuple(texts), shortened(str(path))).filled(texts)


def text_below(root: Path, path: str | Path) -> str:
    """Return a text file below *root* as it stands. Raises `MediaError` as `filled_file` does."""
    return _read(root, path).text


def look_again() -> None:
    """Look at each file when it is needed next: it may have changed."""
    for kept in tuple(_KEPT.values()):
        kept.is_current = False


def kept_paths() -> set[str]:
    """Return the paths of the files that were read."""
    return {kept.path for kept in tuple(_KEPT.values())}


def _read(root: Path, path: str | Path) -> _KeptText:
    found = files.confine(path, root)
    stamp = file_stamp(str(found))  # before it is read: a change meanwhile is seen the next time
    data = files.read_confined(found, root, path)
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        msg = f"{shortened(str(path))!r} is no UTF-8 at byte {error.start + 1:,}: save it as UTF-8"
        raise MediaError(msg) from None
    body = _FRONT_MATTER.sub("", text)
    return _KeptText(str(found), stamp, re.sub(r"\A(?:[ \t]*\n)+", "", body.rstrip()))
