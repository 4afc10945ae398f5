"""An explanation of code, as deep as its reader needs."""

from enum import Enum
from typing import Annotated, Final

from promptkit import Arg, Text, prompt
from promptkit.fragments import code_block

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


@prompt(tags=["code", "learning"])
def explain_code(
    code: Annotated[str, Arg("The code to explain", examples=["xs[::-1]"])],
    reader: Annotated[Reader, Arg("Who the explanation is for")] = Reader.NEWCOMER,
) -> Text:
    """Explain what a piece of code does, and how."""
    return Text.from_path("explain_code.md", reader=NEEDS[reader], code=code_block(given(code, "code")))
