"""The tab *wire*: what a client of each revision of the protocol receives."""

from typing import Any

import msgspec

from promptkit.errors.exceptions import ArgumentErrors
from promptkit.preview.rendering import Rendering
from promptkit.preview.tabs.content import Block, TabContent, choices_of, json_block
from promptkit.protocol.jsonrpc import encode_error
from promptkit.protocol.lowering import Lowering, lowering_for
from promptkit.protocol.revisions import REVISIONS
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
    if rendering.faults:
        refusal = rendering.redactor.redacted_json(_refusal(rendering))
        asks = "A client that can show forms is asked for what is missing. " if rendering.question else ""
        others = (
            "Any other client gets this error." if asks else "The arguments do not fit: this is an error."
        )
        return (json_block("The error of prompts/get", refusal),), (asks + others,)
    return (), ("The prompt failed: a client gets an error, and no messages.",)


def _refusal(rendering: Rendering) -> Any:
    errors = ArgumentErrors(rendering.prompt.name, tuple(rendering.faults))
    return msgspec.json.decode(encode_error(1, errors))["error"]
