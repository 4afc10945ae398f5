"""
Skills for clients without the skills extension: tools that find and read them, and a prompt for each skill.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, Literal, TypeAlias

from msgspec import json

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt, FunctionRenderer
from promptkit.catalog.ranking import best_matches
from promptkit.catalog.skills import ARGUMENTS, SKILL_FILE, CompiledSkill, label_skills
from promptkit.catalog.tools import MAX_MATCHES, MAX_TOOL_DESCRIPTION, make_argument, make_tool
from promptkit.errors.exceptions import PromptError
from promptkit.errors.suggestions import nearest
from promptkit.language.annotations import Tool
from promptkit.language.documents import EmbeddedResource
from promptkit.language.messages import Workflow
from promptkit.language.turns import user

#: How skills are offered to clients without the skills extension.
SkillForm: TypeAlias = Literal["tools", "prompts"]
SKILL_FORMS: Final[tuple[SkillForm, ...]] = ("tools", "prompts")

FIND_SKILLS: Final = "find_skills"
READ_SKILL: Final = "read_skill"

#: The lengths to which skill descriptions are shortened. Each is tried in turn until all descriptions fit.
_WIDTHS: Final = (1024, 500, 250, 120, 60, 0)

_FIND: Final = (
    "Find skills: instructions that people have written for a kind of task. Returns names, descriptions and "
    f"the paths of files, best matches first. {READ_SKILL} returns a file."
)
_READ: Final = (
    "Read a skill: instructions for a kind of task. Before you start on a task that a skill is for, read the "
    "skill and follow it. It names its other files; read those when you need them."
)
_TOOL: Final = Tool(read_only=True, idempotent=True, open_world=False, destructive=False)


def skill_tools(catalog: Catalog) -> dict[str, CompiledPrompt]:
    """Return the tools that find and read a catalog's skills, keyed by tool name; empty if it has none."""
    skills = label_skills(skill for skill in catalog.skills if skill.is_for_models)
    if not skills:
        return {}
    query = "Keywords for the task, such as 'review security'. Without keywords, all skills match."
    path = "The path of a file in the skill, such as 'references/words.md'"
    return {
        FIND_SKILLS: make_tool(
            FIND_SKILLS,
            _FIND,
            partial(_find_skills, skills),
            make_argument("query", str, query, ""),
            tool=_TOOL,
        ),
        READ_SKILL: make_tool(
            READ_SKILL,
            _describe_read_tool(skills),
            partial(_read_skill_file, skills),
            make_argument("name", str, f"The name of the skill, as {FIND_SKILLS} returns it"),
            make_argument("file", str, path, SKILL_FILE),
            tool=_TOOL,
        ),
    }


def _describe_read_tool(skills: Mapping[str, CompiledSkill]) -> str:
    """Return the description of the tool that reads skills, listing as many skills as fit."""
    for width in _WIDTHS:
        lines = [_format_line(label, skill.description, width) for label, skill in skills.items()]
        if len(text := "\n".join([f"{_READ} Skills:", *lines])) <= MAX_TOOL_DESCRIPTION:
            return text
    more = f"More skills: {FIND_SKILLS} returns them."
    while len(text := "\n".join([f"{_READ} Skills:", *lines, more])) > MAX_TOOL_DESCRIPTION:
        lines.pop()
    return text


def _format_line(label: str, description: str, width: int) -> str:
    text = " ".join(description.split())
    shortened = text if len(text) <= width else f"{text[: max(width - 1, 0)].rstrip()}\u2026"
    return f"- {label}: {shortened}" if width else f"- {label}"


def _find_skills(skills: Mapping[str, CompiledSkill], query: str = "") -> str:
    """Return the skills that best match a query, as JSON."""
    entries = list(skills.items())
    numbers = best_matches([f"{label} {skill.description}" for label, skill in entries], query)
    matches = [
        {"name": label, "description": skill.description, "files": [file.path for file in skill.files]}
        for label, skill in (entries[number] for number in numbers[:MAX_MATCHES])
    ]
    return json.encode({"skills": matches, "found": len(numbers)}).decode()


def _read_skill_file(
    skills: Mapping[str, CompiledSkill], name: str, file: str = SKILL_FILE
) -> str | EmbeddedResource:
    """Return a file of a skill. Raises PromptError if there is no such skill or file."""
    if (skill := skills.get(name)) is None:
        msg = f"there is no skill {name!r}{_hint(name, skills)}"
        raise PromptError(msg)
    skill_file = next((each for each in skill.files if each.path == file), None)
    if skill_file is None:
        paths = [each.path for each in skill.files]
        msg = f"skill {name!r} has no file {file!r}{_hint(file, paths)}"
        raise PromptError(msg)
    content = skill_file.read()
    if isinstance(content, bytes):
        return EmbeddedResource(skill.uri_of(file), blob=content, mime_type=skill_file.mime_type)
    return content if content.strip() else "(This file is empty.)"


def _hint(name: str, known: Iterable[str]) -> str:
    known = list(known)
    similar = nearest(name, known)
    return f"; did you mean {similar!r}?" if similar else f": choose one of {', '.join(known[:MAX_MATCHES])}"


def with_skill_prompts(
    catalog: Catalog, is_offered: Callable[[CompiledSkill], bool] = lambda _: True
) -> Catalog:
    """
    Return the catalog with an added prompt for each skill, unless a prompt already has the skill's name.

    Args:
        catalog:
            The catalog.

        is_offered:
            Returns whether to add a prompt for a skill. No prompt is added for skills that their authors
            reserve for models.
    """
    prompts = [
        _make_prompt(label.replace("/", "-"), skill)
        for label, skill in label_skills(catalog.skills).items()
        if is_offered(skill) and skill.frontmatter.get("user-invocable") is not False
    ]
    new = [prompt for prompt in prompts if prompt.name not in catalog]
    return Catalog([*catalog.prompts, *new], catalog.diagnostics, catalog.resources, catalog.skills)


def _make_prompt(name: str, skill: CompiledSkill) -> CompiledPrompt:
    hint = skill.frontmatter.get("argument-hint")
    hint = " ".join(map(str, hint)) if isinstance(hint, list) else hint
    task = make_argument("task", str, hint if isinstance(hint, str) else "What to do", "")
    return CompiledPrompt(
        name=name,
        title=None,
        description=skill.description,
        icons=(),
        meta={},
        arguments=Arguments(name, (task,), "prompt"),
        context=None,
        renderer=FunctionRenderer(partial(_render_skill, skill), name, skill.location),
        scopes=skill.scopes,
        tool=False,  # models read the skill itself
    )


def _render_skill(skill: CompiledSkill, task: str = "") -> Workflow:
    """Return a skill's text for a user's task, with the paths of the skill's other files."""
    body = skill.body.strip()
    parts = [body.replace(ARGUMENTS, task) if ARGUMENTS in body else body]
    if files := [file.path for file in skill.files[1:]]:
        parts.append(
            f"Other files of the skill {skill.name!r}, to ask for when you need them: {', '.join(files)}"
        )
    if task and ARGUMENTS not in body:
        parts.append(f"Task: {task}")
    return user(*parts)


def without_skill_prompts(catalog: Catalog) -> Catalog:
    """Return the catalog without the prompts that were added for skills."""
    prompts = [prompt for prompt in catalog.prompts if not _is_skill_prompt(prompt)]
    return Catalog(prompts, catalog.diagnostics, catalog.resources, catalog.skills)


def _is_skill_prompt(prompt: CompiledPrompt) -> bool:
    function = prompt.renderer.function
    return isinstance(function, partial) and function.func is _render_skill
