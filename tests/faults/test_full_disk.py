"""Audits on a full disk."""

import json
import sys
from pathlib import Path

import pytest

from tests.faults.ledger import Schemas
from tests.wire import modern, request

FULL = Path("/dev/full")


def failed_requests(serving, prefix, count):
    """Render a prompt many times, and return the replies without a result."""
    replies = [
        serving.ask(modern(f"{prefix}{turn}", "prompts/get", {"name": "plain"}))[0] for turn in range(count)
    ]
    return [reply for reply in replies if "result" not in reply]


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_disk_that_is_always_full(serve, full_length):
    """Every request is served, and the failing audit is reported once."""
    serving = serve("--audit", str(FULL))

    assert failed_requests(serving, "a", 1000 if full_length else 100) == []
    assert serving.end()[1] == 0
    assert [text for text in serving.all_output() if not Schemas().allow(text)] == []
    assert serving.log.read_text(encoding="utf-8").count("No space left on device") == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prlimit exists on Linux only")
def test_disk_that_is_temporarily_full(serve, tmp_path):
    """
    Requests are served while the disk is full; afterwards the audit contains complete lines and the number of
    lost ones.
    """
    import resource

    file = tmp_path / "audit.jsonl"
    serving = serve("--audit", str(file))
    assert failed_requests(serving, "before", 20) == []
    number, (soft, hard) = serving.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.prlimit(number, resource.RLIMIT_FSIZE, (file.stat().st_size + 100, hard))
    assert failed_requests(serving, "full", 50) == []
    resource.prlimit(number, resource.RLIMIT_FSIZE, (soft, hard))
    assert failed_requests(serving, "after", 20) == []
    assert serving.ask(request("last", "ping"))[0]["result"] == {}
    assert serving.end()[1] == 0

    text = file.read_text(encoding="utf-8")
    records = []
    for row in text.splitlines():
        try:
            records.append(json.loads(row))
        except ValueError:
            records.append(None)  # cut off when the disk became full
    complete_records = [record for record in records if record]
    assert len(records) - len(complete_records) <= 1
    assert text.endswith("\n")
    assert len(complete_records) + sum(record.get("lost", 0) for record in complete_records) == 91
    assert sum("lost" in record for record in complete_records) == 1
