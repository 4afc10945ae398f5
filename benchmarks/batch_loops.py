"""
Handwritten loops that write the same requests as ``promptkit batch``.

``python -m benchmarks.batch_loops NAME ROWS OUT`` reads a JSON Lines file, and writes a batch file for
OpenAI.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

MODEL: Final = "model"

#: The prompt for each row, with placeholders for `str.format`.
TEXT: Final = (
    "Triage this ticket. Its severity is {severity}, and {votes} people voted for it.\n\n{ticket}\n\n"
    "Answer with one word: now, soon or later."
)

#: A function that renders the prompt for one row.
Render = Callable[[dict[str, Any]], str]


def f_string() -> Render:
    """
    Return a function that formats an f-string.
    """
    return lambda row: (
        f"Triage this ticket. Its severity is {row['severity']}, and {row['votes']} people voted for it.\n\n"
        f"{row['ticket']}\n\nAnswer with one word: now, soon or later."
    )


def jinja() -> Render:
    """
    Return a function that renders a Jinja2 template.
    """
    from jinja2 import Environment, StrictUndefined

    text = TEXT.replace("{", "{{ ").replace("}", " }}")
    template = Environment(undefined=StrictUndefined).from_string(text)  # noqa: S701 (the output is not HTML)
    return template.render


def langchain() -> Render:
    """
    Return a function that invokes a LangChain template with one message, as LangChain's documentation does.
    """
    from langchain_core.prompts import ChatPromptTemplate

    template = ChatPromptTemplate.from_messages([("user", TEXT)])
    return lambda row: str(template.invoke(row).to_messages()[0].content)


def langchain_format() -> Render:
    """
    Return a function that calls `format_messages`, the fastest way to render a LangChain template.
    """
    from langchain_core.prompts import ChatPromptTemplate

    template = ChatPromptTemplate.from_messages([("user", TEXT)])
    return lambda row: str(template.format_messages(**row)[0].content)


LOOPS: Final[dict[str, Callable[[], Render]]] = {
    "an f-string": f_string,
    "Jinja2": jinja,
    "LangChain": langchain,
    "LangChain, format_messages": langchain_format,
}


def main(name: str, rows: str, out: str) -> None:
    """
    Write a request for each row of a file.
    """
    render = LOOPS[name]()
    with Path(rows).open(encoding="utf-8") as lines, Path(out).open("w", encoding="utf-8") as requests:
        for number, line in enumerate(lines, 1):
            messages = [{"role": "user", "content": render(json.loads(line))}]
            request = {
                "custom_id": f"row-{number}",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {"messages": messages, "model": MODEL},
            }
            requests.write(json.dumps(request) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
