"""
Reading of files that become content: authors' files, and files in a folder that clients can request by path.

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

#: Length limit for a client's path, in characters. Common operating systems cannot open longer paths.
MAX_PATH_LENGTH: Final = 4096

#: Default size limit for a file, in bytes.
MAX_FILE_BYTES: Final = 20 * 1024 * 1024

#: Set while a server is running, so that a cached text file is checked for changes only after the server has
#: marked it as stale.
trusts_cache: Final = Event()

#: A list of the files that a module has read, set while the loader imports the module.
files_read: Final[ContextVar[list[Path] | None]] = ContextVar("files_read", default=None)


class FilledTextFile(Struct, frozen=True):
    """
    A text file that a recipe has read, and whose placeholders it has filled.

    Args:
        recipe:
            The file of the calling code, and the line of the call.

        path:
            The path of the text file, as given in the call.

        text:
            The text without front matter.

        first_line:
            The number of the line on which the text starts in the file.

        names:
            The names of the placeholders for which the call provides values.
    """

    recipe: tuple[str, int]
    path: str
    text: str
    first_line: int
    names: tuple[str, ...]


#: A list of the text files that prompts have read, set while a command checks the renderings of prompts.
filled_text_files: Final[ContextVar[list[FilledTextFile] | None]] = ContextVar(
    "filled_text_files", default=None
)


@contextmanager
def collecting(variable: ContextVar[list[T] | None], collected: list[T]) -> Iterator[None]:
    """
    Within the ``with`` block, set *variable* to the list *collected*, to which items are then appended.
    """
    token = variable.set(collected)
    try:
        yield
    finally:
        variable.reset(token)


#: Maximum number of cached files. There can be many, because a path can depend on an argument.
_MAX_TEXTS: Final = 1_000


def source_folder(depth: int) -> Path:
    """
    Return the folder of the code that runs *depth* frames above the caller.

    For code that is not in a file (a console, ``exec``), this is the current folder.
    """
    return folder_of(source_file(depth + 1))


def source_file(depth: int) -> str | None:
    """Return the file of the code that runs *depth* frames above the caller; None if it is not in a file."""
    file: str | None = sys._getframe(depth + 1).f_globals.get("__file__")  # noqa: SLF001 (`inspect` is slower)
    return file


def folder_of(file: str | None) -> Path:
    """Return the folder of a source file. For None, return the current folder."""
    return Path(file).resolve().parent if file else Path.cwd()


def package_folder(depth: int) -> Path:
    """
    Return the folder of the outermost package that contains the code *depth* frames above the caller.

    For a recipe, this is the served folder, unless that folder is inside a package. For code without a
    package, it is the folder of the code's file.
    """
    own = source_folder(depth + 1)
    package = sys._getframe(depth + 1).f_globals.get("__package__") or ""  # noqa: SLF001 (as above)
    outermost = sys.modules.get(package.partition(".")[0])
    folders = (Path(folder).resolve() for folder in getattr(outermost, "__path__", ()))
    return next((folder for folder in folders if own.is_relative_to(folder)), own)


def recipe_uri(file: str | Path, *folders: Path) -> str:
    """
    Return a ``recipe:///`` URI for a file that does not reveal where the file's folder is.

    Args:
        file:
            The absolute path of a file, which need not exist.

        *folders:
            The absolute paths of folders. The URI contains the file's path relative to the first folder that
            contains the file. If none does, it contains only the file's name.
    """
    from urllib.parse import quote  # imported on first use

    # Symbolic links are not resolved: their names, not those of their targets, are what the author chose.
    path, *parents = (Path(os.path.normpath(item)) for item in (file, *folders))
    inside = (path.relative_to(parent) for parent in parents if path.is_relative_to(parent))
    return f"recipe:///{quote(os.fsencode(next(inside, Path(path.name)).as_posix()))}"


def read_authors_file(path: Path, limit: int) -> bytes:
    """
    Return the content of a file whose path comes from the author, not from a client.

    Raises:
        OSError: If the file cannot be read.

        MediaError: If the file is larger than *limit* bytes.
    """
    record_read(path.resolve())
    try:
        return read_named_file(path, limit)
    except TooLargeError as error:
        raise MediaError(_file_too_large_message(path, error.size, limit)) from None


def record_read(path: Path) -> None:
    """Record that the module that is being imported, if any, depends on a file."""
    if (paths := files_read.get()) is not None:
        paths.append(path)


def confine(path: str | Path, root: Path) -> Path:
    """
    Resolve an untrusted *path* to a file below *root*.

    Symbolic links are followed but must not lead outside *root*. Hard links are allowed, because a user who
    can create one in *root* could also copy the file there.

    Raises:
        MediaError: If *path* is absolute, contains ``..``, a colon or a NUL byte, is too long, is outside
            *root*, or is not a regular file.
    """
    text = str(path)
    if len(text) > MAX_PATH_LENGTH:  # resolving a very deep path takes minutes
        msg = (
            f"{shortened(text)!r} is {len(text):,} characters long: a path can have at most "
            f"{MAX_PATH_LENGTH:,}"
        )
        raise MediaError(msg)
    # The path must be safe by the rules of both POSIX and Windows, so that a recipe is equally safe on both.
    pure = (PurePosixPath(text), PureWindowsPath(text))
    if "\0" in text or ":" in text or any(".." in p.parts or p.anchor for p in pure):
        msg = (
            f"{shortened(text)!r} is not a plain relative path below {root.name!r}: it must not start with a "
            "slash or contain '..' or ':'"
        )
        raise MediaError(msg)
    root = root.resolve()
    try:
        file = (root / text).resolve()
        names_folder = text.rpartition("/")[2] in ("", ".")
        inside, exists = file.is_relative_to(root), file.is_file() and not names_folder
    except (OSError, RuntimeError, ValueError):  # the name is too long, or has a lone surrogate; a link cycle
        raise MediaError(_no_file_message(text, root)) from None
    if not inside:
        msg = f"{shortened(text)!r} is outside {root.name!r}"
        raise MediaError(msg)
    record_read(file)  # even if it is missing, because the author might create it later
    if not exists:
        raise MediaError(_no_file_message(text, root))
    return file


def _no_file_message(text: str, root: Path) -> str:
    return f"there is no file {shortened(text)!r} in {root.name!r}"


def read_below(path: str | Path, root: str | Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """
    Return the content of a file below *root* as bytes. *path* can come from an argument.

    Args:
        path:
            The path of the file, relative to *root*, without ``..`` or a drive. Symbolic links must not lead
            outside *root*.

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
    Return the content of *file*, which is the result of `confine` for *path* and *root*.

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
    """Return the error message for content that is larger than *limit*, in bytes."""
    return f"the size is {size:,} bytes, but the limit is {limit:,} bytes: reduce the size first"


def _file_too_large_message(path: str | Path, size: int, limit: int) -> str:
    return f"{shortened(str(path))!r}: {too_large_message(size, limit)}"


@attrs.define
class _CachedText:
    """The text of a file, and its parsed forms, keyed by the placeholder names that they accept."""

    path: str
    stamp: Stamp | None
    text: str
    first_line: int
    by_names: dict[tuple[str, ...], TextWithPlaceholders] = attrs.field(factory=dict)
    is_current: bool = True

    def is_unchanged(self) -> bool:
        """Check and return whether the file is unchanged since it was read, and store the result."""
        self.is_current = file_stamp(self.path) == self.stamp
        return self.is_current


#: The cached files, keyed by the recipe that reads the file and the path as given in the recipe.
_TEXTS: Final[dict[tuple[str | None, str], _CachedText]] = {}


def parse_file(recipe: str | None, path: str, names: tuple[str, ...]) -> TextWithPlaceholders:
    """
    Return the parsed content of a text file.

    Args:
        recipe:
            The file of the calling code; None if the code is not in a file.

        path:
            The path of the text file, relative to the folder of the recipe.

        names:
            The names of the placeholders to fill.

    Raises:
        MediaError: If *path* is not a file below the recipe's folder, or if the file cannot be read, is
            larger than 20 MiB, or is not UTF-8.

        ValueError: If a name is not in the text, or a mark is misplaced.
    """
    key = recipe, path
    cached = _TEXTS.get(key)
    if cached is None or not ((cached.is_current and trusts_cache.is_set()) or cached.is_unchanged()):
        if len(_TEXTS) >= _MAX_TEXTS:
            _TEXTS.clear()
        cached = _TEXTS[key] = _read_text(folder_of(recipe), path)
    if files_read.get() is not None:  # the module that is being imported depends on the file
        record_read(Path(cached.path))
    if (parsed := cached.by_names.get(names)) is None:
        parsed = TextWithPlaceholders.parse(cached.text, names, path, cached.first_line)
        cached.by_names[names] = parsed
    _note_text(path, cached, names)
    return parsed


def parse_file_below(root: Path, path: str | Path, names: tuple[str, ...]) -> TextWithPlaceholders:
    """Return the parsed content of a text file below *root*. *path* can come from an argument."""
    file, label = _read_text(root, path), shortened(str(path))
    parsed = TextWithPlaceholders.parse(file.text, names, label, file.first_line)
    _note_text(label, file, names)
    return parsed


def _note_text(path: str, file: "_CachedText", names: tuple[str, ...]) -> None:
    """If `filled_text_files` is set, record that the code three frames above fills the text of *file*."""
    if (texts := filled_text_files.get()) is not None:
        frame = sys._getframe(3)  # noqa: SLF001 (as above)
        recipe = frame.f_globals.get("__file__") or "", frame.f_lineno
        texts.append(FilledTextFile(recipe, path, file.text, file.first_line, names))


def text_below(root: Path, path: str | Path) -> tuple[str, int]:
    """
    Return the text of a file below *root* without front matter, and the number of the text's first line.

    Raises:
        MediaError: See `parse_file`.
    """
    file = _read_text(root, path)
    return file.text, file.first_line


def mark_texts_stale() -> None:
    """Mark all cached files as stale, so that each is checked for changes when it is next used."""
    for cached in tuple(_TEXTS.values()):
        cached.is_current = False


def cached_text_paths() -> set[str]:
    """Return the paths of the cached files."""
    return {cached.path for cached in tuple(_TEXTS.values())}


def _read_text(root: Path, path: str | Path) -> _CachedText:
    file = confine(path, root)
    stamp = file_stamp(str(file))  # before reading, so that a concurrent change is detected on the next use
    text = decoded_text(read_confined(file, root, path), str(path))
    _, body, first_line = split_front_matter(text)
    return _CachedText(str(file), stamp, body, first_line)


def decoded_text(data: bytes, path: str) -> str:
    """Decode the content of a file, converting line endings to LF. Raises MediaError if it is not UTF-8."""
    try:
        return LINE_END.sub("\n", data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        msg = f"{shortened(path)!r} is not valid UTF-8 at byte {error.start + 1:,}: save it as UTF-8"
        raise MediaError(msg) from None


#: The first line of a property: a top-level key. A possessive quantifier keeps the time linear.
_PROPERTY: Final = r"[\"']?[^\W\d][\w .-]*+[\"']?[ \t]*:.*\n"

_BLANK_OR_COMMENT: Final = r"[ \t]*(?:#.*)?\n"

#: The lines of front matter. A block between two lines of hyphens is front matter only if it is empty or its
#: first line, after blank lines and comments, is a property.
_LINES: Final = rf"(?:(?:{_BLANK_OR_COMMENT})*{_PROPERTY}(?:{_PROPERTY}|(?:[ \t#-].*|)\n)*?)?"
_FRONT_MATTER: Final = re.compile(rf"\A---[ \t]*\n({_LINES})---[ \t]*(?:\n|\Z)")

_BLANK_LINES: Final = re.compile(r"\A(?:[ \t]*\n)+")


def split_front_matter(text: str) -> tuple[str, str, int]:
    """
    Split the text of a Markdown file, whose line endings must be LF, into front matter and body.

    Returns:
        The front matter between the lines of hyphens, or ``""``; the body, without blank lines at either end;
        and the number of the body's first line in the file.
    """
    match = _FRONT_MATTER.match(text)
    rest = text[match.end() :] if match else text
    body = _BLANK_LINES.sub("", rest)
    first_line = 1 + text.count("\n") - body.count("\n")
    end = body.find("\n", len(body.rstrip()))
    return match[1] if match else "", body if end < 0 else body[:end], first_line
