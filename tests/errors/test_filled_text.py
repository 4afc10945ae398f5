"""Explanations of errors in filling placeholders with `format`, `%` and `string.Template`."""

import builtins
import json
import subprocess
import sys

import pytest

from promptkit.compiler.compilation import compile
from promptkit.errors.filled_text import explain_filling
from promptkit.errors.tracebacks import format_exception
from promptkit.loader.loader import load
from tests.wire import MODERN, Client

#: The module around a failing expression.
SOURCE = """
import textwrap
from string import Template

TEXT = "Hello {{nmae}}"
TEMPLATE = Template("Hello $nmae")
TEXTS = ["Hello {{nmae}}"]

def fail(name="x", values={{"name": "x"}}):
    return {expression}
"""

MEANT = "did you mean '{name}'?"
HERE = f"the hole '{{nmae}}' in line 9 gets no value: {MEANT}"
THERE = HERE.replace("line 9", "the text")
BRACES = "double the braces that are part of the text: {{ }}"
PERCENTS = "double the percent signs that are part of the text: %%"
NOBODY = f"the hole '{{whoever}}' in line 9 gets no value: give it one, or {BRACES}"
MORE = f"the text has more placeholders than values: it gets 1: give each placeholder a value, or {BRACES}"


@pytest.fixture
def told(tmp_path):
    """Return a function that evaluates an expression and returns its exception and the explanation."""

    def told(expression):
        file = tmp_path / "recipe.py"
        file.write_text(SOURCE.format(expression=expression).lstrip("\n"), encoding="utf-8")
        names = {"__name__": "recipe"}
        exec(builtins.compile(file.read_text(encoding="utf-8"), str(file), "exec"), names)  # noqa: S102
        with pytest.raises((LookupError, TypeError, ValueError)) as caught:
            names["fail"]()
        return caught.value, explain_filling(caught.value)

    return told


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'Hello {nmae}'.format(name=name)", HERE),
        ("'Hello {nmae}'.format_map({'name': name})", HERE),
        ("'Hello {nmae}'.format(**values)", "the hole '{nmae}' in line 9 gets no value: " + MEANT),
        ("'Hello {nmae}'.format_map(dict(name=name))", HERE),
        ("'Hello {nmae}'.format_map(locals())", HERE),
        ("('é' + 'é{nmae}'.format(name=name))", HERE),
        ("TEXT.format(name=name)", THERE),
        ("TEXTS[0].format(name=name)", THERE),
        ("'%(nmae)s' % {'name': name}", HERE.replace("{nmae}", "%(nmae)s").replace("{name}", "%(name)s")),
        ("TEMPLATE.substitute(name=name)", THERE.replace("'{", "'${")),
        ("TEMPLATE.substitute({'name': name})", THERE.replace("'{", "'${")),
        ("'Hello {whoever}'.format(name=name)", NOBODY),
        (
            "'{\"a\": 1} {name}'.format(name=name)",
            f"'{{\"a\"' in line 9 is taken for a placeholder: {BRACES}",
        ),
        ("'{} {}'.format(name)", MORE),
        ("'{name} }'.format(name=name)", BRACES),
        ("'{0} {}'.format(name)", "number all placeholders, or none"),
        ("'%s %s' % (name,)", f"give each placeholder a value, or {PERCENTS}"),
        ("'Hello' % (name,)", "write %s where each value belongs"),
        ("'%(name)s' % (name,)", "give it a mapping, as in % {'name': name}"),
        ("'100%' % (name,)", PERCENTS),
        ("'100% of %s' % (name,)", f"give it a number, or {PERCENTS}"),
        ("Template('$ 5').substitute()", "double the dollar signs that are part of the text: $$"),
    ],
)  # fmt: skip
def test_a_text_that_cannot_be_filled_in(expression, expected, told):
    """The explanation has the placeholder as written, its line if in the source, and a fix."""
    assert told(expression)[1] == expected


def test_a_call_in_several_lines(told):
    """The line is that of the placeholder and not of the call."""
    expression = 'textwrap.dedent("""\n    Hello,\n    {nmae}\n    """).format(\n        name=name,\n    )'

    assert told(expression)[1] == HERE.replace("line 9", "line 11")


@pytest.mark.parametrize(
    "expression",
    [
        "values['nmae']",
        "__import__('os').environ['nmae']",
        "[name][3]",
        "'{a[b]}'.format(a={})",
        "'{a[3]}'.format(a=[])",
        "'{name:d}'.format(name=name)",
        "int(name)",
        "'x'.join(3)",
        "3 % name",
        "min([], key=name.format)",
        "(_ for _ in ()).throw(KeyError())",
        "(_ for _ in ()).throw(KeyError(3))",
    ],
)
def test_what_is_no_fault_of_the_text(expression, told):
    """Failed lookups in values and other errors have no explanation."""
    assert told(expression)[1] is None


@pytest.mark.parametrize("name", ["name", "\n    name"], ids=["a line", "two lines"])
def test_a_source_that_has_changed(name, told, tmp_path):
    """There is no explanation if the source has changed since."""
    error, _ = told(f"'Hello {{nmae}}'.format(name={name})")
    (tmp_path / "recipe.py").write_text("# gone\n")

    assert explain_filling(error) is None


def test_an_error_without_a_traceback():
    """There is no explanation for an exception that was never raised."""
    assert explain_filling(KeyError("nmae")) is None


def test_it_ends_the_traceback(told):
    """The formatted traceback ends with the explanation; the exception itself is not changed."""
    error, _ = told("'Hello {nmae}'.format(name=name)")

    assert format_exception(error).splitlines()[-2:] == ["KeyError: 'nmae'", HERE]
    assert format_exception(error).count(HERE) == 1
    assert not hasattr(error, "__notes__")


def test_notes_of_an_author_stay(told):
    """An author's notes come before the explanation."""
    error, _ = told("'Hello {nmae}'.format(name=name)")
    error.add_note("while greeting")

    assert format_exception(error).splitlines()[-2:] == ["while greeting", HERE]


RECIPE = """
from promptkit import prompt

@prompt
def greet(name: str = "x") -> str:
    text = "Hello {nmae}"
    return text.format(name=name)
"""
SAID = f"the hole '{{nmae}}' in line 5 gets no value: {MEANT}"


def test_a_server_prints_it(recipes, capsys):
    """A server writes the explanation to stderr, and does not send it to the client."""
    client = Client(compile(load(recipes(greet=RECIPE))), MODERN)

    reply = client.get("greet")

    assert SAID in capsys.readouterr().err
    assert "nmae" not in json.dumps(reply)


@pytest.mark.parametrize("command", [["render", "greet"], ["check", "--render"]], ids=" ".join)
def test_commands_print_it(command, recipes):
    """Commands print the explanation."""
    folder = recipes(greet=RECIPE)
    words = [command[0], str(folder), *command[1:]]

    ran = subprocess.run(
        [sys.executable, "-m", "promptkit", *words], capture_output=True, encoding="utf-8", check=False
    )

    assert SAID in ran.stdout + ran.stderr
    assert ran.returncode == 1


def test_in_an_import_it_is_the_hint(recipes):
    """The explanation is the hint if the error occurs during an import."""
    folder = recipes(greet='TEXT = "Hello {nmae}".format(name="x")\n')

    (found,) = load(folder).diagnostics

    assert found.hint == f"the hole '{{nmae}}' in line 1 gets no value: {MEANT}"


def test_of_a_skill_it_is_the_hint(recipes):
    """The explanation is the hint if the error occurs in a skill's function."""
    head = "from promptkit import skill\n\n@skill\ndef greets():\n    'Greet. Use it first.'\n"
    folder = recipes(greets=head + "    return 'Hello {nmae}'.format(name='x')\n")

    (found,) = compile(load(folder)).diagnostics

    assert found.hint == f"the hole '{{nmae}}' in line 6 gets no value: {MEANT}"
