"""Fixtures for tests of clients: editable recipes, and the TypeScript client."""

import datetime as dt
import json
import shutil
from pathlib import Path

import pytest

from docs.render_clients import OBSERVATIONS
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


@pytest.fixture
def observe(request):
    """
    A function that compares an observation of a client with its entry in `observations.json`.

    With `--snapshot-update`, it writes the entry instead; `python -m docs.render_clients` renders the entries
    into docs/clients.md.
    """

    def compare(client, version, typed, form, received):
        rows = json.loads(OBSERVATIONS.read_text(encoding="utf-8"))
        row = {"version": version, "typed": typed, "form": form, "received": received}
        if request.config.option.update_snapshots:
            rows[client] = {"date": dt.datetime.now(dt.UTC).date().isoformat(), **row}
            text = json.dumps(rows, indent=2, sort_keys=True, ensure_ascii=False)
            OBSERVATIONS.write_text(f"{text}\n", encoding="utf-8")
        else:
            assert {key: rows[client][key] for key in row} == row

    return compare
