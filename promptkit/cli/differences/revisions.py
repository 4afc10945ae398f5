"""Revisions of a git repository: one is written to a folder, and the repository stays as it is."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from promptkit.errors.exceptions import LoadError, PromptkitError
from promptkit.files.folder import Folder, remove_outward_links
from promptkit.files.scratch import scratch_folder
from promptkit.loader.targets import split_target

#: No program that a repository configures runs: hooks, monitors of files, what fetches missing objects. An
#: index that is split has a part in the repository.
_NO_PROGRAMS: Final = (
    *("--no-pager", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor="),
    *("-c", "core.splitIndex=false"),
)

#: Git before 2.45 knows the second variable only: no protocol is allowed by which it fetches.
_NO_FETCH: Final = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}

#: How many folders may be in each other: Python removes those of a temporary folder by recursion.
_MAX_DEPTH: Final = 200

#: How long git may take. A pipe in the place of a file of its own would keep it forever.
_MAX_S: Final = 120.0


class RevisionError(PromptkitError):
    """A revision cannot be had; the message says why, and what to do."""


class Repository:
    """
    The git repository that a folder is in.

    Args:
        folder:
            Where to start.

        whose:
            What needs it, as errors say it.

    Raises:
        RevisionError: If it is in none, or there is no git.
    """

    def __init__(self, folder: str = ".", whose: str = "diff") -> None:
        self._folder = folder
        if shutil.which("git") is None:
            msg = f"{whose} needs git, which is not installed, or not on the PATH"
            raise RevisionError(msg)
        try:
            top = self._git("rev-parse", "--show-toplevel")
        except RevisionError as error:
            where = os.path.abspath(folder)  # noqa: PTH100 (it may be gone)
            msg = f"{whose} needs a git repository, and {where!r} is in none that git can read: {error}"
            raise RevisionError(msg) from None
        self.root = Path(os.path.realpath(top))

    def path(self, file: str) -> str:
        """Return the path of *file* as seen from the root; as it is if it lies elsewhere."""
        place = Path(file)
        return place.relative_to(self.root).as_posix() if place.is_relative_to(self.root) else file

    def ends(self, named: str) -> tuple[str, str | None]:
        """
        Return what is compared: a revision, and another one, or None for the files as they are.

        Args:
            named:
                One revision; or two, as git has them: ``A..B``; or ``A...B`` for B and where it left A. Of
                two, one that is left out is ``HEAD``.

        Raises:
            RevisionError: If the two of ``A...B`` have no commit in common.
        """
        old, dots, new = named.partition("..")
        if not dots:
            return named, None
        old, last = old or "HEAD", new.removeprefix(".") or "HEAD"
        return (self._fork(old, last) if new.startswith(".") else old), last

    def _fork(self, one: str, other: str) -> str:
        commits = self.commit(one), self.commit(other)
        try:
            return self._git("merge-base", *commits)[:12]
        except RevisionError:
            hint = self._shallow or f"write {one}..{other}"
            msg = f"{one!r} and {other!r} have no commit in common: {hint}"
            raise RevisionError(msg) from None

    def commit(self, revision: str) -> str:
        """
        Return the hash of the commit that *revision* names.

        Raises:
            RevisionError: If there is none.
        """
        try:
            return self._git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        except RevisionError:
            commits = self._git("rev-list", "--all", "--max-count=1")
            hint = "name a commit, a branch or a tag" if commits else "commit something first"
            msg = f"there is no revision {revision!r} here: {self._shallow or hint}"
            raise RevisionError(msg) from None

    @property
    def _shallow(self) -> str:
        """How to get the commits that a shallow clone lacks; "" if this is none."""
        if self._git("rev-parse", "--is-shallow-repository") != "true":
            return ""
        return (
            "this clone is shallow and lacks older commits: run git fetch --unshallow, "
            "or give actions/checkout fetch-depth: 0"
        )

    def write(self, commit: str, folder: Path) -> None:
        """
        Write the files of *commit* into *folder*, as they were committed: filters do not run.

        The index of its own that git needs for this lies outside of the repository. Neither hooks run, nor is
        a worktree noted anywhere. Submodules are empty folders. Links that lead out of *folder* are left out.

        Raises:
            RevisionError: If git cannot write them.
        """
        own = {"GIT_INDEX_FILE": str(folder.with_name(f"{folder.name}.index"))}
        prefix = f"--prefix={folder}{os.sep}"
        try:
            self._git("read-tree", commit, environment=own)
            paths = self._git("ls-files", "-z", environment=own).split("\0")
            self._check_depth(commit, paths)
            self._git(*self._no_filters(), "checkout-index", "--all", "--quiet", prefix, environment=own)
        except RevisionError as error:
            if not self._is_partial:
                raise
            hint = "clone it without --filter"
            msg = f"this clone is partial, and may lack files of {commit[:12]}: {hint} ({error})"
            raise RevisionError(msg) from None
        remove_outward_links(folder)
        Folder(folder, ".git").create()  # the root of the project is found by it

    def _check_depth(self, commit: str, paths: Iterable[str]) -> None:
        depth = max(path.count("/") for path in paths)
        if depth > _MAX_DEPTH:
            msg = f"a file of {commit[:12]} is in {depth:,} folders, and at most {_MAX_DEPTH} are written"
            raise RevisionError(msg)

    @property
    def _is_partial(self) -> bool:
        """Whether this clone leaves objects to a remote, from which git would fetch them."""
        keys = self._git("config", "--null", "--name-only", "--list").split("\0")
        return any(key.startswith("remote.") and key.endswith(".promisor") for key in keys)

    def _no_filters(self) -> list[str]:
        """The options that switch each filter off that is configured. Raises RevisionError."""
        keys = self._git("config", "--null", "--name-only", "--list").split("\0")
        names = {key.removeprefix("filter.").rpartition(".")[0] for key in keys if key.startswith("filter.")}
        for name in names:
            if "=" in name:  # where -c ends the name
                msg = f"the filter {name!r} in git's configuration cannot be switched off: rename it"
                raise RevisionError(msg)
        settings = ("smudge=", "process=", "required=false")
        return [word for name in names for one in settings for word in ("-c", f"filter.{name}.{one}")]

    def _git(self, *arguments: str, environment: dict[str, str] | None = None) -> str:
        where = getattr(self, "root", self._folder)
        command = ["git", "-C", where, *_NO_PROGRAMS, *arguments]
        try:
            ran = subprocess.run(  # noqa: S603 (git, with arguments of our own)
                command,
                capture_output=True,
                check=False,
                env={**os.environ, **_NO_FETCH, **(environment or {})},
                stdin=subprocess.DEVNULL,
                timeout=_MAX_S,
            )
        except subprocess.TimeoutExpired:
            msg = f"git {arguments[0]} did not end within {_MAX_S:g} s: a file of git may be a pipe"
            raise RevisionError(msg) from None
        if ran.returncode:
            reason = " ".join(ran.stderr.decode(errors="replace").split())
            raise RevisionError(reason or f"git {' '.join(arguments)} failed")
        return os.fsdecode(ran.stdout).rstrip("\r\n")


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
