"""The arguments with which Langfuse and MLflow store a prompt; `test_tools.py` stores them for real."""

import re
import subprocess
import sys
from dataclasses import dataclass

import pytest

from promptkit import assistant, prompt, system, user
from promptkit.bridges import langfuse, mlflow
from promptkit.exports.templates import TemplateError

STORES = pytest.mark.parametrize("store", [langfuse, mlflow], ids=["langfuse", "mlflow"])


@dataclass
class Verdict:
    is_fine: bool
    why: str


@prompt
def greet(name: str, tone: str = "warm"):
    """Greet a person."""
    return f"Greet {name} in a {tone} way."


@prompt(tags=["code", "short"], answer=Verdict)
def judge(code: str):
    """Judge a piece of code."""
    yield system("You are a careful reviewer.")
    yield user(f"Is this fine?\n\n{code}")
    yield assistant("I think so.")
    yield "Say why."


MESSAGES = [
    {"role": "system", "content": "You are a careful reviewer."},
    {"role": "user", "content": "Is this fine?\n\n{{code}}"},
    {"role": "assistant", "content": "I think so."},
    {"role": "user", "content": "Say why."},
]
SCHEMA = {
    "type": "object",
    "properties": {"is_fine": {"type": "boolean"}, "why": {"type": "string"}},
    "required": ["is_fine", "why"],
}


def test_single_turn():
    """A single user turn is stored as text."""
    text = "Greet {{name}} in a {{tone}} way."

    assert langfuse.template(greet) == {"name": "greet", "prompt": text, "type": "text"}
    assert mlflow.template(greet) == {"name": "greet", "template": text}


def test_several_turns():
    """Several turns are stored as messages, along with the schema of the answer and the tags."""
    template = langfuse.template(judge)
    response_format = template.pop("config")["response_format"]

    assert template == {"name": "judge", "prompt": MESSAGES, "type": "chat", "tags": ["code", "short"]}
    assert response_format["json_schema"]["schema"] == {**SCHEMA, "additionalProperties": False}
    stored = mlflow.template(judge)
    assert stored.pop("response_format").items() >= SCHEMA.items()
    assert stored == {"name": "judge", "template": MESSAGES}


@STORES
def test_fixed_value(store):
    """An argument with a given value is not a placeholder."""
    assert "Greet {{name}} in a cold way." in store.template(greet, {"tone": "cold"}).values()


#: Texts with a placeholder, the part that a store would misread, and the stores that would.
BRACES = [
    ("Write {{this}} for NAME.", "{{this}}", [langfuse, mlflow]),
    ("Write {{this for NAME.", "{{this for {{name}}", [langfuse, mlflow]),
    ("Write NAME and {{this.", "{{", [langfuse, mlflow]),
    ("Write {{name}} for NAME.", "{{name}}", [langfuse, mlflow]),
    ("Write {% if %} for NAME.", "{%", [mlflow]),
]


@pytest.mark.parametrize(
    ("text", "misread", "store"),
    [(text, misread, store) for text, misread, stores in BRACES for store in stores],
)
def test_text_with_braces(text, misread, store):
    """Text that a store would read as a placeholder is an error, because neither store has an escape."""

    @prompt
    def subject(name: str):
        return text.replace("NAME", name)

    with pytest.raises(TemplateError) as caught:
        store.template(subject)

    title = {langfuse: "Langfuse", mlflow: "MLflow"}[store]
    assert str(caught.value) == (
        f"prompt 'subject' cannot be a template: its text contains {misread!r}, "
        f"which {title} would interpret and which cannot be escaped"
    )


@STORES
def test_brace_before_a_placeholder(store):
    """
    A brace directly before a placeholder is an error, because it would become part of the placeholder.

    Braces after a placeholder, and single braces, are accepted.
    """

    @prompt
    def before(name: str):
        return f"{{{name}}}"

    @prompt
    def around(name: str):
        return f"{{ {name}}}, {{name}}, }}}}"

    with pytest.raises(TemplateError, match=re.escape("its text contains '{{{name}}', which")):
        store.template(before)
    assert "{ {{name}}}, {name}, }}" in store.template(around).values()


def test_bridges_import_no_tools():
    """Importing the bridges imports no tool, and the server imports no bridge."""
    bridges = "from promptkit.bridges import inspect_ai, langchain, langfuse, mlflow"
    script = f"import sys\nimport promptkit.server, promptkit.cli.serve\nprint(*sys.modules)\n{bridges}\n"
    result = subprocess.run(
        [sys.executable, "-c", f"{script}print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    served, bridged = (set(line.split()) for line in result.stdout.splitlines())

    assert [name for name in served if name.startswith("promptkit.bridges")] == []
    assert "promptkit.bridges.langchain" in bridged
    assert {"langfuse", "mlflow", "inspect_ai", "langchain_core", "hypothesis"} & bridged == set()
