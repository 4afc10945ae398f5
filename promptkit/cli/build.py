"""``promptkit build``: write what a server of the recipes starts from, for a place that cannot be written."""

import os
from argparse import Namespace

from promptkit.catalog.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.diagnostics import print_diagnostics, print_error
from promptkit.cli.loading import report_hidden
from promptkit.cli.output import Output
from promptkit.compiler.loading.targets import place_of, split_target
from promptkit.compiler.reloading import Reloader
from promptkit.protocol.capabilities import ServerInfo
from promptkit.server.snapshot import Snapshot
from promptkit.transports.startup_cache.built import Purpose, StaleSet, portable
from promptkit.transports.startup_cache.fingerprints import Inputs
from promptkit.transports.startup_cache.set_writer import Contents, write_set
from promptkit.transports.startup_cache.store import key_of
from promptkit.transports.startup_cache.tracing import trace_imports
from promptkit.version import VERSION

__all__ = ["run"]


def run(options: Namespace, output: Output) -> int:
    """
    Import the recipes, and write their lists, and what they were made from, into a file.

    Raises:
        LoadError: If there is nothing at the target.
    """
    try:
        how = options.name, options.page_size, options.tools, options.scopes
        purpose = Purpose.of(options.target, *how)
    except StaleSet as refusal:
        print_error(f"cannot build {options.target!r}: {refusal}")
        return Exit.USAGE
    reloader = Reloader(options.target, lambda _: None)
    catalog, inputs = _load(reloader, options.target)
    print_diagnostics(catalog.diagnostics, output)
    if not catalog.healthy:
        output.send()
        print_error("nothing was built: fix the faults above")
        return Exit.FAULTY
    if inputs is None:
        print_error("nothing was built: importing the recipes reads something that cannot be observed")
        return Exit.FAULTY
    report_hidden(catalog, options.scopes)
    catalog = catalog.visible_to(options.scopes or frozenset())
    contents = _contents(catalog, inputs, purpose, options)
    contents.names = reloader.names_by_file()
    file = options.out or _beside(options.target)
    try:
        write_set(file, contents, mode=0o644)  # whoever serves it reads it
    except (OSError, ValueError) as error:
        print_error(f"cannot write {file!r}: {getattr(error, 'strerror', None) or error}")
        return Exit.FAULTY
    built = "1 prompt is" if len(catalog) == 1 else f"{len(catalog)} prompts are"
    print(f"{built} built into {file}", file=output)
    return Exit.FINE


def _load(reloader: Reloader, target: str) -> tuple[Catalog, Inputs | None]:
    place = place_of(target)
    with trace_imports(place[0] if place else "") as trace:
        catalog = reloader.load()
    return catalog, trace.inputs()


def _contents(catalog: Catalog, inputs: Inputs, purpose: Purpose, options: Namespace) -> Contents:
    identity = ServerInfo(options.name, VERSION)
    snapshot = Snapshot(catalog, identity, options.page_size, changes=True, tools=options.tools)
    pages = (
        (key_of(method, revision.date, cursor), page) for (method, revision, cursor), page in snapshot.pages()
    )
    return Contents(portable(inputs), snapshot.capabilities, pages, purpose=str(purpose))


def _beside(target: str) -> str:
    """Where a set is written by default: ``recipes.compiled`` beside a folder called ``recipes``."""
    path = os.path.realpath(split_target(target)[0])
    return f"{path.removesuffix('.py')}.compiled"
