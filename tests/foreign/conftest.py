"""Servers for tests, each of which answers from a script."""

import json
import shlex
import sys
from pathlib import Path

import pytest

SCRIPTED = Path(__file__).with_name("scripted.py")


@pytest.fixture
def scripted(tmp_path):
    """A function that writes the script of a server, and returns the command that starts it."""
    number = 0

    def write(**script):
        nonlocal number
        number += 1
        file = tmp_path / f"script{number}.json"
        file.write_text(json.dumps(script), encoding="utf-8")
        return shlex.join([sys.executable, str(SCRIPTED), str(file)])

    return write
