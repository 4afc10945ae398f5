import asyncio
import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from tomllib import loads

import pytest

from promptkit import Image, prompt, user
from promptkit.compiler.compilation import compile
from promptkit.errors.tracebacks import format_exception, is_authors_file
from promptkit.loader.recipes import Recipes
from tests.wire import MODERN, Client


def fail():
    return json.loads("{")


def format_text():
    return f"{user('a')}"


@pytest.fixture
def get_exception():
    """A function that renders a prompt and returns its exception."""

    def get_exception(function, **arguments):
        with pytest.raises(Exception) as caught:  # noqa: PT011 (any exception)
            prompt(function).render(**arguments)
        return caught.value

    return get_exception


async def fail_later():
    await asyncio.sleep(0)
    return fail()


def read_image():
    return Image.from_path("nowhere.png")


def raise_chain():
    try:
        return fail()
    except ValueError as error:
        raise RuntimeError("no") from error


def raise_group():
    raise ExceptionGroup("several", [ValueError("a")])


def call_library():
    return loads("=")


def call_back():
    return sorted([2, 1], key=lambda _: fail())


def raise_in_library():
    return version("no-such-package")


class TestFormat:
    @pytest.mark.parametrize("function", [call_library, call_back, raise_in_library])
    def test_frames_of_other_libraries_are_omitted(self, function, get_exception):
        """
        Only the author's frames are shown, whatever the library, and a cause without such frames is omitted.
        """
        traceback = format_exception(get_exception(function))

        files = re.findall(r'^  File "(.+)", line', traceback, re.MULTILINE)
        assert set(files) == {__file__}
        assert traceback.count("Traceback") == 1

    @pytest.mark.parametrize(
        "function", [fail, format_text, fail_later, raise_chain, raise_group, read_image]
    )
    def test_internal_frames_are_omitted(self, function, get_exception):
        """The traceback has the author's frames, but no frames of promptkit and its libraries."""
        traceback = format_exception(get_exception(function))

        assert f"in {function.__name__}" in traceback
        assert "/promptkit/catalog/prompts.py" not in traceback
        assert "/promptkit/language/messages.py" not in traceback
        assert "asyncio" not in traceback
        assert "pathlib" not in traceback
        assert traceback.splitlines()[-1].strip()

    def test_causes_are_shown(self, get_exception):
        """The causes of an exception are shown."""
        traceback = format_exception(get_exception(raise_chain))

        assert "JSONDecodeError" in traceback
        assert "direct cause" in traceback
        assert traceback.endswith("RuntimeError: no\n")

    def test_without_frames_of_an_author_all_frames_are_shown(self):
        """If no frame is an author's, all frames are shown, because the error is in promptkit."""
        with pytest.raises(TypeError) as caught:
            user(3)
        error = caught.value.with_traceback(caught.value.__traceback__.tb_next)

        assert "turns.py" in format_exception(error)

    def test_repeated_frames_are_collapsed(self, get_exception):
        """Repeated frames are collapsed, as in Python."""

        def recurse():
            return recurse()

        assert "Previous line repeated" in format_exception(get_exception(recurse))


def test_a_server_prints_the_filtered_traceback(capsys):
    """A server writes the filtered traceback to stderr."""
    client = Client(compile(Recipes(prompts=(prompt(fail),))), MODERN)

    client.get("fail")

    logged = capsys.readouterr().err
    assert "in fail" in logged
    assert "promptkit/catalog/catalog.py" not in logged
    assert "JSONDecodeError" in logged


def test_the_command_line_prints_the_filtered_traceback(recipes):
    """`promptkit render` prints the author's frames, then one line with the prompt, the file and the line."""
    body = "import json\nfrom promptkit import prompt\n\n@prompt\ndef fail() -> str:\n"
    source = f"{body}    return json.loads('{{')\n"
    folder = recipes(fail=source)

    command = [sys.executable, "-m", "promptkit", "render", str(folder), "fail"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)

    files = re.findall(r'^  File "(.+)", line', result.stderr, re.MULTILINE)
    assert [Path(file).name for file in files] == ["fail.py"]
    *_, exception, last = result.stderr.splitlines()
    assert exception.startswith("json.decoder.JSONDecodeError: ")
    assert last == f"promptkit: prompt 'fail' failed at {folder / 'fail.py'}:6"


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
def test_only_files_of_an_author_are_recognised(file, expected):
    """Files of Python, installed packages and promptkit are not an author's."""
    assert is_authors_file(file) is expected


RETURNS_A_PAIR = """
from promptkit import prompt

@prompt
def pair(q: str):
    return [("system", "Be nice"), ("user", q)]

"""


def test_an_unsupported_result_is_reported_without_a_traceback(recipes, capsys):
    """An unsupported result is reported without a traceback, which would have only internal frames."""
    folder = recipes(pair=RETURNS_A_PAIR)
    command = [sys.executable, "-m", "promptkit", "render", str(folder), "pair", "q=a"]

    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert result.stderr.startswith("promptkit: prompt 'pair' (")
    assert result.stderr.count("\n") == 1
    assert result.returncode == 1


@pytest.mark.parametrize("result", [3, [("system", "a")], {"role": "user"}])
def test_a_server_reports_an_unsupported_result_without_a_traceback(result, capsys):
    """A server logs an unsupported result without a traceback."""

    def returns():
        return result

    Client(compile(Recipes(prompts=(prompt(returns),))), MODERN).get("returns")

    logged = capsys.readouterr().err
    assert "prompt 'returns' (" in logged
    assert "Traceback" not in logged
    assert "prompts.py" not in logged
