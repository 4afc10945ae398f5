"""Paths of the workspace, which are offered while somebody types one."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from promptkit.errors.exceptions import PromptError
from promptkit.language.cancellation import is_cancelled
from promptkit.workspace.execution import execute

#: What ``promptkit serve`` sets, and anybody may. Empty, it means that there is none.
VARIABLE: Final = "PROMPTKIT_WORKSPACE"

#: What Claude Code sets for the servers that it starts.
_OF_CLAUDE_CODE: Final = "CLAUDE_PROJECT_DIR"

_NOWHERE: Final = (
    "this server has no workspace: start it with --workspace DIR, or over stdio in the folder that is meant"
)


def workspace() -> Path:
    """
    Return the folder that the person at the client works in.

    It is the one that ``promptkit serve --workspace`` names, else the one that the variable
    ``PROMPTKIT_WORKSPACE`` names, else ``CLAUDE_PROJECT_DIR``, else the current folder unless that is
    the root of the file system. Over HTTP there is one only with ``--workspace``.

    Returns:
        An absolute path.

    Raises:
        PromptError: If there is none, or what is named is not a folder.
    """
    variable = VARIABLE if VARIABLE in os.environ else _OF_CLAUDE_CODE
    named = os.environ.get(variable)
    if named:
        if not os.path.isdir(named):  # noqa: PTH112 (that of pathlib raises where a folder above is closed)
            # The path itself is not for clients of other machines.
            msg = f"{variable} names no folder where the server runs: correct it, or use --workspace DIR"
            raise PromptError(msg)
        return Path(named).absolute()
    current = None if variable == VARIABLE else _current_folder()
    if current is None:
        raise PromptError(_NOWHERE)
    return current


def _current_folder() -> Path | None:
    """The current folder; None where a client starts its servers at the root, or if it is gone."""
    with suppress(FileNotFoundError):
        folder = Path.cwd()
        return None if folder == folder.parent else folder
    return None


#: Somebody who types waits for the paths: how long it may take to find them, in seconds, and how many are
#: looked at.
_PATIENCE_S: Final = 2.0
_MOST_FILES: Final = 50_000
_MOST_BYTES: Final = 1 << 22

#: All files but those that are ignored. No program that the repository configures runs.
_GIT: Final = (
    *("git", "-c", "core.fsmonitor=", "ls-files", "-z"),
    *("--cached", "--others", "--exclude-standard"),
)


def files(pattern: str) -> Callable[[], list[str]]:
    """
    Return what completes an argument with files of the workspace: ``Arg(complete=files("**/*.py"))``.

    In a git repository they are those that git does not ignore; elsewhere, those in folders that are not
    hidden. In a very large workspace, only a part of them is found.

    Args:
        pattern:
            Which files, as seen from the workspace: ``*``, ``?`` and ``[...]`` stand for characters of one
            name, and ``**`` for any folders.

    Returns:
        A function that returns their paths from the workspace on, with ``/`` between the names, in order. It
        raises `PromptError` if there is no workspace.

    Raises:
        ValueError: If *pattern* is empty, or leads out of the workspace.
    """
    wanted = PurePosixPath(pattern).parts
    if not wanted or pattern.startswith("/") or ".." in wanted:
        msg = f"files(pattern) is {pattern!r}: write it as seen from the workspace, as in '**/*.py'"
        raise ValueError(msg)

    def found() -> list[str]:
        root = workspace()
        listed = _listed_by_git(root)
        paths = islice(_walked(root) if listed is None else listed, _MOST_FILES)
        # What cannot be shown in one line, or is no text, cannot be sent as an argument either.
        return sorted({path for path in paths if _matches(path.split("/"), wanted) and path.isprintable()})

    return found


def _listed_by_git(root: Path) -> Iterable[str] | None:
    """The files that git does not ignore, as far as it lists them in time; None if it is no repository."""
    try:
        outcome = execute(_GIT, root, limit=_MOST_BYTES, timeout=_PATIENCE_S, is_unwanted=is_cancelled)
    except OSError:  # there is no git
        return None
    if outcome.stopped is None and outcome.code != 0:
        return None
    *paths, _ = outcome.output.split(b"\0")
    return map(os.fsdecode, paths)


def _walked(root: Path) -> Iterator[str]:
    """The files below a folder that are in no hidden one, as far as they are found in time."""
    until = time.monotonic() + _PATIENCE_S
    folders = [""]  # `os.walk` calls itself for each level
    while folders and time.monotonic() < until:
        above, below = folders.pop(), list[str]()
        with suppress(OSError), os.scandir(root / above) as entries:
            for entry in entries:
                if not _is_folder(entry):
                    yield above + entry.name
                elif not (entry.name.startswith(".") or entry.is_symlink()):
                    below.append(f"{above}{entry.name}/")
        folders += sorted(below, reverse=True)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    """Return whether an entry is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _matches(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """
    Return whether the names of a path match the parts of a pattern.

    A ``**`` takes no name at first. If what follows it does not match, the last ``**`` takes one more name:
    one before it need not, because what it would leave to the last one, that can take itself. So each name is
    compared with each part at most once.
    """
    name = part = 0
    after_stars, taken = -1, 0
    while name < len(names):
        if part < len(wanted) and wanted[part] == "**":
            after_stars, taken = part + 1, name
            part += 1
        elif part < len(wanted) and fnmatchcase(names[name], wanted[part]):
            name, part = name + 1, part + 1
        elif after_stars >= 0:
            taken += 1
            name, part = taken, after_stars
        else:
            return False
    return all(rest == "**" for rest in wanted[part:])
