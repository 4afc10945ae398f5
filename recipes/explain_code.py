"""An explanation of code, adapted to the reader's experience."""

from enum import Enum
from typing import Annotated, Final

from promptkit import Arg, Text, prompt
from promptkit.fragments import code_block

from ._text import require_text


class Reader(Enum):
    """The reader of the explanation."""

    BEGINNER = "beginner"
    NEWCOMER = "newcomer"
    EXPERT = "expert"


READERS: Final = {
    Reader.BEGINNER: "a beginner learning to program; explain each term when it first appears",
    Reader.NEWCOMER: "a programmer new to this code base; explain its ideas, not the language",
    Reader.EXPERT: "an expert; skip the obvious and concentrate on subtle or surprising details",
}


@prompt(tags=["code", "learning"])
def explain_code(
    code: Annotated[str, Arg("The code to explain", examples=["xs[::-1]"])],
    reader: Annotated[Reader, Arg("Who the explanation is for")] = Reader.NEWCOMER,
) -> Text:
    """Explain what a piece of code does, and how."""
    block = code_block(require_text(code, "code"))
    return Text.from_path("explain_code.md", reader=READERS[reader], code=block)
