"""Text files with placeholders, cached until they change."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from promptkit.errors.exceptions import MediaError, shortened
from promptkit.files.reading import Stamp, file_stamp
from promptkit.language import files
from promptkit.language.placeholders import TextWithPlaceholders

#: YAML front matter of Markdown, which is not for the model. A block between two lines of hyphens is front
#: matter only if its first line, after blank lines and comments, is a property.
_PROPERTY: Final = r"[\"']?[^\W\d][\w .-]*[\"']?[ \t]*:.*\n"
_FRONT_MATTER: Final = re.compile(
    rf"\A---[ \t]*\n(?:(?:[ \t]*(?:#.*)?\n)*{_PROPERTY}(?:{_PROPERTY}|(?:[ \t#-].*|)\n)*?)?---[ \t]*(?:\n|\Z)"
)

#: Limit of the cache, because a path can be composed from an argument.
_MAX_FILES: Final = 1_000


@attrs.define
class _CachedFile:
    """The text of a file, and its parsed placeholders for each set of names that it was filled with."""

    path: str
    stamp: Stamp | None
    text: str
    by_names: dict[tuple[str, ...], TextWithPlaceholders] = attrs.field(factory=dict)
    is_current: bool = True

    def is_unchanged(self) -> bool:
        """Return whether the file has not changed since it was read."""
        self.is_current = file_stamp(self.path) == self.stamp
        return self.is_current


#: The cached files, by the recipe that reads them and the path in its code.
_CACHE: Final[dict[tuple[str | None, str], _CachedFile]] = {}


def filled_file(recipe: str | None, path: str, texts: Mapping[str, str | None]) -> str:
    """
    Return the content of a text file with its placeholders filled.

    Args:
        recipe:
            The file of the calling code; None for code without a file.

        path:
            The text file, below the folder of the recipe.

        texts:
            The texts of the placeholders.

    Raises:
        MediaError: If *path* is not a file below that folder, or the file is not UTF-8.

        ValueError: If a text has no placeholder.
    """
    key = recipe, path
    cached = _CACHE.get(key)
    if cached is None or not ((cached.is_current and files.reads_once.is_set()) or cached.is_unchanged()):
        if len(_CACHE) >= _MAX_FILES:
            _CACHE.clear()
        cached = _CACHE[key] = _read(files.folder_of(recipe), path)
    if files.files_read.get() is not None:  # the module being imported depends on it
        files.note_read(Path(cached.path))
    names = tuple(texts)
    if (parsed := cached.by_names.get(names)) is None:
        parsed = cached.by_names[names] = TextWithPlaceholders.parse(cached.text, names, path)
    return parsed.filled(texts)


def filled_file_below(root: Path, path: str | Path, texts: Mapping[str, str | None]) -> str:
    """Return the filled content of a text file below *root*; *path* can come from an argument."""
    text = text_below(root, path)
    return TextWithPlaceholders.parse(text, tuple(texts), shortened(str(path))).filled(texts)


def text_below(root: Path, path: str | Path) -> str:
    """Return the text of a file below *root* without front matter. Raises `MediaError`; see `filled_file`."""
    return _read(root, path).text


def mark_stale() -> None:
    """Mark all cached files as stale, so that each is checked for changes on its next use."""
    for cached in tuple(_CACHE.values()):
        cached.is_current = False


def cached_paths() -> set[str]:
    """Return the paths of the cached files."""
    return {cached.path for cached in tuple(_CACHE.values())}


def _read(root: Path, path: str | Path) -> _CachedFile:
    file = files.confine(path, root)
    stamp = file_stamp(str(file))  # before reading, so that a concurrent change is detected on next use
    data = files.read_confined(file, root, path)
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        msg = f"{shortened(str(path))!r} is not UTF-8 at byte {error.start + 1:,}: save it as UTF-8"
        raise MediaError(msg) from None
    body = _FRONT_MATTER.sub("", text)
    return _CachedFile(str(file), stamp, re.sub(r"\A(?:[ \t]*\n)+", "", body.rstrip()))
