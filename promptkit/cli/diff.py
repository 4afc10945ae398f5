"""``promptkit diff``: show what clients would see differently from a git revision."""

import os
import tempfile
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from promptkit.cli import Exit
from promptkit.cli.diagnostics import print_error
from promptkit.cli.differences.changes import Change, changes_between
from promptkit.cli.differences.report import as_data, as_markdown, print_annotations, print_text
from promptkit.cli.differences.revisions import Repository, RevisionError
from promptkit.cli.differences.sides import ask_side, moved
from promptkit.cli.output import Output
from promptkit.compiler.loading.targets import split_target
from promptkit.errors.exceptions import LoadError

__all__ = ["run"]


def run(options: Namespace, output: Output) -> int:
    """
    Print what has changed since a revision, as text, as JSON, or as GitHub's annotations.

    Raises:
        LoadError: If there is nothing at the target, now or then.
    """
    try:
        repository = Repository()
        old, new = _sides(repository, options.revision, options.target)
    except RevisionError as error:
        print_error(str(error))
        return Exit.USAGE
    for side, when in ((old, f" at {options.revision}"), (new, "")):
        for file, line, message in side["faults"]:
            print_error(f"not served{when}: {repository.path(file)}:{line}: {message}")
    changes = changes_between(old, new)
    places = {owner: (repository.path(file), line) for owner, (file, line) in new["places"].items()}
    _print(options, changes, places, output)
    if options.summary is not None and not _write_summary(options, changes):
        return Exit.USAGE
    return Exit.FAULTY if any(change.kind.breaking for change in changes) else Exit.FINE


def _sides(repository: Repository, revision: str, target: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was served, and what is served now, for the examples that there were."""
    commit = repository.commit(revision)
    with tempfile.TemporaryDirectory(prefix="promptkit-diff-", ignore_cleanup_errors=True) as scratch:
        then = Path(os.path.realpath(scratch)) / (repository.root.name or "root")
        now, here = repository.root, Path(os.path.realpath(os.curdir))
        within = _within(target, now)
        repository.write(commit, then)
        folder = then / here.relative_to(now)
        try:
            old = ask_side(folder if folder.is_dir() else then, _at(then, within, target))
        except LoadError as error:
            reason = error.reason.replace(f"{then}{os.sep}", "")
            raise LoadError(target, f"at {revision}, {reason}") from None
        old = moved(old, str(then), str(now))  # where it lay says nothing
        return old, ask_side(here, _at(now, within, target), old["examples"])


def _within(target: str, root: Path) -> Path | None:
    """Where a target is, as seen from the root of the repository; None for a module."""
    name, _ = split_target(target)
    place = Path(os.path.realpath(name))
    if not place.exists():
        return None
    if not place.is_relative_to(root):
        raise LoadError(target, f"it is not in the git repository at {str(root)!r}")
    return place.relative_to(root)


def _at(root: Path, within: Path | None, target: str) -> str:
    """The target of one side."""
    if within is None:
        return target
    _, attribute = split_target(target)
    return f"{root / within}:{attribute}" if attribute else str(root / within)


def _print(
    options: Namespace, changes: list[Change], places: Mapping[str, tuple[str, int]], output: Output
) -> None:
    form = "json" if options.json else options.format
    if form == "json":
        output.print_json(as_data(changes, options.revision))
    elif form == "github":
        print_annotations(changes, places, output)
    else:
        print_text(changes, options.revision, output)


def _write_summary(options: Namespace, changes: list[Change]) -> bool:
    """Append the summary to its file, and tell whether that could be done."""
    try:
        with open(options.summary, "a", encoding="utf-8") as file:  # noqa: PTH123 (it may be a device)
            file.write(as_markdown(changes, options.revision))
    except OSError as error:
        print_error(f"cannot write to {options.summary!r}: {error.strerror}")
        return False
    return True
