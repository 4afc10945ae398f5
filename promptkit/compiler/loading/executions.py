"""Executions: what modules of a package did when they were executed, and what else depends on them."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from promptkit.compiler.prompts import Prompt

__all__ = ["Execution", "Executions", "Imports", "collecting", "imports_in"]

T = TypeVar("T")

#: Code that names one of these may import modules that no import statement names.
_IMPORTING: Final = frozenset(
    {
        *("__import__", "eval", "exec", "import_module", "iter_modules", "modules", "module_from_spec"),
        *("resolve_name", "run_module", "run_path", "walk_packages"),
    }
)

#: Code that names one of these may read files that it does not tell of.
_READING: Final = frozenset(
    {
        *("exists", "files", "getsource", "glob", "iglob", "is_dir", "is_file", "iterdir", "listdir", "open"),
        *("read_bytes", "read_text", "rglob", "scandir", "stat", "walk"),
    }
)


@contextmanager
def collecting(variable: ContextVar[list[T] | None], collected: list[T]) -> Iterator[None]:
    """Collect in a list what is appended to *variable* within the ``with`` block."""
    token = variable.set(collected)
    try:
        yield
    finally:
        variable.reset(token)


class Imports(Struct, frozen=True):
    """
    What a module imports, as far as its code tells.

    Args:
        names:
            The modules of the package that it names, whether they exist or not, and those that hold them.

        packages:
            The modules that it holds as objects, and so all that is below them.

        others:
            Whether it may import further modules.

        reads:
            Whether it may read files that it does not tell of.
    """

    names: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    others: bool = False
    reads: bool = False


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
    known_imports: Imports | None = None

    @property
    def is_package(self) -> bool:
        """Whether modules lie below it."""
        return Path(self.file).name == "__init__.py"

    def imports(self, root: str) -> Imports:
        """Return what it imports; *root* is the package beside whose modules it may import any."""
        if self.known_imports is None:
            if self.code is None:
                return Imports(others=True, reads=True)
            package = self.name if self.is_package else self.name.rpartition(".")[0]
            self.known_imports, self.code = imports_in(self.code, package, root), None
        return self.known_imports


class Executions:
    """The modules of one package that were executed, by name, and the prompts that they made."""

    def __init__(self) -> None:
        self.by_name: dict[str, Execution] = {}
        self.made: dict[str, list[Prompt[..., Any]]] = {}

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
        for prompt in execution.made:
            self.made.setdefault(prompt.__module__, []).append(prompt)
        if (earlier := self.by_name.get(execution.name)) is not None:
            execution.made[:0] = earlier.made
            execution.read[:0] = earlier.read
            execution.module = execution.module or earlier.module
        self.by_name[execution.name] = execution

    def find_imports(self, root: str) -> None:
        """Look at all code now, which `affected` would have to do later."""
        for execution in self:
            execution.imports(root)

    def affected(self, changed: Iterable[str], root: str, *, files: bool) -> set[str]:
        """
        Return the names of all modules whose import may go otherwise now.

        Args:
            changed:
                The names of modules that are others now, that are new or that are gone.

            root:
                The name of the package.

            files:
                Whether other files have changed, too.
        """
        by_name, by_package = self._importers(root)
        dynamic = (found.name for found in self if self._is_dynamic(found, root, files=files))
        found, ahead = set[str](), [*changed, *dynamic]
        below = self._below()
        while ahead:
            name = ahead.pop()
            if name in found:
                continue
            found.add(name)
            ahead += by_name.get(name, ())
            ahead += below.get(name, ()) if name != root else ()
            for package in _with_parents(name):
                ahead += by_package.get(package, ())
        return found

    def _is_dynamic(self, execution: Execution, root: str, *, files: bool) -> bool:
        imports = execution.imports(root)
        return imports.others or (files and imports.reads) or execution.module is None

    def _importers(self, root: str) -> tuple[Mapping[str, list[str]], Mapping[str, list[str]]]:
        by_name: dict[str, list[str]] = {}
        by_package: dict[str, list[str]] = {}
        for execution in self:
            imports = execution.imports(root)
            for name in imports.names:
                by_name.setdefault(name, []).append(execution.name)
            for name in imports.packages:
                by_package.setdefault(name, []).append(execution.name)
        return by_name, by_package

    def _below(self) -> Mapping[str, list[str]]:
        """The modules below each package: when it is executed anew, it has none of them yet."""
        below: dict[str, list[str]] = {}
        for execution in self:
            for package in _with_parents(execution.name)[1:]:
                below.setdefault(package, []).append(execution.name)
        return below


def imports_in(code: CodeType, package: str, root: str) -> Imports:
    """
    Return what the code of a module imports, the code of its functions included.

    Args:
        code:
            The code.

        package:
            The package that relative imports go out from.

        root:
            The package of recipes, whose modules can be imported without its name, too.
    """
    top = root.partition(".")[0]
    names, packages, mentioned = set[str](), set[str](), set[str]()
    for part in _parts(code):
        mentioned.update(part.co_names)
        for level, name, taken in _statements(part):
            for base, held in _named(level, name, taken, package, root):
                if base.partition(".")[0] == top:  # nothing else is looked at again
                    names.update(_with_parents(base))
                    packages.add(held)
    return Imports(
        frozenset(names),
        frozenset(packages),
        others=not mentioned.isdisjoint(_IMPORTING),
        reads=not mentioned.isdisjoint(_READING),
    )


def _parts(code: CodeType) -> Iterator[CodeType]:
    ahead = [code]
    while ahead:
        part = ahead.pop()
        yield part
        ahead += (constant for constant in part.co_consts if isinstance(constant, CodeType))


def _statements(code: CodeType) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """The import statements: their level, the module, and what is taken of it."""
    from modulefinder import ModuleFinder

    # Each import statement has a name, and None or a tuple among the constants. Most functions have not;
    # to look at the bytecode of all would keep a copy of it in memory.
    if not code.co_names or not any(one is None or type(one) is tuple for one in code.co_consts):
        return
    for what, found in ModuleFinder.scan_opcodes(_NO_FINDER, code):
        if what == "relative_import":
            level, taken, name = found
            yield level, name, tuple(taken or ())
        elif what == "absolute_import":
            taken, name = found
            yield 0, name, tuple(taken or ())


#: `ModuleFinder.scan_opcodes` makes no use of its finder.
_NO_FINDER: Final[Any] = None


def _named(
    level: int, name: str, taken: tuple[str, ...], package: str, root: str
) -> Iterator[tuple[str, str]]:
    """The modules that a statement may name, each with the one that it holds as an object."""
    if level:
        parts = package.split(".")
        above = ".".join(parts[: len(parts) - level + 1])
        bases = {f"{above}.{name}" if name else above: above}
    else:
        first = name.partition(".")[0]
        bases = {name: first}
        if first != "promptkit" and first not in sys.stdlib_module_names:  # these are never a sibling
            bases[f"{root}.{name}"] = f"{root}.{first}"
    for base, outermost in bases.items():
        if not taken:  # ``import a.b`` holds the package a; ``import a.b as c`` is spelled alike
            yield base, outermost
        for one in taken:
            yield base, base if one == "*" else f"{base}.{one}"


def _with_parents(name: str) -> list[str]:
    """The name, and those of all packages that it is in."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
