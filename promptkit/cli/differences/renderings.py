"""
What prompts and resources of one side say for their cases, under one clock and one seed.

Each side has a process of its own, without the secrets of the environment. ``python -m`` this module reads
what is wanted from standard input, and prints the transcripts.
"""

import json
import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from promptkit import compiler
from promptkit.catalog.cases import is_refused
from promptkit.catalog.catalog import Catalog
from promptkit.cli.calls import Call, Item, failure_reason, saved_calls, wire_examples
from promptkit.cli.differences.sides import faults_of, key_of, run_side
from promptkit.cli.loading import load_recipes
from promptkit.cli.output import capture_output
from promptkit.errors.exceptions import LoadError

__all__ = ["Said", "ask_renderings", "main"]

#: The cases of each prompt and resource: by their names, what a client sends.
Cases: TypeAlias = Mapping[str, Mapping[str, Any]]

#: What is said for each case of each prompt and resource, as a transcript.
Said: TypeAlias = Mapping[str, Mapping[str, str]]

#: The variables of the environment that a process keeps: what programs need to find their parts, and words of
#: people. All else may be a secret.
_KEPT: Final = (
    *("PATH", "PYTHONPATH", "VIRTUAL_ENV", "HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP"),
    *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "PROMPTKIT_WORKSPACE"),
)

#: The moment at which everything is rendered, and the seed of what is drawn by lot.
_NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_SEED: Final = 20260101


def ask_renderings(
    folder: Path,
    targets: Sequence[str],
    cases: Cases | None = None,
    moved: tuple[Path, Path] | None = None,
    variables: Sequence[str] = (),
) -> dict[str, Any]:
    """
    Return what one side says: ``said`` for each case, its ``cases``, and ``faults`` of what is not served.

    Args:
        folder:
            The current folder of its process.

        targets:
            What to load.

        cases:
            What is sent; None for the cases that this side has.

        moved:
            Where the side lies, and where it is said to lie; None if it says where it lies.

        variables:
            The names of further variables of the environment that it may know.

    Raises:
        LoadError: If there is nothing at one of the targets.

        RevisionError: If its process ends before it has answered, or does not end in time.
    """
    kept = {name: os.environ[name] for name in (*_KEPT, *variables) if name in os.environ}
    asked = {"targets": targets, "cases": cases}
    return run_side(__name__, folder, asked, moved, {**kept, "PYTHONHASHSEED": "0"})


def main() -> None:
    """Read what is wanted, and print what this side says."""
    asked = json.loads(sys.stdin.buffer.read())
    with capture_output(restore=False) as output:
        try:
            with _fixed():
                catalog = compiler.compile(load_recipes(asked["targets"], cases=True))
                own = {key_of(item): dict(_own(item)) for item in catalog.declared}
                said = _said(catalog, own if asked["cases"] is None else asked["cases"])
            data: dict[str, Any] = {"cases": own, "said": said, "faults": faults_of(catalog)}
        except LoadError as error:
            data = {"target": error.target, "unloadable": error.reason}
        print(json.dumps(data), file=output)


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
        yield from ((call.named, call.sent) for call in calls)
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
