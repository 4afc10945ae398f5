"""Output to files, pipes, terminals and closed descriptors, and recipes that tamper with the process."""

import json
import os
import re
import signal
import subprocess
import sys
from io import FileIO
from pathlib import Path
from textwrap import dedent

import pytest

from promptkit.cli.output import Output
from tests.terminal import COMMAND, command, environment, in_shell

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="descriptors and signals of POSIX"),
]

#: A recipe that prints in every possible way: at import, while it renders, and at exit.
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

#: Control and escape sequences for terminals, and invisible characters.
HOSTILE = "a\x1b[31mb\x1b]52;c;aGkh\x07\x1b]8;;http://x\x1b\\c\x9b2Jd\u202ee\x08\x7f\x00f\rg\u2028h"
HOSTILE_ESCAPED = r"a\x1b[31mb\x1b]52;c;aGkh\x07\x1b]8;;http://x\x1b\c\x9b2Jd\u202ee\x08\x7f\x00f\rg\u2028h"
HOSTILE_WORD = HOSTILE.replace("\x00", "")  # a command-line argument cannot contain NUL
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]")


class TestStreams:
    @pytest.fixture(autouse=True)
    def project(self, recipes, tmp_path):
        """One quiet prompt and one that prints all the time."""
        recipes(quiet=QUIET)
        recipes("loud", noisy=NOISY)
        self.folder = tmp_path

    @pytest.mark.parametrize(
        ("line", "out"),
        [
            ("promptkit render loud noisy", b"[user]\nsaid x\n"),
            ("promptkit list loud", b"prompt noisy\n    text: str, default x\n"),
            (
                "promptkit check loud",
                b"1 prompt can be served\nno docstring or description for clients to show: noisy\n",
            ),
        ],
    )
    def test_output_to_a_file_errors_to_a_pipe(self, line, out):
        """Standard output in a file and errors on a pipe stay separate, whatever a recipe prints."""
        code, _, err = in_shell(f"{line} > out.txt 2> >(cat >&2); wait", cwd=self.folder)

        assert code == 0
        assert (self.folder / "out.txt").read_bytes() == out
        expected = [n for n in NOISE if "render" in line or not n.endswith("while rendering")]
        assert sorted(err.decode().splitlines()) == expected

    def test_json_with_noisy_recipe(self, forked):
        """Standard output is valid JSON even if a recipe prints."""
        code, out, err = forked("render", "loud", "noisy", "--json", cwd=self.folder)

        assert code == 0
        assert json.loads(out)["messages"][0]["content"]["text"] == "said x"
        assert sorted(err.decode().splitlines()) == NOISE

    def test_both_streams_in_one_file(self):
        """In a shared file, the output comes before the errors."""
        (self.folder / "recipes" / "bad.py").write_text("import nowhere\n")

        code, out, _ = in_shell("promptkit list > out.txt 2>&1 | cat", cwd=self.folder)

        lines = (self.folder / "out.txt").read_text().splitlines()
        assert (code, out) == (1, b"")
        assert lines[0] == "prompt quiet"
        assert "recipes/bad.py:1: error PK101" in lines[2]

    @pytest.mark.parametrize("line", ["list", "--help"])
    def test_full_disk(self, line):
        """A full disk is reported in one line, and the command exits with 1."""
        if not os.path.exists("/dev/full"):  # noqa: PTH110
            pytest.skip("only Linux has a disk that is always full")
        code, _, err = in_shell(f"promptkit {line} > /dev/full", cwd=self.folder)

        assert code == 1
        assert err == b"promptkit: cannot write to standard output: No space left on device\n"

    def test_full_disk_for_both_streams(self):
        """If standard error is full too, nothing is printed and the exit code is the same."""
        if not os.path.exists("/dev/full"):  # noqa: PTH110
            pytest.skip("only Linux has a disk that is always full")
        assert in_shell("promptkit list > /dev/full 2>&1", cwd=self.folder) == (1, b"", b"")

    @pytest.mark.parametrize("line", ["list", "render quiet"])
    def test_closed_stdout(self, line):
        """A closed standard output is an error, and no file that a recipe opens takes over its descriptor."""
        code, _, err = in_shell(f"promptkit {line} >&-", cwd=self.folder)

        assert (code, err) == (1, b"promptkit: cannot write to standard output: Bad file descriptor\n")

    @pytest.mark.parametrize("closed", ["2>&-", "<&-", "<&- 2>&-"])
    @pytest.mark.parametrize("line", ["render loud noisy text=y"])
    def test_other_closed_streams(self, line, closed):
        """With other streams closed, the output is unchanged and contains nothing that recipes print."""
        code, out, _ = in_shell(f"promptkit {line} {closed}", cwd=self.folder)

        assert code == 0
        assert b"noise" not in out
        assert out.splitlines()[0] == b"[user]"

    @pytest.mark.parametrize("line", ["list", "render quiet", "nope"])
    def test_all_streams_closed(self, line):
        """With all streams closed, the exit code still reports the result."""
        assert in_shell(f"promptkit {line} <&- >&- 2>&-", cwd=self.folder)[0] == (2 if line == "nope" else 1)

    @pytest.mark.parametrize("line", ["check many", "render many long", "list many --json"])
    def test_closed_pipe(self, line, recipes):
        """`| head` ends a command without a message about the closed pipe."""
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

    def test_encoding(self):
        """The output has the encoding of the process, and a character that it lacks is escaped."""
        env = {"PYTHONIOENCODING": "cp1252"}
        _, out, _ = command("render", "quiet", "text=é日😀", cwd=self.folder, env=env)

        assert out == "[user]\nsaid é\\u65e5\\U0001f600\n".encode("cp1252")

    @pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-16"])
    def test_json_in_another_encoding(self, encoding):
        """JSON has JSON's escapes for characters that the encoding lacks."""
        path = self.folder / "out.json"
        with FileIO(path, "w") as file:
            output = Output(file, encoding)
            output.print_json("é日😀")
            output.send()

        assert json.loads(path.read_text(encoding)) == "é日😀"

    @pytest.mark.parametrize(
        "env",
        [
            {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            {"COLUMNS": "10", "TERM": "dumb"},
            {"COLUMNS": "x", "TERM": ""},
        ],
        ids=str,
    )
    def test_environment_variables(self, env, recipes):
        """In a pipe, environment variables change only the encoding of the output."""
        recipes(
            "wide",
            wide="from promptkit import prompt\n\n@prompt\ndef p(text: str = 'é日😀'):\n    return text\n",
        )

        code, out, _ = command("list", "wide", cwd=self.folder, env=env)

        expected = "é日😀".encode("ascii", "backslashreplace") if "LC_ALL" in env else "é日😀".encode()
        assert (code, out) == (0, b"prompt p\n    text: str, default " + expected + b"\n")


class TestEscapes:
    @pytest.fixture(autouse=True)
    def hostile(self, recipes, tmp_path, monkeypatch):
        """Prompts with hostile text in every field, in the current folder."""
        monkeypatch.chdir(tmp_path)
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
    def test_on_a_terminal(self, argv, run_on_terminal):
        """Control characters are escaped on a terminal, except line feeds and tabs."""
        _, output = run_on_terminal(*argv, NO_COLOR="1", columns=200)

        assert not CONTROL.search(output)
        if argv == ["render", "says"]:
            assert output == f"[user]\n{HOSTILE_ESCAPED}\n\tnext\n"
        elif argv == ["complete", "says", "text"]:
            assert output == f"{HOSTILE_ESCAPED}\n"
        elif "--json" not in argv:
            assert HOSTILE_ESCAPED.replace(r"\rg\u2028h", " g h") in output

    def test_json_is_equivalent_on_a_terminal(self, run, run_on_terminal):
        """Escaped JSON on a terminal decodes to the same data as piped JSON."""
        on_screen = json.loads(run_on_terminal("render", "says", "--json")[1])
        piped = json.loads(run("render", "says", "--json")[1])

        assert on_screen == piped
        assert piped["messages"][0]["content"]["text"] == f"{HOSTILE}\n\tnext"

    def test_pipe_is_not_escaped(self):
        """Piped text equals the rendered text exactly."""
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
            ["complete", "says", HOSTILE_WORD],
            ["complete", "says", "text", f"x{HOSTILE}=1".replace("\x00", "")],
            ["complete", HOSTILE_WORD, "x"],
            ["list", "faulty"],
            ["check", HOSTILE_WORD],
            ["render", HOSTILE_WORD, "x"],
            [HOSTILE_WORD],
        ],
        ids=ascii,
    )
    @pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
    def test_errors_are_escaped(self, argv, terminal, run, run_on_terminal):
        """Errors are escaped on terminals and in pipes."""
        if terminal:
            stream = (
                "stdout" if argv[0] == "check" and len(argv) > 1 and argv[1] != HOSTILE_WORD else "stderr"
            )
            _, output = run_on_terminal(*argv, stream=stream, NO_COLOR="1")
        else:
            output = "".join(run(*argv)[1:])

        assert r"\x1b[31mb" in output.replace("\\\\", "\\")
        assert not CONTROL.search(output)

    def test_diagnostic_takes_one_line(self, run):
        """Line feeds in exception messages and file names do not break a diagnostic's line."""
        (self.folder / "faulty" / "a\nb\x1b.py").write_text("raise ValueError('x\\ny')")

        code, out, _ = run("check", "faulty")

        first, _, second, _, summary = out.splitlines()
        assert (code, summary) == (1, "0 prompts can be served, 2 errors")
        assert first.startswith(r"faulty/a\nb\x1b.py:1: error PK101: recipe 'a\nb\x1b' cannot be imported: ")
        assert second.endswith(r"g\u2028h\nline")

    def test_undecodable_file_name(self, forked):
        """A file name that is not valid UTF-8 works as a target and is escaped in diagnostics."""
        if sys.platform == "darwin":
            pytest.skip("all names are text there")
        folder = os.fsencode(self.folder) + b"/b\xff"
        os.mkdir(folder)  # noqa: PTH102
        with open(folder + b"/q\xfe.py", "wb") as file:
            file.write(b"x =\n")

        code, out, _ = forked("check", os.fsdecode(b"b\xff"), cwd=self.folder)
        _, as_json, _ = forked("check", os.fsdecode(b"b\xff"), "--json", cwd=self.folder)

        assert (code, out.decode().partition(" ")[0]) == (1, r"b\udcff/q\udcfe.py:1:")
        file = json.loads(as_json)["diagnostics"][0]["file"]
        assert file.encode(errors="backslashreplace").decode().endswith(r"b\udcff/q\udcfe.py")

    def test_own_colours(self, run_on_terminal):
        """The command's own colours are not escaped."""
        _, output = run_on_terminal("check", "faulty")

        assert "\x1b[1;31merror\x1b[0m" in output
        assert r"\x1b[31mb" in output


#: Statements that tamper with the process. The prompt is rendered nevertheless.
STATEMENTS = {
    "closes_both": "sys.stdout.close(); sys.stderr.close()",
    "replaces": "sys.stdout = sys.stderr = None",
    "replaces_by_junk": "sys.stdout = sys.stderr = 5",
    "deletes": "del sys.stdout, sys.stderr",
    "wraps": "sys.stdout = io.TextIOWrapper(sys.stdout.buffer)",
    "removes_folder": "d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)",
    "fails_at_exit": "atexit.register(lambda: 1 / 0); atexit.register(lambda: sys.exit(7))",
    "leaves_a_thread": "threading.Thread(target=EVER.wait, daemon=False).start()",
    "leaves_an_executor": "ThreadPoolExecutor().submit(EVER.wait)",
    "leaves_a_daemon": "threading.Thread(target=EVER.wait, daemon=True).start()",
    "leaves_daemons_that_print": "[threading.Thread(target=chat, args=[stream], daemon=True).start() "
    "for stream in (None, sys.stderr)]",
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


class TestTampering:
    @pytest.mark.parametrize(
        ("name", "when"),
        [
            *((name, "rendering") for name in STATEMENTS),
            ("closes_both", "import"),
        ],
    )
    def test_statements(self, name, when, recipes, *, tmp_path, forked):
        """The command prints its output and exits with its own code, whatever the recipe did."""
        statements = {when: STATEMENTS[name]}
        recipes(
            deed=f"{HEAD}{statements.get('import', '')}\n"
            f"@prompt\ndef deed():\n    {statements.get('rendering', 'pass')}\n    return 'done'\n"
        )

        code, out, _ = forked("render", "deed", cwd=tmp_path)

        assert (code, out) == (0, b"[user]\ndone\n")

    @pytest.mark.parametrize("name", ["closes_both", "deletes"])
    def test_error_after_tampering(self, name, recipes, tmp_path, forked):
        """A later error is still printed to standard error."""
        recipes(
            deed=f"{HEAD}\n@prompt\ndef deed():\n    {STATEMENTS[name]}\n    raise ValueError('afterwards')\n"
        )

        code, out, err = forked("render", "deed", cwd=tmp_path)

        assert (code, out) == (1, b"")
        assert err.splitlines()[-2] == b"ValueError: afterwards"

    @pytest.mark.parametrize(
        "raised", ["SystemExit(0)", "KeyboardInterrupt", "GeneratorExit", "BaseException"]
    )
    @pytest.mark.parametrize("kind", ["def", "async def"])
    def test_raised_exceptions(self, raised, kind, *, recipes, tmp_path, monkeypatch, run):
        """
        Any exception, even `SystemExit(0)`, fails the prompt, with a traceback that starts in the author's
        code.
        """
        recipes(deed=f"{HEAD}\n@prompt\n{kind} deed() -> str:\n    raise {raised}\n")
        monkeypatch.chdir(tmp_path)

        code, out, err = run("render", "deed")

        lines = err.splitlines()
        assert (code, out) == (1, "")
        assert lines[0] == "Traceback (most recent call last):"
        assert f'{os.sep}deed.py", line ' in lines[1]
        assert lines[-2].startswith(raised.partition("(")[0])


SLOW = """
    import asyncio, sys, threading, time
    from promptkit import prompt

    def started():
        print("started", file=sys.stderr, flush=True)

    @prompt(timeout=0.2)
    def plain() -> str:
        started()
        time.sleep(60)
        return "x"

    @prompt(timeout=0.2)
    def spinning() -> str:
        started()
        while True:
            pass

    @prompt(timeout=0.2)
    def stubborn() -> str:
        started()
        while True:
            try:
                time.sleep(60)
            except BaseException:
                pass

    @prompt(timeout=0.2)
    def generator():
        started()
        while True:
            yield "x"
            time.sleep(0.01)

    @prompt(timeout=0.2)
    async def waiting() -> str:
        started()
        try:
            await asyncio.sleep(60)
        finally:
            print("cleaned up", file=sys.stderr, flush=True)
        return "x"

    @prompt(timeout=0.2)
    async def blocking() -> str:
        started()
        time.sleep(60)
        return "x"

    @prompt(timeout=0.2)
    async def in_a_thread() -> str:
        started()
        await asyncio.to_thread(time.sleep, 60)
        return "x"

    @prompt(timeout=0.2)
    async def agenerator():
        started()
        yield "x"
        await asyncio.sleep(60)
"""
#: Possible source lines at the timeout. All other prompts are at the line that waits 60 s.
LINES_AT_TIMEOUT = {
    "spinning": ("while True:", "pass"),
    "generator": ("while True:", 'yield "x"', "time.sleep(0.01)"),
}


class TestTimeLimits:
    @pytest.mark.parametrize("name", ["spinning", "stubborn", "generator", "waiting", "in_a_thread"])
    def test_prompt_that_times_out(self, name, recipes, tmp_path, forked):
        """
        A prompt that exceeds its limit fails with the message of a server, which names the line.
        """
        recipes(slow=SLOW)

        code, out, err = forked("render", name, cwd=tmp_path)

        lines = [line for line in err.decode().splitlines() if line not in ("started", "cleaned up")]
        assert (code, out) == (1, b"")
        pattern = rf"promptkit: prompt {name!r} took longer than its limit of 0\.2 s, and was at (\S+):(\d+)"
        file, line = re.fullmatch(pattern, "\n".join(lines)).groups()
        assert file == str(Path("recipes", "slow.py"))
        assert any(
            part in dedent(SLOW).splitlines()[int(line)] for part in LINES_AT_TIMEOUT.get(name, ("60",))
        )
        assert (b"cleaned up" in err) == (name == "waiting")

    @pytest.mark.parametrize("name", ["plain", "stubborn", "waiting", "in_a_thread"])
    def test_interrupt(self, name, recipes, tmp_path):
        """Ctrl-C ends the command with 130 and without a traceback, whatever the prompt does."""
        recipes(slow=SLOW.replace("timeout=0.2", "timeout=50"))

        code, err = interrupt("render", name, cwd=tmp_path)

        assert (code, err.replace(b"cleaned up\n", b"")) == (130, b"")
        assert (b"cleaned up" in err) == (name == "waiting")

    @pytest.mark.parametrize("argv", [["list"], ["render", "x"]], ids=" ".join)
    def test_interrupt_during_import(self, argv, recipes, tmp_path):
        """Ctrl-C ends the command with 130 while recipes are being imported."""
        recipes(slow="import sys, time\nprint('started', file=sys.stderr, flush=True)\ntime.sleep(60)\n")

        assert interrupt(*argv, cwd=tmp_path) == (130, b"")

    @pytest.mark.parametrize(
        "argv",
        [
            ["check", "prompts.py", "--render"],
            ["complete", "hangs", "text", "--target", "prompts.py"],
            ["render", "resources.py", "slow://x"],
        ],
        ids=" ".join,
    )
    def test_interrupt_during_a_call(self, argv, recipes, tmp_path):
        """Ctrl-C ends the command without output while any function of an author runs."""
        head = f"{dedent(SLOW).partition('@prompt')[0]}from typing import Annotated\n"
        head += "from promptkit import Arg, resource\ndef hang(): started(); time.sleep(60)\n"
        text = "text: Annotated[str, Arg(complete=hang, examples=['x'])]"
        recipes(".", prompts=f"{head}@prompt\ndef hangs({text}) -> str: return hang()\n")
        recipes(
            ".", resources=f"{head}@resource('slow://{{text}}')\ndef slow({text}) -> str: return hang()\n"
        )

        assert interrupt(*argv, cwd=tmp_path) == (130, b"")

    @pytest.mark.parametrize("command", ["list", "serve"])
    def test_interrupt_while_promptkit_is_imported(self, command, tmp_path):
        """
        An interrupt waits until the command's own modules are imported, because extension modules can crash
        otherwise.
        """
        result = subprocess.run(
            [sys.executable, "-c", START_INTERRUPTED, command],
            check=False,
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=50,
        )

        assert (result.returncode, result.stdout, {*result.stderr.splitlines()}) == (130, b"", {b"whole"})


def interrupt(*argv, cwd):
    """
    Press Ctrl-C once a command has printed `started`; return its exit code and the rest of standard error.
    """
    process = subprocess.Popen(
        # without a shell, in whose background it would ignore SIGINT
        [sys.executable, "-c", START, *argv],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr.readline() == b"started\n"
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


def test_command_is_the_module(tmp_path):
    """These tests run `python -m promptkit`."""
    assert COMMAND[1:] == ["-m", "promptkit"]
