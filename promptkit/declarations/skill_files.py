"""The files of a skill: their paths, their limits, and reading them from a folder."""

import os
import stat
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct

from promptkit.catalog.cases import SkillCase
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill, SkillFile, skill_uri
from promptkit.declarations.base import SavedCases
from promptkit.declarations.skill_frontmatter import (
    FrontmatterError,
    SkillError,
    check_fields,
    is_valid_name,
    read_skill,
)
from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.exceptions import MediaError
from promptkit.errors.rules import Rule
from promptkit.files.reading import HashedBytes
from promptkit.language.files import read_confined

#: The limits that hosts set for one skill.
MAX_FILES: Final = 512
MAX_BYTES: Final = 16 * 1024 * 1024

#: Folders that tools create.
_GENERATED_FOLDERS: Final = frozenset({"__pycache__", "node_modules"})


def paths_below(folder: str) -> tuple[dict[str, str], list[str]]:
    """
    Find the files and folders of a skill, except hidden and generated ones.

    Args:
        folder:
            The absolute path of the skill's folder.

    Returns:
        The absolute path of each file, keyed and sorted by its path in the skill (with ``/``); and the paths
        of all folders.

    Raises:
        SkillError: If an entry is neither a file nor a folder, links to something outside the folder or to a
            parent folder, or cannot be read, or if there are too many entries.
    """
    root = Path(os.path.realpath(folder))
    files, folders = dict[str, str](), list[str]()
    pending = [(root, "", frozenset[Path]())]
    while pending:
        directory, within, parents = pending.pop()
        folders.append(str(directory))
        for entry in _entries(directory, within):
            path = f"{within}/{entry.name}".removeprefix("/")
            target = _target_of(entry, path, root)
            if target.is_file():
                files[path] = str(entry)
            elif target == directory or target in parents:
                msg = f"{path!r} is a symbolic link to one of its parent folders"
                raise SkillError(msg, "remove the link")
            else:
                pending.append((target, path, parents | {directory}))
        _check_file_count(max(len(files), len(folders)))
    return dict(sorted(files.items())), folders


def _entries(folder: Path, within: str) -> list[Path]:
    """Return the entries of a skill's folder, without hidden and generated ones. Raises SkillError."""
    try:
        return [entry for entry in folder.iterdir() if not is_omitted(entry.name)]
    except OSError as error:
        msg = f"its folder {within!r} cannot be read: {error.strerror}"
        raise SkillError(msg, "make it readable") from None


def is_omitted(name: str) -> bool:
    """Return whether a file is hidden, or created by a tool or an editor."""
    return name in _GENERATED_FOLDERS or name.startswith((".", "#")) or name.endswith("~")


def _target_of(entry: Path, path: str, root: Path) -> Path:
    """Return the file or folder that an entry is or links to. Raises SkillError unless it is below *root*."""
    try:
        target = Path(os.path.realpath(entry, strict=True))
        mode = target.stat().st_mode
    except OSError as error:
        msg = f"{path!r} cannot be read: {error.strerror}"
        raise SkillError(msg, "remove it, or make it readable") from None
    if root not in target.parents:
        raise _link_error(path)
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        msg = f"{path!r} is a pipe, a socket or a device"
        raise SkillError(msg, "remove it")
    return target


def _link_error(path: str) -> SkillError:
    return SkillError(f"{path!r} links to a file outside the skill's folder", "replace the link with a copy")


def read_files(locations: Mapping[str, str], root: Path) -> dict[str, HashedBytes]:
    """
    Read the files of a skill, and return their contents, keyed by path in the skill.

    Args:
        locations:
            The absolute path of each file, keyed by its path in the skill.

        root:
            The folder that must contain every file, even if a link changes while the files are being read.

    Raises:
        SkillError: If a file cannot be read, or the files are too large.
    """
    contents, remaining = dict[str, HashedBytes](), MAX_BYTES
    for path, location in locations.items():
        try:
            data = read_confined(Path(os.path.realpath(location)), root, path, MAX_BYTES)
            contents[path] = HashedBytes(data)
        except MediaError as error:
            msg = f"a file cannot be read from {root}: {error}"
            raise SkillError(msg, "correct its path, or make it readable") from None
        except ValueError:  # meanwhile, a link has replaced the file
            raise _link_error(path) from None
        remaining -= len(data)
        _check_total_size(MAX_BYTES - remaining)
    return contents


def _check_file_count(number: int) -> None:
    if number > MAX_FILES:
        msg = f"it has more than {MAX_FILES} files"
        raise SkillError(msg, "merge files, or split the skill")


def _check_total_size(size: int) -> None:
    if size > MAX_BYTES:
        msg = f"its files exceed {MAX_BYTES >> 20} MiB in total"
        raise SkillError(msg, "keep large files elsewhere, and refer to them by path or URL")


def _check_path(path: str) -> None:
    """Raise SkillError if any system would resolve a path to a different file, or to no file."""
    variants = (PurePosixPath(path), PureWindowsPath(path))
    is_plain = path.isprintable() and "\\" not in path and ":" not in path and path == str(variants[0])
    if not is_plain or any(".." in variant.parts or variant.anchor for variant in variants):
        msg = f"{path!r} is not a valid path within a skill"
        raise SkillError(msg, "write a relative path with '/' and without '..', backslashes or colons")


def _check_files(files: Mapping[str, HashedBytes]) -> None:
    """Raise SkillError unless the files can be served, and written to disk on every system."""
    _check_file_count(len(files))
    _check_total_size(sum(content.size for content in files.values()))
    by_folded = dict[str, str]()
    for path in files:
        _check_path(path)
        if (earlier := by_folded.setdefault(path.casefold(), path)) != path:
            msg = f"{earlier!r} and {path!r} differ only in case, and are the same file on some systems"
            raise SkillError(msg, "rename one of them")
    for path in files:
        for parent in PurePosixPath(path).parents:
            if str(parent).casefold() in by_folded:
                msg = f"{str(parent)!r} is a file, and {path!r} is in a folder of that name"
                raise SkillError(msg, "rename one of them")


def compile_skill(  # noqa: PLR0913 (a skill has that many properties)
    name: str,
    prefix: str,
    fields: Mapping[str, Any],
    files: Mapping[str, HashedBytes],
    report: Report,
    *,
    scopes: frozenset[str] = frozenset(),
    lines: Mapping[str, int] | None = None,
    saved: SavedCases | None = None,
) -> CompiledSkill | None:
    """
    Return a skill as it is served, or None if it violates the format.

    Args:
        name:
            The name of the skill's folder.

        prefix:
            The part of the skill's URI before the name.

        fields:
            The fields of the frontmatter.

        files:
            The contents of all files, including ``SKILL.md``, keyed by path.

        report:
            Receives the diagnostics.

        scopes:
            The scopes that a caller must have.

        lines:
            The line of each field in ``SKILL.md`` if the author wrote that file. If so, problems that hosts
            tolerate are not reported.

        saved:
            The skill's saved cases.
    """
    problems = [
        problem for problem in check_fields(fields, name) if lines is None or not problem.is_tolerated
    ]
    for problem in problems:
        location = Location(report.location.file, lines.get(problem.key, 1)) if lines is not None else None
        report.add(Rule.BAD_SKILL, problem.message, problem.hint, location)
    try:
        _check_files(files)
    except SkillError as error:
        report.add(error.rule, str(error), error.hint)
        return None
    if problems:
        return None
    paths = sorted(files.keys() - {SKILL_FILE})
    ordered = tuple(SkillFile(path, files[path]) for path in (SKILL_FILE, *paths))
    cases: Any = tuple if saved is None else saved  # a skill has no other cases
    return CompiledSkill(
        fields["name"], fields["description"], prefix, fields, ordered, report.location, scopes, cases
    )


class SkillFolder(Struct, frozen=True, eq=False, dict=True):
    """
    A folder with a ``SKILL.md``.

    Args:
        path:
            The folder.

        prefix:
            The part of the skill's URI before the name.

        files:
            The contents of the folder's files, keyed by path.
    """

    kind: ClassVar[Literal["skill"]] = "skill"

    path: Path
    prefix: str
    files: Mapping[str, HashedBytes]

    @cached_property
    def name(self) -> str:
        """The skill's name: the name in the frontmatter if it is valid, otherwise the folder's name."""
        name = self._fields.get("name") if isinstance(self._fields, dict) else None
        return name if isinstance(name, str) and is_valid_name(name) else self.path.name

    @property
    def is_renamed(self) -> bool:
        """Whether the skill's name differs from the folder's name."""
        return self.name != self.path.name

    @property
    def uri_template(self) -> str:
        """The URI of the skill's ``SKILL.md``."""
        return skill_uri(self.prefix, self.name)

    @property
    def location(self) -> Location:
        """The start of ``SKILL.md``."""
        return Location(str(self.path / SKILL_FILE), 1)

    @cached_property
    def _fields(self) -> dict[str, Any] | FrontmatterError:
        """The frontmatter, or the error if it cannot be read."""
        try:
            return read_skill(self.files[SKILL_FILE].data)[0]
        except FrontmatterError as error:
            return error

    def compile(self) -> tuple[CompiledSkill | None, tuple[Diagnostic, ...]]:
        """Return the skill as it is served (None if it has errors) and all diagnostics."""
        report = Report(f"skill {self.name!r}", self.location)
        fields = self._fields
        if isinstance(fields, FrontmatterError):
            report.add(Rule.BAD_SKILL, str(fields), fields.hint, Location(report.location.file, fields.line))
            return None, tuple(report.diagnostics)
        lines = lines_of_fields(self.files[SKILL_FILE].data)
        saved, at = SavedCases(), Location(report.location.file, lines.get("metadata", 1))
        for request, wanted in _read_cases(fields.get("metadata")):
            saved.add(SkillCase(request, at, str, None, wanted=wanted))
        compiled = compile_skill(
            self.path.name, self.prefix, fields, self.files, report, lines=lines, saved=saved
        )
        return compiled, tuple(report.diagnostics)


def lines_of_fields(data: bytes) -> dict[str, int]:
    """Return the line on which each field of a ``SKILL.md`` starts."""
    numbered = enumerate(data.decode().splitlines(), 1)
    return {line.partition(":")[0]: number for number, line in reversed(list(numbered))}


def _read_cases(metadata: Any) -> Iterator[tuple[str, bool]]:
    """
    Yield each request in the ``cases`` of a skill's metadata, and whether the skill is wanted for it.

    The value of ``cases`` is text with one request per line, or a list with one request per item. Before a
    request, ``not:`` means that the skill is not wanted; in a list, YAML reads ``not: request`` as a mapping.
    Other values belong to other programs and are ignored.
    """
    cases = metadata.get("cases") if isinstance(metadata, Mapping) else None
    for case in cases.splitlines() if isinstance(cases, str) else cases if isinstance(cases, list) else ():
        match case:
            case {"not": str(request)}:
                yield request.strip(), False
            case str() if case.strip():
                request = case.strip()
                yield request.removeprefix("not:").strip(), not request.startswith("not:")
