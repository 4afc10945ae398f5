"""Files that become content: the author's own, and those in one folder that clients can request by path."""

import os
import sys
from contextvars import ContextVar
from pathlib import Path, PurePosixPath, PureWindowsPath
from threading import Event
from typing import Final

from promptkit.errors.exceptions import MediaError, shortened
from promptkit.files.reading import NotRegularError, TooLargeError, read_confined_file, read_named_file
from promptkit.language.media_checks import MAX_AUDIO_BYTES, too_large_message

#: Limit of a client's path in characters. Common systems do not open longer ones.
MAX_PATH_LENGTH: Final = 4096

#: Default limit of a file in bytes.
MAX_FILE_BYTES: Final = MAX_AUDIO_BYTES

#: Set while a server runs: cached text files are not checked until the server marks them as stale.
reads_once: Final = Event()

#: Collects the files that a module reads while the loader imports it.
files_read: Final[ContextVar[list[Path] | None]] = ContextVar("files_read", default=None)


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
    Return a URI without paths of the machine: ``recipe:///`` and the path in a folder, or only the name.

    Args:
        file:
            The absolute path of a file, which need not exist.

        *folders:
            Absolute paths of folders. The URI is relative to the first one that contains the file.
    """
    from urllib.parse import quote  # imported on first use

    # Links are not resolved, because the author chose their names.
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
        raise MediaError(_too_large(path, error.size, limit)) from None


def note_read(path: Path) -> None:
    """Record that the module being imported depends on a file."""
    if (paths := files_read.get()) is not None:
        paths.append(path)


def confine(path: str | Path, root: Path) -> Path:
    """
    Resolve an untrusted *path* to a file below *root*.

    Symbolic links are followed, but must not lead out of *root*. Hard links are allowed: a user
    who can create one in *root* could also copy the file there.

    Raises:
        MediaError: If *path* is absolute, contains ``..``, a drive, a NUL byte or a URL
            scheme, is too long, leads out of *root*, or is not a regular file.
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
        raise MediaError(_no_file(text, root)) from None
    if not inside:
        msg = f"{shortened(text)!r} leads out of {root.name!r}"
        raise MediaError(msg)
    note_read(file)  # also if it is missing: the author may create it later
    if not exists:
        raise MediaError(_no_file(text, root))
    return file


def _no_file(text: str, root: Path) -> str:
    return f"there is no file {shortened(text)!r} in {root.name!r}"


def read_below(path: str | Path, root: str | Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """
    Return the bytes of a file below *root*; *path* can come from an argument.

    Args:
        path:
            A relative path without ``..`` and without a drive. Links must not lead out of *root*.

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
    try:
        return read_confined_file(root.resolve(), file, limit)
    except TooLargeError as error:
        raise MediaError(_too_large(path, error.size, limit)) from None
    except NotRegularError:
        raise MediaError(_no_file(str(path), root)) from None
    except OSError as error:
        msg = f"{shortened(str(path))!r} cannot be read: {error.strerror}"
        raise MediaError(msg) from error


def _too_large(path: str | Path, size: int, limit: int) -> str:
    return f"{shortened(str(path))!r}: {too_large_message(size, limit)}"
