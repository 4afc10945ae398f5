"""A revision of a repository, written to a folder: where its targets lie there."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from promptkit.cli.differences.revisions import Repository, RevisionError
from promptkit.errors.exceptions import LoadError
from promptkit.files.scratch import scratch_folder
from promptkit.loader.targets import split_target

__all__ = ["loading_from", "written"]


@contextmanager
def written(
    repository: Repository, revision: str | None, targets: Sequence[str]
) -> Iterator[tuple[Path, Sequence[str], tuple[Path, Path] | None]]:
    """
    Write a revision to a temporary folder: the current one there, the targets, and what lies where.

    None stands for the files as they are, which lie where they are.
    """
    here = Path(os.path.realpath(os.curdir))
    if revision is None:
        yield here, targets, None
        return
    commit = repository.commit(revision)
    with scratch_folder("promptkit-diff-") as scratch:
        then = Path(os.path.realpath(scratch)) / (repository.root.name or "root")
        now = repository.root
        moved = [_moved(target, now, then) for target in targets]
        repository.write(commit, then)
        folder = then / (here.relative_to(now) if here.is_relative_to(now) else "")
        yield folder if folder.is_dir() else then, moved, (then, now)  # where it lay says nothing


@contextmanager
def loading_from(repository: Repository, revision: str | None, targets: Sequence[str]) -> Iterator[None]:
    """Name the revision, if it is one, in what is raised for a side."""
    try:
        yield
    except (LoadError, RevisionError) as error:
        if revision is None:
            raise
        reason = error.reason if isinstance(error, LoadError) else str(error)
        reason = f"at {revision}, {reason.replace(f'{repository.root}{os.sep}', '')}"
        if isinstance(error, LoadError):
            raise LoadError(" ".join(targets), reason) from None
        raise RevisionError(reason) from None


def _moved(target: str, now: Path, then: Path) -> str:
    """What names a target in a copy of the repository."""
    name, attribute = split_target(target)
    place = Path(os.path.realpath(name))
    if not place.exists():  # it is a module
        return target
    if not place.is_relative_to(now):
        raise LoadError(target, f"it is not in the git repository at {str(now)!r}")
    copy = str(then / place.relative_to(now))
    return f"{copy}:{attribute}" if attribute else copy
