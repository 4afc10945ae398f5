"""Recipes: what the loader found at a target, file by file, before anything of it is compiled."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
from msgspec import Struct

from promptkit.compiler.prompts import Prompt
from promptkit.compiler.resources import Resource
from promptkit.errors.diagnostics import Diagnostic

__all__ = ["Declarations", "Recipes"]


class Declarations(Struct, frozen=True):
    """
    What one file declares.

    Args:
        file:
            The recipe file; None if what is declared was not loaded from one.

        prompts:
            Its prompts, and those of its package that it holds and no other recipe defines.

        resources:
            The resources that it holds.

        diagnostics:
            Why it could not be imported.
    """

    file: Path | None = None
    prompts: tuple[Prompt[..., Any], ...] = ()
    resources: tuple[Resource[..., Any], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


@attrs.frozen(init=False)
class Recipes:
    """
    What was found at a target, before anything of it is compiled.

    Args:
        prompts:
            Prompts that come from no file of their own, such as those of a test.

        resources:
            Resources that come from no file of their own.

        by_file:
            What each file declares, in the order in which they were imported.

        root:
            The folder or file that was named, if it was one.

        read:
            All files that were read to import them: modules, and media.
    """

    by_file: tuple[Declarations, ...]
    root: Path | None
    read: tuple[Path, ...]

    def __init__(
        self,
        prompts: Iterable[Prompt[..., Any]] = (),
        resources: Iterable[Resource[..., Any]] = (),
        *,
        by_file: Iterable[Declarations] = (),
        root: Path | None = None,
        read: Iterable[Path] = (),
    ) -> None:
        loose = Declarations(None, tuple(prompts), tuple(resources))
        found = (loose, *by_file) if loose.prompts or loose.resources else tuple(by_file)
        self.__attrs_init__(found, root, tuple(read))

    @property
    def prompts(self) -> tuple[Prompt[..., Any], ...]:
        """
        Every prompt, once.
        """
        return tuple(dict.fromkeys(prompt for found in self.by_file for prompt in found.prompts))

    @property
    def resources(self) -> tuple[Resource[..., Any], ...]:
        """
        Every resource, once.
        """
        return tuple(dict.fromkeys(resource for found in self.by_file for resource in found.resources))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """
        Why recipes could not be imported, each reason once.
        """
        return tuple(dict.fromkeys(reason for found in self.by_file for reason in found.diagnostics))

    @property
    def files(self) -> tuple[Path, ...]:
        """
        The recipe files, in the order in which they were imported.
        """
        return tuple(found.file for found in self.by_file if found.file is not None)
