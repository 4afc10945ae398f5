"""Lints of skills: text that is too long, references that lead nowhere, files that nothing refers to."""

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

#: What is advised to be read at once: so many lines, and so many tokens, of about four characters each.
_LINES: Final = 500
_TOKENS: Final = 5000
_CHARACTERS_PER_TOKEN: Final = 4

#: No text that refers to others is longer, in characters.
_MOST_SEARCHED: Final = 64 * 1024

#: What Markdown links to, and paths in the folders that the format advises, as they stand in code.
_LINK: Final = re.compile(r"\]\(\s*<?([^)>\s#]+)")
_PATH: Final = re.compile(r"(?<![\w./:-])(?:\./)?(?:references|scripts|assets)/[\w./-]*\w")

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|/")


def lint_skill(skill: CompiledSkill) -> list[Diagnostic]:
    """Return probable mistakes in a skill."""
    report = Report(f"skill {skill.name!r}", skill.location)
    texts = {file.path: text for file in skill.files if isinstance(text := file.read(), str)}
    body = texts[SKILL_FILE]
    lines, tokens = body.count("\n") + 1, len(body) // _CHARACTERS_PER_TOKEN
    if lines > _LINES or tokens > _TOKENS:
        fault = f"its SKILL.md has {lines:,} lines and about {tokens:,} tokens"
        hint = f"keep it below {_LINES} lines and {_TOKENS:,} tokens, and move details to references/"
        report.add(Rule.LONG_SKILL, fault, hint)
    paths = {file.path for file in skill.files}
    for reference in dict.fromkeys(_references(body)):
        if not _names(reference, paths):
            fault = f"it refers to {reference!r}, which it does not have"
            hint = "add the file, or correct the path, which begins in the skill's folder"
            if normpath(reference).startswith(".."):
                hint = "a skill has its own files alone: copy it there, or name the other skill in words"
            report.add(Rule.LOST_REFERENCE, fault, hint)
    said = "\n".join(text for text in texts.values() if len(text) <= _MOST_SEARCHED)
    for file in skill.files:
        path = PurePosixPath(file.path)
        if file.path != SKILL_FILE and not any(str(one) in said for one in (path.name, *path.parents[:-1])):
            fault = f"nothing in it refers to {file.path!r}, so that no model reads it"
            report.add(Rule.UNUSED_FILE, fault, "name it in SKILL.md, and say when to read it, or remove it")
    return report.found


def lint_skill_names(catalog: Catalog) -> Iterator[Diagnostic]:
    """Yield what is wrong with skills of one name: hosts that read folders have one for it."""
    by_name = dict[str, CompiledSkill]()
    for skill in catalog.skills:
        if (other := by_name.setdefault(skill.name, skill)) is not skill:
            report = Report(f"skill {skill.name!r}", skill.location)
            fault = f"{skill.uri_template!r} has the name of {other.uri_template!r}"
            report.add(Rule.SAME_SKILL_NAME, fault, "rename one: agents keep their skills by name alone")
            yield from report.found


def _references(text: str) -> Iterator[str]:
    """The relative paths that a text refers to."""
    links = (unquote(found) for found in _LINK.findall(text))
    yield from (link for link in links if not _SCHEME.match(link))
    yield from _PATH.findall(text)


def _names(reference: str, paths: set[str]) -> bool:
    """Whether a reference is a file, or a folder, of a skill."""
    path = normpath(reference)
    return path in paths or any(one.startswith(f"{path}/") for one in paths) or path == "."
