"""Fixtures for tests of clients: editable recipes, and the TypeScript client."""

import shutil
from pathlib import Path

import pytest

from tests.clients.node_clients import install
from tests.clients.script import RECIPES


@pytest.fixture
def folder(tmp_path):
    """A copy of the recipes that tests can edit."""
    return shutil.copytree(RECIPES, tmp_path / "recipes", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture(scope="session")
def typescript(installations):
    """The installation of the official TypeScript client."""
    return install(Path(__file__).parent / "typescript", installations)
