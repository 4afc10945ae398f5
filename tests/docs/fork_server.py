"""Run each command in a process that is forked from this one, which has imported promptkit and pytest."""

import gc
import json
import os
import sys
from importlib import import_module

import hypothesis  # noqa: F401 (imported once, for all commands)
import pytest
import syrupy  # noqa: F401

from promptkit.cli import main

#: The modules of the commands that pages and tests use most.
COMMANDS = ("check", "complete", "diff", "export", "install", "list", "new", "render", "serve", "serve_http")


def run(arguments, folder, environment, files):
    """
    Run a command with its standard streams redirected to files, and exit with its code.

    The arguments start with ``promptkit``, with ``pytest`` as after ``python -m``, or with ``-P pytest``,
    which runs it like its script: without imports from the current folder.
    """
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for target, file in enumerate(files):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), target)
    is_script = arguments[0] == "-P"
    sys.argv, sys.dont_write_bytecode = arguments[is_script:], True
    if sys.argv[0] == "promptkit":
        sys.exit(main())
    if not is_script:
        sys.path.insert(0, folder)
    sys.exit(pytest.console_main())


def serve():
    """Run the commands that arrive on standard input, and print their exit codes."""
    for command in COMMANDS:
        import_module(f"promptkit.cli.{command}")
    gc.freeze()
    while line := sys.stdin.readline():
        if not (child := os.fork()):
            run(*json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
