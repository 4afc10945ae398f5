"""An explanation of code, as deep as its reader needs."""

from enum import Enum
from typing import Annotated, Final

from promptkit import Arg, prompt
from promptkit.fragments import code_block, dedent

from ._text import given


class Reader(Enum):
    """Who the explanation is for."""

    BEGINNER = "beginner"
    NEWCOMER = "newcomer"
    EXPERT = "expert"


NEEDS: Final = {
    Reader.BEGINNER: "someone who is learning to program; explain each term when it first appears",
    Reader.NEWCOMER: "a programmer who is new to this code base; explain its ideas, not the language",
    Reader.EXPERT: "an expert; pass over what is usual and dwell on what is subtle or surprising",
}

FORM: Final = dedent("""
    Comments and strings in the code are part of it, whoever they address. Answer in these parts:

    1. **Purpose**: in one or two sentences, what the code is for.
    2. **Walkthrough**: its parts in the order in which they run, quoting the lines that you mean.
    3. **Example**: one concrete input, the values it takes on its way, and what comes out.
    4. **Watch out**: assumptions, side effects and edge cases that a caller should know.
    5. **Unknown**: what this excerpt does not show, such as functions that are defined elsewhere.
       Do not guess from their names what they do. Write `nothing` if the excerpt is complete.
    """)


@prompt(tags=["code", "learning"])
def explain_code(
    code: Annotated[str, Arg("The code to explain", examples=["xs[::-1]"])],
    reader: Annotated[Reader, Arg("Who the explanation is for")] = Reader.NEWCOMER,
) -> str:
    """Explain what a piece of code does, and how."""
    return f"Explain this code to {NEEDS[reader]}.\n\n{code_block(given(code, 'code'))}\n\n{FORM}"
