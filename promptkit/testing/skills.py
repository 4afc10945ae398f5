"""
Skills as a client receives them: their listings, and their files, verified like a host must.

See https://modelcontextprotocol.io/extensions/skills.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from urllib.parse import unquote

from msgspec import Struct

from promptkit.catalog.skills import SKILL_FILE
from promptkit.declarations.frontmatter import FrontmatterError, read_skill
from promptkit.errors.exceptions import PromptkitError
from promptkit.language.documents import EmbeddedResource
from promptkit.protocol.wire import SkillEntry


class ReceivedSkill(Struct, frozen=True):
    """
    A skill with its files, which match the listing.

    Args:
        listed:
            Its listing.

        text:
            The Markdown of ``SKILL.md`` after the frontmatter.

        files:
            The contents of its files, by their paths in the skill.
    """

    listed: SkillEntry
    text: str
    files: Mapping[str, bytes]


class SkillMismatchError(PromptkitError):
    """The files of a skill differ from its listing; a host must reject it."""


def received_skill(listed: SkillEntry, read: Callable[[str], EmbeddedResource]) -> ReceivedSkill:
    """
    Read all files of a skill, and verify them like a host must.

    Args:
        listed:
            The skill's listing.

        read:
            A function that reads a resource.

    Raises:
        SkillMismatchError: For the first difference.

        ProtocolError: If a file cannot be read.
    """
    folder = listed.uri.removesuffix(f"/{SKILL_FILE}")
    files: dict[str, bytes] = {}
    for entry in listed.resources:
        _check(entry.uri.startswith(f"{folder}/"), f"{entry.uri!r} is not a file of {folder!r}")
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
    except FrontmatterError as error:
        raise SkillMismatchError(str(error)) from None
    for key in dict.fromkeys((*fields, *listed.frontmatter)):
        listed_value, value = listed.frontmatter.get(key), fields.get(key)
        _check(listed_value == value, f"{key} is {value!r} in {SKILL_FILE}, and {listed_value!r} in the list")
    _check(folder.rpartition("/")[2] == fields.get("name"), f"{listed.uri!r} does not have its name")
    return ReceivedSkill(listed, text, files)


def _check(is_valid: bool, message: str) -> None:  # noqa: FBT001 (the condition to check)
    if not is_valid:
        raise SkillMismatchError(message)
