"""``promptkit build``: write what a server of the recipes starts from, for a place that cannot be written."""

import os
from argparse import Namespace

from promptkit.cli import Exit
from promptkit.cli.diagnostics import print_diagnostics, print_error
from promptkit.cli.loading import report_hidden
from promptkit.cli.output import Output
from promptkit.compiler.loading.targets import split_target
from promptkit.compiler.reloading import Reloader
from promptkit.protocol.capabilities import ServerInfo
from promptkit.server.snapshot import Snapshot
from promptkit.transports.import_inputs import Purpose, noted_reads
from promptkit.transports.kept_lists import MADE_BY, Index, ShellWords, write_set
from promptkit.version import VERSION

__all__ = ["run"]


def run(options: Namespace, output: Output) -> int:
    """
    Import the recipes, and write their lists, and what they were made from, into a file.

    Raises:
        LoadError: If there is nothing at the target.
    """
    purpose = Purpose.of(options.target, options.name, options.page_size, options.tools, options.scopes)
    if not purpose.folder:
        print_error(f"cannot build {options.target!r}: only a folder or a file can be built")
        return Exit.USAGE
    reloader = Reloader(options.target, lambda _: None)
    with noted_reads(purpose.folder) as reads:
        catalog = reloader.load()
    inputs = reads.inputs()
    print_diagnostics(catalog.diagnostics, output)
    if not catalog.healthy or inputs is None:
        output.send()
        reason = "a recipe has changed meanwhile" if catalog.healthy else "fix the faults above"
        print_error(f"nothing was built: {reason}")
        return Exit.FAULTY
    report_hidden(catalog, options.scopes)
    visible = catalog.visible_to(options.scopes or frozenset())
    identity = ServerInfo(options.name, VERSION)
    snapshot = Snapshot(visible, identity, options.page_size, changes=True, tools=options.tools)
    index = Index(MADE_BY, purpose, inputs, snapshot.capabilities, reloader.names_by_file())
    file = options.out or _beside(options.target)
    try:
        write_set(file, index, snapshot.pages(), ShellWords(), mode=0o644)  # whoever serves it reads it
    except (OSError, ValueError) as error:
        print_error(f"cannot write {file!r}: {getattr(error, 'strerror', None) or error}")
        return Exit.FAULTY
    built = "1 prompt is" if len(visible) == 1 else f"{len(visible)} prompts are"
    print(f"{built} built into {file}", file=output)
    return Exit.FINE


def _beside(target: str) -> str:
    """Where a set is written by default: ``recipes.compiled`` beside a folder called ``recipes``."""
    path = os.path.realpath(split_target(target)[0])
    return f"{path.removesuffix('.py')}.compiled"
