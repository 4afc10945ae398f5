"""Skills on disk, as agents read them: each in a folder of its name, byte for byte what is served."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from promptkit.catalog.kept_bytes import KeptBytes
from promptkit.catalog.skills import CompiledSkill, folders_above
from promptkit.cli.clients.folders import FolderChange, FolderRefused, folder_change, sources_in

__all__ = ["files_by_skill", "skill_change", "skill_sources"]

#: Beside the folders: what was written there.
NOTE: Final = ".promptkit-skills.json"


def skill_change(folder: Path, skills: Iterable[CompiledSkill], source: str) -> FolderChange:
    """
    Return what makes the skills of a folder those that are given, apart from the skills of other sources.

    Args:
        folder:
            Where agents look for skills.

        skills:
            What is to be there. Those that lie in others are written with them.

        source:
            What they are made of; what was written of it before and is no more goes.

    Raises:
        FolderRefused: If two have one name, or something lies there that was not written so.
    """
    return folder_change(folder, files_by_skill(skills), source, NOTE)


def skill_sources(folder: Path) -> tuple[str, ...]:
    """Return what the skills in a folder were made of that were written there; see `sources_in`."""
    return sources_in(folder, NOTE)


def files_by_skill(skills: Iterable[CompiledSkill]) -> dict[str, dict[str, KeptBytes]]:
    """
    Return what the files of each skill hold. Those that lie in others are among the files of these.

    Raises:
        FolderRefused: If two have one name.
    """
    found = {skill.folder: skill for skill in skills}
    by_name = dict[str, CompiledSkill]()
    for folder, skill in found.items():
        if any(above in found for above in folders_above(folder)):
            continue
        if (other := by_name.setdefault(skill.name, skill)) is not skill:
            msg = f"{skill.uri_template} and {other.uri_template} would have one folder: rename one of them"
            raise FolderRefused(msg)
    return {name: {file.path: file.content for file in skill.files} for name, skill in by_name.items()}
