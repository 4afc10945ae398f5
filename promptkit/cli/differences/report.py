"""Changes, as people and programs read them: text, JSON, annotations of GitHub Actions, and Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO

from promptkit.cli.diagnostics import console_on
from promptkit.cli.differences.changes import Change
from promptkit.cli.github import print_annotation
from promptkit.cli.output import Output
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.markdown import code_block

__all__ = ["as_data", "as_markdown", "print_annotations", "print_text"]

#: How a change is called.
_WORDS: Final = {True: "breaking", False: "harmless"}

_STYLES: Final = {True: "bold red", False: "green"}
_LINE_STYLES: Final = {"-": "red", "+": "green", "@": "cyan"}


def print_text(changes: Sequence[Change], revision: str, output: Output) -> None:
    """Print a line for each change, what differs below it, and how many there are."""
    from rich.text import Text

    console = console_on(output, output.width)
    for change in changes:
        breaks = change.kind.breaking
        head = Text.assemble(
            (_WORDS[breaks], _STYLES[breaks]), f": {escape_invisible(str(change), one_line=True)}"
        )
        console.print(head, soft_wrap=True)
        for line in change.diff:
            shown = escape_invisible(f"    {line}")
            # Blanks at the end of a line count only where it differs.
            text = Text(shown if line[0] in "-+" else shown.rstrip(), _LINE_STYLES.get(line[0], ""))
            console.print(text, soft_wrap=True)
    print(escape_invisible(_summary(changes, revision)), file=output)


def as_data(changes: Sequence[Change], revision: str) -> dict[str, Any]:
    """Return the changes as JSON-compatible data."""
    return {
        "revision": revision,
        "breaking": any(change.kind.breaking for change in changes),
        "changes": [change.as_data() for change in changes],
    }


def print_annotations(
    changes: Sequence[Change], places: Mapping[str, tuple[str, int]], stream: TextIO
) -> None:
    """
    Print an annotation for each change, beside the prompt that it is about if that still exists.

    Args:
        changes:
            What has changed.

        places:
            The file and the line of each owner, as seen from the root of the repository.

        stream:
            Where to print.
    """
    for change in changes:
        file, line = places.get(change.owner, ("", 0))
        place = {"file": file, "line": str(line)} if line else {}
        level, text = ("error" if change.kind.breaking else "notice"), "\n".join([str(change), *change.diff])
        print_annotation(
            level, text, stream, {**place, "title": f"promptkit diff: {_WORDS[change.kind.breaking]}"}
        )


def as_markdown(changes: Sequence[Change], revision: str) -> str:
    """Return the changes as a page of Markdown, for the summary of a job."""
    parts = ["## Prompts", _summary(changes, revision)]
    for change in changes:
        head = f"- **{_WORDS[change.kind.breaking]}**: {_inline(str(change))}"
        block = str(code_block("\n".join(change.diff), "diff")) if change.diff else ""
        parts.append("\n\n".join(filter(None, (head, _indented(block)))))
    return escape_invisible("\n\n".join(parts)) + "\n"


def _summary(changes: Sequence[Change], revision: str) -> str:
    if not changes:
        return f"nothing that clients see has changed since {revision}"
    breaking = sum(change.kind.breaking for change in changes)
    counts = [(breaking, "breaking"), (len(changes) - breaking, "harmless")]
    shown = [f"{number} {word} {'change' if number == 1 else 'changes'}" for number, word in counts if number]
    return f"{', '.join(shown)} since {revision}"


def _inline(text: str) -> str:
    """*text* on one line, in which nothing is a mark of Markdown or HTML."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#" else char for char in " ".join(text.split()))


def _indented(block: str) -> str:
    return "\n".join(f"  {line}" for line in block.split("\n")) if block else ""
