"""The same task, phrased as the maker of each model advises, in our own words."""

from collections.abc import Callable, Mapping
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from promptkit import Arg, Text, Workflow, prompt, user
from promptkit.fragments import dedent, tag, untrusted

from ._text import given

Model: TypeAlias = Literal["gemini-2.5-pro", "gpt-5", "sonnet-4", "opus-4.1"]


class Brief(NamedTuple):
    """What every model is told, each part in a tag of its own."""

    task: Text
    purpose: Text | None
    material: Text | None
    form: Text


# Google: tags around the parts, constraints first, the question after long material, a recap.
# https://cloud.google.com/vertex-ai/generative-ai/docs/learn/prompts/prompt-design-strategies
# https://ai.google.dev/gemini-api/docs/long-context
def for_gemini(brief: Brief) -> Workflow:
    """Phrase the task for Gemini 2.5 Pro."""
    constraints = dedent("""
        Take facts from the material, if there is any, and say so where you add general knowledge.
        If something is missing that the task needs, name it; do not invent it.
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


# OpenAI: no two instructions that contradict each other, when to stop and when to ask, length and
# Markdown by request; appeals to be thorough, which older models needed, make it overdo things.
# https://cookbook.openai.com/examples/gpt-5/gpt-5_prompting_guide
def for_gpt5(brief: Brief) -> Workflow:
    """Phrase the task for GPT-5."""
    completion = dedent("""
        You are done when every part of the task is answered. Where a detail is missing, make the most
        reasonable assumption, go on, and list it at the end. Ask first only if the answer would be
        useless should the assumption be wrong.
        """)
    style = dedent("""
        Keep prose short, and code and figures complete. Use Markdown for code, lists and tables only.
        Where this and the form disagree, the form counts.
        """)
    return user(
        brief.task,
        brief.purpose,
        brief.material,
        brief.form,
        tag("completion", completion),
        tag("style", style),
    )


# Anthropic, in one guide for both models: long material first, in tags that the instructions name;
# the reason behind a wish; what to do rather than what not to; quotations before conclusions.
# With extended thinking a goal does better than prescribed steps: we give Opus the goal, and
# Sonnet the steps.
# https://docs.claude.com/en/docs/build-with-claude/prompt-engineering/claude-4-best-practices
# https://docs.claude.com/en/docs/build-with-claude/prompt-engineering/long-context-tips
# https://docs.claude.com/en/docs/build-with-claude/prompt-engineering/extended-thinking-tips
def for_sonnet(brief: Brief) -> Workflow:
    """Phrase the task for Sonnet 4."""
    instructions = dedent("""
        1. Quote the passages of <material>, if there is any, that <task> depends on.
        2. Do everything that <task> asks for, part by part.
        3. State each assumption where you make it, and what I could tell you to replace it.
        4. Write the answer as <form> says.
        """)
    return user(brief.material, brief.task, brief.purpose, tag("instructions", instructions), brief.form)


def for_opus(brief: Brief) -> Workflow:
    """Phrase the task for Opus 4.1."""
    instructions = dedent("""
        Think this through in depth. Weigh several approaches, and what would prove each of them wrong,
        before you settle on one. Go beyond the obvious answer: add what an expert would raise unasked.

        Rest your conclusions on quotations from <material>, if there is any. Before you finish, test the
        answer against <task>, correct it, and say what remains uncertain.
        """)
    return user(brief.material, brief.task, brief.purpose, tag("instructions", instructions), brief.form)


PHRASINGS: Final[Mapping[Model, Callable[[Brief], Workflow]]] = {
    "gemini-2.5-pro": for_gemini,
    "gpt-5": for_gpt5,
    "sonnet-4": for_sonnet,
    "opus-4.1": for_opus,
}


@prompt(tags=["multi-model", "writing"], version="1.0")
def tune_for_model(
    model: Annotated[Model, Arg("The model that will read the prompt", examples=["gpt-5", "opus-4.1"])],
    task: Annotated[str, Arg("What is to be done", examples=["Compare the two offers"])],
    form: Annotated[str | None, Arg("What the answer should look like; best with an example")] = None,
    purpose: Annotated[str | None, Arg("What the answer is needed for")] = None,
    material: Annotated[str | None, Arg("The text that the task is about")] = None,
) -> Workflow:
    """Phrase a task the way the maker of a model advises."""
    brief = Brief(
        task=tag("task", given(task, "task")),
        purpose=tag("purpose", purpose) if purpose else None,
        material=tag("material", untrusted(material)) if material else None,
        form=tag("form", form or "The answer first, then its reasons, as short as the task allows."),
    )
    return PHRASINGS[model](brief)
