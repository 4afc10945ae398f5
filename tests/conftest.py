"""What the tests share: recipes on disk, and media that are real."""

import compileall
import gc
import os
import struct
import sys
import wave
import zlib
from collections import Counter
from io import BytesIO
from pathlib import Path
from textwrap import dedent

import pytest

import promptkit
from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load


def pytest_configure(config):
    """Compile promptkit once, before any process imports it."""
    if not hasattr(config, "workerinput"):  # else this is done
        compileall.compile_dir(Path(promptkit.__file__).parent, quiet=2)


def _in_ci():
    return bool(os.environ.get("CI") or os.environ.get("PROMPTKIT_TEST_INSTALLS"))


#: Where most cases start a process, or try many values: of each claim one in eight is run, but for CI.
SAMPLED = (
    *("batch/test_resuming.py", "batch/test_vendors.py"),
    *("catalog/test_uri_templates.py", "clients/test_authorization.py", "clients/test_http.py"),
    *("cli/test_commands.py", "cli/test_configured.py", "cli/test_every_command.py"),
    *("cli/test_others_files.py", "cli/test_output.py", "cli/test_shell_completion.py"),
    *("cli/install/test_configurations.py", "cli/install/test_new.py", "compiler/test_client_lints.py"),
    *("compiler/test_source_lints.py", "end_to_end/test_authors_code.py", "faults/test_broken_files.py"),
    *("faults/test_clients.py", "faults/test_memory.py", "faults/test_replacing.py"),
    *("laws/test_hostile_arguments.py", "laws/test_linear_time.py", "laws/test_types.py"),
    *("server/test_failing_threads.py", "server/test_garbage.py", "server/test_stuck_prompts.py"),
    *("server/test_watchdog.py", "testing/test_collection.py", "testing/test_modules.py"),
    *("testing/test_official_client.py", "testing/test_pytest_plugin.py", "testing/test_strategies.py"),
    *("errors/test_standard_error.py", "transports/test_slow_imports.py"),
)


#: What takes longest, or waits longest, comes first, so that all processes end at the same time.
LONG = (
    "bridges/test_tools.py",
    *("cli/test_diff.py", "cli/test_every_command.py", "cli/test_output.py", "clients/test_assistants.py"),
    *("clients/test_converters.py", "clients/test_frameworks.py", "docs/test_blocks.py"),
    *("docs/test_first_steps.py", "end_to_end/http/test_one_machine.py", "end_to_end/test_image.py"),
    *("end_to_end/test_skills.py", "faults/test_broken_files.py"),
    *("laws/test_types.py", "preview/browser/test_accessibility.py", "preview/browser/test_commands.py"),
    *("preview/browser/test_fields.py", "preview/browser/test_hostile_content.py"),
    *("server/test_stuck_prompts.py", "testing/test_collection.py", "errors/test_standard_error.py"),
    *("transports/http/test_supervisor.py", "transports/test_slow_imports.py"),
)


def _sample(items):
    """Those that are run, and those that CI runs as well."""
    seen, kept, left = Counter(), [], []
    for item in items:
        claim = item.nodeid.partition("[")[0]
        is_kept = not claim.partition("::")[0].endswith(SAMPLED) or seen[claim] % 8 == 0
        seen[claim] += 1
        (kept if is_kept else left).append(item)
    return kept, left


def pytest_collection_modifyitems(config, items):
    """Tests that install programs of others first take minutes, so that only CI runs them unasked."""
    items.sort(key=lambda item: not item.nodeid.partition("::")[0].endswith(LONG))
    if _in_ci():
        return
    is_whole = os.environ.get("PROMPTKIT_TEST_WHOLE") or any("::" in argument for argument in config.args)
    if not is_whole:
        items[:], left = _sample(items)
        config.hook.pytest_deselected(items=left)
    reason = "it installs programs of others: set PROMPTKIT_TEST_INSTALLS=1"
    for item in items:
        if item.get_closest_marker("installs"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True, scope="module")
def what_was_there():
    """Whoever looks for garbage, as each reload does, need not look at what was there before these tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def workspace_variable(monkeypatch):
    """What a server or an application says of its workspace ends with the test."""
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", "")
    monkeypatch.delenv("PROMPTKIT_WORKSPACE")


@pytest.fixture(scope="session")
def in_ci():
    """Whether what takes minutes is done, too."""
    return _in_ci()


@pytest.fixture(scope="session")
def installations(request, tmp_path_factory):
    """Where to install clients: what is there stays for the next time, unless pytest keeps nothing."""
    cache = getattr(request.config, "cache", None)
    return tmp_path_factory.mktemp("clients") if cache is None else cache.mkdir("clients")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


@pytest.fixture(scope="session")
def png() -> bytes:
    """The smallest valid PNG: one red pixel."""
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


def places_of(module) -> str:
    """The file of a module, or the folders of a package that has none."""
    try:
        return f"{getattr(module, '__file__', '')} {list(getattr(module, '__path__', ()))}"
    except Exception:  # noqa: BLE001 (some tests put objects there that answer nothing)
        return ""


@pytest.fixture
def recipes(tmp_path, monkeypatch):
    """A function that writes files into a folder of recipes, and returns the folder."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    modules = dict(sys.modules)

    def write(folder: str = "recipes", **files: str) -> Path:
        path = tmp_path / folder
        path.mkdir(parents=True, exist_ok=True)
        for name, source in files.items():
            (path / f"{name}.py").write_text(dedent(source).lstrip("\n"), encoding="utf-8")
        return path

    yield write
    for name in sys.modules.keys() - modules.keys():
        if str(tmp_path) in places_of(sys.modules[name]):
            del sys.modules[name]


@pytest.fixture
def found(recipes, tmp_path, monkeypatch):
    """A function that writes recipes and returns all that is found in them, lints too."""
    monkeypatch.chdir(tmp_path)
    return lambda **files: compile(load(recipes(**files)), lint=True).diagnostics
