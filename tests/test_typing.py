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


#: The strictest settings of pyright, with which it ignores the marks for mypy.
PYRIGHT = {
    "include": [CASES.name],
    "typeCheckingMode": "strict",
    "enableTypeIgnoreComments": False,
    "reportUnnecessaryTypeIgnoreComment": True,
}


def run(folder, *command):
    """
    Return a checker's output for a copy of the cases. *folder* is outside of this project and its settings.
    """
    shutil.copy(CASES, folder)
    result = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert result.returncode in (0, 1), result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="session")
def mypy(request, tmp_path_factory):
    """File, line and message of each error that mypy reports, with a cache for later runs."""
    folder, cache = tmp_path_factory.mktemp("mypy"), getattr(request.config, "cache", None)
    options = ["--strict", "--output=json"]
    if cache is not None:
        options.append(f"--cache-dir={cache.mkdir('mypy')}")
    printed = run(folder, "mypy", *options, CASES.name)
    records = [json.loads(line) for line in printed.splitlines() if line]
    return [
        (Path(record["file"]).name, record["line"], record["message"])
        for record in records
        if record["severity"] == "error"
    ]


@pytest.fixture(scope="session")
def pyright(tmp_path_factory):
    """File, line and message of each problem that pyright reports."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    folder = tmp_path_factory.mktemp("pyright")
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT), encoding="utf-8")
    printed = json.loads(run(folder, "pyright", "--outputjson", "--pythonpath", sys.executable))
    assert printed["summary"]["filesAnalyzed"] == 1
    return [
        (Path(record["file"]).name, record["range"]["start"]["line"] + 1, record["message"])
        for record in printed["generalDiagnostics"]
        if record["severity"] != "information"
    ]


@pytest.fixture(params=["mypy", "pyright"])
def diagnostics(request):
    """The problems that each checker reports."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("case", FUNCTIONS)
def test_checkers_report_exactly_the_marked_lines(diagnostics, case):
    """Valid code of authors is accepted, and every line marked as wrong is an error."""
    errors = [f"{line}: {message}" for _, line, message in diagnostics if line in FUNCTIONS[case]]

    assert errors == []


def test_public_names_have_types(diagnostics):
    """The public names have types, and the checkers report no problem outside the cases."""
    lines = {line for span in FUNCTIONS.values() for line in span}

    assert [
        diagnostic for diagnostic in diagnostics if diagnostic[0] != CASES.name or diagnostic[1] not in lines
    ] == []
