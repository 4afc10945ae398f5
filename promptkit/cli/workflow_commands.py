"""
Workflow commands of GitHub Actions: lines in a job's log that change the job.

The runner looks for them in all output of a step: ``::add-mask::x`` at the start of a line, after any blanks,
and ``##[add-mask]x`` anywhere in a line. Text from other sources must not be executed as a command.
"""

import os
import re
from typing import Final

_LINE_ENDS: Final = r"\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029"

#: The start of a line, with everything that the runner can skip there: blanks, colours, and characters that
#: its comparison of texts ignores.
_LINE_START: Final = rf"(?<![^{_LINE_ENDS}])((?:\x1b\[[0-9;]*m|[^\w!-@\[-`{{-~{_LINE_ENDS}])*)"

_COMMAND: Final = re.compile(rf"{_LINE_START}:(?=:[^{_LINE_ENDS}]*::)|(?<=#)#(?=\[)")


def is_in_workflow() -> bool:
    """Return whether the runner of GitHub Actions reads what this process prints."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def escape_commands(text: str) -> str:
    r"""
    Return *text* with ``\u003a`` or ``\u0023`` for a character of each workflow command, within a workflow.

    Outside a workflow, *text* is returned unchanged. Escaped JSON remains the same data.
    """
    if not is_in_workflow():
        return text
    return _COMMAND.sub(lambda match: r"\u0023" if match[0] == "#" else rf"{match[1]}\u003a", text)
