"""
Start servers in turn, and print how long each took until it answered `/readyz`, in seconds, as JSON.

It is run as a program, with the number of rounds and, as JSON, the commands by name.
"""

import json
import os
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection

PORT = 8000
PATIENCE = 30.0


def start(command):
    """Run a command until it is ready; return how long that took, and end it."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        while not is_ready():
            if process.poll() is not None or time.perf_counter() - begun > PATIENCE:
                raise SystemExit(f"{command} is not ready; its exit code is {process.poll()}")
            time.sleep(0.002)
        return time.perf_counter() - begun
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the server may be a child of the command
        process.wait()
        while is_ready():  # a child in a group of its own ends a little later, and would answer for the next
            time.sleep(0.002)


def is_ready():
    """Whether the server answers that it is ready."""
    connection = HTTPConnection("127.0.0.1", PORT, timeout=PATIENCE)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except ConnectionError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    commands = json.loads(sys.argv[2])
    rounds = [{name: start(command) for name, command in commands.items()} for _ in range(int(sys.argv[1]))]
    print(json.dumps({name: [times[name] for times in rounds] for name in commands}))  # noqa: T201
