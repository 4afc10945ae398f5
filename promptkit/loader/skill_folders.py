"""Loads the folders of skills: each is read whole."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from promptkit.catalog.skills import SKILL_FILE
from promptkit.declarations.skill_files import SkillError, SkillFolder, paths_below, read_files
from promptkit.errors.diagnostics import Location, Report
from promptkit.files.scratch import SpooledBytes
from promptkit.loader.recipes import LoadedFile

#: The folder of skills, which is no part of their URIs.
_CONVENTION: Final = "skills"


def load_skills(folder: str, root: Path) -> tuple[LoadedFile, set[str]]:
    """
    Read a skill, and those within it. Return their declarations, and the paths of the files and folders read.

    Args:
        folder:
            The absolute path of its folder.

        root:
            The target, in which it lies.
    """
    first = Path(folder, SKILL_FILE)
    read = {str(first)}
    try:
        places, entered = paths_below(folder)
        read.update(places.values(), entered)
        _check_name(places)
        files = read_files(places, first.parent)
    except SkillError as fault:
        report = Report(f"skill {first.parent.name!r}", Location(str(first)))
        report.add(fault.rule, str(fault), fault.hint)
        return LoadedFile(first, diagnostics=tuple(report.found)), read
    base = root.parent if Path(folder) == root else root
    skills = tuple(_skill(Path(folder, inner), base, _below(inner, files)) for inner in _roots(files))
    return LoadedFile(first, skills=skills), read


def _check_name(paths: Iterable[str]) -> None:
    """Raise SkillError if no file among *paths* is called as agents look for it."""
    if SKILL_FILE not in paths:
        called = next((path for path in paths if path.lower() == SKILL_FILE.lower()), "no file")
        msg = f"it begins with {called!r}, and agents look for {SKILL_FILE!r}"
        raise SkillError(msg, f"rename it to {SKILL_FILE}")


def _roots(files: Iterable[str]) -> list[str]:
    """The folders among *files* that begin with a ``SKILL.md``, by their paths; ``""`` for the outermost."""
    return [above for above, _, name in (path.rpartition("/") for path in files) if name == SKILL_FILE]


def _below(folder: str, files: Mapping[str, SpooledBytes]) -> dict[str, SpooledBytes]:
    above = f"{folder}/" if folder else ""
    return {path.removeprefix(above): content for path, content in files.items() if path.startswith(above)}


def _skill(path: Path, root: Path, files: Mapping[str, SpooledBytes]) -> SkillFolder:
    parts = path.relative_to(root).parts[:-1]
    return SkillFolder(path, "/".join(parts[1:] if parts[:1] == (_CONVENTION,) else parts), files)
