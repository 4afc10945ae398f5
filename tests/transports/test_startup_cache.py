import json
import os
import py_compile
import select
import shutil
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from importlib import import_module
from importlib.util import cache_from_source
from itertools import chain, repeat
from operator import call
from pathlib import Path
from queue import Queue
from threading import Event

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from promptkit import prompt, resource, user
from promptkit.compiler.compilation import compile
from promptkit.compiler.loading.loader import Recipes
from promptkit.errors.regular_files import file_stamp
from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.digests import digest
from promptkit.protocol.limits import Limits
from promptkit.server import Server
from promptkit.transports.startup_cache import tracing
from promptkit.transports.startup_cache.compiled_set import CompiledSet
from promptkit.transports.startup_cache.early import EarlyServer
from promptkit.transports.startup_cache.fingerprints import (
    Inputs,
    folder_digest,
    stamps_digest,
    value_digest,
)
from promptkit.transports.startup_cache.purity import names_used
from promptkit.transports.startup_cache.store import MADE_BY, MAGIC, Index, Store, key_of
from promptkit.transports.startup_cache.tracing import trace_imports
from promptkit.version import VERSION
from tests.wire import MODERN, REVISIONS, initialize, line, modern, notification, request

#: Serves like the console script. The import of a recipe called gated does not end before there is a file
#: called gate.open, which no recipe asks for, and which by its name can be no module: the folder that it
#: lies in is one that Python looks through for modules, and a set holds while their names do.
SERVING = """
import os, sys, time

class Gate:
    def find_spec(name, path=None, target=None):
        while name.endswith(".gated") and not os.path.exists(gate):
            time.sleep(0.005)

def wait(event, args):
    while event == "exec" and args[0].co_filename.endswith("gated.py") and not os.path.exists(gate):
        time.sleep(0.005)

gate = os.environ.pop("TEST_GATE")
if os.environ.pop("TEST_GATE_IN_RECIPE", ""):  # a finder holds a lock that all imports need
    sys.addaudithook(wait)
else:
    sys.meta_path.insert(0, Gate)
from promptkit.cli import main
sys.exit(main())
"""

#: A few prompts and resources.
GREETING = '''
from promptkit import prompt, resource

@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}."

@prompt(title="Part")
def part():
    return "Bye."

@prompt
def third():
    return "3"

@resource("notes://today")
def today():
    return "nothing"

@resource("notes://{day}")
def notes(day: str):
    return day
'''

#: A prompt whose default stands in the environment, and the request for it.
IN_ENVIRONMENT = """
from typing import Annotated
from promptkit import Arg, prompt

@prompt
def greet(team: Annotated[str, Arg(env="TEAM")] = "all"):
    return f"Hello, {team}."
"""
GREET = {"name": "greet"}

LISTS = ("prompts/list", "resources/list", "resources/templates/list")

#: Run first: on a busy machine, recipes may be imported before the server takes over from the cache.
SLOW_TO_TAKE_OVER = """
import time
from promptkit.transports.startup_cache.compiled_set import CompiledSet
from promptkit.transports.startup_cache.early import EarlyServer

def hand_over(early, take_over=EarlyServer.hand_over):
    time.sleep(0.5)
    return take_over(early)

EarlyServer.hand_over = hand_over
"""


@pytest.fixture
def environment(monkeypatch):
    """The environment of servers that may write beside the recipes."""
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        monkeypatch.delenv(name, raising=False)
    return os.environ


@pytest.fixture
def start(environment):
    """A function that starts a server of a folder; whatever still runs at the end is ended."""
    started = []

    def start(folder, *options, cwd=None, first="", **variables):
        command = [sys.executable, "-c", first + SERVING, "serve", str(folder), *options]
        variables["TEST_GATE"] = str(Path(str(folder).partition(":")[0]).parent / "gate.open")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, env={**environment, **variables}, cwd=cwd, **pipes)
        started.append(process)
        return process

    yield start
    for process in started:
        with process:  # which closes its pipes
            process.kill()


@pytest.fixture
def talk(start):
    """A function that starts a server, sends messages, ends the input, and returns the replies by id."""

    def talk(folder, *messages, options=(), **variables):
        out, err = start(folder, *options, **variables).communicate(b"".join(map(line, messages)), timeout=20)
        assert err == b""
        return {reply.get("id"): reply for reply in map(json.loads, out.splitlines())}

    return talk


def say(process, *messages):
    process.stdin.write(b"".join(map(line, messages)))
    process.stdin.flush()


def hear(process):
    return json.loads(process.stdout.readline())


def sets(folder):
    return sorted((folder / "__pycache__").glob("*.compiled"))


def every_list(revision):
    """A session that asks for the first page of every list."""
    if revision == MODERN:
        return [modern(number, method) for number, method in enumerate(LISTS)]
    return [initialize(revision, 9), *(request(number, method) for number, method in enumerate(LISTS))]


def names(reply):
    return [prompt["name"] for prompt in reply["result"]["prompts"]]


#: Chance by which sets are ordered: what an import depends on though nobody can see it.
USUAL, OTHER = "1", "2"


def ordered(seed):
    """In which order a process with a seed goes through a set."""
    command = [sys.executable, "-c", "print(*set('abcdefghijklmnop'), sep='')"]
    return subprocess.check_output(command, env={**os.environ, "PYTHONHASHSEED": seed}, text=True).strip()


UNORDERED = f"""
from promptkit import prompt, resource
USUAL = "".join(set("abcdefghijklmnop")) == {ordered(USUAL)!r}
"""


def told_early(start, folder, gate):
    """Whether a list is sent before a recipe is imported."""
    gate.unlink(missing_ok=True)
    process = start(folder)
    say(process, initialize("2025-11-25"), request(1, "prompts/list"), request(2, "ping"))
    ready = select.select([process.stdout], [], [], 2)[0]  # without a set, a client is greeted after three
    gate.touch()
    process.communicate(timeout=50)
    return bool(ready)


@pytest.fixture
def gated(recipes, talk):
    """A folder of recipes of which a set is kept, and the gate, closed."""
    folder = recipes(gated=GREETING)
    gate = folder.parent / "gate.open"
    gate.touch()
    assert 0 in talk(folder, initialize("2025-11-25"))
    assert len(sets(folder)) == 1
    gate.unlink()
    return folder, gate


class TestAStart:
    def test_it_tells_what_there_is_before_a_recipe_is_imported(self, gated, start):
        """
        The second start greets, lists and pings while the recipes are still imported; what needs a
        recipe is answered once they are.
        """
        folder, gate = gated
        process = start(folder)

        say(process, initialize("2025-11-25"), notification("notifications/initialized"))
        say(process, request(1, "prompts/list"), modern(2, "server/discover"), request(3, "resources/list"))
        early = [hear(process) for _ in range(4)]
        say(process, request(4, "prompts/get", {"name": "greet"}), request(5, "ping"))
        early.append(hear(process))
        gate.touch()
        late = hear(process)
        say(process, request(6, "prompts/get", {"name": "third"}))

        assert [reply["id"] for reply in early] == [0, 1, 2, 3, 5]
        assert names(early[1]) == ["greet", "part", "third"]
        assert early[3]["result"]["resources"][0]["uri"] == "notes://today"
        assert (late["id"], late["result"]["messages"][0]["content"]["text"]) == (4, "Hello, you.")
        assert hear(process)["result"]["messages"][0]["content"]["text"] == "3"

    @pytest.mark.parametrize("revision", REVISIONS)
    def test_it_tells_the_same(self, recipes, talk, revision):
        """
        Whatever the revision, early answers are the answers of a server that keeps nothing.
        """
        folder = recipes(greeting=GREETING)
        fresh, kept, early = (
            talk(folder, *every_list(revision), options=options) for options in (["--no-cache"], [], [])
        )

        assert fresh == kept == early
        assert all("result" in reply for reply in early.values())

    def test_every_page_is_there(self, gated, start):
        """
        A client can go through all pages of a list while the recipes are still imported.
        """
        folder, gate = gated
        gate.touch()
        with start(folder, "--page-size", "1") as process:
            process.communicate(line(initialize("2025-11-25")))
        gate.unlink()
        process, found, params = start(folder, "--page-size", "1"), [], {}
        say(process, initialize("2025-11-25"))
        hear(process)
        while params is not None:
            say(process, request(1, "prompts/list", params))
            reply = hear(process)
            found += names(reply)
            cursor = reply["result"].get("nextCursor")
            params = {"cursor": cursor} if cursor else None

        assert found == ["greet", "part", "third"]

    def test_it_ends_with_its_input(self, gated, start):
        """
        A client that only wanted the list does not wait for the recipes.
        """
        folder, _ = gated
        process = start(folder)

        out, err = process.communicate(line(initialize("2025-11-25")) + line(request(1, "prompts/list")), 20)

        assert (len(out.splitlines()), err, process.returncode) == (2, b"", 0)

    def test_it_ends_though_the_recipes_do_not_come(self, gated, start):
        """
        Neither does a client that leaves while they are being imported.
        """
        folder, _ = gated
        process = start(folder, "--grace", "0.1")
        say(process, initialize("2025-11-25"))
        hear(process)
        time.sleep(0.3)  # they are being imported by now
        process.stdin.close()

        assert process.wait(50) == 0

    def test_the_end_waits_for_what_was_asked(self, gated, start):
        """
        The end of the input leaves no request unanswered that takes a recipe.
        """
        folder, gate = gated
        process = start(folder)
        say(process, initialize("2025-11-25"), request(1, "prompts/get", {"name": "third"}))
        process.stdin.close()
        assert hear(process)["id"] == 0
        gate.touch()

        assert hear(process)["result"]["messages"][0]["content"]["text"] == "3"
        assert process.wait(50) == 0


#: What an import may depend on though no hook of the interpreter tells of it.
UNSEEN = [
    "import os; os.path.exists('x')",
    "import os.path as p; p.isfile('x')",
    "from os.path import exists as there; there('x')",
    "import os; os.stat(here)",
    "import os; os.access(here, os.R_OK)",
    "here.joinpath('x').exists()",
    "here.joinpath('x').is_file()",
    "ask = Path.is_dir; ask(here)",
    "def _look(): return here.stat()\n_look()",
    "class Look:\n    size = here.stat().st_size",
    "class Look:\n    def __init__(self): here.stat()\nLook()",
    "[here.stat() for _ in range(1)]",
    "def register(f): return f()\n@register\ndef late(): return here.stat()",
    "sorted([here], key=lambda path: path.stat().st_size)",
    "import time; time.time()",
    "from time import time as clock; clock()",
    "from datetime import datetime; datetime.now()",
    "from datetime import date; date.today()",
    "import random; random.random()",
    "import secrets; secrets.token_hex()",
    "import uuid; uuid.uuid4()",
    "import os; os.getpid()",
    "import os; os.cpu_count()",
    "import os; os.umask(0o22)",
    "import os; os.urandom(4)",
    "import os; os.getcwd()",
    "import sys; sys.argv",
    "import locale; locale.getlocale()",
    "import platform; platform.node()",
    "import getpass; getpass.getuser()",
    "import socket; socket.gethostname()",
    "import pkgutil; list(pkgutil.iter_modules())",
    "import importlib.metadata as m; list(m.distributions())",
    "import importlib.util as u; u.find_spec('nothing')",
    "import tempfile; tempfile.gettempdir()",
    "import mmap, os; mmap.mmap(-1, 1)",
    "import ctypes; ctypes.CDLL(None)",
    "import sqlite3; sqlite3.connect(':memory:').close()",
    "import multiprocessing; multiprocessing.cpu_count()",
    "eval('1')",
    "getattr(here, 'exi' + 'sts')()",
    "__import__('time').time()",
    "from importlib import import_module; import_module('time').time()",
    "import os; list(os.fwalk(here))",
    "import os; os.chdir(here)",
    "from os.path import *",
    "import pathlib; pathlib.os.getpid()",
    "import sys; sys.modules['os'].getpid()",
    "import builtins; builtins.eval('1')",
    "from operator import methodcaller; methodcaller('exists')(here)",
    "from datetime import datetime; datetime(2020, 1, 1).timestamp()",
    "import os; os.environ._data",
    "import statistics; statistics.random.random()",
    "from statistics import random as chance; chance.random()",
    "import logging; logging.time.time()",
    "import logging; logging.LogRecord('', 1, '', 1, '', (), None).created",
    "from statistics import NormalDist; NormalDist().samples(1)",
    "from pydantic import FilePath, TypeAdapter; TypeAdapter(FilePath).validate_python(__file__)",
    "match here:\n    case Path(exists=there):\n        there()",
    "import os\ndef read(module): return vars(module)\nread(os)",
    "from promptkit.language.files import confine\ntry: confine('nothing', here)\nexcept ValueError: pass",
]

#: What a hook is told of, and what cannot be read anew all the same.
TOLD = [
    "import threading; t = threading.Thread(target=lambda: None); t.start(); t.join()",
    "open(here / 'words.txt', 'r+').close()",
    "open(here / 'words.txt', 'a+').close()",
    "(here / 'new.txt').write_text('x')",
    "import os; os.close(os.open(here / 'words.txt', os.O_RDWR))",
    "import os; os.close(os.open('words.txt', os.O_RDONLY, dir_fd=os.open(here, os.O_RDONLY)))",
    "import os; os.listdir(os.open(here, os.O_RDONLY))",
    "import os; os.scandir(os.open(here, os.O_RDONLY)).close()",
    "open(0).read()",
    "open('/dev/urandom', 'rb').close()",
    "list(here.glob('*/part.md'))",
    "import glob; glob.glob('*', dir_fd=3)",
    "import os; os.path.exists('x')",
    "import time; time.time()",
    "import random; random.random()",
    "import importlib.metadata as m; list(m.distributions())",
]

#: What is harmless.
HARMLESS = [
    "import time, random, socket, subprocess, platform, uuid",
    "from os.path import exists\nfrom datetime import datetime",
    "import datetime\ndef now(): return datetime.datetime.now()",
    "import time\n@prompt\ndef late(): return str(time.time())",
    "@prompt(title='Late')\ndef late(): return str(here.exists())",
    "import promptkit\n@promptkit.prompt\ndef late(): return str(here.exists())",
    "import os.path\nos.path.dirname(os.path.realpath(__file__)), Path(__file__).parent.resolve()",
    "from datetime import time\nimport datetime\ntime(9), datetime.time(9), datetime.timezone.utc",
    "import collections.abc, xml.etree.ElementTree as tree\ncollections.abc.Mapping, tree.fromstring('<a/>')",
    "import logging, sys\nlog = logging.getLogger(__name__); log.info('x'); sys.stderr.write('')",
    "import re, json, os\npattern = re.compile('x'); json.loads('1'); os.path.join('a', os.sep)",
    "import os\nos.environ.get('X'), os.getenv('Y'), 'Z' in os.environ",
    "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1",
    "from uuid import UUID\n@prompt\ndef found(id: UUID | None = None): return str(id)",
    "from enum import Enum\nclass A(Enum):\n    x = 1",
    "import attrs\n@attrs.frozen\nclass A:\n    x: int = 1",
    "from collections import namedtuple\nA = namedtuple('A', 'x')",
    "from . import _own\nfor word in _own.WORDS: prompt(name='w' + word)(lambda: 'x')",
    "import _own\nlist(_own.WORDS)",
    "(here / 'words.txt').read_text()",
    "list(here.glob('*.md')), list(here.rglob('*.md')), list(here.iterdir())",
    "import glob, os\nglob.glob(str(here / '*.md')), os.listdir(here), list(os.walk(here))",
    "try:\n    import nothing_like_it\nexcept ImportError:\n    pass",
]

#: Runs a file as a plugin, if it is there, without making it a module that can be found.
PLUGIN = """next((m.NAME for u in [__import__('importlib.util').util] for s in
[u.spec_from_file_location('plugin', here / 'more' / {0!r})] for m in [u.module_from_spec(s)]
if os.path.exists(s.origin) and s.loader.exec_module(m) is None), None)"""

#: What makes a list, and what changes it.
DESCRIBED = "prompt(name='a', description=str(words))(lambda: 'x')\n"
SEEN = [
    ("sorted(os.listdir(here))", lambda folder: (folder / ".hidden").touch()),
    ("sorted(p.name for p in here.glob('.*'))", lambda folder: (folder / ".hidden").touch()),
    ("sorted(p.name for p in (here / 'late').glob('*'))", lambda folder: make(folder / "late" / "a.md")),
    ("sorted(p.name for p in (here / 'a' / 'b').glob('*'))", lambda folder: make(folder / "a" / "b" / "c")),
    ("sorted(p.name for p in here.glob('late/*.md'))", lambda folder: make(folder / "late" / "a.md")),
    ("sorted(p.name for p in here.glob('late/a.md'))", lambda folder: make(folder / "late" / "a.md")),
    ("sorted(p.name for p in here.rglob('*.md'))", lambda folder: make(folder / "more" / "b" / "a.md")),
    ("sorted(__import__('glob').glob(str(here / 'late' / '*')))", lambda folder: make(folder / "late" / "a")),
    (
        "sorted(n for w in os.walk(here) for n in w[2] if n[-3:] == '.md')",
        lambda f: make(f / "more" / "a.md"),
    ),
    ("(here / 'words.txt').exists()", lambda folder: (folder / "words.txt").unlink()),
    ("os.stat(here / 'words.txt').st_size", lambda folder: (folder / "words.txt").write_text("longer")),
    ("open(here / 'words.txt', 'r+').read()", lambda folder: (folder / "words.txt").write_text("two")),
    (
        "os.read(os.open('words.txt', 0, dir_fd=os.open(here, 0)), 9)",
        lambda folder: (folder / "words.txt").write_text("two"),
    ),
    ("[w[2] for w in os.fwalk(here / 'more')]", lambda folder: (folder / "more" / "a.md").touch()),
    ("(here / 'link').resolve().name", lambda folder: relink(folder / "link", folder / "words.txt")),
    ("os.path.realpath(here / 'link')[-3:]", lambda folder: relink(folder / "link", folder / "words.txt")),
    (PLUGIN.format("plugin.py"), lambda folder: (folder / "more" / "plugin.py").write_text("NAME = 'new'")),
]


OPTIONAL = "try:\n    from extra import WORDS\nexcept ImportError:\n    WORDS = 1"


def make(path, text=""):
    """Make a file, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def relink(path, target):
    """Make a link, in place of the one before."""
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def pack(path, text):
    """Make an archive of one module."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("packed.py", text)


def build(path, text):
    """Make bytecode that has no source."""
    source = path.with_suffix(".txt")
    make(source, text)
    py_compile.compile(str(source), str(path))


LISTED = """
import os
from pathlib import Path
from promptkit import prompt
import _helper

here = Path(__file__).parent
words = (here / "words.txt").read_text() + _helper.WORDS + os.environ.get("WORDS", "")

@prompt(description=words)
def greet():
    return "x"

for file in sorted((here / "more").glob("*.md")):
    prompt(name=file.stem, description="From a file.")(lambda: "x")
"""


@pytest.fixture
def listed(recipes, talk):
    """A folder whose list depends on a recipe, a helper, a file, a folder and the environment."""
    folder = recipes(listed=LISTED, _helper='WORDS = "!"\n')
    (folder / "words.txt").write_text("Hello")
    (folder / "more").mkdir()
    (folder / "more" / "a.md").touch()
    session = [initialize("2025-11-25"), request(1, "prompts/list")]
    talk(folder, *session)
    return folder, lambda **options: talk(folder, *session, **options)[1]["result"]["prompts"]


def rewrite(path, old, new):
    """Change a file so that neither its size nor its time gives it away."""
    before = path.stat()
    path.write_text(path.read_text().replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


class TestNothingStale:
    def test_the_same_is_told_early(self, listed):
        """
        As long as all is as it was, so is the list.
        """
        folder, ask = listed

        assert [(each["name"], each["description"]) for each in ask()] == [
            ("a", "From a file."),
            ("greet", "Hello!"),
        ]
        assert len(sets(folder)) == 1

    @pytest.mark.parametrize(
        ("file", "old", "new", "described"),
        [
            ("listed.py", "words)", "str(1))", "1"),
            ("_helper.py", "!", "?", "Hello?"),
            ("words.txt", "Hello", "Howdy", "Howdy!"),
        ],
    )
    def test_a_file_that_was_read(self, listed, file, old, new, described):
        """
        A recipe, a helper or a file of words that was changed is seen by the next start.
        """
        folder, ask = listed
        rewrite(folder / file, old, new)

        assert {each["name"]: each.get("description") for each in ask()} == {
            "a": "From a file.",
            "greet": described,
        }

    def test_a_new_recipe(self, listed):
        """
        A file that is added to the folder is seen by the next start.
        """
        folder, ask = listed
        (folder / "late.py").write_text('from promptkit import prompt\nprompt(name="b")(lambda: "x")\n')

        assert [each["name"] for each in ask()] == ["a", "b", "greet"]

    def test_a_folder_below(self, listed):
        """
        A recipe in a new folder is seen by the next start, so is one that is added to it, and a file that
        makes the folder a skill.
        """
        folder, ask = listed
        source = 'from promptkit import prompt\nprompt(name={!r})(lambda: "x")\n'
        (folder / "ops" / "deep").mkdir(parents=True)
        found = []
        for path, text in (
            ("ops/deep/late.py", source.format("b")),
            ("ops/late.py", source.format("c")),
            ("ops/deep/SKILL.md", ""),
        ):
            (folder / path).write_text(text)
            found.append([[each["name"] for each in ask()] for _ in range(2)])

        assert found == [[["a", "b", "greet"]] * 2, [["a", "b", "c", "greet"]] * 2, [["a", "c", "greet"]] * 2]

    def test_a_recipe_that_is_gone(self, listed):
        """
        A prompt that is gone from its file is not listed any more.
        """
        folder, ask = listed
        (folder / "listed.py").write_text('from promptkit import prompt\nprompt(name="b")(lambda: "x")\n')

        assert [each["name"] for each in ask()] == ["b"]

    def test_a_folder_that_was_looked_through(self, listed):
        """
        A file that is added where a recipe looks for files is seen by the next start.
        """
        folder, ask = listed
        (folder / "more" / "b.md").touch()

        assert [each["name"] for each in ask()] == ["a", "b", "greet"]

    def test_a_variable_that_was_read(self, listed):
        """
        A recipe that reads the environment gets another list in another one, and the first in the first.
        """
        _, ask = listed

        described = [ask(WORDS=words)[1]["description"] for words in ("1", "2", "2", "1")]

        assert described == ["Hello!1", "Hello!2", "Hello!2", "Hello!1"]

    def test_a_variable_that_holds_a_default(self, recipes, start, talk, monkeypatch):
        """
        The list names the variable alone, so it is told early whatever the variable holds, and is
        the same. A request reads the variable anew.
        """
        folder = recipes(gated=IN_ENVIRONMENT)
        gate = folder.parent / "gate.open"
        session = [initialize("2025-11-25"), request(1, "prompts/list"), request(2, "prompts/get", GREET)]
        gate.touch()
        monkeypatch.setenv("TEAM", "Ada")
        first = talk(folder, *session)
        monkeypatch.setenv("TEAM", "Grace")
        assert told_early(start, folder, gate)
        second = talk(folder, *session)

        assert first[1] == second[1]
        texts = [reply[2]["result"]["messages"][0]["content"]["text"] for reply in (first, second)]
        assert texts == ["Hello, Ada.", "Hello, Grace."]
        assert all(b"Ada" not in each.read_bytes() for each in sets(folder))

    @pytest.mark.parametrize("name", ["TZ", "LC_ALL"])
    def test_a_variable_that_is_read_by_itself(self, gated, start, name):
        """
        What decides how files are decoded, and which time it is, is read by no recipe's own code.
        """
        folder, gate = gated
        assert told_early(start, folder, gate)

        gate.unlink()
        other = start(folder, **{name: "somewhere else"})
        say(other, initialize("2025-11-25"), request(1, "prompts/list"))

        assert not select.select([other.stdout], [], [], 0.5)[0]

    def test_no_value_of_a_variable_is_written(self, listed):
        """
        A key that a recipe reads from the environment does not reach the disk.
        """
        folder, ask = listed
        ask(WORDS="hunter2-" * 4)

        held = b"".join(path.read_bytes() for path in (folder / "__pycache__").glob("promptkit*"))
        assert b"Hello!hunter2" in held  # the author shows it
        assert held.count(b"hunter2-" * 4) == held.count(b"Hello!" + b"hunter2-" * 4)

    @pytest.mark.parametrize("first", ["", SLOW_TO_TAKE_OVER], ids=["quick", "slow"])
    def test_what_cannot_be_known_is_corrected(self, recipes, start, talk, first):
        """
        A list that depends on something else, as the order of a set does on chance, is told anew as
        soon as that shows, and not told early again; also if the server is slow to take over.
        """
        folder = recipes(
            order="""
            from promptkit import prompt
            prompt(name="now", description="".join(set("abcdefghijklmnop")))(lambda: "x")
            """
        )
        session = [initialize("2025-11-25"), notification("notifications/initialized")]
        session.append(request(1, "prompts/list"))
        kept = talk(folder, *session)[1]["result"]
        process = start(folder, first=first)
        say(process, *session)
        second = [hear(process), hear(process)][1]["result"]
        told = hear(process)
        say(process, request(2, "prompts/list"))
        third = hear(process)["result"]
        process.communicate()
        fourth = talk(folder, *session)[1]["result"]

        assert kept == second
        assert told["method"] == "notifications/prompts/list_changed"
        assert len({json.dumps(each) for each in (second, third, fourth)}) == 3

    def test_an_edit_during_the_import(self, gated, start, talk):
        """
        A list that an edit made wrong is told anew, and told early again once the files are as they were.
        """
        folder, gate = gated
        later, source = folder / "later.py", "from promptkit import prompt\nprompt(name='l')(lambda: 'x')\n"
        later.write_text(source)
        time.sleep(0.05)  # it is older than file systems can tell
        gate.touch()
        talk(folder, initialize("2025-11-25"))
        gate.unlink()
        process = start(folder)
        say(process, initialize("2025-11-25"), notification("notifications/initialized"))
        say(process, request(1, "prompts/list"))
        early = [hear(process), hear(process)][1]
        later.write_text(source.replace("'l'", "'changed'"))
        gate.touch()
        told = hear(process)
        process.communicate()
        later.write_text(source)
        time.sleep(0.05)
        talk(folder, initialize("2025-11-25"))

        assert names(early) == ["greet", "l", "part", "third"]
        assert told["method"] == "notifications/prompts/list_changed"
        assert told_early(start, folder, gate)

    def test_a_list_is_corrected_that_was_not_asked_for(self, recipes, start, talk):
        """
        The client is notified of a list that turned out to be wrong, also if it has not asked for it.
        """
        source = f"{UNORDERED}prompt(name='a')(lambda: 'x')\n"
        folder = recipes(order=f"{source}if not USUAL: late = prompt(name='late')(lambda: 'x')\n")
        talk(folder, initialize("2025-11-25"), PYTHONHASHSEED=USUAL)
        process = start(folder, PYTHONHASHSEED=OTHER)
        say(process, initialize("2025-11-25"), notification("notifications/initialized"))

        assert [hear(process)["id"], hear(process)["method"]] == [0, "notifications/prompts/list_changed"]

    @pytest.mark.parametrize("era", ["handshake", "modern"])
    def test_who_listens_late_is_corrected_then(self, recipes, start, talk, era):
        """
        A client that is not ready when its list turns out to be wrong is notified as soon as it is.
        """
        source = f"{UNORDERED}prompt(name='a')(lambda: 'x')\n"
        folder = recipes(order=f"{source}if not USUAL: late = prompt(name='late')(lambda: 'x')\n")
        opening = [
            initialize("2025-11-25"),
            request(1, "prompts/list"),
            request(2, "prompts/get", {"name": "a"}),
        ]
        listening = notification("notifications/initialized")
        if era == "modern":
            opening = [modern(1, "prompts/list"), modern(2, "prompts/get", {"name": "a"})]
            listening = modern(3, "subscriptions/listen", {"notifications": {"promptsListChanged": True}})
        talk(folder, *opening, PYTHONHASHSEED=USUAL)
        process = start(folder, PYTHONHASHSEED=OTHER)
        say(process, *opening)
        replies = [hear(process) for _ in opening]
        while b'"a"' in sets(folder)[0].read_bytes():
            time.sleep(0.005)  # until it has been found to be wrong
        say(process, listening)
        methods = [hear(process)["method"] for _ in range(2 if era == "modern" else 1)]

        assert [reply["id"] for reply in replies] == [0, 1, 2][-len(opening) :]
        assert names(replies[-2]) == ["a"]
        assert methods[-1] == "notifications/prompts/list_changed"

    def test_a_client_that_leaves_at_once_withdraws_the_set(self, gated, start):
        """
        A list that was not confirmed by the end of the process is not sent early again.
        """
        folder, gate = gated
        session = line(initialize("2025-11-25")) + line(request(1, "prompts/list"))
        assert len(start(folder, "--grace", "0").communicate(session, timeout=50)[0].splitlines()) == 2
        second = start(folder)
        second.stdin.write(session)
        second.stdin.flush()
        gate.touch()

        assert names([hear(second), hear(second)][1]) == ["greet", "part", "third"]
        assert second.stdin.close() is None
        assert second.wait(50) == 0
        assert told_early(start, folder, gate)

    @pytest.mark.parametrize("end", ["kill", "terminate"])
    def test_a_set_that_is_told_is_withdrawn_however_the_process_ends(self, gated, start, end):
        """
        Also after a crash: no list is sent early twice without being confirmed in between.
        """
        folder, gate = gated
        first = start(folder, "--grace", "0")
        say(first, initialize("2025-11-25"), request(1, "prompts/list"))
        assert [hear(first)["id"], hear(first)["id"]] == [0, 1]
        getattr(first, end)()
        first.wait(50)

        assert not told_early(start, folder, gate)

    def test_a_copy_of_the_folder(self, listed, talk):
        """
        A folder that was copied with all that is in it has no set of its own yet.
        """
        folder, _ = listed
        copy = shutil.copytree(folder, folder.parent / "copy")
        (copy / "words.txt").write_text("Other")

        found = talk(copy, initialize("2025-11-25"), request(1, "prompts/list"))[1]["result"]["prompts"]
        assert found[1]["description"] == "Other!"

    @pytest.mark.parametrize(
        ("code", "change"),
        [
            ("from extra import WORDS", lambda place: (place / "inner" / "pyproject.toml").touch()),
            ("from extra import WORDS", lambda place: (place / "pyproject.toml").unlink()),
            ("from .. import WORDS", lambda place: (place / "inner" / "near" / "__init__.py").unlink()),
        ],
    )
    def test_what_stands_above_the_folder(self, recipes, talk, tmp_path, code, change):
        """
        The project around the recipes may become another, and so may the package that they are in.
        """
        folder = tmp_path / "inner" / "near" / "recipes"
        make(tmp_path / "pyproject.toml")
        make(tmp_path / "extra.py", "WORDS = 1")
        make(folder.parent / "__init__.py", "WORDS = 1")
        make(folder / "__init__.py")
        source = f"try:\n    {code}\nexcept ImportError:\n    WORDS = 2\nfrom promptkit import prompt\n"
        make(folder / "asks.py", source + DESCRIBED.replace("words", "WORDS"))
        session, told = [initialize("2025-11-25"), request(1, "prompts/list")], []
        time.sleep(0.05)  # all of it is older than file systems can tell
        for _ in range(2):
            talk(folder, *session)
            told.append(talk(folder, *session)[1]["result"]["prompts"][0]["description"])
            if len(told) == 1:
                assert len(sets(folder)) == 1
                change(tmp_path)
                told.append(talk(folder, *session)[1]["result"]["prompts"][0]["description"])

        assert told == ["1", "2", "2"]

    def test_a_link_that_leads_elsewhere(self, recipes, talk):
        """
        A link to a folder stands for that folder, also where bytecode is kept in one place.
        """
        for name in ("v1", "v2"):
            recipes(name, a=f"from promptkit import prompt\nprompt(name='{name}')(lambda: 'x')\n")
        parent = recipes("v1").parent
        session = [initialize("2025-11-25"), request(1, "prompts/list")]
        kept = {"PYTHONPYCACHEPREFIX": str(parent / "kept")}
        found = []
        for name in ("v1", "v2", "v1"):
            (parent / "cur").unlink(missing_ok=True)
            (parent / "cur").symlink_to(name)
            found.append(names(talk(parent / "cur", *session, **kept)[1]))

        assert found == [["v1"], ["v2"], ["v1"]]

    @pytest.mark.parametrize(
        ("code", "described"),
        [
            ('sorted(k for k in os.environ if k.startswith("FEATURE_"))', ["[]", "['FEATURE_A']"]),
            ('os.environb.get(b"FEATURE_A")', ["None", "b'1'"]),
            ('open("here.txt").read()', ["one", "two"]),
            ("__import__('elsewhere').WHICH", ["one", "two"]),
            ("os.path.basename(os.path.abspath(''))", ["one", "two"]),
        ],
        ids=["names of variables", "bytes", "current folder", "path", "absolute path"],
    )
    def test_where_a_server_is_started(self, recipes, start, tmp_path, code, described):
        """
        What a recipe takes from the environment it was started in is taken anew in another one.
        """
        source = f"import os\nfrom promptkit import prompt\nwords = str({code})\n"
        folder = recipes(a=f"{source}prompt(name='a', description=words)(lambda: 'x')\n")
        found = []
        for number, variables in [("one", {}), ("two", {"FEATURE_A": "1"}), ("one", {})]:
            place = tmp_path / number
            place.mkdir(exist_ok=True)
            (place / "here.txt").write_text(number)
            (place / "elsewhere.py").write_text(f"WHICH = {number!r}\n")
            process = start(folder, cwd=place, PYTHONPATH=str(place), **variables)
            say(process, initialize("2025-11-25"), request(1, "prompts/list"))
            found.append([hear(process), hear(process)][1]["result"]["prompts"][0]["description"])
            process.communicate()

        assert found == [*described, described[0]]

    def test_what_a_server_can_do_is_confirmed(self, recipes, talk):
        """
        If it turns out to declare something else the set is not used again.
        """
        source = (
            "prompt(name='a')(lambda: 'x')\nif not USUAL: today = resource('notes://today')(lambda: 'x')\n"
        )
        folder = recipes(a=UNORDERED + source)
        declared = [
            "resources"
            in talk(folder, initialize("2025-11-25"), PYTHONHASHSEED=seed)[0]["result"]["capabilities"]
            for seed in (USUAL, OTHER, OTHER)
        ]

        assert declared == [False, False, True]

    def test_recipes_that_cannot_be_served_any_more(self, recipes, start):
        """
        What was asked for is refused, standard error says why, and nothing is kept.
        """
        folder = recipes(a=f"{UNORDERED}if USUAL: chosen = prompt(name='a')(lambda: 'x')\n")
        session = line(initialize("2025-11-25")) + line(request(1, "prompts/get", {"name": "a"}))
        target = f"{folder / 'a.py'}:chosen"
        start(target, PYTHONHASHSEED=USUAL).communicate(session, timeout=50)
        assert len(sets(folder)) == 1
        process = start(target, PYTHONHASHSEED=OTHER)
        out, err = process.communicate(session, timeout=50)

        assert "cannot be served" in json.loads(out.splitlines()[1])["error"]["message"]
        assert (b"has no 'chosen'" in err, process.returncode, sets(folder)) == (True, 2, [])

    @pytest.mark.parametrize(
        "code",
        [
            'subprocess.run([sys.executable, "-c", ""], check=True)',
            'socket.getaddrinfo("127.0.0.1", 1)',
            'sqlite3.connect(":memory:").close()',
        ],
    )
    def test_what_comes_from_elsewhere_is_not_kept(self, recipes, talk, code):
        """
        Of recipes that ask other programs when they are imported no set is kept.
        """
        source = f"import socket, sqlite3, subprocess, sys\nfrom promptkit import prompt\n{code}\n"
        folder = recipes(asks=f"{source}prompt(name='a')(lambda: 'x')\n")
        talk(folder, initialize("2025-11-25"))

        assert sets(folder) == []

    @pytest.mark.parametrize("code", UNSEEN)
    def test_what_may_be_asked_for_unseen_is_found(self, tmp_path, code):
        """
        Code of an import that may depend on something unobserved is found without running it.
        """
        source = "from pathlib import Path\nfrom promptkit import prompt\nhere = Path(__file__).parent\n"
        (tmp_path / "asks.py").write_text(f"{source}{code}\nprompt(name='a')(lambda: 'x')\n")
        for module in ("statistics", "xml.etree.ElementTree"):
            import_module(module)  # as whoever uses it has done

        assert names_used([str(tmp_path / "asks.py")], ["asks"]) is None

    @pytest.mark.parametrize("code", HARMLESS)
    def test_what_is_harmless_is_told_from_it(self, tmp_path, code):
        """
        What only runs when a prompt is rendered, or gives the same for the same, is not taken for that.
        """
        source = "from pathlib import Path\nfrom promptkit import prompt\nhere = Path(__file__).parent\n"
        (tmp_path / "asks.py").write_text(f"{source}{code}\nprompt(name='a')(lambda: 'x')\n")

        assert names_used([str(tmp_path / "asks.py")], ["asks", "asks._own", "_own"]) is not None

    @pytest.mark.parametrize("code", TOLD)
    def test_what_cannot_be_observed_is_not_kept(self, recipes, talk, code):
        """
        No set is kept of recipes whose import may depend on something that is not observed.
        """
        source = "from pathlib import Path\nfrom promptkit import prompt\nhere = Path(__file__).parent\n"
        folder = recipes(asks=f"{source}{code}\nprompt(name='a')(lambda: 'x')\n")
        (folder / "words.txt").write_text("x")
        (folder / "more").mkdir()
        assert 0 in talk(folder, initialize("2025-11-25"))

        assert sets(folder) == []

    def test_what_is_known_to_be_harmless_is_kept(self, recipes, talk):
        """
        What an import only defines, or reads where it is seen, is no reason to keep nothing.
        """
        source = "from pathlib import Path\nfrom promptkit import prompt\nhere = Path(__file__).parent\n"
        codes = {
            f"r{n}": f"{source}{code}\nprompt(name='p{n}')(lambda: 'x')\n" for n, code in enumerate(HARMLESS)
        }
        folder = recipes(_own="WORDS = ['a']\n", **{n: c.replace("late", n + "x") for n, c in codes.items()})
        (folder / "words.txt").write_text("x")
        assert 0 in talk(folder, initialize("2025-11-25"))

        assert len(sets(folder)) == 1

    @pytest.mark.parametrize(("code", "change"), SEEN)
    def test_what_is_read_is_read_anew(self, recipes, talk, code, change):
        """
        Once anything has changed that decides what the list is, the next start tells the new one.
        """
        source = "import os\nfrom pathlib import Path\nfrom promptkit import prompt\n"
        folder = recipes(asks=f"{source}here = Path(__file__).parent\nwords = {code}\n{DESCRIBED}", _own="")
        (folder / "words.txt").write_text("one")
        (folder / "more").mkdir()
        session = [initialize("2025-11-25"), request(1, "prompts/list")]
        truth = {}
        for when in ("before", "after"):
            talk(folder, *session)
            truth[when] = talk(folder, *session, options=["--no-cache"])[1]
            assert talk(folder, *session)[1] == truth[when]
            if when == "before":
                change(folder)

        assert truth["before"] != truth["after"]

    @pytest.mark.parametrize(
        ("code", "change"),
        [
            ("from words import WORDS", lambda place: (place / "first" / "words.py").write_text("WORDS = 2")),
            (
                "from words import WORDS",
                lambda place: (place / "second" / "words.py").write_text("WORDS = 22"),
            ),
            (
                "from words import WORDS",
                lambda place: make(place / "first" / "words" / "__init__.py", "WORDS = 2"),
            ),
            (
                "from space.words import WORDS",
                lambda place: make(place / "first/space/words.py", "WORDS = 2"),
            ),
            (OPTIONAL, lambda place: (place / "recipes" / "extra.py").write_text("WORDS = 2")),
            (OPTIONAL, lambda place: (place / "first" / "extra.py").write_text("WORDS = 2")),
            (OPTIONAL, lambda place: make(place / "missing" / "extra.py", "WORDS = 2")),
            (
                "WORDS = (here / 'link').read_text()",
                lambda place: relink(place / "recipes" / "link", place / "b"),
            ),
            ("from packed import WORDS", lambda place: pack(place / "packed.zip", "WORDS = 2")),
            (
                "from compiled import WORDS",
                lambda place: build(place / "first" / "compiled.pyc", "WORDS = 2"),
            ),
        ],
        ids=[
            "first",
            "changed",
            "package",
            "namespace",
            "beside",
            "path",
            "made",
            "link",
            "archive",
            "no source",
        ],
    )
    def test_what_is_imported_is_imported_anew(self, recipes, talk, tmp_path, code, change):
        """
        A module that is found elsewhere, or found at all, by the next start makes the list of that start.
        """
        source = (
            f"from pathlib import Path\nhere = Path(__file__).parent\n{code}\nfrom promptkit import prompt\n"
        )
        folder = recipes(asks=f"{source}words = WORDS\n{DESCRIBED}")
        for path in ("second/words.py", "second/space/words.py", "first/other.py", "b"):
            make(tmp_path / path, "WORDS = 1")
        pack(tmp_path / "packed.zip", "WORDS = 1")
        build(tmp_path / "first" / "compiled.pyc", "WORDS = 1")
        relink(folder / "link", tmp_path / "second" / "words.py")
        make(tmp_path / "b", "b")
        path = os.pathsep.join(str(tmp_path / name) for name in ("missing", "first", "second", "packed.zip"))
        session, truth = [initialize("2025-11-25"), request(1, "prompts/list")], {}
        time.sleep(0.05)  # all of it is older than file systems can tell
        for when in ("before", "after"):
            talk(folder, *session, PYTHONPATH=path)
            truth[when] = talk(folder, *session, options=["--no-cache"], PYTHONPATH=path)[1]
            assert talk(folder, *session, PYTHONPATH=path)[1] == truth[when]
            if when == "before":
                change(tmp_path)

        assert truth["before"] != truth["after"]

    def test_faulty_recipes_are_not_kept(self, recipes, start):
        """
        Faults in recipes are found and reported at each start.
        """
        folder = recipes(good=GREETING, bad="import nothing_like_it")
        process = start(folder)
        _, err = process.communicate(line(initialize("2025-11-25")), timeout=20)

        assert b"nothing_like_it" in err
        assert sets(folder) == []


def rewritten_in_place(folder):
    """Change a large file so that its size, its number and the time when it was written stay."""
    path = folder / "large.txt"
    before = path.stat()
    path.write_bytes(b"y" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


class TestLargeFiles:
    def test_one_that_is_rewritten_in_place(self, recipes, talk):
        """
        A large file is not read at each start, and it cannot change unseen all the same.
        """
        folder = recipes(
            large="""
            from pathlib import Path
            from promptkit import prompt
            words = (Path(__file__).parent / "large.txt").read_text()
            prompt(name="a", description=words[0])(lambda: "x")
            """
        )
        (folder / "large.txt").write_bytes(b"x" * 1_100_000)
        session = [initialize("2025-11-25"), request(1, "prompts/list")]
        time.sleep(0.05)  # it is older than file systems can tell
        talk(folder, *session)
        assert len(sets(folder)) == 1
        rewritten_in_place(folder)

        assert talk(folder, *session)[1]["result"]["prompts"][0]["description"] == "y"


class TestWhereItIsKept:
    def test_nothing_is_kept_without_a_cache(self, recipes, talk):
        """
        With --no-cache nothing is read and nothing is written.
        """
        folder = recipes(greeting=GREETING)
        talk(folder, initialize("2025-11-25"), options=["--no-cache"])

        assert sets(folder) == []

    @pytest.mark.parametrize("options", [["--no-watch"], ["--rate", "9"], ["--audit", os.devnull]])
    def test_nothing_is_told_early_that_could_not_be_corrected_or_counted(self, recipes, talk, options):
        """
        Without a watch, with a rate and with an audit the recipes come first.
        """
        folder = recipes(greeting=GREETING)
        talk(folder, initialize("2025-11-25"), options=options)

        assert sets(folder) == []

    @pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are text on this system")
    def test_a_folder_whose_name_is_no_text(self, recipes, start, tmp_path):
        """
        It is served, and no set is kept of it; the one message is that it cannot be watched.
        """
        folder = recipes(greeting=GREETING)
        odd = folder.rename(os.fsdecode(os.fsencode(tmp_path) + b"/odd-\xff"))
        out, err = start(odd).communicate(line(initialize("2025-11-25")), timeout=20)

        assert json.loads(out)["id"] == 0
        assert b"Traceback" not in err
        assert sets(odd) == []

    def test_it_is_kept_in_the_users_cache_where_no_bytecode_is(self, gated, start, tmp_path):
        """
        Who wants no bytecode beside the sources wants no set there; the next start is early all the same.
        """
        folder, gate = gated
        shutil.rmtree(folder / "__pycache__")
        gate.touch()
        # A name without a dot might be that of a module, which recipes could import from here.
        variables = {"PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": str(tmp_path / "cache.home")}
        start(folder, **variables).communicate(line(initialize("2025-11-25")), timeout=20)
        kept = list((tmp_path / "cache.home" / "promptkit").iterdir())
        gate.unlink()
        second = start(folder, **variables)
        say(second, initialize("2025-11-25"), request(1, "prompts/list"))

        assert [file.suffix for file in kept] == [".compiled"]
        assert [hear(second)["id"] for _ in range(2)] == [0, 1]
        assert not (folder / "__pycache__").exists()

    def test_a_folder_that_cannot_be_written_is_served(self, recipes, talk):
        """
        Where no set can be kept recipes are served without.
        """
        folder = recipes(greeting=GREETING)
        (folder / "__pycache__").write_text("a file in the way")

        assert names(talk(folder, initialize("2025-11-25"), request(1, "prompts/list"))[1])[0] == "greet"

    @pytest.mark.parametrize("options", [["--name", "other"], ["--page-size", "1"]])
    def test_each_way_to_serve_has_its_own(self, gated, talk, options):
        """
        Other options make another set, and leave the first one alone.
        """
        folder, gate = gated
        gate.touch()
        before = sets(folder)
        talk(folder, initialize("2025-11-25"), options=options)

        assert len(sets(folder)) == 2
        assert set(before) < set(sets(folder))


#: A recipe with a prompt and a resource of its name.
NAMED = '''
from promptkit import prompt, resource

@prompt
def {name}(name: str = "you"):
    """Say hello."""
    return f"Hello, {{name}}."

@resource("{name}://today")
def today_{name}():
    return "nothing"
'''


class TestLazyImport:
    """
    Prompts are got while other recipes are still being imported.
    """

    @pytest.fixture
    def early(self, recipes, talk, start):
        """Starts a server with a set of two recipes. The import of one ends when the gate is touched."""
        folder = recipes(gated=NAMED.format(name="gated"), free=NAMED.format(name="free"))
        gate = folder.parent / "gate.open"
        gate.touch()
        talk(folder, initialize("2025-11-25"))
        assert len(sets(folder)) == 1
        gate.unlink()
        slow = {"TEST_GATE_IN_RECIPE": "1"}
        return lambda *options: (start(folder, *options, **slow), gate, folder)

    def test_a_prompt_waits_for_its_own_file_alone(self, early):
        """
        Whatever its place in the folder; pings, lists and completion go on, too.
        """
        process, gate, _ = early()
        say(process, initialize("2025-11-25"), request(1, "prompts/get", {"name": "gated"}))
        say(
            process,
            request(2, "prompts/get", {"name": "free"}),
            request(3, "ping"),
            request(4, "prompts/list"),
        )
        reference = {"ref": {"type": "ref/prompt", "name": "free"}, "argument": {"name": "name", "value": ""}}
        say(process, request(5, "completion/complete", reference))
        told = {hear(process)["id"] for _ in range(5)}
        gate.touch()

        assert told == {0, 2, 3, 4, 5}
        assert hear(process)["id"] == 1

    def test_a_file_below_is_another_than_one_of_its_name(self, recipes, talk, start):
        """
        Its prompt waits for it alone, too.
        """
        folder = recipes(gated=NAMED.format(name="gated"), free=NAMED.format(name="free"))
        recipes(folder="recipes/ops", free=NAMED.format(name="deep"))
        gate = folder.parent / "gate.open"
        gate.touch()
        talk(folder, initialize("2025-11-25"))
        gate.unlink()
        process = start(folder, TEST_GATE_IN_RECIPE="1")
        say(process, initialize("2025-11-25"), request(1, "prompts/get", {"name": "gated"}))
        say(process, request(2, "prompts/get", {"name": "deep"}), request(3, "prompts/get", {"name": "free"}))
        told = {hear(process)["id"] for _ in range(3)}
        gate.touch()

        assert told == {0, 2, 3}
        assert hear(process)["id"] == 1

    def test_what_needs_all_files_waits_for_them(self, early):
        """
        A resource, an unknown prompt and a cursor nobody made are answered as if nothing had been early.
        """
        process, gate, _ = early()
        say(process, initialize("2025-11-25"), request(1, "resources/read", {"uri": "free://today"}))
        say(process, request(2, "prompts/get", {"name": "fre"}), request(3, "prompts/list", {"cursor": "x"}))
        say(process, request(4, "prompts/get", {"name": "free"}))
        told = [hear(process)["id"] for _ in range(2)]
        gate.touch()
        late = {reply["id"]: reply for reply in (hear(process) for _ in range(3))}

        assert told == [0, 4]
        assert late[1]["result"]["contents"][0]["text"] == "nothing"
        assert "did you mean 'free'?" in late[2]["error"]["message"]
        assert late[3]["error"]["code"] == -32602

    def test_whoever_hangs_up_is_still_answered(self, early):
        """
        A request that waits for a file is held, and nothing is said on standard error.
        """
        process, gate, _ = early()
        say(process, initialize("2025-11-25"), request(1, "prompts/get", {"name": "gated"}))
        process.stdin.close()
        assert hear(process)["id"] == 0
        gate.touch()

        assert hear(process)["result"]["messages"][0]["content"]["text"] == "Hello, you."
        assert (process.wait(20), process.stderr.read()) == (0, b"")

    def test_a_request_that_waits_too_long_is_refused(self, early):
        """
        The time limit holds for what is imported lazily.
        """
        process, *_ = early("--timeout", "1")
        say(process, initialize("2025-11-25"), request(1, "prompts/get", {"name": "gated"}))
        replies = [hear(process) for _ in range(2)]

        assert replies[1]["id"] == 1
        assert replies[1]["error"]["code"] == -32603

    def test_recipes_are_reloaded_once_all_are_imported(self, early):
        """
        The set was right, so nobody is told of a change before there is one.
        """
        process, gate, folder = early()
        say(process, initialize("2025-11-25"), notification("notifications/initialized"))
        say(process, request(1, "prompts/get", {"name": "free"}))
        assert [hear(process)["id"] for _ in range(2)] == [0, 1]
        gate.touch()
        say(process, request(2, "resources/read", {"uri": "free://today"}))
        assert hear(process)["id"] == 2
        (folder / "free.py").write_text(NAMED.format(name="free").replace("Say hello.", "Say good-bye."))

        assert hear(process)["method"] == "notifications/prompts/list_changed"


@pytest.fixture
def store(tmp_path, environment, monkeypatch):
    """A store, and a set in it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    store = Store(str(tmp_path))
    fill(store, b"one", b"two" * 50)
    return store


def nothing():
    """The inputs of recipes that read nothing: other tests may have changed where modules are looked for."""
    return Inputs(path=value_digest(repr(sys.path), b"key"), key=b"key")


def fill(store, *pages):
    named = [(key_of("prompts/list", "2025-11-25", str(n)), page) for n, page in enumerate(pages)]
    store.write(nothing(), Capabilities(), named)


def forge(store, inputs, pages):
    """Write a set with any content, as an attacker who knows the format can."""
    put(store, msgspec.msgpack.encode(Index(MADE_BY, inputs, Capabilities(), pages)))


def put(store, index):
    Path(store.file).write_bytes(MAGIC + b"\0" + len(index).to_bytes(8, "big") + digest(index) + index)


def read(store):
    """The pages in a store; None if it has no set, and for each page that is not there."""
    found = store.read()
    if found is None:
        return None
    with closing(found):
        return [found.page("prompts/list", "2025-11-25", str(n)) for n in range(len(found.index.pages))]


class TestHostileSets:
    """Whatever stands in the place of a set: a server starts, and tells what is true."""

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    def test_a_pipe_is_not_waited_for(self, store):
        """
        A pipe in the set's place is not read.
        """
        Path(store.file).unlink()
        os.mkfifo(store.file)

        assert read(store) is None

    def test_a_size_is_not_believed(self, store):
        """
        A file that claims an index, or a page, of 8 GiB, and is as large, takes no memory.
        """
        path = Path(store.file)
        data = path.read_bytes()
        head = len(data) - len(data[data.index(b"\0") :])
        os.truncate(path, 8 << 30)
        with path.open("r+b") as file:
            file.write(data[: head + 1] + (8 << 30).to_bytes(8, "big"))
        assert read(store) is None

        for page in (
            (0, 8 << 30, b"x" * 16),
            (1 << 63, 1, b""),
            (-1, 1, b""),
            (0, -1, b""),
            (1 << 40, 5, b""),
        ):
            path.unlink(missing_ok=True)
            forge(store, nothing(), {key_of("prompts/list", "2025-11-25", "0"): page})
            assert read(store) == [None]

    @pytest.mark.parametrize(
        "inputs",
        [
            {"contents": {"a\0b": b"x"}},
            {"contents": {"/dev/zero": b"x"}},
            {"contents": {"/proc/kcore": b"x"}},
            {"contents": {"": b"x"}, "names": {"\0": b"x"}},
            {"names": {"a\0b": b""}},
            {"modules": {"a\0b": b""}},
            {"stamps": {"a\0b": None}},
            {"contents": {"x" * 100_000: b""}},
            {"names": {"x/" * 10_000: b"y"}},
            {"variables": {"a\0b": b"x"}},
            {"key": b"x" * 100},
            {"contents": {f"/nothing/{number}": b"x" for number in range(10_000)}},
        ],
        ids=lambda inputs: next(iter(inputs)),
    )
    def test_strange_inputs_are_no_error(self, store, inputs):
        """
        A set with valid digests that names unreadable files is ignored.
        """
        forge(store, Inputs(**{"path": b"x" * 16, **inputs}), {})

        assert read(store) is None

    @pytest.mark.parametrize(
        "index",
        [
            b"\x91" * 100_000,
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\xff\xff\xff\xff",
            b"",
            b"\xc1",
            b"\xc6\xff\xff\xff\xff",
        ],
    )
    def test_a_strange_index_is_no_error(self, store, index):
        """
        So is one whose index is nested, claims more than there is, or is missing.
        """
        put(store, index)

        assert read(store) is None

    def test_a_large_index_is_not_read(self, store, monkeypatch):
        """
        A set is not written that would not be read.
        """
        monkeypatch.setattr("promptkit.transports.startup_cache.set_writer.MAX_INDEX_BYTES", 100)
        Path(store.file).unlink()
        fill(store, b"x")

        assert not Path(store.file).exists()

    def test_what_takes_long_to_compare_is_not_used(self, store, monkeypatch):
        """
        A set that takes longer to check than the recipes to import is ignored.
        """
        monkeypatch.setattr("promptkit.transports.startup_cache.fingerprints._MAX_COMPARING_S", 0)

        assert read(store) is None

    def test_a_file_that_shrinks_while_it_is_read(self, store):
        """
        A page that is gone when it is asked for is not sent.
        """
        with closing(store.read()) as found:
            os.truncate(store.file, 100)

            assert found.page("prompts/list", "2025-11-25", "0") is None

    @pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write anywhere")
    def test_a_set_that_cannot_be_withdrawn_is_none(self, store):
        """
        Where nothing can be written nothing can be withdrawn, so nothing is sent early.
        """
        Path(store.file).chmod(0o400)

        assert read(store) is None

    def test_a_withdrawn_set_is_none_until_it_is_confirmed(self, store):
        """
        A list is sent early once, unless it is confirmed.
        """
        with closing(store.read()) as found:
            assert found.withdraw()
            assert read(store) is None
            found.confirm()

        assert read(store) == [b"one", b"two" * 50]


class TestTampering:
    def test_what_was_written_is_read(self, store):
        """
        A set comes back as it was.
        """
        assert read(store) == [b"one", b"two" * 50]

    def test_no_byte_can_be_changed(self, store):
        """
        Whichever byte of the file changes, nothing is sent that was not written.
        """
        path = Path(store.file)
        data = path.read_bytes()
        for place in range(len(data)):
            path.write_bytes(data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :])
            found = read(store)

            assert found is None or set(found) <= {b"one", b"two" * 50, None}
            assert found != [b"one", b"two" * 50]

    def test_a_part_of_a_file_is_not_used(self, store):
        """
        A file that was cut off anywhere tells nothing that is not whole.
        """
        path = Path(store.file)
        data = path.read_bytes()
        for size in range(len(data)):
            path.write_bytes(data[:size])
            found = read(store)

            assert found is None or set(found) <= {b"one", None}

    @pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no such permissions")
    @pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
    def test_a_file_that_others_may_write_is_not_read(self, store, mode):
        """
        A file that others may write to is not sent.
        """
        Path(store.file).chmod(mode)

        assert read(store) is None

    @pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give files away")
    def test_a_file_of_somebody_else_is_not_read(self, store):
        """
        A file of another user is not sent.
        """
        os.chown(store.file, 12345, 12345)

        assert read(store) is None

    @pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed on this system")
    def test_a_link_is_not_followed(self, store, tmp_path):
        """
        A link to a set somewhere else is not one.
        """
        Path(store.file).rename(tmp_path / "elsewhere")
        Path(store.file).symlink_to(tmp_path / "elsewhere")

        assert read(store) is None

    def test_a_folder_is_not_a_set(self, store):
        """
        Whatever else stands there is left alone.
        """
        Path(store.file).unlink()
        Path(store.file).mkdir()

        assert read(store) is None
        fill(store, b"x")
        assert Path(store.file).is_dir()

    @pytest.mark.parametrize("seconds", [25 * 3600, -3600], ids=["a day ago", "tomorrow"])
    def test_an_old_one_is_not_read(self, store, seconds):
        """
        A set that was not confirmed for a day is made again.
        """
        then = time.time() - seconds
        os.utime(store.file, (then, then))

        assert read(store) is None

    def test_another_version_is_not_read(self, store, monkeypatch):
        """
        A set of another promptkit, msgspec or Python is made anew.
        """
        monkeypatch.setattr("promptkit.transports.startup_cache.store.MADE_BY", "another")

        assert read(store) is None


WRITER = """
import sys
from promptkit.transports.startup_cache.fingerprints import Inputs, folder_digest, value_digest
from promptkit.transports.startup_cache.store import key_of
from promptkit.transports.startup_cache.store import Store
from promptkit.protocol.capabilities import Capabilities
folder, letter = sys.argv[1:]
store = Store(folder)
pages = [(key_of("prompts/list", "2025-11-25", str(n)), letter.encode() * 5000 + b"%d" % n) for n in range(9)]
for _ in range(100):
    store.write(Inputs(key=b"key"), Capabilities(), pages)
"""


def test_writers_do_not_disturb_each_other(store, tmp_path, environment):
    """
    While several processes write, a reader finds a whole set of one of them; no temporary file is left.
    """
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, letter], env=environment) for letter in "abc"]
    found = []
    while any(writer.poll() is None for writer in writers):
        found.append(read(store))

    assert [writer.returncode for writer in writers] == [0, 0, 0]
    whole = [[letter * 5000 + b"%d" % n for n in range(9)] for letter in (b"a", b"b", b"c")]
    assert all(pages in [*whole, [b"one", b"two" * 50]] for pages in found)
    assert read(store) in whole
    assert list(Path(store.file).parent.iterdir()) == [Path(store.file)]


@prompt
def greet(name: str = "you"):
    """Say hello."""
    return user(f"Hello, {name}.")


@resource("notes://{day}")
def notes(day: str) -> str:
    """What was noted."""
    return f"Nothing on {day}."


CATALOG = compile(Recipes(prompts=(greet,), resources=(notes,)))
IDENTITY = ServerInfo("promptkit", VERSION)
SESSION = b"".join(
    map(
        line,
        [
            modern(0, "server/discover"),
            initialize("2025-06-18", 1),
            notification("notifications/initialized"),
            request(2, "prompts/list"),
            request(3, "prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
            request(4, "prompts/list", {"cursor": "nowhere"}),
            modern(5, "resources/templates/list"),
            request(6, "resources/read", {"uri": "notes://monday"}),
            request(7, "nothing/like/it"),
            request(8, "tools/list"),
            modern(9, "prompts/get", {"name": "unknown"}),
            request(10, "resources/list"),
        ],
    )
)


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(st.integers(0, len(SESSION)), max_size=6).map(sorted), early=st.integers(0, 7))
def test_a_client_cannot_tell_who_answers(tmp_path_factory, cuts, early):
    """
    Wherever the stream is cut, and whenever the server takes over, each request gets the reply that
    it would have got from the server alone.
    """
    parts = [SESSION[a:b] for a, b in zip([0, *cuts], [*cuts, len(SESSION)], strict=True)]
    parts = [part for part in parts if part]
    alone, sent = [], []
    server = Server(CATALOG, alone.append)
    server.receive_data(SESSION)
    pages = [(key_of(each, revision.date, at), page) for (each, revision, at), page in server.pages()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", False)
        store = Store(str(tmp_path_factory.getbasetemp()))
        store.write(nothing(), Capabilities(resources=True), pages)
    arriving, ended = Queue(), Event()
    first = EarlyServer(store.read(), IDENTITY, Limits(), sent.append)
    first.read_from(arriving.get, lambda: None)
    for part in parts[:early]:
        arriving.put(part)
    while not arriving.empty():
        pass
    held = first.hand_over()
    for part in [*parts[early:], b""]:
        arriving.put(part)
    reads = chain([first.read_rest], repeat(arriving.get))
    server = Server(CATALOG, sent.append, connection=first.connection)
    server.read_from(map(call, reads).__next__, ended.set, held)
    ended.wait(50)
    server.close(1)

    assert by_id(sent) == by_id(alone)
    assert server.confirm(first.sent_pages)


def by_id(sent):
    return sorted((json.loads(reply)["id"], reply) for reply in b"".join(sent).splitlines())


def test_a_folder_that_becomes_a_link(tmp_path):
    """
    Who walks through a folder does not follow links, so that these have names of their own.
    """
    (tmp_path / "here" / "inner").mkdir(parents=True)
    before = folder_digest(str(tmp_path / "here"))
    (tmp_path / "here" / "inner").rename(tmp_path / "inner")
    (tmp_path / "here" / "inner").symlink_to("../inner")

    assert folder_digest(str(tmp_path / "here")) != before


class TestImportTrace:
    @pytest.fixture
    def known(self, tmp_path):
        """A function that returns a file, and what is known of it as if it had been written before."""
        file = tmp_path / "words"
        file.write_text("x")

        def known(age_s):
            with trace_imports(str(tmp_path / "recipes")) as trace:
                trace._begun += age_s * 1_000_000_000
                file.read_text()
            return file, trace.inputs()

        return known

    def test_it_leaves_no_trace(self, tmp_path):
        """
        Once a trace is over the environment is read as before.
        """
        before = os.environ.encodekey
        with trace_imports(str(tmp_path)) as trace:
            os.environ.get("SOMETHING")
        os.environ.get("ANOTHER")

        assert os.environ.encodekey == before
        noted = trace.inputs().variables
        assert (noted.get("SOMETHING"), "ANOTHER" in noted) == (b"", False)

    def test_what_is_read_is_an_input(self, tmp_path):
        """
        A file that recipes read decides what they are, also if it is not there.
        """
        old = tmp_path / "old"
        old.write_text("x")
        with trace_imports(str(tmp_path / "recipes")) as trace:
            trace._begun += 1_000_000_000  # as if what is here had been here for a while
            old.read_text()
            with pytest.raises(FileNotFoundError):
                (tmp_path / "missing").read_text()
        found = trace.inputs()

        own = {path: was for path, was in found.contents.items() if path.startswith(str(tmp_path))}
        assert own.keys() == {str(old), str(tmp_path / "missing")}
        assert found.is_current
        (tmp_path / "missing").touch()
        assert not found.is_current

    def test_a_file_with_the_same_stamp_is_not_read_again(self, known, monkeypatch):
        """
        Of a file that was there long before, the stamp says enough.
        """
        file, found = known(age_s=3)
        monkeypatch.setattr("promptkit.transports.startup_cache.fingerprints.file_digest", None)

        assert found.stamps_if_current()[str(file)] == file_stamp(str(file))

    def test_what_a_start_has_seen_is_not_looked_at_again(self, tmp_path, monkeypatch):
        """
        A set that is current knows the stamps of its files, as a reload compares them.
        """
        monkeypatch.setattr("sys.dont_write_bytecode", False)
        file, gone = tmp_path / "recipe.py", str(tmp_path / "gone")
        file.touch()
        contents = {str(file): b"", gone: b""}
        state = stamps_digest([file_stamp(str(file)), None])
        store = Store(str(tmp_path))
        store.write(structs.replace(nothing(), contents=contents, state=state), Capabilities(), ())
        found = CompiledSet(store)
        found.found.close()

        assert found.seen() == {str(file): file_stamp(str(file)), gone: None}

    def test_a_file_with_another_stamp_is_read_again(self, known):
        """
        Another stamp alone changes nothing, and neither size nor mtime hide an edit.
        """
        file, found = known(age_s=3)
        before = file_stamp(str(file))
        while file_stamp(str(file)) == before:  # the clock of a file system ticks slowly
            os.utime(file, ns=(before[0], before[0]))
        touched = found.is_current
        rewrite(file, "x", "y")

        assert (touched, found.is_current) == (True, False)

    @pytest.mark.parametrize(("age_s", "tells"), [(1, True), (3, False)])
    def test_a_stamp_that_an_edit_may_leave_as_it_is_says_nothing(self, known, monkeypatch, age_s, tells):
        """
        A clock may tick as slowly as a file is young, and the ctime may be when the file was made.
        """
        monkeypatch.setattr("promptkit.transports.startup_cache.tracing._EDITS_CHANGE_STAMPS", tells)
        file, found = known(age_s)
        rewrite(file, "x", "y")

        assert found.state == b""
        assert not found.is_current

    def test_what_changes_meanwhile_is_not_kept(self, tmp_path):
        """
        A file that is written while recipes are imported may have been read before or after.
        """
        file = tmp_path / "words"
        with trace_imports(str(tmp_path)) as trace:
            file.write_text("x")
            file.read_text()

        assert trace.inputs() is None

    def test_the_names_of_variables_are_no_input_unless_they_are_looked_through(self, tmp_path, monkeypatch):
        """
        A variable that is set later matters only to recipes that iterate over all of them.
        """
        with trace_imports(str(tmp_path)) as careless:
            os.environ.get("SOMETHING")
        with trace_imports(str(tmp_path)) as careful:
            list(os.environ)
        found = careless.inputs(), careful.inputs()
        assert [inputs.is_current for inputs in found] == [True, True]
        monkeypatch.setenv("SOMETHING_NEW", "1")

        assert [inputs.is_current for inputs in found] == [True, False]

    def test_devices_are_not_read(self, tmp_path):
        """
        What has no end is not looked at.
        """
        with trace_imports(str(tmp_path)) as trace, Path(os.devnull).open("rb"):
            pass

        assert trace.inputs().is_current


@pytest.mark.parametrize("prefix", [None, "elsewhere/cache"])
def test_it_lies_where_python_keeps_bytecode(prefix, monkeypatch, tmp_path):
    """
    The file has the folder, and the tag, that the interpreter gives to the bytecode of a recipe.
    """
    monkeypatch.setattr("sys.pycache_prefix", prefix and str(tmp_path / prefix))
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    folder, _, name = Store(str(tmp_path / "recipes")).file.rpartition(os.sep)
    recipe = Path(cache_from_source(str(tmp_path / "recipes" / f"{name.partition('.')[0]}.py")))

    assert (folder, name) == (str(recipe.parent), recipe.with_suffix(".compiled").name)


@pytest.mark.parametrize("forbidden", ["bytecode", "writing"])
def test_it_lies_in_the_users_cache_where_python_keeps_no_bytecode(forbidden, monkeypatch, tmp_path):
    """
    So it does if Python was told to write none, and if the folder cannot be written.
    """
    access = os.access
    monkeypatch.setattr("sys.dont_write_bytecode", forbidden == "bytecode")
    monkeypatch.setattr("os.access", lambda path, mode: forbidden != "writing" and access(path, mode))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    assert Path(Store(str(tmp_path / "recipes")).file).parent == tmp_path / "cache" / "promptkit"


def test_it_lies_nowhere_where_there_is_no_home(monkeypatch, tmp_path):
    """
    A user without one, as in some containers, is served without a set.
    """

    def homeless(*_, **__):
        msg = "could not determine the home directory"
        raise RuntimeError(msg)

    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setattr("platformdirs.user_cache_dir", homeless)
    store = Store(str(tmp_path))
    fill(store, b"a")

    assert store.read() is None
    assert list(tmp_path.iterdir()) == []


def test_equal_pages_are_written_once(store):
    """
    A page that several revisions share takes its room once.
    """
    fill(store, b"a" * 100, b"b", b"a" * 100)

    with closing(store.read()) as found:
        assert [size for _, size, _ in found.index.pages.values()] == [100, 1, 100]
        assert len({place for place, _, _ in found.index.pages.values()}) == 2
    assert read(store) == [b"a" * 100, b"b", b"a" * 100]


def test_what_happens_while_python_ends_is_not_looked_at(monkeypatch):
    """
    The hook outlives what its module holds, and then raises nothing.
    """
    monkeypatch.setattr(tracing, "_HARMLESS", None)

    tracing._audit("open", ("x", "r", 0))
