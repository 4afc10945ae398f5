"""
How promptkit is laid out, in figures.

`python tests/structure.py` prints them; `tests/test_structure.py` keeps those that have a bound.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

import promptkit

PACKAGE: Final = Path(promptkit.__file__).parent

#: The layers, lowest first. Those in one row do not import each other.
ORDER: Final = (
    "files",
    "errors|version",
    "language",
    "conversion",
    "catalog|fragments",
    "compiler|protocol|workspace",
    "server",
    "exports|transports",
    "batch|testing",
    "bridges|preview",
    "cli",
    "__main__|asgi",
)
RANK: Final = {name: rank for rank, row in enumerate(ORDER) for name in row.split("|")}

#: What users import from, so that all that these export is documented whole.
EXPORTING: Final = (
    *("promptkit", "promptkit.fragments", "promptkit.errors", "promptkit.exports", "promptkit.workspace"),
    *("promptkit.batch", "promptkit.bridges.inspect_ai", "promptkit.bridges.langchain"),
    *("promptkit.bridges.langfuse", "promptkit.bridges.mlflow", "promptkit.bridges.templates"),
)

#: Classes that decorators make, and no author calls: their parameters are not the author's to fill.
MADE_BY_DECORATORS: Final = {"promptkit.Prompt", "promptkit.Resource", "promptkit.Skill"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Figure:
    """
    One figure, what it may be at most, and the places that count.
    """

    name: str
    found: int
    at_most: int
    places: list[str] = field(default_factory=list)

    @property
    def kept(self) -> bool:
        """
        Whether the figure is within its bound.
        """
        return self.found <= self.at_most


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


#: Each module of the package by its dotted name.
MODULES: Final = {_module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree_of(module: str) -> ast.Module:
    """
    What a module of the package says.
    """
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def layer(module: str) -> str:
    """
    The layer that a module belongs to; the package's own `__init__` has none.
    """
    return module.partition(".")[2].partition(".")[0]


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _nodes(node: ast.AST, *, deep: bool) -> Iterator[ast.AST]:
    """All nodes below one; unless *deep*, only those that run when the module is imported."""
    for child in ast.iter_child_nodes(node):
        yield child
        if deep or not (isinstance(child, Function | ast.Lambda) or _is_for_types(child)):
            yield from _nodes(child, deep=deep)


def imported(module: str, *, deep: bool) -> set[str]:
    """
    The modules of promptkit that a module imports; with *deep*, also inside functions and for types.
    """
    found: set[str] = set()
    for node in _nodes(tree_of(module), deep=deep):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            is_root = node.module == "promptkit"  # whose names are no modules: they are imported lazily
            found.update(name if is_root or name in MODULES else node.module or "" for name in names)
    return {name for name in found if name.partition(".")[0] == "promptkit" and name != module}


def upward_imports() -> list[str]:
    """
    Imports of a layer that is not below the importing one, also inside functions.
    """
    return [f"{module} -> {other}" for module in MODULES for other in imports_from_above(module)]


def imports_from_above(module: str) -> list[str]:
    """
    What one module imports from layers that are not below its own.
    """
    own = layer(module)
    others = (other for other in sorted(imported(module, deep=True)) if own and layer(other) not in ("", own))
    return [other for other in others if RANK.get(layer(other), len(ORDER)) >= RANK[own]]


def import_cycles() -> list[str]:
    """
    Cycles of imports among the entries of one folder, a package counting with all that is below it.
    """
    arrows: dict[str, dict[str, set[str]]] = {}
    for module in MODULES:
        for other in imported(module, deep=False):
            folder, entry, target = _where_they_part(module, other)
            if entry and target:
                arrows.setdefault(folder, {}).setdefault(entry, set()).add(target)
    return [f"{folder}: {' <-> '.join(one)}" for folder, graph in arrows.items() for one in cycles(graph)]


def circles() -> list[str]:
    """
    Modules that need each other, also by imports inside functions and for types.
    """
    graph = {module: imported(module, deep=True) - {"promptkit"} for module in MODULES}
    return [" <-> ".join(one) for one in cycles(graph)]


def length(node: ast.stmt | ast.expr | None) -> int:
    """
    How many lines something takes.
    """
    return 0 if node is None else (node.end_lineno or 0) - node.lineno + 1


def _where_they_part(module: str, other: str) -> tuple[str, str, str]:
    """The innermost folder that holds both modules, and the entry of it that leads to each."""
    names, others = module.split("."), other.split(".")
    depth = 0
    while names[depth : depth + 1] == others[depth : depth + 1] != []:
        depth += 1
    return ".".join(names[:depth]), ".".join(names[depth : depth + 1]), ".".join(others[depth : depth + 1])


def cycles(graph: dict[str, set[str]]) -> list[tuple[str, ...]]:
    """
    The sets of nodes that all reach each other.
    """
    reached = {node: _reachable(graph, node) for node in graph}
    found = {
        tuple(sorted(end for end in ends if node in reached.get(end, ()))) for node, ends in reached.items()
    }
    return sorted(found - {()})


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    ahead = [start]
    while ahead:
        new = graph.get(ahead.pop(), set()) - found
        found |= new
        ahead.extend(new)
    return found


def lines_of(module: str) -> int:
    """
    How many lines a module has.
    """
    return len(MODULES[module].read_text(encoding="utf-8").splitlines())


def definitions(node: ast.AST, *, private: bool = False) -> Iterator[tuple[Definition, bool]]:
    """
    All functions, methods and classes below a node, and whether each, or a class around it, is private.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            hidden = private or (child.name.startswith("_") and not child.name.endswith("__"))
            yield child, hidden
            yield from definitions(child, private=hidden and isinstance(child, ast.ClassDef))
        else:
            yield from definitions(child, private=private)


def docstring(node: Definition | ast.Module) -> ast.expr | None:
    """
    The string that documents a module, a class or a function.
    """
    return node.body[0].value if ast.get_docstring(node) is not None else None  # type: ignore[attr-defined]


def incomplete_docstrings() -> list[str]:
    """
    What is exported without a sentence on what it is, or with a parameter that Args does not name.

    A class may leave to its bases what it takes over from them.
    """
    return [
        f"{module}.{name}: {missing}"
        for module in EXPORTING
        for name in import_module(module).__all__
        for missing in _missing(f"{module}.{name}", getattr(import_module(module), name))
    ]


def _missing(name: str, exported: Any) -> Iterator[str]:
    if not (inspect.isclass(exported) or inspect.isfunction(exported)):
        return  # a version, and an alias of types, have no docstring of their own
    if not re.match(r"[A-Z`].*[.:]$", _text(exported).partition("\n\n")[0], re.DOTALL):
        yield "no sentence says what it is"
    if name in MADE_BY_DECORATORS:
        return
    bases = inspect.getmro(exported) if inspect.isclass(exported) else [exported]
    described = {parameter for base in bases for parameter in _described(base)}
    for parameter in _parameters(exported):
        if parameter not in described:
            yield f"Args does not name {parameter!r}"


def _text(documented: Any) -> str:
    return inspect.cleandoc(documented.__doc__ or "")


def _described(documented: Any) -> list[str]:
    section = re.search(r"^Args:\n((?:[ ]+.*\n?|\n)*)", _text(documented), re.MULTILINE)
    return re.findall(r"^ {4}\**(\w+)(?: \(.*\))?:", section[1], re.MULTILINE) if section else []


def _parameters(exported: Any) -> list[str]:
    try:
        return list(inspect.signature(exported).parameters)
    except ValueError:  # an exception without a constructor of its own
        return []


def figures() -> list[Figure]:
    """
    The figures that are kept.
    """
    return [
        _figure("import cycles among modules and packages", import_cycles()),
        _figure("modules that need each other, for types or in functions", circles()),
        _figure("imports upwards", upward_imports()),
        _figure("gaps in docstrings of what is exported", incomplete_docstrings()),
    ]


def _figure(name: str, places: list[str], at_most: int = 0) -> Figure:
    return Figure(name, len(places), at_most, places)


def measures() -> dict[str, str]:
    """
    What has no bound, and is worth a look.
    """
    trees = [tree_of(module) for module in MODULES]
    found = [node for tree in trees for node, _ in definitions(tree)]
    lengths = [length(node) for node in found if isinstance(node, Function)]
    strings = [docstring(node) for node in (*found, *trees)]
    documented = sum(map(length, strings))
    total = sum(map(lines_of, MODULES))
    return {
        "modules": str(len(MODULES)),
        "lines": str(total),
        "lines of the longest module": str(max(map(lines_of, MODULES))),
        "lines of a function: median, 95 %, longest": (
            f"{median(lengths):g}, {quantiles(lengths, n=20)[-1]:.0f}, {max(lengths)}"
        ),
        "share of docstrings in all lines": f"{documented / total:.0%}",
    }


def report(kept: Iterable[Figure], measured: dict[str, str]) -> str:
    """
    The figures as a table, then each place where a bound is exceeded.
    """
    kept = list(kept)
    rows = [("figure", "found", "at most", "")]
    rows += [(one.name, str(one.found), str(one.at_most), "" if one.kept else "exceeded") for one in kept]
    rows += [(name, found, "", "") for name, found in measured.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    for one in kept:
        table += [] if one.kept else ["", f"{one.name}:", *(f"  {place}" for place in one.places)]
    return "\n".join(table)


if __name__ == "__main__":
    print(report(figures(), measures()))  # noqa: T201 (it is a script)
