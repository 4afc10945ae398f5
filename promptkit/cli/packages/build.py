"""Packaging: a wheel of the recipes, and ``server.json`` for the registry of MCP."""

import json
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import structs

from promptkit.cli import Exit
from promptkit.cli.diagnostics import counted, fail, print_diagnostics
from promptkit.cli.key_values import current_folder
from promptkit.cli.loading import check_existence, load_catalog
from promptkit.cli.options import serve_words
from promptkit.cli.output import Output
from promptkit.cli.packages.contents import read_contents, requirements_of
from promptkit.cli.packages.project import PackageError, read_project
from promptkit.cli.packages.registry import registry_name, server_entry, variables_of
from promptkit.cli.packages.sources import SourceReader, find_secrets
from promptkit.cli.packages.wheel import WheelParts, build_wheel
from promptkit.compiler.configuration import Configuration, find_configuration
from promptkit.errors.distribution import quoted
from promptkit.errors.exceptions import shortened
from promptkit.files.folder import Folder
from promptkit.files.reading import check_regular
from promptkit.loader.targets import is_project, locate_target, project_root

#: The options of a server that its lists depend on: others are those of a machine.
_LISTED: Final = ("name", "page-size", "scopes", "tools", "tools-search")


def package(options: Namespace, output: Output) -> int:
    """
    Import the recipes, and write a wheel of them, and what the registry of MCP is told of it.

    Args:
        options:
            The options of `package`.

        output:
            Takes what was written.

    Returns:
        The exit code.

    Raises:
        LoadError: If there is nothing at the target.
    """
    folder, *others = map(locate_target, options.targets)
    if others or folder is None or folder[1]:
        check_existence(options.targets)
        named = " ".join(options.targets)
        return fail(f"cannot package {named!r}: name one folder", Exit.USAGE)
    try:
        return _package(Path(folder[0]), options, output)
    except PackageError as fault:
        return fail(f"nothing was built: {fault}", Exit.FAULTY)
    except OSError as error:
        where = "" if error.filename is None else f" ({shortened(str(error.filename))})"
        return fail(f"nothing was built: {error.strerror or error}{where}", Exit.FAULTY)


def _package(folder: Path, options: Namespace, output: Output) -> int:
    """Write the wheel, and ``server.json``, and say so."""
    here = current_folder()  # a recipe may change it
    with _refusing_to_write(options.out):
        out = Folder.named(options.out)
        _check_places(out, "server.json")
    if out.path == folder:
        msg = "--out names the folder of the recipes, whose next package would contain this one: name another"
        return fail(f"nothing was built: {msg}", Exit.FAULTY)
    root = folder if is_project(str(folder)) else Path(project_root(folder))
    project = read_project(root, options)
    registered = registry_name(options.server_name, project.name, root)
    catalog = load_catalog(options.targets)
    print_diagnostics(catalog.diagnostics, output)
    if not catalog.healthy:
        output.send()
        return fail("nothing was built: fix the faults above", Exit.FAULTY)
    declared = counted(len(catalog), "prompt")
    project = project.described(f"{declared} for MCP clients: {', '.join(catalog)}")
    configuration = find_configuration(folder)
    reader = SourceReader(find_secrets([configuration, options.configuration], [here, root]))
    contents = read_contents(folder, out.path, reader)
    project = project.requiring(requirements_of(contents, root, project))
    entry = server_entry(registered, project, variables_of(catalog))
    words = _options(configuration, project.name)
    parts = WheelParts(project, root, folder.name, contents.files, words, registered.name)
    wheel = build_wheel(parts, reader)
    text = json.dumps(entry, indent=2, ensure_ascii=False)
    with _refusing_to_write(options.out):
        _check_places(out, wheel.name, "server.json")
        out.create()
        out.write(wheel.name, wheel.data)
        out.write("server.json", f"{text}\n".encode())
    shown = [str(Path(options.out, name)) for name in (wheel.name, "server.json")]
    output.print_lines([f"built {shown[0]} of {declared}", f"wrote {shown[1]} for {registered.name}"])
    output.print_lines([*project.notes, *registered.notes(entry["description"] != project.description)])
    output.print_lines([f"next: uvx --from {quoted(shown[0])} {project.name}"])
    return Exit.FINE


@contextmanager
def _refusing_to_write(folder: str) -> Iterator[None]:
    """Raise PackageError in place of OSError, with the folder that cannot be written into."""
    try:
        yield
    except OSError as error:
        msg = f"cannot write into {folder!r}: {error.strerror} ({shortened(str(error.filename))})"
        raise PackageError(msg) from None


def _check_places(out: Folder, *names: str) -> None:
    """Raise OSError if a link, a pipe, a device or a folder is in the place of a file."""
    if out.exists():
        for name in names:
            if (status := out.status(name)) is not None:
                check_regular(status, name)


def _options(configuration: Configuration, name: str) -> list[str]:
    """How the recipes are served, as far as clients see it."""
    listed = {key: value for key, value in configuration.serve.items() if key in _LISTED}
    return serve_words(structs.replace(configuration, serve={"name": name, **listed}))
