"""
Renderings of one side's cases, with a fixed clock and a fixed seed.

Each side runs in a separate process with a minimal environment, so that other variables do not affect cases.
Secrets are not protected from recipes, which run as the same user. ``python -m`` this module reads its input
from standard input, and prints the transcripts.
"""

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeAlias

from promptkit import compiler
from promptkit.catalog.cases import is_refused
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.cli.calls import Call, Item, failure_reason, saved_calls, wire_examples
from promptkit.cli.differences.process_answers import Renderings
from promptkit.cli.differences.revisions import Repository, checkout, loading_from
from promptkit.cli.differences.sides import Side, faults_of, key_of, run_side
from promptkit.cli.differences.word_diff import FAILS, Line, TextChange, changed_words, text_changes
from promptkit.cli.loading import load_recipes
from promptkit.errors.exceptions import PromptkitError

#: The cases of each prompt and resource: the sent values by name.
Cases: TypeAlias = Mapping[str, Mapping[str, Any]]

#: The transcripts of each prompt's and resource's cases, by name.
Transcripts: TypeAlias = Mapping[str, Mapping[str, str]]

#: The environment variables that a process inherits: search paths of programs, and the locale. The workspace
#: is always passed on.
_INHERITED: Final = (
    *("PATH", "PYTHONPATH", "VIRTUAL_ENV", "HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP"),
    *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPYCACHEPREFIX"),
)

#: The current time during rendering, and the seed for random numbers.
_NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_SEED: Final = 20260101


def renderings_side(
    folder: Path,
    targets: Sequence[str],
    moved: tuple[Path, Path] | None = None,
    variables: Sequence[str] = (),
) -> Side:
    """
    Return a side that loads its recipes, and then renders the requested cases.

    The request contains cases, or is None for the side's own cases. The answer contains the transcripts as
    ``said``, the side's ``cases``, and the ``faults`` of recipes that are not served.

    Args:
        folder:
            The current folder of its process.

        targets:
            The targets to load.

        moved:
            The actual folder of the side, and the folder to report instead; None to report the actual folder.

        variables:
            The names of further environment variables to pass on.
    """
    inherited = {name: os.environ[name] for name in (*_INHERITED, *variables) if name in os.environ}
    return Side(__name__, folder, targets, moved, {**inherited, "PYTHONHASHSEED": "0"})


def compared_renderings(
    repository: Repository,
    ends: tuple[str, str | None],
    targets: Sequence[str],
    variables: Sequence[str] = (),
    *,
    repeats: bool = False,
) -> tuple[dict[str, Any], dict[str, Any], list[tuple[dict[str, Any], dict[str, Any]]]]:
    """
    Return the renderings of both sides for the cases of the new side, and repeated renderings.

    Both sides load at the same time.

    Args:
        repository:
            The repository.

        ends:
            The old revision; and the new revision, or None for the working tree.

        targets:
            The targets to compare.

        variables:
            See `renderings_side`.

        repeats:
            Whether to render on each side a second time.

    Raises:
        LoadError: If one of the targets cannot be loaded.

        RevisionError: If a revision does not exist, or a process returns no valid answer.
    """
    first, last = ends
    with (
        checkout(repository, first, targets) as old_location,
        checkout(repository, last, targets) as new_location,
        ExitStack() as processes,
    ):

        def start(folder: Path, side: Sequence[str], moved: tuple[Path, Path] | None = None) -> Side:
            return processes.enter_context(renderings_side(folder, side, moved, variables))

        old_side, new_side = start(*old_location), start(*new_location)
        with loading_from(repository, last, targets):
            new = new_side.answer(None, Renderings)
        with loading_from(repository, first, targets):
            old = old_side.answer(new["cases"], Renderings)
        if not repeats:
            return old, new, []
        again = [(new, start(*new_location)), (old, start(*old_location))]
        return old, new, [(answer, side.answer(new["cases"], Renderings)) for answer, side in again]


def main() -> None:
    """Print the renderings that this side was asked for."""
    run_side(_answer)


def _answer(read_asked: Callable[[], Any]) -> dict[str, Any]:
    with _fixed_clock_and_seed():
        catalog = compiler.compile(load_recipes(read_asked(), cases=True))
        own_cases = {key_of(item): dict(_own_cases(item)) for item in catalog.declared}
        cases: Cases | None = read_asked()
        transcripts = _transcripts(catalog, own_cases if cases is None else cases)
    return {"cases": own_cases, "said": transcripts, "faults": faults_of(catalog)}


@contextmanager
def _fixed_clock_and_seed() -> Iterator[None]:
    """Stop the clock, and seed Python's random numbers."""
    import time_machine

    random.seed(_SEED)
    with time_machine.travel(_NOW, tick=False):
        yield


def _own_cases(item: Item) -> Iterator[tuple[str, Any]]:
    """Yield the saved cases of a prompt or resource; without any, its examples and defaults."""
    if calls := saved_calls(item):
        yield from ((call.case_name, call.sent) for call in calls)
    else:
        yield from ((Call(item, sent).label, sent) for sent in wire_examples(item))


def _transcripts(catalog: Catalog, cases: Cases) -> Transcripts:
    items_by_key = {key_of(item): (item, cases.get(key_of(item), {})) for item in catalog.declared}
    return {
        key: {name: _transcript(Call(item, sent)) for name, sent in saved.items()}
        for key, (item, saved) in items_by_key.items()
    }


def _transcript(call: Call) -> str:
    """Return the outcome of a call as text."""
    random.seed(_SEED)
    outcome = call.outcome()
    if is_refused(outcome):
        return call.redactor.redacted(f"[refused] {outcome}")
    if isinstance(outcome, BaseException):
        return call.redactor.redacted(f"{FAILS}{failure_reason(outcome)}")
    return call.redactor.redacted(str(outcome))


_REVISION = "HEAD"


class SinceCommit:
    """
    A thread-safe comparison of the recipes with the last commit.

    Each side runs in a separate process, once for each version of the recipes.

    Args:
        targets:
            The targets to compare.
    """

    def __init__(self, targets: Sequence[str]) -> None:
        self._targets = targets
        self._lock = Lock()
        self._cache_key: tuple[int, str] | None = None
        self._outcome: Sequence[TextChange] | PromptkitError = ()

    def since_commit(self, prompt: CompiledPrompt, version: int) -> list[tuple[str, str | None, str | None]]:
        """
        Return the changed cases of a prompt, each as its name, old text and new text.

        Raises:
            PromptkitError: If there is no commit, or it cannot be loaded.
        """
        key = key_of(prompt)
        return [
            (change.case, change.old, change.new) for change in self._changes(version) if change.owner == key
        ]

    def words(self, old: str, new: str) -> list[Line]:
        """Return the changed lines. Raises OSError if git is missing."""
        return changed_words(old, new)

    def _changes(self, version: int) -> Sequence[TextChange]:
        with self._lock:
            repository = Repository(whose="this comparison")
            commit = repository.commit(_REVISION)
            if self._cache_key != (version, commit):
                self._cache_key = version, commit
                try:
                    self._outcome = self._compare(repository, commit)
                except PromptkitError as error:  # cached, because another failure would take just as long
                    self._outcome = error.with_traceback(None)
            if isinstance(self._outcome, PromptkitError):
                raise self._outcome
            return self._outcome

    def _compare(self, repository: Repository, commit: str) -> list[TextChange]:
        old, new, _ = compared_renderings(repository, (commit, None), self._targets)
        return list(text_changes(old, new, ()))


if __name__ == "__main__":
    main()
