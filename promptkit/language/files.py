"""
Files that become content: the author's files, and files in one folder that clients can request by path.

Text files with placeholders are cached until they change. Their front matter is removed.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePosixPath, PureWindowsPath
from threading import Event
from typing import Final, TypeVar

import attrs
from msgspec import Struct

from promptkit.errors.exceptions import MediaError, shortened
from promptkit.files.folder import Folder
from promptkit.files.reading import (
    NotRegularError,
    Stamp,
    TooLargeError,
    file_stamp,
    read_named_file,
)
from promptkit.language.placeholders import LINE_END, TextWithPlaceholders

T = TypeVar("T")

#: Length limit of a client's path, in characters. Common systems do not open longer paths.
MAX_PATH_LENGTH: Final = 4096

#: Default size limit of a file, in bytes.
MAX_FILE_BYTES: Final = 20 * 1024 * 1024

#: Set while a server runs, so that cached text files are not checked until the server marks them as stale.
reads_once: Final = Event()

#: Collects the files that a module reads while the loader imports it.
files_read: Final[ContextVar[list[Path] | None]] = ContextVar("files_read", default=None)


class TextRead(Struct, frozen=True):
    """
    A text file that a recipe has read and filled.

    Args:
        recipe:
            The file of the calling code, and the line of the call.

        path:
            The path of the text file, as written in the recipe.

        text:
            The text without front matter.

        first_line:
            The line of the file on which the text starts.

        names:
            The names of the values for the placeholders.
    """

    recipe: tuple[str, int]
    path: str
    text: str
    first_line: int
    names: tuple[str, ...]


#: Collects the text files that prompts read while a command checks their renderings.
texts_read: Final[ContextVar[list[TextRead] | None]] = ContextVar("texts_read", default=None)


@contextmanager
def collecting(variable: ContextVar[list[T] | None], collected: list[T]) -> Iterator[None]:
    """
    Set *variable* to the list *collected* within the ``with`` block, so that items are appended to that list.
    """
    token = variable.set(collected)
    try:
        yield
    finally:
        variable.reset(token)


#: Maximum number of cached files. A path can be composed from an argument, so there can be many.
_MAX_TEXTS: Final = 1_000


def source_folder(depth: int) -> Path:
    """
    Return the folder of the code that runs *depth* frames above the caller.

    For code without a file (a console, ``exec``), this is the current folder.
    """
    return folder_of(source_file(depth + 1))


def source_file(depth: int) -> str | None:
    """Return the file of the code *depth* frames above the caller; None for code without a file."""
    file: str | None = sys._getframe(depth + 1).f_globals.get("__file__")  # noqa: SLF001 (`inspect` is slower)
    return file


def folder_of(file: str | None) -> Path:
    """Return the folder of a source file; the current folder for None."""
    return Path(file).resolve().parent if file else Path.cwd()


def package_folder(depth: int) -> Path:
    """
    Return the folder of the outermost package of the code that runs *depth* frames above the caller.

    For a recipe, this is the served folder, unless that folder is inside a package. For code without a
    package, it is the folder of the code.
    """
    own = source_folder(depth + 1)
    package = sys._getframe(depth + 1).f_globals.get("__package__") or ""  # noqa: SLF001 (as above)
    outermost = sys.modules.get(package.partition(".")[0])
    folders = (Path(folder).resolve() for folder in getattr(outermost, "__path__", ()))
    return next((folder for folder in folders if own.is_relative_to(folder)), own)


def recipe_uri(file: str | Path, *folders: Path) -> str:
    """
    Return a URI that hides where folders are: ``recipe:///`` and the path in a folder, or the file's name.

    Args:
        file:
            The absolute path of a file, which need not exist.

        *folders:
            Absolute paths of folders. The URI is relative to the first one that contains the file.
    """
    from urllib.parse import quote  # imported on first use

    # Symbolic links are not resolved, because the author chose their names.
    path, *parents = (Path(os.path.normpath(item)) for item in (file, *folders))
    inside = (path.relative_to(parent) for parent in parents if path.is_relative_to(parent))
    return f"recipe:///{quote(os.fsencode(next(inside, Path(path.name)).as_posix()))}"


def read_authors_file(path: Path, limit: int) -> bytes:
    """
    Return the bytes of a file whose path comes from the author, not from a client.

    Raises:
        OSError: If the file cannot be read.

        MediaError: If the file is larger than *limit* bytes.
    """
    note_read(path.resolve())
    try:
        return read_named_file(path, limit)
    except TooLargeError as error:
        raise MediaError(_file_too_large_message(path, error.size, limit)) from None


def note_read(path: Path) -> None:
    """Record that the module being imported depends on a file."""
    if (paths := files_read.get()) is not None:
        paths.append(path)


def confine(path: str | Path, root: Path) -> Path:
    """
    Resolve an untrusted *path* to a file below *root*.

    Symbolic links are followed, but must not lead outside *root*. Hard links are allowed: a user
    who can create one in *root* could also copy the file there.

    Raises:
        MediaError: If *path* is absolute, contains ``..``, a drive, a NUL byte or a URL
            scheme, is too long, is outside *root*, or is not a regular file.
    """
    text = str(path)
    if len(text) > MAX_PATH_LENGTH:  # resolving a very deep path takes minutes
        msg = f"{shortened(text)!r} has {len(text):,} characters: a path has at most {MAX_PATH_LENGTH:,}"
        raise MediaError(msg)
    # Checked by the rules of both POSIX and Windows, so that a recipe is equally safe on both.
    pure = (PurePosixPath(text), PureWindowsPath(text))
    if "\0" in text or ":" in text or any(".." in p.parts or p.anchor for p in pure):
        msg = f"{shortened(text)!r} is not a plain relative path below {root.name!r}"
        raise MediaError(msg)
    root = root.resolve()
    try:
        file = (root / text).resolve()
        names_folder = text.rpartition("/")[2] in ("", ".")
        inside, exists = file.is_relative_to(root), file.is_file() and not names_folder
    except (OSError, RuntimeError, ValueError):  # a name that is too long, a cycle of links, a lone surrogate
        raise MediaError(_no_file_message(text, root)) from None
    if not inside:
        msg = f"{shortened(text)!r} is outside {root.name!r}"
        raise MediaError(msg)
    note_read(file)  # even if it is missing: the author may create it later
    if not exists:
        raise MediaError(_no_file_message(text, root))
    return file


def _no_file_message(text: str, root: Path) -> str:
    return f"there is no file {shortened(text)!r} in {root.name!r}"


def read_below(path: str | Path, root: str | Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """
    Return the bytes of a file below *root*; *path* can come from an argument.

    Args:
        path:
            A relative path without ``..`` and without a drive. Symbolic links must not lead outside *root*.

        root:
            The folder that *path* must stay in, relative to the folder of the calling recipe.

        limit:
            The maximum size of the file in bytes; 20 MiB by default.

    Returns:
        The content of the file.

    Raises:
        MediaError: If *path* leaves *root* or is not a regular file there, or if the file cannot be read or
            is larger than *limit*. It is a `PromptError`: the client sees its message.
    """
    root = source_folder(1) / root
    return read_confined(confine(path, root), root, path, limit)


def read_confined(file: Path, root: Path, path: str | Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """
    Return the bytes of *file*, the result of `confine` for *root* and *path*.

    Raises:
        MediaError: See `read_below`.
    """
    folder = root.resolve()
    try:
        return Folder(folder, is_portable=False).read(file.relative_to(folder).as_posix(), limit)
    except TooLargeError as error:
        raise MediaError(_file_too_large_message(path, error.size, limit)) from None
    except NotRegularError:
        raise MediaError(_no_file_message(str(path), root)) from None
    except OSError as error:
        msg = f"{shortened(str(path))!r} cannot be read: {error.strerror}"
        raise MediaError(msg) from error


def too_large_message(size: int, limit: int) -> str:
    """Return the error message for *size* bytes that exceed *limit*."""
    return f"{size:,} B exceeds the {limit:,} B that clients accept: reduce its size first"


def _file_too_large_message(path: str | Path, size: int, limit: int) -> str:
    return f"{shortened(str(path))!r}: {too_large_message(size, limit)}"


@attrs.define
class _CachedText:
    """The text of a file, and its parsed form for each set of names that it was filled with."""

    path: str
    stamp: Stamp | None
    text: str
    first_line: int
    by_names: dict[tuple[str, ...], TextWithPlaceholders] = attrs.field(factory=dict)
    is_current: bool = True

    def is_unchanged(self) -> bool:
        """Return whether the file has not changed since it was read."""
        self.is_current = file_stamp(self.path) == self.stamp
        return self.is_current


#: The cached files, by the recipe that reads them and the path in its code.
_TEXTS: Final[dict[tuple[str | None, str], _CachedText]] = {}


def parsed_file(recipe: str | None, path: str, names: tuple[str, ...]) -> TextWithPlaceholders:
    """
    Return the parsed content of a text file.

    Args:
        recipe:
            The file of the calling code; None for code without a file.

        path:
            The text file, below the folder of the recipe.

        names:
            The names of the values for its placeholders.

    Raises:
        MediaError: If *path* is not a file below that folder, or the file is not UTF-8.

        ValueError: If a name is not in the text, or a mark is misplaced.
    """
    key = recipe, path
    cached = _TEXTS.get(key)
    if cached is None or not ((cached.is_current and reads_once.is_set()) or cached.is_unchanged()):
        if len(_TEXTS) >= _MAX_TEXTS:
            _TEXTS.clear()
        cached = _TEXTS[key] = _read_text(folder_of(recipe), path)
    if files_read.get() is not None:  # the module being imported depends on it
        note_read(Path(cached.path))
    if (parsed := cached.by_names.get(names)) is None:
        parsed = TextWithPlaceholders.parse(cached.text, names, path, cached.first_line)
        cached.by_names[names] = parsed
    _note_text(path, cached, names)
    return parsed


def parsed_file_below(root: Path, path: str | Path, names: tuple[str, ...]) -> TextWithPlaceholders:
    """Return the parsed content of a text file below *root*; *path* can come from an argument."""
    file, label = _read_text(root, path), shortened(str(path))
    parsed = TextWithPlaceholders.parse(file.text, names, label, file.first_line)
    _note_text(label, file, names)
    return parsed


def _note_text(path: str, file: "_CachedText", names: tuple[str, ...]) -> None:
    """Record that the code three frames above fills the text of *file*, if `texts_read` is set."""
    if (texts := texts_read.get()) is not None:
        frame = sys._getframe(3)  # noqa: SLF001 (as above)
        recipe = frame.f_globals.get("__file__") or "", frame.f_lineno
        texts.append(TextRead(recipe, path, file.text, file.first_line, names))


def text_below(root: Path, path: str | Path) -> tuple[str, int]:
    """
    Return the text of a file below *root* without front matter, and the number of its first line.

    Raises:
        MediaError: See `parsed_file`.
    """
    file = _read_text(root, path)
    return file.text, file.first_line


def mark_texts_stale() -> None:
    """Mark all cached files as stale, so that each is checked for changes on its next use."""
    for cached in tuple(_TEXTS.values()):
        cached.is_current = False


def cached_text_paths() -> set[str]:
    """Return the paths of the cached files."""
    return {cached.path for cached in tuple(_TEXTS.values())}


def _read_text(root: Path, path: str | Path) -> _CachedText:
    file = confine(path, root)
    stamp = file_stamp(str(file))  # before reading, so that a concurrent change is detected on next use
    text = decoded_text(read_confined(file, root, path), str(path))
    _, body, first_line = split_front_matter(text)
    return _CachedText(str(file), stamp, body, first_line)


def decoded_text(data: bytes, path: str) -> str:
    """Return the text of a file with LF line endings. Raises MediaError if it is not UTF-8."""
    try:
        return LINE_END.sub("\n", data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        msg = f"{shortened(path)!r} is not UTF-8 at byte {error.start + 1:,}: save it as UTF-8"
        raise MediaError(msg) from None


#: A line of a top-level key, or its indented or listed values. A possessive quantifier keeps the time linear.
_PROPERTY: Final = r"[\"']?[^\W\d][\w .-]*+[\"']?[ \t]*:.*\n"

_BLANK_OR_COMMENT: Final = r"[ \t]*(?:#.*)?\n"

#: A block between two lines of hyphens is front matter only if its first line, after blank lines and
#: comments, is a property.
_LINES: Final = rf"(?:(?:{_BLANK_OR_COMMENT})*{_PROPERTY}(?:{_PROPERTY}|(?:[ \t#-].*|)\n)*?)?"
_FRONT_MATTER: Final = re.compile(rf"\A---[ \t]*\n({_LINES})---[ \t]*(?:\n|\Z)")

_BLANK_LINES: Final = re.compile(r"\A(?:[ \t]*\n)+")


def split_front_matter(text: str) -> tuple[str, str, int]:
    """
    Split the text of a Markdown file with LF line endings.

    Returns:
        The front matter between the hyphens, or ``""``; the text after it, without blank lines at both ends;
        and the number of that text's first line in the file.
    """
    match = _FRONT_MATTER.match(text)
    rest = text[match.end() :] if match else text
    body = _BLANK_LINES.sub("", rest)
    first_line = 1 + text.count("\n") - body.count("\n")
    end = body.find("\n", len(body.rstrip()))
    return match[1] if match else "", body if end < 0 else body[:end], first_line
