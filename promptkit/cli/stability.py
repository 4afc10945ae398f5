"""
Detection of skills that differ from one start to the next: two more processes create them for comparison.

The processes differ in the order of sets and in the date. ``python -m`` this module reads the targets from
standard input, and prints the content of their skills' files.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Final

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill
from promptkit.cli.diff_revisions import RevisionError
from promptkit.cli.diff_sides import ask, run_side
from promptkit.cli.loading import load_catalog
from promptkit.errors.diagnostics import Diagnostic, Report
from promptkit.errors.exceptions import LoadError, shortened
from promptkit.errors.rules import Rule

#: The variable that sets the clock of one process some weeks ahead, if time-machine is installed.
_LATER: Final = "PROMPTKIT_CHECKED_LATER"
#: The environments of the processes: the order of sets differs, and the date, because the time zones are 26
#: hours apart.
_STARTS: Final = (
    {"PYTHONHASHSEED": "1", "TZ": "EAST-14"},
    {"PYTHONHASHSEED": "2", "TZ": "WEST+12", _LATER: "yes"},
)

_HINT: Final = (
    "leave out text that changes by itself, such as dates, random words and the order of "
    "sets: hosts ask users to approve a skill again when a byte changes"
)


def unstable_skills(catalog: Catalog, targets: Sequence[str]) -> Iterator[Diagnostic]:
    """
    Yield a diagnostic for each file of a skill written in Python that differs between two starts.

    Args:
        catalog:
            The catalog of the targets.

        targets:
            The targets to load again.
    """
    skills = [skill for skill in catalog.skills if not skill.location.file.endswith(SKILL_FILE)]
    if not skills:
        return
    folder = Path(os.path.realpath(os.curdir))

    def texts_of(start: Mapping[str, str]) -> dict[str, dict[str, str]]:
        environment = {**os.environ, **start}
        return ask(__name__, folder, [targets], dict[str, dict[str, str]], environment=environment)

    try:
        with ThreadPoolExecutor(len(_STARTS)) as threads:
            first, second = threads.map(texts_of, _STARTS)
    except (RevisionError, LoadError) as error:
        yield from _report(skills[0], f"it cannot be made a second time: {error}")
        return
    for skill in skills:
        before, after = (side.get(skill.uri_template, {}) for side in (first, second))
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                difference = _first_difference(before.get(path), after.get(path))
                yield from _report(skill, f"{path!r} changes from one start to the next: {difference}")


def _report(skill: CompiledSkill, message: str) -> list[Diagnostic]:
    report = Report(f"skill {skill.name!r}", skill.location)
    report.add(Rule.UNSTABLE_SKILL, message, _HINT)
    return report.found


def _file_texts(skill: CompiledSkill) -> Iterator[tuple[str, str]]:
    """Yield the paths and contents of a skill's files, as text that JSON can represent."""
    for file in skill.files:
        yield file.path, file.content.data.decode(errors="surrogateescape")


def _first_difference(before: str | None, after: str | None) -> str:
    """Return the first lines that differ."""
    if before is None or after is None:
        return "it is there only once"
    pairs = zip_longest(before.splitlines(), after.splitlines(), fillvalue="")
    first, second = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return f"{shortened(first)!r}, then {shortened(second)!r}"


def _clock() -> AbstractContextManager[object]:
    """Return the clock of this process, some weeks ahead if `_LATER` is set."""
    if _LATER in os.environ:
        with suppress(ModuleNotFoundError):
            import time_machine

            return time_machine.travel(datetime.now(UTC) + timedelta(days=40))
    return nullcontext()


def _answer(targets: Sequence[str]) -> dict[str, dict[str, str]]:
    with _clock():
        catalog = load_catalog(targets)
        return {skill.uri_template: dict(_file_texts(skill)) for skill in catalog.skills}


if __name__ == "__main__":
    run_side(_answer)
