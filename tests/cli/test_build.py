"""
Tests of building for deployment, and of serving from what was built, where nothing can be written.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path

import pytest
from msgspec import UNSET

from promptkit.cli import main
from promptkit.protocol.revisions import REVISIONS
from promptkit.transports.kept_lists import KeptLists
from promptkit.transports.read_files import Purpose, ReadFiles
from promptkit.transports.shell_words import ShellWords
from tests.wire import initialize, line, notification, request

#: Starts a process to which permissions apply, though it is root's.
UNPRIVILEGED = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]

#: Runs like the console script. The import of a recipe called gated waits until a file exists.
RUNNING = """
import os, sys, time

class Gate:
    def find_spec(name, path=None, target=None):
        while name.endswith(".gated") and not os.path.exists(gate):
            time.sleep(0.005)

gate = os.environ.pop("TEST_GATE")
sys.meta_path.insert(0, Gate)
from promptkit.cli import main
from promptkit.protocol.revisions import REVISIONS
from promptkit.transports.kept_lists import KeptLists
from promptkit.transports.read_files import Purpose
from promptkit.transports.shell_words import ShellWords
from promptkit.transports.read_files import ReadFiles
sys.exit(main())
"""

GREETING = '''
from promptkit import prompt
from ._words import HELLO

@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"{HELLO}, {name}."
'''


@pytest.fixture
def place():
    """A folder that any user can look into, with a recipe in a folder of its own, and a project."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        place.chmod(0o755)
        (place / "recipes").mkdir(mode=0o755)
        (place / "pyproject.toml").touch()
        (place / "recipes" / "gated.py").write_text(GREETING)
        (place / "recipes" / "_words.py").write_text("HELLO = 'Hello'\n")
        for file in place.rglob("*.*"):
            os.utime(file, ns=(0, 0))
        yield place
        for folder in (place, place / "recipes"):
            folder.chmod(0o755)


@pytest.fixture
def run(place):
    """A function that starts a command in the place; whatever still runs at the end is ended."""
    started = []
    (place / "gate.open").touch()

    def run(*words, before=()):
        environment = {**os.environ, "TEST_GATE": str(place / "gate.open"), "PYTHONDONTWRITEBYTECODE": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [*before, sys.executable, "-c", RUNNING, *map(str, words)]
        started.append(subprocess.Popen(command, env=environment, cwd=place, **pipes))
        return started[-1]

    yield run
    for process in started:
        with process:
            process.kill()


@pytest.fixture
def built(place, run):
    """What was built of the recipes."""
    out, err = run("build", "recipes").communicate(timeout=20)
    assert (out, err) == (f"built 1 prompt into {place / 'recipes.compiled'}\n".encode(), b"")
    return place / "recipes.compiled"


def say(process, *messages):
    process.stdin.write(b"".join(map(line, messages)))
    process.stdin.flush()


def hear(process):
    return json.loads(process.stdout.readline())


SESSION = [initialize("2025-11-25"), request(1, "prompts/list")]
GET = request(2, "prompts/get", {"name": "greet"})


def content(place):
    """All files below a folder, with their stamps."""
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in place.rglob("*")}


@pytest.mark.skipif(
    sys.platform == "win32" or (os.geteuid() == 0 and not shutil.which("setpriv")),
    reason="everybody may write here",
)
class TestAReadOnlyPlace:
    @pytest.fixture
    def locked(self, place):
        """What a command begins with that can write nothing in the place."""
        for folder in (place, place / "recipes"):
            folder.chmod(0o555)
        return UNPRIVILEGED if os.geteuid() == 0 else []

    def test_nothing_can_be_written(self, place, locked):
        """
        The tests below are worth something.
        """
        command = [*locked, sys.executable, "-c", "open('x', 'w')"]
        ran = subprocess.run(command, cwd=place, capture_output=True, check=False)

        assert b"Permission denied" in ran.stderr

    def test_lists_come_before_any_recipe_is_imported(self, place, built, locked, run):
        """
        A built set gives the start that a cache gives, again and again, and nothing is written.
        """
        place.chmod(0o755)
        (place / "gate.open").unlink()
        place.chmod(0o555)
        before = content(place)
        told = []
        for _ in range(2):
            process = run("serve", "recipes", "--compiled", built, before=locked)
            say(process, *SESSION)
            told.append([hear(process)["id"], hear(process)["result"]["prompts"][0]["name"]])
            process.kill()

        assert told == [[0, "greet"]] * 2
        assert content(place) == before

    def test_prompts_are_got(self, place, built, locked, run):
        """
        The recipes are imported behind, and a healthy server says nothing.
        """
        before = content(place)
        process = run("serve", "recipes", "--compiled", built, before=locked)
        out, err = process.communicate(b"".join(map(line, [*SESSION, GET])), timeout=20)

        assert b"Hello, you." in out
        assert err == b""
        assert content(place) == before


CHANGES = {
    "recipe": (lambda place: (place / "recipes/gated.py").write_text(GREETING + "#"), "gated.py has changed"),
    "helper": (
        lambda place: (place / "recipes/_words.py").write_text("HELLO = 'Hi'"),
        "_words.py has changed",
    ),
    "new file": (
        lambda place: (place / "recipes/new.py").write_text(GREETING),
        "recipes has changed",
    ),
}


@pytest.mark.parametrize(("change", "reason"), CHANGES.values(), ids=CHANGES)
def test_a_stale_set_is_not_used(place, built, run, change, reason):
    """
    The server says why, and starts without; `check` says so too.
    """
    change(place)
    process = run("serve", "recipes", "--compiled", built)
    out, err = process.communicate(b"".join(map(line, [*SESSION, GET])), timeout=20)
    said, _ = run("check", "recipes", "--compiled", built).communicate(timeout=20)
    as_json, _ = run("check", "recipes", "--json", "--compiled", built).communicate(timeout=20)

    assert b'"name":"greet"' in out
    assert f"{str(built)!r} is not used: " in err.decode()
    assert reason in err.decode()
    assert f"{built} is stale, so run promptkit build again: " in said.decode()
    assert reason in json.loads(as_json)["stale"]


def test_check_is_fine_with_a_current_set(built, run):
    """
    Whatever name and size of pages it was built for.
    """
    process = run("check", "recipes", "--compiled", built)
    as_json, _ = run("check", "recipes", "--json", "--compiled", built).communicate(timeout=20)

    assert (process.communicate(timeout=20)[0], process.returncode) == (b"1 prompt can be served\n", 0)
    assert json.loads(as_json)["stale"] is None


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--name", "other"], "it was built with --name 'promptkit' --page-size"),
        (["--page-size", "1"], "it was built with --name 'promptkit' --page-size"),
        (["--no-watch"], "is not used with --no-watch, --no-cache, --audit, --otel or --rate"),
        (["--rate", "1"], "is not used with --no-watch, --no-cache, --audit, --otel or --rate"),
    ],
    ids=["name", "page size", "no watch", "rate"],
)
def test_a_set_is_used_only_as_it_was_built(built, run, words, reason):
    """
    Otherwise the lists would be others, or could not be corrected or counted.
    """
    process = run("serve", "recipes", "--compiled", built, *words)
    _, err = process.communicate(b"".join(map(line, SESSION)), timeout=20)

    assert reason in err.decode()


def damage(file):
    file.write_bytes(file.read_bytes()[:-1000].replace(b"promptkit compiled", b"something else, yes"))


HOSTILE = {
    "gone": (lambda file: file.unlink(), "it cannot be read: No such file"),
    "damaged": (damage, "it is damaged, or no compiled set"),
    "shared": (lambda file: file.chmod(0o666), "it is not trusted"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such permissions")
@pytest.mark.parametrize(("change", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_a_set_that_cannot_be_trusted_is_not_used(built, run, change, reason):
    """
    It must be whole, and nobody but its owner may have written it.
    """
    change(built)
    process = run("serve", "recipes", "--compiled", built)
    out, err = process.communicate(b"".join(map(line, SESSION)), timeout=20)

    assert reason in err.decode()
    assert b'"name":"greet"' in out


def test_a_set_is_used_through_a_link(place, built, run):
    """
    Some systems put files into containers as links.
    """
    (place / "link.compiled").symlink_to(built)
    process = run("serve", "recipes", "--compiled", "link.compiled")

    assert process.communicate(b"".join(map(line, SESSION)), timeout=20)[1] == b""


def test_a_set_of_other_recipes_is_not_used(place, built, run):
    """
    It belongs to one folder.
    """
    shutil.copytree(place / "recipes", place / "others")
    process = run("serve", "others", "--compiled", built)

    assert "built for other recipes" in process.communicate(timeout=20)[1].decode()


def test_a_set_that_turns_out_wrong_is_corrected_and_kept(place, built, run, monkeypatch):
    """
    The client is told of the right list, and standard error to build again; the file is only read.
    """
    monkeypatch.setattr(ReadFiles, "changes", lambda *_, **__: iter(()))
    purpose = Purpose.of(str(place / "recipes"), None, 0, tools=False, scopes=None)
    kept = KeptLists.read_from(str(built), purpose, {}, is_built=True)
    pages = [
        (key, kept.page(*key).replace(b"Say hello.", b"Say good-bye."))
        for method in ("prompts/list", "resources/list", "resources/templates/list", "tools/list")
        for revision in REVISIONS.values()
        if kept.page(*(key := (method, revision, UNSET))) is not None
    ]
    kept.write_to(str(built), pages, ShellWords(), mode=0o644)
    before = built.read_bytes()
    process = run("serve", "recipes", "--compiled", built)
    say(process, *SESSION, notification("notifications/initialized"))
    told = [hear(process)["result"], hear(process)["result"]["prompts"][0]["description"]]
    changed = hear(process)
    say(process, request(3, "prompts/list"))
    corrected = hear(process)["result"]["prompts"][0]["description"]
    _, err = process.communicate(timeout=20)

    assert (told[1], changed["method"], corrected) == (
        "Say good-bye.",
        "notifications/prompts/list_changed",
        "Say hello.",
    )
    assert err.decode() == (
        f"promptkit: {str(built)!r} was wrong, and clients are corrected at every start: "
        "run promptkit build again\n"
    )
    assert built.read_bytes() == before


class TestBuild:
    def test_recipes_with_a_fault_are_not_built(self, recipes, tmp_path, capsys):
        """
        The fault is shown, and nothing is written.
        """
        folder = recipes(faulty="1 / 0")

        assert main(["build", str(folder), "--out", str(tmp_path / "x")]) == 1
        out, err = capsys.readouterr()
        assert "faulty.py:1: error" in out
        assert err == "promptkit: nothing was built: fix the faults above\n"
        assert not (tmp_path / "x").exists()

    def test_the_fault_is_printed_before_what_follows_from_it(self, recipes, tmp_path):
        """
        In a log, or on a terminal, "above" is true.
        """
        folder = recipes(faulty="1 / 0")
        command = [sys.executable, "-m", "promptkit", "build", str(folder), "--out", str(tmp_path / "x")]
        ran = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False
        )

        assert ran.stdout.index("faulty.py:1: error") < ran.stdout.index("fix the faults above")

    def test_recipes_that_read_what_cannot_be_known_are_built(self, recipes, tmp_path, capsys):
        """
        What their lists depend on besides files is for whoever builds them to keep.
        """
        folder = recipes(
            clock="import time\nfrom promptkit import prompt\nprompt(name=f'p{time.time_ns()}')(lambda: '')"
        )
        time.sleep(0.05)  # it is older than file systems can tell

        assert main(["build", str(folder), "--out", str(tmp_path / "x")]) == 0
        assert "built 1 prompt" in capsys.readouterr().out

    def test_tests_beside_the_recipes_may_do_anything(self, place, run):
        """
        They are looked at, as prompts in them would not be served, and are not imported.
        """
        test = place / "recipes" / "test_greet.py"
        test.write_text(f"import time\n\nNOW = time.time()\n{GREETING}")
        os.utime(test, ns=(0, 0))

        out, _ = run("build", "recipes").communicate(timeout=20)

        assert b"warning PK107" in out
        assert b"built 1 prompt" in out

    @pytest.mark.parametrize(
        ("targets", "said"),
        [
            (["nosuch"], "cannot load 'nosuch': there is no such folder, file or module"),
            (
                ["recipe"],
                "cannot load 'recipe': there is no such folder, file or module; did you mean 'recipes/'?",
            ),
            (["recipes", "no/such"], "cannot load 'no/such': there is no such file or folder"),
        ],
        ids=str,
    )
    def test_what_is_not_there(self, targets, said, place, run):
        """
        It is said as by every command, and not that it cannot be built.
        """
        process = run("build", *targets)

        assert process.communicate(timeout=20)[1].decode().startswith(f"promptkit: {said}")
        assert process.returncode == 2

    def test_a_module_is_not_built(self, capsys):
        """
        It may come from anywhere.
        """
        assert main(["build", "json"]) == 2
        assert (
            capsys.readouterr().err
            == "promptkit: cannot build 'json': only a folder or a file can be built\n"
        )

    def test_a_place_that_cannot_be_written_is_named(self, place, run):
        """
        With the reason.
        """
        process = run("build", "recipes", "--out", "nowhere/x")

        assert process.communicate(timeout=20)[1] == (
            b"promptkit: cannot write 'nowhere/x': No such file or directory\n"
        )
        assert process.returncode == 1

    def test_recipes_that_were_copied_are_the_same(self, place, built, run):
        """
        An image that is copied has other stamps, so that what files hold is compared.
        """
        (place / "gate.open").unlink()
        copy = shutil.copytree(place / "recipes", place / "copy")
        shutil.rmtree(place / "recipes")
        copy.rename(place / "recipes")
        for file in (place / "recipes").iterdir():
            os.utime(file)
        process = run("serve", "recipes", "--compiled", built)
        say(process, *SESSION)

        assert [hear(process)["id"], hear(process)["id"]] == [0, 1]

    @pytest.mark.skipif(sys.platform == "win32", reason="there are no such permissions")
    def test_a_set_can_be_read_by_other_users(self, built):
        """
        Whoever builds an image is not who serves from it.
        """
        assert stat.S_IMODE(built.stat().st_mode) == 0o644


def test_several_targets_are_one_set(place, run):
    """
    It lies beside the first, and serves all of them, and nothing else.
    """
    (place / "more").mkdir()
    (place / "more" / "bye.py").write_text(
        GREETING.replace("greet", "bye").replace("._words", "recipes._words")
    )
    os.utime(place / "more" / "bye.py", ns=(0, 0))
    built = place / "recipes.compiled"

    out, err = run("build", "recipes", "more").communicate(timeout=20)
    checked = [run("check", *targets, "--compiled", built) for targets in (["recipes", "more"], ["recipes"])]
    said = [process.communicate(timeout=20)[0].decode() for process in checked]
    served = run("serve", "recipes", "more", "--compiled", built)
    say(served, *SESSION)

    assert (out, err) == (f"built 2 prompts into {built}\n".encode(), b"")
    assert [process.returncode for process in checked] == [0, 1]
    assert "it was built for other recipes" in said[1]
    assert [one["name"] for one in [hear(served), hear(served)][1]["result"]["prompts"]] == ["bye", "greet"]


@pytest.mark.skipif(os.name == "nt", reason="links need privileges")
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_is_no_file_stays(kind, place, run):
    """
    A device or a pipe is not replaced by a file, nor is a link.
    """
    out = place / "out"
    out.symlink_to(os.devnull) if kind == "link" else os.mkfifo(out)
    before = out.lstat()

    process = run("build", "recipes", "--out", str(out))
    said, err = process.communicate(timeout=20)

    assert (process.returncode, said) == (1, b"")
    assert err.decode() == f"promptkit: cannot write {str(out)!r}: it is no regular file\n"
    assert out.lstat().st_ino == before.st_ino


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["recipes", "--out", "x"],
            "promptkit build: error: --carried lies beside the folder: leave out --out",
        ),
        (["recipes/greet.py"], "promptkit: cannot build 'recipes/greet.py': only one folder can be built"),
        (["recipes", "more"], "promptkit: cannot build 'recipes more': only one folder can be built"),
    ],
)
def test_what_cannot_be_carried(words, said, recipes, tmp_path, capsys):
    """
    What goes along with a folder is about all of it, and lies beside it.
    """
    recipes(greet="from promptkit import prompt\nprompt(name='greet')(lambda: 'Hello.')\n")
    recipes("more", other="from promptkit import prompt\nprompt(name='other')(lambda: 'Hello.')\n")
    try:
        with chdir(tmp_path):
            code = main(["build", "--carried", *words])
    except SystemExit as end:
        code = end.code

    assert (code, capsys.readouterr().err.splitlines()[-1]) == (2, said)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["more", "recipes"]
