"""Scopes on the command line: the lists of a stdio server, and the output for authors."""

import json
import subprocess
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from promptkit.cli import main
from tests.http_server import http_server
from tests.posting import PLAIN, body_of, repeated_headers
from tests.scoped_recipes import RECIPES
from tests.wire import line, modern

ALL = ["greet", "people", "rotate"]

HIDDEN = (
    "promptkit: hidden because they need scopes: 4 items; serve with --scopes "
    "'admin team' to show all of them, or with --scopes '' to silence this message"
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with recipes."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "recipes" / "some.py").write_text(RECIPES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def serve(project, *options):
    """Serve, list the prompts and get a prompt; return the names, the reply and standard error."""
    requests = modern(1, "prompts/list"), modern(2, "prompts/get", {"name": "rotate"})
    result = subprocess.run(
        [sys.executable, "-m", "promptkit", "serve", *options],
        input=b"".join(map(line, requests)),
        capture_output=True,
        check=True,
        timeout=30,
        cwd=project,
    )
    replies = {reply["id"]: reply for reply in map(json.loads, result.stdout.splitlines())}
    return [prompt["name"] for prompt in replies[1]["result"]["prompts"]], replies[2], result.stderr.decode()


class TestServing:
    def test_scopes_of_the_process(self, project):
        """Prompts that need other scopes are hidden and reported."""
        names, reply, stderr = serve(project)
        assert (names, stderr.strip()) == (["greet"], HIDDEN)
        assert reply["error"]["message"] == "unknown prompt 'rotate'"
        names, reply, stderr = serve(project, "--scopes", "team admin")
        assert (names, stderr) == (ALL, "")
        assert reply["result"]["messages"][0]["content"]["text"] == "Rotate ."
        assert serve(project, "--scopes", "team")[::2] == (["greet"], "")

    def test_configured_scopes(self, project):
        """Scopes can be configured like every option of `serve`."""
        (project / "pyproject.toml").write_text('[tool.promptkit.serve]\nscopes = "team admin"\n')

        assert serve(project)[0] == ALL

    @pytest.mark.parametrize(
        ("options", "expected", "hint"),
        [((), ["greet"], HIDDEN), (("--scopes", "team admin"), ALL, "")],
        ids=["none", "all"],
    )
    def test_http_without_tokens(self, project, capfd, options, expected, hint):
        """Without tokens, all HTTP callers have the scopes of the process."""
        with http_server(project / "recipes", *options) as url:
            message = modern(1, "prompts/list")
            fields = {**PLAIN, **repeated_headers(message), "host": urlsplit(url).netloc}
            connection = HTTPConnection(urlsplit(url).netloc, timeout=20)
            connection.request("POST", "/mcp", body_of(message), fields)
            with connection.getresponse() as reply:
                listed = json.load(reply)["result"]["prompts"]
            connection.close()

        assert [prompt["name"] for prompt in listed] == expected
        assert (HIDDEN in capfd.readouterr().err) is bool(hint)

    @pytest.mark.parametrize("scopes", ['a"b', "é", "a\\b"])
    def test_invalid_scope(self, project, scopes, capsys):
        """An invalid scope is rejected at the start."""
        with pytest.raises(SystemExit, match="2"):
            main(["serve", "--scopes", scopes])
        assert "is not a scope: a scope consists of ASCII" in capsys.readouterr().err

    def test_scopes_with_tokens(self, project, capfd):
        """`--scopes` cannot be combined with tokens, which have their own scopes."""
        assert main(["serve", "--http", "0", "--token-file", "tokens", "--scopes", "a"]) == 2
        assert "--scopes cannot be combined with --issuer or --token-file" in capfd.readouterr().err


class TestAuthors:
    def test_list(self, project, capsys):
        """`list` shows everything, with the needed scopes."""
        main(["list"])
        assert "prompt rotate (needs admin team): Rotate a key." in capsys.readouterr().out
        main(["list", "--json"])
        listed = json.loads(capsys.readouterr().out)
        assert [item.get("scopes") for item in listed["prompts"]] == [None, ["admin"], ["admin", "team"]]
        assert listed["resources"][0]["scopes"] == ["admin"]
