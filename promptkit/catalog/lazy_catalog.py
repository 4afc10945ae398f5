"""A catalog of recipes that are still being imported."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.diagnostics import Diagnostic

if TYPE_CHECKING:
    from promptkit.catalog.resources import CompiledResource

__all__ = ["LazyCatalog"]


class LazyCatalog(Catalog):
    """
    A catalog in which a prompt is found as soon as its own file is imported. All else waits for all files.

    Args:
        find:
            Returns the prompt of a name, once its file is imported.

        whole:
            Returns the whole catalog, once all files are imported.
    """

    __slots__ = ("_find", "_whole")

    _find: Callable[[str], CompiledPrompt]
    _whole: Callable[[], Catalog]

    def __init__(self, find: Callable[[str], CompiledPrompt], whole: Callable[[], Catalog]) -> None:
        object.__setattr__(self, "_find", find)
        object.__setattr__(self, "_whole", whole)

    def __getitem__(self, name: str) -> CompiledPrompt:
        """Raises `UnknownPrompt` if no prompt has this name."""
        return self._find(name)

    # What follows takes the place of what a whole catalog holds, so that all else is inherited.

    @property
    def prompts(self) -> tuple[CompiledPrompt, ...]:
        """The compiled prompts."""
        return self._whole().prompts

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The errors and warnings of the compiler."""
        return self._whole().diagnostics

    @property
    def resources(self) -> "tuple[CompiledResource, ...]":
        """The compiled resources."""
        return self._whole().resources

    @property
    def _by_name(self) -> Mapping[str, CompiledPrompt]:
        return self._whole()._by_name  # noqa: SLF001 (of the same class)

    @property
    def _by_uri(self) -> "Mapping[str, CompiledResource]":
        return self._whole()._by_uri  # noqa: SLF001 (of the same class)
