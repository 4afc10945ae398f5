"""
Start servers in turn, and print the seconds until each answered `/readyz`, as JSON.

The arguments of this program are the number of rounds and, as JSON, the commands by name.
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
    """Run a command until it is ready, return the duration, and kill it."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        while not is_ready():
            if process.poll() is not None or time.perf_counter() - started > PATIENCE:
                raise SystemExit(f"{command} is not ready; its exit code is {process.poll()}")
            time.sleep(0.002)
        return time.perf_counter() - started
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the server can be a child of the command
        process.wait()
        while is_ready():  # a child in another group exits later, and would answer for the next server
            time.sleep(0.002)


def is_ready():
    """Return whether the server is ready."""
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
