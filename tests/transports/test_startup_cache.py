import json
import os
import py_compile
import select
import shutil
import subprocess
import sys
import time
import zipfile
from importlib.util import cache_from_source
from itertools import chain, repeat
from operator import call
from pathlib import Path
from queue import Queue
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit import prompt, resource, user
from promptkit.compiler.compilation import compile
from promptkit.compiler.loading.loader import Recipes
from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.connection import Connection
from promptkit.protocol.limits import Limits
from promptkit.server import Server
from promptkit.server.snapshot import Snapshot
from promptkit.transports.early_server import EarlyServer
from promptkit.transports.kept_lists import MADE_BY, KeptLists
from promptkit.transports.read_files import Purpose, ReadFiles, noted_reads
from promptkit.transports.shell_words import ShellWords
from promptkit.transports.startup_cache import StartupCache
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

#: One prompt.
GREETING_OF = """
from promptkit import prompt

@prompt
def {name}(name: str = "you"):
    return f"Hello, {{name}}."
"""

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
from promptkit.transports.early_server import EarlyServer

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


#: What makes a list of words.
DESCRIBED = "prompt(name='a', description=str(words))(lambda: 'x')\n"

OPTIONAL = "try:\n    from extra import WORDS\nexcept ImportError:\n    WORDS = 1"


class TestSeveralTargets:
    def test_they_have_one_set(self, recipes, start, talk):
        """
        A later start lists all of them before a recipe is imported, until a file of any of them changes.
        """
        one, two = recipes(gated=GREETING), recipes("other", more=GREETING_OF.format(name="more"))
        file, gate, other = two / "more.py", one.parent / "gate.open", str(two)
        os.utime(file, ns=(0, 0))
        gate.touch()
        talk(one, initialize("2025-11-25"), options=[other])
        assert (len(sets(one)), sets(two)) == (1, [])
        gate.unlink()
        process = start(one, other)

        say(process, initialize("2025-11-25"), request(1, "prompts/list"))
        early = [hear(process) for _ in range(2)]
        say(process, request(2, "prompts/get", {"name": "more"}))
        gate.touch()
        late = hear(process)
        file.write_text(GREETING_OF.format(name="other"))
        changed = talk(one, initialize("2025-11-25"), request(1, "prompts/list"), options=[other])

        assert names(early[1]) == ["greet", "more", "part", "third"]
        assert late["result"]["messages"][0]["content"]["text"] == "Hello, you."
        assert names(changed[1]) == ["greet", "other", "part", "third"]


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


def age(path):
    """Have a file be older than an import that begins now."""
    then = time.time() - 60
    os.utime(path, (then, then))
    time.sleep(0.05)  # its ctime cannot be set


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
            ("ops/deep/SKILL.md", "---\nname: deep\ndescription: x\n---\n"),
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
        A list that depends on something else, such as the environment, is old once: the client is
        notified, and the next start sends the right one. So it is if the server is slow to take over.
        """
        source = "import os\nfrom promptkit import prompt\n"
        folder = recipes(a=f"{source}prompt(name='a', description=os.environ['WORDS'])(lambda: 'x')\n")
        session = [initialize("2025-11-25"), notification("notifications/initialized")]
        session.append(request(1, "prompts/list"))
        talk(folder, *session, WORDS="one")
        process = start(folder, first=first, WORDS="two")
        say(process, *session)
        early = [hear(process), hear(process)][1]["result"]
        told = hear(process)
        say(process, request(1, "prompts/list"))
        corrected = hear(process)["result"]
        process.communicate()
        next_start = talk(folder, *session, WORDS="two")

        described = [
            each["prompts"][0]["description"] for each in (early, corrected, next_start[1]["result"])
        ]
        assert described == ["one", "two", "two"]
        assert told["method"] == "notifications/prompts/list_changed"
        assert None not in next_start

    def test_a_wrong_list_is_not_sent_twice(self, recipes, talk):
        """
        What depends on chance is another list at each start: the one that the start before has found.
        """
        folder = recipes(
            order="""
            from promptkit import prompt
            prompt(name="now", description="".join(set("abcdefghijklmnop")))(lambda: "x")
            """
        )
        session = [initialize("2025-11-25"), request(1, "prompts/list")]
        described = [talk(folder, *session)[1]["result"]["prompts"][0]["description"] for _ in range(4)]

        assert described[0] == described[1]
        assert len(set(described)) == 3

    def test_what_an_import_does_besides_is_no_reason_to_keep_nothing(self, recipes, start, talk):
        """
        It may ask other programs or the clock, and write files; completers and prompts are not even called.
        """
        folder = recipes(
            gated="""
            import random, socket, sqlite3, subprocess, sys, tempfile, threading, time
            from typing import Annotated
            from promptkit import Arg, prompt

            time.time(), random.random(), socket.getaddrinfo("127.0.0.1", 1)
            subprocess.run([sys.executable, "-c", ""], check=True)
            sqlite3.connect(":memory:").close()
            thread = threading.Thread(target=lambda: None)
            thread.start()
            with tempfile.TemporaryFile() as file:
                file.write(b"x")

            def branches():
                with sqlite3.connect("branches.db") as db:
                    return [name for name, in db.execute("select name from branches")]

            @prompt
            def review(branch: Annotated[str, Arg(complete=branches)]):
                return subprocess.check_output(["git", "diff", branch], text=True)
            """
        )
        gate = folder.parent / "gate.open"
        gate.touch()
        talk(folder, initialize("2025-11-25"))

        assert told_early(start, folder, gate)

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
        while b'"late"' not in sets(folder)[0].read_bytes():
            time.sleep(0.005)  # until it has been found to be wrong
        say(process, listening)
        methods = [hear(process)["method"] for _ in range(2 if era == "modern" else 1)]

        assert [reply["id"] for reply in replies] == [0, 1, 2][-len(opening) :]
        assert names(replies[-2]) == ["a"]
        assert methods[-1] == "notifications/prompts/list_changed"

    def test_sessions_that_end_soon_leave_what_the_next_ones_use(self, gated, start):
        """
        A client that lists, gets one prompt and leaves, again and again, never waits for the other recipes.
        """
        folder, gate = gated
        make(folder / "free.py", NAMED.format(name="free"))
        age(folder / "free.py")
        gate.touch()
        session = [initialize("2025-11-25"), request(1, "prompts/list")]
        start(folder).communicate(b"".join(map(line, session)), timeout=50)
        gate.unlink()
        told = []
        for _ in range(3):
            process = start(folder, "--grace", "0", TEST_GATE_IN_RECIPE="1")
            say(process, *session, request(2, "prompts/get", {"name": "free"}))
            told.append([hear(process)["id"] for _ in range(3)])
            process.communicate(timeout=50)

        assert told == [[0, 1, 2]] * 3

    def test_three_starts_that_only_list(self, gated, start):
        """
        No recipe is imported before the reply of any of them.
        """
        folder, gate = gated
        imports = folder.parent / "imports.log"
        with (folder / "gated.py").open("a") as file:
            file.write(f"\nopen({str(imports)!r}, 'a').write('x')\n")
        age(folder / "gated.py")
        session = b"".join(map(line, [initialize("2025-11-25"), request(1, "prompts/list")]))
        counts = []
        gate.touch()
        start(folder).communicate(session, timeout=50)
        gate.unlink()
        for _ in range(3):
            out, _ = start(folder, "--grace", "0").communicate(session, timeout=50)
            assert names(json.loads(out.splitlines()[1])) == ["greet", "part", "third"]
            counts.append(len(imports.read_text()))

        assert counts == [1, 1, 1]

    @pytest.mark.parametrize("end", ["kill", "terminate"])
    def test_lists_stay_however_the_process_ends(self, gated, start, end):
        """
        Also after a crash they are sent again: they were not found wrong.
        """
        folder, gate = gated
        first = start(folder, "--grace", "0")
        say(first, initialize("2025-11-25"), request(1, "prompts/list"))
        assert [hear(first)["id"], hear(first)["id"]] == [0, 1]
        getattr(first, end)()
        first.wait(50)

        assert told_early(start, folder, gate)

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

    def test_where_modules_are_looked_for(self, recipes, start, tmp_path):
        """
        A server with another ``sys.path`` imports anew.
        """
        source = "import elsewhere\nfrom promptkit import prompt\n"
        folder = recipes(a=f"{source}prompt(name='a', description=elsewhere.WHICH)(lambda: 'x')\n")
        found = []
        for number in ("one", "two", "one"):
            place = tmp_path / number
            make(place / "elsewhere.py", f"WHICH = {number!r}\n")
            process = start(folder, PYTHONPATH=str(place))
            say(process, initialize("2025-11-25"), request(1, "prompts/list"))
            # Imports that take long are left to another thread, whose reply may come first.
            replies = {reply["id"]: reply for reply in (hear(process), hear(process))}
            found.append(replies[1]["result"]["prompts"][0]["description"])
            process.communicate()

        assert found == ["one", "two", "one"]

    def test_what_a_server_can_do_is_confirmed(self, recipes, talk):
        """
        If it turns out to declare something else, the next start declares that.
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

    def test_a_client_that_hangs_up_is_still_answered(self, early):
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
    with noted_reads("") as reads:
        purpose, file = Purpose(("x",), "", ""), str(tmp_path_factory.getbasetemp() / "kept")
    files = ReadFiles(path=reads.files().path)  # in a folder of all tests
    kept = KeptLists(MADE_BY, purpose, files, Capabilities(resources=True))
    kept.write_to(file, server.snapshot.pages(), ShellWords())
    arriving, ended = Queue(), Event()
    kept = KeptLists.read_from(file, purpose, {})
    first = EarlyServer(kept, Connection(IDENTITY, Capabilities(resources=True)), Limits(), sent.append)
    first.read_from(arriving.get)
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


def by_id(sent):
    return sorted((json.loads(reply)["id"], reply) for reply in b"".join(sent).splitlines())


def purpose_of(folder):
    return Purpose.of(str(folder), "promptkit", 10, tools=False, scopes=None)


def file_for(folder):
    """Where the lists of a folder are kept."""
    folder.mkdir(exist_ok=True)
    return StartupCache.of(purpose_of(folder))._file


def test_what_is_found_right_does_not_age(monkeypatch, tmp_path):
    """
    Of lists that are used every day, the recipes need not be imported first once a day.
    """
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    snapshot = Snapshot(CATALOG, IDENTITY, 10, changes=True)
    cache = StartupCache.of(purpose_of(tmp_path))
    cache.load(lambda seen: CATALOG)
    cache.verify_and_save(snapshot, print, CATALOG, dict)
    file, then = Path(cache._file), time.time() - 23 * 3600
    os.utime(file, (then, then))

    cache = StartupCache.of(purpose_of(tmp_path))
    cache.verify_and_save(snapshot, print, CATALOG, dict)

    assert file.stat().st_mtime > then + 3600


@pytest.mark.parametrize("prefix", [None, "elsewhere/cache"])
def test_it_lies_where_python_keeps_bytecode(prefix, monkeypatch, tmp_path):
    """
    The file has the folder, and the tag, that the interpreter gives to the bytecode of a recipe.
    """
    monkeypatch.setattr("sys.pycache_prefix", prefix and str(tmp_path / prefix))
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    folder, _, name = file_for(tmp_path / "recipes").rpartition(os.sep)
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

    assert Path(file_for(tmp_path / "recipes")).parent == tmp_path / "cache" / "promptkit"


def test_it_lies_nowhere_where_there_is_no_home(monkeypatch, tmp_path):
    """
    A user without one, as in some containers, is served without a set.
    """

    def homeless(*_, **__):
        msg = "could not determine the home directory"
        raise RuntimeError(msg)

    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setattr("platformdirs.user_cache_dir", homeless)
    cache = StartupCache.of(purpose_of(tmp_path))
    catalog = cache.load(lambda seen: CATALOG)
    cache.verify_and_save(Snapshot(catalog, IDENTITY, 10, changes=True), print, catalog, dict)

    assert StartupCache.of(purpose_of(tmp_path)).found is None
    assert list(tmp_path.iterdir()) == []
