"""
The documentation's examples, which render a prompt for every row on data engines.

Each engine is installed from PyPI in a separate environment. If that fails, its test is skipped.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from promptkit.cli import main
from tests.batch.conftest import requests_in
from tests.clients.python_packages import INSTALLING, install_packages

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples" / "batch"
ENGINES = Path(__file__).parent / "engines"
FRAMEWORKS = ROOT / "tests" / "clients" / "frameworks"

ROWS = 100_000

#: One of this many rows is invalid.
INVALID_INTERVAL = 1_000

#: Timeout of one engine, in seconds. Beside other tests, the engines take ten times as long as alone.
RUNNING = 900

pytestmark = [pytest.mark.installs, pytest.mark.timeout(INSTALLING + RUNNING)]

#: Code that kills the rendering process once.
ENDING_ONCE = """
import os
import signal


def end_once():
    try:
        os.close(os.open(ENDED, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
"""

CLAUDE = "anthropic.claude-3-5-sonnet-20240620-v1:0"

#: A script that prints the Bedrock file that LiteLLM makes from a file for OpenAI.
LITELLM = """
import sys
from litellm.llms.bedrock.files.transformation import BedrockJsonlFilesTransformation
file = ("requests.jsonl", open(sys.argv[1], "rb").read())
print(BedrockJsonlFilesTransformation().transform_openai_file_content_to_bedrock_file_content(file)[0])
"""

#: A script that starts Ray with two workers and little memory and then runs the example.
ON_RAY = """
import runpy, sys, ray
for attempt in range(4):  # on a busy machine, a start takes longer than the 30 s that Ray allows
    try:
        ray.init(num_cpus=2, object_store_memory=200_000_000, include_dashboard=False, _temp_dir=sys.argv[1])
        break
    except Exception as error:
        if "timed out during startup" not in str(error):
            raise
        ray.shutdown()
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

#: Options that run Spark with two local workers and up to four attempts for a task.
ON_SPARK = "--master local[2,4] --conf spark.ui.enabled=false pyspark-shell"


def row(number):
    """Return the row with a number; one row in a thousand is invalid."""
    severity = "hihg" if number % INVALID_INTERVAL == 7 else ("low", "high")[number % 2]
    return {"id": number, "ticket": f"ticket {number}", "severity": severity, "votes": number % 11}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A JSON Lines file of all rows."""
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text("".join(json.dumps(row(number)) + "\n" for number in range(ROWS)), encoding="utf-8")
    return path


@pytest.fixture
def examples(tmp_path):
    """A copy of the examples that tests can edit."""
    return Path(
        shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    )


@pytest.fixture
def run(examples, table, installations, tmp_path):
    """A function that runs an example with an engine and returns the rows that it wrote."""

    def run(example, packages, *options, **variables):
        python = install_packages(ENGINES / f"{packages}.txt", installations, ROOT)
        out = tmp_path / "out"
        result = subprocess.run(
            [str(python), *options, str(examples / example), str(table), str(out)],
            env={**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", **variables},
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            timeout=RUNNING,
            check=False,
        )
        assert result.returncode == 0, result.stderr[-5_000:]
        files = [out] if out.is_file() else sorted(out.glob("[!._]*"))
        return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]

    return run


def kill_one_worker(examples):
    """Make one rendering process kill itself halfway, and return the file that it creates before that."""
    file, marker = examples / "tickets.py", examples / "ended"
    text = file.read_text(encoding="utf-8")
    last_line = '    return f"Triage'
    assert text.count(last_line) == 1
    killing_lines = f'    if ticket == "ticket {ROWS // 2}":\n        end_once()\n'
    file.write_text(
        f"{text.replace(last_line, killing_lines + last_line)}{ENDING_ONCE}\n\nENDED = {str(marker)!r}\n",
        encoding="utf-8",
    )
    return marker


def check(rows):
    """Check that each row appears once, with its request or its error."""
    rows_by_id = {int(result_row["id"]): result_row for result_row in rows}
    assert (len(rows), sorted(rows_by_id)) == (ROWS, list(range(ROWS)))
    for number, result_row in rows_by_id.items():
        if number % INVALID_INTERVAL == 7:
            assert result_row.get("request") is None
            assert result_row["error"] == "'severity' is 'hihg', not one of low, high (did you mean 'high'?)"
        else:
            arguments = row(number)
            description = (
                f"Its severity is {arguments['severity']}, and {arguments['votes']} people voted for it."
            )
            text = f"Triage this ticket. {description}\n\n{arguments['ticket']}"
            body = {"messages": [{"role": "user", "content": text}], "model": "gpt-5"}
            assert (json.loads(result_row["request"]), result_row.get("error")) == (body, None)


def test_ray_data_with_a_killed_worker(run, examples):
    """When one of Ray's workers is killed, another worker renders its rows."""
    marker = kill_one_worker(examples)
    variables = {"PYTHONPATH": str(examples), "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}

    with TemporaryDirectory() as short_folder:  # socket paths must be short
        check(run("ray_data.py", "ray", "-c", ON_RAY, short_folder, **variables))
    assert marker.exists()


@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_spark_with_a_killed_worker(run, examples):
    """When one of Spark's local workers is killed, its task is retried."""
    marker = kill_one_worker(examples)

    check(run("spark.py", "spark", SPARK_LOCAL_IP="127.0.0.1", PYSPARK_SUBMIT_ARGS=ON_SPARK))
    assert marker.exists()


@pytest.mark.parametrize(
    "example", ["polars_stream.py", "dask_frame.py", "pandas_frame.py", "duckdb_relation.py"]
)
def test_frames_and_relations(run, example):
    """Streaming Polars, multiprocess Dask, pandas and DuckDB render every row."""
    check(run(example, "frames"))


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines",
        "größer 👍",
        "a\u2028b\x85c",
    ],
)
def test_litellm_reads_the_file(folder, installations, text):
    """LiteLLM converts the OpenAI file for Bedrock, whatever characters its text contains."""
    lines = [json.dumps({"ticket": text}), json.dumps({"ticket": "last"})]
    (folder / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    main(["batch", "triage", "t.jsonl", "--for", "openai-chat", "--model", CLAUDE, "-o", "out"])
    python = install_packages(FRAMEWORKS / "mcp_1.txt", installations)
    result = subprocess.run(
        [str(python), "-c", LITELLM, str(folder / "out" / "requests-00001.jsonl")],
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        encoding="utf-8",
        timeout=RUNNING,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2_000:]

    records = [json.loads(line) for line in result.stdout.splitlines()]
    requests = requests_in(folder / "out")
    assert [record["recordId"] for record in records] == [request["custom_id"] for request in requests]
    assert [record["modelInput"]["messages"][0]["content"][0]["text"] for record in records] == [
        request["body"]["messages"][0]["content"] for request in requests
    ]
