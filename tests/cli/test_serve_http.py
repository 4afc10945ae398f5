"""`promptkit serve --http`: its options and usage errors."""

import os
import re
import socket
import subprocess
import sys

import pytest

from promptkit import asgi
from promptkit.cli import main
from promptkit.cli.options import configure, parse
from promptkit.errors.distribution import install_command
from tests.wire import line, modern

#: Timeout for a server's start, in seconds.
TIMEOUT_S = 20.0


class TestOptions:
    @pytest.mark.parametrize(
        ("text", "address"),
        [
            ("8000", ("127.0.0.1", 8000)),
            ("0", ("127.0.0.1", 0)),
            ("localhost:8000", ("localhost", 8000)),
            ("10.0.0.7:80", ("10.0.0.7", 80)),
            ("[::1]:8000", ("::1", 8000)),
            ("", ("127.0.0.1", 8000)),
            ("0.0.0.0", ("0.0.0.0", 8000)),  # noqa: S104 (nothing listens)
            ("[::]", ("::", 8000)),
        ],
    )
    def test_address(self, text, address, monkeypatch):
        """Without a host, the address is 127.0.0.1, and without a port, it is 8000."""
        monkeypatch.delenv("PORT", raising=False)

        assert parse(["serve", "--http", text]).http == address

    def test_port_of_the_platform(self, monkeypatch, capsys):
        """The variable PORT replaces a missing port, and never changes the host or an explicit port."""
        monkeypatch.setenv("PORT", "8080")

        assert parse(["serve", "recipes", "--http"]).http == ("127.0.0.1", 8080)
        assert parse(["serve", "--http", "0.0.0.0"]).http == ("0.0.0.0", 8080)  # noqa: S104
        assert parse(["serve", "--http", "9000"]).http == ("127.0.0.1", 9000)
        assert parse(["serve"]).http is None

        monkeypatch.setenv("PORT", "tcp://10.0.0.1:80")
        with pytest.raises(SystemExit):
            main(["serve", "--http"])
        assert "the variable PORT is 'tcp://10.0.0.1:80'" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("localhost", "'localhost' has no port: write [HOST:]PORT, with a port from 0 to 65535"),
            ("65536", "'65536' has no port: write [HOST:]PORT, with a port from 0 to 65535"),
            ("::", "'::' has no port: write [HOST:]PORT, with a port from 0 to 65535"),
            ("http://h:80/", "'http://h:80/' has no port: write [HOST:]PORT, with a port from 0 to 65535"),
            (":8000", "':8000' has no host before the colon: write 8000, or 0.0.0.0:8000 for all addresses"),
            ("::1:8000", "'::1:8000' is ambiguous: write an IPv6 address as [::1]:8000"),
        ],
    )
    def test_invalid_address(self, text, reason, capsys):
        """The error shows the expected form."""
        with pytest.raises(SystemExit) as exit:
            main(["serve", "--http", text])
        assert exit.value.code == 2
        assert (
            capsys.readouterr().err.splitlines()[-1] == f"promptkit serve: error: argument --http: {reason}"
        )

    def test_descriptor(self, capsys):
        """A descriptor is a number, or `systemd` for the passed sockets."""
        assert (parse(["serve", "--fd", "3"]).fd, parse(["serve", "--fd", "systemd"]).fd) == (3, "systemd")
        with pytest.raises(SystemExit):
            main(["serve", "--fd", "stdin"])
        assert "'stdin' is not the number of a descriptor or the word systemd" in capsys.readouterr().err

    @pytest.mark.parametrize(("text", "mode"), [("660", 0o660), ("0600", 0o600), ("777", 0o777)])
    def test_socket_mode(self, text, mode, tmp_path, monkeypatch):
        """The mode of a socket has octal digits, like for chmod, even in the configuration."""
        assert parse(["serve", "--uds", "s", "--uds-mode", text]).uds_mode == mode
        monkeypatch.chdir(tmp_path)
        (tmp_path / "recipes").mkdir()
        (tmp_path / "pyproject.toml").write_text(
            f"[tool.promptkit.serve]\nuds-mode = '{text}'\nuds-group = 'www-data'\n"
        )
        words = ["serve", "--uds", "s"]
        options = configure(parse(words), words)
        assert (options.uds_mode, options.uds_group) == (mode, "www-data")

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "'' is not a mode: write three octal digits, such as 660"),
            ("66", "'66' is not a mode: write three octal digits, such as 660"),
            ("668", "'668' is not a mode: write three octal digits, such as 660"),
            ("1660", "'1660' is not a mode: write three octal digits, such as 660"),
            ("rw-rw----", "'rw-rw----' is not a mode: write three octal digits, such as 660"),
            ("060", "'060' denies access to the server's own user: start with 6, for example 660"),
            ("432", "'432' denies access to the server's own user: start with 6, for example 660"),
            ("٦٦٠", "'٦٦٠' is not a mode: write three octal digits, such as 660"),
        ],
    )
    def test_invalid_mode(self, text, reason, capsys):
        """The error shows a valid mode; 432 is the decimal form of 0o660, as TOML parses it."""
        with pytest.raises(SystemExit) as exit:
            main(["serve", "--uds", "s", f"--uds-mode={text}"])
        assert exit.value.code == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert error == f"promptkit serve: error: argument --uds-mode: {reason}"

    @pytest.mark.parametrize(
        "words", [["--workers", "2"], ["--no-auth"], ["--public-url=https://example.org"]]
    )
    def test_http_options_without_an_address(self, words, capsys):
        """Options for HTTP are rejected over stdio."""
        with pytest.raises(SystemExit) as exit:
            main(["serve", "recipes", *words])
        name = words[0].partition("=")[0]
        assert exit.value.code == 2
        assert capsys.readouterr().err.splitlines()[-1] == (
            f"promptkit serve: error: {name} is for HTTP: set an address with --http, --uds or --fd"
        )

    def test_configuration(self, tmp_path, monkeypatch):
        """
        All options can be configured, repeatable ones as a list; without an address, the server uses stdio.
        """
        monkeypatch.chdir(tmp_path)
        (tmp_path / "recipes").mkdir()
        (tmp_path / "pyproject.toml").write_text(
            "[tool.promptkit.serve]\nworkers = 3\nallow-host = ['a.example', 'b.example']\nno-auth = true\n"
        )
        words = ["serve", "--http", "0"]
        options = configure(parse(words), words)

        assert (options.http, options.workers, options.no_auth) == (("127.0.0.1", 0), 3, True)
        assert options.allow_host == ["a.example", "b.example"]
        assert configure(parse(["serve"]), ["serve"]).http is None


@pytest.fixture
def usage_error(forked):
    """A function that returns the error of a server that does not start because of wrong usage."""

    def usage_error(*words, recipes):
        code, out, err = forked("serve", str(recipes), *words, cwd=recipes.parent)
        assert (code, out) == (2, b"")
        return err.decode()

    return usage_error


class TestErrors:
    @pytest.mark.parametrize("words", [("--http", "0"), ("--uds", "x.sock"), ("--fd", "3")])
    def test_missing_extra(self, recipes, tmp_path, words):
        """The error names the option and the command that installs the missing library."""
        (tmp_path / "missing").mkdir()
        (tmp_path / "missing" / "httptools.py").write_text("raise ModuleNotFoundError(name='httptools')\n")

        result = subprocess.run(
            [sys.executable, "-m", "promptkit", "serve", str(recipes(greet="")), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "missing")},
        )

        message = f"promptkit: {words[0]} needs httptools: {install_command('http')}\n"
        assert (result.returncode, result.stdout, result.stderr) == (2, "", message)

    @pytest.mark.parametrize("workers", ["1", "2"])
    def test_public_address_without_authentication(self, recipes, workers, usage_error):
        """A server that other machines can reach requires tokens or `--no-auth`."""
        message = usage_error("--http", "0.0.0.0:0", "--workers", workers, recipes=recipes(greet=""))

        assert message.startswith("promptkit: http://0.0.0.0:")
        assert message.endswith(
            " can be reached from other machines without authentication: listen on 127.0.0.1, "
            "require tokens with --issuer or --token-file, or pass --no-auth to let every "
            "caller use these prompts\n"
        )

    @pytest.mark.parametrize(
        ("words", "names"),
        [
            (["--issuer", "https://a.example", "--token-file", "tokens"], ["--issuer", "--token-file"]),
            (["--issuer", "https://a.example", "--no-auth"], ["--no-auth", "--issuer"]),
            (["--require-scope", "read"], ["--require-scope", "--issuer", "--token-file"]),
            (["--uds-mode", "660"], ["--uds-mode", "--uds"]),
            (["--uds-group", "www-data"], ["--uds-group", "--uds"]),
            (["--workers", "1000"], ["--workers", "256"]),
        ],
    )
    def test_contradictory_options(self, recipes, words, names, capsys):
        """Contradictory options are rejected before anything is imported, and the error names them."""
        assert main(["serve", str(recipes(greet="")), "--http", "0", *words]) == 2
        (error,) = capsys.readouterr().err.splitlines()
        assert all(name in error for name in names)

    @pytest.mark.parametrize(
        ("words", "names"),
        [
            (["--issuer", "https://a.example", "--uds", "socket"], ["--issuer", "--public-url"]),
            (["--issuer", "http://a.example"], ["'http://a.example'", "https"]),
            (["--issuer", "https://a.example", "--require-scope", "a b"], ["'a b' is not a scope"]),
            (["--token-file", "tokens"], ["tokens: the file cannot be read"]),
        ],
    )
    def test_invalid_token_options(self, recipes, words, names, usage_error):
        """Invalid or incomplete token options are rejected, and the error names the option or its value."""
        error = usage_error("--http", "0", *words, recipes=recipes(greet="")).splitlines()[-1]

        assert all(name in error for name in names)

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such sockets")
    def test_unknown_group(self, recipes, tmp_path, usage_error):
        """An unknown group is reported, and no socket remains."""
        path = tmp_path / "socket"
        message = usage_error("--uds", str(path), "--uds-group", "no-such-group", recipes=recipes(greet=""))

        assert message == (
            f"promptkit: cannot listen on {str(path)!r}: there is no group 'no-such-group': "
            "use a name or number from `getent group`\n"
        )
        assert not path.exists()

    def test_missing_auth_extra(self, recipes, monkeypatch, capsys):
        """A missing library for tokens is reported with the command that installs it."""
        monkeypatch.setitem(sys.modules, "joserfc", None)
        words = ("--http", "0", "--issuer", "https://a.example")

        assert main(["serve", str(recipes(greet="")), *words]) == 2
        assert capsys.readouterr().err == (
            f"promptkit: --issuer needs joserfc: {install_command('http,auth')}\n"
        )

    @pytest.mark.parametrize(
        "url", ["prompts.example", "ftp://prompts.example/", "https://prompts.example/?a=b"]
    )
    def test_invalid_public_url(self, recipes, url, usage_error):
        """An invalid public URL is rejected by the command and by `asgi.app`."""
        folder = recipes(greet="")

        assert repr(url) in usage_error("--http", "0", "--public-url", url, recipes=folder)
        with pytest.raises(ValueError, match=re.escape(repr(url))):
            asgi.app(folder, public_url=url)

    def test_port_in_use(self, recipes, usage_error):
        """A port in use is reported with a fix."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            message = usage_error("--http", str(port), recipes=recipes(greet=""))

        assert message == (
            f"promptkit: cannot listen on 127.0.0.1, port {port}: another server is already listening there: "
            "stop it, or use another port\n"
        )

    def test_missing_target(self, tmp_path, usage_error):
        """A missing target is the same error as over stdio."""
        message = usage_error("--http", "0", recipes=tmp_path / "nothing")

        assert f"cannot load '{tmp_path / 'nothing'}'" in message


def test_stdio_imports_no_http_module(recipes):
    """A stdio server imports no HTTP module, not even when it serves prompts."""
    folder = recipes(greet="from promptkit import prompt\n\n@prompt\ndef greet():\n    return 'Hello.'\n")
    script = (
        "import sys, atexit, os\n"
        "from promptkit.transports import stdio\n"
        "exit_now = stdio.exit_now\n"
        "stdio.exit_now = lambda: (sys.stderr.write(' '.join(sys.modules)), exit_now())\n"
        "from promptkit.cli import main\n"
        f"main(['serve', {str(folder)!r}])\n"
    )
    request = line(modern(1, "prompts/get", {"name": "greet"}))
    ran = subprocess.run([sys.executable, "-c", script], input=request, capture_output=True, check=True)
    loaded = ran.stderr.decode().split()

    assert b"Hello." in ran.stdout
    assert "promptkit.cli.serve" in loaded
    names = ("uvicorn", "httptools", "uvloop", "promptkit.transports.http", "promptkit.cli.serve_http")
    assert [name for name in loaded if name.startswith(names)] == []
