"""A server with slow prompts, and a client for it in another process."""

import json
import subprocess
import sys
import threading
import time
from queue import Queue

from tests.wire import HANDSHAKES, MODERN, initialize, line, modern, notification, request

#: Prompts that sleep, compute, block, await and swallow cancellation, next to quick ones.
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
    """A client of a `promptkit serve` process that reads its output on a background thread."""

    def __init__(self, folder, *options, revision="2025-11-25"):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "promptkit", "serve", folder, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.revision = revision
        self.received = Queue()
        self.unclaimed = []
        threading.Thread(target=self._read, daemon=True).start()
        if revision in HANDSHAKES:
            self.write(initialize(revision))
            self.wait_for(0)
            self.write(notification("notifications/initialized"))

    def _read(self):
        for text in self.process.stdout:
            self.received.put((time.monotonic(), json.loads(text)))

    def write(self, *messages):
        """Send messages in one write."""
        self.process.stdin.write(b"".join(map(line, messages)))
        self.process.stdin.flush()

    def ask(self, number, method, params):
        """Send one request in the client's revision."""
        build = modern if self.revision == MODERN else request
        self.write(build(number, method, params))

    def wait_for(self, number):
        """Return the reply to one request; keep other replies, which can come in any order."""
        reply = next((message for message in self.unclaimed if message["id"] == number), None)
        if reply is not None:
            self.unclaimed.remove(reply)
        while reply is None:
            _, message = self.received.get(timeout=50)
            if message.get("id") == number:
                reply = message
            elif "id" in message:
                self.unclaimed.append(message)
        return reply

    def end(self):
        """Close the input; return the seconds until the exit, the exit code and the remaining messages."""
        started = time.monotonic()
        self.process.stdin.close()
        code = self.process.wait(timeout=50)
        took = time.monotonic() - started
        messages = self.unclaimed
        while not self.received.empty():
            messages.append(self.received.get()[1])
        return took, code, messages
