"""
Sets of lists on disk: the pages of all lists, and an index of them that says what they were made from.

They are data, never code. A set is used only if it belongs to its reader or to root, if nobody else may write
to it, and if what is used of it has its digest.
"""

import os
import stat
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType, msgpack, structs

from promptkit.errors.regular_files import Stamp, replace_regular_file
from promptkit.protocol.capabilities import Capabilities, PageKey
from promptkit.protocol.digests import digest
from promptkit.protocol.revisions import Revision
from promptkit.transports.import_inputs import Inputs, Purpose, StaleSet
from promptkit.version import VERSION

if TYPE_CHECKING:
    from promptkit.catalog.arguments import Arguments
    from promptkit.catalog.catalog import Catalog
    from promptkit.catalog.completion import Completer

__all__ = ["MADE_BY", "MAGIC", "Index", "KeptLists", "ShellWords", "write_set"]

MAGIC: Final = b"promptkit compiled set 3\n"

#: What precedes the index: the magic, and the length and the digest of the index.
_HEAD_BYTES: Final = len(MAGIC) + 8 + 16

#: The longest index, and the longest page, unless a server has another limit.
_MAX_BYTES: Final = 64 * 1024 * 1024

#: A set that was not found right for so long is not used, unless it was built for deployment.
_MAX_AGE_S: Final = 24 * 60 * 60

MADE_BY: Final = (
    f"promptkit {VERSION}, msgspec {msgspec.__version__}, Python {sys.version} on {sys.platform}, "
    f"optimized {sys.flags.optimize}, UTF-8 {sys.flags.utf8_mode}"
)

#: Do not follow links, and do not wait for pipes.
_FLAGS: Final = sum(getattr(os, f"O_{name}", 0) for name in ("NOFOLLOW", "NONBLOCK", "CLOEXEC", "BINARY"))

#: What reading a hostile file may raise. The server must start all the same.
_UNREADABLE: Final = (OSError, ValueError, OverflowError, MemoryError, RecursionError, msgspec.MsgspecError)

#: Who may own a set. On systems without user ids, such as Windows, the owner is always 0.
_TRUSTED: Final = {0, os.geteuid()} if hasattr(os, "geteuid") else {0}

#: Of an argument with more values, the shell completes none.
_MAX_VALUES: Final = 10_000

#: Where a page begins, how long it is, and its digest.
Page: TypeAlias = tuple[int, int, bytes]


class Index(Struct, frozen=True, array_like=True):
    """
    The index at the beginning of a set.

    Args:
        made_by:
            The versions of the software that wrote the set.

        purpose:
            What the lists are for.

        inputs:
            What they were made from.

        capabilities:
            What a server of them declares.

        names:
            The names of the prompts that each recipe file declares, by its path.

        pages:
            The pages by their names.

        words:
            Where `ShellWords` lie behind the pages.
    """

    made_by: str
    purpose: Purpose
    inputs: Inputs
    capabilities: Capabilities
    names: Mapping[str, Sequence[str]] = {}
    pages: Mapping[str, Page] = {}
    words: Page = (0, 0, b"")


class ShellWords(Struct, frozen=True, array_like=True):
    """
    What the shell completes on a key press, when no recipe can be imported.

    Args:
        prompts:
            The arguments of each prompt by its name, and the values that are offered for each, unless a
            function says which.

        resources:
            The same of each resource, by its URI or template.
    """

    prompts: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    resources: Mapping[str, Mapping[str, tuple[str, ...]]] = {}

    @classmethod
    def of(cls, catalog: "Catalog") -> "ShellWords":
        """
        Return the words of *catalog*.
        """
        return cls(
            {prompt.name: _values(prompt.arguments) for prompt in catalog.prompts},
            {resource.uri_template: _values(resource.arguments) for resource in catalog.resources},
        )


class KeptLists:
    """
    A set whose pages are read when they are asked for.

    Args:
        descriptor:
            The open file, which `close` closes.

        index:
            What stands at its beginning.

        start:
            Where in the file the first page begins.

        seen:
            The stamps of what was looked at to find out whether all is as it was.
    """

    def __init__(self, descriptor: int, index: Index, start: int, seen: Mapping[str, Stamp | None]) -> None:
        self.index = index
        self.seen = seen
        self._descriptor = descriptor
        self._start = start

    @classmethod
    def open(cls, file: str, purpose: Purpose, *, is_built: bool = False) -> "KeptLists":
        """
        Open a set. The caller closes it.

        Args:
            file:
                The file.

            purpose:
                What it has to be for.

            is_built:
                Whether it was built for deployment. Then it may lie behind a link, as some systems put files
                into containers, it does not age, and the recipes may have been copied.

        Raises:
            StaleSet: If it cannot be used, or the recipes have changed since it was written.
        """
        if not purpose.folder:
            msg = "only a folder or a file can be built"
            raise StaleSet(msg)
        try:
            follow = getattr(os, "O_NOFOLLOW", 0) if is_built else 0
            descriptor = os.open(file, os.O_RDONLY | _FLAGS & ~follow)
        except (OSError, ValueError) as error:
            msg = f"it cannot be read: {getattr(error, 'strerror', error)}"
            raise StaleSet(msg) from None
        try:
            _check_file(os.fstat(descriptor), ages=not is_built)
            index, start = _read_index(descriptor)
            seen = _check_index(index, purpose, are_copied=is_built)
        except _UNREADABLE:
            os.close(descriptor)
            msg = "it is damaged, or no compiled set"
            raise StaleSet(msg) from None
        except StaleSet:
            os.close(descriptor)
            raise
        return cls(descriptor, index, start, seen)

    def page(
        self, method: str, revision: Revision, cursor: str | UnsetType = UNSET, longest: int = _MAX_BYTES
    ) -> bytes | None:
        """
        Return a page of a list; None if it is missing, damaged, or longer than *longest*.
        """
        page = self.index.pages.get(_name_of(method, revision, cursor))
        return None if page is None else self._read(page, longest)

    def words(self) -> ShellWords:
        """
        Return what the shell completes.

        Raises:
            MsgspecError: If that is missing or damaged.
        """
        return msgpack.decode(self._read(self.index.words, _MAX_BYTES) or b"", type=ShellWords)

    def wrong_lists(self, pages: Iterable[tuple[PageKey, bytes]]) -> set[str]:
        """
        Return the methods of the lists whose pages are not *pages*.
        """
        known = {(name, page[2]) for name, page in self.index.pages.items()}
        differing = known ^ {(_name_of(*key), digest(page)) for key, page in pages}
        return {name.partition(" ")[0] for name, _ in differing}

    def confirm(self) -> None:
        """Note that it was found right, so that it does not age."""
        with suppress(OSError):  # it was removed, or belongs to root
            os.utime(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _read(self, page: Page, longest: int) -> bytes | None:
        offset, size, expected = page
        if not 0 <= size <= longest:
            return None
        try:
            found = _read_at(self._descriptor, self._start + offset, size)
        except (OSError, OverflowError):
            return None
        return found if digest(found) == expected else None


def write_set(
    file: str, index: Index, pages: Iterable[tuple[PageKey, bytes]], words: ShellWords, mode: int = 0o600
) -> None:
    """
    Write a set, all at once, whoever else reads or writes the file.

    Args:
        file:
            The file.

        index:
            Its index, without the pages.

        pages:
            The pages of all lists. Those that are equal are kept once: most revisions have the same.

        words:
            What the shell completes.

        mode:
            Who may read it.

    Raises:
        OSError: If the file cannot be written.

        ValueError: If a path cannot be written as text.
    """
    body: dict[bytes, bytes] = {}
    places: dict[bytes, Page] = {}
    size = 0

    def placed(page: bytes) -> Page:
        nonlocal size
        if (key := digest(page)) not in body:
            body[key], places[key] = page, (size, len(page), key)
            size += len(page)
        return places[key]

    named = {_name_of(*key): placed(page) for key, page in pages}
    index = structs.replace(index, pages=named, words=placed(msgpack.encode(words)))
    data = msgpack.encode(index)
    head = MAGIC + len(data).to_bytes(8, "big") + digest(data)
    replace_regular_file(file, head, data, *body.values(), mode=mode)


def _check_file(status: os.stat_result, *, ages: bool) -> None:
    """Raise `StaleSet` unless a file is a plain one that nobody but its reader and root may have written."""
    shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and hasattr(os, "geteuid")
    if not stat.S_ISREG(status.st_mode) or shared or status.st_uid not in _TRUSTED:
        msg = "it is not trusted: it must be a file of yours or of root, which nobody else may write"
        raise StaleSet(msg)
    if ages and not 0 <= time.time() - status.st_mtime < _MAX_AGE_S:
        msg = "it is too old"
        raise StaleSet(msg)


def _read_index(descriptor: int) -> tuple[Index, int]:
    """The index, and where the pages begin. Raises ValueError if the file is damaged, or something else."""
    head = os.read(descriptor, _HEAD_BYTES)
    size = int.from_bytes(head[-24:-16], "big")
    data = os.read(descriptor, size) if head.startswith(MAGIC) and size <= _MAX_BYTES else b""
    if digest(data) != head[-16:]:
        raise ValueError
    return msgpack.decode(data, type=Index), _HEAD_BYTES + size


def _check_index(index: Index, purpose: Purpose, *, are_copied: bool) -> Mapping[str, Stamp | None]:
    """The stamps that were looked at. Raises `StaleSet` if a set is of no use for a purpose now."""
    made_for, seen = index.purpose, dict[str, Stamp | None]()
    reason: str | None
    if index.made_by != MADE_BY:
        reason = f"it was built by {index.made_by}; this is {MADE_BY}"
    elif (made_for.folder, made_for.recipes) != (purpose.folder, purpose.recipes):
        reason = f"it was built for other recipes, or in another place: {made_for.folder}"
    elif purpose.options not in (None, made_for.options):
        reason = f"it was built with {made_for.options}"
    else:
        reason = next(index.inputs.changes(seen, are_copied=are_copied), None)
    if reason is not None:
        raise StaleSet(reason)
    return seen


def _name_of(method: str, revision: Revision, cursor: str | UnsetType) -> str:
    """What a page is called in the index."""
    return f"{method} {revision.date} {'' if cursor is UNSET else cursor}"


def _read_at(descriptor: int, place: int, size: int) -> bytes:
    if sys.platform != "win32":
        return os.pread(descriptor, size, place)  # several threads may read
    os.lseek(descriptor, place, os.SEEK_SET)
    return os.read(descriptor, size)


def _values(arguments: "Arguments") -> dict[str, tuple[str, ...]]:
    return {argument.name: _fixed(argument.completer) for argument in arguments.ordered}


def _fixed(completer: "Completer | None") -> tuple[str, ...]:
    """The values of a completer that is no function; without those that no shell can show."""
    if completer is None or not isinstance(completer.source, tuple) or len(completer.source) > _MAX_VALUES:
        return ()
    return tuple(filter(str.isprintable, completer.source))
