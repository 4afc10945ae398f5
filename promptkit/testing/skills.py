"""
Skills as a client receives them: listed, and read as hosts have to read them, with every byte verified.

See https://modelcontextprotocol.io/extensions/skills.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from promptkit.catalog.skills import SKILL_FILE
from promptkit.declarations.frontmatter import FrontmatterError, read_skill
from promptkit.errors.exceptions import PromptkitError
from promptkit.language.documents import EmbeddedResource


class ListedSkillFile(Struct, frozen=True):
    """
    A file of a skill, as the list shows it.

    Args:
        uri:
            What it is read under.

        digest:
            ``sha256:`` and 64 hexadecimal digits.

        size:
            How many bytes it has.
    """

    uri: str
    digest: str
    size: int


class ListedSkill(Struct, frozen=True):
    """
    A skill, as a client sees it in the list.

    Args:
        uri:
            The URI of its ``SKILL.md``.

        frontmatter:
            What ``SKILL.md`` begins with.

        resources:
            All of its files.
    """

    uri: str
    frontmatter: Mapping[str, Any]
    resources: tuple[ListedSkillFile, ...]

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self.frontmatter["name"]
        return name


class ReceivedSkill(Struct, frozen=True):
    """
    A skill with its files, each of which is what the list said.

    Args:
        listed:
            What the list says of it.

        text:
            The Markdown of ``SKILL.md``, without what precedes it.

        files:
            What each file holds, by its path in the skill.
    """

    listed: ListedSkill
    text: str
    files: Mapping[str, bytes]


class SkillMismatchError(PromptkitError):
    """
    What was read of a skill is not what the list says: a host has to refuse it.
    """


def received_skill(listed: ListedSkill, read: Callable[[str], EmbeddedResource]) -> ReceivedSkill:
    """
    Read all files of a skill, and verify them as a host must.

    Args:
        listed:
            What ``skills/get`` says of it.

        read:
            Reads a resource.

    Raises:
        SkillMismatchError: With the first thing that differs.

        ProtocolError: If a file cannot be read.
    """
    folder = listed.uri.removesuffix(f"/{SKILL_FILE}")
    files: dict[str, bytes] = {}
    for entry in listed.resources:
        _check(entry.uri.startswith(f"{folder}/"), f"{entry.uri!r} is no file of {folder!r}")
        path = unquote(entry.uri.removeprefix(f"{folder}/"))
        _check(path not in files, f"{path!r} is listed twice")
        document = read(entry.uri)
        data = document.blob if document.text is None else document.text.encode()
        files[path] = data or b""
        _check(len(files[path]) == entry.size, f"{path!r} has {len(files[path]):,} bytes, not {entry.size:,}")
        digest = f"sha256:{sha256(files[path]).hexdigest()}"
        _check(digest == entry.digest, f"{path!r} has the digest {digest}, not {entry.digest}")
    _check(SKILL_FILE in files, f"{SKILL_FILE} is not among its files")
    try:
        fields, text, _ = read_skill(files[SKILL_FILE])
    except FrontmatterError as fault:
        raise SkillMismatchError(str(fault)) from None
    for key in dict.fromkeys((*fields, *listed.frontmatter)):
        said, found = listed.frontmatter.get(key), fields.get(key)
        _check(said == found, f"{key} is {found!r} in {SKILL_FILE}, and {said!r} in the list")
    _check(folder.rpartition("/")[2] == fields.get("name"), f"{listed.uri!r} does not have its name")
    return ReceivedSkill(listed, text, files)


def _check(holds: bool, fault: str) -> None:  # noqa: FBT001 (it is what is checked)
    if not holds:
        raise SkillMismatchError(fault)
