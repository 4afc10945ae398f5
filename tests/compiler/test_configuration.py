import os
from pathlib import Path
from textwrap import dedent

import pytest

from promptkit.compiler.configuration import (
    Configuration,
    check_keys,
    find_configuration,
    find_targets,
)
from promptkit.errors import ConfigurationError, LoadError, PromptkitError


@pytest.fixture
def project(tmp_path):
    """A function that writes a project's `pyproject.toml` and folders, and returns the project's folder."""

    def write(configuration="", *folders, below="project"):
        folder = tmp_path / below
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pyproject.toml").write_text(dedent(configuration))
        for name in folders:
            (folder / name).mkdir(parents=True)
        return folder

    return write


PYPROJECT = """
    [project]
    name = "mine"

    [tool.promptkit]
    target = "src/prompts"
    clients = ["claude-code", "zed"]
    ignore = ["PK207"]
    elicit = false

    [tool.promptkit.serve]
    page-size = 10
    watch = false
"""


class TestFindConfiguration:
    @pytest.mark.parametrize("start", ["", "src", "src/prompts"])
    def test_the_configuration_is_found_from_any_subfolder(self, start, project):
        """The configuration is found from any folder of the project; the target is relative to the file."""
        folder = project(PYPROJECT, "src/prompts")

        assert find_configuration(folder / start) == Configuration(
            file=str(folder / "pyproject.toml"),
            targets=(str(folder / "src" / "prompts"),),
            clients=("claude-code", "zed"),
            ignore=("PK207",),
            elicit=False,
            serve={"page-size": 10, "watch": False},
        )

    def test_a_file_without_the_table_ends_the_search(self, project):
        """A nested project without the table does not use the configuration of the outer project."""
        project("[tool.promptkit]\nignore = ['PK207']", "inner")
        inner = project("[project]\nname = 'promptkit-things'", below="project/inner")

        assert find_configuration(inner).file == ""

    def test_without_a_configuration_the_default_is_returned(self, tmp_path):
        """Without a configuration, the default is returned."""
        assert find_configuration(tmp_path) == Configuration()

    def test_the_search_starts_in_the_current_folder(self, project, monkeypatch):
        """The search starts in the current folder by default."""
        monkeypatch.chdir(project("[tool.promptkit]\nclients = ['zed']", "below") / "below")

        assert find_configuration().clients == ("zed",)

    @pytest.mark.parametrize(
        ("target", "expected"),
        [
            ("prompts", "{folder}/prompts"),
            ("prompts/review.py:review", "{folder}/prompts/review.py:review"),
            ("../shared", "{folder}/../shared"),
            ("package.module", "package.module"),
            ("package.module:name", "package.module:name"),
            ("missing", "missing"),
        ],
    )
    def test_targets(self, target, expected, project):
        """A path is relative to the configuration file; a module stays unchanged."""
        folder = project(f"[tool.promptkit]\ntarget = '{target}'", "prompts", "../shared")
        (folder / "prompts" / "review.py").touch()

        assert find_configuration(folder).targets == (expected.format(folder=folder),)

    def test_several_targets(self, project):
        """Each of several targets is resolved like a single one."""
        folder = project(
            "[tool.promptkit]\ntarget = ['prompts', '../shared', 'package.module']", "prompts", "../shared"
        )

        expected = (f"{folder}/prompts", f"{folder}/../shared", "package.module")
        assert find_configuration(folder).targets == expected

    def test_targets_with_prefixes(self, project):
        """Targets with prefixes are resolved like any other target, in a table or as words, and come last."""
        folder = project(
            "[tool.promptkit]\ntarget = ['prompts', 'a=../shared']\n"
            "targets = {review = 'prompts/x.py:plan', ops = '../shared', more = 'package.module'}",
            "prompts",
            "../shared",
        )
        (folder / "prompts" / "x.py").touch()

        assert find_configuration(folder).targets == (
            f"{folder}/prompts",
            f"a={folder}/../shared",
            f"review={folder}/prompts/x.py:plan",
            f"ops={folder}/../shared",
            "more=package.module",
        )

    def test_path_with_an_equals_sign(self, project):
        """An existing path is not a target with a prefix."""
        folder = project("[tool.promptkit]\ntarget = 'a=b'", "a=b")

        assert find_configuration(folder).targets == (f"{folder}/a=b",)


class TestErrors:
    @pytest.mark.parametrize(
        ("configuration", "message"),
        [
            (
                "tool.promptkit.targetz = 'x'",
                "[tool.promptkit] has no setting 'targetz': did you mean 'target'?",
            ),
            (
                "tool.promptkit.targets = 'x'",
                (
                    """[tool.promptkit] targets must be a table of targets by prefix, such as """
                    """{review = "team/prompts"}, not 'x'"""
                ),
            ),
            (
                "tool.promptkit.targets = {ops = ''}",
                (
                    """[tool.promptkit] targets must be a table of targets by prefix, such as """
                    """{review = "team/prompts"}, not {'ops': ''}"""
                ),
            ),
            (
                "tool.promptkit.targets = {ops = 'x', Ops = 'y'}",
                (
                    "[tool.promptkit] targets: 'Ops' is not a valid prefix: a prefix must have 1 to 32 "
                    "characters: a-z, digits, '-' and '_'; it must start with a letter and cannot end with "
                    "'-' or '_'"
                ),
            ),
            (
                "tool.promptkit.zzz = 1",
                (
                    "[tool.promptkit] has no setting 'zzz': choose one of target, targets, markdown, "
                    "clients, ignore, fail-on, elicit, serve, server"
                ),
            ),
            ("tool.promptkit.elicit = 0", "[tool.promptkit] elicit must be true or false, not 0"),
            (
                "tool.promptkit.target = ''",
                "[tool.promptkit] target must be a folder, a file or a module, or a list of them, not ''",
            ),
            (
                "tool.promptkit.target = 5",
                "[tool.promptkit] target must be a folder, a file or a module, or a list of them, not 5",
            ),
            (
                "tool.promptkit.target = []",
                "[tool.promptkit] target must be a folder, a file or a module, or a list of them, not []",
            ),
            (
                "tool.promptkit.target = ['']",
                "[tool.promptkit] target must be a folder, a file or a module, or a list of them, not ['']",
            ),
            ("tool.promptkit.clients = 'zed'", "[tool.promptkit] clients must be a list of names, not 'zed'"),
            ("tool.promptkit.ignore = [311]", "[tool.promptkit] ignore must be a list of codes, not [311]"),
            (
                "tool.promptkit.clients = ['zed', 'zedd']",
                "[tool.promptkit] clients: unknown client 'zedd': did you mean 'zed'?",
            ),
            (
                "tool.promptkit.ignore = ['PK207', 'PK2077']",
                "[tool.promptkit] ignore: unknown code 'PK2077'; did you mean 'PK207'?",
            ),
            ("tool.promptkit.serve = true", "[tool.promptkit] serve must be a table of options, not True"),
            ("tool.promptkit = 5", "[tool.promptkit] must be a table"),
        ],
    )
    def test_invalid_settings_are_rejected(self, configuration, message, project):
        """Unknown keys and invalid values are rejected, with the file and the valid choices."""
        folder = project(configuration)

        with pytest.raises(ConfigurationError) as caught:
            find_configuration(folder)

        assert str(caught.value) == f"{folder / 'pyproject.toml'}: {message}"

    @pytest.mark.parametrize("text", [b"[tool.promptkit\n", b"[tool.promptkit]\ntarget = '\xff'\n"])
    def test_invalid_toml_is_an_error(self, text, project):
        """Invalid TOML is an error with its location, unless the file does not mention promptkit."""
        folder = project()
        (folder / "pyproject.toml").write_bytes(text)
        with pytest.raises(ConfigurationError, match="it is not valid TOML: "):
            find_configuration(folder)

        (folder / "pyproject.toml").write_text("[broken")
        assert find_configuration(folder) == Configuration()

    def test_byte_order_mark(self, project):
        """A byte order mark before the configuration is ignored."""
        folder = project()
        (folder / "pyproject.toml").write_text("[tool.promptkit]\nfail-on = 'warning'\n", "utf-8-sig")

        assert find_configuration(folder).fail_on == "warning"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_an_unreadable_file_is_an_error(self, project):
        """A file that cannot be read is an error."""
        folder = project()
        (folder / "pyproject.toml").chmod(0)

        with pytest.raises(ConfigurationError, match="it cannot be read: Permission denied"):
            find_configuration(folder)

    def test_check_keys_suggests_the_nearest_key(self):
        """`check_keys` rejects unknown keys of any table with the nearest key."""
        with pytest.raises(
            PromptkitError, match=r"^f: \[tool\.promptkit\.serve\] has no .* did you mean 'grace'\?$"
        ):
            check_keys({"grase": 1}, ("grace", "rate"), "f", "tool.promptkit.serve")
        check_keys({"grace": 1}, ("grace", "rate"), "f", "tool.promptkit.serve")


class TestTarget:
    def test_the_configured_target_takes_precedence(self, project):
        """The configured target takes precedence, then the folder `recipes`, then the folder `prompts`."""
        folder = project("", "prompts")
        assert find_targets(folder) == (str(folder / "prompts"),)
        (folder / "recipes").mkdir()
        assert find_targets(folder) == (str(folder / "recipes"),)
        project("[tool.promptkit]\ntarget = 'prompts'")
        assert find_targets(folder) == (str(folder / "prompts"),)

    def test_a_missing_target_is_an_error(self, tmp_path, monkeypatch):
        """Without any target, the error says what to do."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "recipes").touch()

        with pytest.raises(
            LoadError, match=r"there is no folder recipes or prompts here: pass a target, or set one"
        ):
            find_targets()

    def test_a_target_in_the_current_folder_is_a_relative_path(self, project, monkeypatch):
        """A target in the current folder is returned as a relative path."""
        monkeypatch.chdir(project("", "recipes"))

        assert [*map(Path, find_targets())] == [Path("recipes")]
