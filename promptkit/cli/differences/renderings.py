"""
What prompts and resources of one side say for their cases, under one clock and one seed.

Each side has a process of its own with a small environment, so that cases do not differ by other variables.
It keeps no secret from recipes, which run as the same user. ``python -m`` this module reads what is wanted
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
from promptkit.cli.differences.revisions import Repository, loading_from, written
from promptkit.cli.differences.sides import Side, faults_of, key_of, run_side
from promptkit.cli.differences.word_diff import Line, TextChange, changed_words, text_changes
from promptkit.cli.loading import load_recipes
from promptkit.errors.exceptions import PromptkitError

#: The cases of each prompt and resource: by their names, what a client sends.
Cases: TypeAlias = Mapping[str, Mapping[str, Any]]

#: What is said for each case of each prompt and resource, as a transcript.
Said: TypeAlias = Mapping[str, Mapping[str, str]]

#: The variables of the environment that a process keeps: what programs need to find their parts, and words of
#: people. The workspace is known in any case.
_KEPT: Final = (
    *("PATH", "PYTHONPATH", "VIRTUAL_ENV", "HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP"),
    *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPYCACHEPREFIX"),
)

#: The moment at which everything is rendered, and the seed of what is drawn by lot.
_NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_SEED: Final = 20260101


def renderings_side(
    folder: Path,
    targets: Sequence[str],
    moved: tuple[Path, Path] | None = None,
    variables: Sequence[str] = (),
) -> Side:
    """
    Return a side that loads its recipes, and then answers which cases it is asked for.

    It is asked for what is sent, or for None: the cases that it has. It answers with what is ``said`` for
    each, its ``cases``, and ``faults`` of what is not served.

    Args:
        folder:
            The current folder of its process.

        targets:
            What to load.

        moved:
            Where the side lies, and where it is said to lie; None if it says where it lies.

        variables:
            The names of further variables of the environment that it may know.
    """
    kept = {name: os.environ[name] for name in (*_KEPT, *variables) if name in os.environ}
    return Side(__name__, folder, targets, moved, {**kept, "PYTHONHASHSEED": "0"})


def compared_renderings(
    repository: Repository,
    ends: tuple[str, str | None],
    targets: Sequence[str],
    variables: Sequence[str] = (),
    *,
    repeats: bool = False,
) -> tuple[dict[str, Any], dict[str, Any], list[tuple[dict[str, Any], dict[str, Any]]]]:
    """
    Return what was said at one end for the cases of the other, what is said there, and when asked again.

    Both sides load at the same time.

    Args:
        repository:
            The repository.

        ends:
            A revision, and another one, or None for the files as they are.

        targets:
            What is compared.

        variables:
            As for `renderings_side`.

        repeats:
            Whether each side is asked once more.

    Raises:
        LoadError: If there is nothing at one of the targets.

        RevisionError: If there is no such revision, or a process does not answer as it should.
    """
    first, last = ends
    with (
        written(repository, first, targets) as then,
        written(repository, last, targets) as here,
        ExitStack() as processes,
    ):

        def begin(folder: Path, side: Sequence[str], moved: tuple[Path, Path] | None = None) -> Side:
            return processes.enter_context(renderings_side(folder, side, moved, variables))

        before, now = begin(*then), begin(*here)
        with loading_from(repository, last, targets):
            new = now.answer(None, Renderings)
        with loading_from(repository, first, targets):
            old = before.answer(new["cases"], Renderings)
        if not repeats:
            return old, new, []
        again = [(new, begin(*here)), (old, begin(*then))]
        return old, new, [(said, side.answer(new["cases"], Renderings)) for said, side in again]


def main() -> None:
    """Print what this side says for what is asked."""
    run_side(_answer)


def _answer(read_asked: Callable[[], Any]) -> dict[str, Any]:
    with _fixed():
        catalog = compiler.compile(load_recipes(read_asked(), cases=True))
        own = {key_of(item): dict(_own(item)) for item in catalog.declared}
        cases: Cases | None = read_asked()
        said = _said(catalog, own if cases is None else cases)
    return {"cases": own, "said": said, "faults": faults_of(catalog)}


@contextmanager
def _fixed() -> Iterator[None]:
    """Stop the clock that people read, and seed what Python draws by lot."""
    import time_machine

    random.seed(_SEED)
    with time_machine.travel(_NOW, tick=False):
        yield


def _own(item: Item) -> Iterator[tuple[str, Any]]:
    """The cases of a prompt or a resource; if it has none, those that its examples and defaults make."""
    if calls := saved_calls(item):
        yield from ((call.case_name, call.sent) for call in calls)
    else:
        yield from ((Call(item, sent).label, sent) for sent in wire_examples(item))


def _said(catalog: Catalog, cases: Cases) -> Said:
    wanted = {key_of(item): (item, cases.get(key_of(item), {})) for item in catalog.declared}
    return {
        key: {name: _transcript(Call(item, sent)) for name, sent in saved.items()}
        for key, (item, saved) in wanted.items()
    }


def _transcript(call: Call) -> str:
    """What came of a call, in words."""
    random.seed(_SEED)
    outcome = call.outcome()
    if is_refused(outcome):
        return call.redactor.redacted(f"[refused] {outcome}")
    if isinstance(outcome, BaseException):
        return call.redactor.redacted(f"[fails] {failure_reason(outcome)}")
    return call.redactor.redacted(str(outcome))


if __name__ == "__main__":
    main()


_REVISION = "HEAD"


class SinceCommit:
    """
    Compares the recipes with those of the last commit. Any thread may use it.

    Both sides have processes of their own, which run once for each version of the recipes.

    Args:
        targets:
            What is compared.
    """

    def __init__(self, targets: Sequence[str]) -> None:
        self._targets = targets
        self._lock = Lock()
        self._known: tuple[int, str] | None = None
        self._found: Sequence[TextChange] | PromptkitError = ()

    def since_commit(self, prompt: CompiledPrompt, version: int) -> list[tuple[str, str | None, str | None]]:
        """
        Return the cases of a prompt that say something else: each name, what was said, and what is said.

        Raises:
            PromptkitError: If there is no commit, or it cannot be loaded.
        """
        key = key_of(prompt)
        return [(one.case, one.old, one.new) for one in self._of(version) if one.owner == key]

    def words(self, old: str, new: str) -> list[Line]:
        """Return the lines that differ. Raises OSError if there is no git."""
        return changed_words(old, new)

    def _of(self, version: int) -> Sequence[TextChange]:
        with self._lock:
            repository = Repository(whose="this comparison")
            commit = repository.commit(_REVISION)
            if self._known != (version, commit):
                self._known = version, commit
                try:
                    self._found = self._compared(repository, commit)
                except PromptkitError as error:  # asked again, it would take as long to fail
                    self._found = error.with_traceback(None)
            if isinstance(self._found, PromptkitError):
                raise self._found
            return self._found

    def _compared(self, repository: Repository, commit: str) -> list[TextChange]:
        old, new, _ = compared_renderings(repository, (commit, None), self._targets)
        return list(text_changes(old, new, ()))
