"""`promptkit render --promptfoo`: what promptfoo appends is read, and what it prints is taken as it is."""

import json
import re

import pytest

from promptkit.cli import main

SHELF = '''
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
def foo(recipes, tmp_path, monkeypatch, capsys):
    """Runs the command as promptfoo does; returns the exit code, and what it prints."""
    recipes(shelf=SHELF)
    monkeypatch.chdir(tmp_path)

    def foo(*words, **variables):
        code = main(["render", *words, "--promptfoo", json.dumps({"vars": variables, **CASE})])
        printed = capsys.readouterr()
        return code, printed.out.removesuffix("\n"), printed.err

    return foo


def test_variables_are_arguments(foo):
    """
    Text is read as a client's, JSON where the type takes it; null is what is not given, and other variables
    are for assertions.
    """
    assert foo("review", code="x = 1", language="Rust", tags=["a", "b"], expected="no fault") == (
        0,
        "Review this rust (a, b): x = 1",
        "",
    )
    assert foo("review", code="x", language=None, tags="a, b")[1] == "Review this python (a, b): x"


def test_words_of_the_command(foo):
    """
    They are for all cases; a variable of the same name is for its case.
    """
    words = ("review", "language=rust", "tags=a")

    assert foo(*words, code="x")[1] == "Review this rust (a): x"
    assert foo(*words, code="x", language="python")[1] == "Review this python (a): x"


@pytest.mark.parametrize(
    ("name", "variables", "said"),
    [
        ("review", {}, "prompt 'review': 'code' is missing"),
        (
            "review",
            {"code": "x", "language": "rsut"},
            "prompt 'review': 'language' is 'rsut', not one of python, rust (did you mean 'rust'?)",
        ),
        (
            "review",
            {"code": "x", "langauge": "rust"},
            "prompt 'review': 'langauge' is not an argument of this prompt (did you mean 'language'?)",
        ),
        ("refuse", {}, "not today"),
        ("reveiw", {}, "unknown prompt 'reveiw'; did you mean 'review'?"),
        (
            "draw",
            {},
            (
                "OpenAI's chat completions cannot take it: message 2 holds image/png of the "
                "assistant: put it into a user turn, because assistant turns are text (--lossy "
                "replaces unsupported content by text)"
            ),
        ),
    ],
)
def test_faults(foo, name, variables, said):
    """
    They are a sentence on standard error, and the exit code, so that the case fails with it.
    """
    code, out, err = foo(name, **variables)

    assert code
    assert (out, err) == ("", f"promptkit: {said}\n")


@pytest.mark.parametrize("context", ["{", "[]", "{}", '{"vars": 1}', "null", "review", "[" * 100_000])
def test_what_promptfoo_does_not_append(foo, capsys, context):
    """
    It has to be the last word of the command.
    """
    assert main(["render", "review", "--promptfoo", context]) == 2
    said = "promptkit: --promptfoo takes the JSON that promptfoo appends to a command: write it last\n"
    assert capsys.readouterr().err == said


def test_cases_have_arguments(foo, capsys):
    """
    Those of a case are its own.
    """
    with pytest.raises(SystemExit):
        foo("review", "--case", "x")
    assert "a case has its arguments: leave out --promptfoo" in capsys.readouterr().err


def test_turns(foo):
    """
    Several are messages as OpenAI has them, without marks of a cache.
    """
    assert json.loads(foo("talk", topic="it")[1]) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it fine?"},
        {"role": "assistant", "content": "Why not?"},
    ]


def test_pictures(foo):
    """
    A picture is a part of its message; what cannot be sent is text with --lossy.
    """
    ((message,), text) = json.loads(foo("look", text="Look.")[1]), foo("draw", "--lossy")[1]

    assert [part["type"] for part in message["content"]] == ["text", "image_url"]
    assert json.loads(text)[1]["content"] == "<image/png 69 B sha256:2e9b06dc>"


def filled(text):
    """What Nunjucks makes of the only thing that is put into a template here."""
    return re.sub(r"\{\{ '(\{|#\})' \}\}", r"\1", text)


#: Texts that promptfoo would strip, read as JSON or YAML, or fill in.
TAKEN = [
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


@pytest.mark.parametrize("text", TAKEN)
def test_text_that_promptfoo_would_change(foo, text):
    """
    It is a message in JSON, and braces have an escape, so that it arrives as it is.
    """
    printed = foo("say", text=text)[1]

    assert json.loads(filled(printed)) == [{"role": "user", "content": text}]
    assert not re.search(r"\{[{%#]|#\}", re.sub(r"\{\{ '(\{|#\})' \}\}", "", printed))


@pytest.mark.parametrize(
    "text", ["Plain text.", "two\n\n- lines", "größer 👍", "a { b } c", "1. first", "100 %} }}"]
)
def test_other_text(foo, text):
    """
    It is printed as it stands, that of secrets too: it is what the model gets.
    """
    assert foo("say", text=text) == (0, text, "")


def test_without_templates(foo, monkeypatch):
    """
    Where promptfoo fills nothing in, there are no escapes.
    """
    monkeypatch.setenv("PROMPTFOO_DISABLE_TEMPLATING", "true")

    assert json.loads(foo("say", text="use {{code}}")[1]) == [{"role": "user", "content": "use {{code}}"}]
