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
from promptkit.workspace.commands import _truncate_output

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the commands are those of POSIX")


def run_on_loop(*command, **options):
    """Run a command on an event loop, like an asynchronous prompt."""
    return asyncio.run(run_async(*command, **options))


@pytest.fixture(params=[run, run_on_loop], ids=["run", "run_async"])
def run_command(request, folder):
    """Each of the two functions that run a command, in a workspace."""
    return request.param


def catch_message(run_command, *command, **options):
    """Return the error message of a command that fails."""
    with pytest.raises(PromptError) as raised:
        run_command(*command, **options)
    return str(raised.value)


class TestArguments:
    def test_no_shell_parses_the_arguments(self, run_command):
        """Arguments reach the program unchanged, because no shell parses them."""
        words = ["$HOME", "a b", "; echo no", "`date`", "*", "-n", "", "\n|"]

        assert run_command("printf", "%s.", *words, "end") == "".join(f"{word}." for word in [*words, "end"])

    @given(words=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))))
    def test_any_text_reaches_the_program(self, words):
        """Any text without null characters reaches the program unchanged."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PROMPTKIT_WORKSPACE", gettempdir())
            assert run("printf", "%s.", *words, "end") == "".join(f"{word}." for word in [*words, "end"])

    def test_none_is_omitted(self, run_command):
        """A None among the arguments is omitted."""
        assert run_command("printf", "%s.", None, "a", None) == "a."

    def test_paths_and_enum_members_are_text(self, run_command):
        """Paths and string enum members are passed as text."""

        class Mode(StrEnum):
            SHORT = "short"

        assert run_command("printf", "%s.", Path("a/b"), Mode.SHORT) == "a/b.short."

    @pytest.mark.parametrize("word", [3, True, b"x", ["x"]], ids=repr)
    def test_other_types_raise_a_type_error(self, word, run_command):
        """An argument of any other type raises a TypeError."""
        with pytest.raises(TypeError):
            run_command("echo", None, word)

    @pytest.mark.parametrize("command", [(), (None,)])
    def test_missing_program_raises_a_type_error(self, command, run_command):
        """A command without a program raises a TypeError that shows the syntax."""
        with pytest.raises(TypeError) as raised:
            run_command(*command)

        assert str(raised.value) == (
            "run(...) needs a program: pass each word as an argument, for example run('git', 'status')"
        )

    @pytest.mark.parametrize("word", ["a\0b", "a\ud800"], ids=ascii)
    def test_invalid_text_is_reported_to_the_caller(self, word, run_command):
        """Null characters and lone surrogates, which clients can send, are reported to the caller."""
        message = catch_message(run_command, "echo", word)

        assert message.endswith(": a word contains a null character or an unpaired surrogate")
        assert message.isprintable()

    @pytest.mark.parametrize("options", [{"limit": 0}, {"timeout": 0.0}, {"timeout": float("nan")}])
    def test_limits_must_be_above_zero(self, options, run_command):
        """A limit or timeout that is not above 0 raises a ValueError."""
        with pytest.raises(ValueError, match="limit and timeout must be greater than 0"):
            run_command("true", **options)


class TestOutput:
    def test_command_runs_in_the_workspace(self, run_command, folder):
        """Commands run in the workspace, not in the server's current folder."""
        assert run_command("pwd", "-P") == str(folder.resolve())

    def test_standard_input_is_empty(self, run_command):
        """Standard input is empty."""
        assert run_command("cat") == ""

    def test_command_has_no_terminal(self, run_command):
        """Commands have no terminal."""
        assert run_command("sh", "-c", "{ echo >/dev/tty; } 2>/dev/null || echo none") == "none"

    def test_descriptors_are_not_inherited(self, run_command, tmp_path):
        """The server's descriptors are not inherited."""
        with Path(tmp_path / "open").open("w") as file:
            os.set_inheritable(file.fileno(), True)  # noqa: FBT003 (it takes no keyword)
            script = f"[ -e /dev/fd/{file.fileno()} ] && echo there || echo none"
            assert run_command("sh", "-c", script) == "none"

    def test_trailing_line_ends_are_removed(self, run_command):
        """Trailing line ends are removed, as in a shell's command substitution; others stay."""
        assert run_command("printf", r"\na\r\nb\r\n\n\n") == "\na\r\nb"

    def test_invalid_utf8_is_replaced(self, run_command):
        """Invalid UTF-8 bytes are replaced."""
        assert run_command("printf", r"a\377b\303\251") == "a\ufffdbé"

    def test_standard_error_is_not_part_of_the_result(self, run_command):
        """Standard error is not part of the result, whatever its size."""
        script = "head -c 1000000 /dev/zero >&2; echo said"

        assert run_command("sh", "-c", script) == "said"


class TestLimit:
    def test_excess_output_stops_the_command(self, run_command, witness):
        """A command that exceeds the output limit is stopped and its output truncated, without an error."""
        assert (
            run_command("sh", "-c", f"{witness.prefix} yes", limit=9)
            == "y\ny\ny\ny\ny\n[... cut after 9 characters ...]"
        )
        assert witness.wait_for_end() == b"started\n"

    def test_limit_counts_characters(self, run_command):
        """The limit counts characters, without trailing line ends."""
        assert run_command("printf", r"\303\251\303\251\303\251\n", limit=3) == "ééé"

    @given(text=st.text(st.sampled_from("ab \né")), limit=st.integers(1, 30))
    def test_truncated_output_is_a_prefix(self, text, limit):
        """Truncated output is a prefix within the limit, followed by its length."""
        prefix, _, notice = _truncate_output(text, limit).rpartition("\n")

        if len(text) <= limit:
            assert _truncate_output(text, limit) == text
        else:
            assert text.startswith(prefix)
            assert 0 < len(prefix) <= limit
            assert notice.startswith(f"[... cut after {len(prefix)} character")

    def test_exit_code_is_ignored_at_the_limit(self, run_command):
        """The exit code of a command stopped at the limit is ignored."""
        script = "trap 'exit 7' TERM; while :; do echo y; done"

        assert run_command("sh", "-c", script, limit=1) == "y\n[... cut after 1 character ...]"


class TestFailures:
    def test_error_shows_exit_code_and_standard_error(self, run_command):
        """The error shows the command, the exit code, and the first line of standard error."""
        script = "echo; echo 'no\033[1m way' >&2; echo more >&2; exit 3"

        assert catch_message(run_command, "sh", "-c", script, "a b").endswith(
            r"'a b' exited with code 3: no\x1b[1m way"
        )

    def test_unchecked_exit_code_is_not_an_error(self, run_command):
        """With check=False, a nonzero exit code is not an error."""
        assert run_command("sh", "-c", "echo found; exit 1", check=False) == "found"

    def test_error_without_standard_error_shows_the_exit_code(self, run_command):
        """Without output on standard error, the error shows only the command and the code."""
        assert catch_message(run_command, "false") == "false exited with code 1"

    def test_error_names_the_signal(self, run_command):
        """The error names the signal that killed the command."""
        assert catch_message(run_command, "sh", "-c", "kill -SEGV $$") == (
            "sh -c 'kill -SEGV $$' was terminated by a signal (Segmentation fault)"
        )

    def test_missing_program_is_an_error(self, run_command):
        """A missing program is an error, even with check=False."""
        assert catch_message(run_command, "no-such-program", "x", check=False) == (
            "cannot run no-such-program x: the program 'no-such-program' is not on the server's machine"
        )

    def test_non_executable_file_is_an_error(self, run_command, folder):
        """Running a file that is not executable raises the system's error."""
        folder.joinpath("data").touch()

        assert catch_message(run_command, "./data") == "cannot run ./data: Permission denied"

    def test_long_command_is_truncated(self, run_command):
        """A long command is truncated in the error."""
        message = catch_message(run_command, "sh", "-c", "exit 2", "x" * 100_000)

        assert len(message) < 300
        assert message.endswith("... exited with code 2")

    def test_command_needs_a_workspace(self, run_command, monkeypatch):
        """Without a workspace, nothing runs."""
        monkeypatch.setenv("PROMPTKIT_WORKSPACE", "")

        assert catch_message(run_command, "true").startswith("this server has no workspace")


class TestTermination:
    def test_hanging_command_is_stopped(self, run_command, witness):
        """A command that times out is stopped with its child processes, and the caller gets an error."""
        message = catch_message(run_command, "sh", "-c", f"{witness.prefix} sleep 60 & sleep 60", timeout=0.3)

        assert message.endswith("took longer than 0.3 s and was terminated")
        assert witness.wait_for_end() == b"started\n"

    def test_hanging_command_that_closed_its_output_is_stopped(self, run_command, witness):
        """A command that closed its output also times out."""
        script = f"{witness.prefix} exec >&- 2>&-; sleep 60"

        assert "took longer" in catch_message(run_command, "sh", "-c", script, timeout=0.3)
        assert witness.wait_for_end() == b"started\n"

    def test_command_that_ignores_sigterm_is_killed(self, run_command, witness):
        """A command gets SIGTERM, so that it can clean up, and is killed if it ignores the signal."""
        script = f"{witness.prefix} trap 'echo told >&3' TERM; while :; do sleep 60; done"

        assert "took longer" in catch_message(run_command, "sh", "-c", script, timeout=0.3)
        assert witness.wait_for_end() == b"started\ntold\n"

    def test_background_processes_are_stopped(self, run_command, witness):
        """Background processes are stopped when the command exits, and its output is complete."""
        script = f"{witness.prefix} sleep 60 & echo done"

        assert run_command("sh", "-c", script) == "done"
        assert witness.wait_for_end() == b"started\n"

    def test_process_in_another_session_does_not_delay_the_result(self, run_command, tmp_path):
        """A process in another session, which cannot be stopped, does not delay the result."""
        code = (
            "import os, sys, time; print('out'); os.setsid(); open(sys.argv[1], 'w').close(); time.sleep(60)"
        )
        pid_file = tmp_path / "pid"
        script = (
            f'"{sys.executable}" -uc "{code}" "$0" & echo $! >"$1"; until [ -e "$0" ]; do :; done; echo done'
        )
        try:
            assert sorted(run_command("sh", "-c", script, tmp_path / "detached", pid_file).split()) == [
                "done",
                "out",
            ]
        finally:
            os.kill(int(pid_file.read_text()), 9)

    def test_output_of_a_quick_command_is_complete(self, run_command):
        """Output that is still in the pipe when the command exits is read."""
        assert len(run_command("head", "-c", "60000", "/dev/zero", limit=100_000)) == 60_000


def run_in_thread(work):
    """
    Run *work* on a thread that handles a request.

    Return the thread, a function that cancels the request, and a list of the types of errors of *work*.
    """
    errors, cancelled = [], threading.Event()

    def handle_request():
        with cancelled_by(cancelled.is_set):
            try:
                work()
            except BaseException as error:  # noqa: BLE001 (its type is checked)
                errors.append(type(error))

    thread = threading.Thread(target=handle_request, daemon=True)
    thread.start()
    return thread, cancelled.set, errors


class TestCancellation:
    def test_cancelled_request_stops_its_command(self, folder, witness):
        """A cancelled request stops its command with all child processes."""
        thread, cancel, errors = run_in_thread(
            lambda: run("sh", "-c", f"{witness.prefix} sleep 60 & sleep 60", timeout=60)
        )
        witness.wait_for_start()

        cancel()
        thread.join(30)
        assert errors == [RequestCancelledError]
        assert witness.wait_for_end() == b""

    def test_request_can_be_cancelled_at_any_moment(self, folder, witness):
        """A request can be cancelled while its command starts, runs or ends, and no process remains."""
        for moment in range(40):
            thread, cancel, errors = run_in_thread(
                lambda: [run("sh", "-c", f"{witness.prefix} sleep 0.01") for _ in range(99)]
            )
            time.sleep(moment / 2000)
            cancel()
            thread.join(30)
            assert errors == [RequestCancelledError], f"at moment {moment}"
        run("sh", "-c", witness.prefix)  # in case no command has started
        witness.wait_for_end()

    def test_cancelled_task_stops_its_command(self, folder, witness):
        """Cancelling the task stops the command without an error in the event loop."""
        loop_errors = []

        async def work():
            asyncio.get_running_loop().set_exception_handler(lambda _, context: loop_errors.append(context))
            command = f"{witness.prefix} sleep 60 & sleep 60"
            task = asyncio.create_task(run_async("sh", "-c", command, timeout=60))
            await asyncio.to_thread(witness.wait_for_start)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(witness.wait_for_end)

        asyncio.run(work())

        assert loop_errors == []

    def test_ctrl_c_stops_the_command(self, witness, folder):
        """Ctrl+C stops the command together with the program that waits for it."""
        code = f"""
from promptkit.workspace import execution, run

def read(*arguments, read=execution._read_output):
    print("reads", flush=True)
    return read(*arguments)

execution._read_output = read
run("sh", "-c", {witness.prefix + " sleep 60"!r}, timeout=60)
"""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen([sys.executable, "-c", code], **options) as process:
            witness.wait_for_start()
            assert process.stdout.readline() == b"reads\n"
            process.send_signal(SIGINT)

        assert witness.wait_for_end() == b""

    def test_exiting_process_stops_its_command(self, witness, folder):
        """When the process exits, a command on a daemon thread is stopped."""
        code = f"""
import threading
from promptkit.workspace import run
command = ("sh", "-c", {witness.prefix + " sleep 60"!r})
threading.Thread(target=run, args=command, kwargs={{"timeout": 60}}, daemon=True).start()
input()
"""
        process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
        witness.wait_for_start()
        process.communicate(b"\n", 30)

        assert witness.wait_for_end() == b""


def test_no_descriptors_leak(run_command):
    """No descriptors leak, however a command ends."""

    def count_descriptors():
        return len(os.listdir("/dev/fd"))  # noqa: PTH208 (a link that changes)

    run_command("true")  # opens what stays open
    before = count_descriptors()
    for command in (["true"], ["false"], ["no-such-program"], ["yes"], ["sleep", "60"]):
        with suppress(PromptError):
            run_command(*command, timeout=0.2)

    assert count_descriptors() == before
