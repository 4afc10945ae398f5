"""The help of the command and of its subcommands, as snapshots."""

import sys

import pytest

from promptkit.cli import main
from promptkit.cli.parsers import COMMANDS

#: Python 3.13 shows `-o, --out FOLDER` for `-o FOLDER, --out FOLDER`, and 3.14 uses colours.
pytestmark = pytest.mark.skipif(sys.version_info >= (3, 13), reason="argparse lays help out differently")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_the_snapshot(command, capsys, monkeypatch, snapshot):
    """Help is printed at a width of 100 columns, and the command exits with 0."""
    monkeypatch.setenv("COLUMNS", "102")  # argparse leaves two columns free

    with pytest.raises(SystemExit) as exit_info:
        main([*command.split(), "--help"])

    assert not exit_info.value.code
    assert capsys.readouterr().out == snapshot
