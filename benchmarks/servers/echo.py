"""The lower floor: every request comes back as it is."""

import os


def main() -> None:
    """Send every line that has an id back until the input ends."""
    rest = b""
    while chunk := os.read(0, 65536):
        *lines, rest = (rest + chunk).split(b"\n")
        data = b"".join(line + b"\n" for line in lines if b'"id"' in line)
        while data:
            data = data[os.write(1, data) :]


main()
