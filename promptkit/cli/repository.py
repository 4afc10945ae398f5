"""A git repository, whose revisions can be written to a folder without changing the repository."""

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
from promptkit.loader.targets import split_target, with_path

#: Options that keep git from running configured programs (hooks, file system monitors, fetches of missing
#: objects), and from splitting the index, which would write to the repository.
_NO_PROGRAMS: Final = (
    *("--no-pager", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor="),
    *("-c", "core.splitIndex=false"),
)

#: Variables that keep git from fetching. Git before 2.45 supports only the second one, which disallows all
#: protocols.
_NO_FETCH: Final = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}

#: Maximum nesting of folders, because Python removes temporary folders recursively.
_MAX_DEPTH: Final = 200

#: Timeout for git in seconds. Without it, git would wait indefinitely if one of its files were a pipe.
_MAX_S: Final = 120.0


class RevisionError(PromptkitError):
    """A revision is not available; the message gives the reason and a fix."""


class Repository:
    """
    The git repository that contains a folder.

    Args:
        folder:
            The folder.

        feature:
            The feature that needs the repository, to name in error messages.

    Raises:
        RevisionError: If the folder is not in a repository, or git is missing.
    """

    def __init__(self, folder: str = ".", feature: str = "diff") -> None:
        self.root = Path(folder)
        if shutil.which("git") is None:
            msg = f"{feature} needs git, which is not installed, or not on the PATH"
            raise RevisionError(msg)
        try:
            top = self.run_git("rev-parse", "--show-toplevel")
        except RevisionError as error:
            where = os.path.abspath(folder)  # noqa: PTH100 (the folder might not exist)
            msg = f"{feature} needs a git repository, but {where!r} is not in one that git can read: {error}"
            raise RevisionError(msg) from None
        self.root = Path(os.path.realpath(top))

    def relative_path(self, file: str) -> str:
        """Return the path of *file* relative to the root of the repository; unchanged if it is outside."""
        path = Path(file)
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else file

    def resolve_range(self, revisions: str) -> tuple[str, str | None]:
        """
        Return the old and the new revision of a comparison; the new one is None for the working tree.

        Args:
            revisions:
                One revision; or two in git's syntax: ``A..B``, or ``A...B`` for B and its merge base with A.
                An omitted A or B means ``HEAD``.

        Raises:
            RevisionError: If the revisions of ``A...B`` have no common ancestor.
        """
        old, dots, new = revisions.partition("..")
        if not dots:
            return revisions, None
        old, last = old or "HEAD", new.removeprefix(".") or "HEAD"
        return (self._merge_base(old, last) if new.startswith(".") else old), last

    def _merge_base(self, old: str, new: str) -> str:
        commits = self.resolve_commit(old), self.resolve_commit(new)
        try:
            return self.run_git("merge-base", *commits)[:12]
        except RevisionError:
            hint = self._shallow_hint or f"compare them directly with {old}..{new}"
            msg = f"{old!r} and {new!r} have no common ancestor: {hint}"
            raise RevisionError(msg) from None

    def resolve_commit(self, revision: str) -> str:
        """
        Return the hash of the commit that *revision* names.

        Raises:
            RevisionError: If the revision does not exist.
        """
        try:
            return self.run_git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        except RevisionError:
            commits = self.run_git("rev-list", "--all", "--max-count=1")
            hint = "use a commit, a branch or a tag" if commits else "commit something first"
            msg = f"unknown revision {revision!r}: {self._shallow_hint or hint}"
            raise RevisionError(msg) from None

    @property
    def _shallow_hint(self) -> str:
        """A hint on how to fetch the commits that a shallow clone lacks; "" for a full clone."""
        if self.run_git("rev-parse", "--is-shallow-repository") != "true":
            return ""
        return (
            "this clone is shallow and lacks older commits: run git fetch --unshallow, "
            "or set fetch-depth: 0 for actions/checkout"
        )

    def write_commit(self, commit: str, folder: Path) -> None:
        """
        Write the files of *commit* into *folder*, as they were committed, without running filters.

        The temporary index for this is outside the repository. No hooks run, and no worktree is registered.
        Submodules become empty folders. Symbolic links that point outside *folder* are removed.

        Raises:
            RevisionError: If git cannot write the files, or their folders are nested too deeply.
        """
        index = {"GIT_INDEX_FILE": str(folder.with_name(f"{folder.name}.index"))}
        checkout_index = "checkout-index", "--all", "--quiet", f"--prefix={folder}{os.sep}"
        self.run_git("read-tree", commit, environment=index)
        self._check_depth(commit, self.run_git("ls-files", "-z", environment=index).split("\0"))
        self.run_git(*self._options_to_disable_filters(), *checkout_index, environment=index)
        remove_outward_links(folder)
        Folder(folder, ".git").create()  # marks the root of the project

    def _check_depth(self, commit: str, paths: Iterable[str]) -> None:
        depth = max(path.count("/") for path in paths)
        if depth > _MAX_DEPTH:
            msg = (
                f"a file of {commit[:12]} is nested in {depth:,} folders, but at most {_MAX_DEPTH} "
                "are supported"
            )
            raise RevisionError(msg)

    def _options_to_disable_filters(self) -> list[str]:
        """Return the options that disable all configured filters. Raises RevisionError."""
        keys = self.run_git("config", "--null", "--name-only", "--list").split("\0")
        names = {key.removeprefix("filter.").rpartition(".")[0] for key in keys if key.startswith("filter.")}
        for name in names:
            if "=" in name:  # the option -c would end the name there
                msg = f"the filter {name!r} in git's configuration cannot be disabled: rename it without '='"
                raise RevisionError(msg)
        settings = ("smudge=", "process=", "required=false")
        return [word for name in names for setting in settings for word in ("-c", f"filter.{name}.{setting}")]

    def run_git(self, *arguments: str, environment: dict[str, str] | None = None) -> str:
        """
        Run git at the root of the repository, and return its output.

        Raises:
            RevisionError: If git fails or times out.
        """
        command = ["git", "-C", str(self.root), *_NO_PROGRAMS, *arguments]
        try:
            process = subprocess.run(  # noqa: S603 (git, with trusted arguments)
                command,
                capture_output=True,
                check=False,
                env={**os.environ, **_NO_FETCH, **(environment or {})},
                stdin=subprocess.DEVNULL,
                timeout=_MAX_S,
            )
        except subprocess.TimeoutExpired:
            msg = f"git {arguments[0]} did not finish within {_MAX_S:g} s: one of its files may be a pipe"
            raise RevisionError(msg) from None
        if process.returncode:
            reason = " ".join(process.stderr.decode(errors="replace").split())
            raise RevisionError(reason or f"git {' '.join(arguments)} failed")
        return os.fsdecode(process.stdout).rstrip("\r\n")


@contextmanager
def checkout(
    repository: Repository, revision: str | None, targets: Sequence[str]
) -> Iterator[tuple[Path, Sequence[str], tuple[Path, Path]]]:
    """
    Check out a revision into a temporary folder, and yield the locations from which to load the recipes.

    Yield the copy of the current folder, the targets in the copy, and the roots of the copy and of the
    repository. If *revision* is None, yield the current folder, the unchanged targets, and the current folder
    as both roots. Errors that are raised while the copy is in use also name the revision.
    """
    current = Path(os.path.realpath(os.curdir))
    if revision is None:
        yield current, targets, (current, current)
        return
    commit = repository.resolve_commit(revision)
    with scratch_folder("promptkit-diff-") as scratch:
        copy_root = Path(os.path.realpath(scratch)) / (repository.root.name or "root")
        root = repository.root
        moved = [_move_target(target, root, copy_root) for target in targets]
        repository.write_commit(commit, copy_root)
        folder = copy_root / (current.relative_to(root) if current.is_relative_to(root) else "")
        try:
            # Messages show the repository's root instead of the copy's root.
            yield folder if folder.is_dir() else copy_root, moved, (copy_root, root)
        except (LoadError, RevisionError) as error:
            reason = error.reason if isinstance(error, LoadError) else str(error)
            reason = f"at {revision}, {reason.replace(f'{root}{os.sep}', '')}"
            if isinstance(error, LoadError):
                raise LoadError(" ".join(targets), reason) from None
            raise RevisionError(reason) from None


def _move_target(target: str, root: Path, copy_root: Path) -> str:
    """Return the target that has the same path in a copy of the repository; modules are unchanged."""
    name, _ = split_target(target)
    path = Path(os.path.realpath(name))
    if not path.exists():  # a module
        return target
    if not path.is_relative_to(root):
        raise LoadError(target, f"it is not in the git repository at {str(root)!r}")
    return with_path(target, str(copy_root / path.relative_to(root)))
