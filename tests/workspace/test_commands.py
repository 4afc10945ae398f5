"""What a command may do, and what becomes of it."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from signal import SIGINT
from tempfile import gettempdir

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.errors import PromptError
from promptkit.language.cancellation import RequestCancelledError, cancelled_by
from promptkit.workspace import run, run_async
from promptkit.workspace.commands import _cut

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the commands are those of POSIX")


def run_on_loop(*command, **options):
    """Run a command as an asynchronous prompt does."""
    return asyncio.run(run_async(*command, **options))


@pytest.fixture(params=[run, run_on_loop], ids=["run", "run_async"])
def running(request, folder):
    """Both ways to run a command, in a folder."""
    return request.param


def refusal(running, *command, **options):
    """What the person at the client is told of a command."""
    with pytest.raises(PromptError) as refused:
        running(*command, **options)
    return str(refused.value)


class TestWords:
    def test_no_shell_reads_them(self, running):
        """
        Each is one word, whatever it holds.
        """
        words = ["$HOME", "a b", "; echo no", "`date`", "*", "-n", "", "\n|"]

        assert running("printf", "%s.", *words, "end") == "".join(f"{word}." for word in [*words, "end"])

    @given(words=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))))
    def test_a_program_gets_what_is_written(self, words):
        """
        Any text but a null character reaches it unchanged.
        """
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PROMPTKIT_WORKSPACE", gettempdir())
            assert run("printf", "%s.", *words, "end") == "".join(f"{word}." for word in [*words, "end"])

    def test_none_is_left_out(self, running):
        """
        So an argument that was not given leaves no word.
        """
        assert running("printf", "%s.", None, "a", None) == "a."

    def test_paths_and_members_of_enumerations_are_text(self, running):
        """
        Both are passed on as what they stand for.
        """

        class Mode(StrEnum):
            SHORT = "short"

        assert running("printf", "%s.", Path("a/b"), Mode.SHORT) == "a/b.short."

    @pytest.mark.parametrize(("word", "kind"), [(3, "int"), (True, "bool"), (b"x", "bytes"), (["x"], "list")])
    def test_anything_else_is_the_authors_mistake(self, word, kind, running):
        """
        The error names the word.
        """
        with pytest.raises(TypeError) as refused:
            running("echo", None, word)

        assert str(refused.value) == (
            f"run(...): word 3: expected text or a path, not {kind}; make it a str first"
        )

    @pytest.mark.parametrize("command", [(), (None,)])
    def test_there_is_a_program(self, command, running):
        """
        Without one, the error shows how a command is written.
        """
        with pytest.raises(TypeError) as refused:
            running(*command)

        assert str(refused.value) == (
            "run(...) names no program: write its words one by one, as in run('git', 'status')"
        )

    @pytest.mark.parametrize(("word", "shown"), [("a\0b", r"a\x00b"), ("a\ud800", r"a\ud800")])
    def test_what_no_program_takes_is_told_the_caller(self, word, shown, running):
        """
        Clients may send a null character, or half of a character.
        """
        assert refusal(running, "echo", word) == (
            f"no program can be given '{shown}': it has a null character, or half of a character"
        )

    @pytest.mark.parametrize("options", [{"limit": 0}, {"timeout": 0.0}, {"timeout": float("nan")}])
    def test_limits_are_above_zero(self, options, running):
        """
        Others are the author's mistake.
        """
        with pytest.raises(ValueError, match="both have to be above 0"):
            running("true", **options)


class TestOutput:
    def test_it_runs_in_the_workspace(self, running, folder):
        """
        The current folder of the server does not count.
        """
        assert running("pwd", "-P") == str(folder.resolve())

    def test_it_gets_no_input(self, running):
        """
        Who reads finds the end at once.
        """
        assert running("cat") == ""

    def test_it_has_no_terminal(self, running):
        """
        Nothing can be asked or shown there.
        """
        assert running("sh", "-c", "{ echo >/dev/tty; } 2>/dev/null || echo none") == "none"

    def test_it_inherits_no_descriptor(self, running, tmp_path):
        """
        Those of the server, such as the wire, are out of its reach.
        """
        with Path(tmp_path / "open").open("w") as file:
            os.set_inheritable(file.fileno(), True)  # noqa: FBT003 (it takes no keyword)
            script = f"[ -e /dev/fd/{file.fileno()} ] && echo there || echo none"
            assert running("sh", "-c", script) == "none"

    def test_line_ends_behind_it_are_dropped(self, running):
        """
        As by a shell, so that it may stand in a sentence; those in front and within stay.
        """
        assert running("printf", r"\na\r\nb\r\n\n\n") == "\na\r\nb"

    def test_bytes_that_are_no_text_are_replaced(self, running):
        """
        Others stay as they are.
        """
        assert running("printf", r"a\377b\303\251") == "a\ufffdbé"

    def test_standard_error_is_not_sent(self, running):
        """
        It is no part of what is returned, however much of it there is.
        """
        script = "head -c 1000000 /dev/zero >&2; echo said"

        assert running("sh", "-c", script) == "said"


class TestLimit:
    def test_a_flood_is_cut_and_ended(self, running, witness):
        """
        Who writes without end is ended at the limit, and that is no failure.
        """
        assert (
            running("sh", "-c", f"{witness.begin} yes", limit=9)
            == "y\ny\ny\ny\ny\n[... cut after 9 characters ...]"
        )
        assert witness.all_gone() == b"begun\n"

    def test_what_fits_is_whole(self, running):
        """
        Line ends behind it do not count, and characters count, not bytes.
        """
        assert running("printf", r"\303\251\303\251\303\251\n", limit=3) == "ééé"

    @given(text=st.text(st.sampled_from("ab \né")), limit=st.integers(1, 30))
    def test_a_cut_keeps_the_beginning(self, text, limit):
        """
        At most as many characters as were asked for, and it says how many they are.
        """
        kept, _, notice = _cut(text, limit).rpartition("\n")

        if len(text) <= limit:
            assert _cut(text, limit) == text
        else:
            assert text.startswith(kept)
            assert 0 < len(kept) <= limit
            assert notice.startswith(f"[... cut after {len(kept)} character")

    def test_a_failure_behind_the_limit_is_none(self, running):
        """
        What was cut may have failed because it was ended.
        """
        script = "trap 'exit 7' TERM; while :; do echo y; done"

        assert running("sh", "-c", script, limit=1) == "y\n[... cut after 1 character ...]"


class TestFailures:
    def test_an_exit_code_is_told_with_the_first_line_of_standard_error(self, running):
        """
        And with the command, as one would write it in a shell.
        """
        script = "echo; echo 'no\033[1m way' >&2; echo more >&2; exit 3"

        assert refusal(running, "sh", "-c", script, "a b").endswith(
            r"'a b' exited with code 3: no\x1b[1m way"
        )

    def test_without_a_check_an_exit_code_is_none(self, running):
        """
        Some programs say something by it, as grep does.
        """
        assert running("sh", "-c", "echo found; exit 1", check=False) == "found"

    def test_a_failure_may_say_nothing(self, running):
        """
        Then the command and the code are told alone.
        """
        assert refusal(running, "false") == "false exited with code 1"

    def test_a_signal_is_named(self, running):
        """
        In the words of the system.
        """
        assert refusal(running, "sh", "-c", "kill -SEGV $$") == (
            "sh -c 'kill -SEGV $$' was ended by a signal (Segmentation fault)"
        )

    def test_a_program_that_is_not_there(self, running):
        """
        The error says where it would have to be, also without a check.
        """
        assert refusal(running, "no-such-program", "x", check=False) == (
            "cannot run no-such-program x: there is no program 'no-such-program' where the server runs"
        )

    def test_a_file_that_is_no_program(self, running, folder):
        """
        What the system says of it is told.
        """
        folder.joinpath("data").touch()

        assert refusal(running, "./data") == "cannot run ./data: Permission denied"

    def test_a_long_command_is_shown_shortened(self, running):
        """
        An error stays readable, whatever a caller sends.
        """
        said = refusal(running, "sh", "-c", "exit 2", "x" * 100_000)

        assert len(said) < 300
        assert said.endswith("... exited with code 2")

    def test_there_is_no_workspace(self, running, monkeypatch):
        """
        Then nothing runs.
        """
        monkeypatch.setenv("PROMPTKIT_WORKSPACE", "")

        assert refusal(running, "true").startswith("this server has no workspace")


class TestEnd:
    def test_who_hangs_is_ended(self, running, witness):
        """
        With all that it has started, and its caller is told.
        """
        said = refusal(running, "sh", "-c", f"{witness.begin} sleep 60 & sleep 60", timeout=0.3)

        assert said.endswith("took longer than 0.3 s and was ended")
        assert witness.all_gone() == b"begun\n"

    def test_who_hangs_without_output_is_ended(self, running, witness):
        """
        Also one that has closed what it would write to.
        """
        script = f"{witness.begin} exec >&- 2>&-; sleep 60"

        assert "took longer" in refusal(running, "sh", "-c", script, timeout=0.3)
        assert witness.all_gone() == b"begun\n"

    def test_who_ignores_the_end_is_killed(self, running, witness):
        """
        A signal that may be ignored comes first, so that programs remove their locks.
        """
        script = f"{witness.begin} trap 'echo told >&3' TERM; while :; do sleep 60; done"

        assert "took longer" in refusal(running, "sh", "-c", script, timeout=0.3)
        assert witness.all_gone() == b"begun\ntold\n"

    def test_what_is_left_behind_is_ended(self, running, witness):
        """
        As soon as the command itself has ended; all that it wrote is there.
        """
        script = f"{witness.begin} sleep 60 & echo done"

        assert running("sh", "-c", script) == "done"
        assert witness.all_gone() == b"begun\n"

    def test_who_leaves_the_group_holds_up_nobody(self, running, tmp_path):
        """
        A process with a session of its own is out of reach. Though it holds the output open, it is not waited
        for.
        """
        code = (
            "import os, sys, time; print('out'); os.setsid(); open(sys.argv[1], 'w').close(); time.sleep(60)"
        )
        number = tmp_path / "number"
        left = (
            f'"{sys.executable}" -uc "{code}" "$0" & echo $! >"$1"; until [ -e "$0" ]; do :; done; echo done'
        )
        try:
            assert sorted(running("sh", "-c", left, tmp_path / "left", number).split()) == ["done", "out"]
        finally:
            os.kill(int(number.read_text()), 9)

    def test_all_output_of_a_quick_command_is_there(self, running):
        """
        What fills the pipe before the command ends is read after that.
        """
        assert len(running("head", "-c", "60000", "/dev/zero", limit=100_000)) == 60_000


def in_thread(work):
    """Run *work* for a request on a thread; return the thread, a function that cancels it, and errors."""
    ended, cancelled = [], threading.Event()

    def work_on():
        with cancelled_by(cancelled.is_set):
            try:
                work()
            except BaseException as error:  # noqa: BLE001 (its type is checked)
                ended.append(type(error))

    thread = threading.Thread(target=work_on, daemon=True)
    thread.start()
    return thread, cancelled.set, ended


class TestCancellation:
    def test_a_command_of_a_cancelled_request_leaves_nothing(self, folder, witness):
        """
        A command ends when its request is cancelled, and so does the prompt, once all processes are gone.
        """
        thread, cancel, ended = in_thread(
            lambda: run("sh", "-c", f"{witness.begin} sleep 60 & sleep 60", timeout=60)
        )
        witness.begun()

        cancel()
        thread.join(30)
        assert ended == [RequestCancelledError]
        assert witness.all_gone() == b""

    def test_a_request_may_be_cancelled_at_any_moment(self, folder, witness):
        """
        While a command starts, is read or ends: the prompt ends, and no process is left.
        """
        for moment in range(40):
            thread, cancel, ended = in_thread(
                lambda: [run("sh", "-c", f"{witness.begin} sleep 0.01") for _ in range(99)]
            )
            time.sleep(moment / 2000)
            cancel()
            thread.join(30)
            assert ended == [RequestCancelledError], f"at moment {moment}"
        run("sh", "-c", witness.begin)  # perhaps no command has started
        witness.all_gone()

    def test_a_task_that_is_cancelled_leaves_nothing(self, folder, witness):
        """
        The command ends with it, and nobody complains.
        """
        complaints = []

        async def work():
            asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
            command = f"{witness.begin} sleep 60 & sleep 60"
            task = asyncio.create_task(run_async("sh", "-c", command, timeout=60))
            await asyncio.to_thread(witness.begun)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(witness.all_gone)

        asyncio.run(work())

        assert complaints == []

    def test_ctrl_c_leaves_nothing(self, witness, folder):
        """
        A program that waits for a command in a terminal is ended by that key, and the command with it.
        """
        code = f"""
from promptkit.workspace import execution, run

def read(*arguments, read=execution._read):
    print("reads", flush=True)
    return read(*arguments)

execution._read = read
run("sh", "-c", {witness.begin + " sleep 60"!r}, timeout=60)
"""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen([sys.executable, "-c", code], **options) as process:
            witness.begun()
            assert process.stdout.readline() == b"reads\n"
            process.send_signal(SIGINT)

        assert witness.all_gone() == b""

    def test_a_process_that_ends_leaves_nothing(self, witness, folder):
        """
        Also if a thread that nobody waits for runs the command.
        """
        code = f"""
import threading
from promptkit.workspace import run
command = ("sh", "-c", {witness.begin + " sleep 60"!r})
threading.Thread(target=run, args=command, kwargs={{"timeout": 60}}, daemon=True).start()
input()
"""
        process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
        witness.begun()
        process.communicate(b"\n", 30)

        assert witness.all_gone() == b""


def test_nothing_is_left_open(running):
    """
    However a command ends, the descriptors of the server are as many as before.
    """

    def used():
        return len(os.listdir("/dev/fd"))  # noqa: PTH208 (a link that changes)

    running("true")  # what is opened once
    before = used()
    for command in (["true"], ["false"], ["no-such-program"], ["yes"], ["sleep", "60"]):
        with suppress(PromptError):
            running(*command, timeout=0.2)

    assert used() == before
