"""Commands in processes that are forked from one that has imported promptkit, so that they start at once."""

import gc
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from promptkit.cli import main
from tests.terminal import environment

#: The modules that are imported before any command starts.
MODULES = [f"promptkit.cli.{name}" for name in ("check", "list", "render", "serve", "serve_http")]


def run(arguments, folder, variables, files):
    """Run a command with its standard streams redirected to files, and exit with its code."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for target, file in enumerate(files):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), target)
    sys.argv, sys.dont_write_bytecode = ["promptkit", *arguments], True
    sys.exit(main())


def serve():
    """Run the commands that arrive on standard input, and print their exit codes."""
    for name in MODULES:
        import_module(name)
    gc.freeze()
    while line := sys.stdin.readline():
        if not (child := os.fork()):
            run(*json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


@contextmanager
def fork_server(folder):
    """
    Start a process that forks commands, and yield a function like `command`, which is slower to start.

    Standard input is empty, and the output goes to files in *folder*.
    """
    program = [sys.executable, "-m", "tests.forked"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(program, text=True, cwd=Path(__file__).parents[1], **pipes) as process:
        files = [folder / "stdout", folder / "stderr"]

        def forked(*argv, cwd):
            for file in files:
                file.write_bytes(b"")
            request = [argv, str(cwd), environment(), [os.devnull, *map(str, files)]]
            process.stdin.write(f"{json.dumps(request)}\n")
            process.stdin.flush()
            code = int(process.stdout.readline())
            return code, *(file.read_bytes() for file in files)

        yield forked
        process.stdin.close()


if __name__ == "__main__":
    serve()
