import asyncio
import json
import subprocess
import sys
from runpy import run_path

import pytest

from promptkit import Image, prompt, user
from promptkit.compiler.compilation import compile
from promptkit.errors.tracebacks import explain_filling, format_exception, is_authors_file
from promptkit.loader.recipes import Recipes
from tests.wire import MODERN, Client


def fail():
    return json.loads("{")


def in_text():
    return f"{user('a')}"


@pytest.fixture
def raised():
    """Return a function that returns the exception of a prompt."""

    def raised(function, **arguments):
        with pytest.raises(Exception) as caught:  # noqa: PT011 (any exception)
            prompt(function).render(**arguments)
        return caught.value

    return raised


async def awaited():
    await asyncio.sleep(0)
    return fail()


def reading():
    return Image.from_path("nowhere.png")


def chained():
    try:
        return fail()
    except ValueError as error:
        raise RuntimeError("no") from error


def grouped():
    raise ExceptionGroup("several", [ValueError("a")])


class TestFormat:
    @pytest.mark.parametrize("function", [fail, in_text, awaited, chained, grouped, reading])
    def test_frames_of_what_runs_it_are_left_out(self, function, raised):
        """The traceback has the author's frames, without those of promptkit and its libraries."""
        shown = format_exception(raised(function))

        assert f"in {function.__name__}" in shown
        assert "/promptkit/catalog/prompts.py" not in shown
        assert "/promptkit/language/messages.py" not in shown
        assert "asyncio" not in shown
        assert "pathlib" not in shown
        assert shown.splitlines()[-1].strip()

    def test_a_chain_stays_a_chain(self, raised):
        """The causes of an exception are shown."""
        shown = format_exception(raised(chained))

        assert "JSONDecodeError" in shown
        assert "direct cause" in shown
        assert shown.endswith("RuntimeError: no\n")

    def test_all_frames_stay_if_none_is_an_authors(self):
        """If no frame is an author's, all frames are shown, because the error is in promptkit."""
        with pytest.raises(TypeError) as caught:
            user(3)
        error = caught.value.with_traceback(caught.value.__traceback__.tb_next)

        assert "turns.py" in format_exception(error)

    def test_a_deep_recursion(self, raised):
        """Repeated frames are collapsed, as in Python."""

        def deep():
            return deep()

        assert "Previous line repeated" in format_exception(raised(deep))


def test_a_server_prints_it(capsys):
    """A server writes the filtered traceback to stderr."""
    client = Client(compile(Recipes(prompts=(prompt(fail),))), MODERN)

    client.get("fail")

    logged = capsys.readouterr().err
    assert "in fail" in logged
    assert "promptkit/catalog/catalog.py" not in logged
    assert "JSONDecodeError" in logged


def test_the_command_line_prints_it(recipes):
    """`promptkit render` prints the filtered traceback."""
    folder = recipes(fail="from promptkit import prompt\n\n@prompt\ndef fail() -> str:\n    return 1 / 0\n")

    command = [sys.executable, "-m", "promptkit", "render", str(folder), "fail"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert "in fail" in ran.stderr
    assert "catalog.py" not in ran.stderr


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (__file__, True),
        (json.__file__, False),
        (pytest.__file__, False),
        (format_exception.__code__.co_filename, False),
        ("<frozen importlib._bootstrap>", False),
        ("<attrs generated init x.A>", False),
        ("/home/me/promptkit/recipes/a.py", True),
    ],
)
def test_whose_code_it_is(file, expected):
    """Files of Python, installed packages and promptkit are not an author's."""
    assert is_authors_file(file) is expected


RETURNS_A_PAIR = """
from promptkit import prompt

@prompt
def pair(q: str):
    return [("system", "Be nice"), ("user", q)]

"""


def test_what_was_returned_is_told_without_a_traceback(recipes, capsys):
    """An unsupported result is reported without a traceback, which would have only internal frames."""
    folder = recipes(pair=RETURNS_A_PAIR)
    command = [sys.executable, "-m", "promptkit", "render", str(folder), "pair", "q=a"]

    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ran.stderr.startswith("promptkit: prompt 'pair' (")
    assert ran.stderr.count("\n") == 1
    assert ran.returncode == 1


@pytest.mark.parametrize("result", [3, [("system", "a")], {"role": "user"}])
def test_a_server_tells_it_without_a_traceback(result, capsys):
    """A server logs an unsupported result without a traceback."""

    def returns():
        return result

    Client(compile(Recipes(prompts=(prompt(returns),))), MODERN).get("returns")

    logged = capsys.readouterr().err
    assert "prompt 'returns' (" in logged
    assert "Traceback" not in logged
    assert "prompts.py" not in logged


@pytest.mark.parametrize(
    ("code", "escape"),
    [
        ("'Hello {nmae}'.format(name=name)", "{{ }}"),
        ("""'{"a": 1}'.format(name=name)""", "{{ }}"),
        ("'{name} {'.format_map({'name': name})", "{{ }}"),
        ("'''\n{nmae}\n'''.format(\n    name=name,\n)", "{{ }}"),
        ("'%(nmae)s' % {'name': name}", "%%"),
        ("'%s %s' % (name,)", "%%"),
        ("Template('$nmae').substitute(name=name)", "$$"),
        ("'{}'.format({}[name])", None),
        ("int('{}'.format(name))", None),
        ("[][1]", None),
    ],
)
def test_a_text_that_cannot_be_filled_in(code, escape, tmp_path):
    """The hint says how to escape characters that are not placeholders; other errors have no hint."""
    file = tmp_path / "recipe.py"
    file.write_text(f"from string import Template\ndef fails(name):\n    return {code}\n", encoding="utf-8")
    fails = run_path(str(file))["fails"]

    with pytest.raises(Exception) as caught:  # noqa: PT011 (of several types)
        fails("Ada")

    hint = explain_filling(caught.value)
    assert (hint is None) is (escape is None)
    assert escape is None or hint.endswith(f": {escape}")
