"""
The identity of a server. It comes from the project that contains the recipes, and can be overridden.

A project describes its server in ``[project]`` and ``[tool.promptkit.server]`` of its ``pyproject.toml``.
"""

import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from msgspec import structs

from promptkit.compiler.configuration import check_keys, read_pyproject
from promptkit.errors.exceptions import ConfigurationError
from promptkit.files.folder import Folder
from promptkit.files.reading import INSTALL_FOLDERS, has_untrusted_owner, read_regular_file
from promptkit.fragments.invisible import escape_invisible
from promptkit.language.media import IMAGE_TYPES, Icon, sniff
from promptkit.loader.targets import locate_target, project_of, split_prefix, split_target
from promptkit.protocol.capabilities import ServerInfo

#: The identity of a server whose recipes do not belong to a project.
UNKNOWN: Final = ServerInfo("promptkit", "0")

#: The settings in ``[tool.promptkit.server]``.
SETTINGS: Final = ("name", "version", "title", "description", "website", "icons", "instructions")

#: The settings of an icon.
ICON_SETTINGS: Final = ("src", "mime-type", "sizes", "theme")

#: The maximum sizes of an instructions file and of an icon file, in bytes. Every client gets the content of
#: these files when it connects.
MAX_INSTRUCTIONS: Final = 1 << 16
_MAX_ICON: Final = 1 << 16

#: The labels in ``[project.urls]``, in normalized form, that name the project's website.
_WEBSITES: Final = ("homepage", "website")

_SVG: Final = "image/svg+xml"


def find_server_info(targets: Sequence[str], **overrides: Any) -> ServerInfo:
    """
    Return the identity of a server.

    Args:
        targets:
            The served targets. The first target determines the project.

        overrides:
            Values that override those of the project, unless they are None or empty.

    Raises:
        ConfigurationError: If the project's ``pyproject.toml`` is invalid.
    """
    return structs.replace(
        _read_target_info(targets[0]), **{key: value for key, value in overrides.items() if value}
    )


def find_project_file(target: str) -> str | None:
    """
    Return the path of the ``pyproject.toml`` of a target's project, whether or not the file exists.

    The result is None if the target does not exist or is installed in an environment, or if the file belongs
    to another user.
    """
    target = split_prefix(target)[1]
    location = locate_target(target)
    origin = _module_folder(_top_module(target)) if location is None else location[0]
    project = None if origin is None else project_of(origin)
    if origin is None or project is None:
        return None
    if not INSTALL_FOLDERS.isdisjoint(Path(os.path.relpath(origin, os.path.dirname(project))).parts):
        return None  # the project, if any, is the one that contains the environment
    file = os.path.join(project, "pyproject.toml")
    return None if has_untrusted_owner(file, origin) else file


def _read_target_info(target: str) -> ServerInfo:
    """Return the identity of a target's project or, for an installed module, of its distribution."""
    if (file := find_project_file(target)) is not None:
        document = read_pyproject(file)
        return UNKNOWN if document is None else read_server_info(document, file)
    target = split_prefix(target)[1]
    return UNKNOWN if locate_target(target) else _read_module_info(_top_module(target))


def _top_module(target: str) -> str:
    return split_target(target)[0].partition(".")[0]


def _module_folder(module: str) -> str | None:
    """Return the folder of a top-level package, or the folder that contains a module; None if not found."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):  # the module has no spec, or the name is invalid
        return None
    if spec is None or spec.origin is None:
        return None
    return os.path.dirname(os.path.realpath(spec.origin))


def _read_module_info(module: str) -> ServerInfo:
    """Return the identity of the distribution that installed a module."""
    from importlib.metadata import packages_distributions  # reads the files of all installed packages

    name = next(iter(packages_distributions().get(module, ())), None)
    return UNKNOWN if name is None else ServerInfo(name, _installed_version(name) or UNKNOWN.version)


def _installed_version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # imports an email parser

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def read_server_info(document: Mapping[str, Any], file: str) -> ServerInfo:
    """
    Return the identity that a ``pyproject.toml`` describes.

    Args:
        document:
            The content of the file.

        file:
            The path of the file, for errors. Paths in the document are relative to the folder of this file.

    Raises:
        ConfigurationError: If a setting is unknown or invalid.
    """
    reader = _TableReader(file, "project", _table(document, "project", file))
    table = document
    for key in ("tool", "promptkit", "server"):
        table = _table(table, key, file)
    check_keys(table, SETTINGS, file, "tool.promptkit.server")
    server = _TableReader(file, "tool.promptkit.server", table)
    project_name = reader.text("name")
    version = server.text("version") or reader.text("version")
    if version is None and project_name is not None:
        version = _installed_version(project_name)
    return ServerInfo(
        server.text("name") or project_name or UNKNOWN.name,
        version or UNKNOWN.version,
        server.instructions(),
        server.text("title"),
        server.text("description") or reader.text("description"),
        server.website() or reader.homepage(),
        server.icons(),
    )


def _table(document: Mapping[str, Any], key: str, file: str) -> Mapping[str, Any]:
    table = document.get(key, {})
    if not isinstance(table, Mapping):
        raise ConfigurationError(file, f"{key} must be a table")
    return table


class _TableReader:
    """
    A reader for the settings in one table.

    Args:
        file:
            The ``pyproject.toml``.

        name:
            The table's name in the file.

        table:
            The table.
    """

    def __init__(self, file: str, name: str, table: Mapping[str, Any]) -> None:
        self._file, self._name, self._table = file, name, table

    def text(self, key: str) -> str | None:
        """Return a text setting as a single line; None if it is not set."""
        value = self._table.get(key)
        if value is None:
            return None
        text = " ".join(value.split()) if isinstance(value, str) else ""
        if not text or escape_invisible(text, one_line=True) != text:
            self._fail(f"{key} must be text that clients can show, not {value!r}")
        return text

    def website(self) -> str | None:
        """Return the URL in ``website``; None if it is not set."""
        url = self.text("website")
        if url is not None and not is_website(url):
            self._fail(f"website must be a URL such as https://prompts.example, not {url!r}")
        return url

    def homepage(self) -> str | None:
        """Return the URL of the project's website from ``[project.urls]``; None if there is none."""
        urls = self._table.get("urls")
        labels = urls.items() if isinstance(urls, Mapping) else ()
        by_label = {re.sub(r"[\W_]", "", label).lower(): url for label, url in labels}
        return next((url for label in _WEBSITES if is_website(url := by_label.get(label))), None)

    def instructions(self) -> str | None:
        """
        Return the instructions, given as a string or as a table that names a file; None if they are not set.
        """
        value = self._table.get("instructions")
        if isinstance(value, Mapping) and [*value] == ["file"] and isinstance(file := value["file"], str):
            data = self._read("instructions", file, MAX_INSTRUCTIONS)
            try:
                value = data.decode("utf-8-sig")
            except UnicodeDecodeError:
                self._fail(f"instructions: {file!r} is not UTF-8")
        if value is not None and not isinstance(value, str):
            self._fail(f'instructions must be text, or {{ file = "..." }}, not {value!r}')
        return (value or "").strip() or None

    def icons(self) -> tuple[Icon, ...]:
        """
        Return the icons. Each icon is set as a URI, as a file in the project, or as a table with a ``src``.
        """
        values = self._table.get("icons", [])
        if not isinstance(values, list):
            self._fail(f"icons must be a list, not {values!r}")
        return tuple(map(self._icon, values))

    def _icon(self, value: Any) -> Icon:
        members: Any = {"src": value} if isinstance(value, str) else value
        if not isinstance(members, Mapping) or not isinstance(members.get("src"), str):
            self._fail(f"icons must be URIs, files or tables with a src, not {value!r}")
        check_keys(members, ICON_SETTINGS, self._file, f"{self._name}.icons")
        source = members["src"]
        try:
            if not is_uri(source):
                source = image_uri(source, self._read("icons", source, _MAX_ICON))
            sizes, theme = members.get("sizes", ()), members.get("theme")
            return Icon(source, mime_type=members.get("mime-type"), sizes=sizes, theme=theme)
        except (TypeError, ValueError) as error:
            self._fail(f"icons: {error}")

    def _read(self, key: str, path: str, limit: int) -> bytes:
        """Return the content of a file in the project."""
        folder = Folder(os.path.dirname(self._file))
        try:
            return folder.read(folder.resolve(path), limit)
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            self._fail(f"{key}: {path!r} cannot be read: {reason}")

    def _fail(self, reason: str) -> NoReturn:
        raise ConfigurationError(self._file, f"[{self._name}] {reason}") from None


def is_website(url: object) -> bool:
    """Return whether a value is the URL of a website."""
    if not isinstance(url, str) or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
    except ValueError:  # invalid brackets
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def is_uri(source: str) -> bool:
    """
    Return whether an icon's source is a URI, not a path. A single letter before a colon is a Windows drive.
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", source) is not None


def image_uri(path: str, data: bytes) -> str:
    """
    Return a ``data:`` URI that contains an image.

    Raises:
        ValueError: If the file is not an image that clients can show.
    """
    is_svg = path.lower().endswith(".svg") and b"<svg" in data
    mime = _SVG if is_svg else sniff(data)
    if mime not in IMAGE_TYPES | {_SVG}:
        msg = f"{path!r} is not an image: use PNG, JPEG, WebP, GIF or SVG"
        raise ValueError(msg)
    return f"data:{mime};base64,{b64encode(data).decode()}"


def read_instructions(path: str | os.PathLike[str]) -> str:
    """
    Return the instructions in a file.

    Raises:
        ValueError: If the file cannot be read, is too large, or is not UTF-8.
    """
    try:
        return _read_file(path, MAX_INSTRUCTIONS).decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        msg = f"{os.fspath(path)!r} is not UTF-8"
        raise ValueError(msg) from None


def _read_file(path: str | os.PathLike[str], limit: int) -> bytes:
    try:
        return read_regular_file(path, limit)
    except OSError as error:
        msg = f"{os.fspath(path)!r} cannot be read: {error.strerror}"
        raise ValueError(msg) from None
