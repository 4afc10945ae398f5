"""
Bundles that hosts install with one click: MCPB for Claude Desktop, and a plugin for Claude Code.

See https://github.com/anthropics/mcpb/blob/main/MANIFEST.md and https://code.claude.com/docs/en/plugins-reference.
Both run the packaged recipes with uv, which installs promptkit and the other requirements.
"""

import json
import zipfile
from base64 import b64decode
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any, Final

import tomli_w
from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.cli.package_metadata import Metadata, environment_variables
from promptkit.clients.installed_files import files_by_skill
from promptkit.exports.client_files import ClientFileError, claude_command, freeze
from promptkit.protocol.capabilities import ServerInfo

#: The file that starts the server. uv reads its requirements from the comment.
SERVER: Final = "server.py"

_SERVER: Final = '''\
# /// script
# requires-python = {python}
# dependencies = {dependencies}
# ///
"""Serves the prompts of {name}."""

import os
import sys

from promptkit.cli.packaged import main

SERVED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "served")
TARGETS = [prefix + os.path.join(SERVED, path) for prefix, path in {targets!r}]

if __name__ == "__main__":
    sys.exit(main({name!r}, {version!r}, TARGETS, {options!r}))
'''

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
            The files of the recipes and of their project, by path.

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

    def mcpb(self) -> bytes:
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

    def plugin(self, notes: list[str]) -> dict[str, bytes]:
        """
        Return the files of a plugin: the server, the skills, and commands for prompts that can be frozen.

        Args:
            notes:
                Receives why prompts have no command.
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
        text = _SERVER.format(
            name=self.metadata.name,
            version=self.metadata.version,
            python=json.dumps(self.metadata.requires_python),
            dependencies=json.dumps(self.metadata.dependencies),
            targets=self.targets,
            options=self.options,
        )
        return {SERVER: text.encode(), **{f"served/{path}": data for path, data in self.served.items()}}

    def _manifest(self) -> dict[str, Any]:
        """Return the manifest of an MCPB. Users are asked for the variables that hold defaults."""
        variables = environment_variables(self.catalog)
        config: dict[str, Any] = {"command": "uv", "args": ["run", "--quiet", f"${{__dirname}}/{SERVER}"]}
        if variables:
            config["env"] = {each["name"]: f"${{user_config.{each['name']}}}" for each in variables}
        manifest = {
            "manifest_version": "0.4",
            "name": self.metadata.name,
            "display_name": self.identity.title,
            "version": self.metadata.version,
            "description": self.metadata.description,
            "long_description": self.identity.instructions,
            "author": self._author(),
            "homepage": self.identity.website,
            "icon": "icon.png" if self._icon() is not None else None,
            "server": {"type": "uv", "entry_point": SERVER, "mcp_config": config},
            "prompts_generated": True,
            "keywords": self.metadata.keywords,
            "license": self.metadata.license,
            "compatibility": {"runtimes": {"python": self.metadata.requires_python}},
            "user_config": {
                each["name"]: {
                    "type": "string",
                    "title": each["name"],
                    "description": each.get("description", f"The variable {each['name']}"),
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
        """Return the first author with a name; hosts require one."""
        named = (author for author in self.metadata.authors if author.get("name"))
        author = next(named, {"name": self.identity.title or self.metadata.name})
        return {key: value for key, value in author.items() if key in ("name", "email")}

    def _icon(self) -> bytes | None:
        """Return the first icon that is a PNG of the project."""
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
