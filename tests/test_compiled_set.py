import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import closing
from itertools import chain, repeat
from operator import call
from pathlib import Path
from queue import Queue
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit import prompt, resource, user
from promptkit.compiled.early import EarlyServer
from promptkit.compiled.inputs import Inputs, value_of
from promptkit.compiled.listings import key_of
from promptkit.compiled.observation import observe
from promptkit.compiled.store import Store
from promptkit.compiler import compile
from promptkit.loader import Recipes
from promptkit.protocol.limits import Limits
from promptkit.protocol.results import Capabilities, Identity
from promptkit.server import Server
from promptkit.version import VERSION
from tests.wire import MODERN, REVISIONS, initialize, line, modern, notification, request

#: A recipe whose import does not end before there is a file called gate.
GATED = '''
import time
from pathlib import Path
from promptkit import prompt, resource

gate = Path(__file__).parent.parent / "gate"
while not gate.exists():
    time.sleep(0.005)

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

LISTS = ("prompts/list", "resources/list", "resources/templates/list")


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

    def start(folder, *options, cwd=None, **variables):
        code = "import sys; from promptkit.cli import main; sys.exit(main())"  # as the console script does
        command = [sys.executable, "-c", code, "serve", str(folder), *options]
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


@pytest.fixture
def gated(recipes, talk):
    """A folder of recipes of which a set is kept, and the gate, closed."""
    folder = recipes(gated=GATED)
    gate = folder.parent / "gate"
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
        folder = recipes(gated=GATED.replace("while not gate.exists():", "while False:"))
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

        assert process.wait(10) == 0

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
        assert process.wait(20) == 0


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
            ("listed.py", "words)", "words+'')", "Hello!"),
            ("_helper.py", "!", "??", "Hello??"),  # of another size: bytecode goes by size and time
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

    def test_a_recipe_that_is_gone(self, listed):
        """
        A recipe that is taken away is not told of any more.
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

    def test_no_value_of_a_variable_is_written(self, listed):
        """
        A key that a recipe reads from the environment does not reach the disk.
        """
        folder, ask = listed
        ask(WORDS="hunter2-" * 4)

        held = b"".join(path.read_bytes() for path in (folder / "__pycache__").glob("promptkit*"))
        assert b"Hello!hunter2" in held  # the author shows it
        assert held.count(b"hunter2-" * 4) == held.count(b"Hello!" + b"hunter2-" * 4)

    def test_what_cannot_be_known_is_corrected(self, recipes, start, talk):
        """
        A list that depends on something else is told anew as soon as that shows, and not told early
        again.
        """
        folder = recipes(
            clock="""
            import time
            from promptkit import prompt
            prompt(name="now", description=str(time.time_ns()))(lambda: "x")
            """
        )
        session = [initialize("2025-11-25"), notification("notifications/initialized")]
        session.append(request(1, "prompts/list"))
        first = talk(folder, *session)[1]["result"]
        process = start(folder)
        say(process, *session)
        second = [hear(process), hear(process)][1]["result"]
        told = hear(process)
        say(process, request(2, "prompts/list"))
        third = hear(process)["result"]
        process.communicate()
        fourth = talk(folder, *session)[1]["result"]

        assert first == second
        assert told["method"] == "notifications/prompts/list_changed"
        assert len({json.dumps(each) for each in (second, third, fourth)}) == 3

    def test_a_copy_of_the_folder(self, listed, talk):
        """
        A folder that was copied with all that is in it has no set of its own yet.
        """
        folder, _ = listed
        copy = shutil.copytree(folder, folder.parent / "copy")
        (copy / "words.txt").write_text("Other")

        found = talk(copy, initialize("2025-11-25"), request(1, "prompts/list"))[1]["result"]["prompts"]
        assert found[1]["description"] == "Other!"

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
        ],
        ids=["names of variables", "bytes", "current folder", "path"],
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
        folder = recipes(
            a="""
            import os
            from pathlib import Path
            from promptkit import prompt, resource
            prompt(name="a")(lambda: "x")
            if os.path.exists(Path(__file__).parent.parent / "flag"):
                today = resource("notes://today")(lambda: "x")
            """
        )
        declared = []
        for _ in range(3):
            declared.append(
                "resources" in talk(folder, initialize("2025-11-25"))[0]["result"]["capabilities"]
            )
            (folder.parent / "flag").touch()

        assert declared == [False, False, True]

    def test_recipes_that_cannot_be_served_any_more(self, recipes, start):
        """
        What was asked for is refused, standard error says why, and nothing is kept.
        """
        folder = recipes(
            a="""
            import os
            from pathlib import Path
            from promptkit import prompt
            if not os.path.exists(Path(__file__).parent.parent / "flag"):
                chosen = prompt(name="a")(lambda: "x")
            """
        )
        session = line(initialize("2025-11-25")) + line(request(1, "prompts/get", {"name": "a"}))
        start(f"{folder / 'a.py'}:chosen").communicate(session, timeout=20)
        assert len(sets(folder)) == 1
        (folder.parent / "flag").touch()
        process = start(f"{folder / 'a.py'}:chosen")
        out, err = process.communicate(session, timeout=20)

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

    def test_faulty_recipes_are_not_kept(self, recipes, start):
        """
        What is wrong with recipes is found anew each time, and said.
        """
        folder = recipes(good=GATED.replace("while not", "while False and not"), bad="import nothing_like_it")
        process = start(folder)
        _, err = process.communicate(line(initialize("2025-11-25")), timeout=20)

        assert b"nothing_like_it" in err
        assert sets(folder) == []


class TestWhereItIsKept:
    def test_nothing_is_kept_without_a_cache(self, recipes, talk):
        """
        With --no-cache nothing is read and nothing is written.
        """
        folder = recipes(gated=GATED.replace("while not gate.exists():", "while False:"))
        talk(folder, initialize("2025-11-25"), options=["--no-cache"])

        assert sets(folder) == []

    @pytest.mark.parametrize("options", [["--no-watch"], ["--rate", "9"], ["--audit", os.devnull]])
    def test_nothing_is_told_early_that_could_not_be_corrected_or_counted(self, recipes, talk, options):
        """
        Without a watch, with a rate and with an audit the recipes come first.
        """
        folder = recipes(gated=GATED.replace("while not gate.exists():", "while False:"))
        talk(folder, initialize("2025-11-25"), options=options)

        assert sets(folder) == []

    @pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are text on this system")
    def test_a_folder_whose_name_is_no_text(self, recipes, start, tmp_path):
        """
        It is served, and no set is kept of it; that it cannot be watched is all that is said.
        """
        folder = recipes(gated=GATED.replace("while not gate.exists():", "while False:"))
        odd = folder.rename(os.fsdecode(os.fsencode(tmp_path) + b"/odd-\xff"))
        out, err = start(odd).communicate(line(initialize("2025-11-25")), timeout=20)

        assert json.loads(out)["id"] == 0
        assert b"Traceback" not in err
        assert sets(odd) == []

    def test_nothing_is_kept_where_no_bytecode_is(self, recipes, talk):
        """
        Who wants no bytecode beside the sources wants no set there.
        """
        folder = recipes(gated=GATED.replace("while not gate.exists():", "while False:"))
        talk(folder, initialize("2025-11-25"), PYTHONDONTWRITEBYTECODE="1")

        assert not (folder / "__pycache__").exists()

    def test_a_folder_that_cannot_be_written_is_served(self, recipes, talk):
        """
        Where no set can be kept recipes are served without.
        """
        folder = recipes(gated=GATED.replace("while not gate.exists():", "while False:"))
        (folder / "__pycache__").write_text("a file in the way")

        assert names(talk(folder, initialize("2025-11-25"), request(1, "prompts/list"))[1])[0] == "greet"

    @pytest.mark.parametrize("options", [["--name", "other"], ["--page-size", "1"]])
    def test_each_way_to_serve_has_its_own(self, gated, talk, options):
        """
        What is served in another way is another set, and leaves the first alone.
        """
        folder, gate = gated
        gate.touch()
        before = sets(folder)
        talk(folder, initialize("2025-11-25"), options=options)

        assert len(sets(folder)) == 2
        assert set(before) < set(sets(folder))


@pytest.fixture
def store(tmp_path, environment, monkeypatch):
    """A store, and a set in it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    store = Store(str(tmp_path))
    fill(store, b"one", b"two" * 50)
    return store


NOTHING = Inputs({}, {}, {}, {}, b"", value_of(repr(sys.path), b"key"), b"", b"key")


def fill(store, *pages):
    named = [(key_of("prompts/list", "2025-11-25", str(n)), page) for n, page in enumerate(pages)]
    store.write(NOTHING, Capabilities(), named)


def read(store):
    """The pages in a store; None if it has no set, and for each page that is not there."""
    found = store.read()
    if found is None:
        return None
    with closing(found):
        return [found.page("prompts/list", "2025-11-25", str(n)) for n in range(len(found.index.pages))]


class TestTampering:
    def test_what_was_written_is_read(self, store):
        """
        A set comes back as it was.
        """
        assert read(store) == [b"one", b"two" * 50]

    def test_no_byte_can_be_changed(self, store):
        """
        Whichever byte of the file is another, nothing is told that was not written.
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
        What somebody else could have put there is not told.
        """
        Path(store.file).chmod(mode)

        assert read(store) is None

    @pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give files away")
    def test_a_file_of_somebody_else_is_not_read(self, store):
        """
        What belongs to another user is not told.
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
        What nobody has confirmed for a day is made anew.
        """
        then = time.time() - seconds
        os.utime(store.file, (then, then))

        assert read(store) is None

    def test_another_version_is_not_read(self, store, monkeypatch):
        """
        A set of another promptkit, msgspec or Python is made anew.
        """
        monkeypatch.setattr("promptkit.compiled.store._MADE_BY", "another")

        assert read(store) is None


WRITER = """
import sys
from promptkit.compiled.inputs import Inputs, value_of
from promptkit.compiled.listings import key_of
from promptkit.compiled.store import Store
from promptkit.protocol.results import Capabilities
folder, letter = sys.argv[1:]
store = Store(folder)
pages = [(key_of("prompts/list", "2025-11-25", str(n)), letter.encode() * 5000 + b"%d" % n) for n in range(9)]
for _ in range(100):
    store.write(Inputs({}, {}, {}, {}, b"", b"", b"", b"key"), Capabilities(), pages)
"""


def test_writers_do_not_disturb_each_other(store, tmp_path, environment):
    """
    While several processes write, whoever reads finds one of their sets, whole; no scratch is left.
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
IDENTITY = Identity("promptkit", VERSION)
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
    store = Store(str(tmp_path_factory.getbasetemp()))
    pages = [(key_of(each, revision.date, at), page) for (each, revision, at), page in server.pages()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", False)
        store.write(NOTHING, Capabilities(resources=True), pages)
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
    ended.wait(10)
    server.close(1)

    assert by_id(sent) == by_id(alone)
    assert server.confirm(first.told)


def by_id(sent):
    return sorted((json.loads(reply)["id"], reply) for reply in b"".join(sent).splitlines())


class TestObservation:
    def test_it_leaves_no_trace(self, tmp_path):
        """
        Once an observation is over the environment is read as before.
        """
        before = os.environ.encodekey
        with observe(str(tmp_path)) as observation:
            os.environ.get("SOMETHING")
        os.environ.get("ANOTHER")

        assert os.environ.encodekey == before
        assert observation.inputs().variables == {"SOMETHING": b""}

    def test_what_is_written_is_no_input(self, tmp_path):
        """
        A file that recipes write does not decide what they are; one that they read does, also if it
        is not there.
        """
        old = tmp_path / "old"
        old.write_text("x")
        os.utime(old, (0, 0))
        with observe(str(tmp_path / "recipes")) as observation:
            observation._begun += 1_000_000_000  # as if what is here had been here for a while
            (tmp_path / "new").write_text("y")
            old.read_text()
            with pytest.raises(FileNotFoundError):
                (tmp_path / "missing").read_text()
        found = observation.inputs()

        own = {path: was for path, was in found.contents.items() if path.startswith(str(tmp_path))}
        assert own.keys() == {str(old), str(tmp_path / "missing")}
        assert found.hold
        (tmp_path / "missing").touch()
        assert not found.hold

    def test_what_changes_meanwhile_is_not_kept(self, tmp_path):
        """
        A file that is written while recipes are imported may have been read before or after.
        """
        file = tmp_path / "words"
        with observe(str(tmp_path)) as observation:
            file.write_text("x")
            file.read_text()

        assert observation.inputs() is None

    def test_the_names_of_variables_are_no_input_unless_they_are_looked_through(self, tmp_path, monkeypatch):
        """
        A variable that is set later matters to whoever looks through all of them, and to nobody else.
        """
        with observe(str(tmp_path)) as careless:
            os.environ.get("SOMETHING")
        with observe(str(tmp_path)) as careful:
            list(os.environ)
        found = careless.inputs(), careful.inputs()
        assert [inputs.hold for inputs in found] == [True, True]
        monkeypatch.setenv("SOMETHING_NEW", "1")

        assert [inputs.hold for inputs in found] == [True, False]

    def test_devices_are_not_read(self, tmp_path):
        """
        What has no end is not looked at.
        """
        with observe(str(tmp_path)) as observation, Path(os.devnull).open("rb"):
            pass

        assert observation.inputs().hold


def test_equal_pages_are_written_once(store):
    """
    A page that several revisions share takes its room once.
    """
    fill(store, b"a" * 100, b"b", b"a" * 100)

    with closing(store.read()) as found:
        assert [size for _, size, _ in found.index.pages.values()] == [100, 1, 100]
        assert len({place for place, _, _ in found.index.pages.values()}) == 2
    assert read(store) == [b"a" * 100, b"b", b"a" * 100]
