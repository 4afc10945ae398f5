"""Skills on disk, as agents read them: each in a folder of its name, byte for byte what is served."""

from collections.abc import Iterable
from typing import Final

from promptkit.catalog.skills import CompiledSkill, folders_above
from promptkit.catalog.spooled_bytes import SpooledBytes
from promptkit.clients.folders import FolderChange, FolderRefusedError, folder_change, has_entries
from promptkit.files.folder import Folder

__all__ = ["files_by_skill", "has_skills", "skill_change"]

#: The note next to the folders of skills; see `folder_change`.
NOTE: Final = ".promptkit-skills.json"


def skill_change(folder: Folder, skills: Iterable[CompiledSkill], source: str | None) -> FolderChange:
    """
    Return the changes that bring the skills in a folder to the given ones, ignoring those of other sources.

    Args:
        folder:
            The folder in which agents look for skills.

        skills:
            The wanted skills. A skill within another one is written with it.

        source:
            The recipes of the skills. Other skills of this source are removed. None for all sources, if no
            skill is wanted.

    Raises:
        FolderRefusedError: If two skills have one name, or a file was not written by promptkit, or changed
            since.
        OSError: If the folder cannot be read.
    """
    return folder_change(folder, files_by_skill(skills), source, NOTE)


def has_skills(folder: Folder) -> bool:
    """Return whether promptkit has written skills into a folder; see `has_entries`."""
    return has_entries(folder, NOTE)


def files_by_skill(skills: Iterable[CompiledSkill]) -> dict[str, dict[str, SpooledBytes]]:
    """
    Return what the files of each skill hold. Those that lie in others are among the files of these.

    Raises:
        FolderRefusedError: If two have one name.
    """
    found = {skill.folder: skill for skill in skills}
    by_name = dict[str, CompiledSkill]()
    for folder, skill in found.items():
        if any(above in found for above in folders_above(folder)):
            continue
        if (other := by_name.setdefault(skill.name, skill)) is not skill:
            msg = f"{skill.uri_template} and {other.uri_template} would have one folder: rename one of them"
            raise FolderRefusedError(msg)
    return {name: {file.path: file.content for file in skill.files} for name, skill in by_name.items()}
