"""A task that is phrased for each model as the model's vendor recommends."""

from collections.abc import Callable, Mapping
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from promptkit import Arg, Text, Workflow, prompt, user
from promptkit.fragments import dedent, tag, untrusted

from ._text import require_text

Model: TypeAlias = Literal["gemini-2.5-pro", "gpt-5", "sonnet-4", "opus-4.1"]


class Brief(NamedTuple):
    """The parts that every phrasing contains, each in its own tag."""

    task: Text
    purpose: Text
    material: Text | None
    form: Text


# Google recommends tags around the parts, constraints first, the question after long material, and a recap.
# https://cloud.google.com/vertex-ai/generative-ai/docs/learn/prompts/prompt-design-strategies
# https://ai.google.dev/gemini-api/docs/long-context
def phrase_for_gemini(brief: Brief) -> Workflow:
    """Phrase the task for Gemini 2.5 Pro."""
    constraints = dedent("""
        Take facts from the material, if there is any, and mark general knowledge that you add. If
        the task needs information that is missing, name it. Do not make it up.
        """)
    recap = dedent("""
        Do the whole task, in the form asked for, within the constraints. Check your result against
        all three before you answer.
        """)
    return user(
        tag("constraints", constraints),
        brief.material,
        "Based on the material above:" if brief.material else None,
        brief.task,
        brief.purpose,
        brief.form,
        tag("recap", recap),
    )


# OpenAI recommends instructions that do not contradict each other, and stating when to stop, when to ask,
# how long the answer should be and where to use Markdown. Appeals to be thorough, which older models needed,
# make GPT-5 overdo things.
# https://cookbook.openai.com/examples/gpt-5/gpt-5_prompting_guide
def phrase_for_gpt5(brief: Brief) -> Workflow:
    """Phrase the task for GPT-5."""
    completion = dedent("""
        You are done when every part of the task is answered. If a detail is missing, make the most
        reasonable assumption, continue, and list the assumption at the end. Ask first only if a wrong
        assumption would make the answer useless.
        """)
    style = dedent("""
        Keep prose short, and give code and figures in full. Use Markdown only for code, lists and
        tables. If these rules conflict with the form, the form takes precedence.
        """)
    return user(
        brief.task,
        brief.purpose,
        brief.material,
        brief.form,
        tag("completion", completion),
        tag("style", style),
    )


# Anthropic has one guide for both models. It recommends long material first, in tags that the instructions
# name; the reason for a request; positive instructions; and quotations before conclusions. With extended
# thinking, a goal works better than prescribed steps, so Opus gets the goal and Sonnet the steps.
# https://docs.claude.com/en/docs/build-with-claude/prompt-engineering/claude-4-best-practices
# https://docs.claude.com/en/docs/build-with-claude/prompt-engineering/long-context-tips
# https://docs.claude.com/en/docs/build-with-claude/prompt-engineering/extended-thinking-tips
def phrase_for_sonnet(brief: Brief) -> Workflow:
    """Phrase the task for Sonnet 4."""
    instructions = dedent("""
        1. Quote the passages of <material>, if there is any, that <task> depends on.
        2. Do everything that <task> asks for, part by part.
        3. State each assumption where you make it, and the information that would replace it.
        4. Write the answer in the form that <form> describes.
        """)
    return user(brief.material, brief.task, brief.purpose, tag("instructions", instructions), brief.form)


def phrase_for_opus(brief: Brief) -> Workflow:
    """Phrase the task for Opus 4.1."""
    instructions = dedent("""
        Think this through in depth. Before you choose an approach, weigh several, and consider what
        would prove each of them wrong. Go beyond the obvious answer: add the points that an expert
        would raise unprompted.

        Base your conclusions on quotations from <material>, if there is any. Before you finish, check
        the answer against <task>, correct it, and state which points remain uncertain.
        """)
    return user(brief.material, brief.task, brief.purpose, tag("instructions", instructions), brief.form)


PHRASINGS: Final[Mapping[Model, Callable[[Brief], Workflow]]] = {
    "gemini-2.5-pro": phrase_for_gemini,
    "gpt-5": phrase_for_gpt5,
    "sonnet-4": phrase_for_sonnet,
    "opus-4.1": phrase_for_opus,
}


@prompt(tags=["multi-model", "writing"], version="1.0")
def tune_for_model(
    model: Annotated[Model, Arg("The model that will read the prompt", examples=["gpt-5", "opus-4.1"])],
    task: Annotated[str, Arg("The task to carry out", examples=["Compare the two offers"])],
    form: Annotated[str | None, Arg("What the answer should look like, preferably with an example")] = None,
    purpose: Annotated[str | None, Arg("What the answer is needed for")] = None,
    material: Annotated[str | None, Arg("The text that the task is about")] = None,
) -> Workflow:
    """Phrase a task the way the model's vendor recommends."""
    brief = Brief(
        task=tag("task", require_text(task, "task")),
        purpose=tag("purpose", purpose),
        material=tag("material", untrusted(material)) if material else None,
        form=tag("form", form or "The answer first, then its reasons, as briefly as the task allows."),
    )
    return PHRASINGS[model](brief)
