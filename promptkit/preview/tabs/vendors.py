"""The tab *vendors*: what the SDK of each vendor takes."""

from typing import Any, Final

import msgspec

from promptkit.exports.errors import ExportError
from promptkit.exports.forms import FORMS
from promptkit.language.messages import Workflow
from promptkit.preview.rendering import Rendering
from promptkit.preview.tabs.content import TabContent, choices_of, json_block

__all__ = ["content"]

_LABELS: Final = {
    "openai-chat": "OpenAI chat",
    "openai-responses": "OpenAI responses",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
}

#: Which argument of the SDK's method it is.
_TITLES: Final = {
    "openai-chat": "messages of chat.completions.create",
    "openai-responses": "input of responses.create",
    "anthropic": "messages of messages.create",
    "gemini": "contents of models.generate_content",
}

#: Ends the key of a choice that shows text in place of what a vendor does not take.
_LOSSY: Final = "-lossy"


def content(rendering: Rendering, _target: str, choice: str) -> TabContent:
    """
    Return what one vendor takes, or what it does not take; then it can also be shown as text.
    """
    form, is_lossy = choice.removesuffix(_LOSSY), choice.endswith(_LOSSY)
    form = form if form in FORMS else next(iter(FORMS))
    labels = dict(_LABELS)
    notes: tuple[str, ...] = ()
    if rendering.workflow is None:
        _, choices = choices_of(labels, form, form)
        return TabContent("vendors", choices, notes=("There is nothing to send for these arguments.",))
    found = _exported(form, rendering.workflow, lossy=False)
    if isinstance(found, ExportError):
        labels[form + _LOSSY] = f"{_LABELS[form]}, text in place of it"
        notes = tuple(f"{found.vendor} cannot take it: {part}." for part in found.parts)
        found = _exported(form, rendering.workflow, lossy=True) if is_lossy else None
    _, choices = choices_of(labels, choice, form)
    if found is None:
        return TabContent("vendors", choices, notes=notes)
    return TabContent(
        "vendors", choices, (json_block(_TITLES[form], rendering.redactor.redacted_json(found)),), notes
    )


def _exported(form: str, workflow: Workflow, *, lossy: bool) -> Any:
    """What the vendor takes, as JSON has it, or the error that says what it cannot take."""
    try:
        return msgspec.to_builtins(FORMS[form](workflow, lossy=lossy))
    except ExportError as error:
        return error
