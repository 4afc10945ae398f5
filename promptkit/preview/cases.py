"""The cases of a prompt, as its page shows them: what is said for each."""

from asyncio import to_thread
from collections.abc import Mapping, Sequence
from itertools import chain

import attrs

from promptkit.catalog.cases import Case, is_refused, sendable
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.preview.conversation import Conversation, TurnView
from promptkit.preview.media import MediaStore
from promptkit.preview.rendering import LimitedCalls, Rendering, render

__all__ = ["CaseView", "opening", "views_of"]


@attrs.frozen
class CaseView:
    """
    A case, and what came of it.

    Args:
        case:
            The case.

        rendering:
            What came of it.

        fault:
            What its author does not expect; None if it is as expected.

        refusal:
            The words in which it is refused, as it has to be; None if it is not.

        turns:
            What the prompt says.
    """

    case: Case
    rendering: Rendering
    fault: str | None
    refusal: str | None
    turns: Sequence[TurnView]


def opening(prompt: CompiledPrompt, name: str | None = None) -> Mapping[str, str]:
    """
    Return what the form of a prompt holds when it is opened: an input of its author, if there is one.

    Args:
        prompt:
            The prompt.

        name:
            The name of a case; None for the first that is rendered, or the first example.
    """
    saved = sendable(prompt.saved())
    if name is not None:
        return next((sent for case, sent in saved if case.name == name), {})
    if not prompt.sample:  # nothing is rendered before somebody asks for it
        return {}
    rendered = (sent for case, sent in saved if case.refusal is None)
    return next(chain(rendered, filter(None, prompt.arguments.example_texts)), {})


async def views_of(calls: LimitedCalls, prompt: CompiledPrompt, media: MediaStore) -> list[CaseView]:
    """
    Render a prompt for its cases.

    Args:
        calls:
            Calls authors' functions.

        prompt:
            The prompt.

        media:
            Keeps what browsers will ask for.
    """
    views = []
    for case, sent in sendable(prompt.saved()):
        rendering = await render(calls, prompt, sent, is_asked=True)
        workflow, raised, redacted = rendering.workflow, rendering.raised, rendering.redacted
        fault = case.fault(raised or workflow)
        refusal = redacted(str(raised)) if case.refusal is not None and is_refused(raised) else None
        conversation = Conversation(media, redacted)
        turns = await to_thread(conversation.turns, workflow) if workflow is not None else []
        views.append(CaseView(case, rendering, fault and redacted(fault), refusal, turns))
    return views
