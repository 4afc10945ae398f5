"""
Folders that clients read, and the files and folders that promptkit writes into them.

A record in the folder lists the written files with their digests, so that other files are not overwritten or
removed. The folder and its record can come from another author's repository. Therefore, a record is validated
before use, and a file is removed or overwritten only if its content has the digest in the record.
"""

import errno
import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from promptkit.catalog.skills import CompiledSkill, folders_above
from promptkit.declarations.skill_files import MAX_BYTES, is_omitted
from promptkit.errors.exceptions import PromptkitError
from promptkit.files.folder import Folder, check_plain
from promptkit.files.reading import HashedBytes, may_exist
from promptkit.fragments.invisible import escape_invisible

#: The file name of the record for skills.
RECORD: Final = ".promptkit-skills.json"

#: The path that represents the content of an entry that is a single file instead of a folder.
FILE: Final = "."

_MAX_RECORD_BYTES: Final = 16 * 1024 * 1024

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class FolderChangeError(PromptkitError):
    """Files cannot be written into a folder or removed from it. The message suggests a fix."""


class _WrittenEntry(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A written file or folder: its source, the digest of each file, and the clients that use it."""

    source: str
    files: dict[str, str]
    clients: tuple[str, ...] = ()


class FolderChange(Struct, frozen=True):
    """
    The files to write into a folder, and the files to remove from it.

    Args:
        folder:
            The folder.

        names:
            The names of the files and folders that should exist after the change.

        writes:
            The contents of the files to write, keyed by the path within the folder.

        removes:
            The paths of files to remove.

        removed_names:
            The names of the files and folders to remove.

        record:
            The new content of the record.

        record_name:
            The name of the record.

        before:
            The current content of the record, or None if there is no record.

        digests:
            The digests in the current record, keyed by path.

        shared:
            The entries that are kept because other clients use them: these clients, keyed by the entry's
            name.

        is_record_changed:
            Whether the new record differs from the current one.
    """

    folder: Folder
    names: tuple[str, ...]
    writes: Mapping[str, HashedBytes]
    removes: tuple[str, ...]
    removed_names: tuple[str, ...]
    record: Mapping[str, _WrittenEntry]
    record_name: str
    before: bytes | None
    digests: Mapping[str, str]
    shared: Mapping[str, tuple[str, ...]]
    is_record_changed: bool

    @property
    def is_needed(self) -> bool:
        """Whether files or the record would change."""
        return bool(self.writes or self.removes or self.is_record_changed)

    def apply(self) -> None:
        """
        Write and remove the files.

        Raises:
            OSError: If a file cannot be written or removed, or has been changed since it was checked.
        """
        if not self.is_needed:
            return
        self.folder.create()
        with self.folder.locked():
            if _read_record(self.folder, self.record_name) != self.before:
                raise _changed_file_error(self.record_name)
            for path in self.removes:
                if self._exists_unchanged(path, {self.digests[path]}):
                    self.folder.remove(path)
                self.folder.remove_empty_folders(path)
            for path, content in self.writes.items():
                self._exists_unchanged(path, {self.digests.get(path), content.digest})
                data = content.data
                # Files with a shebang are executable, because agents run them.
                self.folder.write(path, data, mode=0o777 if data.startswith(b"#!") else 0o666)
            # The record is written last, so that after an interruption, each file matches the old or the new
            # record.
            if self.record:
                record = msgspec.json.format(msgspec.json.encode(self.record, order="sorted"))
                self.folder.write(self.record_name, record, b"\n")
            elif self.before is not None:
                self.folder.remove(self.record_name)

    def _exists_unchanged(self, path: str, digests: set[str | None]) -> bool:
        """Return whether a file exists. Raises OSError if its digest is not one of *digests*."""
        if self.folder.lstat(path) is None:
            return False
        if self.folder.digest(path, MAX_BYTES) not in digests - {None}:
            raise _changed_file_error(path)
        return True


def plan_folder_change(  # noqa: PLR0913 (a target, two filters and three names)
    folder: Folder,
    wanted: Mapping[str, Mapping[str, HashedBytes]],
    source: str | None,
    record_name: str,
    only: Collection[str] | None = None,
    *,
    client: str | None = None,
) -> FolderChange:
    """
    Return the changes that bring a folder to the wanted state, ignoring entries of other sources.

    Args:
        folder:
            The folder that clients read.

        wanted:
            The files of each entry, keyed by the name of the entry and then by the path within the entry. A
            single file has the path `FILE`.

        source:
            The recipes that define the entries. Entries from this source that are not wanted are removed. If
            nothing is wanted, None removes the entries of all sources.

        record_name:
            The name of the record.

        only:
            The names of the entries that can be removed. By default, all entries can be removed.

        client:
            The client for which to write, if several clients read the folder. If nothing is wanted, entries
            that other clients use are not removed.

    Raises:
        FolderChangeError: If the record is invalid, or if a file was not written by promptkit or has changed.
        OSError: If the folder cannot be read.
    """
    before = _read_record(folder, record_name) if folder.exists() else None
    recorded = {} if before is None else _decode_record(before, folder.display_root / record_name)
    unwanted = {
        name: tuple(user for user in written.clients if user != client)
        for name, written in recorded.items()
        if source in (None, written.source) and name not in wanted and (only is None or name in only)
    }
    # An entry that is missing from the recipes is removed for all clients.
    shared = {} if wanted else {name: users for name, users in unwanted.items() if users}
    removed_names = tuple(name for name in unwanted if name not in shared)
    writes, removes, digests = dict[str, HashedBytes](), list[str](), dict[str, str]()
    for name in (*wanted, *removed_names):
        written, files = recorded.get(name), wanted.get(name, {})
        if written is not None and source not in (None, written.source) and _source_exists(written.source):
            path = folder.display_root / name
            hint = "remove that version first, or rename one of the two"
            msg = f"{path} was already written from {written.source}: {hint}"
            raise FolderChangeError(msg)
        old = (
            {}
            if written is None
            else {_path_in_folder(name, path): digest for path, digest in written.files.items()}
        )
        new = {_path_in_folder(name, path): content for path, content in files.items()}
        present = _present_files(folder, name, old, new)
        writes |= {
            path: content
            for path, content in new.items()
            if path not in present or old.get(path) != content.digest
        }
        removes += [path for path in old if path not in new]
        digests |= old
    record = {
        name: replace(written, clients=shared.get(name, written.clients))
        for name, written in recorded.items()
        if name not in removed_names
    }
    for name, files in wanted.items():
        clients = {*(recorded[name].clients if name in recorded else ()), *([client] if client else ())}
        record[name] = _WrittenEntry(
            source or "", {path: content.digest for path, content in files.items()}, tuple(sorted(clients))
        )
    names = tuple(sorted(wanted))
    return FolderChange(
        folder=folder,
        names=names,
        writes=writes,
        removes=tuple(removes),
        removed_names=removed_names,
        record=record,
        record_name=record_name,
        before=before,
        digests=digests,
        shared=shared,
        is_record_changed=record != recorded,
    )


def describe_failure(folder: str | os.PathLike[str], error: OSError) -> str:
    """Return a one-line error message about a folder that cannot be changed."""
    path = f" ({error.filename})" if error.filename else ""
    text = f"cannot write into {os.fspath(folder)!r}: {error.strerror or error}{path}"
    return escape_invisible(text, one_line=True)


def _path_in_folder(name: str, path: str) -> str:
    """Return the path of a file within the folder, given its path within the entry *name*."""
    return name if path == FILE else f"{name}/{path}"


def _source_exists(source: str) -> bool:
    """Return whether a source still exists at its path. Its project might have been moved."""
    return any(not Path(path).is_absolute() or may_exist(path) for path in source.split(os.pathsep))


def _present_files(
    folder: Folder, name: str, written: Mapping[str, str], wanted: Mapping[str, HashedBytes]
) -> set[str]:
    """
    Return the paths of the existing files of an entry.

    Raises:
        FolderChangeError: If a file is in neither *written* nor *wanted*, or if its content matches neither.
    """
    known = {*written, *wanted}
    for path in _files_in(folder, name):
        if path not in known:
            raise _conflict_error(folder, path, "was not written by promptkit")
    present = set[str]()
    for path in known:
        if folder.lstat(path) is None:
            continue
        digest = folder.digest(path, MAX_BYTES)
        allowed = {written.get(path), wanted[path].digest if path in wanted else None}
        if digest is None or digest not in allowed:
            reason = "has changed since it was written" if path in written else "was not written by promptkit"
            raise _conflict_error(folder, path, reason)
        present.add(path)
    return present


def _files_in(folder: Folder, name: str) -> list[str]:
    """Return the paths of the files and symbolic links in an entry, except hidden and generated ones."""
    status = folder.lstat(name)
    if status is None:
        return []
    if not stat.S_ISDIR(status.st_mode):
        return [name]
    return [path for path, _ in folder.walk(name) if not any(map(is_omitted, path.split("/")))]


def _conflict_error(folder: Folder, path: str, reason: str) -> FolderChangeError:
    return FolderChangeError(f"{folder.display_root / path} {reason}: move it first")


def _changed_file_error(path: str) -> OSError:
    return OSError(errno.EBUSY, "it changed in the meantime, and was kept: run the command again", path)


def _read_record(folder: Folder, record_name: str) -> bytes | None:
    """Return the content of a record, or None if the folder has no record."""
    try:
        return folder.read(record_name, _MAX_RECORD_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _invalid_record_error(folder.display_root / record_name, error.strerror or str(error)) from None


def _decode_record(data: bytes, file: Path) -> dict[str, _WrittenEntry]:
    try:
        record = msgspec.json.decode(data, type=dict[str, _WrittenEntry])
        _check_record(record)
    except (msgspec.MsgspecError, UnicodeDecodeError, FolderChangeError) as error:
        raise _invalid_record_error(file, str(error)) from None
    return record


def _invalid_record_error(file: Path, reason: str) -> FolderChangeError:
    text = f"{file} is not a valid record of written files: {reason}"
    return FolderChangeError(f"{text}: move it, and run the command again")


def _check_record(record: Mapping[str, _WrittenEntry]) -> None:
    """Raise FolderChangeError unless all entries in a record are valid."""
    for name, written in record.items():
        if "/" in name or is_omitted(name) or not _is_plain(name):
            msg = f"{name[:100]!r} is not a valid name"
            raise FolderChangeError(msg)
        for path, digest in written.files.items():
            if path != FILE and not _is_plain(path):
                msg = f"{path[:100]!r} is not a plain path within {name[:100]!r}"
                raise FolderChangeError(msg)
            if not _DIGEST.fullmatch(digest):
                msg = f"{path[:100]!r} in {name[:100]!r} has an invalid SHA-256 digest"
                raise FolderChangeError(msg)


def _is_plain(path: str) -> bool:
    try:
        check_plain(path)
    except OSError:
        return False
    return True


def files_by_skill(skills: Iterable[CompiledSkill]) -> dict[str, dict[str, HashedBytes]]:
    """
    Return the files of each skill, keyed by the skill's name. A nested skill is part of the outer one.

    Raises:
        FolderChangeError: If two skills have the same name.
    """
    by_folder = {skill.folder: skill for skill in skills}
    by_name = dict[str, CompiledSkill]()
    for folder, skill in by_folder.items():
        if any(parent in by_folder for parent in folders_above(folder)):
            continue
        if (other := by_name.setdefault(skill.name, skill)) is not skill:
            msg = (
                f"{skill.uri_template} and {other.uri_template} would have the same folder: rename "
                "one of them"
            )
            raise FolderChangeError(msg)
    return {name: {file.path: file.content for file in skill.files} for name, skill in by_name.items()}
