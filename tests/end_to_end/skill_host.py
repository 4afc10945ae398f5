"""
A host of skills, which does all that the stable page of the extension wants of one.

It shares nothing with promptkit: not the digests, not the reader of YAML, not the client.
"""

import base64
import hashlib
import json
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from urllib.parse import unquote

import yaml

from tests.http_server import http_server
from tests.wire import initialize, line, modern, notification, request

#: How long a server may take to answer, in seconds.
PATIENCE = 20


class Mismatch(Exception):
    """What was read is not what the server says of it. Nothing of it may be used."""


class Host:
    """A host that knows some skills, and reads their files when it needs them."""

    def __init__(self, ask):
        self._ask = ask
        self.known = {}
        self.approved = set()

    def list_skills(self) -> list:
        """Take the list of skills, page by page, and check each entry. Nothing is read."""
        found, params = [], {}
        while params is not None:
            page = self.asked("skills/list", params)
            found += page["skills"]
            params = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
        for entry in found:
            self._learn(entry)
        return [entry["uri"] for entry in found]

    def get(self, uri: str) -> None:
        """Take anew what the server says of one skill."""
        self._learn(self.asked("skills/get", {"uri": uri})["skill"])

    def approve(self, uri: str) -> None:
        """Note that the person has approved a skill as it is."""
        self.approved.add(uri)

    def read(self, uri: str, path: str) -> bytes:
        """Read one file of a skill, and verify it."""
        (entry,) = (one for one in self.known[uri]["resources"] if one["uri"] == self.uri_of(uri, path))
        (contents,) = self.asked("resources/read", {"uri": entry["uri"]})["contents"]
        assert contents["uri"] == entry["uri"]
        data = base64.b64decode(contents["blob"]) if "blob" in contents else contents["text"].encode()
        if len(data) != entry["size"] or entry["digest"] != f"sha256:{hashlib.sha256(data).hexdigest()}":
            raise Mismatch(entry["uri"])
        if path == "SKILL.md":
            front = yaml.safe_load(data.decode().split("---\n")[1])
            if front != self.known[uri]["frontmatter"]:
                raise Mismatch("frontmatter")
        return data

    def paths(self, uri: str) -> list:
        """Return the paths of the files of a skill."""
        folder = uri.removesuffix("SKILL.md")
        return [unquote(one["uri"].removeprefix(folder)) for one in self.known[uri]["resources"]]

    def uri_of(self, uri: str, path: str) -> str:
        """Return the URI of a file."""
        (found,) = (
            one["uri"]
            for one in self.known[uri]["resources"]
            if unquote(one["uri"].removeprefix(uri.removesuffix("SKILL.md"))) == path
        )
        return found

    def asked(self, method: str, params: dict) -> dict:
        """Return a result."""
        reply = self._ask(method, params)
        assert "error" not in reply, reply
        return reply["result"]

    def _learn(self, entry):
        uri, files = entry["uri"], entry["resources"]
        folder, _, last = uri.rpartition("/")
        assert uri.startswith("skill://")
        assert last == "SKILL.md"
        assert folder.rpartition("/")[2] == entry["frontmatter"]["name"]
        assert len({one["uri"] for one in files}) == len(files)
        assert uri in {one["uri"] for one in files}
        assert all(one["uri"].startswith(f"{folder}/") for one in files)
        known = self.known.get(uri)
        if known is not None and digests(known) != digests(entry):
            self.approved.discard(uri)
        self.known[uri] = entry


def digests(entry) -> set:
    """Return what an approval holds for."""
    return {(one["uri"], one["digest"]) for one in entry["resources"]}


@contextmanager
def over_stdio(folder):
    """Serve a folder over stdio, with a handshake, and give what asks."""
    command = [sys.executable, "-m", "promptkit", "serve", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def send(message):
            process.stdin.write(line(message))
            process.stdin.flush()

        def ask(method, params):
            ask.number += 1
            send(request(ask.number, method, params))
            return answer(ask.number)

        def answer(number):
            while True:
                reply = json.loads(process.stdout.readline())
                if reply.get("id") == number:
                    return reply

        ask.number = 0
        send(initialize("2025-11-25"))
        answer(0)
        send(notification("notifications/initialized"))
        try:
            yield ask
        finally:
            process.stdin.close()
            process.wait(PATIENCE)


@contextmanager
def over_http(folder):
    """Serve a folder over HTTP, without a handshake, and give what asks."""
    with http_server(folder) as url:

        def ask(method, params):
            fields = {
                "content-type": "application/json",
                "accept": "application/json, text/event-stream",
                "mcp-protocol-version": "2026-07-28",
                "mcp-method": method,
            }
            if method == "resources/read":
                fields["mcp-name"] = params["uri"]
            body = json.dumps(modern(1, method, params)).encode()
            posted = urllib.request.Request(url, body, fields)  # noqa: S310 (it is our own)
            with urllib.request.urlopen(posted, timeout=PATIENCE) as reply:  # noqa: S310
                return json.load(reply)

        yield ask


WAYS = {"stdio": over_stdio, "http": over_http}
