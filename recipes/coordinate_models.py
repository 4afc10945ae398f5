"""A task that is divided among several models, and whose results are then merged."""

from typing import Annotated, Final, Literal

from promptkit import Arg, Workflow, prompt, user
from promptkit.fragments import bullets, dedent, json_block, section, tag

from ._text import parse_model_names, require_text

STEPS: Final = dedent("""
    1. **Plan**: assign the work to the models. Give every model at least one part.
    2. **Confirm**: show me the plan and wait for my reply. If the task leaves anything open, ask
       now.
    3. **Execute**: send each brief as soon as its inputs are ready, and send independent parts in
       parallel. If you cannot reach a model, print its brief for me to send.
    4. **Check**: compare each result with its acceptance criteria. If it falls short, return it
       once with a list of the gaps. If it falls short again, give the part to another model and
       note that you did.
    5. **Merge**: combine the results as described under Merging.
    """)

PLAN: Final = {
    "part": "a short name",
    "model": "one of the models above",
    "reason": "why this model suits the part",
    "depends_on": ["names of the parts that must be finished first"],
    "brief": "complete instructions: the model sees nothing else of this conversation",
    "acceptance_criteria": ["a criterion that can be checked"],
}

MERGES: Final = {
    "assemble": dedent("""
        Each result is one part of the whole. Join the parts in the order of the plan, make
        terminology and style consistent, and remove repetition.
        """),
    "compete": dedent("""
        Every model does the whole task independently. Choose the best result by the criteria, add
        useful content that only the other results have, and credit each addition to its model.
        """),
    "relay": dedent("""
        Each model improves the result of the previous one, and the last result is the answer. List
        the changes made in each step, and undo any change that violates a criterion.
        """),
}

RESULT_FORMAT: Final = dedent("""
    Give the merged result first. Below it, list which model delivered which part, where results
    contradicted each other and how you decided, and which work no model could do. If a model did
    not answer, report that. Never fill in for it silently.
    """)


@prompt(tags=["multi-model", "planning"])
def coordinate_models(
    task: Annotated[str, Arg("The task to carry out", examples=["Translate the manual"])],
    models: Annotated[str, Arg("The models to use, separated by commas", examples=["gpt-5, sonnet-4"])],
    merge: Annotated[
        Literal["assemble", "compete", "relay"],
        Arg("How to combine the results"),
    ] = "assemble",
) -> Workflow:
    """Divide a task among several models and merge their results."""
    return user(
        "Coordinate several models on the task below.",
        tag("task", require_text(task, "task")),
        section("Models", bullets(parse_model_names(models))),
        section("Steps", STEPS),
        section("Plan format", "A JSON array of objects like this one:", json_block([PLAN])),
        section("Merging", MERGES[merge]),
        section("Result format", RESULT_FORMAT),
    )
