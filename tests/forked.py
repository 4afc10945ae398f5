"""
Commands that start immediately, because each is forked from a process that has imported promptkit.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from tests.terminal import environment

#: The program that forks the commands, including those in pages of the documentation.
SERVER = Path(__file__).with_name("docs") / "fork_server.py"


@contextmanager
def fork_server(folder):
    """
    Start a process that forks commands, and yield a function that works like `command`, but faster.

    Standard input is empty, and the output goes to files in *folder*. The function can run a *program* other
    than promptkit; see `tests.docs.fork_server.run`.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    server = [sys.executable, "-P", str(SERVER)]
    with subprocess.Popen(server, text=True, cwd=SERVER.parents[2], **pipes) as process:
        files = [folder / "stdout", folder / "stderr"]

        def forked(*argv, cwd, program=("promptkit",)):
            for file in files:
                file.write_bytes(b"")
            request = [[*program, *argv], str(cwd), environment(), [os.devnull, *map(str, files)]]
            process.stdin.write(f"{json.dumps(request)}\n")
            process.stdin.flush()
            code = int(process.stdout.readline())
            return code, *(file.read_bytes() for file in files)

        yield forked
        process.stdin.close()
