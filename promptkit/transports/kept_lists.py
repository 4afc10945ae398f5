"""
Kept lists: a file with the pages of all lists, and with what they were made from.

It is data, never code. It is used only if it belongs to its reader or to root, if nobody else may write to
it, and if it has its digest.
"""

import os
import stat
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, msgpack

from promptkit.compiler.loading.targets import package_of, place_of, project_root
from promptkit.errors.regular_files import Stamp, read_regular_file, replace_regular_file
from promptkit.protocol.capabilities import Capabilities, ToolMode
from promptkit.protocol.digests import digest
from promptkit.protocol.methods import PageKey
from promptkit.protocol.revisions import Revision
from promptkit.transports.read_files import ReadFiles, StaleSet
from promptkit.version import VERSION

if TYPE_CHECKING:
    from promptkit.catalog.arguments import Arguments
    from promptkit.catalog.catalog import Catalog
    from promptkit.catalog.completion import Completer
    from promptkit.server.snapshot import Snapshot

__all__ = ["MADE_BY", "MAGIC", "KeptLists", "Purpose", "ShellWords"]

MAGIC: Final = b"promptkit compiled set 4\n"

#: What precedes the lists: the magic, and their digest.
_HEAD_BYTES: Final = len(MAGIC) + 16

#: The longest file.
_MAX_BYTES: Final = 256 * 1024 * 1024

#: Lists that were not found right for so long are not used, unless they were built for deployment.
_MAX_AGE_S: Final = 24 * 60 * 60

MADE_BY: Final = (
    f"promptkit {VERSION}, msgspec {msgspec.__version__}, Python {sys.version} on {sys.platform}, "
    f"optimized {sys.flags.optimize}, UTF-8 {sys.flags.utf8_mode}"
)

#: Who may own the file. On systems without user ids, such as Windows, the owner is always 0.
_TRUSTED: Final = {0, os.geteuid()} if hasattr(os, "geteuid") else {0}

#: Of an argument with more values, the shell completes none.
_MAX_VALUES: Final = 10_000


class Purpose(Struct, frozen=True, array_like=True):
    """
    What lists depend on besides the files that the recipes read.

    Args:
        folder:
            The folder of the recipes, without links; ``""`` for a module, which may come from anywhere.

        recipes:
            What is served of it, and where it lies in a package and in a project.

        options:
            How it is served, as options of the command line; None for any.
    """

    folder: str
    recipes: str
    options: str | None

    @classmethod
    def of(
        cls, target: str, name: str | None, page_size: int, tools: ToolMode, scopes: Collection[str] | None
    ) -> "Purpose":
        """
        Return the purpose of a server.

        Args:
            target:
                What the command line names.

            name:
                The server's name; None for a server with any name and other options.

            page_size:
                How many items a page of a list holds.

            tools:
                Whether prompts are offered as tools.

            scopes:
                What the client may do.
        """
        folder, attribute = place_of(target) or ("", target)
        offered = {False: "", True: " --tools", "search": " --tools-search"}[tools]
        seen = f" --scopes {' '.join(sorted(scopes))!r}" if scopes else ""
        options = None if name is None else f"--name {name!r} --page-size {page_size}{offered}{seen}"
        return cls(folder, repr((attribute, package_of(folder), project_root(folder))), options)


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


class KeptLists(Struct, frozen=True, array_like=True):
    """
    The lists that one server answers, and what they were made from.

    Args:
        made_by:
            The versions of the software that wrote them.

        purpose:
            What they are for.

        files:
            The files that they were made from.

        capabilities:
            What a server of them declares.

        prompts:
            The names of the prompts that each recipe file declares, by its path within the folder.

        pages:
            By its name: where each page stands in *contents*.

        contents:
            The pages. Those that are equal stand there once: most revisions have the same.

        encoded_words:
            `ShellWords`, encoded: a server does not need them.
    """

    made_by: str
    purpose: Purpose
    files: ReadFiles
    capabilities: Capabilities
    prompts: Mapping[str, Sequence[str]] = {}
    pages: Mapping[str, int] = {}
    contents: Sequence[bytes] = ()
    encoded_words: Raw = Raw(msgpack.encode(ShellWords()))

    def __post_init__(self) -> None:
        if not all(0 <= place < len(self.contents) for place in self.pages.values()):
            msg = "there is no such page"
            raise ValueError(msg)

    @classmethod
    def of(
        cls,
        snapshot: "Snapshot",
        purpose: Purpose,
        files: ReadFiles,
        prompts: Mapping[str, Sequence[str]],
        words: ShellWords,
    ) -> "KeptLists":
        """
        Return the lists of a snapshot.
        """
        named = {_name_of(*key): page for key, page in snapshot.pages()}
        places = {page: place for place, page in enumerate(dict.fromkeys(named.values()))}
        pages = {name: places[page] for name, page in named.items()}
        encoded = Raw(msgpack.encode(words))
        return cls(MADE_BY, purpose, files, snapshot.capabilities, prompts, pages, tuple(places), encoded)

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
        if not purpose.folder:
            msg = "only a folder or a file can be built"
            raise StaleSet(msg)
        if not is_built and os.path.islink(file):
            msg = "it is a link"
            raise StaleSet(msg)
        try:
            data = read_regular_file(file, _MAX_BYTES, _check_built if is_built else _check)
        except (OSError, ValueError) as error:
            msg = f"it cannot be read: {getattr(error, 'strerror', error)}"
            raise StaleSet(msg) from None
        try:
            encoded = data[_HEAD_BYTES:]
            is_whole = data.startswith(MAGIC) and digest(encoded) == data[len(MAGIC) : _HEAD_BYTES]
            found = msgpack.decode(encoded if is_whole else b"", type=cls)
            reason = _why_unfit(found, purpose) or next(found.files.changes(seen, are_copied=is_built), None)
        except (msgspec.MsgspecError, ValueError, RecursionError, MemoryError, OverflowError):
            reason = "it is damaged, or no compiled set"
        if reason is not None:
            raise StaleSet(reason)
        return found

    def write_to(self, file: str, mode: int = 0o600) -> None:
        """
        Write the lists, all at once, whoever else reads or writes the file.

        Args:
            file:
                Where they are kept.

            mode:
                Who may read it.

        Raises:
            OSError: If the file cannot be written.

            ValueError: If a path cannot be written as text.
        """
        data = msgpack.encode(self)
        replace_regular_file(file, MAGIC, digest(data), data, mode=mode)

    def page(self, method: str, revision: Revision, cursor: str | UnsetType = UNSET) -> bytes | None:
        """
        Return a page of a list; None if there is none of that name.
        """
        place = self.pages.get(_name_of(method, revision, cursor))
        return None if place is None else self.contents[place]

    def words(self) -> ShellWords:
        """
        Return what the shell completes.
        """
        return msgpack.decode(self.encoded_words, type=ShellWords)

    def wrong_lists(self, pages: Iterable[tuple[PageKey, bytes]]) -> set[str]:
        """
        Return the methods of the lists whose pages are not *pages*.
        """
        known = {(name, self.contents[place]) for name, place in self.pages.items()}
        differing = known ^ {(_name_of(*key), page) for key, page in pages}
        return {name.partition(" ")[0] for name, _ in differing}


def _why_unfit(kept: KeptLists, purpose: Purpose) -> str | None:
    """Why lists are of no use for a purpose; None if they are."""
    if kept.made_by != MADE_BY:
        return f"it was built by {kept.made_by}; this is {MADE_BY}"
    made_for = kept.purpose
    if (made_for.folder, made_for.recipes) != (purpose.folder, purpose.recipes):
        return f"it was built for other recipes, or in another place: {made_for.folder}"
    if purpose.options not in (None, made_for.options):
        return f"it was built with {made_for.options}"
    return None


def _check_built(status: os.stat_result) -> None:
    """Raise `StaleSet` unless nobody but its reader and root may have written the file."""
    shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and hasattr(os, "geteuid")
    if shared or status.st_uid not in _TRUSTED:
        msg = "it is not trusted: it must be a file of yours or of root, which nobody else may write"
        raise StaleSet(msg)


def _check(status: os.stat_result) -> None:
    """The same, and that the file is not too old."""
    _check_built(status)
    if not 0 <= time.time() - status.st_mtime < _MAX_AGE_S:
        msg = "it is too old"
        raise StaleSet(msg)


def _name_of(method: str, revision: Revision, cursor: str | UnsetType) -> str:
    """What a page is called."""
    return f"{method} {revision.date} {'' if cursor is UNSET else cursor}"


def _values(arguments: "Arguments") -> dict[str, tuple[str, ...]]:
    return {argument.name: _fixed(argument.completer) for argument in arguments.ordered}


def _fixed(completer: "Completer | None") -> tuple[str, ...]:
    """The values of a completer that is no function; without those that no shell can show."""
    if completer is None or not isinstance(completer.source, tuple) or len(completer.source) > _MAX_VALUES:
        return ()
    return tuple(filter(str.isprintable, completer.source))
