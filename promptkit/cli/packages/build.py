"""The `package` command: writes a wheel of the recipes, and ``server.json`` for the MCP registry."""

import json
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import structs

from promptkit.cli import Exit
from promptkit.cli.diagnostics import counted, fail, print_diagnostics
from promptkit.cli.loading import check_existence, load_catalog
from promptkit.cli.options import serve_words
from promptkit.cli.output import Output
from promptkit.cli.packages.contents import find_requirements, read_contents
from promptkit.cli.packages.project import PackageError, read_project
from promptkit.cli.packages.registry import list_variables, registry_name, server_entry
from promptkit.cli.packages.sources import SourceReader, find_secrets
from promptkit.cli.packages.wheel import WheelParts, build_wheel
from promptkit.compiler.configuration import Configuration, find_configuration
from promptkit.errors.distribution import quoted
from promptkit.errors.exceptions import shortened
from promptkit.files.folder import Folder
from promptkit.files.reading import check_regular
from promptkit.loader.targets import is_project, locate_target, project_root

#: The options of `serve` that change its lists. All other options depend on the machine.
_LISTED: Final = ("name", "page-size", "scopes", "tools", "tools-search")


def package(options: Namespace, output: Output) -> int:
    """
    Check the recipes, and write a wheel of them and ``server.json``.

    Args:
        options:
            The options of `package`.

        output:
            Receives the paths of the written files.

    Returns:
        The exit code.

    Raises:
        LoadError: If the target does not exist.
    """
    folder, *more = map(locate_target, options.targets)
    if more or folder is None or folder[1]:
        check_existence(options.targets)
        targets = " ".join(options.targets)
        return fail(f"cannot package {targets!r}: name one folder", Exit.USAGE)
    try:
        return _package(Path(folder[0]), options, output)
    except PackageError as error:
        return fail(f"nothing was built: {error}", Exit.FAULTY)
    except OSError as error:
        path = "" if error.filename is None else f" ({shortened(str(error.filename))})"
        return fail(f"nothing was built: {error.strerror or error}{path}", Exit.FAULTY)


def _package(folder: Path, options: Namespace, output: Output) -> int:
    """Write the wheel and ``server.json``, and report their paths."""
    here = Path.cwd()  # recipes can change it
    with _explain_write_errors(options.out):
        out = Folder.named(options.out)
        _check_paths(out, "server.json")
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
    prompt_count = counted(len(catalog), "prompt")
    project = project.with_description(f"{prompt_count} for MCP clients: {', '.join(catalog)}")
    configuration = find_configuration(folder)
    reader = SourceReader(find_secrets([configuration, options.configuration], [here, root]))
    contents = read_contents(folder, out.path, reader)
    project = project.with_requirements(find_requirements(contents, root, project))
    entry = server_entry(registered, project, list_variables(catalog))
    serve_options = _serve_options(configuration, project.name)
    parts = WheelParts(project, root, folder.name, contents.files, serve_options, registered.name)
    wheel = build_wheel(parts, reader)
    text = json.dumps(entry, indent=2, ensure_ascii=False)
    with _explain_write_errors(options.out):
        _check_paths(out, wheel.name, "server.json")
        out.create()
        out.write(wheel.name, wheel.data)
        out.write("server.json", f"{text}\n".encode())
    paths = [str(Path(options.out, name)) for name in (wheel.name, "server.json")]
    output.print_lines([f"built {paths[0]} of {prompt_count}", f"wrote {paths[1]} for {registered.name}"])
    output.print_lines([*project.notes, *registered.notes(entry["description"] != project.description)])
    output.print_lines([f"next: uvx --from {quoted(paths[0])} {project.name}"])
    return Exit.FINE


@contextmanager
def _explain_write_errors(folder: str) -> Iterator[None]:
    """Turn an OSError into a PackageError that names the folder."""
    try:
        yield
    except OSError as error:
        msg = f"cannot write into {folder!r}: {error.strerror} ({shortened(str(error.filename))})"
        raise PackageError(msg) from None


def _check_paths(out: Folder, *names: str) -> None:
    """Raise OSError if a link, a pipe, a device or a folder is in the way of a file."""
    if out.exists():
        for name in names:
            if (status := out.status(name)) is not None:
                check_regular(status, name)


def _serve_options(configuration: Configuration, name: str) -> list[str]:
    """Return the options of `serve` that affect what clients see."""
    listed = {key: value for key, value in configuration.serve.items() if key in _LISTED}
    return serve_words(structs.replace(configuration, serve={"name": name, **listed}))
