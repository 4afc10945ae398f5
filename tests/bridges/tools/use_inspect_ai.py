"""Run inspect_ai tasks with its mock model, one of them with all kinds of content."""

import json
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate
from inspect_ai_task import severities
from sample_workflow import PIXEL, WORKFLOW
from skill_choice_task import skill_choice
from tickets import triage

from promptkit import Image, ResourceLink, Workflow, assistant
from promptkit.batch import RowError
from promptkit.bridges.inspect_ai import messages, samples
from promptkit.exports import ExportError


def run(task: Task, *answers: str) -> list[Sample]:
    """Run a task on a model with these answers, and return the scored samples."""
    outputs = [ModelOutput.from_content("mockllm/model", answer) for answer in answers]
    for output in outputs:
        output.usage = ModelUsage()  # otherwise it downloads a tokenizer
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = eval(task, model=model, display="none", max_samples=1)
    assert log.status == "success", log.error.message
    return log.samples


def collect_errors() -> list[str]:
    """Return the errors for invalid tables and messages."""
    errors = []
    for rows, options in (
        ([{"ticket": "a"}, {"ticket": True}], {}),
        ([{"ticket": "a"}], {"target": "severity"}),
        ([{"ticket": "a", "severity": "low"}], {"target": "severity", "key": "id"}),
    ):
        try:
            samples(triage, rows, **options)
        except (RowError, KeyError) as error:
            errors.append(str(error))
    try:
        messages(WORKFLOW + assistant(Image(PIXEL)))
    except ExportError as error:
        errors.append(error.reason)
    return errors


def choose_skills() -> list[tuple[str, str]]:
    """Return the expected skill of each sample, and the score of a model that answers `ship`."""
    skill = "---\nname: ship\ndescription: Ship it, if asked.\n---\nDo it.\n"
    triggers = [{"query": "go", "should_trigger": True}, {"query": "stop", "should_trigger": False}]
    files = {"ship/SKILL.md": skill, "evals/ship/evals/triggers.json": json.dumps(triggers)}
    for path, text in files.items():
        file = Path("skills", path)
        file.parent.mkdir(parents=True)
        file.write_text(text)
    scored = run(skill_choice("skills/ship", "skills/evals"), "ship")
    return [(sample.target, sample.scores["exact"].value) for sample in scored]


def main() -> None:
    """Print the scores, and the classes and content of messages, as JSON."""
    scored = run(severities(), "It is low.", "low")
    workflow = Workflow(
        [turn for turn in WORKFLOW if not isinstance(turn.content, ResourceLink)], WORKFLOW.system
    )
    dataset = [Sample(input=messages(workflow), target="dot")]
    (sample,) = run(Task(dataset, solver=generate(), scorer=includes()), "a dot")
    scores = [
        [
            scored_sample.id,
            scored_sample.target,
            scored_sample.metadata,
            [message.text for message in scored_sample.input],
            scored_sample.scores["includes"].value,
        ]
        for scored_sample in scored
    ]
    kinds = [
        [
            type(message).__name__,
            message.content
            if isinstance(message.content, str)
            else [[type(part).__name__, part.model_dump(exclude_defaults=True)] for part in message.content],
        ]
        for message in sample.input
    ]
    results = {"scored": scores, "kinds": kinds, "errors": collect_errors(), "skills": choose_skills()}
    print(json.dumps(results))  # noqa: T201 (the test reads it)


if __name__ == "__main__":
    main()
