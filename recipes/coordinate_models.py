"""A task, divided among models and put together again."""

from typing import Annotated, Final, Literal

from promptkit import Arg, Workflow, prompt, user
from promptkit.fragments import bullets, dedent, json_block, section, tag

from ._text import given, models_in

STEPS: Final = dedent("""
    1. **Plan**: say which model does what. Every model gets at least one part.
    2. **Confirm**: show me the plan and wait. Ask now about whatever the task leaves open.
    3. **Carry out**: send each brief as soon as what it needs is there; parts that do not depend on
       each other go out together. If you cannot reach a model, print its brief for me to send.
    4. **Check**: hold each result against its criteria. Return it once with what is missing. If it
       fails again, give the part to another model and note that.
    5. **Merge**: as described below.
    """)

PLAN: Final = {
    "part": "a short name",
    "model": "one of the models above",
    "because": "what makes this model the right one for the part",
    "needs": ["names of parts that have to be finished first"],
    "brief": "all that the model is told: it sees nothing else of this conversation",
    "accepted_if": ["a criterion that can be checked"],
}

MERGES: Final = {
    "assemble": dedent("""
        The parts make up the whole. Join them in the order of the plan, make terms and style agree,
        and remove what is said twice.
        """),
    "compete": dedent("""
        Every model does the whole task alone. Choose the best result by the criteria, then add what
        only the others have, and say what you took from whom.
        """),
    "relay": dedent("""
        Each model works on what the one before it delivered, and the last result is the answer. List
        what each step changed, and undo a change that broke a criterion.
        """),
}

RESULT: Final = dedent("""
    The merged result first. Below it: which model delivered which part, where results contradicted
    each other and how you decided, and what nobody could do. If a model did not answer, say so; do
    not fill in for it silently.
    """)


@prompt(tags=["multi-model", "planning"])
def coordinate_models(
    task: Annotated[str, Arg("What is to be done", examples=["Translate the manual"])],
    models: Annotated[str, Arg("The models to use, separated by commas", examples=["gpt-5, sonnet-4"])],
    merge: Annotated[
        Literal["assemble", "compete", "relay"],
        Arg("How the results become one"),
    ] = "assemble",
) -> Workflow:
    """Divide a task among several models and merge what they deliver."""
    return user(
        "Coordinate several models on the task below.",
        tag("task", given(task, "task")),
        section("Models", bullets(models_in(models))),
        section("Steps", STEPS),
        section("Form of the plan", "A JSON array of objects like this one:", json_block([PLAN])),
        section("Merging", MERGES[merge]),
        section("Form of the result", RESULT),
    )
