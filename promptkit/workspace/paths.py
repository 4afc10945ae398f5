"""The path of the workspace, and the completion of arguments with the files in it."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from promptkit.errors.exceptions import PromptError
from promptkit.language.context import is_cancelled
from promptkit.workspace.execution import execute

#: The environment variable for the workspace, which ``promptkit serve`` or the user sets. If it is empty,
#: there is no workspace.
WORKSPACE_VARIABLE: Final = "PROMPTKIT_WORKSPACE"

#: The variable that Claude Code sets for the servers that it starts.
_CLAUDE_CODE_VARIABLE: Final = "CLAUDE_PROJECT_DIR"

_NO_WORKSPACE: Final = (
    "this server has no workspace: start it with --workspace DIR, or over stdio in the right folder"
)


#: The reason why there is no workspace in this context; None if there can be one.
UNAVAILABLE: Final[ContextVar[str | None]] = ContextVar("UNAVAILABLE", default=None)


def workspace() -> Path:
    """
    Return the folder in which the user works.

    The first of these settings that is set determines the folder: the option ``promptkit serve --workspace``,
    the environment variable ``PROMPTKIT_WORKSPACE``, and the environment variable ``CLAUDE_PROJECT_DIR``. If
    none of them is set, the workspace is the current folder, unless that is the root of the file system. Over
    HTTP, only ``--workspace`` is used.

    Returns:
        The absolute path of the folder.

    Raises:
        PromptError: If there is no workspace, or it is not a folder.
    """
    if (reason := UNAVAILABLE.get()) is not None:
        raise PromptError(reason)
    variable = WORKSPACE_VARIABLE if WORKSPACE_VARIABLE in os.environ else _CLAUDE_CODE_VARIABLE
    folder = os.environ.get(variable)
    if folder:
        if not os.path.isdir(folder):  # noqa: PTH112 (Path.is_dir raises if a parent is not accessible)
            # The message omits the path, because clients can be on other machines.
            msg = f"{variable} is not a folder on the server's machine: correct it, or use --workspace DIR"
            raise PromptError(msg)
        return Path(folder).absolute()
    current = None if variable == WORKSPACE_VARIABLE else _current_folder()
    if current is None:
        raise PromptError(_NO_WORKSPACE)
    return current


def _current_folder() -> Path | None:
    """
    Return the current folder; None if it was deleted or is the root of the file system.

    Some clients start servers in the root of the file system.
    """
    with suppress(FileNotFoundError):
        folder = Path.cwd()
        return None if folder == folder.parent else folder
    return None


#: The limits for listing files, which must be quick because users wait for completions: the time in seconds,
#: the number of files, and the size of git's output in bytes.
_TIMEOUT_S: Final = 2.0
_MAX_FILES: Final = 50_000
_MAX_BYTES: Final = 1 << 22

#: The command that lists all files that are not ignored, without running programs that the repository
#: configures.
_GIT: Final = (
    *("git", "-c", "core.fsmonitor=", "ls-files", "-z"),
    *("--cached", "--others", "--exclude-standard"),
)


def files(pattern: str) -> Callable[[], list[str]]:
    """
    Return a function that completes an argument with files: ``Arg(complete=files("**/*.py"))``.

    In a git repository, the completions are the files that git does not ignore. In other folders, they are
    all files outside hidden folders. In a very large workspace, the list can be incomplete.

    Args:
        pattern:
            A pattern for paths relative to the workspace. ``*``, ``?`` and ``[...]`` match characters within
            one name, and ``**`` matches any number of folders.

    Returns:
        A function that returns the sorted paths, relative to the workspace and with ``/`` as the separator.
        It raises `PromptError` if there is no workspace.

    Raises:
        ValueError: If *pattern* is empty, is an absolute path, or contains ``..``.
    """
    parts = PurePosixPath(pattern).parts
    if not parts or pattern.startswith("/") or ".." in parts:
        hint = "write it relative to the workspace, for example '**/*.py'"
        msg = f"the pattern of files(...) is {pattern!r}: {hint}"
        raise ValueError(msg)

    def list_files() -> list[str]:
        root = workspace()
        listed = _list_with_git(root)
        paths = islice(_walk(root) if listed is None else listed, _MAX_FILES)
        # Paths with control characters or unpaired surrogates cannot be sent as arguments.
        return sorted({path for path in paths if _matches(path.split("/"), parts) and path.isprintable()})

    return list_files


def _list_with_git(root: Path) -> Iterable[str] | None:
    """Return the files that git lists within the time limit; None if there is no git or no repository."""
    try:
        outcome = execute(_GIT, root, limit=_MAX_BYTES, timeout=_TIMEOUT_S, should_stop=is_cancelled)
    except OSError:  # git is not installed
        return None
    if outcome.stopped is None and outcome.code != 0:
        return None
    *paths, _ = outcome.output.split(b"\0")
    return map(os.fsdecode, paths)


def _walk(root: Path) -> Iterator[str]:
    """Yield the files in a folder and its subfolders, except hidden subfolders, within the time limit."""
    deadline = time.monotonic() + _TIMEOUT_S
    for folder, subfolders, names in os.walk(root):
        if time.monotonic() > deadline:
            return
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        parent = Path(folder).relative_to(root)
        yield from ((parent / name).as_posix() for name in names)


def _matches(names: Sequence[str], parts: Sequence[str]) -> bool:
    """
    Return whether the names of a path match the parts of a pattern.

    At first, a ``**`` matches no names. On a mismatch, only the last ``**`` is extended by one name, because
    it can match every name that an earlier ``**`` could. Therefore, each name is compared with each part at
    most once.
    """
    name = part = 0
    after_stars, stars_end = -1, 0
    while name < len(names):
        if part < len(parts) and parts[part] == "**":
            after_stars, stars_end = part + 1, name
            part += 1
        elif part < len(parts) and fnmatchcase(names[name], parts[part]):
            name, part = name + 1, part + 1
        elif after_stars >= 0:
            stars_end += 1
            name, part = stars_end, after_stars
        else:
            return False
    return all(remaining == "**" for remaining in parts[part:])
