"""
Loops that write what ``promptkit batch`` writes, as people write them by hand.

``python -m benchmarks.batch_loops NAME ROWS OUT`` reads JSON lines, and writes a file for OpenAI.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

MODEL: Final = "model"

#: What is said of each row, with the holes of `str.format`.
TEXT: Final = (
    "Triage this ticket. Its severity is {severity}, and {votes} people voted for it.\n\n{ticket}\n\n"
    "Answer with one word: now, soon or later."
)

#: Says it.
Say = Callable[[dict[str, Any]], str]


def f_string() -> Say:
    """
    Return what formats the text by Python alone.
    """
    return lambda row: (
        f"Triage this ticket. Its severity is {row['severity']}, and {row['votes']} people voted for it.\n\n"
        f"{row['ticket']}\n\nAnswer with one word: now, soon or later."
    )


def jinja() -> Say:
    """
    Return what renders a template of Jinja2.
    """
    from jinja2 import Environment, StrictUndefined

    text = TEXT.replace("{", "{{ ").replace("}", " }}")
    template = Environment(undefined=StrictUndefined).from_string(text)  # noqa: S701 (it is no HTML)
    return template.render


def langchain() -> Say:
    """
    Return what invokes a template of LangChain, as its documentation has it. It makes one message.
    """
    from langchain_core.prompts import ChatPromptTemplate

    template = ChatPromptTemplate.from_messages([("user", TEXT)])
    return lambda row: str(template.invoke(row).to_messages()[0].content)


def langchain_format() -> Say:
    """
    Return what formats the messages of such a template: there is no quicker way.
    """
    from langchain_core.prompts import ChatPromptTemplate

    template = ChatPromptTemplate.from_messages([("user", TEXT)])
    return lambda row: str(template.format_messages(**row)[0].content)


LOOPS: Final[dict[str, Callable[[], Say]]] = {
    "an f-string": f_string,
    "Jinja2": jinja,
    "LangChain": langchain,
    "LangChain, format_messages": langchain_format,
}


def main(name: str, rows: str, out: str) -> None:
    """
    Write a request for each row.
    """
    say = LOOPS[name]()
    with Path(rows).open(encoding="utf-8") as lines, Path(out).open("w", encoding="utf-8") as requests:
        for number, line in enumerate(lines, 1):
            messages = [{"role": "user", "content": say(json.loads(line))}]
            request = {
                "custom_id": f"row-{number}",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {"messages": messages, "model": MODEL},
            }
            requests.write(json.dumps(request) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
