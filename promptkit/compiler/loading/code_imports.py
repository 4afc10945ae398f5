"""What a module imports, and whether it may read files, as far as its code tells."""

import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any, Final

from msgspec import Struct

__all__ = ["Imports", "imports_in", "with_parents"]

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
                    names.update(with_parents(base))
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


def with_parents(name: str) -> list[str]:
    """Return the name, and those of all packages that it is in."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
