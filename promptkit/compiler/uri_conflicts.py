"""Skills and resources that would have one URI for different contents: hosts would find a wrong digest."""

from collections.abc import Iterable, Mapping, Sequence

from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.skills import CompiledSkill, folders_above
from promptkit.errors.diagnostics import Diagnostic, Report
from promptkit.errors.rules import Rule
from promptkit.files.scratch import SpooledBytes


def without_clashes(
    skills: Sequence[CompiledSkill], resources: Iterable[CompiledResource]
) -> tuple[list[CompiledSkill], list[Diagnostic]]:
    """
    Return the skills that can be served together, and why the others cannot be.

    Args:
        skills:
            All of them.

        resources:
            What is declared beside them.
    """
    outermost_first = sorted(skills, key=lambda skill: len(skill.folder))
    served, found = dict[str, CompiledSkill](), list[Diagnostic]()
    own = {one.uri_template: one for one in resources if one.uri_template.startswith("skill:")}
    for skill in outermost_first:
        report = Report(f"skill {skill.name!r}", skill.location)
        for above in folders_above(skill.folder):
            outer = served.get(above)
            if outer is not None and _below(outer, skill.folder) != _files(skill):
                fault = f"it lies in the folder of skill {outer.name!r}, which has other files there"
                report.add(Rule.DUPLICATE_SKILL, fault, "give it another prefix")
        if other := next((own[uri] for uri in skill.resources if uri in own), None) if own else None:
            fault = f"{other.uri_template!r} is already defined at {other.location}"
            report.add(Rule.DUPLICATE_SKILL, fault, "change the URI of that resource")
        if not report.found:
            served[skill.folder] = skill
        found += report.found
    return list(served.values()), found


def _files(skill: CompiledSkill) -> Mapping[str, SpooledBytes]:
    return {skill.uri_of(file.path): file.content for file in skill.files}


def _below(skill: CompiledSkill, folder: str) -> Mapping[str, SpooledBytes]:
    return {uri: content for uri, content in _files(skill).items() if uri.startswith(f"{folder}/")}
