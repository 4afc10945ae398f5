"""A skill that is a folder: it is served byte for byte."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from msgspec import Struct

from promptkit.catalog.skills import SKILL_FILE, CompiledSkill, skill_uri
from promptkit.catalog.spooled_bytes import SpooledBytes
from promptkit.declarations.frontmatter import FrontmatterError, read_skill
from promptkit.declarations.skill_files import compiled_skill
from promptkit.errors.diagnostics import Diagnostic, Location, Report, Rule

__all__ = ["SkillFolder"]


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
