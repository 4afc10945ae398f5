"""What tests of clients share: recipes that may be edited, and the TypeScript client."""

import shutil
from pathlib import Path

import pytest

from tests.clients.node_clients import install
from tests.clients.script import RECIPES


@pytest.fixture
def folder(tmp_path):
    """Recipes that may be edited."""
    return shutil.copytree(RECIPES, tmp_path / "recipes", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture(scope="session")
def typescript(installations):
    """Where the official TypeScript client is installed."""
    return install(Path(__file__).parent / "typescript", installations)
