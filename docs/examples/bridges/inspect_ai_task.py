"""An evaluation by inspect_ai: ``inspect eval inspect_ai_task.py --model openai/gpt-5``."""

from inspect_ai import Task, task
from inspect_ai.scorer import includes
from inspect_ai.solver import generate
from tickets import triage

from promptkit.bridges.inspect_ai import samples

ROWS = [
    {"id": "t-1", "ticket": "The logo is ugly.", "severity": "low"},
    {"id": "t-2", "ticket": "Nobody can pay.", "severity": "high"},
]


@task
def severities() -> Task:
    """Ask for the severity of each ticket."""
    return Task(samples(triage, ROWS, target="severity", key="id"), solver=generate(), scorer=includes())
