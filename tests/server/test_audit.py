import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Annotated

import pytest

from promptkit import Arg, PromptError, prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.capabilities import METHODS, Capabilities, ServerInfo
from promptkit.protocol.jsonrpc import CANCELLED
from promptkit.protocol.session import Session
from promptkit.server.audit import MAX_ARGUMENTS, MAX_TEXT, Audit
from tests.wire import HANDSHAKES, MODERN, Client, envelope, initialize, line, modern, notification, request

pytest.importorskip("resource", reason="Windows has no pipes and limits as these tests need them")


@prompt(elicit=True)
def login(user: str, key: Annotated[str, Arg(secret=True)] = "", tries: int = 1) -> str:
    if user == "nobody":
        raise PromptError("there is no such user")
    if user == "everybody":
        raise ValueError(user)
    return f"{user} {tries}"


@resource("vault://{box}{?key}")
def vault(box: str, key: Annotated[str, Arg(secret=True)] = "") -> str:
    return box


@prompt(deprecated="use login", elicit=False)
def sign_in(user: str) -> str:
    return user


@prompt
def pretend() -> str:
    raise PromptError("prompt 'pretend' failed (error 1a2b3c4d)")


CATALOG = compile(Recipes(prompts=(login, pretend, sign_in), resources=(vault,)))


class RecordedReplies(list):
    """An observer that collects each reply."""

    def begin(self, *_):
        """Return the callback that collects the reply."""
        return self.append


class AuditedClient:
    """A client of a server with an audit file."""

    def __init__(self, file, revision="2025-11-25", catalog=CATALOG):
        self.audit = Audit(file)
        self.file, self.catalog, self.revision = file, catalog, revision
        self.replies = RecordedReplies()
        self.client = Client(catalog, revision, capabilities={"elicitation": {}}, observers=[self.replies])
        self.connection = Session(ServerInfo("test", "1"), Capabilities())
        if revision in HANDSHAKES:
            self.connection.receive_data(line(initialize(revision)))

    def begin(self, method, params=None, number=1):
        """Record the arrival of a request, and return the callback that records its end."""
        params = params or {}
        if self.revision not in HANDSHAKES:
            params = {**params, "_meta": envelope(capabilities={"elicitation": {}})}
        (event,) = self.connection.receive_data(line(request(number, method, params)))
        return self.audit.begin(event, lambda: self.catalog)

    def ask(self, method, params=None, number=1):
        """Send a request, audit it, and return its record."""
        end = self.begin(method, params, number)
        self.client.post(method, params, number)
        end(self.replies[-1])
        return self.records()[-1]

    def get(self, name="login", /, **arguments):
        """Send `prompts/get`, and return its record."""
        return self.ask("prompts/get", {"name": name, "arguments": arguments})

    def records(self):
        """Return all records of the file."""
        return records(self.file)


def records(file):
    """Return the records of an audit file."""
    return [json.loads(text) for text in file.read_bytes().split(b"\n")[:-1]]


@pytest.fixture
def audited(tmp_path):
    """Return a client of a server with an audit file."""
    return AuditedClient(tmp_path / "audit.jsonl")


class TestRecords:
    def test_record_of_a_request(self, audited):
        """A record contains the client, method, argument sizes, time, duration and outcome."""
        before = datetime.now(UTC)

        record = audited.get(user="Ada", tries="12")

        after, rounded = datetime.now(UTC), timedelta(milliseconds=2)
        assert before - rounded <= datetime.fromisoformat(record.pop("time")) <= after + rounded
        assert 0 < record.pop("duration_ms") <= (after - before + rounded).total_seconds() * 1000
        assert record == {
            "process": os.getpid(),
            "client": {"name": "test", "version": "3.1"},
            "id": 1,
            "method": "prompts/get",
            "prompt": "login",
            "arguments": {"user": 3, "tries": 2},
            "revision": "2025-11-25",
            "outcome": "ok",
        }

    def test_deprecated_prompt(self, audited):
        """The record marks a call of a deprecated prompt, so that its author learns who still uses it."""
        assert audited.get("sign_in", user="Ada")["deprecated"] is True
        assert "deprecated" not in audited.get(user="Ada")

    def test_time(self, audited):
        """The time is the arrival of the request, in RFC 3339 with milliseconds."""
        time = audited.get(user="Ada")["time"]

        assert time == f"{datetime.fromisoformat(time).isoformat(timespec='milliseconds')[:-6]}Z"

    @pytest.mark.parametrize(
        ("method", "params", "expected"),
        [
            ("prompts/list", {}, {"outcome": "ok"}),
            ("prompts/list", {"cursor": "none"}, {"outcome": "error", "code": -32602}),
            (
                "prompts/get",
                {"name": "logn", "arguments": {"x": "abc"}},
                {"prompt": "logn", "arguments": {"x": 3}, "outcome": "error", "code": -32602},
            ),
            (
                "prompts/get",
                {"name": "sign_in", "arguments": {"user": [1, 2]}},
                {
                    "prompt": "sign_in",
                    "arguments": {"user": 5},
                    "deprecated": True,
                    "outcome": "error",
                    "code": -32602,
                },
            ),
            (
                "prompts/get",
                {"name": "login", "arguments": {"user": "nobody"}},
                {"prompt": "login", "arguments": {"user": 6}, "outcome": "error", "code": -32602},
            ),
            (
                "prompts/get",
                {"name": "login", "arguments": {"user": "everybody"}},
                {"prompt": "login", "arguments": {"user": 9}, "outcome": "error", "code": -32603},
            ),
            (
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": "login"},
                    "argument": {"name": "tries", "value": "1"},
                    "context": {"arguments": {"user": "Ada"}},
                },
                {"prompt": "login", "arguments": {"user": 3, "tries": 1}, "outcome": "ok"},
            ),
            (
                "completion/complete",
                {
                    "ref": {"type": "ref/resource", "uri": "vault://{box}{?key}"},
                    "argument": {"name": "box", "value": "1"},
                },
                {"resource": "vault://{box}{?key}", "arguments": {"box": 1}, "outcome": "ok"},
            ),
            (
                "resources/read",
                {"uri": "vault://gold?key=abc"},
                {"resource": "vault://{box}{?key}", "arguments": {"box": 4, "key": None}, "outcome": "ok"},
            ),
            (
                "resources/read",
                {"uri": "cellar://wine"},
                {
                    "resource": None,
                    "arguments": {},
                    "outcome": "error",
                    "code": -32002,
                },
            ),
            (
                "resources/read",
                {"uri": "no scheme"},
                {
                    "resource": None,
                    "arguments": {},
                    "outcome": "error",
                    "code": -32002,
                },
            ),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_method_and_outcome(self, audited, capsys, method, params, expected):
        """The record of a request of each method contains its target and its outcome."""
        record = audited.ask(method, params)

        shared = {"time", "process", "client", "id", "revision", "duration_ms"}
        assert record["method"] == method
        assert {key: value for key, value in record.items() if key not in {*shared, "method"}} == expected

    @pytest.mark.parametrize("method", ["prompts/get", "tools/call"])
    def test_error_id(self, tmp_path, capsys, method):
        """
        The record has the error id of the reply and of the traceback.

        An author's message that looks like an error id does not count.
        """
        file = tmp_path / "audit.jsonl"
        client = Client(CATALOG, MODERN, observers=[Audit(file)], tools=True)
        reply = client.ask(method, {"name": "login", "arguments": {"user": "everybody"}})
        client.ask(method, {"name": "pretend"})

        failed, pretended = records(file)
        assert f"(error {failed['error_id']})" in json.dumps(reply)
        assert f"promptkit: error {failed['error_id']} in prompt 'login':\n" in capsys.readouterr().err
        assert pretended["outcome"] in ("error", "failed")
        assert "error_id" not in pretended

    def test_elicitation(self, tmp_path):
        """A request that is answered with a question has the outcome "asked"."""
        assert AuditedClient(tmp_path / "audit", MODERN).get()["outcome"] == "asked"

    def test_cancelled_request(self, audited):
        """A cancelled request is recorded although it has no reply."""
        audited.begin("prompts/get", {"name": "login"})(CANCELLED)

        assert [record["outcome"] for record in audited.records()] == ["cancelled"]

    def test_unanswered_request(self, tmp_path):
        """
        A request that is pending when the server stops is recorded, although its client has disconnected.
        """
        audit = Audit(tmp_path / "audit")
        client = Client(None, observers=[audit])
        client.post("prompts/get", {"name": "login"})

        client.server.close(0, answer_unfinished=False)

        assert records(tmp_path / "audit")[-1]["outcome"] == "unanswered"

    @pytest.mark.parametrize("number", [7, "seven", 10**30, 'a "quoted\\" id'])
    def test_request_id(self, audited, number):
        """The record of an error holds the request id, whatever its type and characters."""
        record = audited.ask("prompts/get", {"name": "none"}, number)

        assert (record["id"], record["code"]) == (number, -32602)


class TestOmittedData:
    def test_values_are_not_recorded(self, tmp_path):
        """The file contains no value of an argument or a variable."""
        file = tmp_path / "audit"
        for revision in ("2025-06-18", MODERN):
            audited = AuditedClient(file, revision)
            audited.get(user="hunter2", tries="hunter2", other="hunter2", more=["hunter2"])
            audited.get(user="Ada", key="hunter2")
            audited.get("none", user="hunter2")
            audited.ask("resources/read", {"uri": "vault://hunter2?key=hunter2"})
            audited.ask("resources/read", {"uri": "hunter://hunter2"})
            audited.ask(
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": "login"},
                    "argument": {"name": "user", "value": "hunter2"},
                    "context": {"arguments": {"key": "hunter2"}},
                },
            )

        assert len(audited.records()) == 12
        assert b"hunter2" not in file.read_bytes()

    def test_size_of_a_secret_is_not_recorded(self, audited):
        """A record names a secret argument but not its size, which could give it away."""
        assert audited.get(user="Ada", key="yes")["arguments"] == {"user": 3, "key": None}

    def test_client_text_is_truncated(self, audited):
        """Names that the client sends are limited in length and number."""
        record = audited.get("n" * 9999, **{f"{number}{'x' * 999}": "" for number in range(999)})

        assert record["prompt"] == "n" * MAX_TEXT + "..."
        assert len(record["arguments"]) == MAX_ARGUMENTS
        assert len(audited.file.read_bytes()) < 8000

    @pytest.mark.parametrize(
        "odd", ["\n", "\r", "\0", "\x1b[2J", "\x9b2J", "\u2028", "\x85", "ü", "\U0001f600"]
    )
    def test_special_characters_are_escaped(self, audited, odd):
        """A record is one line of printable ASCII, whatever characters the names contain."""
        record = audited.get(f"a{odd}b", **{odd: "x"})

        written = audited.file.read_bytes()
        assert (record["prompt"], record["arguments"]) == (f"a{odd}b", {odd: 1})
        assert all(32 <= byte < 127 for byte in written[:-1])


class TestConnectionReplies:
    """Requests that the connection answers itself, without dispatching them."""

    @pytest.mark.parametrize("revision", [*HANDSHAKES, MODERN])
    def test_client_and_revision(self, tmp_path, revision):
        """Each request has one record, which names the client and the revision, whatever its outcome."""
        for number, method in enumerate(sorted({*METHODS, "no/such"})):
            file = tmp_path / f"{number}.jsonl"
            client = Client(CATALOG, revision, observers=[Audit(file)], changes=True)
            params = {"uri": "vault://x", "name": "login"}
            if method == "initialize":
                params = initialize(revision)["params"]
            before = len(records(file))

            message = request(7, method, params) if revision in HANDSHAKES else modern(7, method, params)
            client.server.receive_data(line(message))
            client.server.receive_data(line(notification("notifications/cancelled", {"requestId": 7})))

            (record,) = records(file)[before:]
            negotiates = method == "initialize" and revision == MODERN  # it cannot open a session
            assert (record["client"], record["revision"], record["method"], record["id"]) == (
                {"name": "test", "version": "3.1"},
                HANDSHAKES[-1] if negotiates else revision,
                method,
                7,
            )

    @pytest.mark.parametrize("method", ["server/discover", "tools/list", "no/such"])
    def test_modern_request_during_a_session(self, tmp_path, method):
        """The record of a request that names its own client does not name the client of the session."""
        file = tmp_path / "audit.jsonl"
        client = Client(CATALOG, "2025-06-18", observers=[Audit(file)])
        other = {"io.modelcontextprotocol/clientInfo": {"name": "other", "version": "9"}}

        client.server.receive_data(line(modern(7, method, **other)))

        record = records(file)[-1]
        assert (record["client"], record["revision"]) == ({"name": "other", "version": "9"}, MODERN)

    @pytest.mark.parametrize(
        ("meta", "client"),
        [
            ({"io.modelcontextprotocol/protocolVersion": "2027-01-15"}, {"name": "test", "version": "3.1"}),
            ({"io.modelcontextprotocol/clientCapabilities": 3}, {"name": "test", "version": "3.1"}),
            ({"io.modelcontextprotocol/clientInfo": 3}, None),
        ],
        ids=["unserved revision", "no capabilities", "no client"],
    )
    def test_invalid_envelope(self, tmp_path, meta, client):
        """The record holds the valid parts of an invalid envelope, and the revision of the reply."""
        file = tmp_path / "audit.jsonl"
        server = Client(CATALOG, MODERN, observers=[Audit(file)]).server

        server.receive_data(line(modern(7, "server/discover", **meta)))

        (record,) = records(file)
        assert (record["client"], record["revision"], record["outcome"]) == (client, MODERN, "error")

    @pytest.mark.parametrize("number", ["x" * 1000, "\\\n" * 200, "é\u0000😀" * 40], ids=ascii)
    @pytest.mark.parametrize("method", ["ping", "no/such", "prompts/list", "x" * 1000])
    def test_long_ids_and_methods_are_truncated(self, tmp_path, number, method):
        """Long ids and methods are truncated; the outcome is still recorded."""
        file = tmp_path / "audit.jsonl"
        client = Client(CATALOG, "2025-11-25", observers=[Audit(file)])

        reply = client.ask(method, number=number)

        record = records(file)[-1]
        assert reply["id"] == number
        assert record["id"] == f"{number[:MAX_TEXT]}..."
        assert record["method"] == (f"{method[:MAX_TEXT]}..." if len(method) > MAX_TEXT else method)
        assert record["outcome"] == ("ok" if "result" in reply else "error")
        assert len(file.read_bytes().splitlines()[-1]) < 2000


class TestFile:
    def test_new_file_is_private(self, audited):
        """A new file is readable only by its owner, and child processes do not inherit its descriptor."""
        assert stat.S_IMODE(audited.file.stat().st_mode) == 0o600
        assert not os.get_inheritable(audited.audit._descriptor)

    def test_existing_file_is_appended_to(self, tmp_path):
        """An existing file keeps its content and its permissions."""
        file = tmp_path / "audit"
        file.write_text("{}\n")
        file.chmod(0o640)

        AuditedClient(file).get(user="Ada")

        assert len(records(file)) == 2
        assert stat.S_IMODE(file.stat().st_mode) == 0o640

    @pytest.mark.parametrize("file", ["", "nowhere/audit", "pipe"])
    def test_unwritable_path(self, tmp_path, file):
        """
        The server does not start if the path is a folder, in a missing folder, or a pipe without a reader.
        """
        os.mkfifo(tmp_path / "pipe")

        with pytest.raises(OSError, match=r"."):
            Audit(tmp_path / file)

    def test_relative_path(self, tmp_path, monkeypatch):
        """A relative path means the same file after a recipe changes the working directory."""
        monkeypatch.chdir(tmp_path)
        audited = AuditedClient("audit")
        monkeypatch.chdir("/")

        audited.begin("prompts/list")(CANCELLED)

        assert len(records(tmp_path / "audit")) == 1

    def test_rotated_file(self, audited, tmp_path):
        """After the file is renamed, records go to a new file."""
        audited.get(user="Ada")
        audited.file.rename(tmp_path / "audit.1")

        audited.get(user="Eve")

        assert [len(records(tmp_path / name)) for name in ("audit.1", "audit.jsonl")] == [1, 1]


class TestWriteErrors:
    def test_full_disk(self, tmp_path, capsys):
        """A full disk is reported once without an exception; the next record counts the lost records."""
        file = tmp_path / "audit"
        file.symlink_to("/dev/full")
        audited = AuditedClient(file)
        for _ in range(3):
            audited.begin("prompts/list")(CANCELLED)
        file.unlink()

        recovered, next_ = audited.get(user="Ada"), audited.get(user="Eve")

        assert (recovered["lost"], "lost" in next_) == (3, False)
        assert capsys.readouterr().err == (
            f"promptkit: cannot write to the audit file {str(file)!r}: No space left on device; "
            f"serving continues, and requests are recorded again as soon as the file can be written\n"
        )

    def test_removed_folder(self, tmp_path, capsys):
        """Recording resumes once the folder exists again."""
        folder = tmp_path / "logs"
        folder.mkdir()
        audited = AuditedClient(folder / "audit")
        (folder / "audit").unlink()
        folder.rmdir()

        audited.begin("prompts/list")(CANCELLED)
        folder.mkdir()

        assert audited.get(user="Ada")["lost"] == 1
        assert "No such file or directory" in capsys.readouterr().err

    def test_pipe_that_is_not_read(self, tmp_path, capsys):
        """A full pipe does not block the server; a partial line is terminated before the next record."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        audited = AuditedClient(pipe)
        long = {
            "name": "login",
            "arguments": {f"{number}{'x' * MAX_TEXT}": "" for number in range(MAX_ARGUMENTS)},
        }
        for _ in range(30):
            audited.begin("prompts/get", long)(CANCELLED)
        data = os.read(reader, 1 << 20)

        audited.begin("prompts/list")(CANCELLED)

        *complete, partial, last, end = (data + os.read(reader, 1 << 20)).split(b"\n")
        os.close(reader)
        assert {json.loads(text)["prompt"] for text in complete} == {"login"}
        assert (json.loads(last)["lost"], end) == (30 - len(complete), b"")
        with pytest.raises(ValueError, match=r"."):
            json.loads(partial)

    def test_partial_line_is_removed(self, tmp_path, capsys):
        """A partial line is removed, so that records of other processes start on a new line."""
        limits = pytest.importorskip("resource")
        file = tmp_path / "audit"
        audited = AuditedClient(file)
        audited.begin("prompts/list")(CANCELLED)
        size = file.stat().st_size
        soft, hard = limits.getrlimit(limits.RLIMIT_FSIZE)
        limits.setrlimit(limits.RLIMIT_FSIZE, (size * 3 // 2, hard))
        try:
            audited.begin("prompts/list")(CANCELLED)
            size_after = file.stat().st_size
        finally:
            limits.setrlimit(limits.RLIMIT_FSIZE, (soft, hard))

        assert size_after == size
        assert audited.get(user="Ada")["lost"] == 1
        assert "only part of the line could be written" in capsys.readouterr().err

    def test_closed_standard_error(self, tmp_path, monkeypatch):
        """A closed standard error causes no failure."""
        closed = StringIO()
        closed.close()
        monkeypatch.setattr(sys, "stderr", closed)
        file = tmp_path / "audit"
        file.symlink_to("/dev/full")

        AuditedClient(file).begin("prompts/list")(CANCELLED)

        assert file.is_symlink()


#: A process that records requests with names of many lengths, as fast as it can.
WRITER = """
import resource, sys
from pathlib import Path
from promptkit.catalog.catalog import Catalog
from promptkit.protocol import wire
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import CANCELLED
from promptkit.protocol.revisions import LATEST_HANDSHAKE
from promptkit.server.audit import Audit

file, worker, count, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
audit, catalog = Audit(file), Catalog()
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    arguments = {f"{worker}-{n}": "" for n in range(number % 40)}
    params = wire.GetPromptParams(worker, arguments)
    event = Request(number, "prompts/get", params, LATEST_HANDSHAKE, None, {})
    audit.begin(event, lambda: catalog)(CANCELLED)
"""


def write_concurrently(file, processes, count, limit=0):
    """Let several processes record requests in one file at the same time; return their standard error."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, file, str(worker), str(count), str(limit)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for worker in range(processes)
    ]
    assert [process.stdout.readline() for process in started] == [b"ready\n"] * processes
    for process in started:
        process.stdin.write(b"\n")
        process.stdin.flush()
    return [process.communicate(timeout=50)[1] for process in started]


class TestConcurrency:
    def test_concurrent_processes(self, tmp_path):
        """Records of several processes that append at the same time are complete."""
        logged = write_concurrently(tmp_path / "audit", processes=4, count=1000)

        written = records(tmp_path / "audit")
        assert logged == [b""] * 4
        assert {(record["prompt"], record["id"]) for record in written} == {
            (str(worker), number) for worker in range(4) for number in range(1000)
        }
        assert len(written) == 4000

    def test_concurrent_processes_on_a_full_disk(self, tmp_path):
        """When the space runs out, no process leaves a partial line."""
        logged = write_concurrently(tmp_path / "audit", processes=4, count=300, limit=100_001)

        assert 90_000 < (tmp_path / "audit").stat().st_size <= 100_001
        assert {record["method"] for record in records(tmp_path / "audit")} == {"prompts/get"}
        assert [log.count(b"\n") for log in logged] == [1] * 4

    def test_concurrent_threads(self, audited):
        """Records of several threads that append at the same time are complete."""
        ends = [audited.begin("prompts/list", number=number) for number in range(2000)]

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda end: end(CANCELLED), ends))

        assert sorted(record["id"] for record in audited.records()) == list(range(2000))
