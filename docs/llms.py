"""
Write files for programs into the built site: `python -m docs.llms site`.

These are the JSON Schemas for editors, and llms.txt and llms-full.txt for models: an index of the pages, and
all pages in one file. See https://llmstxt.org.
"""

import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"


def pages() -> Iterator[tuple[str, str, str]]:
    """Yield the section, the title and the file of each page, in the order of the navigation."""
    project = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    for entry in project["nav"]:
        yield from _entries("", entry)


def _entries(section: str, entry: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for title, value in entry.items():
        if isinstance(value, str):
            yield section, title, value
        else:
            for inner in value:
                yield from _entries(title, inner)


def index() -> str:
    """Return llms.txt: a link to each page, with its first sentence."""
    lines = ["# promptkit", "", f"> {_first_sentence('index.md')}", ""]
    previous = ""
    for section, title, file in pages():
        if section != previous:
            lines += ["", f"## {section}", ""]
            previous = section
        if section:
            lines.append(f"- [{title}]({Path(file).stem}/): {_first_sentence(file)}")
    return "\n".join([*lines, "", "## Optional", "", "- [All pages](llms-full.txt): in one file", ""])


def full() -> str:
    """Return llms-full.txt: all pages."""
    texts = [(DOCS / file).read_text(encoding="utf-8").strip() for _, _, file in pages()]
    return "\n\n".join(texts) + "\n"


def _first_sentence(file: str) -> str:
    """Return the first sentence of a page, without links."""
    text = (DOCS / file).read_text(encoding="utf-8").partition("\n\n")[2]
    paragraph = next(part for part in text.split("\n\n") if (part and part[0].isalnum()) or part[0] == "`")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
    return re.split(r"(?<=[.:])\s", plain, maxsplit=1)[0]


def main(folder: str) -> int:
    """Write the files, and return the exit code."""
    Path(folder, "schemas").mkdir(exist_ok=True)
    for schema in (ROOT / "promptkit" / "schemas").glob("*.json"):
        shutil.copy(schema, Path(folder, "schemas"))
    Path(folder, "llms.txt").write_text(index(), encoding="utf-8")
    Path(folder, "llms-full.txt").write_text(full(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
