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
from promptkit.protocol.connection import Connection
from promptkit.protocol.jsonrpc import CANCELLED, Reply
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


@prompt(deprecated="use login")
def sign_in(user: str) -> str:
    return user


@prompt
def pretend() -> str:
    raise PromptError("prompt 'pretend' failed (error 1a2b3c4d)")


CATALOG = compile(Recipes(prompts=(login, pretend, sign_in), resources=(vault,)))


class KeptReplies(list):
    """An observer that keeps each reply."""

    def begin(self, *_):
        """Return what keeps the reply."""
        return self.append


class Audited:
    """A client of a server whose requests are noted in a file."""

    def __init__(self, file, revision="2025-11-25", catalog=CATALOG):
        self.audit = Audit(file)
        self.file, self.catalog, self.revision = file, catalog, revision
        self.replies = KeptReplies()
        self.client = Client(catalog, revision, capabilities={"elicitation": {}}, observers=[self.replies])
        self.connection = Connection(ServerInfo("test", "1"), Capabilities())
        if revision in HANDSHAKES:
            self.connection.receive_data(line(initialize(revision)))

    def begin(self, method, params=None, number=1):
        """Note that a request has arrived."""
        params = params or {}
        if self.revision not in HANDSHAKES:
            params = {**params, "_meta": envelope(capabilities={"elicitation": {}})}
        (event,) = self.connection.receive_data(line(request(number, method, params)))
        return self.audit.begin(event, lambda: self.catalog)

    def ask(self, method, params=None, number=1):
        """Send a request, note it, and return what is noted."""
        end = self.begin(method, params, number)
        self.client.post(method, params, number)
        end(self.replies[-1])
        return self.records()[-1]

    def get(self, name="login", /, **arguments):
        """Ask for a prompt, and return what is noted."""
        return self.ask("prompts/get", {"name": name, "arguments": arguments})

    def records(self):
        """Return everything that is in the file."""
        return records(self.file)


def records(file):
    """Return what each line of *file* holds."""
    return [json.loads(found) for found in file.read_bytes().split(b"\n")[:-1]]


@pytest.fixture
def audited(tmp_path):
    """A client of a server whose requests are noted."""
    return Audited(tmp_path / "audit.jsonl")


class TestRecords:
    def test_a_request(self, audited):
        """
        A record says who asked for what, when, with arguments of which size, and what came of it.
        """
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

    def test_a_call_of_a_deprecated_prompt(self, audited):
        """
        It is noted as such, so that its author learns who still calls it.
        """
        assert audited.get("sign_in", user="Ada")["deprecated"] is True
        assert "deprecated" not in audited.get(user="Ada")

    def test_the_time(self, audited):
        """
        It is that of the arrival, as RFC 3339 has it, to the millisecond.
        """
        time = audited.get(user="Ada")["time"]

        assert time == f"{datetime.fromisoformat(time).isoformat(timespec='milliseconds')[:-6]}Z"

    @pytest.mark.parametrize(
        ("method", "params", "noted"),
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
                {"name": "login", "arguments": {"user": "Ada", "tries": [1, 2]}},
                {
                    "prompt": "login",
                    "arguments": {"user": 3, "tries": 5},
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
                    "scheme": "cellar",
                    "size": 13,
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
                    "scheme": None,
                    "size": 9,
                    "arguments": {},
                    "outcome": "error",
                    "code": -32002,
                },
            ),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_what_is_asked_and_what_comes_of_it(self, audited, capsys, method, params, noted):
        """
        Of each kind of request it is noted what it is about, and how it ended.
        """
        record = audited.ask(method, params)

        shared = {"time", "process", "client", "id", "revision", "duration_ms"}
        assert record["method"] == method
        assert {key: value for key, value in record.items() if key not in {*shared, "method"}} == noted

    @pytest.mark.parametrize("method", ["prompts/get", "tools/call"])
    def test_the_id_of_an_error(self, tmp_path, capsys, method):
        """
        What a client is told in place of a traceback is noted, so that it leads to standard error. What an
        author says that looks like it is not.
        """
        file = tmp_path / "audit.jsonl"
        client = Client(CATALOG, MODERN, observers=[Audit(file)], tools=True)
        told = client.ask(method, {"name": "login", "arguments": {"user": "everybody"}})
        client.ask(method, {"name": "pretend"})

        failed, pretended = records(file)
        assert f"(error {failed['error_id']})" in json.dumps(told)
        assert f"promptkit: error {failed['error_id']} in prompt 'login':\n" in capsys.readouterr().err
        assert pretended["outcome"] in ("error", "failed")
        assert "error_id" not in pretended

    def test_a_question(self, tmp_path):
        """
        A request that is answered with a question is neither fine nor an error.
        """
        assert Audited(tmp_path / "audit", MODERN).get()["outcome"] == "asked"

    def test_a_cancelled_request(self, audited):
        """
        It is noted, though it has no reply.
        """
        audited.begin("prompts/get", {"name": "login"})(CANCELLED)

        assert [record["outcome"] for record in audited.records()] == ["cancelled"]

    def test_a_request_that_nobody_answers(self, audited):
        """
        What still runs at the end is noted then, and not again if it is answered after all.
        """
        end = audited.begin("prompts/get", {"name": "login"})

        audited.audit.close()
        end(Reply(b"too late"))

        assert [record["outcome"] for record in audited.records()] == ["unanswered"]

    def test_a_second_reply(self, audited):
        """
        A request has one line, even if two threads end it.
        """
        end = audited.begin("prompts/list")

        end(CANCELLED)
        end(CANCELLED)

        assert len(audited.records()) == 1

    @pytest.mark.parametrize("number", [7, "seven", 10**30, 'a "quoted\\" id'])
    def test_any_id(self, audited, number):
        """
        An error is found behind whatever the id is.
        """
        record = audited.ask("prompts/get", {"name": "none"}, number)

        assert (record["id"], record["code"]) == (number, -32602)


class TestWhatIsNotNoted:
    def test_values(self, tmp_path):
        """
        No value of an argument or a variable is in the file.
        """
        file = tmp_path / "audit"
        for revision in ("2025-06-18", MODERN):
            audited = Audited(file, revision)
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

    def test_the_size_of_a_secret(self, audited):
        """
        Of a secret only that it was given is noted: its length tells a yes from a no.
        """
        assert audited.get(user="Ada", key="yes")["arguments"] == {"user": 3, "key": None}

    def test_long_texts(self, audited):
        """
        Of what a client makes up, a record keeps little.
        """
        record = audited.get("n" * 9999, **{f"{number}{'x' * 999}": "" for number in range(999)})

        assert record["prompt"] == "n" * MAX_TEXT + "..."
        assert len(record["arguments"]) == MAX_ARGUMENTS
        assert len(audited.file.read_bytes()) < 8000

    @pytest.mark.parametrize(
        "odd", ["\n", "\r", "\0", "\x1b[2J", "\x9b2J", "\u2028", "\x85", "ü", "\U0001f600"]
    )
    def test_odd_characters(self, audited, odd):
        """
        Whatever a name holds, a record is one line of ASCII without controls.
        """
        record = audited.get(f"a{odd}b", **{odd: "x"})

        written = audited.file.read_bytes()
        assert (record["prompt"], record["arguments"]) == (f"a{odd}b", {odd: 1})
        assert all(32 <= byte < 127 for byte in written[:-1])


class TestWhatTheConnectionAnswers:
    """Requests that are answered without being handed out."""

    @pytest.mark.parametrize("revision", [*HANDSHAKES, MODERN])
    @pytest.mark.parametrize("method", sorted({*METHODS, "tools/call", "no/such"}))
    def test_who_asked_and_how(self, tmp_path, revision, method):
        """
        Each request of either era is one line, which names the client and the revision, whatever comes of it.
        """
        file = tmp_path / "audit.jsonl"
        client = Client(CATALOG, revision, observers=[Audit(file)], changes=True)
        params = (
            initialize(revision)["params"]
            if method == "initialize"
            else {"uri": "vault://x", "name": "login"}
        )
        before = len(records(file))

        asked = request(7, method, params) if revision in HANDSHAKES else modern(7, method, params)
        client.server.receive_data(line(asked))
        client.server.receive_data(line(notification("notifications/cancelled", {"requestId": 7})))

        (noted,) = records(file)[before:]
        negotiates = method == "initialize" and revision == MODERN  # which that opens no session with
        assert (noted["client"], noted["revision"], noted["method"], noted["id"]) == (
            {"name": "test", "version": "3.1"},
            HANDSHAKES[-1] if negotiates else revision,
            method,
            7,
        )

    @pytest.mark.parametrize("method", ["server/discover", "tools/list", "no/such"])
    def test_a_modern_request_beside_a_session(self, tmp_path, method):
        """
        A request that names a client of its own is not noted as the session's.
        """
        file = tmp_path / "audit.jsonl"
        client = Client(CATALOG, "2025-06-18", observers=[Audit(file)])
        other = {"io.modelcontextprotocol/clientInfo": {"name": "other", "version": "9"}}

        client.server.receive_data(line(modern(7, method, **other)))

        noted = records(file)[-1]
        assert (noted["client"], noted["revision"]) == ({"name": "other", "version": "9"}, MODERN)

    @pytest.mark.parametrize(
        ("meta", "client"),
        [
            ({"io.modelcontextprotocol/protocolVersion": "2027-01-15"}, {"name": "test", "version": "3.1"}),
            ({"io.modelcontextprotocol/clientCapabilities": 3}, {"name": "test", "version": "3.1"}),
            ({"io.modelcontextprotocol/clientInfo": 3}, None),
        ],
        ids=["unserved revision", "no capabilities", "no client"],
    )
    def test_an_envelope_with_a_fault(self, tmp_path, meta, client):
        """
        What can be read of it is noted, and the revision is the one that it was answered in.
        """
        file = tmp_path / "audit.jsonl"
        server = Client(CATALOG, MODERN, observers=[Audit(file)]).server

        server.receive_data(line(modern(7, "server/discover", **meta)))

        (noted,) = records(file)
        assert (noted["client"], noted["revision"], noted["outcome"]) == (client, MODERN, "error")

    @pytest.mark.parametrize("number", ["x" * 1000, "\\\n" * 200, "é\u0000😀" * 40], ids=ascii)
    @pytest.mark.parametrize("method", ["ping", "no/such", "prompts/list", "x" * 1000])
    def test_long_ids_and_methods(self, tmp_path, number, method):
        """
        Of each long text of a client the beginning is noted, and the outcome too.
        """
        file = tmp_path / "audit.jsonl"
        client = Client(CATALOG, "2025-11-25", observers=[Audit(file)])

        reply = client.ask(method, number=number)

        noted = records(file)[-1]
        assert reply["id"] == number
        assert noted["id"] == f"{number[:MAX_TEXT]}..."
        assert noted["method"] == (f"{method[:MAX_TEXT]}..." if len(method) > MAX_TEXT else method)
        assert noted["outcome"] == ("ok" if "result" in reply else "error")
        assert len(file.read_bytes().splitlines()[-1]) < 2000


class TestTheFile:
    def test_it_is_the_owners(self, audited):
        """
        Only its owner may read a new file, and no child process inherits it.
        """
        assert stat.S_IMODE(audited.file.stat().st_mode) == 0o600
        assert not os.get_inheritable(audited.audit._descriptor)

    def test_it_is_appended_to(self, tmp_path):
        """
        What is there stays, and so does who may read it.
        """
        file = tmp_path / "audit"
        file.write_text("{}\n")
        file.chmod(0o640)

        Audited(file).get(user="Ada")

        assert len(records(file)) == 2
        assert stat.S_IMODE(file.stat().st_mode) == 0o640

    @pytest.mark.parametrize("file", ["", "nowhere/audit", "pipe"])
    def test_what_cannot_be_written(self, tmp_path, file):
        """
        Starting fails for a folder, for a missing one, and for a pipe that is not read.
        """
        os.mkfifo(tmp_path / "pipe")

        with pytest.raises(OSError, match=r"."):
            Audit(tmp_path / file)

    def test_a_relative_path(self, tmp_path, monkeypatch):
        """
        It is the same file also if a recipe changes the current folder.
        """
        monkeypatch.chdir(tmp_path)
        audited = Audited("audit")
        monkeypatch.chdir("/")

        audited.begin("prompts/list")(CANCELLED)

        assert len(records(tmp_path / "audit")) == 1

    def test_a_file_that_is_moved_away(self, audited, tmp_path):
        """
        The old file keeps its lines, and a new one takes the next.
        """
        audited.get(user="Ada")
        audited.file.rename(tmp_path / "audit.1")

        audited.get(user="Eve")

        assert [len(records(tmp_path / name)) for name in ("audit.1", "audit.jsonl")] == [1, 1]


class TestTrouble:
    def test_a_full_disk(self, tmp_path, capsys):
        """
        It is reported once, nothing is raised, and the first line after it counts the lost ones.
        """
        file = tmp_path / "audit"
        file.symlink_to("/dev/full")
        audited = Audited(file)
        for _ in range(3):
            audited.begin("prompts/list")(CANCELLED)
        file.unlink()

        recovered, next_ = audited.get(user="Ada"), audited.get(user="Eve")

        assert (recovered["lost"], "lost" in next_) == (3, False)
        assert capsys.readouterr().err == (
            f"promptkit: cannot write to the audit file {str(file)!r}: No space left on device; "
            f"serving continues, and requests are recorded again as soon as the file can be written\n"
        )

    def test_a_folder_that_vanishes(self, tmp_path, capsys):
        """
        Requests are noted again once there is a place for the file.
        """
        folder = tmp_path / "logs"
        folder.mkdir()
        audited = Audited(folder / "audit")
        (folder / "audit").unlink()
        folder.rmdir()

        audited.begin("prompts/list")(CANCELLED)
        folder.mkdir()

        assert audited.get(user="Ada")["lost"] == 1
        assert "No such file or directory" in capsys.readouterr().err

    def test_a_pipe_that_nobody_empties(self, tmp_path, capsys):
        """
        It does not hold up serving, and a line that went in half is ended before the next.
        """
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        audited = Audited(pipe)
        long = {
            "name": "login",
            "arguments": {f"{number}{'x' * MAX_TEXT}": "" for number in range(MAX_ARGUMENTS)},
        }
        for _ in range(30):
            audited.begin("prompts/get", long)(CANCELLED)
        taken = os.read(reading, 1 << 20)

        audited.begin("prompts/list")(CANCELLED)

        *whole, half, last, end = (taken + os.read(reading, 1 << 20)).split(b"\n")
        os.close(reading)
        assert {json.loads(found)["prompt"] for found in whole} == {"login"}
        assert (json.loads(last)["lost"], end) == (30 - len(whole), b"")
        with pytest.raises(ValueError, match=r"."):
            json.loads(half)

    def test_a_line_that_fits_in_part(self, tmp_path, capsys):
        """
        It is taken back, so that what others append begins a line.
        """
        limits = pytest.importorskip("resource")
        file = tmp_path / "audit"
        audited = Audited(file)
        audited.begin("prompts/list")(CANCELLED)
        size = file.stat().st_size
        soft, hard = limits.getrlimit(limits.RLIMIT_FSIZE)
        limits.setrlimit(limits.RLIMIT_FSIZE, (size * 3 // 2, hard))
        try:
            audited.begin("prompts/list")(CANCELLED)
            left = file.stat().st_size
        finally:
            limits.setrlimit(limits.RLIMIT_FSIZE, (soft, hard))

        assert left == size
        assert audited.get(user="Ada")["lost"] == 1
        assert "only a part of a line could be written" in capsys.readouterr().err

    def test_nobody_to_complain_to(self, tmp_path, monkeypatch):
        """
        A closed standard error causes no failure.
        """
        closed = StringIO()
        closed.close()
        monkeypatch.setattr(sys, "stderr", closed)
        file = tmp_path / "audit"
        file.symlink_to("/dev/full")

        Audited(file).begin("prompts/list")(CANCELLED)

        assert file.is_symlink()


#: A process that notes requests with names of every length, as fast as it can.
WRITER = """
import resource, sys
from pathlib import Path
from promptkit.catalog.catalog import Catalog
from promptkit.protocol import wire
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import CANCELLED
from promptkit.protocol.revisions import LATEST_HANDSHAKE
from promptkit.server.audit import Audit

file, who, many, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
audit, catalog = Audit(file), Catalog()
print("ready", flush=True)
sys.stdin.readline()
for number in range(many):
    arguments = {f"{who}-{n}": "" for n in range(number % 40)}
    params = wire.GetPromptParams(who, arguments)
    asked = Request(number, "prompts/get", params, LATEST_HANDSHAKE, None, {})
    audit.begin(asked, lambda: catalog)(CANCELLED)
"""


def write_together(file, processes, many, limit=0):
    """Have several processes begin at the same moment to note requests in one file."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, file, str(who), str(many), str(limit)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for who in range(processes)
    ]
    assert [process.stdout.readline() for process in started] == [b"ready\n"] * processes
    for process in started:
        process.stdin.write(b"\n")
        process.stdin.flush()
    return [process.communicate(timeout=50)[1] for process in started]


class TestSharing:
    def test_several_processes(self, tmp_path):
        """
        Of several processes that append at once every line is there, and whole.
        """
        logged = write_together(tmp_path / "audit", processes=4, many=1000)

        found = records(tmp_path / "audit")
        assert logged == [b""] * 4
        assert {(record["prompt"], record["id"]) for record in found} == {
            (str(who), number) for who in range(4) for number in range(1000)
        }
        assert len(found) == 4000

    def test_several_processes_and_too_little_space(self, tmp_path):
        """
        Where the space ends, no process leaves a half line to another.
        """
        logged = write_together(tmp_path / "audit", processes=4, many=300, limit=100_001)

        assert 90_000 < (tmp_path / "audit").stat().st_size <= 100_001
        assert {record["method"] for record in records(tmp_path / "audit")} == {"prompts/get"}
        assert [log.count(b"\n") for log in logged] == [1] * 4

    def test_several_threads(self, audited):
        """
        Of several threads that append at once every line is there, and whole.
        """
        ends = [audited.begin("prompts/list", number=number) for number in range(2000)]

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda end: end(CANCELLED), ends))

        assert sorted(record["id"] for record in audited.records()) == list(range(2000))
