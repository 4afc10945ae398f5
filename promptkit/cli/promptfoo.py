"""promptfoo: what it tells a prompt that is a command, and what it takes such a prompt to say."""

import json
import os
import re
from typing import Any, Final

from promptkit.catalog.arguments import Arguments
from promptkit.cli.key_values import ArgumentSyntaxError
from promptkit.errors.suggestions import nearest
from promptkit.exports import openai_chat
from promptkit.language.messages import Workflow, workflow_of

#: What Nunjucks reads, with which promptfoo reads each prompt again.
_TEMPLATE: Final = re.compile(r"\{(?=[{%#])|#\}")

#: Text that promptfoo changes, or takes for messages, besides what is JSON.
_TAKEN: Final = re.compile(r"\A(?:[\[{\s\ufeff]|- role:)|\{[{%#]|#\}|\x1b|[\s\ufeff]\Z")

_TRUE: Final = {"1", "true", "yes", "yup", "yeppers"}


def variables(context: str, arguments: Arguments) -> dict[str, Any]:
    """
    Return the arguments of a test case: a variable is the argument of its name.

    Others are left alone, as assertions may be about them; but not those that seem to be misspelt.

    Args:
        context:
            The JSON that promptfoo appends to the command.

        arguments:
            What the prompt takes.

    Raises:
        ArgumentSyntaxError: If it is no such JSON.
    """
    try:
        found = json.loads(context)["vars"]
        names = found.keys()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        msg = "--promptfoo takes the JSON that promptfoo appends to a command: write it last"
        raise ArgumentSyntaxError(msg) from None
    open_ones = arguments.by_name.keys() - names

    def is_meant(name: str) -> bool:
        return name in arguments.by_name or not (name.startswith("__") or nearest(name, open_ones) is None)

    return {name: value for name, value in found.items() if is_meant(name)}  # promptfoo's own begin with __


def printed(workflow: Workflow, encoding: str, *, lossy: bool) -> str:
    """
    Return what promptfoo takes for the prompt: its text, or the JSON of messages as OpenAI has them.

    promptfoo strips text, reads what looks like JSON, and fills in what looks like a template: such text is
    a message in JSON, with escapes, so that models get what the prompt says.

    Args:
        workflow:
            What was rendered.

        encoding:
            That of standard output; promptfoo reads UTF-8.

        lossy:
            Whether what OpenAI does not take becomes text that says what it was.

    Raises:
        ExportError: If there is anything that OpenAI does not take, unless *lossy*.
    """
    said = workflow_of(workflow.messages, workflow.system)  # without marks of a cache, which not all take
    messages = openai_chat(said, lossy=lossy, system_role="system")
    match messages:
        case [{"role": "user", "content": str(text)}] if _stays(text, encoding):
            return text
    written = json.dumps(messages)
    if os.environ.get("PROMPTFOO_DISABLE_TEMPLATING", "").lower() in _TRUE:
        return written
    # JSON itself has none of these, as no two of its braces stand side by side.
    return _TEMPLATE.sub(lambda found: f"{{{{ '{found[0]}' }}}}", written)


def _stays(text: str, encoding: str) -> bool:
    """Whether promptfoo takes a text as it is."""
    if _TAKEN.search(text) or not (text.isascii() or encoding.lower().startswith("utf")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False
