"""A server whose prompts take their time, and a client of it in another process."""

import json
import subprocess
import sys
import threading
import time
from queue import Queue

from tests.wire import HANDSHAKES, MODERN, initialize, line, modern, notification, request

#: Prompts that sleep, compute, block, await and swallow cancellation, beside quick ones.
BUSY = """
import asyncio, hashlib, os, threading, time
from typing import Annotated
from promptkit import Arg, prompt, resource

@prompt
def quick(name: str = "you"):
    return f"Hello, {name}."

@prompt
def sleeps(seconds: float = 30):
    time.sleep(seconds)
    return "awake"

@prompt
def follows(file: str):
    while not os.path.exists(file):
        time.sleep(0.01)
    return "done"

@prompt(timeout=0.2)
def lingers(file: str):
    while not os.path.exists(file):
        time.sleep(0.01)
    return "too late"

@prompt
def spins(seconds: float = 30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "done"

@prompt
def digests():
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 30_000_000)
    return "done"

@prompt
def yields(seconds: float = 30):
    yield "one"
    time.sleep(seconds)
    yield "two"

@prompt
async def blocks(seconds: float = 30):
    time.sleep(seconds)
    return "done"

@prompt
async def awaits(seconds: float = 30):
    await asyncio.sleep(seconds)
    return "done"

@prompt
async def swallows(seconds: float = 30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            pass
    return "done"

@prompt(timeout=0.2)
def short():
    time.sleep(30)

@prompt(timeout=0.2)
async def brief():
    time.sleep(30)

def slowly():
    time.sleep(30)
    return ["a"]

@prompt
def offers(word: Annotated[str, Arg(complete=slowly)]):
    return word

@resource("slow://one")
def slow() -> str:
    time.sleep(30)
    return "x"

@resource("quick://one")
def fast() -> str:
    return "x"
"""


class Process:
    """A client of `promptkit serve`, which reads what comes back on a thread of its own."""

    def __init__(self, folder, *options, revision="2025-11-25"):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "promptkit", "serve", folder, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.revision = revision
        self.came = Queue()
        self.kept = []
        threading.Thread(target=self._read, daemon=True).start()
        if revision in HANDSHAKES:
            self.write(initialize(revision))
            self.wait_for(0)
            self.write(notification("notifications/initialized"))

    def _read(self):
        for text in self.process.stdout:
            self.came.put((time.monotonic(), json.loads(text)))

    def write(self, *messages):
        """Write messages in one piece."""
        self.process.stdin.write(b"".join(map(line, messages)))
        self.process.stdin.flush()

    def ask(self, number, method, params):
        """Write one request of the client's revision."""
        made = modern if self.revision == MODERN else request
        self.write(made(number, method, params))

    def wait_for(self, number):
        """The reply to one request; replies to others are kept, as they may come in any order."""
        found = next((message for message in self.kept if message["id"] == number), None)
        if found is not None:
            self.kept.remove(found)
        while found is None:
            _, message = self.came.get(timeout=50)
            if message.get("id") == number:
                found = message
            elif "id" in message:
                self.kept.append(message)
        return found

    def end(self):
        """Close the input; the seconds until the process has ended, and what came by then."""
        started = time.monotonic()
        self.process.stdin.close()
        code = self.process.wait(timeout=50)
        took = time.monotonic() - started
        found = self.kept
        while not self.came.empty():
            found.append(self.came.get()[1])
        return took, code, found
