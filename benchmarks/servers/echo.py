"""The lower floor: every request comes back as it is, or padded to the bytes that it asks for."""

import os
import re

asked = re.compile(rb'"bytes":([0-9]+)').search


def main() -> None:
    """Send every line that has an id back until the input ends."""
    rest = padding = b""
    while chunk := os.read(0, 65536):
        *lines, rest = (rest + chunk).split(b"\n")
        back = b""
        for line in lines:
            if match := asked(line):
                size = int(match[1])
                padding = padding if len(padding) >= size else b"x" * size
                send(back + line[:-1] + b',"result":"')
                send(memoryview(padding)[:size])
                back = b'"}\n'
            elif b'"id"' in line:
                back += line + b"\n"
        send(back)


def send(data: bytes | memoryview) -> None:
    """Write all of *data*, without a copy where the pipe takes it at once."""
    while data:
        data = data[os.write(1, data) :]


main()
