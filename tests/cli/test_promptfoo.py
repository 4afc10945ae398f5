"""`promptkit render --promptfoo`: parsing promptfoo's context, and output that promptfoo does not change."""

import json
import re

import pytest

from promptkit.cli import main

RECIPE = '''
from typing import Annotated, Literal
from promptkit import Arg, Image, PromptError, assistant, cache_point, prompt, system, user

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c4944415478da63f8cfc0000003010100f70341430000000049454e44ae426082"
)

@prompt
def review(code: str, language: Literal["python", "rust"] = "python", tags: list[str] = []):
    """Review it."""
    return f"Review this {language} ({', '.join(tags)}): {code}"

@prompt
def say(text: Annotated[str, Arg(secret=True)]):
    """Say it."""
    return text

@prompt
def talk(topic: str):
    """Talk."""
    yield system("Be brief.")
    yield user(f"Is {topic} fine?", cache_point())
    yield assistant("Why not?")

@prompt
def look(text: str):
    """Look."""
    return user(text, Image(PIXEL))

@prompt
def draw():
    """Draw."""
    return user("Draw.") + assistant(Image(PIXEL))

@prompt
def refuse():
    """Refuse."""
    raise PromptError("not today")
'''

CASE = {"provider": {"id": "echo"}, "config": {}}


@pytest.fixture
def render(recipes, tmp_path, monkeypatch, capsys):
    """
    A function that runs the command like promptfoo and returns exit code, standard output and standard error.
    """
    recipes(shelf=RECIPE)
    monkeypatch.chdir(tmp_path)

    def render(*words, **variables):
        code = main(["render", *words, "--promptfoo", json.dumps({"vars": variables, **CASE})])
        captured = capsys.readouterr()
        return code, captured.out.removesuffix("\n"), captured.err

    return render


def test_variables_are_arguments(render):
    """
    Text is parsed like a client's, and JSON by its type. Null means missing, and unknown variables are
    ignored.
    """
    assert render("review", code="x = 1", language="Rust", tags=["a", "b"], expected="no fault") == (
        0,
        "Review this rust (a, b): x = 1",
        "",
    )
    assert render("review", code="x", language=None, tags="a, b")[1] == "Review this python (a, b): x"


def test_command_line_arguments(render):
    """Arguments on the command line apply to all cases, and a case's variables override them."""
    words = ("review", "language=rust", "tags=a")

    assert render(*words, code="x")[1] == "Review this rust (a): x"
    assert render(*words, code="x", language="python")[1] == "Review this python (a): x"


@pytest.mark.parametrize(
    ("name", "variables", "message"),
    [
        ("review", {}, "prompt 'review': 'code' is missing"),
        (
            "review",
            {"code": "x", "language": "rsut"},
            "prompt 'review': 'language' is 'rsut', not one of python, rust (did you mean 'rust'?)",
        ),
        ("refuse", {}, "not today"),
        ("reveiw", {}, "unknown prompt 'reveiw'; did you mean 'review'?"),
        (
            "draw",
            {},
            (
                "the OpenAI Chat Completions API cannot represent the rendering: message 2 (assistant) "
                "contains image/png: move it to a user turn, because assistant turns can contain only text "
                "(--lossy replaces unsupported content with text)"
            ),
        ),
    ],
)
def test_errors(render, name, variables, message):
    """An error takes one line on standard error and fails the case by its exit code."""
    code, out, err = render(name, **variables)

    assert code
    assert (out, err) == ("", f"promptkit: {message}\n")


@pytest.mark.parametrize("context", ["{", "[]", "{}", '{"vars": 1}', "null", "review", "[" * 100_000])
def test_invalid_context(render, capsys, context):
    """The last word must be the JSON of promptfoo."""
    assert main(["render", "review", "--promptfoo", context]) == 2
    message = (
        "promptkit: --promptfoo needs the JSON that promptfoo appends to the command: put the option last\n"
    )
    assert capsys.readouterr().err == message


def test_conflict_with_case(render, capsys):
    """`--case` cannot be combined with `--promptfoo`."""
    with pytest.raises(SystemExit):
        render("review", "--case", "x")
    assert "a case has its own arguments: omit the arguments or the case" in capsys.readouterr().err


def test_several_turns(render):
    """Several turns are printed as OpenAI messages, without cache points."""
    assert json.loads(render("talk", topic="it")[1]) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it fine?"},
        {"role": "assistant", "content": "Why not?"},
    ]


def test_images(render):
    """An image is a part of its message, and `--lossy` replaces unsupported images with text."""
    ((message,), text) = json.loads(render("look", text="Look.")[1]), render("draw", "--lossy")[1]

    assert [part["type"] for part in message["content"]] == ["text", "image_url"]
    assert json.loads(text)[1]["content"] == "<image/png 69 B sha256:2e9b06dc>"


def expand_template(text):
    """Expand the only template expressions that the output contains."""
    return re.sub(r"\{\{ '(\{|#\})' \}\}", r"\1", text)


#: Texts that promptfoo would strip, parse as JSON or YAML, or expand.
CHANGED_TEXTS = [
    " blanks\n",
    "\ufeffmark",
    "[1] is a source",
    "{braces}",
    "- role: user",
    "use {{code}}",
    "use {% raw %}",
    "use {# this #} and {{{",
    "end #}, {#}",
    "\x1b[31mred",
    "1.0",
    "true",
    '"quoted"',
]


@pytest.mark.parametrize("text", CHANGED_TEXTS)
def test_text_that_promptfoo_would_change(render, text):
    """Text that promptfoo would change is printed as a message in JSON, with escaped braces."""
    output = render("say", text=text)[1]

    assert json.loads(expand_template(output)) == [{"role": "user", "content": text}]
    assert not re.search(r"\{[{%#]|#\}", re.sub(r"\{\{ '(\{|#\})' \}\}", "", output))


@pytest.mark.parametrize(
    "text", ["Plain text.", "two\n\n- lines", "größer 👍", "a { b } c", "1. first", "100 %} }}"]
)
def test_plain_text(render, text):
    """Plain text is printed unchanged, even a secret, because the model receives it."""
    assert render("say", text=text) == (0, text, "")


def test_disabled_templating(render, monkeypatch):
    """Without templating in promptfoo, nothing is escaped."""
    monkeypatch.setenv("PROMPTFOO_DISABLE_TEMPLATING", "true")

    assert json.loads(render("say", text="use {{code}}")[1]) == [{"role": "user", "content": "use {{code}}"}]
