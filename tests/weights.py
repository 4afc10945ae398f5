"""
The weight of each package: its lines of code, without docstrings, comments and blank lines, and its modules.

`python -m tests.weights` prints it; `tests/test_weights.py` keeps it. A bound never rises: what is new is
added under a name of its own.
"""

import ast
import io
import tokenize
from collections import Counter
from functools import cache
from typing import Final, NamedTuple

from tests.structure import MODULES, definitions, docstring, layer, tree_of


class Weight(NamedTuple):
    """
    How many lines of code, and how many modules.
    """

    lines: int
    modules: int


#: At most as much, by package; what is in none counts as the package `promptkit` itself.
AT_MOST: Final = {
    "catalog": Weight(1_195, 10),
    "cli": Weight(3_823, 36),
    "compiler": Weight(4_548, 35),
    "conversion": Weight(1_818, 15),
    "errors": Weight(663, 9),
    "exports": Weight(420, 6),
    "fragments": Weight(298, 5),
    "language": Weight(959, 12),
    "preview": Weight(1_574, 14),
    "promptkit": Weight(136, 4),
    "protocol": Weight(2_652, 26),
    "server": Weight(2_205, 25),
    "testing": Weight(986, 10),
    "transports": Weight(2_931, 26),
}

#: What came later, by what it is for: how many lines, and modules, it added to each package.
ADDED: Final = {
    "the language, second part": {
        "catalog": Weight(40, 0),
        "cli": Weight(75, 0),
        "compiler": Weight(304, 4),
        "conversion": Weight(499, 5),
        "errors": Weight(18, 0),
        "exports": Weight(171, 2),
        "fragments": Weight(60, 2),
        "language": Weight(365, 6),
        "preview": Weight(12, 0),
        "promptkit": Weight(7, 0),
        "protocol": Weight(4, 0),
        "server": Weight(3, 0),
        "testing": Weight(52, 0),
        "transports": Weight(15, 0),
        "workspace": Weight(324, 5),
    },
    "what ports of real prompts asked for": {
        "catalog": Weight(1, 0),
        "compiler": Weight(21, 0),
        "fragments": Weight(27, 1),
        "language": Weight(16, 0),
    },
    "cases": {
        "catalog": Weight(46, 1),
        "cli": Weight(335, 2),
        "compiler": Weight(130, 2),
        "errors": Weight(3, 0),
        "testing": Weight(83, 1),
    },
    "a start without gettext": {"cli": Weight(11, 0)},
    "cases, and what changes, in the preview": {
        "cli": Weight(86, 2),
        "preview": Weight(429, 4),
    },
    "a first prompt sooner": {"conversion": Weight(9, 0), "protocol": Weight(8, 1), "server": Weight(3, 0)},
    "requests, and batches of them": {
        "batch": Weight(1_113, 11),
        "catalog": Weight(13, 0),
        "cli": Weight(462, 3),
        "compiler": Weight(136, 1),
        "errors": Weight(2, 0),
        "exports": Weight(64, 0),
        "language": Weight(106, 1),
        "preview": Weight(8, 0),
        "promptkit": Weight(1, 0),
    },
    "what is around a text": {"protocol": Weight(7, 0)},
    "what a reader found": {
        "conversion": Weight(1, 0),
        "language": Weight(1, 0),
        "transports": Weight(1, 0),
    },
    "batches by blocks of lines": {"batch": Weight(60, 2), "cli": Weight(2, 0)},
    "packages of recipes": {"cli": Weight(522, 6), "transports": Weight(33, 0)},
    "standard error, out of the package itself": {"errors": Weight(198, 1)},
    "exports to clients": {"cli": Weight(425, 8)},
    "bridges to what evaluates and stores prompts": {
        "bridges": Weight(290, 7),
        "cli": Weight(54, 1),
        "exports": Weight(4, 0),
    },
    "attrs without its validators": {"cli": Weight(8, 0), "server": Weight(9, 0)},
    "imports of slash commands": {"cli": Weight(754, 11)},
    "batches by processes that are forked": {"batch": Weight(17, 0)},
    "batches without threads between their processes": {"batch": Weight(44, 0)},
    "chunks that another process has not begun, and files that stay open": {"batch": Weight(54, 0)},
    "documents that differ by origin": {"protocol": Weight(1, 0)},
    "what is around the text of a call": {"protocol": Weight(1, 0)},
    "check, a tenth quicker": {"compiler": Weight(5, 0), "errors": Weight(3, 0)},
    "install: several clients, variables, options of serve, files that are shared": {
        "cli": Weight(287, 3),
        "compiler": Weight(20, 0),
    },
    "what operators see: metrics, logs, ids of errors": {
        "catalog": Weight(3, 0),
        "cli": Weight(47, 1),
        "errors": Weight(11, 0),
        "promptkit": Weight(1, 0),
        "protocol": Weight(22, 0),
        "server": Weight(118, 1),
        "transports": Weight(57, 1),
    },
    "sockets for other users, and keys that are read again": {
        "cli": Weight(10, 0),
        "protocol": Weight(14, 0),
        "transports": Weight(57, 0),
    },
    "bounds of what authors yield, of reloads, and of silence": {
        "catalog": Weight(27, 0),
        "cli": Weight(5, 0),
        "compiler": Weight(104, 2),
        "conversion": Weight(9, 0),
        "errors": Weight(45, 1),
        "fragments": Weight(3, 0),
        "language": Weight(64, 1),
        "preview": Weight(1, 0),
        "protocol": Weight(6, 0),
        "server": Weight(30, 0),
    },
    "texts of the command line, and defaults as one types them": {
        "batch": Weight(4, 0),
        "cli": Weight(134, 1),
        "conversion": Weight(46, 0),
        "errors": Weight(42, 1),
    },
    "what a trial of all that met": {
        "cli": Weight(37, 0),
        "compiler": Weight(128, 2),
        "errors": Weight(14, 0),
        "language": Weight(11, 0),
        "transports": Weight(8, 0),
    },
    "what the trial had left": {"cli": Weight(17, 0), "compiler": Weight(39, 1)},
    "diagnostics that first-time users met": {
        "cli": Weight(1, 0),
        "compiler": Weight(260, 4),
        "conversion": Weight(2, 0),
        "errors": Weight(193, 1),
    },
    "skills": {
        "catalog": Weight(172, 2),
        "cli": Weight(442, 3),
        "compiler": Weight(738, 9),
        "errors": Weight(11, 0),
        "preview": Weight(20, 0),
        "promptkit": Weight(4, 0),
        "protocol": Weight(39, 0),
        "server": Weight(62, 1),
        "testing": Weight(90, 2),
        "transports": Weight(44, 1),
    },
}


def at_most(package: str) -> Weight:
    """
    How heavy a package may be: what it was, and what came later.
    """
    shares = [
        AT_MOST.get(package, Weight(0, 0)),
        *(each.get(package, Weight(0, 0)) for each in ADDED.values()),
    ]
    return Weight(sum(share.lines for share in shares), sum(share.modules for share in shares))


#: Tokens that are no code.
_NO_CODE: Final = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


def lines_of_code(source: str, tree: ast.Module) -> int:
    """
    How many lines hold code that is no docstring.
    """
    found = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in (tree, *(node for node, _ in definitions(tree))):
        if (string := docstring(node)) is not None:
            found.difference_update(range(string.lineno, (string.end_lineno or 0) + 1))
    return len(found)


def package(module: str) -> str:
    """
    What a module is counted as: its layer, or `promptkit` itself.
    """
    return layer(module) if MODULES[module].parent.name != "promptkit" else "promptkit"


#: All that is counted.
PACKAGES: Final = sorted({package(module) for module in MODULES})


@cache
def weights() -> dict[str, Weight]:
    """
    What each package weighs.
    """
    lines, modules = Counter[str](), Counter[str]()
    for name, path in MODULES.items():
        lines[package(name)] += lines_of_code(path.read_text(encoding="utf-8"), tree_of(name))
        modules[package(name)] += 1
    return {name: Weight(lines[name], modules[name]) for name in PACKAGES}


def table() -> str:
    """
    A row for each package: what it weighs, and in brackets what it may.
    """
    found = weights()
    rows = [(name, *found[name], *at_most(name)) for name in found]
    rows.append(("in all", *map(sum, list(zip(*rows, strict=True))[1:])))
    return "\n".join(
        f"{name:12}{lines:7,} lines ({most:,}){modules:5} modules ({files})"
        for name, lines, modules, most, files in rows
    )


if __name__ == "__main__":
    print(table())  # noqa: T201 (it is a script)
