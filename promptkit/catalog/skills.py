"""
Compiled skills: folders of files that models read, with the digests by which hosts know them.

See https://modelcontextprotocol.io/extensions/skills.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cache, cached_property
from mimetypes import MimeTypes
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.uri_templates import URITemplate
from promptkit.errors.diagnostics import Location
from promptkit.files.scratch import SpooledBytes

#: The file that a skill begins with.
SKILL_FILE: Final = "SKILL.md"

#: What a file has in common with resources that have variables.
_NO_TEMPLATE: Final = URITemplate("skill:")
_NO_ARGUMENTS: Final = Arguments("", (), "resource")


@cache
def _types() -> MimeTypes:
    """What Python knows by itself, and types that skills often have, so that all machines agree."""
    types = MimeTypes(filenames=())
    types.add_type("application/toml", ".toml")
    types.add_type("application/yaml", ".yaml")
    types.add_type("application/yaml", ".yml")
    types.add_type("text/markdown", ".md")
    return types


class SkillFile(Struct, frozen=True):
    """
    One file of a skill.

    Args:
        path:
            Its path in the skill's folder, with ``/`` between the parts.

        content:
            What it holds.
    """

    path: str
    content: SpooledBytes

    def read(self) -> str | bytes:
        """
        Return its text if it is UTF-8, else its bytes.
        """
        data = self.content.data
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data

    @property
    def mime_type(self) -> str | None:
        """Its type by its name; None if that is not known."""
        return _types().guess_type(self.path)[0]


class CompiledSkill(Struct, frozen=True, dict=True):
    """
    One skill as it is served. It is listed as the resource that its ``SKILL.md`` is.

    Args:
        name:
            Its name, which its folder has, too.

        description:
            What it does, and when to use it.

        prefix:
            What precedes its name in URIs: words with ``/`` between them; ``""`` for nothing.

        frontmatter:
            What ``SKILL.md`` begins with, as JSON has it.

        files:
            Its files: ``SKILL.md``, then the others by their paths.

        location:
            Where its author defined it.

        scopes:
            What a caller has to have, all of it: for others it does not exist.
    """

    name: str
    description: str
    prefix: str
    frontmatter: Mapping[str, Any]
    files: tuple[SkillFile, ...]
    location: Location
    scopes: frozenset[str] = frozenset()

    @property
    def title(self) -> None:
        """It has no other name for people."""

    @property
    def mime_type(self) -> str:
        """The type of ``SKILL.md``."""
        return "text/markdown"

    @cached_property
    def uri_template(self) -> str:
        """The URI of ``SKILL.md``, by which it is known."""
        return skill_uri(self.prefix, self.name)

    @cached_property
    def folder(self) -> str:
        """The URI of its folder."""
        return self.uri_template.removesuffix(f"/{SKILL_FILE}")

    @cached_property
    def resources(self) -> Mapping[str, CompiledResource]:
        """Its files by their URIs, as the resources that clients read."""
        return {self.uri_of(file.path): self._resource(file) for file in self.files}

    @cached_property
    def children(self) -> Mapping[str, Collection[str]]:
        """The URIs of the files and folders that each of its folders holds, by the folder's URI, in order."""
        found: dict[str, dict[str, None]] = {}
        for file in self.files:
            uri = self.uri_of(file.path)
            while uri != self.folder:
                inner, uri = uri, uri.rpartition("/")[0]
                found.setdefault(uri, {})[inner] = None
        return found

    def uri_of(self, path: str) -> str:
        """Return the URI of a file, or a folder, at a path in its folder."""
        return f"{self.folder}/{quote(path)}"

    def _resource(self, file: SkillFile) -> CompiledResource:
        is_first = file.path == SKILL_FILE
        return CompiledResource(
            uri_template=self.uri_of(file.path),
            name=self.name if is_first else file.path.rpartition("/")[2],
            title=None,
            description=self.description if is_first else None,
            mime_type=file.mime_type,
            arguments=_NO_ARGUMENTS,
            template=_NO_TEMPLATE,
            function=file.read,
            location=self.location,
            scopes=self.scopes,
            is_fixed=True,
        )


def folders_above(uri: str) -> Iterator[str]:
    """
    Yield the URIs of the folders in which a file, or a folder, lies, the innermost first.
    """
    while (uri := uri.rpartition("/")[0]) != "skill:/":
        yield uri


def skill_uri(prefix: str, name: str) -> str:
    """
    Return the URI of a skill's ``SKILL.md``.
    """
    return f"skill://{quote(f'{prefix}/{name}' if prefix else name)}/{SKILL_FILE}"
