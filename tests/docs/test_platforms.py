"""The examples of docs/platforms.md: what `promptkit new --docker` writes, Kubernetes, Lambda, and mounts."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from dockerfile_parse import DockerfileParser
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from promptkit import asgi
from promptkit.cli import main
from promptkit.cli.options import parse
from tests.clients.python_packages import INSTALLING, install_packages
from tests.wire import modern

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
LAMBDA = Path(__file__).with_name("lambda.txt")

#: Timeout of every wait, in seconds.
TIMEOUT = 30.0

HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "prompts/list",
}


@pytest.fixture
def project(tmp_path, monkeypatch, capsys):
    """A new project with the files for Docker."""
    folder = tmp_path / "project"
    assert main(["new", "--docker", str(folder)]) == 0
    monkeypatch.chdir(folder)
    return folder


def steps(folder):
    """Return the instructions of a Dockerfile with their values."""
    with (folder / "Dockerfile").open("rb") as file:
        return [(step["instruction"], step["value"]) for step in DockerfileParser(fileobj=file).structure]


class TestDocker:
    def test_image_is_safe(self, project):
        """The server does not run as root, and its files come from stages that check the recipes."""
        values = dict(steps(project))

        assert values["USER"] == "65534:65534"
        assert ("RUN", "/opt/prompts/bin/promptkit check") in steps(project)
        assert main(["check"]) == 0
        assert (project / ".dockerignore").read_text().splitlines()[:2] == [".*", "**/.*"]
        assert "mcp-promptkit[http,metrics]" in (project / "requirements.txt").read_text()

    @pytest.mark.skipif(os.name == "nt", reason="the image is for Linux")
    def test_server_of_the_image_is_healthy(self, project):
        """The command of the image serves at the port in PORT, and its health check succeeds."""
        values = dict(steps(project))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        environment = {**os.environ, "PORT": str(port)}
        command = [sys.executable, "-m", "promptkit", *json.loads(values["CMD"])]
        check = json.loads(values["HEALTHCHECK"].partition("CMD")[2])
        check[0] = sys.executable
        with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as server:
            try:
                deadline = time.monotonic() + TIMEOUT
                while (code := subprocess.call(check, env=environment, stderr=subprocess.DEVNULL)) and (
                    time.monotonic() < deadline
                ):
                    time.sleep(0.2)
                assert code == 0
            finally:
                server.send_signal(signal.SIGTERM)
        assert server.returncode == 0

    def test_existing_project_gets_only_these_files(self, project, capsys):
        """In an existing project, files for Docker are added, and existing ones are kept."""
        (project / "Dockerfile").unlink()
        capsys.readouterr()

        assert main(["new", "--docker"]) == 0
        assert capsys.readouterr().out.splitlines()[:3] == [
            "wrote Dockerfile",
            "kept .dockerignore",
            "kept requirements.txt",
        ]


def test_kubernetes_example():
    """The manifest has the probes, and starts the server with valid options and without privileges."""
    deployment, service = yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text(encoding="utf-8"))
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    options = parse(container["args"])

    assert options.http == ("0.0.0.0", container["ports"][0]["containerPort"])  # noqa: S104
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert options.state_keys.startswith(container["volumeMounts"][0]["mountPath"])
    assert (pod["securityContext"]["runAsNonRoot"], pod["volumes"][0]["secret"]["defaultMode"]) == (
        True,
        0o440,
    )
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]


#: Calls the handler as a function URL does, twice, in an event loop of its own each time.
CALLS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from lambda_function import handler

def call():
    event = {
        "version": "2.0", "rawPath": "/mcp", "rawQueryString": "", "isBase64Encoded": False,
        "headers": {**json.loads(sys.argv[2]), "host": "xyz.lambda-url.example"}, "body": sys.argv[3],
        "requestContext": {"http": {"method": "POST", "path": "/mcp", "sourceIp": "10.0.0.1",
                                    "protocol": "HTTP/1.1"}},
    }
    return handler(event, None)

call()
print(json.dumps(call()))
"""


@pytest.mark.installs
@pytest.mark.timeout(2 * INSTALLING)
def test_lambda_example(project, installations):
    """Mangum passes the event of a function URL to the application, even to a warm one."""
    (project / "lambda_function.py").write_bytes((EXAMPLES / "lambda_function.py").read_bytes())
    python = install_packages(LAMBDA, installations)
    packages = subprocess.run(
        [python, "-c", "import mangum; print(mangum.__path__[0])"],
        capture_output=True,
        text=True,
        check=False,
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(packages.stdout.strip()).parent)]),
    }
    words = [str(project), json.dumps(HEADERS), json.dumps(modern(1, "prompts/list"))]
    called = subprocess.run(
        [sys.executable, "-c", CALLS, *words], env=environment, capture_output=True, text=True, check=False
    )

    assert called.returncode == 0, called.stderr
    answer = json.loads(called.stdout)
    assert answer["statusCode"] == 200
    assert [entry["name"] for entry in json.loads(answer["body"])["result"]["prompts"]] == ["review"]


@pytest.mark.parametrize(
    ("routes", "path"),
    [
        (lambda app: [Route("/", PlainTextResponse("outer")), Mount("/", app)], "/mcp"),
        (lambda app: [Route("/mcp", app), Mount("/", PlainTextResponse("outer"))], "/mcp"),
        (lambda app: [Mount("/prompts", app)], "/prompts/mcp"),
    ],
    ids=["mount", "route", "below"],
)
def test_mounted_application_answers_without_a_redirect(project, routes, path):
    """If mounted as documented, the application answers a POST without a redirect."""
    outer = Starlette(routes=routes(asgi.app("prompts", watch=False)))
    with TestClient(outer, base_url="http://localhost", follow_redirects=False) as client:
        response = client.post(path, json=modern(1, "prompts/list"), headers=HEADERS)

    assert response.status_code == 200
    assert response.json()["result"]["prompts"][0]["name"] == "review"
