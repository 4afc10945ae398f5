"""
Cases of skills as evals for models, in the two forms of Anthropic's skill-creator.

See https://github.com/anthropics/skills/tree/main/skills/skill-creator.
"""

from typing import Any, Final

from msgspec import json

from promptkit.catalog.skills import CompiledSkill

#: The requests, with what a grader expects of a run.
EVALS: Final = "evals/evals.json"

#: The requests, with whether the skill should be chosen, for `run_eval.py --eval-set`.
TRIGGERS: Final = "evals/triggers.json"


def eval_files(skill: CompiledSkill) -> dict[str, bytes]:
    """Return the files of a skill's evals, by path in the skill's folder."""
    cases = skill.saved()
    evals = [
        {
            "id": number,
            "prompt": case.name,
            "expected_output": _expectation(skill.name, is_wanted=case.wanted),
            "files": [],
            "expectations": [_expectation(skill.name, is_wanted=case.wanted)],
        }
        for number, case in enumerate(cases, 1)
    ]
    triggers = [{"query": case.name, "should_trigger": case.wanted} for case in cases]
    return {EVALS: _encode({"skill_name": skill.name, "evals": evals}), TRIGGERS: _encode(triggers)}


def _expectation(name: str, *, is_wanted: bool) -> str:
    return f"The skill {name!r} {'is' if is_wanted else 'is not'} used"


def _encode(data: Any) -> bytes:
    return json.format(json.encode(data), indent=2) + b"\n"
