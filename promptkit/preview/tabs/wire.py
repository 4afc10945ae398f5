"""The tab *wire*: what a client of each revision of the protocol receives."""

from typing import Any

import msgspec

from promptkit.errors.exceptions import ArgumentErrors
from promptkit.preview.rendering import Rendering
from promptkit.preview.tabs.content import Block, TabContent, choices_of, json_block
from promptkit.protocol.jsonrpc import encode_error
from promptkit.protocol.lowering import Lowering, lowering_for
from promptkit.protocol.revisions import REVISIONS, Revision
from promptkit.server.forms import elicitation
from promptkit.server.server import PROMPTKIT

__all__ = ["content"]


def content(rendering: Rendering, _target: str, choice: str) -> TabContent:
    """
    Return the result of ``prompts/get``, and the prompt in the list, for one revision.
    """
    labels = {date: date for date in reversed(REVISIONS)}
    date, choices = choices_of(labels, choice, next(iter(labels)))
    lowering = lowering_for(REVISIONS[date], PROMPTKIT)
    listed = msgspec.to_builtins(lowering.prompt(rendering.prompt))
    replied, notes = _replied(rendering, lowering)
    return TabContent("wire", choices, (*replied, json_block("The prompt in the list", listed)), notes)


def _replied(rendering: Rendering, lowering: Lowering) -> tuple[tuple[Block, ...], tuple[str, ...]]:
    """The answer to ``prompts/get``, and what there is to know of it."""
    prompt, workflow = rendering.prompt, rendering.workflow
    title = "The result of prompts/get"
    if workflow is not None:
        try:
            result = msgspec.json.decode(lowering.result(prompt, workflow))
        except ValueError as error:  # half of a surrogate pair, which UTF-8 cannot encode
            return (), (f"The prompt has text that cannot be sent: {error}.",)
        return (json_block(title, rendering.redactor.redacted_json(result)),), ()
    if not rendering.faults:
        return (), ("The prompt failed: a client gets an error, and no messages.",)
    refusal = json_block("The error of prompts/get", rendering.redactor.redacted_json(_refusal(rendering)))
    question = _question(rendering, lowering.revision)
    if question is None:
        return (refusal,), ("The arguments do not fit: a client gets this error.",)
    return (question, refusal), ("A client that can show forms gets the question, any other one the error.",)


def _question(rendering: Rendering, revision: Revision) -> Block | None:
    """What a client is asked for that lacks arguments, if the prompt and the revision let it."""
    if rendering.question is None or not revision.elicitation:
        return None
    wanted = [rendering.prompt.arguments.by_name[name] for name in rendering.question.names]
    modes = revision.elicitation_modes
    params = elicitation(rendering.prompt, wanted, modes=modes, multi_select=modes)
    return json_block("The params of elicitation/create", rendering.redactor.redacted_json(params))


def _refusal(rendering: Rendering) -> Any:
    errors = ArgumentErrors(rendering.prompt.name, tuple(rendering.faults))
    return msgspec.json.decode(encode_error(1, errors))["error"]
