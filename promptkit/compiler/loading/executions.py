"""Executions: what the modules of a package did when they were executed."""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field

from promptkit.compiler.prompts import Prompt

if TYPE_CHECKING:
    from promptkit.compiler.loading.code_imports import Imports

__all__ = ["Execution", "Executions", "collecting"]

T = TypeVar("T")


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

        code:
            Its code, until `imports` has looked at it; None if that is not known.
    """

    name: str
    file: str = ""
    module: ModuleType | None = None
    made: list[Prompt[..., Any]] = field(default_factory=list)
    read: list[Path] = field(default_factory=list)
    code: CodeType | None = None
    known_imports: "Imports | None" = None

    @property
    def is_package(self) -> bool:
        """Whether modules lie below it."""
        return Path(self.file).name == "__init__.py"

    def imports(self, root: str) -> "Imports":
        """Return what it imports; *root* is the package beside whose modules it may import any."""
        from promptkit.compiler.loading.code_imports import Imports, imports_in  # only for a reload

        if self.known_imports is None:
            if self.code is None:
                return Imports(others=True, reads=True)
            package = self.name if self.is_package else self.name.rpartition(".")[0]
            self.known_imports, self.code = imports_in(self.code, package, root), None
        return self.known_imports


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

    def __contains__(self, name: object) -> bool:
        """Whether the module was executed without an error."""
        return self.module(name) is not None

    def __iter__(self) -> Iterator[Execution]:
        return iter(list(self.by_name.values()))

    def module(self, name: object) -> ModuleType | None:
        """Return the module of that name; None if none was executed without an error."""
        execution = self.by_name.get(name)  # type: ignore[call-overload]  # any name may be asked for
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
