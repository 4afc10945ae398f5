"""``promptkit package``: build a wheel of the recipes that others install and run with one command."""

from argparse import Namespace
from importlib import import_module
from typing import Final

from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail
from promptkit.cli.output import Output
from promptkit.errors.distribution import install_command

#: The modules that the extra `package` installs.
_EXTRA: Final = ("flit_core.buildapi", "packaging.requirements", "tomli_w")


def run(options: Namespace, output: Output) -> int:
    """
    Import the recipes, and write a wheel of them with its entry for the MCP registry.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    try:
        for name in _EXTRA:
            import_module(name)
    except ModuleNotFoundError as error:
        return fail(f"package needs {error.name}: {install_command('package')}", Exit.USAGE)
    from promptkit.cli.packages.build import package  # it needs the extra

    return package(options, output)
