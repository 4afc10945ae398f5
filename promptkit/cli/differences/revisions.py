"""Revisions of a git repository: one is written to a folder, and the repository stays as it is."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from promptkit.errors.exceptions import PromptkitError

__all__ = ["Repository", "RevisionError"]


#: No program that a repository configures runs: hooks, monitors of files, what fetches missing objects.
_NO_PROGRAMS: Final = ("--no-pager", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=")
_NO_FETCH: Final = {"GIT_NO_LAZY_FETCH": "1"}


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
            msg = f"{one!r} and {other!r} have no commit in common: write {one}..{other}"
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
            remedy = "name a commit, a branch or a tag" if commits else "commit something first"
            msg = f"there is no revision {revision!r} here: {remedy}"
            raise RevisionError(msg) from None

    def write(self, commit: str, folder: Path) -> None:
        """
        Write the files of *commit* into *folder*, as they were committed: filters do not run.

        The index of its own that git needs for this lies outside of the repository. Neither hooks run, nor is
        a worktree noted anywhere. Submodules are empty folders.

        Raises:
            RevisionError: If git cannot write them.
        """
        index = folder.with_name(f"{folder.name}.index")
        own = {"GIT_INDEX_FILE": str(index)}
        self._git("read-tree", commit, environment=own)
        prefix = f"--prefix={folder}{os.sep}"
        self._git(*self._no_filters(), "checkout-index", "--all", "--quiet", prefix, environment=own)
        (folder / ".git").mkdir(parents=True)  # the root of the project is found by it

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
        ran = subprocess.run(  # noqa: S603 (git, with arguments of our own)
            ["git", "-C", where, *_NO_PROGRAMS, *arguments],  # noqa: S607 (the user's)
            capture_output=True,
            check=False,
            env={**os.environ, **_NO_FETCH, **(environment or {})},
            stdin=subprocess.DEVNULL,
        )
        if ran.returncode:
            said = ran.stderr.decode(errors="replace").strip() or f"git {' '.join(arguments)} failed"
            raise RevisionError(said)
        return os.fsdecode(ran.stdout).rstrip("\r\n")
