"""The values of a form are saved as a case in the file of the prompt."""

from contextlib import closing

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load
from promptkit.preview.live import LiveCatalog
from promptkit.preview.routes import create_application
from tests.preview.conftest import HOST, TOKEN

RECIPE = """
from typing import Annotated
from promptkit import Arg, prompt

@prompt(name="greet-person")
def greet(name: str, times: int = 1):
    return f"Hello, {name}. " * times

greet.case("known", "Ada")

@prompt
def login(key: Annotated[str, Arg(secret=True)]):
    return key
"""

MARKDOWN = """---
description: Say goodbye
arguments:
  name: The name
cases:
  known:
    name: Ada
---
Goodbye, {{name}}.
"""


@pytest.fixture
def folder(recipes, tmp_path, monkeypatch):
    """Recipes in Python and in Markdown; backups of edited files are below a folder of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = recipes(greet=RECIPE)
    (folder / "bye.prompt.md").write_text(MARKDOWN, encoding="utf-8")
    (folder / "plain.prompt.md").write_text("Say {{word}}.\n", encoding="utf-8")
    return folder


@pytest.fixture
def save(folder):
    """A function that saves a case, and returns the message of the page."""
    live = LiveCatalog(compile(load(folder)))
    app = create_application(live, "recipes", TOKEN, [HOST])
    with closing(TestClient(app, base_url=f"http://{HOST}")) as client:
        client.get(f"/?access-token={TOKEN}")

        def call(prompt, case, **values):
            return client.post(f"/prompts/{prompt}/saved-cases", data={**values, "case-name": case}).text

        yield call


def cases_of(folder, name):
    """Return the argument text of each case of a prompt, as the recipes define them now."""
    return {case.name: dict(case.sent()) for case in compile(load(folder))[name].saved()}


@pytest.mark.parametrize(
    ("prompt", "values"),
    [
        ("greet-person", {"name": 'Bo "the \\n"', "times": "2"}),
        ("bye", {"name": 'Bo: # "x" <b>'}),
        ("plain", {"word": "a, b"}),
    ],
)
def test_case_is_written_to_the_file(prompt, values, folder, save):
    """The case has its name and values after the file is loaded again, and other cases stay."""
    before = cases_of(folder, prompt)

    assert save(prompt, "new: one", **values).startswith("Saved in ")
    assert cases_of(folder, prompt) == {**before, "new: one": values}
    assert save(prompt, "  second ", **values).startswith("Saved in ")
    assert cases_of(folder, prompt) == {**before, "new: one": values, "second": values}


@pytest.mark.parametrize(
    ("prompt", "name", "values", "reason"),
    [
        ("greet-person", "known", {"name": "Bo"}, "there is already a case 'known'"),
        ("greet-person", " ", {"name": "Bo"}, "give the case a name"),
        ("greet-person", "x", {"name": "Bo", "times": "many"}, "the values are invalid"),
        ("login", "x", {"key": "s3cr3t"}, "secrets and files are not written"),
    ],
)
def test_refused_cases_change_nothing(*, prompt, name, values, reason, folder, save):
    """A case that exists, has no name, is invalid or has a secret is not written."""
    before = (folder / "greet.py").read_bytes()

    assert reason in save(prompt, name, **values)
    assert (folder / "greet.py").read_bytes() == before


def test_the_old_text_is_kept(folder, save, tmp_path):
    """The file is replaced as a whole, with the same permissions, and the old text is saved."""
    file = folder / "greet.py"
    file.chmod(0o640)
    before = file.read_bytes()
    save("greet-person", "x", name="Bo")

    (backup,) = (tmp_path / "state").rglob("*greet.py")
    assert backup.read_bytes() == before
    assert file.stat().st_mode & 0o777 == 0o640


def test_file_that_cannot_be_edited(folder, save):
    """A file that no longer exists is reported."""
    (folder / "greet.py").unlink()

    assert "greet.py cannot be edited" in save("greet-person", "x", name="Bo")
