"""Lints for skills: long text, broken references, unused files and duplicate names."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Final
from urllib.parse import unquote

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill
from promptkit.errors.diagnostics import Diagnostic, Report
from promptkit.errors.rules import Rule

#: Recommended limits of SKILL.md. A token has about four characters.
_MAX_LINES: Final = 500
_MAX_TOKENS: Final = 5000
_CHARACTERS_PER_TOKEN: Final = 4

#: Limit of texts that are searched for references, in characters.
_MAX_SEARCHED: Final = 64 * 1024

#: Links in Markdown, and plain paths in the folders that the format recommends.
_LINK: Final = re.compile(r"\]\(\s*<?([^)>\s#]+)")
_PATH: Final = re.compile(r"(?<![\w./:-])(?:\./)?(?:references|scripts|assets)/[\w./-]*\w")

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|/")


def lint_skill(skill: CompiledSkill) -> list[Diagnostic]:
    """Return probable mistakes in a skill."""
    report = Report(f"skill {skill.name!r}", skill.location)
    texts = {file.path: text for file in skill.files if isinstance(text := file.read(), str)}
    body = texts[SKILL_FILE]
    lines, tokens = body.count("\n") + 1, len(body) // _CHARACTERS_PER_TOKEN
    if lines > _MAX_LINES or tokens > _MAX_TOKENS:
        message = f"its SKILL.md has {lines:,} lines and about {tokens:,} tokens"
        hint = f"keep it below {_MAX_LINES} lines and {_MAX_TOKENS:,} tokens, and move details to references/"
        report.add(Rule.LONG_SKILL, message, hint)
    paths = {file.path for file in skill.files}
    for reference in dict.fromkeys(_references(body)):
        if not _exists(reference, paths):
            message = f"it refers to {reference!r}, which does not exist"
            hint = "add the file, or correct the path, which is relative to the skill's folder"
            if normpath(reference).startswith(".."):
                hint = "a skill can use only its own files: copy it there, or mention the other skill by name"
            report.add(Rule.MISSING_REFERENCE, message, hint)
    all_text = "\n".join(text for text in texts.values() if len(text) <= _MAX_SEARCHED)
    for file in skill.files:
        path = PurePosixPath(file.path)
        if file.path != SKILL_FILE and not any(
            str(name) in all_text for name in (path.name, *path.parents[:-1])
        ):
            message = f"no file of it refers to {file.path!r}, so models do not read it"
            report.add(Rule.UNUSED_FILE, message, "mention it in SKILL.md with when to read it, or remove it")
    return report.found


def lint_skill_names(catalog: Catalog) -> Iterator[Diagnostic]:
    """Yield the diagnostics of skills with the same name, which would share a folder in clients."""
    by_name = dict[str, CompiledSkill]()
    for skill in catalog.skills:
        if (other := by_name.setdefault(skill.name, skill)) is not skill:
            report = Report(f"skill {skill.name!r}", skill.location)
            message = f"{skill.uri_template!r} has the same name as {other.uri_template!r}"
            report.add(Rule.SAME_SKILL_NAME, message, "rename one: hosts identify skills by name")
            yield from report.found


def _references(text: str) -> Iterator[str]:
    """Yield the relative paths that a text refers to."""
    links = (unquote(target) for target in _LINK.findall(text))
    yield from (link for link in links if not _SCHEME.match(link))
    yield from _PATH.findall(text)


def _exists(reference: str, paths: set[str]) -> bool:
    """Return whether a reference is a file or folder of the skill with these *paths*."""
    path = normpath(reference)
    return path in paths or any(other.startswith(f"{path}/") for other in paths) or path == "."
