"""
The package of our recipes, as another team has it: installed in an environment of its own, and started there.

It is installed with a wheel of promptkit itself, as neither is on an index here.
"""

import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from urllib.request import urlopen

import pytest

from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load
from tests.clients.python_packages import INSTALLING, install_packages
from tests.wire import line, modern

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "tests" / "clients" / "frameworks" / "mcp_2.txt"

pytestmark = [
    pytest.mark.installs,
    pytest.mark.timeout(3 * INSTALLING),
    pytest.mark.skipif(os.name == "nt", reason="programs of an environment lie elsewhere"),
]

#: Lists the prompts of a server, and gets one.
LISTING = """
import json, sys, anyio
from mcp import Client, StdioServerParameters

async def listed():
    server = StdioServerParameters(command=sys.argv[1], args=[])
    async with Client(server) as client:
        prompts = await client.list_prompts()
        got = await client.get_prompt("explain_code", {"code": "lambda x: x"})
        print(json.dumps([sorted(one.name for one in prompts.prompts), got.messages[0].content.text]))

anyio.run(listed)
"""

OTHER = """
from promptkit import prompt

@prompt
def greet(name: str = "you"):
    'Greet.'
    return f"Hello, {name}."
"""


def run(*words, **options):
    """Run a program that has to succeed, and return what it prints."""
    ran = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        check=False,
        timeout=INSTALLING,
        **options,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Wheels of promptkit, of our recipes, and of those of another team whose folder has the same name."""
    folder = tmp_path_factory.mktemp("wheels")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    recipes = tmp_path_factory.mktemp("other") / "recipes"
    recipes.mkdir()
    (recipes / "greet.py").write_text(OTHER, encoding="utf-8")
    for target, name in ((ROOT / "recipes", "our-recipes"), (recipes, "other.recipes")):
        command = [sys.executable, "-m", "promptkit", "package", target, "--out", folder]
        run(*command, "--name", name, "--version", "1.0", "--description", "Prompts.")
    return folder


@pytest.fixture(scope="module")
def programs(wheels, tmp_path_factory):
    """Where the programs of a fresh environment with all of these lie."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet"]
    run(*pip, *wheels.glob("*.whl"))
    return folder / "bin"


def test_the_official_client_lists_it(programs, installations, tmp_path):
    """One command serves all that the folder serves; a prompt that reads a text file is got."""
    python = install_packages(CLIENT, installations)
    names, text = json.loads(run(python, "-c", LISTING, programs / "our-recipes", cwd=tmp_path))

    catalog = compile(load(ROOT / "recipes"))
    assert names == sorted(catalog)
    assert text == str(catalog.render("explain_code", {"code": "lambda x: x"})[0].content)


def test_two_lie_side_by_side(programs, tmp_path):
    """Each serves its own, though both were made of a folder of the same name."""
    asked = line(modern(1, "prompts/get", {"name": "greet"}))
    answered = run(programs / "other.recipes", input=asked.decode(), cwd=tmp_path)
    listed = run(programs / "our-recipes", input=line(modern(1, "prompts/list")).decode(), cwd=tmp_path)

    assert "Hello, you." in answered
    assert "greet" not in [one["name"] for one in json.loads(listed)["result"]["prompts"]]


def test_python_runs_it(programs, tmp_path):
    """As a module, too."""
    asked = line(modern(1, "prompts/get", {"name": "greet"})).decode()

    assert "Hello, you." in run(programs / "python", "-m", "other_recipes", input=asked, cwd=tmp_path)


def test_over_http(programs, tmp_path):
    """Nothing else has to be installed for it."""
    command = [str(programs / "other.recipes"), "--http", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        try:
            place = re.search(r"http://127\.0\.0\.1:\d+/", server.stderr.readline())[0]
            with urlopen(f"{place}readyz", timeout=30) as answer:  # noqa: S310 (it is our own)
                assert answer.status == 200
        finally:
            server.terminate()


def test_no_file_is_in_both(wheels):
    """So neither takes anything away when it is uninstalled."""
    first, second = (
        set(zipfile.ZipFile(next(wheels.glob(f"{name}-*.whl"))).namelist())
        for name in ("our_recipes", "other_recipes")
    )

    assert first & second == set()
