import ast
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("typing_cases.py")

FUNCTIONS = {
    node.name: range(node.lineno, (node.end_lineno or 0) + 1)
    for node in ast.parse(CASES.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
}


#: The strictest that there is, and no mark of the other checker's counts.
PYRIGHT = {
    "include": [CASES.name],
    "typeCheckingMode": "strict",
    "enableTypeIgnoreComments": False,
    "reportUnnecessaryTypeIgnoreComment": True,
}


def run(folder, *command):
    """What a checker prints of a copy in an author's folder, away from this project's own settings."""
    shutil.copy(CASES, folder)
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def mypy(tmp_path_factory):
    """Line and message of everything that mypy complains of."""
    printed = run(tmp_path_factory.mktemp("mypy"), "mypy", "--strict", "--output=json", CASES.name)
    found = [json.loads(line) for line in printed.splitlines() if line]
    return [(Path(c["file"]).name, c["line"], c["message"]) for c in found if c["severity"] == "error"]


@pytest.fixture(scope="session")
def pyright(tmp_path_factory):
    """Line and message of everything that pyright complains of."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    folder = tmp_path_factory.mktemp("pyright")
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT), encoding="utf-8")
    printed = json.loads(run(folder, "pyright", "--outputjson", "--pythonpath", sys.executable))
    assert printed["summary"]["filesAnalyzed"] == 1
    return [
        (Path(c["file"]).name, c["range"]["start"]["line"] + 1, c["message"])
        for c in printed["generalDiagnostics"]
        if c["severity"] != "information"
    ]


@pytest.fixture(params=["mypy", "pyright"])
def complaints(request):
    """What each checker complains of."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("case", FUNCTIONS)
def test_the_checkers_agree_with_the_design(complaints, case):
    """
    What authors may write is accepted, and every line that is marked as wrong is an error.
    """
    found = [f"{line}: {message}" for _, line, message in complaints if line in FUNCTIONS[case]]

    assert found == []


def test_nothing_else_is_complained_of(complaints):
    """
    The public names are there with their types, and the package itself is sound.
    """
    lines = {line for span in FUNCTIONS.values() for line in span}

    assert [c for c in complaints if c[0] != CASES.name or c[1] not in lines] == []
