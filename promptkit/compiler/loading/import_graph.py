"""Which modules of a package depend on which others, and on which files."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from promptkit.compiler.loading.code_imports import with_parents
from promptkit.compiler.loading.executions import Executions

__all__ = ["ImportGraph"]


class ImportGraph:
    """
    What was known of a package's modules when it was made. It takes time to make, and none to be asked.

    Args:
        executions:
            How the modules were executed.

        package:
            The name of the package.

        folder:
            Its folder.
    """

    def __init__(self, executions: Executions, package: str, folder: Path) -> None:
        self.count = executions.count
        self._package, self._folder = package, folder
        self._by_file: dict[str, str] = {}
        self._makers: set[str] = set()
        self._readers: dict[str, list[str]] = {}
        self._importers: dict[str, list[str]] = {}
        self._holders: dict[str, list[str]] = {}
        self._below: dict[str, list[str]] = {}
        self._dynamic: list[str] = []
        self._reading: list[str] = []
        for execution in executions:
            name, imports = execution.name, execution.imports(package)
            self._by_file[execution.file] = name
            _note(self._readers, map(str, execution.read), name)
            _note(self._importers, imports.names, name)
            _note(self._holders, imports.packages, name)
            _note(self._below, with_parents(name)[1:], name)
            if any(prompt.__module__ != name for prompt in execution.made):
                self._makers.add(name)
            if imports.others or execution.module is None:
                self._dynamic.append(name)
            elif imports.reads:
                self._reading.append(name)

    def affected(self, changed: Iterable[str]) -> set[str] | None:
        """
        Return the names of all modules whose import may go otherwise now; None if that cannot be told.

        Args:
            changed:
                The paths of the files that are others now, that are new or that are gone.
        """
        names, others = set[str](), False
        for path in changed:
            names.update(reading := self._readers.get(path, ()))
            if path in self._by_file:
                names.add(self._by_file[path])
            elif path.endswith(".py") and path.startswith(os.path.join(str(self._folder), "")):
                names.update(self._names_of(path))
                others = True
            elif reading:
                others = True
            else:
                return None
        found = self._dependents([*names, *self._dynamic, *(self._reading if others else ())], set())
        # What only these import may be imported no more, and other modules' prompts that it made are gone.
        while ahead := [name for name in self._makers - found if self._is_only_of(found, name)]:
            self._dependents(ahead, found)
        return found

    def _is_only_of(self, modules: set[str], name: str) -> bool:
        """Whether a module is imported, and by none but *modules*."""
        importers = {*self._importers.get(name, ()), *self._holders.get(name, ())}
        return bool(importers) and importers <= modules

    def _dependents(self, ahead: list[str], found: set[str]) -> set[str]:
        """Modules, and all that depend on them, added to what is *found*."""
        while ahead:
            if (name := ahead.pop()) in found:
                continue
            found.add(name)
            ahead += self._importers.get(name, ())
            # When a package is executed anew, it has none of the modules below it yet.
            ahead += self._below.get(name, ()) if name != self._package else ()
            for package in with_parents(name):
                ahead += self._holders.get(package, ())
        return found

    def _names_of(self, path: str) -> set[str]:
        """The modules that a file makes or unmakes: with it, a folder becomes a package or is one no more."""
        place = Path(path).with_suffix("")
        if place.name == "__init__":
            place = place.parent
        parts = place.relative_to(self._folder).parts
        names = {".".join((self._package, *parts))}
        for count in range(1, len(parts)):
            above = ".".join((self._package, *parts[:count]))
            if above not in sys.modules or not self._folder.joinpath(*parts[:count]).is_dir():
                names.add(above)
        return names


def _note(lists: dict[str, list[str]], keys: Iterable[str], name: str) -> None:
    for key in keys:
        lists.setdefault(key, []).append(name)
