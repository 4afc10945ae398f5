"""Fixtures for all tests: recipes on disk, and real media."""

import compileall
import gc
import json
import os
import shlex
import struct
import sys
import wave
import zlib
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

import promptkit
from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load

SCRIPTED: Final = Path(__file__).parent / "foreign" / "scripted.py"


def pytest_configure(config):
    """Compile promptkit once, before any process imports it."""
    if not hasattr(config, "workerinput"):  # in a worker, the controller has compiled already
        compileall.compile_dir(Path(promptkit.__file__).parent, quiet=2)


def _in_ci():
    return bool(os.environ.get("CI") or os.environ.get("PROMPTKIT_TEST_INSTALLS"))


def pytest_collection_modifyitems(items):
    """
    Outside CI, skip tests that install programs. Start slow tests first, so that workers finish together.
    """
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    if _in_ci():
        return
    reason = "it installs programs of others: set PROMPTKIT_TEST_INSTALLS=1"
    for item in items:
        if item.get_closest_marker("installs"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True, scope="module")
def earlier_objects():
    """Exclude earlier tests' objects from garbage collection, which each reload runs."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def workspace_variable(monkeypatch):
    """Undo any change of the workspace variable after each test."""
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", "")
    monkeypatch.delenv("PROMPTKIT_WORKSPACE")


@pytest.fixture(scope="session")
def in_ci():
    """Whether tests that take minutes run: in CI, or if tests that install programs are enabled."""
    return _in_ci()


@pytest.fixture(scope="session")
def installations(request, tmp_path_factory):
    """The folder for installed programs. It is in pytest's cache, if enabled, so that later runs reuse it."""
    cache = getattr(request.config, "cache", None)
    return tmp_path_factory.mktemp("clients") if cache is None else cache.mkdir("clients")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


@pytest.fixture(scope="session")
def png() -> bytes:
    """A minimal PNG: one red pixel."""
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


@pytest.fixture(scope="session")
def wav() -> bytes:
    """A tenth of a second of silence."""
    buffer = BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\0" * 800)
    return buffer.getvalue()


@pytest.fixture
def scripted(tmp_path):
    """A function that writes the script of an MCP server, and returns the command that starts it."""
    number = 0

    def write(**script):
        nonlocal number
        number += 1
        file = tmp_path / f"script{number}.json"
        file.write_text(json.dumps(script), encoding="utf-8")
        return shlex.join([sys.executable, str(SCRIPTED), str(file)])

    return write


def paths_of(module) -> str:
    """Return the file of a module, or the folders of a namespace package, as text."""
    try:
        return f"{getattr(module, '__file__', '')} {list(getattr(module, '__path__', ()))}"
    except Exception:  # noqa: BLE001 (some tests put arbitrary objects into sys.modules)
        return ""


@contextmanager
def forgetting_modules(folder):
    """Remove modules below *folder* that the block imported, and restore the modules that they replaced."""
    modules = dict(sys.modules)
    yield
    if sys.modules == modules:
        return
    # Found before any is removed, because the path of a namespace package is read from its parent.
    imported = [
        name
        for name, module in list(sys.modules.items())
        if modules.get(name) is not module and str(folder) in paths_of(module)
    ]
    for name in imported:
        del sys.modules[name]
        if name in modules:
            sys.modules[name] = modules[name]


@contextmanager
def forgetting_recipes(tmp_path_factory):
    """Forget the recipes that the block imports, because other tests have recipes with the same names."""
    folder = str(tmp_path_factory.getbasetemp())
    with pytest.MonkeyPatch.context() as monkeypatch, forgetting_modules(folder):
        monkeypatch.setattr(sys, "path", list(sys.path))
        monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
        yield
    for path in [path for path in list(sys.path_importer_cache) if path.startswith(folder)]:
        del sys.path_importer_cache[path]  # each load invalidates every cached path


@pytest.fixture(autouse=True, scope="module")
def forget_recipes_of_module(tmp_path_factory):
    """Forget the recipes that the fixtures of a module import."""
    with forgetting_recipes(tmp_path_factory):
        yield


@pytest.fixture(autouse=True)
def forget_recipes(tmp_path_factory):
    """Forget the recipes that a test imports."""
    with forgetting_recipes(tmp_path_factory):
        yield


@pytest.fixture
def recipes(tmp_path):
    """A function that writes files into a folder of recipes and returns the folder."""

    def write(folder: str = "recipes", **files: str) -> Path:
        path = tmp_path / folder
        path.mkdir(parents=True, exist_ok=True)
        for name, source in files.items():
            (path / f"{name}.py").write_text(dedent(source).lstrip("\n"), encoding="utf-8")
        return path

    return write


@pytest.fixture
def collect_diagnostics(recipes, tmp_path, monkeypatch):
    """A function that writes recipes and returns all their diagnostics, including lints."""
    monkeypatch.chdir(tmp_path)
    return lambda **files: compile(load(recipes(**files)), lint=True).diagnostics
