"""A compiled set that was built for deployment: it is read from anywhere, and never written to."""

import os
from collections.abc import Collection, Iterator

from msgspec import Struct, structs

from promptkit.compiler.loading.targets import package_of, place_of, project_root
from promptkit.protocol.capabilities import ToolMode
from promptkit.standard_error import say
from promptkit.transports.startup_cache.fingerprints import (
    ABSENT,
    Inputs,
    file_digest,
    folder_digest,
    modules_digest,
    value_digest,
)
from promptkit.transports.startup_cache.store import (
    FLAGS,
    MADE_BY,
    UNREADABLE,
    Index,
    Listings,
    Store,
    is_trusted,
    read_index,
)

__all__ = ["BuiltStore", "Purpose", "StaleSet", "open_built", "portable"]


class StaleSet(Exception):
    """A built set cannot be used, or the recipes have changed since it was built; its text says why."""


class BuiltListings(Listings):
    """The pages of a built set. Nothing is noted in its file, as its deployer stands for it."""

    def withdraw(self) -> bool:
        """Return that the pages can be sent."""
        return True

    def confirm(self) -> None:
        """Note nothing."""


class BuiltStore(Store):
    """
    A built set in place of the file of the start-up cache.

    Args:
        file:
            The file.

        listings:
            What the file holds.
    """

    def __init__(self, file: str, listings: BuiltListings) -> None:
        self.file = file
        self._listings = listings

    def read(self) -> Listings | None:
        """Return what the file holds."""
        return self._listings

    def close(self) -> None:
        """Close the file."""
        self._listings.close()

    def retract(self, index: Index) -> None:  # noqa: ARG002 (nothing is written)
        """Say that the pages were wrong. The client was told before."""
        say(f"{self.file!r} was wrong, and clients are corrected at every start: run promptkit build again")

    def discard(self) -> None:
        """Leave the file as it is."""


class Purpose(Struct, frozen=True):
    """
    What pages depend on besides the files that the recipes read.

    Args:
        recipes:
            Which recipes they are, by their absolute paths.

        options:
            How they are served, as options of the command line.
    """

    recipes: str
    options: str

    def __str__(self) -> str:
        return f"{self.recipes}\n{self.options}"

    @classmethod
    def of(
        cls, target: str, name: str, page_size: int, tools: ToolMode, scopes: Collection[str] | None = None
    ) -> "Purpose":
        """
        Return the purpose of a server.

        Raises:
            StaleSet: If the target is a module, which may come from anywhere.
        """
        if (place := place_of(target)) is None:
            msg = "only a folder or a file can be built"
            raise StaleSet(msg)
        folder, attribute = place
        recipes = (folder, attribute, package_of(folder), project_root(folder))
        offered = {False: "", True: " --tools", "search": " --tools-search"}[tools]
        seen = f" --scopes {' '.join(sorted(scopes))!r}" if scopes else ""
        return cls(repr(recipes), f"--name {name!r} --page-size {page_size}{offered}{seen}")


def open_built(  # noqa: PLR0913, PLR0917 (pages depend on that much)
    file: str,
    target: str,
    name: str | None,
    page_size: int,
    tools: ToolMode,
    scopes: Collection[str] | None = None,
) -> BuiltStore:
    """
    Open a built set.

    Args:
        file:
            The file.

        target:
            The recipes that the command line names.

        name:
            The server's name; None to accept a set for any name, size of pages, tools and scopes.

        page_size:
            How many items a page of a list holds.

        tools:
            Whether prompts are offered as tools.

        scopes:
            What the client may do.

    Raises:
        StaleSet: If it cannot be used, or the recipes have changed since it was built.
    """
    purpose = Purpose.of(target, name or "", page_size, tools, scopes)
    try:
        # A link is followed: that is how some systems put files into a container.
        descriptor = os.open(file, os.O_RDONLY | (FLAGS & ~getattr(os, "O_NOFOLLOW", 0)))
    except (OSError, ValueError) as error:
        msg = f"it cannot be read: {getattr(error, 'strerror', error)}"
        raise StaleSet(msg) from None
    try:
        index, start = _read(descriptor)
        if reason := _why_stale(index, purpose, any_options=name is None):
            raise StaleSet(reason)  # noqa: TRY301 (the file is closed below)
    except BaseException:
        os.close(descriptor)
        raise
    return BuiltStore(file, BuiltListings(index, descriptor, start))


def portable(inputs: Inputs) -> Inputs:
    """
    Return the inputs without stamps, which copying an image changes.

    Recipes are compared by what they hold. Whoever deploys the image stands for what is installed there.
    """
    return structs.replace(inputs, stamps={}, state=ABSENT)


def _read(descriptor: int) -> tuple[Index, int]:
    if not is_trusted(os.fstat(descriptor)):
        msg = "it is not trusted: it must be a file of yours or of root, which nobody else may write"
        raise StaleSet(msg)
    try:
        return read_index(descriptor)
    except UNREADABLE:
        msg = "it is damaged, or no compiled set"
        raise StaleSet(msg) from None


def _why_stale(index: Index, purpose: Purpose, *, any_options: bool) -> str | None:
    if index.version != MADE_BY:
        return f"it was built by {index.version}; this is {MADE_BY}"
    recipes, _, options = index.purpose.partition("\n")
    if recipes != purpose.recipes:
        return f"it was built for other recipes, or in another place: {recipes}"
    if not any_options and options != purpose.options:
        return f"it was built with {options}"
    if not index.inputs.is_current:
        return next(_changes(index.inputs), "sys.path, the current folder or the environment has changed")
    return None


def _changes(inputs: Inputs) -> Iterator[str]:
    """What has changed, in words."""
    yield from (
        f"the environment variable {name} has changed"
        for name, was in inputs.variables.items()
        if value_digest(os.environ.get(name), inputs.key) != was
    )
    for known, look, what in (
        (inputs.contents, file_digest, "has changed"),
        (inputs.names, folder_digest, "has other files"),
        (inputs.modules, modules_digest, "has other modules"),
    ):
        yield from (f"{path} {what}" for path, was in known.items() if look(path) != was)
