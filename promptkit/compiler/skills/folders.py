"""Folders of skills: found below a target, read whole, and served byte for byte."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Final, Literal

from msgspec import Struct

from promptkit.catalog.kept_bytes import KeptBytes
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill, skill_uri
from promptkit.compiler.recipes import LoadedFile
from promptkit.compiler.skills.files import SkillFault, compiled_skill, paths_below, read_files
from promptkit.compiler.skills.frontmatter import FrontmatterFault, read_skill
from promptkit.errors.diagnostics import Diagnostic, Location, Report, Rule
from promptkit.errors.regular_files import Stamps, file_stamp

__all__ = ["SkillFolder", "SkillsOnDisk", "skills_on_disk"]

#: The folder of skills, which is no part of their URIs.
_CONVENTION: Final = "skills"


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
    files: Mapping[str, KeptBytes]

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
        except FrontmatterFault as fault:
            report.add(Rule.BAD_SKILL, str(fault), fault.remedy, Location(report.location.file, fault.line))
            return None, tuple(report.found)
        numbered = enumerate(data.decode().splitlines(), 1)
        lines = {line.partition(":")[0]: number for number, line in reversed(list(numbered))}
        compiled = compiled_skill(self.name, self.prefix, fields, self.files, report, lines=lines)
        return compiled, tuple(report.found)


class SkillsOnDisk(Struct, frozen=True):
    """
    A skill in a folder that lies in no other skill, and those within it. They are read together.

    Args:
        loaded:
            What they declare.

        stamps:
            The files and folders that were read, as they were before.
    """

    loaded: LoadedFile
    stamps: Stamps


def skills_on_disk(folder: str, root: Path, before: SkillsOnDisk | None = None) -> SkillsOnDisk:
    """
    Read a skill, and those within it.

    Args:
        folder:
            The absolute path of its folder.

        root:
            The target, in which it lies.

        before:
            What was read of it before. It is used again if nothing has changed since.
    """
    first = Path(folder, SKILL_FILE)
    stamps: dict[str, tuple[int, int, int, int] | None] = {str(first): file_stamp(str(first))}
    try:
        places, entered = paths_below(folder)
        stamps |= {path: file_stamp(path) for path in (*places.values(), *entered)}
        if before is not None and before.stamps == stamps:
            return before
        files = read_files(places)
    except SkillFault as fault:
        report = Report(f"skill {first.parent.name!r}", Location(str(first)))
        report.add(fault.rule, str(fault), fault.remedy)
        return SkillsOnDisk(LoadedFile(first, diagnostics=tuple(report.found)), stamps)
    base = root.parent if Path(folder) == root else root
    skills = tuple(_skill(Path(folder, inner), base, _below(inner, files)) for inner in _roots(files))
    return SkillsOnDisk(LoadedFile(first, skills=skills), stamps)


def _roots(files: Iterable[str]) -> list[str]:
    """The folders among *files* that begin with a ``SKILL.md``, by their paths; ``""`` for the outermost."""
    return [above for above, _, name in (path.rpartition("/") for path in files) if name == SKILL_FILE]


def _below(folder: str, files: Mapping[str, KeptBytes]) -> dict[str, KeptBytes]:
    above = f"{folder}/" if folder else ""
    return {path.removeprefix(above): content for path, content in files.items() if path.startswith(above)}


def _skill(path: Path, root: Path, files: Mapping[str, KeptBytes]) -> SkillFolder:
    parts = path.relative_to(root).parts[:-1]
    return SkillFolder(path, "/".join(parts[1:] if parts[:1] == (_CONVENTION,) else parts), files)
