"""
Kept lists: a file with the pages of all lists, and with what they were made from.

It is data, never code. It is used only if it belongs to its reader or to root, if nobody else may write to
it, and if what is used of it has its digest.
"""

import os
import stat
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType, msgpack, structs

from promptkit.files.regular import Stamp, replace_regular_file
from promptkit.protocol.capabilities import Capabilities, PageKey
from promptkit.protocol.digests import digest
from promptkit.protocol.revisions import Revision
from promptkit.transports.read_files import Purpose, ReadFiles, StaleSet
from promptkit.version import VERSION

if TYPE_CHECKING:
    from promptkit.transports.shell_words import ShellWords

__all__ = ["MADE_BY", "MAGIC", "KeptLists"]

MAGIC: Final = b"promptkit compiled set 6\n"

#: What precedes all else: the magic, and the length and the digest of what precedes the pages.
_HEAD_BYTES: Final = len(MAGIC) + 8 + 16

#: The longest page, and the most that precedes the pages.
_MAX_BYTES: Final = 64 * 1024 * 1024

#: Lists that were not found right for so long are not used, unless they were built for deployment.
_MAX_AGE_S: Final = 24 * 60 * 60

MADE_BY: Final = (
    f"promptkit {VERSION}, msgspec {msgspec.__version__}, Python {sys.version} on {sys.platform}, "
    f"optimized {sys.flags.optimize}, UTF-8 {sys.flags.utf8_mode}"
)

#: How the file is opened: pipes are not waited for.
_FLAGS: Final = sum(getattr(os, f"O_{name}", 0) for name in ("RDONLY", "NONBLOCK", "CLOEXEC", "BINARY"))

#: Who may own the file. On systems without user ids, such as Windows, the owner is always 0.
_TRUSTED: Final = {0, os.geteuid()} if hasattr(os, "geteuid") else {0}

#: The lists that depend on the files of skills.
_OF_SKILLS: Final = ("skills/list", "resources/list")

#: Where a page begins behind what precedes all pages, how long it is, and its digest.
Page: TypeAlias = tuple[int, int, bytes]


class KeptLists(Struct, frozen=True, array_like=True, dict=True):
    """
    The lists that one server answers, and what they were made from. A page is read when it is asked for.

    Args:
        made_by:
            The versions of the software that wrote them; ``""`` if they hold in any place.

        purpose:
            What they are for.

        files:
            The files that they were made from, but for those of skills.

        capabilities:
            What a server of them declares.

        prompts:
            The names of the prompts that each recipe file declares, by its path within the only folder.

        pages:
            The pages, by their names. Those that are equal are kept once: most revisions have the same.

        encoded_words:
            Where `ShellWords` lie among the pages.

        encoded_skills:
            Where the files of skills lie among the pages: they are looked at when a list depends on them.

        file:
            Where they were read from.

        start:
            Where in the file the pages begin.

        folder:
            What relative paths among those of files begin from.
    """

    made_by: str
    purpose: Purpose
    files: ReadFiles
    capabilities: Capabilities
    prompts: Mapping[str, Sequence[str]] = {}
    pages: Mapping[str, Page] = {}
    encoded_words: Page = (0, 0, b"")
    encoded_skills: Page = (0, 0, b"")
    file: str = ""
    start: int = 0
    folder: str = ""

    @classmethod
    def read_from(
        cls, file: str, purpose: Purpose, seen: dict[str, Stamp | None], *, is_built: bool = False
    ) -> "KeptLists":
        """
        Read lists.

        Args:
            file:
                Where they are kept.

            purpose:
                What they have to be for.

            seen:
                Is filled with the stamps of the files that are looked at.

            is_built:
                Whether they were built for deployment. Then the file may lie behind a link, as some systems
                put files into containers, it does not age, and the recipes may have been copied.

        Raises:
            StaleSet: If they cannot be used, or the recipes have changed since they were written.
        """
        if not purpose.folders:
            msg = "only a folder or a file can be built"
            raise StaleSet(msg)
        try:
            data, start = _read_beginning(file, is_built=is_built)
            kept = structs.replace(
                msgpack.decode(data, type=cls), file=file, start=start, folder=purpose.folders[0]
            )
            changes = partial(ReadFiles.changes, seen=seen, are_copied=is_built, folder=kept.folder)
            reason = _why_unfit(kept, purpose) or next(changes(kept.files), None)
            if is_built and reason is None:
                reason = next(changes(kept.skill_files), None)
        except OSError as error:
            reason = f"it cannot be read: {error.strerror or error}"
        except (msgspec.MsgspecError, ValueError, RecursionError, MemoryError, OverflowError):
            reason = "it is damaged, or no compiled set"
        if reason is not None:
            raise StaleSet(reason)
        return kept

    def write_to(
        self,
        file: str,
        pages: Iterable[tuple[PageKey, bytes]],
        words: "ShellWords",
        skill_folders: Collection[str] = (),
        mode: int = 0o600,
    ) -> None:
        """
        Write the lists, all at once, whoever else reads or writes the file.

        Args:
            file:
                Where they are kept.

            pages:
                All of their pages.

            words:
                What the shell completes.

            skill_folders:
                The folders whose files are those of skills.

            mode:
                Who may read the file.

        Raises:
            OSError: If the file cannot be written.

            ValueError: If a path cannot be written as text.
        """
        named = {_name_of(*key): page for key, page in pages}
        files, of_skills = self.files.split(skill_folders)
        encoded = msgpack.encode(words)
        skills = msgpack.encode(of_skills) if of_skills.read else b""
        places, size = dict[bytes, Page](), 0
        for page in (*named.values(), encoded, skills):
            if page not in places:
                places[page] = size, len(page), digest(page)
                size += len(page)
        placed = {name: places[page] for name, page in named.items()}
        kept = structs.replace(
            self, files=files, pages=placed, encoded_words=places[encoded], encoded_skills=places[skills]
        )
        data = msgpack.encode(kept)
        head = MAGIC + len(data).to_bytes(8, "big") + digest(data)
        replace_regular_file(file, head, data, *places, mode=mode)

    def page(self, method: str, revision: Revision, cursor: str | UnsetType = UNSET) -> bytes | None:
        """
        Return a page of a list; None if it is missing or damaged, or skills have changed that it depends on.
        """
        if method in _OF_SKILLS and self._has_other_skills:
            return None
        page = self.pages.get(_name_of(method, revision, cursor))
        return None if page is None else self._read(page)

    @property
    def skill_files(self) -> ReadFiles:
        """The files of skills, as they were. Raises MsgspecError if that is missing or damaged."""
        if not self.encoded_skills[1]:  # there are none
            return ReadFiles(path=self.files.path)
        return msgpack.decode(self._read(self.encoded_skills) or b"", type=ReadFiles)

    @cached_property
    def _has_other_skills(self) -> bool:
        try:
            return next(self.skill_files.changes({}, folder=self.folder), None) is not None
        except msgspec.MsgspecError:
            return True

    def words(self) -> "ShellWords":
        """
        Return what the shell completes.

        Raises:
            MsgspecError: If that is missing or damaged.
        """
        from promptkit.transports.shell_words import ShellWords  # no server needs it

        return msgpack.decode(self._read(self.encoded_words) or b"", type=ShellWords)

    def wrong_lists(self, pages: Iterable[tuple[PageKey, bytes]]) -> set[str]:
        """
        Return the methods of the lists whose pages are not *pages*.
        """
        known = {(name, expected) for name, (_, _, expected) in self.pages.items()}
        differing = known ^ {(_name_of(*key), digest(page)) for key, page in pages}
        return {name.partition(" ")[0] for name, _ in differing}

    def _read(self, page: Page) -> bytes | None:
        offset, size, expected = page
        if not 0 <= size <= _MAX_BYTES:
            return None
        try:
            with open(os.open(self.file, _FLAGS), "rb") as file:
                file.seek(self.start + offset)
                found = file.read(size)
        except (OSError, ValueError, OverflowError):  # it was removed or replaced, or there is no such place
            return None
        return found if digest(found) == expected else None


def _read_beginning(file: str, *, is_built: bool) -> tuple[bytes, int]:
    """What precedes the pages, encoded, and where these begin. Raises `StaleSet`, OSError or ValueError."""
    flags = _FLAGS if is_built else _FLAGS | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(file, flags), "rb") as opened:
        _check(os.fstat(opened.fileno()), ages=not is_built)
        head = opened.read(_HEAD_BYTES)
        size = int.from_bytes(head[-24:-16], "big")
        data = opened.read(size) if head.startswith(MAGIC) and size <= _MAX_BYTES else b""
    if digest(data) != head[-16:]:
        raise ValueError
    return data, _HEAD_BYTES + size


def _why_unfit(kept: KeptLists, purpose: Purpose) -> str | None:
    """Why lists are of no use for a purpose; None if they are."""
    if kept.purpose == purpose.anywhere:
        return None
    if kept.made_by != MADE_BY:
        return f"it was built by {kept.made_by}; this is {MADE_BY}"
    made_for = kept.purpose
    if (made_for.folders, made_for.recipes) != (purpose.folders, purpose.recipes):
        return f"it was built for other recipes, or in another place: {' '.join(made_for.folders)}"
    if purpose.options not in (None, made_for.options):
        return f"it was built with {made_for.options}"
    return None


def _check(status: os.stat_result, *, ages: bool) -> None:
    """Raise `StaleSet` unless a file is a plain one that nobody but its reader and root may have written."""
    shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and hasattr(os, "geteuid")
    if not stat.S_ISREG(status.st_mode) or shared or status.st_uid not in _TRUSTED:
        msg = "it is not trusted: it must be a file of yours or of root, which nobody else may write"
        raise StaleSet(msg)
    if ages and not 0 <= time.time() - status.st_mtime < _MAX_AGE_S:
        msg = "it is too old"
        raise StaleSet(msg)


def _name_of(method: str, revision: Revision, cursor: str | UnsetType) -> str:
    """What a page is called."""
    return f"{method} {revision.date} {'' if cursor is UNSET else cursor}"
