"""``promptkit package``: build a wheel of the recipes that others install and run with one command."""

from argparse import Namespace

from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail
from promptkit.cli.output import Output
from promptkit.errors.distribution import install_command


def run(options: Namespace, output: Output) -> int:
    """
    Import the recipes, and write a wheel of them with its entry for the MCP registry.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    try:
        from promptkit.cli.package_wheel import package
    except ModuleNotFoundError as error:  # the extra is not installed
        return fail(f"package needs {error.name}: {install_command('package')}", Exit.USAGE)
    return package(options, output)
