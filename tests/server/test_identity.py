"""The identity of a server: from the project of its recipes, and from values that override it."""

import json
from base64 import b64decode
from importlib.metadata import version

import pytest

from promptkit import asgi
from promptkit.errors.exceptions import ConfigurationError
from promptkit.language.media import Icon
from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.session import Session
from promptkit.server.identity import UNKNOWN, find_server_info
from tests.wire import MODERN, check, initialize, line, modern

PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

PROJECT = """
[project]
name = "acme-prompts"
version = "3.2.1"
description = "Prompts of Acme."
urls = {"Home page" = "https://prompts.acme.example"}

[tool.promptkit.server]
title = "Acme prompts"
icons = ["logo.png", {src = "https://acme.example/logo.svg", sizes = ["any"], theme = "dark"}]
instructions = {file = "instructions.md"}
"""

#: All members of the identity in PROJECT.
IDENTITY = ServerInfo(
    "acme-prompts",
    "3.2.1",
    "Review with `review`.",
    "Acme prompts",
    "Prompts of Acme.",
    "https://prompts.acme.example",
    (Icon("https://acme.example/logo.svg", sizes=["any"], theme="dark"),),
)


@pytest.fixture
def project(tmp_path, recipes):
    """A function that writes a ``pyproject.toml``, and returns the folder of the recipes below it."""

    def write(text):
        folder = recipes(
            "acme/prompts", greet="from promptkit import prompt\n\n@prompt\ndef greet(): return 'hi'"
        )
        (folder.parent / "pyproject.toml").write_text(text, encoding="utf-8")
        (folder.parent / "logo.png").write_bytes(PNG)
        (folder.parent / "instructions.md").write_text("Review with `review`.\n", encoding="utf-8")
        return folder

    return write


def test_project_describes_its_server(project):
    """Name, version, description and website come from [project], the rest from [tool.promptkit.server]."""
    info = find_server_info([str(project(PROJECT))])

    assert info.icons[0].src.startswith("data:image/png;base64,iVBOR")
    assert (*info.icons[1:],) == IDENTITY.icons
    assert [getattr(info, name) for name in ServerInfo.__struct_fields__[:-1]] == [
        getattr(IDENTITY, name) for name in ServerInfo.__struct_fields__[:-1]
    ]


def test_settings_override_the_project(project):
    """[tool.promptkit.server] overrides [project], and options override both."""
    text = PROJECT + 'name = "Acme"\nversion = "4"\ndescription = "D."\nwebsite = "https://acme.example"\n'
    folder = project(text)

    info = find_server_info([str(folder)])
    chosen = find_server_info([str(folder)], name="mine", version=None, icons=(), instructions="Hello.")

    assert (info.name, info.version, info.description) == ("Acme", "4", "D.")
    assert info.website == "https://acme.example"
    assert (chosen.name, chosen.version, chosen.instructions) == ("mine", "4", "Hello.")
    assert chosen.icons == info.icons


class TestVersions:
    def test_dynamic_version_comes_from_the_installed_distribution(self, project):
        """
        Without a version in the file, the server has the version of the project's installed distribution.
        """
        folder = project('[project]\nname = "msgspec"\ndynamic = ["version"]\n')

        assert find_server_info([str(folder)]).version == version("msgspec")

    def test_unknown_version(self, project):
        """A project that is not installed has the version 0, never promptkit's."""
        folder = project('[project]\nname = "acme-prompts"\ndynamic = ["version"]\n')

        assert find_server_info([str(folder)]) == ServerInfo("acme-prompts", "0")

    def test_installed_module(self):
        """A module of an installed package has the name and the version of its distribution."""
        assert find_server_info(["ruamel.yaml"]).name == "ruamel.yaml"
        assert find_server_info(["msgspec:json"]) == ServerInfo("msgspec", version("msgspec"))

    @pytest.mark.parametrize("target", ["nowhere", "no/where", "1 2"])
    def test_missing_target(self, target):
        """A target that does not exist has no identity; loading it reports the error."""
        assert find_server_info([target]) == UNKNOWN

    def test_environment_in_a_project(self, project):
        """Recipes in the site-packages of a project's environment do not belong to that project."""
        installed = project(PROJECT).parent / ".venv" / "lib" / "site-packages" / "other"
        installed.mkdir(parents=True)

        assert find_server_info([str(installed)]) == UNKNOWN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.promptkit.server]\ntitel = 'x'", "no setting 'titel': did you mean 'title'?"),
        ("[tool.promptkit.server]\nname = 3", "name must be text"),
        ('[tool.promptkit.server]\ntitle = "a\\u001b"', "title must be text"),
        ("[project]\nname = ' '", "[project] name must be text"),
        ("[tool.promptkit.server]\nwebsite = 'acme.example'", "website must be a URL"),
        ("[tool.promptkit.server]\nwebsite = 'https://['", "website must be a URL"),
        ("[tool.promptkit.server]\nicons = 'logo.png'", "icons must be a list"),
        ("[tool.promptkit.server]\nicons = [3]", "icons must be URIs"),
        ("[tool.promptkit.server]\nicons = ['none.png']", "'none.png' cannot be read"),
        ("[tool.promptkit.server]\nicons = ['../../secret']", "'../../secret' cannot be read"),
        ("[tool.promptkit.server]\nicons = ['pyproject.toml']", "is not an image"),
        ("[tool.promptkit.server]\nicons = [{src = 'logo.png', size = '1x1'}]", "did you mean 'sizes'?"),
        ("[tool.promptkit.server]\nicons = [{src = 'logo.png', theme = 'red'}]", "icons: "),
        ("[tool.promptkit.server]\ninstructions = 3", "instructions must be text"),
        ("[tool.promptkit.server]\ninstructions = {file = 'logo.png'}", "'logo.png' is not UTF-8"),
        ("tool.promptkit.server = 3", "server must be a table"),
        ("project = 3", "project must be a table"),
        ("[project", "it is not valid TOML"),
    ],
)
def test_invalid_settings_are_rejected(text, message, project):
    """Each invalid setting is an error that names the file and the setting."""
    folder = project(text)

    with pytest.raises(ConfigurationError) as caught:
        find_server_info([str(folder)])

    assert message in str(caught.value)
    assert str(caught.value).startswith(str(folder.parent / "pyproject.toml"))


def reply_to(message, revision, method):
    """
    Send the first message of a connection, and return its result, which must match the published schema.
    """
    (reply,) = Session(IDENTITY, Capabilities()).receive_data(line(message))
    answer = json.loads(reply.line)
    check(answer, revision, {answer["id"]: method})
    return answer["result"]


@pytest.mark.parametrize(
    ("revision", "members"),
    [
        ("2024-11-05", {"name", "version"}),
        ("2025-03-26", {"name", "version"}),
        ("2025-06-18", {"name", "version", "title"}),
        ("2025-11-25", {"name", "version", "title", "description", "websiteUrl", "icons"}),
    ],
)
def test_handshake_has_the_fields_of_the_revision(revision, members):
    """A field is sent only in revisions whose schema defines it. Every revision has instructions."""
    result = reply_to(initialize(revision), revision, "initialize")

    assert (set(result["serverInfo"]), result["instructions"]) == (members, "Review with `review`.")


def test_discovery_has_the_whole_identity():
    """The result of `server/discover` has all fields, and other results only the name and the version."""
    key = "io.modelcontextprotocol/serverInfo"
    info = reply_to(modern(1, "server/discover"), MODERN, "server/discover")["_meta"][key]

    assert info["websiteUrl"] == "https://prompts.acme.example"
    assert info["icons"] == [{"src": "https://acme.example/logo.svg", "sizes": ["any"], "theme": "dark"}]


def test_asgi_application_has_the_identity_of_the_project(project, tmp_path):
    """`asgi.app` finds the project of its target, and its parameters override the project."""
    folder, file = project(PROJECT), tmp_path / "other.md"
    file.write_text("From a file.", encoding="utf-8")

    plain = asgi.app(folder, watch=False)._settings.identity
    chosen = asgi.app(
        folder,
        watch=False,
        name="mine",
        version="5",
        title="Mine",
        website="https://mine.example",
        icons=["https://mine.example/i.png"],
        instructions=file,
    )._settings.identity

    assert (plain.name, plain.version, plain.title) == ("acme-prompts", "3.2.1", "Acme prompts")
    assert chosen == ServerInfo(
        "mine",
        "5",
        "From a file.",
        "Mine",
        "Prompts of Acme.",
        "https://mine.example",
        (Icon("https://mine.example/i.png"),),
    )
