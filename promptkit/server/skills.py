"""
The methods for skills: getting a skill, and reading its folders.

See https://modelcontextprotocol.io/extensions/skills.
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Raw

from promptkit.errors.exceptions import shortened
from promptkit.errors.suggestions import nearest
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import InvalidParams, encode
from promptkit.protocol.pagination import Pages
from promptkit.server.pending import PendingRequest


def get_skill(pending: PendingRequest) -> bytes:
    """
    Return a skill: its frontmatter, and the digests of its files.

    Raises:
        InvalidParams: If the skill does not exist.
    """
    snapshot, request = pending.snapshot, pending.request
    uri = request.params.uri
    if (skill := snapshot.catalog.find_skill(uri)) is None:
        near = nearest(uri, [skill.uri_template for skill in snapshot.catalog.skills])
        hint = f"; did you mean {near!r}?" if near else ""
        msg = f"there is no skill {shortened(uri)!r}{hint}"
        raise InvalidParams(msg, {"uri": shortened(uri)})
    lowering = snapshot.lowerings[request.revision]
    result = wire.GetSkillResult(skill=lowering.skill(skill))
    return lowering.results.encode_cacheable(result, changes=snapshot.capabilities.changes)


def read_directory(pending: PendingRequest) -> bytes:
    """
    Return a page of the contents of a folder of a skill.

    Raises:
        InvalidParams: If the folder does not exist, or the cursor does not belong to it.
    """
    snapshot, request = pending.snapshot, pending.request
    params: wire.DirectoryParams = request.params
    skill = snapshot.catalog.find_skill_with(params.uri)
    if skill is None or params.uri not in skill.children:
        uri = shortened(params.uri)
        msg = f"no skill has a folder {uri!r}: a folder's URI has no '/' at its end"
        raise InvalidParams(msg, {"uri": uri})
    lowering = snapshot.lowerings[request.revision]
    entries = [Raw(encode(entry)) for entry in lowering.directory(skill, params.uri)]
    pages = Pages(
        entries,
        snapshot.page_size,
        lambda items, cursor: lowering.results.encode(wire.ListResourcesResult(items, cursor)),
    )
    return pages.page(params.cursor)


#: The handler of each method.
METHODS: Final[Mapping[str, Callable[[PendingRequest], bytes]]] = {
    "skills/get": get_skill,
    "resources/directory/read": read_directory,
}
