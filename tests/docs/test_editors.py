"""What editors use: the schemas, the pre-commit hook, and the problem matcher in docs/editors.md."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml

from docs import llms, schemas

ROOT = Path(__file__).parents[2]
PAGES = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")}
SCHEMAS = {name: json.loads((schemas.FOLDER / name).read_text(encoding="utf-8")) for name in schemas.SCHEMAS}


def blocks(language):
    """Return the code blocks of a language on all pages except diagnostics.md."""
    fence = rf"^```{language}[^\n]*\n(.*?)^```$"
    pages = [text for name, text in PAGES.items() if name != "diagnostics.md"]
    return [block for text in pages for block in re.findall(fence, text, re.DOTALL | re.MULTILINE)]


def errors_of(name, value):
    """Return the errors that a schema reports for a value. Dates become text first, as in editors."""
    plain = json.loads(json.dumps(value, default=str))
    return [error.message for error in jsonschema.Draft7Validator(SCHEMAS[name]).iter_errors(plain)]


@pytest.mark.parametrize("name", schemas.SCHEMAS)
def test_schema_is_current_and_valid(name, tmp_path):
    """Each file is the schema that the code generates, is valid, and is published with the site."""
    jsonschema.Draft7Validator.check_schema(SCHEMAS[name])
    llms.main(str(tmp_path))

    assert schemas.SCHEMAS[name]() == SCHEMAS[name]
    assert json.loads((tmp_path / "schemas" / name).read_text(encoding="utf-8")) == SCHEMAS[name]


def test_documented_configurations_are_valid():
    """Each `[tool.promptkit]` in the documentation and in this repository is valid."""
    documents = [tomllib.loads(block) for block in blocks("toml") if "[tool.promptkit" in block]
    documents.append(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8")))

    assert len(documents) > 4
    for document in documents:
        assert errors_of("pyproject.json", document["tool"]["promptkit"]) == [], document


@pytest.mark.parametrize(
    "text",
    [
        "targets = 'x'",
        "target = []",
        "ignore = ['PK101']",
        "ignore = ['PK2077']",
        "clients = ['zedd']",
        "fail-on = 'never'",
        "elicit = 0",
        "serve = true",
        "serve.timeouts = 3",
        "serve.no-watch = 'yes'",
        "server.titel = 'x'",
        "server.icons = 'x'",
        "server.icons = [{source = 'x'}]",
        "server.instructions = {path = 'x'}",
    ],
)
def test_invalid_settings_are_found(text):
    """The schema rejects what promptkit rejects."""
    assert len(errors_of("pyproject.json", tomllib.loads(text))) == 1


def test_documented_front_matter_is_valid():
    """The front matter of each Markdown prompt in the documentation and in the recipes is valid."""
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "recipes").glob("*.prompt.md")]
    texts += [block for block in blocks("markdown") if block.startswith("---\n")]

    assert len(texts) > 6
    for text in texts:
        head = re.sub(r"^argument-hint: \[.*\] \[.*$", "", text.split("---\n")[1], flags=re.MULTILINE)
        fields = yaml.safe_load(head)  # without hints of Claude Code, which are not YAML
        assert errors_of("front-matter.json", fields) == [], text


@pytest.mark.parametrize(
    "text",
    [
        "arguments: {day: {typ: date}}",
        "arguments: {day: {required: maybe}}",
        "cases: [a]",
        "tool: {readonly: true}",
        "elicit: 3",
        "timeout: [3]",
    ],
)
def test_invalid_front_matter_is_found(text):
    """The schema rejects misspelled keys and other types."""
    assert errors_of("front-matter.json", yaml.safe_load(text))


def test_problem_matcher_reads_every_documented_diagnostic():
    """The pattern of the VS Code task matches each diagnostic on the page about them."""
    (task,) = json.loads(next(block for block in blocks("json") if "problemMatcher" in block))["tasks"]
    pattern = task["problemMatcher"]["pattern"]
    lines = re.findall(r"^recipes/.*: (?:error|warning) PK.*$", PAGES["diagnostics.md"], re.MULTILINE)
    matches = [re.match(pattern["regexp"], line) for line in lines]

    assert len(lines) > 60
    unmatched = [line for line, match in zip(lines, matches, strict=True) if match is None]
    assert [line for line in unmatched if re.match(r"[^:]+:\d+: ", line)] == []
    assert all(match[pattern["line"]].isdigit() for match in matches if match)


def test_hook_runs_check():
    """The hooks of this repository and of the documentation check the whole project."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    example = next(block for block in blocks("yaml") if "repo: local" in block)
    (documented,) = yaml.safe_load(example)["repos"][0]["hooks"]

    for each in (hook, documented):
        assert each["entry"].startswith("promptkit check")
        assert each["pass_filenames"] is False
        assert re.search(each["files"], "prompts/review.prompt.md")
        assert not re.search(each["files"], "image.png")
