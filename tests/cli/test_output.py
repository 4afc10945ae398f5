"""What the command line is attached to: files, pipes, terminals, nothing; and what authors do to that."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.terminal import COMMAND, command, environment, in_shell, on_terminal

pytestmark = [
    pytest.mark.sampled,
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="descriptors and signals of POSIX"),
]

#: A recipe that prints in every way there is, at import, while it renders and at the end.
NOISY = """
    import atexit, ctypes, os, subprocess, sys
    from promptkit import prompt

    def make_noise(when):
        print(f"noise: print {when}")
        sys.__stdout__.write(f"noise: original {when}\\n")
        os.write(1, f"noise: descriptor {when}\\n".encode())
        ctypes.CDLL(None).puts(f"noise: C {when}".encode())
        subprocess.run(["echo", f"noise: child {when}"], check=True)

    make_noise("at import")
    atexit.register(make_noise, "at the end")

    @prompt
    def noisy(text: str = "x") -> str:
        make_noise("while rendering")
        return f"said {text}"
"""
NOISE = sorted(
    f"noise: {how} {when}"
    for how in ("print", "original", "descriptor", "C", "child")
    for when in ("at import", "while rendering", "at the end")
)

QUIET = """
    from promptkit import prompt

    @prompt
    def quiet(text: str = "x") -> str:
        return f"said {text}"
"""

#: What terminals obey, and what people would not see.
HOSTILE = "a\x1b[31mb\x1b]52;c;aGkh\x07\x1b]8;;http://x\x1b\\c\x9b2Jd\u202ee\x08\x7f\x00f\rg\u2028h"
SHOWN = r"a\x1b[31mb\x1b]52;c;aGkh\x07\x1b]8;;http://x\x1b\c\x9b2Jd\u202ee\x08\x7f\x00f\rg\u2028h"
NAMED = HOSTILE.replace("\x00", "")  # no word of a command line holds a NUL
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]")


class TestStreams:
    @pytest.fixture(autouse=True)
    def shelf(self, recipes, tmp_path):
        """One quiet prompt and one that prints all the time."""
        recipes(quiet=QUIET)
        recipes("loud", noisy=NOISY)
        self.folder = tmp_path

    @pytest.mark.parametrize(
        ("line", "out"),
        [
            ("promptkit render loud noisy", b"[user]\nsaid x\n"),
            ("promptkit list loud", b"prompt noisy\n    text: str, default x\n"),
            ("promptkit check loud", b"1 prompt can be served\n"),
        ],
    )
    def test_a_file_and_a_pipe(self, line, out):
        """
        With output in a file and errors on a pipe, each gets its own, whatever a recipe prints.
        """
        code, _, err = in_shell(f"{line} > out.txt 2> >(cat >&2); wait", cwd=self.folder)

        assert code == 0
        assert (self.folder / "out.txt").read_bytes() == out
        expected = [n for n in NOISE if "render" in line or not n.endswith("while rendering")]
        assert sorted(err.decode().splitlines()) == expected

    def test_json_among_noise(self):
        """
        What is on standard output is JSON and nothing else.
        """
        code, out, err = command("render", "loud", "noisy", "--json", cwd=self.folder)

        assert code == 0
        assert json.loads(out)["messages"][0]["content"]["text"] == "said x"
        assert sorted(err.decode().splitlines()) == NOISE

    def test_both_in_one_file(self):
        """
        Then what is shown comes before what is wrong.
        """
        (self.folder / "recipes" / "bad.py").write_text("import nowhere\n")

        code, out, _ = in_shell("promptkit list > out.txt 2>&1 | cat", cwd=self.folder)

        lines = (self.folder / "out.txt").read_text().splitlines()
        assert (code, out) == (1, b"")
        assert lines[0] == "prompt quiet"
        assert "recipes/bad.py:1: error PK101" in lines[2]

    @pytest.mark.parametrize("line", ["list", "check", "render quiet", "list --json", "--help", "help list"])
    def test_a_full_disk(self, line):
        """
        The error is a sentence, and the exit code is that of a failed command.
        """
        if not os.path.exists("/dev/full"):  # noqa: PTH110
            pytest.skip("only Linux has a disk that is always full")
        code, _, err = in_shell(f"promptkit {line} > /dev/full", cwd=self.folder)

        assert code == 1
        assert err == b"promptkit: cannot write to standard output: No space left on device\n"

    @pytest.mark.parametrize("line", ["list", "check", "render quiet"])
    def test_standard_error_is_full_too(self, line):
        """
        Nothing can be printed, and the exit code is the same.
        """
        if not os.path.exists("/dev/full"):  # noqa: PTH110
            pytest.skip("only Linux has a disk that is always full")
        assert in_shell(f"promptkit {line} > /dev/full 2>&1", cwd=self.folder) == (1, b"", b"")

    @pytest.mark.parametrize("line", ["list", "check", "render quiet"])
    def test_standard_output_is_closed(self, line):
        """
        No file that a recipe opens takes its place, and the error is a sentence.
        """
        code, _, err = in_shell(f"promptkit {line} >&-", cwd=self.folder)

        assert (code, err) == (1, b"promptkit: cannot write to standard output: Bad file descriptor\n")

    @pytest.mark.parametrize("closed", ["2>&-", "<&-", "<&- 2>&-"])
    @pytest.mark.parametrize("line", ["list loud", "render loud noisy text=y"])
    def test_another_stream_is_closed(self, line, closed):
        """
        What is shown is the same, and nothing that recipes print is among it.
        """
        code, out, _ = in_shell(f"promptkit {line} {closed}", cwd=self.folder)

        assert code == 0
        assert b"noise" not in out
        assert out.splitlines()[0] in (b"prompt noisy", b"[user]")

    @pytest.mark.parametrize("line", ["list", "check", "render quiet", "nope", "list nowhere"])
    def test_all_streams_are_closed(self, line):
        """
        The exit code is all that is left to tell.
        """
        wrong = line in ("nope", "list nowhere")
        assert in_shell(f"promptkit {line} <&- >&- 2>&-", cwd=self.folder)[0] == (2 if wrong else 1)

    @pytest.mark.parametrize("line", ["list many", "check many", "render many long", "list many --json"])
    def test_a_reader_that_has_seen_enough(self, line, recipes):
        """
        ``| head -1`` ends a command without a message about the closed pipe.
        """
        recipes(
            "many",
            many="from promptkit import prompt\n"
            "prompt(name='long')(lambda: 'line\\n' * 100_000)\n"
            "for i in range(300):\n    prompt(name=f'p{i}')(lambda a, b: 'x' * 100)\n",
        )
        code, _, _ = in_shell(f"promptkit {line} 2> err.txt | head -c 20 > /dev/null", cwd=self.folder)

        assert code in (0, 1)
        assert b"Traceback" not in (self.folder / "err.txt").read_bytes()
        assert b"Broken" not in (self.folder / "err.txt").read_bytes()

    @pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-16", "utf-8:strict"])
    def test_an_encoding(self, encoding):
        """
        What it has no bytes for is escaped, as JSON where that is asked for.
        """
        text = "é日😀"
        env = {"PYTHONIOENCODING": encoding}
        _, out, _ = command("render", "quiet", f"text={text}", cwd=self.folder, env=env)
        _, as_json, _ = command("render", "quiet", f"text={text}", "--json", cwd=self.folder, env=env)

        name = encoding.partition(":")[0]
        assert out.decode(name) == f"[user]\nsaid {text}\n".encode(name, "backslashreplace").decode(name)
        assert json.loads(as_json.decode(name))["messages"][0]["content"]["text"] == f"said {text}"

    @pytest.mark.parametrize(
        "env",
        [
            {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            {"LANG": "C"},
            {"COLUMNS": "10"},
            {"COLUMNS": "x"},
            {"TERM": "dumb"},
            {"TERM": ""},
        ],
        ids=str,
    )
    def test_an_environment(self, env, recipes):
        """
        Nothing of it changes what a pipe is sent, but for what it cannot encode.
        """
        recipes(
            "wide",
            wide="from promptkit import prompt\n\n@prompt\ndef p(text: str = 'é日😀'):\n    return text\n",
        )

        code, out, _ = command("list", "wide", cwd=self.folder, env=env)

        shown = "é日😀".encode("ascii", "backslashreplace") if "LC_ALL" in env else "é日😀".encode()
        assert (code, out) == (0, b"prompt p\n    text: str, default " + shown + b"\n")


class TestWhatIsShown:
    @pytest.fixture(autouse=True)
    def hostile(self, recipes, tmp_path):
        """Prompts whose every text is hostile."""
        text = repr(HOSTILE)
        recipes(
            hostile=f"""
                from typing import Annotated
                from promptkit import Arg, PromptError, prompt, resource

                @prompt(title={text}, description={text})
                def says(text: Annotated[str, Arg(complete=[{text}])] = {text}) -> str:
                    return text + "\\n\\tnext"

                @prompt
                def refuses() -> str:
                    raise PromptError({text})

                @prompt
                def fails() -> str:
                    raise ValueError({text})

                @resource("docs://one", title={text}, description={text})
                def one() -> str:
                    return "x"
                """
        )
        recipes("faulty", faulty=f"def fail(): raise ValueError({text} + '\\nline')\n\nfail()\n")
        self.folder = tmp_path

    @pytest.mark.parametrize(
        "argv",
        [
            ["render", "says"],
            ["list"],
            ["complete", "says", "text"],
            ["render", "says", "--json"],
            ["list", "--json"],
            ["complete", "says", "text", "--json"],
            ["check", "--render", "--json"],
        ],
        ids=" ".join,
    )
    def test_on_a_terminal(self, argv):
        """
        What a terminal would obey is shown; line feeds and tabs stay.
        """
        shown = on_terminal(*argv, cwd=self.folder, NO_COLOR="1", columns=200)

        assert not OBEYED.search(shown)
        if argv == ["render", "says"]:
            assert shown == f"[user]\n{SHOWN}\n\tnext\n"
        elif argv == ["complete", "says", "text"]:
            assert shown == f"{SHOWN}\n"
        elif "--json" not in argv:
            assert SHOWN.replace(r"\rg\u2028h", " g h") in shown

    def test_json_means_the_same(self):
        """
        What is escaped in JSON is what a client receives.
        """
        shown = json.loads(on_terminal("render", "says", "--json", cwd=self.folder))
        piped = json.loads(command("render", "says", "--json", cwd=self.folder)[1])

        assert shown == piped
        assert piped["messages"][0]["content"]["text"] == f"{HOSTILE}\n\tnext"

    def test_a_file_gets_every_character(self):
        """
        What is piped is what the prompt says, to the letter.
        """
        _, out, _ = command("render", "says", cwd=self.folder)

        assert out == f"[user]\n{HOSTILE}\n\tnext\n".encode()

    @pytest.mark.parametrize(
        "argv",
        [
            ["render", "refuses"],
            ["render", "fails"],
            ["render", f"says{HOSTILE}".replace("\x00", "")],
            ["render", "says", f"x{HOSTILE}=1".replace("\x00", "")],
            ["render", "says", f"text=@{HOSTILE}".replace("\x00", "")],
            ["check", "faulty"],
            ["check", "faulty", "--format", "github"],
            ["check", "--render"],
            ["check", "--render", "--format", "github"],
            ["complete", "says", NAMED],
            ["complete", "says", "text", f"x{HOSTILE}=1".replace("\x00", "")],
            ["complete", NAMED, "x"],
            ["list", "faulty"],
            ["check", NAMED],
            ["render", NAMED, "x"],
            [NAMED],
        ],
        ids=ascii,
    )
    @pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
    def test_in_errors(self, argv, terminal):
        """
        Errors are for people, wherever they go.
        """
        if terminal:
            stream = "stdout" if argv[0] == "check" and len(argv) > 1 and argv[1] != NAMED else "stderr"
            shown = on_terminal(*argv, cwd=self.folder, stream=stream, NO_COLOR="1")
        else:
            _, out, err = command(*argv, cwd=self.folder)
            shown = (out + err).decode()

        assert r"\x1b[31mb" in shown.replace("\\\\", "\\")
        assert not OBEYED.search(shown)

    def test_a_fault_is_one_line(self):
        """
        The words of an exception, and the name of a file, may hold line feeds.
        """
        (self.folder / "faulty" / "a\nb\x1b.py").write_text("raise ValueError('x\\ny')")

        code, out, _ = command("check", "faulty", cwd=self.folder)

        first, _, second, _, summary = out.decode().splitlines()
        assert (code, summary) == (1, "0 prompts can be served, 2 errors")
        assert first.startswith(r"faulty/a\nb\x1b.py:1: error PK101: recipe 'a\nb\x1b' cannot be imported: ")
        assert second.endswith(r"g\u2028h\nline")

    def test_a_name_that_is_no_text(self):
        """
        File names of any bytes are targets, and shown where they are at fault.
        """
        if sys.platform == "darwin":
            pytest.skip("all names are text there")
        folder = os.fsencode(self.folder) + b"/b\xff"
        os.mkdir(folder)  # noqa: PTH102
        with open(folder + b"/q\xfe.py", "wb") as file:
            file.write(b"x =\n")

        code, out, _ = command("check", os.fsdecode(b"b\xff"), cwd=self.folder)
        _, as_json, _ = command("check", os.fsdecode(b"b\xff"), "--json", cwd=self.folder)

        assert (code, out.decode().partition(" ")[0]) == (1, r"b\udcff/q\udcfe.py:1:")
        file = json.loads(as_json)["diagnostics"][0]["file"]
        assert file.encode(errors="backslashreplace").decode().endswith(r"b\udcff/q\udcfe.py")

    def test_our_own_colours(self):
        """
        They stay, around what is shown.
        """
        shown = on_terminal("check", "faulty", cwd=self.folder)

        assert "\x1b[1;31merror\x1b[0m" in shown
        assert r"\x1b[31mb" in shown


#: What authors do to a process. Each is rendered, and says its name all the same.
DEEDS = {
    "closes_output": "sys.stdout.close()",
    "closes_both": "sys.stdout.close(); sys.stderr.close()",
    "replaces": "sys.stdout = sys.stderr = None",
    "replaces_by_junk": "sys.stdout = sys.stderr = 5",
    "deletes": "del sys.stdout, sys.stderr",
    "wraps": "sys.stdout = io.TextIOWrapper(sys.stdout.buffer)",
    "changes_folder": "os.chdir('/')",
    "removes_folder": "d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)",
    "fails_at_exit": "atexit.register(lambda: 1 / 0)",
    "exits_at_exit": "atexit.register(lambda: sys.exit(7))",
    "leaves_a_thread": "threading.Thread(target=EVER.wait, daemon=False).start()",
    "leaves_an_executor": "ThreadPoolExecutor().submit(EVER.wait)",
    "leaves_a_daemon": "threading.Thread(target=EVER.wait, daemon=True).start()",
    "leaves_a_daemon_that_prints": "threading.Thread(target=chat, daemon=True).start()",
    "leaves_a_daemon_that_complains": "threading.Thread(target=chat, args=[sys.stderr], daemon=True).start()",
}
HEAD = """
import atexit, io, os, sys, tempfile, threading
from concurrent.futures import ThreadPoolExecutor
from promptkit import prompt

EVER = threading.Event()

def chat(stream=None):
    while True:
        print("again", file=stream)
"""


class TestAuthors:
    @pytest.mark.parametrize("deed", DEEDS)
    @pytest.mark.parametrize("when", ["import", "rendering"])
    def test_what_they_do(self, deed, when, recipes, tmp_path):
        """
        A command shows what it is to show, and ends with its own exit code.
        """
        if (deed, when) == ("removes_folder", "import"):
            pytest.skip("the loader looks at the current folder once more")
        deeds = {when: DEEDS[deed]}
        recipes(
            deed=f"{HEAD}{deeds.get('import', '')}\n"
            f"@prompt\ndef deed():\n    {deeds.get('rendering', 'pass')}\n    return 'done'\n"
        )

        code, out, _ = command("render", "deed", cwd=tmp_path)

        assert (code, out) == (0, b"[user]\ndone\n")

    @pytest.mark.parametrize("deed", ["closes_both", "replaces", "replaces_by_junk", "deletes"])
    def test_what_fails_afterwards(self, deed, recipes, tmp_path):
        """
        Its error is still printed on standard error.
        """
        recipes(deed=f"{HEAD}\n@prompt\ndef deed():\n    {DEEDS[deed]}\n    raise ValueError('afterwards')\n")

        code, out, err = command("render", "deed", cwd=tmp_path)

        assert (code, out) == (1, b"")
        assert err.endswith(b"ValueError: afterwards\n")

    @pytest.mark.parametrize(
        "raised", ["SystemExit(0)", "KeyboardInterrupt", "GeneratorExit", "BaseException"]
    )
    @pytest.mark.parametrize("kind", ["def", "async def"])
    def test_what_they_raise(self, raised, kind, recipes, tmp_path):
        """
        Whatever it is, the prompt has failed, and its traceback begins in the author's code.
        """
        recipes(deed=f"{HEAD}\n@prompt\n{kind} deed() -> str:\n    raise {raised}\n")

        code, out, err = command("render", "deed", cwd=tmp_path)

        lines = err.decode().splitlines()
        assert (code, out) == (1, b"")
        assert lines[0] == "Traceback (most recent call last):"
        assert f'{os.sep}deed.py", line ' in lines[1]
        assert lines[-1].startswith(raised.partition("(")[0])


SLOW = """
    import asyncio, sys, threading, time
    from promptkit import prompt

    def begun():
        print("begun", file=sys.stderr, flush=True)

    @prompt(timeout=0.2)
    def plain() -> str:
        begun()
        time.sleep(60)
        return "x"

    @prompt(timeout=0.2)
    def spinning() -> str:
        begun()
        while True:
            pass

    @prompt(timeout=0.2)
    def stubborn() -> str:
        begun()
        while True:
            try:
                time.sleep(60)
            except BaseException:
                pass

    @prompt(timeout=0.2)
    def generator():
        begun()
        while True:
            yield "x"
            time.sleep(0.01)

    @prompt(timeout=0.2)
    async def waiting() -> str:
        begun()
        try:
            await asyncio.sleep(60)
        finally:
            print("cleaned up", file=sys.stderr, flush=True)
        return "x"

    @prompt(timeout=0.2)
    async def blocking() -> str:
        begun()
        time.sleep(60)
        return "x"

    @prompt(timeout=0.2)
    async def in_a_thread() -> str:
        begun()
        await asyncio.to_thread(time.sleep, 60)
        return "x"

    @prompt(timeout=0.2)
    async def agenerator():
        begun()
        yield "x"
        await asyncio.sleep(60)
"""
KINDS = re.findall(r"def (\w+)\((?:\) -> str|\)):", dedent(SLOW))[1:]

#: What may stand in the line that a kind is in when its time is over; else it waits for so many seconds.
WHERE = {"spinning": ("while True:", "pass"), "generator": ("while True:", 'yield "x"', "time.sleep(0.01)")}


class TestTimeLimits:
    @pytest.mark.parametrize("name", KINDS)
    def test_a_prompt_that_takes_too_long(self, name, recipes, tmp_path):
        """
        It fails as it does in a server, in the same words, and the command ends. They name the line.
        """
        recipes(slow=SLOW)

        code, out, err = command("render", name, cwd=tmp_path)

        said = [line for line in err.decode().splitlines() if line not in ("begun", "cleaned up")]
        assert (code, out) == (1, b"")
        words = rf"promptkit: prompt {name!r} took longer than its limit of 0\.2 s, and was at (\S+):(\d+)"
        file, line = re.fullmatch(words, "\n".join(said)).groups()
        assert file == str(Path("recipes", "slow.py"))
        assert any(part in dedent(SLOW).splitlines()[int(line)] for part in WHERE.get(name, ("60",)))
        assert (b"cleaned up" in err) == (name == "waiting")

    @pytest.mark.parametrize("name", KINDS)
    def test_an_interrupt(self, name, recipes, tmp_path):
        """
        Ctrl-C ends the command with 130, without a traceback, whatever the prompt does.
        """
        recipes(slow=SLOW.replace("timeout=0.2", "timeout=50"))

        code, err = interrupted("render", name, cwd=tmp_path)

        assert (code, err.replace(b"cleaned up\n", b"")) == (130, b"")
        assert (b"cleaned up" in err) == (name == "waiting")

    @pytest.mark.parametrize("argv", [["list"], ["check"], ["render", "x"]], ids=" ".join)
    def test_an_interrupted_import(self, argv, recipes, tmp_path):
        """
        The same holds while recipes are imported.
        """
        recipes(slow="import sys, time\nprint('begun', file=sys.stderr, flush=True)\ntime.sleep(60)\n")

        assert interrupted(*argv, cwd=tmp_path) == (130, b"")

    @pytest.mark.parametrize(
        "argv",
        [
            ["check", "prompts.py", "--render"],
            ["check", "resources.py", "--render"],
            ["check", "prompts.py", "--render", "--format", "github"],
            ["complete", "hangs", "text", "--target", "prompts.py"],
            ["complete", "slow://{text}", "text", "--target", "resources.py"],
            ["render", "resources.py", "slow://x"],
        ],
        ids=" ".join,
    )
    def test_an_interrupted_call(self, argv, recipes, tmp_path):
        """
        Wherever a command calls an author's function, Ctrl-C ends it, and nothing is printed.
        """
        head = f"{dedent(SLOW).partition('@prompt')[0]}from typing import Annotated\n"
        head += "from promptkit import Arg, resource\ndef hang(): begun(); time.sleep(60)\n"
        text = "text: Annotated[str, Arg(complete=hang, examples=['x'])]"
        recipes(".", prompts=f"{head}@prompt\ndef hangs({text}) -> str: return hang()\n")
        recipes(
            ".", resources=f"{head}@resource('slow://{{text}}')\ndef slow({text}) -> str: return hang()\n"
        )

        assert interrupted(*argv, cwd=tmp_path) == (130, b"")

    @pytest.mark.parametrize("command", ["list", "serve"])
    def test_while_the_command_itself_is_imported(self, command, tmp_path):
        """
        It waits for the end of that import, in the middle of which extensions crash.
        """
        done = subprocess.run(
            [sys.executable, "-c", START_INTERRUPTED, command],
            check=False,
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=50,
        )

        assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"whole\n")


def interrupted(*argv, cwd):
    """Press Ctrl-C once a command has printed that it has begun; return its exit code and other output."""
    process = subprocess.Popen(
        # A shell that starts it in the background would have it ignore the signal.
        [sys.executable, "-c", START, *argv],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr.readline() == b"begun\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=50)
    return process.returncode, err


START = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from promptkit.cli import main
sys.exit(main())
"""


START_INTERRUPTED = """
import os, signal, sys
from promptkit import cli

def import_interrupted(name):
    os.kill(os.getpid(), signal.SIGINT)
    module = import_module(name)
    print("whole", file=sys.stderr)
    return module

signal.signal(signal.SIGINT, signal.default_int_handler)
import_module, cli.import_module = cli.import_module, import_interrupted
sys.exit(cli.main())
"""


def test_a_current_folder_that_is_gone(tmp_path):
    """
    The error is a sentence; an absolute path is found all the same.
    """
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "quiet.py").write_text(dedent(QUIET))
    gone = 'mkdir gone; cd gone; rmdir "$PWD"; promptkit'

    for line in ("list", "render quiet"):
        code, out, err = in_shell(f"{gone} {line}", cwd=tmp_path)
        assert (code, out) == (2, b"")
        assert err == (
            b"promptkit: cannot load 'recipes': the current folder is gone: change to one that exists\n"
        )
    assert in_shell(f"{gone} render {tmp_path}/recipes quiet", cwd=tmp_path)[:2] == (0, b"[user]\nsaid x\n")
    code, out, err = in_shell(f"{gone} check {tmp_path}/recipes", cwd=tmp_path)
    assert (code, out) == (0, b"1 prompt can be served\n")


def test_the_command_is_the_module(tmp_path):
    """
    What is tested here is what people start.
    """
    assert COMMAND[1:] == ["-m", "promptkit"]
