"""
Compiled skills: folders of files that models read, with the digests by which hosts recognize them.

See https://modelcontextprotocol.io/extensions/skills.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property
from mimetypes import MimeTypes
from typing import Any, ClassVar, Final
from urllib.parse import quote

from msgspec import Struct, structs

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.cases import SkillCase
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.uri_templates import URITemplate
from promptkit.errors.diagnostics import Location
from promptkit.files.reading import HashedBytes
from promptkit.language.media import Icon

#: Name of a skill's main file.
SKILL_FILE: Final = "SKILL.md"

#: The skill format's limits, in characters.
MAX_DESCRIPTION: Final = 1024
MAX_COMPATIBILITY: Final = 500

#: The placeholder for the words that a user types after the name of a skill.
ARGUMENTS: Final = "$ARGUMENTS"

_FRONTMATTER: Final = r"\A---[ \t]*\r?\n(?:[^\n]*\n)*?---[ \t]*(?:\r?\n|\Z)\s*"

#: Shared by all files, which have no variables.
_NO_TEMPLATE: Final = URITemplate("skill:")
_NO_ARGUMENTS: Final = Arguments("", (), "resource")


@cache
def _mime_types() -> MimeTypes:
    """Return MIME types that do not depend on the machine: Python's, and types for typical skill files."""
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
            The file's path in the skill's folder, with ``/`` as separator.

        content:
            The file's content.
    """

    path: str
    content: HashedBytes

    def read(self) -> str | bytes:
        """Return the file's text if the content is valid UTF-8, otherwise its bytes."""
        data = self.content.data
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data

    @property
    def mime_type(self) -> str | None:
        """The MIME type, guessed from the file's name; None if unknown."""
        return _mime_types().guess_type(self.path)[0]


class CompiledSkill(Struct, frozen=True, dict=True):
    """
    One skill as it is served, listed as the resource of its ``SKILL.md``.

    Args:
        name:
            The skill's name, which is also the name of its folder.

        description:
            The skill's purpose, and when to use it.

        prefix:
            The part of the skill's URIs before its name, with ``/`` as separator. It can be empty.

        frontmatter:
            The frontmatter of ``SKILL.md`` as JSON values.

        files:
            The skill's files: ``SKILL.md``, then the others sorted by path.

        location:
            Where the author defined the skill.

        scopes:
            The scopes that a caller needs; all are required. The skill is hidden from other callers.

        saved:
            Returns the requests that the author has saved as cases.
    """

    name: str
    description: str
    prefix: str
    frontmatter: Mapping[str, Any]
    files: tuple[SkillFile, ...]
    location: Location
    scopes: frozenset[str] = frozenset()
    saved: Callable[[], tuple[SkillCase, ...]] = tuple

    #: Skills have no display name, icons, annotations or size.
    title: ClassVar[None] = None
    icons: ClassVar[tuple[Icon, ...]] = ()
    annotations: ClassVar[None] = None
    size: ClassVar[None] = None

    def with_prefix(self, prefix: str) -> "CompiledSkill":
        """Return the skill with *prefix* added to its URIs. The files stay the same."""
        return structs.replace(self, prefix=prefixed_path(prefix, self.prefix))

    @property
    def mime_type(self) -> str:
        """The MIME type of ``SKILL.md``."""
        return "text/markdown"

    @cached_property
    def uri_template(self) -> str:
        """The URI of ``SKILL.md``, which identifies the skill."""
        return skill_uri(self.prefix, self.name)

    @property
    def is_listed(self) -> bool:
        """
        Whether all clients accept the skill in a list. Some reject a whole list because of one long field.
        """
        limits = {"description": MAX_DESCRIPTION, "compatibility": MAX_COMPATIBILITY}
        return all(len(str(self.frontmatter.get(key, ""))) <= limit for key, limit in limits.items())

    @property
    def is_for_models(self) -> bool:
        """Whether models can choose the skill. A field from Claude Code can reserve it for users."""
        return self.frontmatter.get("disable-model-invocation") is not True

    @property
    def is_for_users(self) -> bool:
        """Whether users can choose the skill too, according to a field or placeholder from Claude Code."""
        fields = self.frontmatter
        if "user-invocable" in fields:
            return fields["user-invocable"] is True
        return "argument-hint" in fields or ARGUMENTS.encode() in self.files[0].content.data

    @property
    def body(self) -> str:
        """The Markdown of ``SKILL.md``, after the frontmatter."""
        return re.sub(_FRONTMATTER, "", self.files[0].content.data.decode(), count=1)

    @cached_property
    def folder(self) -> str:
        """The URI of the skill's folder."""
        return self.uri_template.removesuffix(f"/{SKILL_FILE}")

    @cached_property
    def resources(self) -> Mapping[str, CompiledResource]:
        """The skill's files as resources that clients can read, keyed by URI."""
        return {self.uri_of(file.path): self._resource(file) for file in self.files}

    @cached_property
    def children(self) -> Mapping[str, Collection[str]]:
        """The URIs of the files and folders in each folder of the skill, in order, keyed by folder URI."""
        children: dict[str, dict[str, None]] = {}
        for file in self.files:
            uri = self.uri_of(file.path)
            while uri != self.folder:
                child, uri = uri, uri.rpartition("/")[0]
                children.setdefault(uri, {})[child] = None
        return children

    def uri_of(self, path: str) -> str:
        """Return the URI of the file or folder at *path* in the skill's folder."""
        return f"{self.folder}/{quote(path)}"

    def _resource(self, file: SkillFile) -> CompiledResource:
        is_main = file.path == SKILL_FILE
        return CompiledResource(
            uri_template=self.uri_of(file.path),
            name=self.name if is_main else file.path.rpartition("/")[2],
            title=None,
            description=self.description if is_main else None,
            mime_type=file.mime_type,
            arguments=_NO_ARGUMENTS,
            template=_NO_TEMPLATE,
            function=file.read,
            location=self.location,
            scopes=self.scopes,
            is_fixed=True,
        )


def label_skills(skills: Iterable[CompiledSkill]) -> dict[str, CompiledSkill]:
    """Return the skills keyed by name, or by the path in the URI if an earlier skill has the same name."""
    by_label = dict[str, CompiledSkill]()
    for skill in skills:
        label = skill.name if skill.name not in by_label else f"{skill.prefix}/{skill.name}"
        by_label[label] = skill
    return by_label


def folders_above(uri: str) -> Iterator[str]:
    """Yield the URIs of the folders that contain a file or folder, innermost first."""
    while (uri := uri.rpartition("/")[0]) != "skill:/":
        yield uri


def prefixed_path(prefix: str, path: str) -> str:
    """Return *prefix* and *path*, each of which can be empty, as one path."""
    return "/".join(filter(None, (prefix, path)))


def skill_uri(prefix: str, name: str) -> str:
    """Return the URI of a skill's ``SKILL.md``."""
    return f"skill://{quote(f'{prefix}/{name}' if prefix else name)}/{SKILL_FILE}"
