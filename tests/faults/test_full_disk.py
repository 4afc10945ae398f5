import json
import sys
from pathlib import Path

import pytest

from tests.faults.ledger import Schemas
from tests.wire import modern, request

FULL = Path("/dev/full")


def ask_many(serving, prefix, count):
    """Ask for a prompt many times; return the replies that are no results."""
    replies = [
        serving.ask(modern(f"{prefix}{turn}", "prompts/get", {"name": "plain"}))[0] for turn in range(count)
    ]
    return [reply for reply in replies if "result" not in reply]


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_nothing_fits(serve, whole):
    """
    With a disk that is full from the start, every request is served, and the failing log is reported once.
    """
    serving = serve("--audit", str(FULL))

    assert ask_many(serving, "a", 1000 if whole else 100) == []
    assert serving.end()[1] == 0
    assert [text for text in serving.drained() if not Schemas().allow(text)] == []
    assert serving.log.read_text(encoding="utf-8").count("No space left on device") == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are set from outside")
def test_full_for_a_while(serve, tmp_path):
    """
    When the disk becomes full, requests are served; when there is room again the file holds whole
    lines, and says how many are missing.
    """
    import resource

    file = tmp_path / "audit.jsonl"
    serving = serve("--audit", str(file))
    assert ask_many(serving, "before", 20) == []
    number, (soft, hard) = serving.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.prlimit(number, resource.RLIMIT_FSIZE, (file.stat().st_size + 100, hard))
    assert ask_many(serving, "full", 50) == []
    resource.prlimit(number, resource.RLIMIT_FSIZE, (soft, hard))
    assert ask_many(serving, "after", 20) == []
    assert serving.ask(request("last", "ping"))[0]["result"] == {}
    assert serving.end()[1] == 0

    text = file.read_text(encoding="utf-8")
    records = []
    for found in text.splitlines():
        try:
            records.append(json.loads(found))
        except ValueError:
            records.append(None)  # what was cut when the disk became full
    whole_records = [record for record in records if record]
    assert len(records) - len(whole_records) <= 1
    assert text.endswith("\n")
    assert len(whole_records) + sum(record.get("lost", 0) for record in whole_records) == 91
    assert sum("lost" in record for record in whole_records) == 1
