"""
A server on standard input and output that answers as a JSON file prescribes, for tests. It imports little.

Its argument is a file with an object. ``replies`` has the result of each method; if a result is a list, each
request gets the next item, and the last item is repeated. A result with ``error`` is an error. ``trick``
names a violation of the protocol.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

#: Text that is an attack on a terminal and on a page.
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m<script>alert(1)</script>\u202egpj.exe"

INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"prompts": {}, "resources": {}, "tools": {}},
    "serverInfo": {"name": "scripted", "version": "1.0"},
}


def write(line):
    """Write a line to standard output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def violate_protocol(trick, request):
    """Violate the protocol in the way that *trick* names, instead of answering the request."""
    if trick == "hang":
        time.sleep(60)
    elif trick == "exit":
        sys.exit(3)
    elif trick == "large":
        write(f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": {{"prompts": "{"x" * (100 << 20)}"}}}}')
    elif trick == "flood":
        for number in range(50_000):
            write(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": number}}))
    elif trick == "no JSON":
        for _ in range(3):
            write(f"{EVIL} is not JSON")
        write("[" * 100_000)


def main():
    """Answer requests until the end of the input."""
    script = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    replies = {"initialize": INITIALIZED, **script.get("replies", {})}
    if script.get("child"):  # a process that outlives its parent
        code = f"import time; open({script['child']!r}, 'w').close(); time.sleep(60)"
        subprocess.Popen([sys.executable, "-c", code])
    sys.stderr.write(script.get("stderr", ""))
    counts = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        method = request["method"]
        if script.get("trick") and method == script.get("at", "prompts/list"):
            violate_protocol(script["trick"], request)
        result = replies.get(method, {"error": {"code": -32601, "message": "Method not found"}})
        if isinstance(result, list):
            counts[method] = counts.get(method, -1) + 1
            result = result[min(counts[method], len(result) - 1)]
        if method == "prompts/get" and request["params"]["name"] in result:
            result = result[request["params"]["name"]]
        reply = result if "error" in result else {"result": result}
        write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}))


if __name__ == "__main__":
    main()
