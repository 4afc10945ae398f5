"""The files of a skill: which paths they may have, how many there may be, how a folder is read."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct

from promptkit.catalog.skills import SKILL_FILE, CompiledSkill, SkillFile, skill_uri
from promptkit.declarations.frontmatter import FrontmatterError, faults_of, read_skill
from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.exceptions import MediaError
from promptkit.errors.rules import Rule
from promptkit.files.scratch import SpooledBytes, keep
from promptkit.language.files import read_confined

#: What hosts take of one skill.
MOST_FILES: Final = 512
MOST_BYTES: Final = 16 * 1024 * 1024

#: Folders that programs leave behind.
_LEFT_BEHIND: Final = frozenset({"__pycache__", "node_modules"})


class SkillError(Exception):
    """
    A skill cannot be served.

    Args:
        fault:
            What is wrong.

        hint:
            What to do about it.

        rule:
            What kind of fault it is.
    """

    def __init__(self, fault: str, hint: str, rule: Rule = Rule.SKILL_FILES) -> None:
        super().__init__(fault)
        self.hint = hint
        self.rule = rule


def paths_below(folder: str) -> tuple[dict[str, str], list[str]]:
    """
    Return the files in a folder and below it, without what is hidden or left behind, and all folders.

    Args:
        folder:
            Its absolute path.

    Returns:
        By their paths within the folder, with ``/`` between the parts: where the files lie; in order.

    Raises:
        SkillError: If something is neither a file nor a folder, leads out of the folder or in a circle, or is
            too much.
    """
    root = os.path.realpath(folder)
    files, entered = dict[str, str](), list[str]()
    waiting = [(root, "", frozenset[str]())]
    while waiting:
        place, within, above = waiting.pop()
        real = os.path.realpath(place)
        if real in above:
            msg = f"{within!r} leads in a circle"
            raise SkillError(msg, "remove the link")
        entered.append(real)
        for entry in _entries(place, within):
            path = f"{within}/{entry.name}".removeprefix("/")
            mode = _mode_of(entry, path, root)
            if stat.S_ISDIR(mode):
                waiting.append((entry.path, path, above | {real}))
            else:
                files[path] = entry.path
        _check_number(max(len(files), len(entered)))
    return dict(sorted(files.items())), entered


def _entries(place: str, within: str) -> Iterator["os.DirEntry[str]"]:
    try:
        with os.scandir(place) as found:
            entries = list(found)
    except OSError as error:
        msg = f"its folder {within!r} cannot be read: {error.strerror}"
        raise SkillError(msg, "let it be read") from None
    return (entry for entry in entries if not is_left_out(entry.name))


def is_left_out(name: str) -> bool:
    """
    Return whether a file is hidden, or left behind by a program or an editor.
    """
    return name in _LEFT_BEHIND or name.startswith((".", "#")) or name.endswith("~")


def _mode_of(entry: "os.DirEntry[str]", path: str, root: str) -> int:
    """Whether an entry is a file or a folder. Raises SkillError if it is neither, or leads out of *root*."""
    try:
        end = os.path.realpath(entry.path, strict=True) if entry.is_symlink() else entry.path
        mode = entry.stat().st_mode
    except OSError as error:
        msg = f"{path!r} cannot be read: {error.strerror}"
        raise SkillError(msg, "remove it, or let it be read") from None
    if entry.is_symlink() and not end.startswith(f"{root.rstrip(os.sep)}{os.sep}"):
        raise _leads_out(path)
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        msg = f"{path!r} is a pipe, a socket or a device"
        raise SkillError(msg, "remove it")
    return mode


def _leads_out(path: str) -> SkillError:
    return SkillError(f"{path!r} leads out of its folder", "put a copy in place of the link")


def read_files(places: Mapping[str, str], root: Path) -> dict[str, SpooledBytes]:
    """
    Return what files hold, by the paths that they have in a skill.

    Args:
        places:
            Where they lie.

        root:
            The folder that none of them may leave, whatever happens meanwhile.

    Raises:
        SkillError: If one cannot be read, or they are too large.
    """
    found, left = dict[str, SpooledBytes](), MOST_BYTES
    for path, place in places.items():
        try:
            data = read_confined(Path(os.path.realpath(place)), root, path, MOST_BYTES)
            found[path] = keep(data)
        except MediaError as error:
            msg = f"a file cannot be read from {root}: {error}"
            raise SkillError(msg, "correct its path, or let it be read") from None
        except ValueError:  # a link was put in its place meanwhile
            raise _leads_out(path) from None
        except OSError as error:
            msg = f"{path!r} cannot be kept: {error.strerror}"
            raise SkillError(msg, "make room on the disk") from None
        left -= len(data)
        _check_size(MOST_BYTES - left)
    return found


def _check_number(number: int) -> None:
    if number > MOST_FILES:
        msg = f"it has more than {MOST_FILES} files"
        raise SkillError(msg, "put several into one, or make several skills")


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        msg = f"its files have more than {MOST_BYTES >> 20} MiB"
        raise SkillError(msg, "leave large files where they are, and name their place")


def _check_path(path: str) -> None:
    """Raise SkillError if a path would be another file, or none, on some system."""
    pure = (PurePosixPath(path), PureWindowsPath(path))
    is_plain = path.isprintable() and "\\" not in path and ":" not in path and path == str(pure[0])
    if not is_plain or any(".." in one.parts or one.anchor for one in pure):
        msg = f"{path!r} is no plain path within the skill"
        raise SkillError(msg, "write it relative, with '/', and without '..', backslashes and colons")


def _check_files(files: Mapping[str, SpooledBytes]) -> None:
    """Raise SkillError if files cannot be served, or written to disk, everywhere."""
    _check_number(len(files))
    _check_size(sum(content.size for content in files.values()))
    by_folded = dict[str, str]()
    for path in files:
        _check_path(path)
        if (other := by_folded.setdefault(path.casefold(), path)) != path:
            msg = f"{other!r} and {path!r} differ in case alone, and are one file on some systems"
            raise SkillError(msg, "rename one of the two")
    for path in files:
        for above in PurePosixPath(path).parents:
            if str(above).casefold() in by_folded:
                msg = f"{str(above)!r} is a file, and {path!r} lies in a folder of that name"
                raise SkillError(msg, "rename one of the two")


def compiled_skill(  # noqa: PLR0913 (a skill has that many properties)
    name: str,
    prefix: str,
    fields: Mapping[str, Any],
    files: Mapping[str, SpooledBytes],
    report: Report,
    *,
    scopes: frozenset[str] = frozenset(),
    lines: Mapping[str, int] | None = None,
) -> CompiledSkill | None:
    """
    Return a skill as it is served, or None if its format does not allow it.

    Args:
        name:
            The name of its folder.

        prefix:
            What precedes it in URIs.

        fields:
            The frontmatter.

        files:
            What all files hold, ``SKILL.md`` among them.

        report:
            Receives what is wrong.

        scopes:
            What a caller has to have.

        lines:
            Where in ``SKILL.md`` each field stands.
    """
    faults = list(faults_of(fields, name))
    for key, fault, hint in faults:
        place = Location(report.location.file, lines.get(key, 1)) if lines is not None else None
        report.add(Rule.BAD_SKILL, fault, hint, place)
    try:
        _check_files(files)
    except SkillError as error:
        report.add(error.rule, str(error), error.hint)
        return None
    if faults:
        return None
    others = sorted(files.keys() - {SKILL_FILE})
    ordered = tuple(SkillFile(path, files[path]) for path in (SKILL_FILE, *others))
    return CompiledSkill(name, fields["description"], prefix, fields, ordered, report.location, scopes)


class SkillFolder(Struct, frozen=True, eq=False):
    """
    A folder that begins with a ``SKILL.md``.

    Args:
        path:
            The folder.

        prefix:
            What precedes its name in URIs.

        files:
            What its files hold, by their paths within it.
    """

    kind: ClassVar[Literal["skill"]] = "skill"

    path: Path
    prefix: str
    files: Mapping[str, SpooledBytes]

    @property
    def name(self) -> str:
        """The name of the folder, which the skill has to have."""
        return self.path.name

    @property
    def uri_template(self) -> str:
        """The URI of its ``SKILL.md``."""
        return skill_uri(self.prefix, self.name)

    @property
    def location(self) -> Location:
        """Where it begins."""
        return Location(str(self.path / SKILL_FILE), 1)

    def compile(self) -> tuple[CompiledSkill | None, tuple[Diagnostic, ...]]:
        """
        Return the skill as it is served, or None if it cannot be, and all its diagnostics.
        """
        report = Report(f"skill {self.name!r}", self.location)
        data = self.files[SKILL_FILE].data
        try:
            fields, _, _ = read_skill(data)
        except FrontmatterError as fault:
            report.add(Rule.BAD_SKILL, str(fault), fault.hint, Location(report.location.file, fault.line))
            return None, tuple(report.found)
        numbered = enumerate(data.decode().splitlines(), 1)
        lines = {line.partition(":")[0]: number for number, line in reversed(list(numbered))}
        compiled = compiled_skill(self.name, self.prefix, fields, self.files, report, lines=lines)
        return compiled, tuple(report.found)
