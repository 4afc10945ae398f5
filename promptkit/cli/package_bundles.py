"""
Files for registries and hosts: ``server.json`` for the MCP registry, and bundles that install with one click.

The bundles are MCPB for Claude Desktop, and a plugin for Claude Code, see
https://github.com/anthropics/mcpb/blob/main/MANIFEST.md and https://code.claude.com/docs/en/plugins-reference.
Both run the packaged recipes with uv, which installs promptkit and the other requirements.
"""

import json
import re
import zipfile
from base64 import b64decode
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from textwrap import shorten
from typing import Any, Final

import tomli_w
from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.cli.package_project import Metadata, PackageError
from promptkit.cli.repository import Repository, RevisionError
from promptkit.clients.installed_files import files_by_skill
from promptkit.exports.client_files import ClientFileError, claude_command, freeze
from promptkit.protocol.capabilities import ServerInfo

#: The file that starts the server. uv reads its requirements from a comment at the top of the file.
SERVER: Final = "server.py"

_SCRIPT: Final = """\
# /// script
# requires-python = {python}
# dependencies = {dependencies}
# ///
"""

#: The code that serves the packaged recipes.
MAIN: Final = '''\
"""Serve these prompts, with the options of `promptkit serve`, or run another command on them."""

import os
import sys

from promptkit.cli.packaged import main as run

SERVED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "served")
TARGETS = [prefix + os.path.join(SERVED, path) for prefix, path in {targets!r}]


def main():
    return run({name!r}, {version!r}, TARGETS, {options!r})


if __name__ == "__main__":
    sys.exit(main())
'''

_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

#: Limits that the schema sets.
_NAME: Final = r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+"
_MAX_NAME: Final = 200
_MAX_DESCRIPTION: Final = 100

#: Owner and repository in a GitHub URL, in any form that git accepts.
_GITHUB: Final = (
    r"(?:\w+://)?(?:[^@/]*@)?(?:www\.|ssh\.)?github\.com(?::\d+)?[:/]([\w-]+)/([\w.-]+?)(?:\.git)?/?"
)

#: A fixed time, for reproducible bundles.
_TIMESTAMP: Final = (2020, 1, 1, 0, 0, 0)


class Bundle(Struct, frozen=True):
    """
    The content of a bundle.

    Args:
        metadata:
            The metadata of the package.

        identity:
            The identity of the server.

        catalog:
            The prompts and skills.

        served:
            The files of the recipes and of their project, keyed by path.

        targets:
            The prefix and the path of each folder of recipes.

        options:
            The options of `serve`.
    """

    metadata: Metadata
    identity: ServerInfo
    catalog: Catalog
    served: Mapping[str, bytes]
    targets: list[tuple[str, str]]
    options: list[str]

    def build_mcpb(self) -> bytes:
        """Return an MCPB file: a zip archive with a manifest and the server."""
        files = {"manifest.json": _json(self._manifest()), **self._server_files()}
        files["pyproject.toml"] = tomli_w.dumps(
            {
                "project": {
                    "name": self.metadata.name,
                    "version": self.metadata.version,
                    "requires-python": self.metadata.requires_python,
                    "dependencies": self.metadata.dependencies,
                }
            }
        ).encode()
        if (icon := self._icon()) is not None:
            files["icon.png"] = icon
        archive = BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
            for path, data in sorted(files.items()):
                entry = zipfile.ZipInfo(path, _TIMESTAMP)
                entry.external_attr = 0o644 << 16
                bundle.writestr(entry, data, zipfile.ZIP_DEFLATED)
        return archive.getvalue()

    def build_plugin(self, notes: list[str]) -> dict[str, bytes]:
        """
        Return the files of a plugin: the server, the skills, and commands for prompts that can be frozen.

        Args:
            notes:
                The list to which to add a message for each prompt that cannot become a command.
        """
        server = {"command": "uv", "args": ["run", "--quiet", f"${{CLAUDE_PLUGIN_ROOT}}/{SERVER}"]}
        files = {
            ".claude-plugin/plugin.json": _json(self._plugin_manifest()),
            ".mcp.json": _json({"mcpServers": {self.metadata.name: server}}),
            **self._server_files(),
            **dict(self._commands(notes)),
        }
        for name, skill in files_by_skill(self.catalog.skills).items():
            files |= {f"skills/{name}/{path}": content.data for path, content in skill.items()}
        return files

    def _server_files(self) -> dict[str, bytes]:
        script = _SCRIPT.format(
            python=json.dumps(self.metadata.requires_python),
            dependencies=json.dumps(self.metadata.dependencies),
        )
        text = script + MAIN.format(
            name=self.metadata.name,
            version=self.metadata.version,
            targets=self.targets,
            options=self.options,
        )
        return {SERVER: text.encode(), **{f"served/{path}": data for path, data in self.served.items()}}

    def _manifest(self) -> dict[str, Any]:
        """Return the manifest of the MCPB. The host asks users for the variables that contain defaults."""
        variables = environment_variables(self.catalog)
        config: dict[str, Any] = {"command": "uv", "args": ["run", "--quiet", f"${{__dirname}}/{SERVER}"]}
        if variables:
            config["env"] = {each["name"]: f"${{user_config.{each['name']}}}" for each in variables}
        manifest = {
            **self._plugin_manifest(),
            "manifest_version": "0.4",
            "display_name": self.identity.title,
            "long_description": self.identity.instructions,
            "icon": "icon.png" if self._icon() is not None else None,
            "server": {"type": "uv", "entry_point": SERVER, "mcp_config": config},
            "prompts_generated": True,
            "compatibility": {"runtimes": {"python": self.metadata.requires_python}},
            "user_config": {
                each["name"]: {
                    "type": "string",
                    "title": each["name"],
                    "description": each.get("description", f"The environment variable {each['name']}"),
                    "required": False,
                    "sensitive": each.get("isSecret", False),
                }
                for each in variables
            },
        }
        return {key: value for key, value in manifest.items() if value}

    def _plugin_manifest(self) -> dict[str, Any]:
        manifest = {
            "name": self.metadata.name,
            "version": self.metadata.version,
            "description": self.metadata.description,
            "author": self._author(),
            "homepage": self.identity.website,
            "license": self.metadata.license,
            "keywords": self.metadata.keywords,
        }
        return {key: value for key, value in manifest.items() if value}

    def _author(self) -> dict[str, str]:
        """
        Return the first author with a name; if there is none, the server's name.

        The format requires an author.
        """
        named = (author for author in self.metadata.authors if author.get("name"))
        author = next(named, {"name": self.identity.title or self.metadata.name})
        return {key: value for key, value in author.items() if key in ("name", "email")}

    def _icon(self) -> bytes | None:
        """Return the data of the first icon that is embedded as PNG."""
        prefix = "data:image/png;base64,"
        icons = (icon.src.removeprefix(prefix) for icon in self.identity.icons if icon.src.startswith(prefix))
        return next(map(b64decode, icons), None)

    def _commands(self, notes: list[str]) -> Iterator[tuple[str, bytes]]:
        for prompt in self.catalog.prompts:
            try:
                yield f"commands/{prompt.name}.md", claude_command(freeze(prompt, {}, lossy=False))
            except ClientFileError as error:
                notes.append(f"the plugin has no command for {prompt.name!r}: {error.reason}")


def _json(value: Any) -> bytes:
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n".encode()


def registry_identity(requested: str | None, package: str, root: Path) -> tuple[str, str | None]:
    """
    Return the name of a server in the registry, and the URL of its source repository, if known.

    Args:
        requested:
            The name from the command line; None to derive it from the repository on GitHub.

        package:
            The name of the package, which is used if there is no repository on GitHub.

        root:
            The project's folder.

    Raises:
        PackageError: If the name is invalid.
    """
    match = re.fullmatch(_GITHUB, _remote_url(root), re.IGNORECASE)
    name = requested or (f"io.github.{match[1]}/{match[2]}" if match else f"local/{package}")
    if len(name) > _MAX_NAME or not re.fullmatch(_NAME, name):
        msg = (
            f"{name!r} is not a registry name: use NAMESPACE/NAME with at most {_MAX_NAME} characters, "
            f"for example --server-name io.github.acme/prompts"
        )
        raise PackageError(msg)
    return name, f"https://github.com/{match[1]}/{match[2]}" if match else None


def _remote_url(root: Path) -> str:
    """Return the URL of git's remote ``origin``; ``""`` if there is none."""
    try:
        return Repository(str(root)).run_git("remote", "get-url", "origin")
    except RevisionError:
        return ""


def server_entry(name: str, repository: str | None, metadata: Metadata, catalog: Catalog) -> dict[str, Any]:
    """
    Return the content of ``server.json``.

    Args:
        name:
            The name of the server in the registry.

        repository:
            The URL of its source repository, if known.

        metadata:
            The metadata of the package. A long description is truncated at a word boundary.

        catalog:
            The prompts, whose arguments can read environment variables.
    """
    package: dict[str, Any] = {
        "registryType": "pypi",
        "identifier": metadata.name,
        "version": metadata.version,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
    }
    if variables := environment_variables(catalog):
        package["environmentVariables"] = variables
    return {
        "$schema": _SCHEMA,
        "name": name,
        "description": _shorten(metadata.description),
        **({"repository": {"url": repository, "source": "github"}} if repository else {}),
        "version": metadata.version,
        "packages": [package],
    }


def environment_variables(catalog: Catalog) -> list[dict[str, Any]]:
    """Return the environment variables that contain defaults of arguments, in the registry's format."""
    entries: dict[str, dict[str, Any]] = {}
    for argument in (argument for declared in catalog.declared for argument in declared.arguments.ordered):
        if variable := argument.arg.env:
            entry = entries.setdefault(variable, {"name": variable})
            if argument.arg.description:
                entry.setdefault("description", argument.arg.description)
            if argument.arg.secret:
                entry["isSecret"] = True
    return [entries[name] for name in sorted(entries)]


def _shorten(text: str) -> str:
    cut = shorten(text, _MAX_DESCRIPTION, placeholder=" …")
    return cut if cut.strip(" …") else f"{text[: _MAX_DESCRIPTION - 1]}…"
