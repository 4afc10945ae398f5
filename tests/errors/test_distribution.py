import json
import shlex
import subprocess
import sys

import pytest

from promptkit.errors.distribution import (
    DISTRIBUTION,
    install_command,
    needed_by,
    other_package_hint,
    pip_command,
    quote_for_shell,
)

WHEEL = "file:///tmp/it's/mcp_promptkit-0.1.0-py3-none-any.whl"
CHECKOUT = "file:///srv/it%27s%20here"
REPOSITORY = "https://git.example/promptkit"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A function that installs a distribution with a name and an origin."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name, origin=None, **files):
        folder = tmp_path / f"{name.replace('-', '_')}-9.9.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
        if origin is not None:
            (folder / "direct_url.json").write_text(origin if isinstance(origin, str) else json.dumps(origin))
        for file, text in files.items():
            (folder / file).write_text(text)
        return tmp_path

    return install


class TestInstallCommand:
    @pytest.mark.parametrize(
        ("origin", "arguments"),
        [
            ({"url": WHEEL, "archive_info": {}}, [f"mcp-promptkit[http,auth] @ {WHEEL}"]),
            ({"url": "file:///src", "dir_info": {}}, ["mcp-promptkit[http,auth] @ file:///src"]),
            ({"url": CHECKOUT, "dir_info": {"editable": True}}, ["-e", "/srv/it's here[http,auth]"]),
            (
                {"url": REPOSITORY, "vcs_info": {"vcs": "git", "commit_id": "abc"}},
                [f"mcp-promptkit[http,auth] @ git+{REPOSITORY}@abc"],
            ),
            (None, ["mcp-promptkit[http,auth]"]),
            ("{", ["mcp-promptkit[http,auth]"]),
            ("[" * 100_000, ["mcp-promptkit[http,auth]"]),
            ([], ["mcp-promptkit[http,auth]"]),
        ],
        ids=["wheel", "folder", "editable", "repository", "index", "no JSON", "deep", "another form"],
    )
    @pytest.mark.skipif(sys.platform == "win32", reason="Windows quotes otherwise")
    def test_the_command_installs_from_the_same_origin(self, origin, arguments, install):
        """The command installs the distribution from its own origin."""
        install(DISTRIBUTION, origin)

        expected = [sys.executable, "-m", "pip", "install", *arguments]
        assert shlex.split(install_command("http,auth")) == expected

    def test_without_pip_the_command_uses_uv(self, monkeypatch):
        """Without pip, as in environments of uv, the command uses uv with an explicit interpreter."""
        monkeypatch.setattr("promptkit.errors.distribution.find_spec", lambda _: None)

        assert pip_command() == f"uv pip install --python {quote_for_shell(sys.executable)}"
        assert pip_command("uninstall", python="python") == "uv pip uninstall --python python"


class TestOtherPackage:
    def test_without_another_package_there_is_no_message(self):
        """Without another package, there is no message."""
        assert other_package_hint() is None

    def test_another_package_is_reported_with_commands(self, install):
        """Another package is reported with commands that remove it and restore our files."""
        install("promptkit")

        assert other_package_hint() == (
            "another project's package, promptkit 9.9, is also installed, and has the same import name: "
            f"run {pip_command('uninstall')} promptkit, and then {install_command()} --force-reinstall"
        )

    @pytest.mark.parametrize(
        "line",
        [
            "from promptkit import PromptTemplate",
            "import promptkit.client",
            "from promptkit.engine import run",
        ],
    )
    def test_a_failed_import_names_the_other_package(self, line, install, recipes):
        """A failed import is reported with the other package, once for the recipe and once for `check`."""
        folder = install("promptkit")

        result = run_command(folder, "check", str(recipes(one=line)))

        assert result.returncode == 1
        assert result.stdout.count("another project's package, promptkit 9.9") == 2

    def test_a_command_that_cannot_start_names_the_other_package(self, install, recipes):
        """A command that fails because of replaced files names the other package."""
        folder = install("promptkit")
        (folder / "sitecustomize.py").write_text("import sys\nsys.modules['promptkit.cli.list'] = None\n")

        result = run_command(folder, "list", str(recipes(one="")))

        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(
            "promptkit: another project's package, promptkit 9.9, is also installed"
        )


def run_command(folder, *words):
    return subprocess.run(
        [sys.executable, "-m", "promptkit", *words],
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_missing_package_of_a_feature():
    """A missing package is reported with the command that installs it; other import errors are unchanged."""
    with pytest.raises(ModuleNotFoundError) as missing, needed_by("promptkit_snapshot", "syrupy"):
        raise ModuleNotFoundError("No module named 'syrupy.session'", name="syrupy.session")
    with pytest.raises(ModuleNotFoundError) as other, needed_by("promptkit_snapshot", "syrupy"):
        raise ModuleNotFoundError("No module named 'other'", name="other")

    assert missing.value.name == "syrupy"
    assert install_command("testing") in str(missing.value)
    assert str(other.value) == "No module named 'other'"
