"""
The time to fill long text, to serve long text from a file, and to describe an answer type repeatedly.

``python -m benchmarks.long_text`` compares each time with a baseline, and prints whether it keeps its budget.
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
from promptkit.fragments import answer_format, bullets, fill
from promptkit.language.files import trusts_cache
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE

LINES, CALLS, ROUNDS = 300, 500, 15
PLACEHOLDERS: Final = {"code": 40, "style": 90, "scope": 150, "owner": 220, "form": 280}
VALUES: Final = {name: f"what the {name} is" for name in PLACEHOLDERS}

#: A function of a recipe that reads a file in the same folder.
RECIPE: Final = """
def from_file(**values):
    return Text.from_path("long.md", **values)
"""


@attrs.frozen
class Finding:
    """
    A part of an answer.
    """

    file: str
    line: int


@attrs.frozen
class Review:
    """
    An answer.
    """

    summary: str
    findings: list[Finding]


@attrs.frozen
class Comparison:
    """
    A measurement compared with a baseline.

    Args:
        what:
            The title of the measurement.

        seconds:
            The time of one call.

        baseline:
            The title of the baseline.

        most:
            The maximum ratio to the time of the baseline.

        ratio:
            The ratio to the time of the baseline, as the median of the rounds.
    """

    what: str
    seconds: float
    baseline: str
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
    Return text of many lines, some of which have a placeholder.
    """
    lines = [
        f"Line {number} explains how to review a change, and which files to skip." for number in range(LINES)
    ]
    for name, line in PLACEHOLDERS.items():
        lines[line] += f" {{{{{name}}}}}"
    return "\n".join(lines)


def _compare(
    what: str, ours: Callable[[], Any], baseline: str, theirs: Callable[[], Any], most: float
) -> Comparison:
    pairs = [(timeit(ours, number=CALLS), timeit(theirs, number=CALLS)) for _ in range(ROUNDS)]
    ratio = median(mine / other for mine, other in pairs)
    return Comparison(what, median(mine for mine, _ in pairs) / CALLS, baseline, most, ratio)


def _request_handler(served_prompt: Prompt[..., Any]) -> Callable[[], bytes]:
    """Return a function that renders the prompt and encodes the result, as a server does for a request."""
    compiled, lowering = served_prompt.compiled, lowering_for(LATEST_HANDSHAKE)
    return lambda: lowering.result(compiled, compiled.renderer.render_sync({}))


def comparisons(folder: Path) -> Iterator[Comparison]:
    """
    Measure, and yield each comparison. Text files are written to *folder*.
    """
    text = long_text()
    form = text.replace("{{", "{").replace("}}", "}")
    title = f"fill a text of {LINES} lines with {len(PLACEHOLDERS)} placeholders"
    yield _compare(title, lambda: fill(text, **VALUES), "str.format", lambda: form.format(**VALUES), 1.5)
    items, example = ["a", "b", "c"], Review("Fine.", [Finding("a.py", 3)])
    yield _compare(
        "describe an answer again",
        lambda: answer_format(Review, example),
        "bullets of three items",
        lambda: bullets(items),
        3,
    )
    (folder / "long.md").write_text(text, encoding="utf-8")
    names: dict[str, Any] = {"__file__": str(folder / "recipe.py"), "Text": Text}
    exec(RECIPE, names)  # noqa: S102 (its `__file__` must be in *folder*)

    @prompt
    def from_file() -> Text:
        text: Text = names["from_file"](**VALUES)
        return text

    @prompt
    def from_string() -> Text:
        return fill(text, **VALUES)

    trusts_cache.set()
    yield _compare(
        "serve a prompt from a file",
        _request_handler(from_file),
        "from a string",
        _request_handler(from_string),
        1.1,
    )


def measure() -> Mapping[str, float]:
    """
    Return the figures in seconds, by title.
    """
    with TemporaryDirectory() as folder:
        measured = list(comparisons(Path(folder)))
    return {
        f"{each.what}; {each.ratio:.2f} times {each.baseline}, at most {each.most}": each.seconds
        for each in measured
    }


def main() -> int:
    """
    Print the comparisons; return 1 if a budget was missed.
    """
    with TemporaryDirectory() as folder:
        measured = list(comparisons(Path(folder)))
    for each in measured:
        figures = f"{each.seconds * 1e6:.1f} µs, {each.ratio:.2f} times {each.baseline}, at most {each.most}"
        print(f"{each.what}: {figures}: {'kept' if each.kept else 'missed'}")  # noqa: T201 (a script)
    return 0 if all(each.kept for each in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
