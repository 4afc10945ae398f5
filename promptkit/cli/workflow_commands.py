"""
Workflow commands of GitHub Actions: lines of a job's log that change the job.

The runner reads them in all that a step prints: ``::add-mask::x`` where a line begins, after any blanks, and
``##[add-mask]x`` anywhere in a line. Text of others must not be taken for one.
"""

import os
import re
from typing import Final

_LINE_ENDS: Final = r"\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029"

#: The beginning of a line, and all that the runner may skip there: blanks, colours, and characters that its
#: comparison of texts ignores.
_BEGINNING: Final = rf"(?<![^{_LINE_ENDS}])((?:\x1b\[[0-9;]*m|[^\w!-@\[-`{{-~{_LINE_ENDS}])*)"

_COMMAND: Final = re.compile(rf"{_BEGINNING}:(?=:[^{_LINE_ENDS}]*::)|(?<=#)#(?=\[)")


def is_in_workflow() -> bool:
    """Return whether the runner of GitHub Actions reads what this process prints."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def escape_commands(text: str) -> str:
    r"""
    Return *text* with ``\u003a`` or ``\u0023`` for a character of each workflow command, within a workflow.

    Elsewhere nothing is changed. JSON remains the same data.
    """
    if not is_in_workflow():
        return text
    return _COMMAND.sub(lambda found: r"\u0023" if found[0] == "#" else rf"{found[1]}\u003a", text)
