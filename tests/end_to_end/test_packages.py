"""
The package of our recipes, installed in a separate environment and started there, as another team would.

The package is installed together with a wheel of promptkit, because neither is on an index.
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
from tests.wire import initialize, line, modern

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "tests" / "clients" / "frameworks" / "mcp_2.txt"

pytestmark = [
    pytest.mark.installs,
    pytest.mark.timeout(3 * INSTALLING),
    pytest.mark.skipif(os.name == "nt", reason="Windows has other paths in environments"),
]

#: Lists the prompts of a server, and renders one.
LISTING = """
import json, sys, anyio
from mcp import Client, StdioServerParameters

async def listed():
    server = StdioServerParameters(command=sys.argv[1], args=[])
    async with Client(server) as client:
        prompts = await client.list_prompts()
        got = await client.get_prompt(sys.argv[2], {"code": "lambda x: x"})
        print(json.dumps([sorted(prompt.name for prompt in prompts.prompts), got.messages[0].content.text]))

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
    """Run a program that must succeed, and return its output."""
    completed = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        check=False,
        timeout=INSTALLING,
        **options,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """
    Wheels of promptkit, of our recipes, of another team's recipes in a folder of the same name, and of both.
    """
    folder = tmp_path_factory.mktemp("wheels")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    recipes = tmp_path_factory.mktemp("other") / "recipes"
    recipes.mkdir()
    (recipes / "greet.py").write_text(OTHER, encoding="utf-8")
    ours = ROOT / "recipes"
    packages = {
        "our-recipes": [ours],
        "other.recipes": [recipes],
        "both": [f"our={ours}", f"other={recipes}"],
    }
    for name, targets in packages.items():
        command = [sys.executable, "-m", "promptkit", "package", *targets, "--out", folder]
        run(*command, "--name", name, "--version", "1.0", "--description", "Prompts.")
    return folder


@pytest.fixture(scope="module")
def programs(wheels, tmp_path_factory):
    """The folder with the programs of a fresh environment with all these wheels."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet"]
    run(*pip, *wheels.glob("*.whl"))
    return folder / "bin"


def test_official_client_lists_the_prompts(programs, installations, tmp_path):
    """The command serves all prompts of the folder, including one that reads a text file."""
    python = install_packages(CLIENT, installations)
    names, text = json.loads(
        run(python, "-c", LISTING, programs / "our-recipes", "explain_code", cwd=tmp_path)
    )

    catalog = compile(load(ROOT / "recipes"))
    assert names == sorted(catalog)
    assert text == str(catalog.render("explain_code", {"code": "lambda x: x"})[0].content)


def test_package_of_two_folders(programs, installations, tmp_path):
    """One command serves two folders of the same name, each with its prefix."""
    python = install_packages(CLIENT, installations)
    names, text = json.loads(run(python, "-c", LISTING, programs / "both", "our-explain_code", cwd=tmp_path))

    catalog = compile(load(ROOT / "recipes"))
    assert names == sorted(["other-greet", *(f"our-{name}" for name in catalog)])
    assert text == str(catalog.render("explain_code", {"code": "lambda x: x"})[0].content)


def test_two_packages_in_one_environment(programs, tmp_path):
    """Each package serves its own prompts, though both folders have the same name."""
    stdin = line(modern(1, "prompts/get", {"name": "greet"}))
    stdout = run(programs / "other.recipes", input=stdin.decode(), cwd=tmp_path)
    listed = run(programs / "our-recipes", input=line(modern(1, "prompts/list")).decode(), cwd=tmp_path)

    assert "Hello, you." in stdout
    assert "greet" not in [entry["name"] for entry in json.loads(listed)["result"]["prompts"]]


def test_package_runs_as_a_module(programs, tmp_path):
    """`python -m` serves the package."""
    stdin = line(modern(1, "prompts/get", {"name": "greet"})).decode()

    assert "Hello, you." in run(programs / "python", "-m", "other_recipes", input=stdin, cwd=tmp_path)


def test_package_serves_over_http(programs, tmp_path):
    """The package serves over HTTP without any further package."""
    command = [str(programs / "other.recipes"), "--http", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        try:
            url = re.search(r"http://127\.0\.0\.1:\d+/", server.stderr.readline())[0]
            with urlopen(f"{url}readyz", timeout=30) as response:  # noqa: S310 (our own server)
                assert response.status == 200
        finally:
            server.terminate()


def test_package_reports_its_version(programs, tmp_path):
    """`initialize` and `--version` report the version of the package. Other commands work on its prompts."""
    initialized = json.loads(
        run(programs / "our-recipes", input=line(initialize("2025-11-25")).decode(), cwd=tmp_path)
    )
    program = programs / "other.recipes"

    server = initialized["result"]["serverInfo"]
    assert (server["name"], server["version"]) == ("our-recipes", "1.0")
    assert run(program, "--version", cwd=tmp_path) == "other.recipes 1.0\n"
    assert run(program, "render", "greet", "name=Ada", cwd=tmp_path).endswith("Hello, Ada.\n")
    assert "prompt greet" in run(program, "list", cwd=tmp_path)
    assert "1 prompt can be served" in run(program, "check", cwd=tmp_path)


def test_packages_share_no_files(wheels):
    """Uninstalling a package removes no file of the other."""
    first, second = (
        set(zipfile.ZipFile(next(wheels.glob(f"{name}-*.whl"))).namelist())
        for name in ("our_recipes", "other_recipes")
    )

    assert first & second == set()
