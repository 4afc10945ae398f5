"""Fixtures for the tests of lints."""

import pytest

from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load


@pytest.fixture
def collect_diagnostics(recipes, tmp_path, monkeypatch):
    """A function that writes recipes and returns all their diagnostics, including lints."""
    monkeypatch.chdir(tmp_path)
    return lambda **files: compile(load(recipes(**files)), lint=True).diagnostics
