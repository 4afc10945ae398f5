"""
Executions: what the modules of a package did when they were executed, and which depend on which others.

A module may depend on each module whose name its code mentions, which is at least what it imports. Code that
may compute the names of what it imports is executed again by every load.
"""

import os
import sys
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.machinery import BYTECODE_SUFFIXES, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from promptkit.compiler.prompts import Prompt, declared_prompts
from promptkit.errors.interruptions import call_interruptible, shielded
from promptkit.errors.regular_files import Stamp, file_stamp
from promptkit.language.files import files_read

__all__ = ["Execution", "Executions", "ImportGraph", "SourceLoader", "collecting"]

T = TypeVar("T")

#: Code that mentions one of these may import modules whose names it does not mention.
_COMPUTING: Final = frozenset(
    {
        *("__import__", "eval", "exec", "import_module", "iter_modules", "modules", "module_from_spec"),
        *("glob", "iglob", "iterdir", "listdir", "rglob", "scandir"),  # what finds files may import them
        *("resolve_name", "run_module", "run_path", "walk_packages"),
    }
)

#: Code that mentions one of these may read files that it does not tell of.
_READING: Final = frozenset({"files", "getsource", "open", "read_bytes", "read_text"})


@contextmanager
def collecting(variable: ContextVar[list[T] | None], collected: list[T]) -> Iterator[None]:
    """Collect in a list what is appended to *variable* within the ``with`` block."""
    token = variable.set(collected)
    try:
        yield
    finally:
        variable.reset(token)


class Execution(Struct, eq=False):
    """
    One module that was executed.

    Args:
        name:
            Its full name.

        file:
            The path of its source; ``""`` if it was not executed by our own loader.

        module:
            The module; None if it failed.

        made:
            The prompts that were made meanwhile, except by modules that it imported.

        read:
            The files that were read meanwhile, in the same way.

        stamp:
            That of the file when it was executed.

        code:
            Its code, until `mentioned` has looked at it; None if that is not known.
    """

    name: str
    file: str = ""
    module: ModuleType | None = None
    made: list[Prompt[..., Any]] = field(default_factory=list)
    read: list[Path] = field(default_factory=list)
    stamp: Stamp | None = None
    code: CodeType | None = None
    known_names: tuple[str, ...] | None = None

    def mentioned(self) -> tuple[str, ...] | None:
        """Return all names that its code mentions, each once; None if that is not known."""
        if self.known_names is None and self.code is not None:
            self.known_names, self.code = tuple(_names_in(self.code)), None
        return self.known_names


class Executions:
    """
    The modules of one package that were executed, by name, and the prompts that they made.

    Attributes:
        count:
            How many were added, those included that were executed twice.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, Execution] = {}
        self.made: dict[str, tuple[Prompt[..., Any], ...]] = {}
        self.count = 0

    def __iter__(self) -> Iterator[Execution]:
        return iter(list(self.by_name.values()))

    def module(self, name: str) -> ModuleType | None:
        """Return the module of that name; None if none was executed without an error."""
        execution = self.by_name.get(name)
        return None if execution is None else execution.module

    def add(self, execution: Execution) -> None:
        """Note another execution. If a module was executed twice, the last that ended well counts."""
        made: dict[str, list[Prompt[..., Any]]] = {}
        for prompt in execution.made:
            made.setdefault(prompt.__module__, []).append(prompt)
        for module, prompts in made.items():
            self.made[module] = (*self.made.get(module, ()), *prompts)
        if (earlier := self.by_name.get(execution.name)) is not None:
            execution.made[:0] = earlier.made
            execution.read[:0] = earlier.read
            execution.module = execution.module or earlier.module
        self.by_name[execution.name] = execution
        self.count += 1

    def without(self, names: Container[str]) -> "Executions":
        """Return all but those of the modules called *names*."""
        others = Executions()
        others.by_name = {name: one for name, one in self.by_name.items() if name not in names}
        others.made, others.count = dict(self.made), len(others.by_name)
        gone = {prompt for name, one in self.by_name.items() if name in names for prompt in one.made}
        for module in {prompt.__module__ for prompt in gone}:
            others.made[module] = tuple(prompt for prompt in self.made[module] if prompt not in gone)
        return others


class SourceLoader(SourceFileLoader):
    """
    Loads a module without using stale bytecode, and writes new bytecode for the next process.

    Python compares the whole second in which the source was written, and its size. But edits may follow
    each other faster, and tools may reset the time of a file.

    Args:
        name:
            The module.

        path:
            Its file.

        again:
            Whether it was imported before, so that its bytecode may be stale.

        executions:
            Where to note what the module does, if it is one of a package of recipes.
    """

    def __init__(self, name: str, path: str, *, again: bool, executions: Executions | None = None) -> None:
        super().__init__(name, path)
        self._again = again
        self._executions = executions
        self._execution = None if executions is None else Execution(name, path, stamp=file_stamp(path))

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the module, and note it for what is about to be executed."""
        code = super().get_code(fullname)
        if self._execution is not None:
            self._execution.code = code
        return code

    def get_data(self, path: str) -> bytes:
        """Return the content of a file. Raises `OSError` for stale bytecode, as if it did not exist."""
        if path.endswith(tuple(BYTECODE_SUFFIXES)) and (self._again or self._is_stale(path)):
            raise FileNotFoundError(path)
        return super().get_data(path)

    def _is_stale(self, bytecode: str) -> bool:
        """Whether the source changed after its bytecode was written."""
        source, link = os.stat(self.path), os.lstat(self.path)
        changed = max(source.st_mtime_ns, source.st_ctime_ns, link.st_ctime_ns)
        return changed >= os.stat(bytecode).st_ctime_ns

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, and note what it did."""
        if self._executions is None or self._execution is None:
            call_interruptible(super().exec_module, module)
        else:
            shielded(self._execute, module, self._executions, self._execution)  # a recipe may import it

    def _execute(self, module: ModuleType, executions: Executions, execution: Execution) -> None:
        try:
            with collecting(declared_prompts, execution.made), collecting(files_read, execution.read):
                call_interruptible(super().exec_module, module)
            execution.module = module
        finally:
            self._executions = self._execution = None  # the loader lives as long as the module
            executions.add(execution)


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
        self._package, self._folder = package, str(folder)
        self._by_file = {execution.file: execution.name for execution in executions}
        self._mentioning: dict[str, list[str]] = {}
        self._taking_all: dict[str, list[str]] = {}
        self._makers: set[str] = set()
        self._always: list[str] = []
        self._readers: dict[str, list[str]] = {}
        self._reading: list[str] = []
        for execution in executions:
            name, mentioned = execution.name, execution.mentioned()
            for path in execution.read:
                self._readers.setdefault(str(path), []).append(name)
            if not _READING.isdisjoint(mentioned or ()):
                self._reading.append(name)
            for one in mentioned or ():
                self._mentioning.setdefault(one, []).append(name)
                if "*" in (mentioned or ()):
                    self._taking_all.setdefault(one, []).append(name)
            if any(prompt.__module__ != name for prompt in execution.made):
                self._makers.add(name)
            if mentioned is None or execution.module is None or not _COMPUTING.isdisjoint(mentioned):
                self._always.append(name)

    def affected(self, changed: Iterable[str]) -> set[str] | None:
        """
        Return the names of all modules whose import may go otherwise now; None if those may be all.

        Args:
            changed:
                The paths of the files that are others now, that are new or that are gone.
        """
        changed = list(changed)
        names = [self._by_file.get(path) or self._name_of(path) for path in changed]
        readers = [name for path in changed for name in self._readers.get(path, ())]
        if not self._by_file.keys() >= set(changed):  # a file that was not executed may have been read
            readers += self._reading
        ahead = [*self._always, *readers, *(name for name in names if name is not None)]
        found = self._dependents(ahead, set())
        # What these import may be imported no more, and then other modules' prompts that it made are gone.
        while ahead := [name for name in self._makers - found if not found.isdisjoint(self._importers(name))]:
            self._dependents(ahead, found)
        # When a package is executed anew, it has none of the modules below it yet.
        packages = {name for file, name in self._by_file.items() if file.endswith("__init__.py")}
        return None if None in names or not found.isdisjoint(packages) else found

    def _dependents(self, ahead: list[str], found: set[str]) -> set[str]:
        """Modules, and all that may depend on them, added to what is *found*."""
        while ahead:
            if (name := ahead.pop()) not in found:
                found.add(name)
                ahead += self._importers(name)
        return found

    def _importers(self, name: str) -> list[str]:
        """The modules that may import one: that mention it, or take all that the package around it holds."""
        package, _, own = name.rpartition(".")
        around = self._taking_all.get(package.rpartition(".")[2], [])
        return [*self._mentioning.get(own, ()), *around, *self._taking_all.get("", ())]

    def _name_of(self, path: str) -> str | None:
        """The module that a file makes or unmakes; None if it makes or unmakes a package, or is no module."""
        folder, file = os.path.split(path)
        parts = os.path.relpath(folder, self._folder).split(os.sep)
        package = self._package if parts == ["."] else ".".join((self._package, *parts))
        is_known = file != "__init__.py" and package in sys.modules and os.path.isdir(folder)
        return f"{package}.{file[:-3]}" if is_known and file.endswith(".py") else None


def _names_in(code: CodeType) -> set[str]:
    """The names that code mentions: of modules, of what it takes of them, of attributes and of globals."""
    names = set[str]()
    ahead = [code]
    while ahead:
        part = ahead.pop()
        for name in part.co_names:
            names.update(name.split("."))
        for constant in part.co_consts:
            if isinstance(constant, CodeType):
                ahead.append(constant)
            elif isinstance(constant, tuple):  # what an import statement takes of a module is one
                names.update(one for one in constant if isinstance(one, str))
    return names
