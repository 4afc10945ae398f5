"""
``promptkit package``: build a wheel of the recipes, which users install and run with one command.

The folder of the recipes keeps its name, so that imports of its modules still work. The folder is inside a
Python package that is named after the wheel, so that no two wheels contain the same file.
"""

import json
import keyword
import os
import re
import stat
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, suppress
from fnmatch import fnmatchcase
from glob import has_magic
from itertools import chain
from pathlib import Path
from typing import Any, Final

import tomli_w
from flit_core import buildapi  # type: ignore[import-untyped]
from msgspec import structs, to_builtins
from packaging.utils import canonicalize_name

from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail, format_count, print_diagnostics
from promptkit.cli.loading import load_catalog, load_recipes, run_promptkit
from promptkit.cli.options import serve_arguments
from promptkit.cli.output import Output
from promptkit.cli.package_bundles import MAIN, Bundle, registry_identity, server_entry
from promptkit.cli.package_project import (
    Contents,
    Metadata,
    PackagedFile,
    PackageError,
    SourceReader,
    find_requirements,
    find_secrets,
    read_contents,
    read_metadata,
)
from promptkit.compiler.configuration import find_configuration, read_pyproject
from promptkit.declarations.skill_files import is_omitted
from promptkit.errors.distribution import quote_for_shell
from promptkit.errors.exceptions import shortened
from promptkit.files.folder import Folder
from promptkit.files.scratch import scratch_folder
from promptkit.fragments.invisible import escape_invisible
from promptkit.loader.targets import (
    is_markdown_target,
    is_project,
    locate_target,
    project_root,
    split_prefix,
)
from promptkit.protocol.capabilities import ServerInfo
from promptkit.server.identity import read_server_info

#: The options of `serve` that affect what clients list. All other options depend on the machine.
_LISTED: Final = ("name", "page-size", "scopes", "skills-as", "tools", "tools-search")

#: A fixed time, 2020-01-01, for reproducible builds.
_TIMESTAMP: Final = "1577836800"

#: Maximum size of a wheel in bytes, which follows from the limits on its files.
_MAX_WHEEL: Final = 256 << 20

#: The default patterns for license files.
_LICENSES: Final = ("COPYING*", "LICEN[CS]E*", "NOTICE*")

_README: Final = """\
# {name}

{description}

Start the server with [uv](https://docs.astral.sh/uv/). In the configuration of a client, use this command:

```
uvx {name}
```
"""


def run(options: Namespace, output: Output) -> int:
    """
    Check the recipes, write a wheel of them, and write ``server.json``, the wheel's MCP registry entry.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    folders = _find_folders(options.targets)
    markdown = _find_markdown(options.targets, folders)
    if not folders or markdown is None or (len(folders) > 1 and not all(folders)):
        if missing := [target for target in options.targets if locate_target(target) is None]:
            load_recipes(missing)  # reports the missing targets, as in every other command
        targets = " ".join(options.targets)
        hint = "specify one folder, or several folders, each with a prefix, for example review=team/prompts"
        return fail(f"cannot package {targets!r}: {hint}", Exit.USAGE)
    resolved = {prefix: Path(os.path.realpath(folder)) for prefix, folder in folders.items()}
    try:
        return _package(resolved, markdown, options, output)
    except PackageError as error:
        return fail(f"nothing was built: {error}", Exit.FAILED)
    except OSError as error:
        path = "" if error.filename is None else f" ({shortened(str(error.filename))!r})"
        return fail(f"nothing was built: {error.strerror or error}{path}", Exit.FAILED)


def _find_folders(targets: Iterable[str]) -> dict[str, str]:
    """
    Return the folders to package, keyed by prefix.

    The result is empty if a target is not a folder, or if two folders have the same prefix.
    """
    names = [target for target in targets if not is_markdown_target(target)]
    folders = dict(split_prefix(name) for name in names)
    return folders if len(folders) == len(names) and all(map(os.path.isdir, folders.values())) else {}


def _find_markdown(targets: Iterable[str], folders: Mapping[str, str]) -> list[str] | None:
    """Return the patterns for Markdown prompts, relative to *folders*; None if a pattern is outside them."""
    located = [split_prefix(target) for target in targets if is_markdown_target(target)]
    if not {prefix for prefix, _ in located} <= folders.keys():
        return None
    patterns = [os.path.relpath(path, folders[prefix]) for prefix, path in located]
    return None if any(path.startswith(os.pardir) for path in patterns) else [*dict.fromkeys(patterns)]


def _package(folders: Mapping[str, Path], markdown: list[str], options: Namespace, output: Output) -> int:
    """Write the wheel, ``server.json`` and bundles, report their paths, and return the exit code."""
    here = Path.cwd()  # recipes can change it
    out = Folder.named(options.out)
    folder = next(iter(folders.values()))
    if out.path in folders.values():
        msg = "--out is the folder of the recipes, so the next package would contain this one: change --out"
        raise PackageError(msg)
    root = folder if is_project(str(folder)) else Path(project_root(folder))
    metadata, notes = read_metadata(root, options)
    server, repository = registry_identity(options.server_name, metadata.name, root)
    catalog = load_catalog(options.targets)
    print_diagnostics(catalog.diagnostics, output)
    if not catalog.healthy:
        output.send()
        return fail("nothing was built: fix the errors above", Exit.FAILED)
    prompt_count = format_count(len(catalog), "prompt")
    if not metadata.description:
        description = f"{prompt_count} for MCP clients: {', '.join(catalog)}"
        metadata.description = escape_invisible(description, one_line=True)
        notes.append("the package has no description: set one with --description")
    configuration = find_configuration(folder)
    listed = {key: value for key, value in configuration.serve.items() if key in _LISTED}
    serve = structs.replace(configuration, serve=listed)
    reader = SourceReader(find_secrets([configuration, options.configuration], [here, root]))
    contents = [read_contents(path, out.path, reader, prefix) for prefix, path in folders.items()]
    for requirement in chain.from_iterable(find_requirements(part, metadata) for part in contents):
        metadata.dependencies.append(requirement)
        notes.append(f"the package requires {requirement}, which the recipes import")
    patterns = _LICENSES if metadata.license_files is None else metadata.license_files
    licenses = {path: reader.read(root, path) for path in _find_licenses(Folder(root), patterns)}
    readme = readme_text(metadata, _read_readme(root, metadata, reader), server)
    identity = _build_identity(metadata, root)
    words = [*(f"--markdown={pattern}" for pattern in markdown), *serve_arguments(serve)]
    texts = {"README.md": readme, "pyproject.toml": tomli_w.dumps(_build_recipes_pyproject(identity))}
    name, wheel = _build_wheel(metadata, contents, licenses, texts, words)
    entry = server_entry(server, repository, metadata, catalog)
    text = json.dumps(entry, indent=2, ensure_ascii=False)
    served = {f"{part.path}/{path}": file.data for part in contents for path, file in part.files.items()}
    served |= {f"{part.root}pyproject.toml": texts["pyproject.toml"].encode() for part in contents}
    bundle = Bundle(metadata, identity, catalog, served, _packaged_targets(contents), words)
    bundle_files = dict(_build_bundle_files(bundle, options, notes))
    _write(out, {name: wheel, "server.json": f"{text}\n".encode(), **bundle_files})
    paths = [str(Path(options.out, file)) for file in (name, "server.json")]
    output.print_lines([f"built {paths[0]} with {prompt_count}", f"wrote {paths[1]} for {server}"])
    output.print_lines(notes)
    if server.startswith("local/"):
        hint = "set a name with --server-name, such as io.github.acme/prompts"
        output.print_lines([f"{server} cannot be published in the registry: {hint}"])
    output.print_lines([f"next: uvx --from {quote_for_shell(paths[0])} {metadata.name}"])
    return Exit.OK


def _build_bundle_files(bundle: Bundle, options: Namespace, notes: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the bundles that were requested, and add notes about them."""
    name = bundle.metadata.name
    if options.mcpb:
        file = f"{name}-{bundle.metadata.version}.mcpb"
        notes.append(f"wrote {Path(options.out, file)} for Claude Desktop")
        yield file, bundle.build_mcpb()
    if options.plugin:
        folder = f"{name}-plugin"
        notes.append(f"wrote {Path(options.out, folder)} for Claude Code")
        for path, data in bundle.build_plugin(notes).items():
            yield f"{folder}/{path}", data


def _write(out: Folder, files: Mapping[str, bytes]) -> None:
    """Write files. Raises PackageError if that fails, for example because there is a link at the path."""
    try:
        out.create()
        for name, data in files.items():
            out.write(name, data)
    except OSError as error:
        msg = (
            f"cannot write into {str(out.display_root)!r}: {error.strerror} "
            f"({shortened(str(error.filename))})"
        )
        raise PackageError(msg) from None


def _build_wheel(
    metadata: Metadata,
    contents: Sequence[Contents],
    licenses: Mapping[str, PackagedFile],
    project_texts: Mapping[str, str],
    options: list[str],
) -> tuple[str, bytes]:
    """
    Build a wheel reproducibly, and return its name and its content.

    Args:
        metadata:
            The metadata of the package.

        contents:
            The files to package, for each folder of recipes.

        licenses:
            The license files, keyed by path.

        project_texts:
            The text of README.md, and of the pyproject.toml that is placed next to the recipes.

        options:
            The options of `serve` for the recipes.

    Raises:
        PackageError: If the metadata is invalid, or the recipes cannot be served without their project.

        OSError: If a file cannot be written.
    """
    module = _module_name(metadata.name, [part.folder.name for part in contents])
    served = f"{module}/served"
    targets = _packaged_targets(contents)
    texts = {
        **{f"{served}/{part.root}pyproject.toml": project_texts["pyproject.toml"] for part in contents},
        f"{module}/__init__.py": f'"""The prompts of {metadata.name}."""\n',
        f"{module}/__main__.py": MAIN.format(
            name=metadata.name, version=metadata.version, targets=targets, options=options
        ),
        "README.md": project_texts["README.md"],
        "pyproject.toml": tomli_w.dumps(build_pyproject(metadata, module, [*licenses])),
    }
    with scratch_folder("promptkit-package-") as scratch:
        source, built = Folder(scratch, "source"), Folder(scratch, "built")
        for path, file in licenses.items():
            source.write(path, file.data)
        for part in contents:
            for path, file in part.files.items():
                mode = 0o777 if file.is_executable else 0o666
                source.write(f"{served}/{part.path}/{path}", file.data, mode=mode)
        for path, text in texts.items():
            source.write(path, text.encode())
        _check_standalone(source.path / served, targets, options)
        built.create()
        os.environ.setdefault("SOURCE_DATE_EPOCH", _TIMESTAMP)
        try:
            with chdir(source.path):
                name: str = buildapi.build_wheel(str(built))
        except Exception as error:  # noqa: BLE001 (the builder raises errors of many types for invalid metadata)
            msg = f"the wheel builder rejected [project] in pyproject.toml: {error}"
            raise PackageError(msg) from None
        return name, built.read(name, _MAX_WHEEL)


def _packaged_targets(contents: Iterable[Contents]) -> list[tuple[str, str]]:
    """Return the prefix of each packaged folder, in the form for a target, and its path in the package."""
    return [(f"{part.prefix}=" if part.prefix else "", part.path) for part in contents]


def _build_identity(metadata: Metadata, root: Path) -> ServerInfo:
    """Return the identity of the project's server, with the package's name, version and description."""
    file = str(root / "pyproject.toml")
    document = read_pyproject(file) or {}
    fields = {key: value for key, value in to_builtins(metadata).items() if key in ("name", "description")}
    project = {**document.get("project", {}), **fields}
    identity = read_server_info({**document, "project": project}, file)
    return structs.replace(identity, version=metadata.version)


def _build_recipes_pyproject(identity: ServerInfo) -> Mapping[str, Any]:
    """
    Return the content of the pyproject.toml next to the packaged recipes, which is their server's identity.

    The file makes the recipes a separate project, which does not import modules of a surrounding project.
    """
    fields = to_builtins(identity)
    icons = [
        {key.replace("_", "-"): value for key, value in icon.items() if value} for icon in fields["icons"]
    ]
    server = {key: value for key, value in {**fields, "icons": icons}.items() if value}
    return {"tool": {"promptkit": {"server": server}}}


def _check_standalone(served: Path, targets: Iterable[tuple[str, str]], options: Iterable[str]) -> None:
    """Check the packaged recipes outside their project, which is how an installed package loads them."""
    folders = [f"{prefix}{served / path}" for prefix, path in targets]
    patterns = [option for option in options if option.startswith("--markdown=")]
    process = run_promptkit("check", *folders, *patterns, cwd=served)
    if process.returncode:
        report = f"{process.stdout}{process.stderr}".replace(f"{served}{os.sep}", "").strip()
        msg = f"the recipes cannot be served without the project around them:\n{report}"
        raise PackageError(msg)


def _find_licenses(root: Folder, patterns: Iterable[str]) -> list[str]:
    """Return the sorted paths of a project's visible files that match any of *patterns*."""
    paths = set[str]()
    for pattern in patterns:
        folder, _, name = pattern.rpartition("/")
        if has_magic(folder):  # following links to folders might never end
            msg = (
                f"[project] license-files: {pattern!r} has a wildcard in its folder: write the full name "
                "of the folder"
            )
            raise PackageError(msg)
        with suppress(FileNotFoundError, NotADirectoryError):
            for entry, status in root.entries(folder):
                is_match = fnmatchcase(entry, name) and not is_omitted(entry)
                if is_match and not stat.S_ISDIR(status.st_mode):
                    paths.add(f"{folder}/{entry}".removeprefix("/"))
    return sorted(paths)


def _read_readme(root: Path, metadata: Metadata, reader: SourceReader) -> str | None:
    """Return the text of the project's readme; None if there is no readme in Markdown."""
    path = str(metadata.readme)
    if not path.endswith(".md"):
        return None
    try:
        return reader.read(root, path).data.decode()
    except UnicodeDecodeError:
        msg = f"[project] readme {path!r} is not UTF-8"
        raise PackageError(msg) from None


def readme_text(metadata: Metadata, readme: str | None, server: str) -> str:
    """
    Return the readme of a wheel, with the line that the registry uses to verify the owner of the package.

    Args:
        metadata:
            The metadata of the package.

        readme:
            The text of the project's readme; None to generate one.

        server:
            The name of the server in the registry.
    """
    text = _README.format(name=metadata.name, description=metadata.description) if readme is None else readme
    proof = f"mcp-name: {server}"
    if re.search(rf"{re.escape(proof)}(?![\w./-])", text):
        return text
    return f"{text.rstrip()}\n\n<!-- {proof} -->\n"


def build_pyproject(metadata: Metadata, module: str, licenses: list[str]) -> Mapping[str, Any]:
    """
    Return the content of the pyproject.toml from which the wheel is built.

    Args:
        metadata:
            The metadata of the package.

        module:
            The name of the Python package.

        licenses:
            The paths of the license files.
    """
    fields = {
        **to_builtins(metadata),
        "readme": "README.md",
        "scripts": {metadata.name: f"{module}.__main__:main"},
        "license-files": licenses,
    }
    return {"project": fields, "tool": {"flit": {"module": {"name": module}}}}


def _module_name(name: str, folders: Iterable[str]) -> str:
    """
    Return a name for the Python package that no other module has.

    If the name of the wheel cannot be used, the name begins with ``_``, unlike the name of any wheel.
    """
    module = canonicalize_name(name).replace("-", "_")
    is_free = module.isidentifier() and module not in sys.stdlib_module_names | {"promptkit", *folders}
    return module if is_free and not keyword.iskeyword(module) else f"_prompts_{module}"
