"""The lower baseline, which returns each request unchanged, or a result of the requested size."""

import os
import re

find_size = re.compile(rb'"bytes":([0-9]+)').search


def main() -> None:
    """Return every line that has an id, until the end of the input."""
    partial = padding = b""
    while chunk := os.read(0, 65536):
        *lines, partial = (partial + chunk).split(b"\n")
        reply = b""
        for line in lines:
            if match := find_size(line):
                size = int(match[1])
                padding = padding if len(padding) >= size else b"x" * size
                send(reply + line[:-1] + b',"result":"')
                send(memoryview(padding)[:size])
                reply = b'"}\n'
            elif b'"id"' in line:
                reply += line + b"\n"
        send(reply)


def send(data: bytes | memoryview) -> None:
    """Write all of *data*, without a copy if the pipe accepts it in one call."""
    while data:
        data = data[os.write(1, data) :]


main()
