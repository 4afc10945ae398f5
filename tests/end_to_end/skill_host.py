"""
A host that implements all requirements of the stable skills extension for hosts.

It shares no code with promptkit: neither the digests, nor the YAML parser, nor the client.
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

#: The timeout for replies, in seconds.
TIMEOUT_S = 20


class MismatchError(Exception):
    """The content of a file differs from its description, and must not be used."""


class Host:
    """A host that lists skills, and reads their files on demand."""

    def __init__(self, ask):
        self._ask = ask
        self.skills = {}
        self.approved = set()

    def list_skills(self) -> list:
        """Load all pages of the list of skills, check each entry, and return the URIs. No file is read."""
        entries, params = [], {}
        while params is not None:
            page = self.request_result("skills/list", params)
            entries += page["skills"]
            params = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
        for entry in entries:
            self._add(entry)
        return [entry["uri"] for entry in entries]

    def get(self, uri: str) -> None:
        """Reload the entry of one skill."""
        self._add(self.request_result("skills/get", {"uri": uri})["skill"])

    def approve(self, uri: str) -> None:
        """Record that the user has approved the current version of a skill."""
        self.approved.add(uri)

    def read(self, uri: str, path: str) -> bytes:
        """Read and verify one file of a skill."""
        (entry,) = (file for file in self.skills[uri]["resources"] if file["uri"] == self.uri_of(uri, path))
        (contents,) = self.request_result("resources/read", {"uri": entry["uri"]})["contents"]
        assert contents["uri"] == entry["uri"]
        data = base64.b64decode(contents["blob"]) if "blob" in contents else contents["text"].encode()
        if len(data) != entry["size"] or entry["digest"] != f"sha256:{hashlib.sha256(data).hexdigest()}":
            raise MismatchError(entry["uri"])
        if path == "SKILL.md":
            frontmatter = yaml.safe_load(data.decode().split("---\n")[1])
            if frontmatter != self.skills[uri]["frontmatter"]:
                raise MismatchError("frontmatter")
        return data

    def paths(self, uri: str) -> list:
        """Return the paths of the files of a skill."""
        folder = uri.removesuffix("SKILL.md")
        return [unquote(file["uri"].removeprefix(folder)) for file in self.skills[uri]["resources"]]

    def uri_of(self, uri: str, path: str) -> str:
        """Return the URI of a file."""
        (match,) = (
            file["uri"]
            for file in self.skills[uri]["resources"]
            if unquote(file["uri"].removeprefix(uri.removesuffix("SKILL.md"))) == path
        )
        return match

    def request_result(self, method: str, params: dict) -> dict:
        """Send a request, and return its result."""
        reply = self._ask(method, params)
        assert "error" not in reply, reply
        return reply["result"]

    def _add(self, entry):
        """Check and store an entry."""
        uri, files = entry["uri"], entry["resources"]
        folder, _, last = uri.rpartition("/")
        assert uri.startswith("skill://")
        assert last == "SKILL.md"
        assert folder.rpartition("/")[2] == entry["frontmatter"]["name"]
        assert len({file["uri"] for file in files}) == len(files)
        assert uri in {file["uri"] for file in files}
        assert all(file["uri"].startswith(f"{folder}/") for file in files)
        previous = self.skills.get(uri)
        if previous is not None and digests(previous) != digests(entry):
            self.approved.discard(uri)
        self.skills[uri] = entry


def digests(entry) -> set:
    """Return the URI and digest of each file, which an approval covers."""
    return {(file["uri"], file["digest"]) for file in entry["resources"]}


@contextmanager
def over_stdio(folder):
    """Serve a folder over stdio with a handshake, and yield a function that sends requests."""
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
            process.wait(TIMEOUT_S)


@contextmanager
def over_http(folder):
    """Serve a folder over HTTP without a handshake, and yield a function that sends requests."""
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
            http_request = urllib.request.Request(url, body, fields)  # noqa: S310 (our own server)
            with urllib.request.urlopen(http_request, timeout=TIMEOUT_S) as reply:  # noqa: S310
                return json.load(reply)

        yield ask


TRANSPORTS = {"stdio": over_stdio, "http": over_http}
