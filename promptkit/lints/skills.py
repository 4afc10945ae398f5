"""Lints for skills: long text, broken references, unused files, fields that hosts read differently."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any, Final

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill
from promptkit.declarations.skill_files import lines_of_fields
from promptkit.declarations.skill_markdown import check_fields, read_as_yaml_1_1
from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.rules import Rule
from promptkit.language.validation import describe
from promptkit.lints.skill_references import find_references

#: Recommended limits of SKILL.md. A token has about four characters.
_MAX_LINES: Final = 500
_MAX_TOKENS: Final = 5000
_CHARACTERS_PER_TOKEN: Final = 4

#: Limit of texts that are searched for the names of files, in characters.
_MAX_SEARCHED: Final = 64 * 1024

#: Files for people, and for programs that know their names. No file of the skill has to mention them.
_FOR_OTHERS: Final = re.compile(
    r"agents/openai\.ya?ml|metadata\.json|(?:evals|tests)/.*|(?:.*/)?(?:(?:LICEN[CS]E|NOTICE|README|CHANGELOG|COPYING)[^/]*"
    r"|__init__\.py|requirements[^/]*\.txt|pyproject\.toml|package(?:-lock)?\.json|tsconfig\.json|[^/]*\.lock)",
    re.IGNORECASE,
)

#: Names that Windows reserves for devices, whatever their suffix, and characters that it does not allow.
_WINDOWS: Final = re.compile(
    r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\..*)?|.*[<>\"|?*].*|.*[. ]", re.IGNORECASE
)


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
    if skill.location.file.endswith(SKILL_FILE):
        _lint_fields(skill, report)
    _lint_references(skill, report)
    _lint_files(skill, texts, report)
    return report.found


def _lint_fields(skill: CompiledSkill, report: Report) -> None:
    """Report fields that hosts accept although they break the format, or that they read differently."""
    data, file = skill.files[0].content.data, skill.location.file
    lines = lines_of_fields(data)
    for problem in check_fields(skill.frontmatter, Path(file).parent.name):
        location = Location(file, lines.get(problem.key, 1))
        report.add(Rule.SKILL_FIELDS, problem.message, problem.hint, location)
    for key, value in _different(skill.frontmatter, read_as_yaml_1_1(data)):
        shown = repr(value) if isinstance(value, bool | int | float) else describe(value)
        message = f"hosts with YAML 1.1 read its {key} as {shown}, and may reject the skill"
        report.add(Rule.SKILL_FIELDS, message, "write the value in quotes", Location(file, lines.get(key, 1)))


def _different(fields: Mapping[str, Any], others: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields whose values differ, with the other value."""
    for key, value in fields.items():
        other = others.get(key)
        if value != other or type(value) is not type(other):
            yield key, other


def _lint_references(skill: CompiledSkill, report: Report) -> None:
    """Report references in ``SKILL.md`` to files that do not exist."""
    text, body, file = skill.files[0].content.data.decode(), skill.body, skill.location.file
    start = text.removesuffix(body).count("\n")
    paths = {file.path for file in skill.files}
    seen = set[str]()
    for reference in find_references(body):
        if reference.path in seen or reference.exists_in(paths):
            continue
        seen.add(reference.path)
        message = f"it refers to {reference.path!r}, which does not exist"
        hint = "add the file, or correct the path, which is relative to the skill's folder"
        if normpath(reference.path).startswith(".."):
            hint = "a skill can use only its own files: copy it there, or mention the other skill by name"
        is_folder = file.endswith(SKILL_FILE)
        location = Location(file, start + reference.line + 1) if is_folder else skill.location
        report.add(
            Rule.MISSING_REFERENCE if reference.is_link else Rule.MISSING_PATH, message, hint, location
        )


def _lint_files(skill: CompiledSkill, texts: Mapping[str, str], report: Report) -> None:
    """Report files that nothing refers to, and names that Windows does not allow."""
    all_text = "\n".join(text for text in texts.values() if len(text) <= _MAX_SEARCHED)
    folded = all_text.casefold()
    if _WINDOWS.fullmatch(skill.name):
        message = f"its name {skill.name!r} is one that Windows does not allow for a folder"
        report.add(Rule.SKILL_FILE_NAMES, message, "choose another name: hosts write skills to folders")
    for file in skill.files[1:]:
        path = PurePosixPath(file.path)
        if any(map(_WINDOWS.fullmatch, path.parts)):
            message = f"{file.path!r} has a name that Windows does not allow"
            report.add(Rule.SKILL_FILE_NAMES, message, "rename it, so that it can be written on every system")
        if _FOR_OTHERS.fullmatch(file.path) or any(
            str(name) in all_text for name in (path.name, *path.parents[:-1])
        ):
            continue
        if path.name.casefold() in folded:
            message = f"its files refer to {path.name!r} only in another letter case"
            report.add(
                Rule.UNUSED_FILE, message, "write its name the same way: some systems distinguish case"
            )
            continue
        message = f"no file of it refers to {file.path!r}, so models do not read it"
        report.add(Rule.UNUSED_FILE, message, "mention it in SKILL.md with when to read it, or remove it")


def lint_skill_names(catalog: Catalog) -> Iterator[Diagnostic]:
    """Yield the diagnostics of skills with the same name, which would share a folder in clients."""
    by_name = dict[str, CompiledSkill]()
    for skill in catalog.skills:
        if (other := by_name.setdefault(skill.name, skill)) is not skill:
            report = Report(f"skill {skill.name!r}", skill.location)
            message = f"{skill.uri_template!r} has the same name as {other.uri_template!r}"
            report.add(Rule.SAME_SKILL_NAME, message, "rename one: hosts identify skills by name")
            yield from report.found
