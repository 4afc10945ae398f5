"""Records of executed modules: which prompts they declared, and which files they read."""

import gc
import linecache
import os
import sys
import typing
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.machinery import BYTECODE_SUFFIXES, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from promptkit.declarations.prompts import Prompt, declared_prompts
from promptkit.files.reading import MAX_SOURCE_BYTES, Stamp, TooLargeError, file_stamp, read_regular_file
from promptkit.language.files import files_read
from promptkit.memory import return_free_memory

T = TypeVar("T")

#: The code of each file that this process has executed, by path, with the file's stamp before it was read.
_CODE: Final[dict[str, tuple[Stamp | None, CodeType]]] = {}


@contextmanager
def collecting(variable: ContextVar[list[T] | None], collected: list[T]) -> Iterator[None]:
    """Collect the items that are appended to *variable* within the ``with`` block."""
    token = variable.set(collected)
    try:
        yield
    finally:
        variable.reset(token)


class Execution(Struct, eq=False):
    """
    One executed module.

    Args:
        name:
            The module's full name.

        file:
            The path of its source; ``""`` if another loader executed it.

        module:
            The module; None if it failed.

        prompts:
            The prompts that it declared, without those of modules that it imported.

        read:
            The files that it read, without those of modules that it imported.

        stamp:
            The file's stamp when the module was executed.
    """

    name: str
    file: str = ""
    module: ModuleType | None = None
    prompts: list[Prompt[..., Any]] = field(default_factory=list)
    read: list[Path] = field(default_factory=list)
    stamp: Stamp | None = None


class Executions:
    """The executed modules of one package by name, and the prompts that they declared."""

    def __init__(self) -> None:
        self.by_name: dict[str, Execution] = {}
        self.prompts: dict[str, tuple[Prompt[..., Any], ...]] = {}

    def __iter__(self) -> Iterator[Execution]:
        return iter(list(self.by_name.values()))

    def module(self, name: str) -> ModuleType | None:
        """Return the module of that name; None unless it was executed without an error."""
        execution = self.by_name.get(name)
        return None if execution is None else execution.module

    def add(self, execution: Execution) -> None:
        """Record an execution. If a module was executed twice, the last successful one counts."""
        by_module: dict[str, list[Prompt[..., Any]]] = {}
        for prompt in execution.prompts:
            by_module.setdefault(prompt.__module__, []).append(prompt)
        for module, prompts in by_module.items():
            self.prompts[module] = (*self.prompts.get(module, ()), *prompts)
        if (earlier := self.by_name.get(execution.name)) is not None:
            execution.prompts[:0] = earlier.prompts
            execution.read[:0] = earlier.read
            execution.module = execution.module or earlier.module
        self.by_name[execution.name] = execution


class SourceLoader(SourceFileLoader):
    """
    Loads a module without using stale bytecode, and writes bytecode for the next process.

    Python compares only the source's size and modification time in whole seconds. But edits can follow each
    other faster, and tools can reset the time of a file.

    Args:
        name:
            The module.

        path:
            Its file.

        executions:
            Receives the module's record, if the module belongs to a package of recipes.
    """

    def __init__(self, name: str, path: str, executions: Executions | None = None) -> None:
        super().__init__(name, path)
        self._executions = executions
        self._stamp = file_stamp(path)

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the module, compiled again only if the file has changed."""
        stamp, code = _CODE.get(self.path, (None, None))
        if code is None or stamp != self._stamp:
            code = super().get_code(fullname)
            if code is not None:
                _CODE[self.path] = self._stamp, code
        return code

    def get_data(self, path: str) -> bytes:
        """
        Return the content of a file.

        Raises:
            OSError: For stale bytecode, as if it did not exist.

            ImportError: For a source that is too large.
        """
        # The source may have been edited while this process was writing the bytecode.
        is_bytecode = path.endswith(tuple(BYTECODE_SUFFIXES))
        if is_bytecode and (self.path in _CODE or self._is_stale(path)):
            raise FileNotFoundError(path)
        if not is_bytecode and path != self.path:
            return super().get_data(path)
        try:
            return read_regular_file(path, MAX_SOURCE_BYTES)
        except TooLargeError as error:
            if is_bytecode:
                raise
            msg = f"{error.strerror}, and is not a source file"
            raise ImportError(msg) from None

    def _is_stale(self, bytecode: str) -> bool:
        """Whether the source changed after its bytecode was written."""
        source, link = os.stat(self.path), os.lstat(self.path)
        changed = max(source.st_mtime_ns, source.st_ctime_ns, link.st_ctime_ns)
        return changed >= os.stat(bytecode).st_ctime_ns

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, and record its prompts and the files that it reads."""
        executions, self._executions = (
            self._executions,
            None,
        )  # released, because the loader lives as long as the module
        if executions is None:
            super().exec_module(module)
            return
        execution = Execution(self.name, self.path, stamp=self._stamp)
        try:
            with collecting(declared_prompts, execution.prompts), collecting(files_read, execution.read):
                super().exec_module(module)
            execution.module = module
        finally:
            executions.add(execution)


#: Caches of parts of recipes: the modules, if imported, and their functions that clear them.
_CACHES: Final = {
    "promptkit.types.pydantic": "forget_types",
    "promptkit.types.structuring": "forget_types",
    "promptkit.errors.sources": "forget_sources",
    "promptkit.fragments.text": "clear_cache",
}

#: The same for registered types, which old versions of recipes may need.
_TYPES: Final = {"promptkit.types.scalars": "forget_replaced"}

#: Prefixes of `linecache` entries for functions that libraries have generated for a class.
_GENERATED: Final = ("<attrs generated ", "<cattrs generated ")


def freeze() -> None:
    """Exclude all current objects from garbage collection until the next `collect`."""
    gc.freeze()


def collect() -> None:
    """Free unused old versions. No other thread runs meanwhile."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    return_free_memory()


def forget_parts(*, all_are_new: bool) -> None:
    """
    Clear the caches of parts of replaced recipes, after a reload.

    Args:
        all_are_new:
            Whether no old version of a file is served.
    """
    for module, function in (_CACHES | _TYPES if all_are_new else _CACHES).items():
        if (forget := getattr(sys.modules.get(module), function, None)) is not None:
            forget()
    # `typing` caches `Annotated[...]` and `Optional[...]`, which refer to classes and functions of recipes.
    for clear in getattr(typing, "_cleanups", ()):
        clear()


def forget_modules(names: Collection[str]) -> None:
    """Clear the caches for modules that are no longer imported, by their names."""
    for file in [file for file in list(linecache.cache) if file.startswith(_GENERATED)]:
        parts = file.rpartition(" ")[2].split(".")  # the module, and the class in it
        if any(".".join(parts[:end]) in names for end in range(1, len(parts))):
            linecache.cache.pop(file, None)
    overloads: dict[str, Any] = getattr(typing, "_overload_registry", {})
    for name in names:
        overloads.pop(name, None)
