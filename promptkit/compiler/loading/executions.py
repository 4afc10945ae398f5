"""
Executions: what the modules of a package did when they were executed, and which depend on which others.

A module may depend on each module whose name its code mentions, which is at least what it imports. Code that
may compute the names of what it imports is executed again by every load.
"""

import os
import sys
from collections.abc import Container, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.machinery import BYTECODE_SUFFIXES, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from promptkit.compiler.prompts import Prompt, declared_prompts
from promptkit.files.regular import Stamp, file_stamp
from promptkit.language.files import files_read

__all__ = ["Execution", "Executions", "SourceLoader", "collecting"]

T = TypeVar("T")

#: Code that mentions one of these may import modules whose names it does not mention.
_COMPUTING: Final = frozenset(
    {
        *("__import__", "eval", "exec", "import_module", "iter_modules", "modules", "module_from_spec"),
        *("glob", "iglob", "iterdir", "listdir", "rglob", "scandir"),  # what finds files may import them
        *("resolve_name", "run_module", "run_path", "walk_packages"),
    }
)

#: The files that this process has executed. Their bytecode may be of a version that was edited meanwhile.
_EXECUTED: Final[set[str]] = set()

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
            Its code, until `look` has looked at it; None if that is not known.

        names:
            All names that its code mentions, each once, once `look` has looked at it.

        is_open:
            Whether it may import or make anything, as far as is known.

        reads:
            Whether it may read files that it does not tell of.

        is_maker:
            Whether it made prompts of functions of other modules.
    """

    name: str
    file: str = ""
    module: ModuleType | None = None
    made: list[Prompt[..., Any]] = field(default_factory=list)
    read: list[Path] = field(default_factory=list)
    stamp: Stamp | None = None
    code: CodeType | None = None
    names: tuple[str, ...] = ()
    is_open: bool = True
    reads: bool = False
    is_maker: bool = False

    def look(self) -> None:
        """Find out what may change what it does when it is executed again, unless that is known."""
        if self.code is not None:
            self.names, self.code = tuple(_names_in(self.code)), None
            self.is_open = self.module is None or not _COMPUTING.isdisjoint(self.names)
            self.reads = not _READING.isdisjoint(self.names)
            self.is_maker = any(prompt.__module__ != self.name for prompt in self.made)

    def may_import(self, names: AbstractSet[str], packages: AbstractSet[str]) -> bool:
        """Return whether it may import one of *names*, or all of one of *packages*: their last parts."""
        if not names.isdisjoint(self.names):
            return True
        return "*" in self.names and not packages.isdisjoint(self.names)


class Executions:
    """The modules of one package that were executed, by name, and the prompts that they made."""

    def __init__(self) -> None:
        self.by_name: dict[str, Execution] = {}
        self.made: dict[str, tuple[Prompt[..., Any], ...]] = {}

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

    def affected(self, changed: Iterable[str], package: str, folder: str) -> set[str] | None:
        """
        Return the names of all modules whose import may go otherwise now; None if those may be all.

        Args:
            changed:
                The paths of the files that are others now, that are new or that are gone.

            package:
                The name of the package.

            folder:
                Its folder.
        """
        changed, executed = set(changed), list(self)
        for one in executed:
            one.look()
        by_file = {one.file: one.name for one in executed}
        names = [by_file.get(path) or _module_at(path, package, folder) for path in changed]
        packages = {name for file, name in by_file.items() if file.endswith("__init__.py")}
        has_unknown = not by_file.keys() >= changed  # what was not executed may have been read
        found = {
            one.name
            for one in executed
            if one.is_open
            or (one.reads and has_unknown)
            or (one.read and not changed.isdisjoint(map(str, one.read)))
        }
        found.update(name for name in names if name is not None)
        ahead = found
        while ahead:  # those that import these, then those that import them, and so on
            before = [one for one in executed if one.name in ahead]
            left = [one for one in executed if one.name not in found]
            these = _last_parts(ahead)
            ahead = {one.name for one in left if one.may_import(*these)}
            # What they import may be imported no more, and then other modules' prompts that it made are gone.
            makers = {one.name: _last_parts([one.name]) for one in left if one.is_maker}
            ahead.update(
                name for name, parts in makers.items() if any(one.may_import(*parts) for one in before)
            )
            found |= ahead
        # When a package is executed anew, it has none of the modules below it yet.
        return None if None in names or not found.isdisjoint(packages) else found

    def without(self, names: Container[str]) -> "Executions":
        """Return all but those of the modules called *names*."""
        others = Executions()
        others.by_name = {name: one for name, one in self.by_name.items() if name not in names}
        others.made = dict(self.made)
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

        executions:
            Where to note what the module does, if it is one of a package of recipes.
    """

    def __init__(self, name: str, path: str, executions: Executions | None = None) -> None:
        super().__init__(name, path)
        self._executions = executions
        self._execution = None if executions is None else Execution(name, path, stamp=file_stamp(path))

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the module, and note it for what is about to be executed."""
        code = super().get_code(fullname)
        _EXECUTED.add(self.path)
        if self._execution is not None:
            self._execution.code = code
        return code

    def get_data(self, path: str) -> bytes:
        """Return the content of a file. Raises `OSError` for stale bytecode, as if it did not exist."""
        if path.endswith(tuple(BYTECODE_SUFFIXES)) and (self.path in _EXECUTED or self._is_stale(path)):
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
            super().exec_module(module)
        else:
            self._execute(module, self._executions, self._execution)  # a recipe may import it

    def _execute(self, module: ModuleType, executions: Executions, execution: Execution) -> None:
        try:
            with collecting(declared_prompts, execution.made), collecting(files_read, execution.read):
                super().exec_module(module)
            execution.module = module
        finally:
            self._executions = self._execution = None  # the loader lives as long as the module
            executions.add(execution)


def _last_parts(names: Iterable[str]) -> tuple[set[str], set[str]]:
    """The last parts of modules' names, and of the names of the packages around them."""
    parts = [name.rpartition(".") for name in names]
    return {own for _, _, own in parts}, {"", *(package.rpartition(".")[2] for package, _, _ in parts)}


def _module_at(path: str, package: str, above: str) -> str | None:
    """The module that a file makes or unmakes; None if it makes or unmakes a package, or is no module."""
    folder, file = os.path.split(path)
    parts = os.path.relpath(folder, above).split(os.sep)
    around = package if parts == ["."] else ".".join((package, *parts))
    is_known = file != "__init__.py" and around in sys.modules and os.path.isdir(folder)
    return f"{around}.{file[:-3]}" if is_known and file.endswith(".py") else None


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
