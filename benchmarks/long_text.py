"""
The time to fill long text, to serve long text from a file, and to describe an answer type repeatedly.

``python -m benchmarks.long_text`` compares each time with a baseline, and prints whether it is within its
budget.
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

#: A function of a recipe that reads a file in the folder of the recipe.
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
        title:
            The title of the measurement.

        seconds:
            The time of one call, in seconds.

        baseline:
            The title of the baseline.

        max_ratio:
            The maximum ratio of this time to the time of the baseline.

        ratio:
            The measured ratio of this time to the time of the baseline, as the median of the rounds.
    """

    title: str
    seconds: float
    baseline: str
    max_ratio: float
    ratio: float

    @property
    def is_met(self) -> bool:
        """
        Whether the ratio is within its maximum.
        """
        return self.ratio <= self.max_ratio


def long_text() -> str:
    """
    Return text with many lines, some of which contain a placeholder.
    """
    lines = [
        f"Line {number} explains how to review a change, and which files to skip." for number in range(LINES)
    ]
    for name, line in PLACEHOLDERS.items():
        lines[line] += f" {{{{{name}}}}}"
    return "\n".join(lines)


def _compare(
    title: str, ours: Callable[[], Any], baseline: str, theirs: Callable[[], Any], max_ratio: float
) -> Comparison:
    pairs = [(timeit(ours, number=CALLS), timeit(theirs, number=CALLS)) for _ in range(ROUNDS)]
    ratio = median(mine / other for mine, other in pairs)
    return Comparison(title, median(mine for mine, _ in pairs) / CALLS, baseline, max_ratio, ratio)


def _request_handler(served_prompt: Prompt[..., Any]) -> Callable[[], bytes]:
    """Return a function that renders the prompt and encodes the result, as a server does for a request."""
    compiled, lowering = served_prompt.compiled, lowering_for(LATEST_HANDSHAKE)
    return lambda: lowering.result(compiled, compiled.renderer.render_sync({}))


def measure_comparisons(folder: Path) -> Iterator[Comparison]:
    """
    Measure and yield each comparison. *folder* is the folder for text files.
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
    Return the figures in seconds, keyed by title.
    """
    with TemporaryDirectory() as folder:
        measured = list(measure_comparisons(Path(folder)))
    return {
        f"{each.title}; {each.ratio:.2f} times {each.baseline}, at most {each.max_ratio}": each.seconds
        for each in measured
    }


def main() -> int:
    """
    Print the comparisons, and return the exit code: 1 if a budget was missed.
    """
    with TemporaryDirectory() as folder:
        measured = list(measure_comparisons(Path(folder)))
    for each in measured:
        figures = (
            f"{each.seconds * 1e6:.1f} µs, {each.ratio:.2f} times {each.baseline}, at most {each.max_ratio}"
        )
        print(f"{each.title}: {figures}: {'kept' if each.is_met else 'missed'}")  # noqa: T201 (a script)
    return 0 if all(each.is_met for each in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
