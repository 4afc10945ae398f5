"""
Folders that clients read: files, and folders of files, that are written there, changed, and removed again.

What was written is noted beside it, so that nothing else is ever overwritten or removed.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec
from msgspec import Struct

from promptkit.catalog.kept_bytes import KeptBytes
from promptkit.compiler.skills.files import MOST_BYTES, is_left_out
from promptkit.errors.exceptions import PromptkitError
from promptkit.files.regular import read_regular_file, replace_regular_file

__all__ = ["FILE", "FolderChange", "FolderRefused", "folder_change", "sources_in"]

#: The path of a file in itself, where others are in a folder.
FILE: Final = "."

_MAX_NOTE_BYTES: Final = 16 * 1024 * 1024


class FolderRefused(PromptkitError):
    """Nothing can be written into a folder, or removed from it; its text says why, and what to do."""


class _Written(Struct, frozen=True):
    """A file, or a folder, that was written: of what, and the digest of each file."""

    source: str
    files: dict[str, str]


class FolderChange(Struct, frozen=True):
    """
    What is to be written into a folder, and what is to be removed.

    Args:
        folder:
            The folder.

        names:
            The files and folders in it that are there afterwards, of the same source.

        writes:
            What files are to hold, by their paths within it.

        removes:
            The paths of files that are to go.

        gone:
            The files and folders in it that are to go.

        note:
            What is noted afterwards.

        note_name:
            The name of the file with that.
    """

    folder: Path
    names: tuple[str, ...]
    writes: Mapping[str, KeptBytes]
    removes: tuple[str, ...]
    gone: tuple[str, ...]
    note: Mapping[str, _Written]
    note_name: str

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.writes or self.removes)

    def carry_out(self) -> None:
        """
        Write, and remove.

        Raises:
            OSError: If a file cannot be written, or removed.
        """
        if not self.is_needed:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.removes:
            (self.folder / path).unlink(missing_ok=True)
            _remove_empty(self.folder, path)
        for path, content in self.writes.items():
            place = self.folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            data = content.data
            # What names its own interpreter is a program, and agents start it.
            replace_regular_file(place, data, mode=0o777 if data.startswith(b"#!") else 0o666)
        # Last of all: if this ends before, the next time finds what it would write, or what was noted.
        if self.note:
            note = msgspec.json.format(msgspec.json.encode(self.note, order="sorted"))
            replace_regular_file(self.folder / self.note_name, note, b"\n")
        else:
            (self.folder / self.note_name).unlink()


def folder_change(
    folder: Path,
    wanted: Mapping[str, Mapping[str, KeptBytes]],
    source: str,
    note_name: str,
    only: Collection[str] | None = None,
) -> FolderChange:
    """
    Return what makes that which lies in a folder what is wanted, apart from what is of other sources.

    Args:
        folder:
            Where clients look.

        wanted:
            What is to be there, by its name: files by their paths in a folder of that name, or one at `FILE`.

        source:
            What it is made of; what was written of it before and is no more goes.

        note_name:
            The name of the file that says what was written.

        only:
            What may go; everything by default.

    Raises:
        FolderRefused: If something lies there that was not written so.
    """
    noted = _read_note(folder / note_name)
    gone = tuple(
        name
        for name, one in noted.items()
        if one.source == source and name not in wanted and (only is None or name in only)
    )
    for name in (*wanted, *gone):
        before = noted.get(name)
        if before is not None and before.source != source and _is_there(before.source):
            whose = before.source or "a build"
            msg = f"{folder / name} was written from {whose}: remove it from there, or rename one of the two"
            raise FolderRefused(msg)
        coming = {path: content.digest for path, content in wanted.get(name, {}).items()}
        _check_own(folder / name, {} if before is None else before.files, coming)
    files = {_path(name, path): content for name, one in wanted.items() for path, content in one.items()}
    there = {_path(name, path): digest for name, one in noted.items() for path, digest in one.files.items()}
    ours = [path for path in there if path.partition("/")[0] in {*wanted, *gone}]
    written = {
        name: _Written(source, {path: content.digest for path, content in one.items()})
        for name, one in wanted.items()
    }
    return FolderChange(
        folder,
        tuple(sorted(wanted)),
        {
            path: content
            for path, content in files.items()
            if there.get(path) != content.digest or not (folder / path).exists()
        },
        tuple(path for path in ours if path not in files),
        gone,
        {**{name: one for name, one in noted.items() if name not in gone}, **written},
        note_name,
    )


def sources_in(folder: Path, note_name: str) -> tuple[str, ...]:
    """
    Return what that was made of which was written into a folder.

    Args:
        folder:
            The folder.

        note_name:
            The name of the file that says what was written.

    Raises:
        FolderRefused: If that file cannot be read.
    """
    return tuple(dict.fromkeys(one.source for one in _read_note(folder / note_name).values()))


def _path(name: str, path: str) -> str:
    """The path within the folder of what has a path within that which is called *name*."""
    return PurePosixPath(name, path).as_posix()


def _is_there(source: str) -> bool:
    """Whether what something was made of still lies where it was: a project may have been moved."""
    places = [Path(one) for one in source.split(os.pathsep)]
    return any(not place.is_absolute() or place.exists() for place in places)


def _check_own(folder: Path, written: Mapping[str, str], coming: Mapping[str, str]) -> None:
    """Raise FolderRefused if a folder holds anything but the files that were *written*, or are *coming*."""
    is_other = folder.is_symlink() or (folder.exists() and not folder.is_dir())
    for place in [folder] if is_other else _files_in(folder):
        path = place.relative_to(folder).as_posix()
        expected = written.get(path)
        if _digest(place) not in {expected or "", coming.get(path, "")}:
            how = "was changed since it was written" if expected else "was not written by promptkit"
            msg = f"{place} {how}: move it away, and nothing of it is lost"
            raise FolderRefused(msg)


def _files_in(folder: Path) -> Iterator[Path]:
    """What lies in a folder and is no folder; links are not followed."""
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_left_out(name)]
        yield from (Path(above, name) for name in names if not is_left_out(name))
        yield from (place for name in folders if (place := Path(above, name)).is_symlink())


def _digest(place: Path) -> str | None:
    """The digest of a file; None if it is a link, or cannot be read."""
    try:
        return None if place.is_symlink() else sha256(read_regular_file(place, MOST_BYTES)).hexdigest()
    except OSError:
        return None


def _remove_empty(folder: Path, path: str) -> None:
    """Remove the folders of a file that are empty now."""
    above = Path(path).parent
    with suppress(OSError):  # one is not empty, and so are all above it
        while above.parts:
            (folder / above).rmdir()
            above = above.parent


def _read_note(file: Path) -> dict[str, _Written]:
    try:
        data = read_regular_file(file, _MAX_NOTE_BYTES)
        return msgspec.json.decode(data, type=dict[str, _Written])
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        reason = f"{file}, which says what was written here, cannot be read: {error}"
        msg = f"{reason}: remove it and what was written, and write it again"
        raise FolderRefused(msg) from None
