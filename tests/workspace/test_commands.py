"""Commands in the workspace: arguments, output, limits, failures and cancellation."""

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
from promptkit.language.context import RequestCancelledError, cancelled_by
from promptkit.workspace import run, run_async
from promptkit.workspace.commands import _cut

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the commands are those of POSIX")


def run_on_loop(*command, **options):
    """Run a command as an asynchronous prompt does."""
    return asyncio.run(run_async(*command, **options))


@pytest.fixture(params=[run, run_on_loop], ids=["run", "run_async"])
def running(request, folder):
    """Each of the two functions that run a command, in a workspace."""
    return request.param


def refusal(running, *command, **options):
    """Return the error message of a command that fails."""
    with pytest.raises(PromptError) as refused:
        running(*command, **options)
    return str(refused.value)


class TestWords:
    def test_no_shell_reads_them(self, running):
        """Arguments reach the program unchanged, because no shell parses them."""
        words = ["$HOME", "a b", "; echo no", "`date`", "*", "-n", "", "\n|"]

        assert running("printf", "%s.", *words, "end") == "".join(f"{word}." for word in [*words, "end"])

    @given(words=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))))
    def test_a_program_gets_what_is_written(self, words):
        """Any text without null characters reaches the program unchanged."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PROMPTKIT_WORKSPACE", gettempdir())
            assert run("printf", "%s.", *words, "end") == "".join(f"{word}." for word in [*words, "end"])

    def test_none_is_left_out(self, running):
        """None is omitted from the arguments."""
        assert running("printf", "%s.", None, "a", None) == "a."

    def test_paths_and_members_of_enumerations_are_text(self, running):
        """Paths and string enum members are passed as text."""

        class Mode(StrEnum):
            SHORT = "short"

        assert running("printf", "%s.", Path("a/b"), Mode.SHORT) == "a/b.short."

    @pytest.mark.parametrize(("word", "kind"), [(3, "int"), (True, "bool"), (b"x", "bytes"), (["x"], "list")])
    def test_anything_else_is_the_authors_mistake(self, word, kind, running):
        """An argument of any other type raises a TypeError that names its position."""
        with pytest.raises(TypeError) as refused:
            running("echo", None, word)

        assert str(refused.value) == (
            f"run(...): word 3: expected text or a path, not {kind}; make it a str first"
        )

    @pytest.mark.parametrize("command", [(), (None,)])
    def test_there_is_a_program(self, command, running):
        """A command without a program raises a TypeError that shows the syntax."""
        with pytest.raises(TypeError) as refused:
            running(*command)

        assert str(refused.value) == (
            "run(...) names no program: write its words one by one, as in run('git', 'status')"
        )

    @pytest.mark.parametrize(("word", "shown"), [("a\0b", r"a\x00b"), ("a\ud800", r"a\ud800")])
    def test_what_no_program_takes_is_told_the_caller(self, word, shown, running):
        """Null characters and lone surrogates, which clients can send, are reported to the caller."""
        assert refusal(running, "echo", word) == (
            f"no program can be given '{shown}': it has a null character, or half of a character"
        )

    @pytest.mark.parametrize("options", [{"limit": 0}, {"timeout": 0.0}, {"timeout": float("nan")}])
    def test_limits_are_above_zero(self, options, running):
        """A limit or timeout that is not above 0 raises a ValueError."""
        with pytest.raises(ValueError, match="both have to be above 0"):
            running("true", **options)


class TestOutput:
    def test_it_runs_in_the_workspace(self, running, folder):
        """Commands run in the workspace, not in the server's current folder."""
        assert running("pwd", "-P") == str(folder.resolve())

    def test_it_gets_no_input(self, running):
        """Standard input is empty."""
        assert running("cat") == ""

    def test_it_has_no_terminal(self, running):
        """Commands have no terminal."""
        assert running("sh", "-c", "{ echo >/dev/tty; } 2>/dev/null || echo none") == "none"

    def test_it_inherits_no_descriptor(self, running, tmp_path):
        """The server's descriptors are not inherited."""
        with Path(tmp_path / "open").open("w") as file:
            os.set_inheritable(file.fileno(), True)  # noqa: FBT003 (it takes no keyword)
            script = f"[ -e /dev/fd/{file.fileno()} ] && echo there || echo none"
            assert running("sh", "-c", script) == "none"

    def test_line_ends_behind_it_are_dropped(self, running):
        """Trailing line ends are removed, as in a shell's command substitution; others stay."""
        assert running("printf", r"\na\r\nb\r\n\n\n") == "\na\r\nb"

    def test_bytes_that_are_no_text_are_replaced(self, running):
        """Invalid UTF-8 bytes are replaced."""
        assert running("printf", r"a\377b\303\251") == "a\ufffdbé"

    def test_standard_error_is_not_sent(self, running):
        """Standard error is not part of the result, whatever its size."""
        script = "head -c 1000000 /dev/zero >&2; echo said"

        assert running("sh", "-c", script) == "said"


class TestLimit:
    def test_a_flood_is_cut_and_ended(self, running, witness):
        """A command that exceeds the output limit is stopped and its output truncated, without an error."""
        assert (
            running("sh", "-c", f"{witness.begin} yes", limit=9)
            == "y\ny\ny\ny\ny\n[... cut after 9 characters ...]"
        )
        assert witness.all_gone() == b"begun\n"

    def test_what_fits_is_whole(self, running):
        """The limit counts characters, without trailing line ends."""
        assert running("printf", r"\303\251\303\251\303\251\n", limit=3) == "ééé"

    @given(text=st.text(st.sampled_from("ab \né")), limit=st.integers(1, 30))
    def test_a_cut_keeps_the_beginning(self, text, limit):
        """Truncated output is a prefix within the limit, followed by its length."""
        kept, _, notice = _cut(text, limit).rpartition("\n")

        if len(text) <= limit:
            assert _cut(text, limit) == text
        else:
            assert text.startswith(kept)
            assert 0 < len(kept) <= limit
            assert notice.startswith(f"[... cut after {len(kept)} character")

    def test_a_failure_behind_the_limit_is_none(self, running):
        """The exit code of a command stopped at the limit is ignored."""
        script = "trap 'exit 7' TERM; while :; do echo y; done"

        assert running("sh", "-c", script, limit=1) == "y\n[... cut after 1 character ...]"


class TestFailures:
    def test_an_exit_code_is_told_with_the_first_line_of_standard_error(self, running):
        """The error shows the command, the exit code, and the first line of standard error."""
        script = "echo; echo 'no\033[1m way' >&2; echo more >&2; exit 3"

        assert refusal(running, "sh", "-c", script, "a b").endswith(
            r"'a b' exited with code 3: no\x1b[1m way"
        )

    def test_without_a_check_an_exit_code_is_none(self, running):
        """With check=False, a nonzero exit code is not an error."""
        assert running("sh", "-c", "echo found; exit 1", check=False) == "found"

    def test_a_failure_may_say_nothing(self, running):
        """Without output on standard error, the error shows only the command and the code."""
        assert refusal(running, "false") == "false exited with code 1"

    def test_a_signal_is_named(self, running):
        """The error names the signal that ended the command."""
        assert refusal(running, "sh", "-c", "kill -SEGV $$") == (
            "sh -c 'kill -SEGV $$' was ended by a signal (Segmentation fault)"
        )

    def test_a_program_that_is_not_there(self, running):
        """A missing program is an error, even with check=False."""
        assert refusal(running, "no-such-program", "x", check=False) == (
            "cannot run no-such-program x: there is no program 'no-such-program' where the server runs"
        )

    def test_a_file_that_is_no_program(self, running, folder):
        """A file that is not executable yields the system's error."""
        folder.joinpath("data").touch()

        assert refusal(running, "./data") == "cannot run ./data: Permission denied"

    def test_a_long_command_is_shown_shortened(self, running):
        """A long command is truncated in the error."""
        said = refusal(running, "sh", "-c", "exit 2", "x" * 100_000)

        assert len(said) < 300
        assert said.endswith("... exited with code 2")

    def test_there_is_no_workspace(self, running, monkeypatch):
        """Without a workspace, nothing runs."""
        monkeypatch.setenv("PROMPTKIT_WORKSPACE", "")

        assert refusal(running, "true").startswith("this server has no workspace")


class TestEnd:
    def test_who_hangs_is_ended(self, running, witness):
        """A command that times out is stopped with its child processes, and the caller gets an error."""
        said = refusal(running, "sh", "-c", f"{witness.begin} sleep 60 & sleep 60", timeout=0.3)

        assert said.endswith("took longer than 0.3 s and was ended")
        assert witness.all_gone() == b"begun\n"

    def test_who_hangs_without_output_is_ended(self, running, witness):
        """A command that closed its output also times out."""
        script = f"{witness.begin} exec >&- 2>&-; sleep 60"

        assert "took longer" in refusal(running, "sh", "-c", script, timeout=0.3)
        assert witness.all_gone() == b"begun\n"

    def test_who_ignores_the_end_is_killed(self, running, witness):
        """A command gets SIGTERM, so that it can clean up, and is killed if it ignores it."""
        script = f"{witness.begin} trap 'echo told >&3' TERM; while :; do sleep 60; done"

        assert "took longer" in refusal(running, "sh", "-c", script, timeout=0.3)
        assert witness.all_gone() == b"begun\ntold\n"

    def test_what_is_left_behind_is_ended(self, running, witness):
        """Background processes are stopped when the command ends, and its output is complete."""
        script = f"{witness.begin} sleep 60 & echo done"

        assert running("sh", "-c", script) == "done"
        assert witness.all_gone() == b"begun\n"

    def test_who_leaves_the_group_holds_up_nobody(self, running, tmp_path):
        """A process in another session, which cannot be stopped, does not delay the result."""
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
        """Output still in the pipe when the command ends is read."""
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
        """A cancelled request stops its command with all child processes."""
        thread, cancel, ended = in_thread(
            lambda: run("sh", "-c", f"{witness.begin} sleep 60 & sleep 60", timeout=60)
        )
        witness.begun()

        cancel()
        thread.join(30)
        assert ended == [RequestCancelledError]
        assert witness.all_gone() == b""

    def test_a_request_may_be_cancelled_at_any_moment(self, folder, witness):
        """A request can be cancelled while its command starts, runs or ends, and no process remains."""
        for moment in range(40):
            thread, cancel, ended = in_thread(
                lambda: [run("sh", "-c", f"{witness.begin} sleep 0.01") for _ in range(99)]
            )
            time.sleep(moment / 2000)
            cancel()
            thread.join(30)
            assert ended == [RequestCancelledError], f"at moment {moment}"
        run("sh", "-c", witness.begin)  # in case no command has started
        witness.all_gone()

    def test_a_task_that_is_cancelled_leaves_nothing(self, folder, witness):
        """Cancelling the task stops the command without an error in the event loop."""
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
        """Ctrl+C stops the command together with the program that waits for it."""
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
        """When the process exits, a command on a daemon thread is stopped."""
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
    """No descriptors leak, however a command ends."""

    def used():
        return len(os.listdir("/dev/fd"))  # noqa: PTH208 (a link that changes)

    running("true")  # opens what stays open
    before = used()
    for command in (["true"], ["false"], ["no-such-program"], ["yes"], ["sleep", "60"]):
        with suppress(PromptError):
            running(*command, timeout=0.2)

    assert used() == before
