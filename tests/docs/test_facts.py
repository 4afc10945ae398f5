import datetime as dt
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, Union
from uuid import UUID

import pytest
from markdown_it import MarkdownIt

from benchmarks import report
from promptkit import Arg, Message, Workflow, prompt, user
from promptkit.compiler.compilation import compile
from promptkit.errors import ArgumentsError
from promptkit.loader.loader import load
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.pagination import paginate
from promptkit.protocol.revisions import LATEST_HANDSHAKE
from promptkit.transports.state_keys import NEW_KEY_COMMAND, read_key_file
from promptkit.version import VERSION

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARGUMENTS_PAGE = (ROOT / "docs" / "arguments.md").read_text(encoding="utf-8")
PERFORMANCE_PAGE = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
BLOCKS = [token for token in MarkdownIt().parse(README) if token.type == "fence"]


def blocks_in(language):
    return [token.content for token in BLOCKS if token.info.split(" ")[0] == language]


@pytest.fixture
def review(recipes):
    """A catalog with the README's first prompt."""
    return compile(load(recipes(review=blocks_in("python")[0])))


def test_listing_is_current(review):
    """The first JSON block is the ``prompts/list`` reply, except for the schema that the text names."""
    listing = json.loads(paginate("prompts/list", review, lowering_for(LATEST_HANDSHAKE)).page())
    (meta,) = [prompt.pop("_meta") for prompt in listing["prompts"]]

    assert json.loads(blocks_in("json")[0]) == listing
    assert "`promptkit/arguments`" in README
    assert list(meta) == ["promptkit/arguments"]


def test_rendering_is_current(review):
    """The README shows the current rendering of its prompt."""
    (message,) = review.render("review", {"code": "x = 1", "language": "Python"})

    assert str(message) == blocks_in("text")[0].rstrip("\n")


def test_error_message_is_current(review):
    """The error message quoted in the README is the one that callers receive."""
    with pytest.raises(ArgumentsError) as caught:
        review.render("review", {"language": "cobol"})

    assert f"`{caught.value}`" in README.replace("\n", " ")


class Tone(Enum):
    PLAIN = "plain"
    STRICT = "strict"


class Priority(Enum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: int


#: Names that the table of arguments uses.
NAMES = {
    "Decimal": Decimal,
    "Literal": Literal,
    "Message": Message,
    "Path": Path,
    "Point": Point,
    "Priority": Priority,
    "Sequence": Sequence,
    "Tone": Tone,
    "UUID": UUID,
    "Workflow": Workflow,
    "user": user,
    "Annotated": Annotated,
    "Arg": Arg,
    **{name: getattr(dt, name) for name in ("UTC", "date", "datetime", "time", "timedelta")},
}
_, _, *ROWS = [row.strip("| ").split(" | ") for row in ARGUMENTS_PAGE.splitlines() if row.startswith("| ")]
ARGUMENTS = [row for row in ROWS if row[0].startswith("`") and len(row) == 3]


def code_spans(cell):
    """Return the code spans of a table cell."""
    return re.findall("`([^`]+)`", cell)


@pytest.mark.parametrize(("kind", "text_cell", "value_cell"), ARGUMENTS, ids=[row[0] for row in ARGUMENTS])
def test_examples_in_the_table_of_arguments(kind, text_cell, value_cell, monkeypatch):
    """Each example in the table of arguments is converted to the value next to it."""
    monkeypatch.setenv("DEPTH", "3")
    names = [eval(name, NAMES) for name in code_spans(kind.partition(" (")[0])]  # noqa: S307 (our own README)
    names += [None] if "`None`" in kind else []
    annotation = Union[tuple(names)]  # noqa: UP007 (made of parts)
    expected = eval(code_spans(value_cell)[0], NAMES)  # noqa: S307 (our own README)

    def typed(value) -> str:
        return str(value)

    typed.__annotations__["value"] = annotation
    arguments = prompt(typed).compiled.arguments

    for text in code_spans(text_cell) or [None]:
        assert arguments.read({"value": text}) == {"value": expected}


def test_table_of_arguments_is_found():
    """The table of arguments has more than 20 rows, so that the test above checks something."""
    assert len(ARGUMENTS) > 20


def test_ci_runs_the_commands():
    """CI runs the README's install and test commands verbatim."""
    install, *_, test = blocks_in("sh")
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert install.splitlines()[-1] == "pip install . && promptkit serve recipes"
    assert test == "pip install -e '.[dev]' && pytest\n"
    assert install in re.sub("^ +", "", run, flags=re.MULTILINE)
    assert test.strip() in run


def test_figures_are_current():
    """The figures in the README and on the performance page equal the stored results."""
    content = json.loads((ROOT / "docs" / "figures" / "results.json").read_text(encoding="utf-8"))

    assert report.extract_figures(README) == report.summary(content)
    assert report.extract_figures(PERFORMANCE_PAGE) == report.format_page(content)


def test_errors_of_files(recipes):
    """As in the README, `check` reports every error of a file, or why the file cannot be imported."""
    source = "from promptkit import prompt\n{}@prompt\ndef {}(x, *y):\n    return 'x'\n"
    imported = source.format("", "imported")
    folder = recipes(imported=imported, broken=source.format("import nowhere\n", "broken"))

    errors = [
        (Path(diagnostic.location.file).name, diagnostic.rule.value)
        for diagnostic in compile(load(folder)).errors
    ]

    assert errors == [("broken.py", "PK101"), ("imported.py", "PK301"), ("imported.py", "PK302")]
    assert "For a file that cannot\n  be imported, it reports the import error." in README


def test_extras_are_listed():
    """The index page lists the extras for users, and omits those for developers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").partition("## Extras")[2]
    extras = sorted({*project["optional-dependencies"]} - {"bench", "dev", "docs"})

    assert re.findall(r"^\| `(\w+)` \| ", page, re.MULTILINE) == extras
    assert f"mcp_promptkit-{VERSION}-py3-none-any.whl" in page


def test_all_extras_have_a_common_name():
    """The extra `all` installs every other extra for users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = sorted({*project["optional-dependencies"]} - {"all", "bench", "dev", "docs"})

    assert project["optional-dependencies"]["all"] == [f"{project['name']}[{','.join(extras)}]"]


def test_retry_loop():
    """The loop on the page about the language sends the problems of an answer to the model."""
    page = MarkdownIt().parse((ROOT / "docs" / "language.md").read_text(encoding="utf-8"))
    sources = [token.content for token in page if token.type == "fence" and token.info == "python"]
    declaration = next(source for source in sources if "class Verdict" in source)
    loop = next(source for source in sources if "AnswerError" in source)
    answers = ['{"summary": 1}', '{"summary": "Fine.", "verdict": "approve", "lines": []}']
    requests = list[dict[str, Any]]()

    def create(**request):
        requests.append(request)
        return SimpleNamespace(content=[SimpleNamespace(text=answers[len(requests) - 1])])

    names: dict[str, Any] = {"prompt": prompt, "user": user, "__name__": "page"}
    exec(declaration + loop, names)  # noqa: S102 (it is our page)
    verdict = names["judge_with"](SimpleNamespace(messages=SimpleNamespace(create=create)), "-a")

    assert verdict.summary == "Fine."
    assert [turn["role"] for turn in requests[1]["messages"]] == ["user", "assistant", "user"]
    assert "'verdict' is missing" in str(requests[1]["messages"][-1])
    assert requests[0]["output_config"] == requests[1]["output_config"]


def test_readme_is_short():
    """The README has at most 200 lines."""
    assert len(README.splitlines()) <= 200


def test_images_exist():
    """Every image in the README exists."""
    images = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README)

    assert [path for path in images if not (ROOT / path).is_file()] == []


def test_json_blocks_are_valid():
    """Every JSON block in the README is valid JSON."""
    for block in blocks_in("json"):
        assert json.loads(block)


def test_commands_that_need_extras():
    """The README has one command that installs the extras of the commands that it names."""
    (extras,) = re.findall(r"`pip install '/path/to/the/checkout\[([a-z,]+)\]'`", README)
    needed = {"promptkit dev": "preview", "promptkit serve --http": "http", "docs/packaging.md": "package"}

    assert sorted(extras.split(",")) == sorted(extra for name, extra in needed.items() if name in README)


def test_dependencies_have_a_range():
    """Dependencies have a lower and an upper bound, and benchmarked packages are pinned."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = dict(project["optional-dependencies"])
    del extras["all"]
    measured = [name for name in extras.pop("bench") if name not in extras["http"]]
    extras = [name for names in extras.values() for name in names]

    assert [name for name in measured if "==" not in name] == []
    assert [name for name in project["dependencies"] + extras if not (">=" in name and ",<" in name)] == []


def test_documented_key_file_is_valid(tmp_path):
    """The documented command for a key file is the one that errors suggest, and its file is valid."""
    page = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^```sh\n(.*state\.keys\))$", page, re.MULTILINE)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(["sh", "-c", command], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True)  # noqa: S607 (as a reader would)

    assert NEW_KEY_COMMAND in command
    assert len(read_key_file(str(tmp_path / "state.keys"))) == 1
