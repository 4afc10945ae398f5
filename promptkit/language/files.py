"""Files that become content: an author's own, and those that a client names in one folder."""

import os
import sys
from contextvars import ContextVar
from pathlib import Path, PurePosixPath, PureWindowsPath
from threading import Event
from typing import Final

from promptkit.errors.exceptions import MediaError, shortened
from promptkit.files.reading import NotRegularError, TooLargeError, read_confined_file, read_named_file
from promptkit.language.media_checks import MAX_AUDIO_BYTES, too_large_message

#: The longest path that a client may send, in characters; no common system opens longer ones.
MAX_PATH_LENGTH: Final = 4096

#: The most that is read of a file unless a limit is given.
MAX_FILE_BYTES: Final = MAX_AUDIO_BYTES

#: Set while a server serves: text files are read once, and again after it says that files have changed.
reads_once: Final = Event()

#: While the loader imports a module, this collects the files that the module reads.
files_read: Final[ContextVar[list[Path] | None]] = ContextVar("files_read", default=None)


def source_folder(depth: int) -> Path:
    """
    Return the folder of the code that runs *depth* frames above the caller.

    Code without a file (a console, ``exec``) is taken to be in the current folder.
    """
    return folder_of(source_file(depth + 1))


def source_file(depth: int) -> str | None:
    """Return the file of the code that runs *depth* frames above the caller; None if it has none."""
    file: str | None = sys._getframe(depth + 1).f_globals.get("__file__")  # noqa: SLF001 (`inspect` is slower)
    return file


def folder_of(file: str | None) -> Path:
    """Return the folder of a file of code."""
    return Path(file).resolve().parent if file else Path.cwd()


def package_folder(depth: int) -> Path:
    """
    Return the folder of the outermost package of the code that runs *depth* frames above the caller.

    For a recipe it is the folder that is served, unless that is in a package itself. Code without a package
    is taken to be in one that is its own folder.
    """
    own = source_folder(depth + 1)
    package = sys._getframe(depth + 1).f_globals.get("__package__") or ""  # noqa: SLF001 (as above)
    outermost = sys.modules.get(package.partition(".")[0])
    places = (Path(place).resolve() for place in getattr(outermost, "__path__", ()))
    return next((place for place in places if own.is_relative_to(place)), own)


def recipe_uri(file: str | Path, *folders: Path) -> str:
    """
    Return a URI that tells nothing of the machine: ``recipe:///`` and the path in a folder, or else the name.

    Args:
        file:
            The absolute path of a file. It need not exist.

        *folders:
            Absolute paths of folders. The first counts that the file is in.
    """
    from urllib.parse import quote  # loaded by the first document

    # Links are not followed: what they are called is the author's word for what they lead to.
    path, *places = (Path(os.path.normpath(one)) for one in (file, *folders))
    inside = (path.relative_to(place) for place in places if path.is_relative_to(place))
    return f"recipe:///{quote(os.fsencode(next(inside, Path(path.name)).as_posix()))}"


def read_authors_file(path: Path, limit: int) -> bytes:
    """
    Return the bytes of a file that the author, not a client, has named.

    Raises:
        OSError: If it cannot be read.

        MediaError: If it has more than *limit* bytes.
    """
    note_read(path.resolve())
    try:
        return read_named_file(path, limit)
    except TooLargeError as error:
        raise MediaError(_too_large(path, error.size, limit)) from None


def note_read(path: Path) -> None:
    """Tell the loader that the module that it imports depends on a file."""
    if (listener := files_read.get()) is not None:
        listener.append(path)


def confine(path: str | Path, root: Path) -> Path:
    """
    Return the file that an untrusted *path* names below *root*.

    Symbolic links are followed, and must not lead out of *root*. Hard links are allowed: anyone
    who can create one in *root* could also copy the file there.

    Raises:
        MediaError: If *path* is absolute, has ``..``, a drive, a NUL byte or a URL's
            scheme, is too long, leads out of *root*, or does not name a regular file.
    """
    text = str(path)
    if len(text) > MAX_PATH_LENGTH:  # resolving a path with very many folders would take minutes
        msg = f"{shortened(text)!r} has {len(text):,} characters: a path has at most {MAX_PATH_LENGTH:,}"
        raise MediaError(msg)
    # By the rules of both POSIX and Windows, so that a recipe is as safe on one as on the other.
    pure = (PurePosixPath(text), PureWindowsPath(text))
    if "\0" in text or ":" in text or any(".." in p.parts or p.anchor for p in pure):
        msg = f"{shortened(text)!r} is not a plain relative path below {root.name!r}"
        raise MediaError(msg)
    root = root.resolve()
    try:
        found = (root / text).resolve()
        names_folder = text.rpartition("/")[2] in ("", ".")
        inside, exists = found.is_relative_to(root), found.is_file() and not names_folder
    except (OSError, RuntimeError, ValueError):  # a name too long, links in a circle, a lone surrogate
        raise MediaError(_no_file(text, root)) from None
    if not inside:
        msg = f"{shortened(text)!r} leads out of {root.name!r}"
        raise MediaError(msg)
    note_read(found)  # its author may create it next
    if not exists:
        raise MediaError(_no_file(text, root))
    return found


def _no_file(text: str, root: Path) -> str:
    return f"there is no file {shortened(text)!r} in {root.name!r}"


def read_below(path: str | Path, root: str | Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """
    Return the bytes of the file that *path*, which may come from an argument, names below *root*.

    Args:
        path:
            A relative path: no ``..``, no drive, and no link that leads out of *root*.

        root:
            A folder that *path* may not leave, relative to that of the recipe that calls this.

        limit:
            How many bytes the file may have; 20 MiB if left out.

    Returns:
        The whole file.

    Raises:
        MediaError: If *path* leaves *root*, or names no regular file there, or if that cannot be read or
            is larger than *limit*. It is a `PromptError`: the client sees its message.
    """
    root = source_folder(1) / root
    return read_confined(confine(path, root), root, path, limit)


def read_confined(found: Path, root: Path, path: str | Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """
    Return the bytes of the file that `confine` has *found* below *root* for a *path*.

    Raises:
        MediaError: As `read_below` does.
    """
    try:
        return read_confined_file(root.resolve(), found, limit)
    except TooLargeError as error:
        raise MediaError(_too_large(path, error.size, limit)) from None
    except NotRegularError:
        raise MediaError(_no_file(str(path), root)) from None
    except OSError as error:
        msg = f"{shortened(str(path))!r} cannot be read: {error.strerror}"
        raise MediaError(msg) from error


def _too_large(path: str | Path, size: int, limit: int) -> str:
    return f"{shortened(str(path))!r}: {too_large_message(size, limit)}"
