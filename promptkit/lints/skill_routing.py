"""Lints for the choice of skills: what a model reads of all skills before it chooses one."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from promptkit.catalog.cases import SkillCase
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.ranking import Ranking
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill
from promptkit.declarations.skill_files import lines_of_fields
from promptkit.errors.diagnostics import Diagnostic, Location, Owner
from promptkit.errors.rules import Rule
from promptkit.fragments.budget import estimate_tokens

#: Default budget for the names and descriptions of all skills, in tokens.
LISTING_TOKENS: Final = 2000

#: Descriptions with a larger cosine overlap, and how many such pairs are reported.
_OVERLAP: Final = 0.5
_MAX_PAIRS: Final = 10

#: English phrases that say when to use a skill.
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
    """Yield the diagnostics of the descriptions of skills, and of their cases."""
    skills = [skill for skill in catalog.skills if skill.is_for_models]
    for skill in skills:
        if is_english(skill.description) and not re.search(_TRIGGER, skill.description, re.IGNORECASE):
            message = "its description does not say when to use it, so models may not choose it"
            hint = "add when to use it, as in 'Use it when the user asks for a review, or before a commit.'"
            yield _owner(skill).diagnostic(Rule.NO_TRIGGER, message, hint, _description_of(skill))
    ranking = ranking_of(skills)
    pairs = sorted(ranking.pairs(_OVERLAP), key=lambda pair: (-pair[0], *pair[1:]))
    different = [pair for pair in pairs if skills[pair[1]].name != skills[pair[2]].name]
    for cosine, first, second in different[:_MAX_PAIRS]:
        skill, other = skills[second], skills[first]
        message = (
            f"its description overlaps with that of {other.name!r} ({cosine:.2f}), so models may confuse them"
        )
        hint = f"say in both what sets them apart, or merge them; the other is at {_description_of(other)}"
        yield _owner(skill).diagnostic(Rule.SIMILAR_SKILLS, message, hint, _description_of(skill))
    for skill in catalog.skills:
        for case in skill.saved():
            if problem := case_problem(skill, case, skills, ranking):
                hint = "describe it with the words of the request; a ranking by words knows no synonyms"
                hint = hint if case.wanted else "say in the descriptions which requests each is for"
                yield _owner(skill).diagnostic(Rule.SKILL_CASE_FAILS, problem, hint, case.location)


def lint_listing(catalog: Catalog, limit: int) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the names and descriptions of all skills have more tokens than *limit*."""
    skills = [skill for skill in catalog.skills if skill.is_for_models]
    sizes = [estimate_tokens(f"{skill.name}: {skill.description}") for skill in skills]
    if (total := sum(sizes)) > limit:
        longest = max(range(len(sizes)), key=sizes.__getitem__)
        names = f"the names and descriptions of {len(sizes)} skills"
        message = f"{names} have about {total:,} tokens, more than {limit:,}"
        hint = f"shorten descriptions (the longest one has {sizes[longest]:,}), or serve fewer skills at once"
        yield Owner("skills", _description_of(skills[longest])).diagnostic(Rule.LONG_LISTING, message, hint)


def ranking_of(skills: Sequence[CompiledSkill]) -> Ranking:
    """Return the ranking of skills by what a model reads of them before it chooses one."""
    return Ranking([f"{skill.name} {skill.description}" for skill in skills])


def case_problem(
    skill: CompiledSkill, case: SkillCase, skills: Sequence[CompiledSkill], ranking: Ranking
) -> str | None:
    """
    Return how the ranking of *skills* differs from what a case of *skill* expects; None if it does not.
    """
    ranked = ranking.rank(case.name)
    first = skills[ranked[0][1]] if ranked else None
    if case.wanted == (first is skill):
        return None
    if not case.wanted:
        return f"it ranks first for the request {case.name!r}, which is not for it"
    own = next((f"{cosine:.2f}" for cosine, number in ranked if skills[number] is skill), None)
    if first is None or own is None:
        return f"its description has no word of the request {case.name!r}"
    return f"{first.name!r} ({ranked[0][0]:.2f}) ranks before it ({own}) for the request {case.name!r}"


def is_english(text: str) -> bool:
    """Guess whether a text is English: nearly all of its letters are in ASCII."""
    letters = [character for character in text if character.isalpha()]
    return sum(map(str.isascii, letters)) >= 0.95 * len(letters)


def _owner(skill: CompiledSkill) -> Owner:
    return Owner(f"skill {skill.name!r}", skill.location)


def _description_of(skill: CompiledSkill) -> Location:
    """Return the location of a skill's description, or of its function."""
    if not skill.location.file.endswith(SKILL_FILE):
        return skill.location
    lines = lines_of_fields(skill.files[0].content.data)
    return Location(skill.location.file, lines.get("description", 1))
