"""Run inspect_ai tasks with its mock model, one of them with all kinds of content."""

import json

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate
from inspect_ai_task import severities
from shown import PIXEL, SHOWN
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


def faults() -> list[str]:
    """Return the errors for invalid tables and messages."""
    said = []
    for rows, options in (
        ([{"ticket": "a"}, {"ticket": 1}], {}),
        ([{"ticket": "a"}], {"target": "severity"}),
        ([{"ticket": "a", "severity": "low"}], {"target": "severity", "key": "id"}),
    ):
        try:
            samples(triage, rows, **options)
        except RowError as error:
            said.append(str(error))
    try:
        messages(SHOWN + assistant(Image(PIXEL)))
    except ExportError as error:
        said.append(error.reason)
    return said


def main() -> None:
    """Print the scores, and the classes and content of messages, as JSON."""
    scored = run(severities(), "It is low.", "low")
    local = Workflow([turn for turn in SHOWN if not isinstance(turn.content, ResourceLink)], SHOWN.system)
    asked = [Sample(input=messages(local), target="dot")]
    (seen,) = run(Task(asked, solver=generate(), scorer=includes()), "a dot")
    sorted_out = [
        [
            one.id,
            one.target,
            one.metadata,
            [message.text for message in one.input],
            one.scores["includes"].value,
        ]
        for one in scored
    ]
    kinds = [
        [
            type(message).__name__,
            message.content
            if isinstance(message.content, str)
            else [[type(part).__name__, part.model_dump(exclude_defaults=True)] for part in message.content],
        ]
        for message in seen.input
    ]
    print(json.dumps({"scored": sorted_out, "kinds": kinds, "faults": faults()}))  # noqa: T201 (the test reads it)


if __name__ == "__main__":
    main()
