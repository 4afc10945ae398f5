"""Lints for skills: their text, references, files and fields, and how hosts choose among them."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any, Final
from urllib.parse import unquote

from msgspec import Struct

from promptkit.catalog.cases import SkillCase
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.ranking import Ranking
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill
from promptkit.declarations.skill_files import lines_of_fields
from promptkit.declarations.skill_frontmatter import check_fields, read_as_yaml_1_1
from promptkit.errors.diagnostics import Diagnostic, Location, Owner, Report
from promptkit.errors.rules import Rule
from promptkit.fragments.budget import estimate_tokens
from promptkit.language.validation import describe

#: Paths of files in the folders that the format recommends.
_PATH: Final = re.compile(
    r"(?<![\w./:@~$}>\\-])(?:\./)?(?:references|scripts|assets)/[\w./*?{}<>$\[\]-]*\w\.\w+\b(?![/{<*-])"
)

#: Words that mark a path as an example, as in text about skills in general.
_EXAMPLE: Final = re.compile(r"\b(?:examples?|e\.g\.|for instance|such as|would|could)(?!\w)", re.IGNORECASE)

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|/|#|~")

#: Variables that agents replace with the folder of the skill.
_SKILL_FOLDER: Final = re.compile(
    r"\$?(?:\{(?:baseDir|base_dir|CLAUDE_SKILL_DIR|SKILL_DIR|SKILL_ROOT|skill_dir)\}|SKILL_DIR|SKILL_ROOT)/"
)

#: Parts of paths that are placeholders for something else.
_PLACEHOLDER: Final = re.compile(
    r"[{}<>$\[\]|…]|\.\.\.|^path/|/path/|^(?:url|link|URL|file|path|uri|image)$|\b(?:example|your|my|foo|bar|xxx?|name)\b",
    re.IGNORECASE,
)


class Reference(Struct, frozen=True):
    """
    A reference to a file of the skill.

    Args:
        path:
            The path, relative to the skill's folder. It can contain ``*`` and ``?``.

        line:
            The line in the Markdown, counted from 0.

        is_link:
            Whether the reference is a link rather than a path in text.
    """

    path: str
    line: int
    is_link: bool

    def exists_in(self, paths: Collection[str]) -> bool:
        """Return whether the reference is to one of *paths*, or to a folder that contains one of them."""
        path = normpath(self.path)
        return path == "." or any(
            fnmatchcase(other, path) or other.startswith(f"{path}/") or fnmatchcase(other, f"{path}/*")
            for other in paths
        )


def find_references(markdown: str) -> Iterator[Reference]:
    """
    Yield the references in Markdown: links, and paths in ``references/``, ``scripts/`` and ``assets/``.

    Paths in code blocks, HTML and comments are examples rather than references. So are paths with
    placeholders.
    """
    from markdown_it import MarkdownIt  # slow to import, and few recipes have skills

    line = 0
    for block in MarkdownIt("commonmark").enable("table").parse(markdown):
        line = block.map[0] if block.map else line
        if block.type == "inline":
            yield from _references_in(block.children or (), line)


def _references_in(tokens: Collection[Any], line: int) -> Iterator[Reference]:
    """Yield the references in a paragraph, a heading or a cell."""
    is_example = any(_EXAMPLE.search(token.content) for token in tokens)
    for token in tokens:
        line += token.type in ("softbreak", "hardbreak")
        if token.type in ("link_open", "image"):
            target = str(token.attrs.get("href") or token.attrs.get("src") or "")
            path = _plain_path(unquote(target))
            if path and not _SCHEME.match(path) and not _PLACEHOLDER.search(path):
                yield Reference(path, line, is_link=True)
        elif token.type in ("text", "code_inline") and not is_example:
            for match in _PATH.findall(token.content):
                path = _plain_path(match)
                if path and not _PLACEHOLDER.search(path):
                    yield Reference(path, line, is_link=False)


def _plain_path(target: str) -> str:
    """Remove the variable for the skill's folder, the query and the fragment from the path of a reference."""
    path = _SKILL_FOLDER.sub("", target, count=1)
    return path.partition("#")[0].partition("?")[0] if "#" in path or "?" in path else path


#: The recommended limits for SKILL.md.
_MAX_LINES: Final = 500
_MAX_TOKENS: Final = 5000

#: The maximum length, in characters, of a text file that is searched for file names.
_MAX_SEARCHED_LENGTH: Final = 64 * 1024

#: Files for people, and files that programs find by name. A skill's other files need not mention them.
_EXEMPT_FILES: Final = re.compile(
    r"agents/openai\.ya?ml|metadata\.json|(?:evals|tests)/.*|(?:.*/)?(?:(?:LICEN[CS]E|NOTICE|README|CHANGELOG|COPYING)[^/]*"
    r"|__init__\.py|requirements[^/]*\.txt|pyproject\.toml|package(?:-lock)?\.json|tsconfig\.json|[^/]*\.lock)",
    re.IGNORECASE,
)


def lint_skill(skill: CompiledSkill) -> list[Diagnostic]:
    """Return probable mistakes in a skill."""
    report = Report(f"skill {skill.name!r}", skill.location)
    texts = {file.path: text for file in skill.files if isinstance(text := file.read(), str)}
    body = texts[SKILL_FILE]
    lines, tokens = body.count("\n") + 1, estimate_tokens(body)
    if lines > _MAX_LINES or tokens > _MAX_TOKENS:
        message = f"its SKILL.md has {lines:,} lines and about {tokens:,} tokens"
        hint = f"keep it below {_MAX_LINES} lines and {_MAX_TOKENS:,} tokens, and move details to references/"
        report.add(Rule.LONG_SKILL, message, hint)
    if skill.location.file.endswith(SKILL_FILE):
        _lint_fields(skill, report)
    _lint_references(skill, report)
    _lint_files(skill, texts, report)
    return report.diagnostics


def _lint_fields(skill: CompiledSkill, report: Report) -> None:
    """
    Report fields that violate the format although hosts accept them, and fields that hosts read differently.
    """
    data, file = skill.files[0].content.data, skill.location.file
    lines = lines_of_fields(data)
    for problem in check_fields(skill.frontmatter, Path(file).parent.name):
        location = Location(file, lines.get(problem.key, 1))
        report.add(Rule.SKILL_FIELDS, problem.message, problem.hint, location)
    for key, value in _differing_fields(skill.frontmatter, read_as_yaml_1_1(data)):
        display_value = repr(value) if isinstance(value, bool | int | float) else describe(value)
        message = f"hosts that use YAML 1.1 read its {key!r} as {display_value}, and may reject the skill"
        report.add(Rule.SKILL_FIELDS, message, "write the value in quotes", Location(file, lines.get(key, 1)))


def _differing_fields(
    fields: Mapping[str, Any], other_fields: Mapping[Any, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield each field whose value differs in *other_fields*, with its value there."""
    for key, value in fields.items():
        other = other_fields.get(key)
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
    """Report files that none of the skill's files mentions."""
    all_text = "\n".join(text for text in texts.values() if len(text) <= _MAX_SEARCHED_LENGTH)
    for file in skill.files[1:]:
        path = PurePosixPath(file.path)
        names = (path.name, *path.parents[:-1])
        if not _EXEMPT_FILES.fullmatch(file.path) and all(str(name) not in all_text for name in names):
            message = f"none of its files refers to {file.path!r}, so models do not read it"
            report.add(Rule.UNUSED_FILE, message, "say in SKILL.md when to read it, or remove it")


def lint_skill_names(catalog: Catalog) -> Iterator[Diagnostic]:
    """
    Yield diagnostics about skills with the same name, which would share a folder in clients.
    """
    by_name = dict[str, CompiledSkill]()
    for skill in catalog.skills:
        if (other := by_name.setdefault(skill.name, skill)) is not skill:
            report = Report(f"skill {skill.name!r}", skill.location)
            message = f"{skill.uri_template!r} has the same name as {other.uri_template!r}"
            report.add(Rule.SAME_SKILL_NAME, message, "rename one of them: hosts identify skills by name")
            yield from report.diagnostics


#: The default budget for the names and descriptions of all skills together, in tokens.
LISTING_TOKENS: Final = 2000

#: The cosine similarity above which descriptions are reported, and the maximum number of reported pairs.
_MIN_OVERLAP: Final = 0.5
_MAX_PAIRS: Final = 10

#: English phrases with which a description says when to use a skill.
_TRIGGER: Final = (
    r"[,;.] for\b|\b(?:when|whenever|if|before|after|while|during|once|whether|upon|must|always"
    r"|trigger\w*|invoke\w*|activat\w*"
    r"|us(?:e|ed|eful) (?:this|it|for|to|in|on|as|with|by|proactively|immediately|at)"
    r"|(?:ask|request|want|need|try|look|mention|say|refer)(?:s|ed|ing|ies)?\b.{0,20}\b(?:to|for|about)"
    r"|(?:designed|intended|ideal|perfect|best|suitable|meant|built|required|apply|applies) (?:for|to)"
    r"|for (?:users|people|developers|teams|tasks|projects|anyone|those|working|building|creating|any)"
    r"|covers|user says|keywords|slash command|run this|call this|load this)\b"
)


def lint_routing(catalog: Catalog) -> Iterator[Diagnostic]:
    """Yield diagnostics about the descriptions of skills, and about their cases."""
    skills = [skill for skill in catalog.skills if skill.is_for_models]
    for skill in skills:
        if is_english(skill.description) and not re.search(_TRIGGER, skill.description, re.IGNORECASE):
            message = "its description does not say when to use it, so models may not choose it"
            example = "Use it when the user asks for a review, or before a commit."
            hint = f"state when to use it, for example {example!r}"
            yield _owner(skill).diagnostic(Rule.NO_TRIGGER, message, hint, _description_location(skill))
    ranking = ranking_of(skills)
    pairs = sorted(ranking.similar_pairs(_MIN_OVERLAP), key=lambda pair: (-pair[0], *pair[1:]))
    different = [pair for pair in pairs if skills[pair[1]].name != skills[pair[2]].name]
    for cosine, first, second in different[:_MAX_PAIRS]:
        skill, other = skills[second], skills[first]
        message = (
            f"its description overlaps with that of {other.name!r} ({cosine:.2f}), so models may confuse them"
        )
        hint = (
            f"say in both what sets them apart, or merge them; the other is at {_description_location(other)}"
        )
        yield _owner(skill).diagnostic(Rule.SIMILAR_SKILLS, message, hint, _description_location(skill))
    for skill in catalog.skills:
        for case in skill.saved():
            if problem := find_case_problem(skill, case, skills, ranking):
                hint = "say in the descriptions which requests each skill is for"
                if case.wanted:
                    hint = (
                        "describe it with the words of the request; "
                        "a ranking by words does not recognize synonyms"
                    )
                yield _owner(skill).diagnostic(Rule.SKILL_CASE_FAILS, problem, hint, case.location)


def lint_listing(catalog: Catalog, limit: int) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the names and descriptions of all skills have more tokens than *limit*."""
    skills = [skill for skill in catalog.skills if skill.is_for_models]
    sizes = [estimate_tokens(f"{skill.name}: {skill.description}") for skill in skills]
    if (total := sum(sizes)) > limit:
        longest = max(range(len(sizes)), key=sizes.__getitem__)
        names = f"the names and descriptions of {len(sizes)} skills"
        message = f"{names} have about {total:,} tokens, more than the limit of {limit:,}"
        hint = f"shorten descriptions (the longest one has {sizes[longest]:,}), or serve fewer skills at once"
        yield Owner("skills", _description_location(skills[longest])).diagnostic(
            Rule.LONG_LISTING, message, hint
        )


def ranking_of(skills: Sequence[CompiledSkill]) -> Ranking:
    """Return a ranking of skills by the text that a model reads before it chooses one of them."""
    return Ranking([f"{skill.name} {skill.description}" for skill in skills])


def find_case_problem(
    skill: CompiledSkill, case: SkillCase, skills: Sequence[CompiledSkill], ranking: Ranking
) -> str | None:
    """
    Return a message if the ranking of *skills* differs from what a case of *skill* expects; otherwise None.
    """
    ranked = ranking.rank(case.name)
    first = skills[ranked[0][1]] if ranked else None
    if case.wanted == (first is skill):
        return None
    if not case.wanted:
        return f"it ranks first for the request {case.name!r}, which is not meant for it"
    own = next((f"{cosine:.2f}" for cosine, number in ranked if skills[number] is skill), None)
    if first is None or own is None:
        return f"its description contains none of the words in the request {case.name!r}"
    return f"{first.name!r} ({ranked[0][0]:.2f}) ranks before it ({own}) for the request {case.name!r}"


def is_english(text: str) -> bool:
    """Guess whether *text* is English: whether nearly all of its letters are ASCII."""
    letters = [character for character in text if character.isalpha()]
    return sum(map(str.isascii, letters)) >= 0.95 * len(letters)


def _owner(skill: CompiledSkill) -> Owner:
    return Owner(f"skill {skill.name!r}", skill.location)


def _description_location(skill: CompiledSkill) -> Location:
    """Return the location of a skill's description in ``SKILL.md``, or of the skill's function."""
    if not skill.location.file.endswith(SKILL_FILE):
        return skill.location
    lines = lines_of_fields(skill.files[0].content.data)
    return Location(skill.location.file, lines.get("description", 1))
