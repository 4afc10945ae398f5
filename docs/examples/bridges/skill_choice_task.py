"""
The cases of skills as an evaluation by inspect_ai: which skill does a model choose for a request?

Run ``promptkit export skill-evals evals``, then ``inspect eval skill_choice_task.py --model openai/gpt-5``.
"""

import json
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import exact
from inspect_ai.solver import generate

from promptkit.testing import Client


@task
def skill_choice(recipes: str = "recipes", evals: str = "evals") -> Task:
    """Ask for the name of the skill for each request that should trigger one."""
    skills = [skill.frontmatter for skill in Client(recipes).list_skills()]
    listing = "\n".join(f"- {skill['name']}: {skill['description']}" for skill in skills)
    samples = [
        Sample(
            input=f"{listing}\n\nA user asks: {case['query']}\n\nAnswer with the name of the skill to use.",
            target=file.parts[-3],
        )
        for file in sorted(Path(evals).glob("*/evals/triggers.json"))
        for case in json.loads(file.read_text())
        if case["should_trigger"]
    ]
    return Task(samples, solver=generate(), scorer=exact())
