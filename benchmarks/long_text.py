"""
What long text costs, in one process: to fill it, and to serve it from a file.

``python -m benchmarks.long_text`` prints what each takes beside its peer, and whether the budgets are kept.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from timeit import timeit
from typing import Any, Final

import attrs

from promptkit import Prompt, Text, prompt
from promptkit.fragments import fill
from promptkit.language.files import reads_once
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE

LINES, CALLS, ROUNDS = 300, 500, 15
HOLES: Final = {"code": 40, "style": 90, "scope": 150, "owner": 220, "form": 280}
VALUES: Final = {name: f"what the {name} is" for name in HOLES}

#: A recipe, as it reads a file beside it.
RECIPE: Final = """
def from_file(**values):
    return Text.from_path("long.md", **values)
"""


@attrs.frozen
class Comparison:
    """
    What is held against what.

    Args:
        what:
            What is measured.

        seconds:
            What one call takes.

        beside:
            What it is held against.

        most:
            How many times as long it may take.

        ratio:
            How many times as long it takes: the median of rounds, in each of which both take turns.
    """

    what: str
    seconds: float
    beside: str
    most: float
    ratio: float

    @property
    def kept(self) -> bool:
        """
        Whether the budget was kept.
        """
        return self.ratio <= self.most


def long_text() -> str:
    """
    Return a text of many lines with a hole here and there.
    """
    lines = [
        f"Line {number} says how to review a change, and what to leave alone." for number in range(LINES)
    ]
    for name, line in HOLES.items():
        lines[line] += f" {{{{{name}}}}}"
    return "\n".join(lines)


def _compared(
    what: str, ours: Callable[[], Any], beside: str, theirs: Callable[[], Any], most: float
) -> Comparison:
    pairs = [(timeit(ours, number=CALLS), timeit(theirs, number=CALLS)) for _ in range(ROUNDS)]
    ratio = median(mine / other for mine, other in pairs)
    return Comparison(what, median(mine for mine, _ in pairs) / CALLS, beside, most, ratio)


def _served(made: Prompt[..., Any]) -> Callable[[], bytes]:
    """What a server does between the arguments of a request and the bytes of its reply."""
    compiled, lowering = made.compiled, lowering_for(LATEST_HANDSHAKE)
    return lambda: lowering.result(compiled, compiled.renderer.render_sync({}))


def comparisons(folder: Path) -> Iterator[Comparison]:
    """
    Measure; text files are written to *folder*.
    """
    text = long_text()
    form = text.replace("{{", "{").replace("}}", "}")
    title = f"fill a text of {LINES} lines with {len(HOLES)} holes"
    yield _compared(title, lambda: fill(text, **VALUES), "str.format", lambda: form.format(**VALUES), 1.5)
    (folder / "long.md").write_text(text, encoding="utf-8")
    names: dict[str, Any] = {"__file__": str(folder / "recipe.py"), "Text": Text}
    exec(RECIPE, names)  # noqa: S102 (it reads a file beside the recipe, which is in no file here)

    @prompt
    def from_file() -> Text:
        made: Text = names["from_file"](**VALUES)
        return made

    @prompt
    def from_string() -> Text:
        return fill(text, **VALUES)

    reads_once.set()
    yield _compared(
        "serve a prompt from a file", _served(from_file), "from a string", _served(from_string), 1.1
    )


def measure() -> Mapping[str, float]:
    """
    Return each figure by what it is, in seconds.
    """
    with TemporaryDirectory() as folder:
        found = list(comparisons(Path(folder)))
    return {f"{one.what}; {one.ratio:.2f} times {one.beside}, of {one.most}": one.seconds for one in found}


def main() -> int:
    """
    Print the comparisons; return 1 if a budget was missed.
    """
    with TemporaryDirectory() as folder:
        found = list(comparisons(Path(folder)))
    for one in found:
        figures = f"{one.seconds * 1e6:.1f} µs, {one.ratio:.2f} times {one.beside}, of {one.most}"
        print(f"{one.what}: {figures}: {'kept' if one.kept else 'missed'}")  # noqa: T201 (it is a script)
    return 0 if all(one.kept for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
