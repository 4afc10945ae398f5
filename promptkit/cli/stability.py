"""
Whether skills are the same at every start: each is made in two more processes, and compared byte for byte.

The processes differ in the order of sets and in the date. ``python -m`` this module reads the targets from
standard input, and prints what the files of their skills hold.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill
from promptkit.cli.differences.revisions import RevisionError
from promptkit.cli.differences.sides import Side, run_side
from promptkit.cli.loading import load_catalog
from promptkit.errors.diagnostics import Diagnostic, Report
from promptkit.errors.exceptions import LoadError, shortened
from promptkit.errors.rules import Rule

#: What differs: the order of sets, and the date, as these time zones are 26 hours apart. With time-machine,
#: the clock of one is some weeks ahead, too.
_LATER: Final = "PROMPTKIT_CHECKED_LATER"
_STARTS: Final = (
    {"PYTHONHASHSEED": "1", "TZ": "EAST-14"},
    {"PYTHONHASHSEED": "2", "TZ": "WEST+12", _LATER: "yes"},
)

_REMEDY: Final = (
    "leave out what changes by itself, such as dates, random words and the order of sets: "
    "hosts forget that somebody has approved a skill when a byte changes"
)


def unstable_skills(catalog: Catalog, targets: Sequence[str]) -> Iterator[Diagnostic]:
    """
    Yield which skills that are written in Python differ from one start to the next.

    Args:
        catalog:
            What is at the targets.

        targets:
            What is loaded again.
    """
    made = [skill for skill in catalog.skills if not skill.location.file.endswith(SKILL_FILE)]
    if not made:
        return
    here = Path(os.path.realpath(os.curdir))
    with ExitStack() as processes:
        sides = [
            processes.enter_context(Side(__name__, here, targets, None, {**os.environ, **start}))
            for start in _STARTS
        ]
        try:
            first, second = (side.answer(None, dict[str, dict[str, str]]) for side in sides)
        except (RevisionError, LoadError) as error:
            yield from _found(made[0], f"it cannot be made a second time: {error}")
            return
    for skill in made:
        before, after = (side.get(skill.uri_template, {}) for side in (first, second))
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                differing = _differing(before.get(path), after.get(path))
                yield from _found(skill, f"{path!r} differs from one start to the next: {differing}")


def _found(skill: CompiledSkill, fault: str) -> list[Diagnostic]:
    report = Report(f"skill {skill.name!r}", skill.location)
    report.add(Rule.UNSTABLE_SKILL, fault, _REMEDY)
    return report.found


def _texts(skill: CompiledSkill) -> Iterator[tuple[str, str]]:
    """What its files hold, as JSON can say it."""
    for file in skill.files:
        yield file.path, file.content.data.decode(errors="surrogateescape")


def _differing(before: str | None, after: str | None) -> str:
    """The first lines that differ."""
    if before is None or after is None:
        return "it is there only once"
    pairs = zip_longest(before.splitlines(), after.splitlines(), fillvalue="")
    one, other = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return f"{shortened(one)!r}, then {shortened(other)!r}"


def _clock() -> AbstractContextManager[object]:
    """The clock of this process."""
    if _LATER in os.environ:
        with suppress(ModuleNotFoundError):
            import time_machine

            return time_machine.travel(datetime.now(UTC) + timedelta(days=40))
    return nullcontext()


def main() -> None:
    """Print the skills of the targets that are read."""
    run_side(_answer)


def _answer(read_asked: Callable[[], Any]) -> dict[str, Any]:
    with _clock():
        catalog = load_catalog(read_asked())
        return {skill.uri_template: dict(_texts(skill)) for skill in catalog.skills}


if __name__ == "__main__":
    main()
