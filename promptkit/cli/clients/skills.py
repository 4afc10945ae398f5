"""
Skills on disk, as agents read them: each in a folder of its name, byte for byte what is served.

What was written is noted beside the folders, so that nothing else is ever overwritten or removed.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from promptkit.catalog.kept_bytes import KeptBytes
from promptkit.catalog.skills import CompiledSkill, folders_above
from promptkit.compiler.skills.files import MOST_BYTES, is_left_out
from promptkit.errors.exceptions import PromptkitError
from promptkit.errors.regular_files import read_regular_file, replace_regular_file

__all__ = ["SkillChange", "SkillsRefused", "skill_change"]

#: Beside the folders: what was written there.
NOTE: Final = ".promptkit-skills.json"

_MAX_NOTE_BYTES: Final = 16 * 1024 * 1024


class SkillsRefused(PromptkitError):
    """Skills cannot be written, or removed; its text says why, and what to do."""


class _Written(Struct, frozen=True):
    """A skill that was written: by whom, and the digest of each file."""

    source: str
    files: dict[str, str]


class SkillChange(Struct, frozen=True):
    """
    What is to be written into a folder of skills, and what is to be removed.

    Args:
        folder:
            The folder.

        names:
            The skills that are there afterwards, of the same source.

        writes:
            What files are to hold, by their paths within it.

        removes:
            The paths of files that are to go.

        gone:
            The skills that are to go.

        note:
            What is noted afterwards.
    """

    folder: Path
    names: tuple[str, ...]
    writes: Mapping[str, KeptBytes]
    removes: tuple[str, ...]
    gone: tuple[str, ...]
    note: Mapping[str, _Written]

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
            replace_regular_file(self.folder / NOTE, note, b"\n")
        else:
            (self.folder / NOTE).unlink()


def skill_change(folder: Path, skills: Iterable[CompiledSkill], source: str) -> SkillChange:
    """
    Return what makes the skills of a folder those that are given, apart from the skills of other sources.

    Args:
        folder:
            Where agents look for skills.

        skills:
            What is to be there. Those that lie in others are written with them.

        source:
            What they are made of; what was written of it before and is no more goes.

    Raises:
        SkillsRefused: If two have one name, or something lies there that was not written so.
    """
    by_name, noted = _by_name(skills), _read_note(folder)
    gone = tuple(name for name, one in noted.items() if one.source == source and name not in by_name)
    for name in (*by_name, *gone):
        before = noted.get(name)
        if before is not None and before.source != source and _is_there(before.source):
            whose = before.source or "a build"
            msg = (
                f"{folder / name} was written from {whose}: uninstall it from there, or rename one of the two"
            )
            raise SkillsRefused(msg)
        coming = {file.path: file.content.digest for file in by_name[name].files} if name in by_name else {}
        _check_own(folder / name, {} if before is None else before.files, coming)
    files = {f"{name}/{file.path}": file.content for name, one in by_name.items() for file in one.files}
    there = {f"{name}/{path}": digest for name, one in noted.items() for path, digest in one.files.items()}
    ours = [path for path in there if path.partition("/")[0] in {*by_name, *gone}]
    written = {
        name: _Written(source, {file.path: file.content.digest for file in one.files})
        for name, one in by_name.items()
    }
    return SkillChange(
        folder,
        tuple(sorted(by_name)),
        {
            path: content
            for path, content in files.items()
            if there.get(path) != content.digest or not (folder / path).exists()
        },
        tuple(path for path in ours if path not in files),
        gone,
        {**{name: one for name, one in noted.items() if name not in gone}, **written},
    )


def _is_there(source: str) -> bool:
    """Whether what skills were made of still lies where it was: a project may have been moved."""
    places = [Path(one) for one in source.split(os.pathsep)]
    return any(not place.is_absolute() or place.exists() for place in places)


def _by_name(skills: Iterable[CompiledSkill]) -> dict[str, CompiledSkill]:
    found = {skill.folder: skill for skill in skills}
    by_name = dict[str, CompiledSkill]()
    for folder, skill in found.items():
        if any(above in found for above in folders_above(folder)):
            continue
        if (other := by_name.setdefault(skill.name, skill)) is not skill:
            msg = f"{skill.uri_template} and {other.uri_template} would have one folder: rename one of them"
            raise SkillsRefused(msg)
    return by_name


def _check_own(folder: Path, written: Mapping[str, str], coming: Mapping[str, str]) -> None:
    """Raise SkillsRefused if a folder holds anything but the files that were *written*, or are *coming*."""
    is_other = folder.is_symlink() or (folder.exists() and not folder.is_dir())
    for place in [folder] if is_other else _files_in(folder):
        path = place.relative_to(folder).as_posix()
        expected = written.get(path)
        if _digest(place) not in {expected or "", coming.get(path, "")}:
            how = "was changed since it was written" if expected else "was not written by promptkit"
            msg = f"{place} {how}: move it away, and nothing of it is lost"
            raise SkillsRefused(msg)


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


def _read_note(folder: Path) -> dict[str, _Written]:
    try:
        data = read_regular_file(folder / NOTE, _MAX_NOTE_BYTES)
        return msgspec.json.decode(data, type=dict[str, _Written])
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        reason = f"{folder / NOTE}, which says what was written here, cannot be read: {error}"
        msg = f"{reason}: remove it and the folders of the skills, and install again"
        raise SkillsRefused(msg) from None
