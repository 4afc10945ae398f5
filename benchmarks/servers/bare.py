"""The floor: a loop that reads, decodes, encodes and writes, and does nothing else."""

import os

import msgspec

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


def answer(line: bytes) -> bytes:
    """Return one reply of the shape that a real server sends."""
    request = decode(line)
    params = request.get("params", {})
    code = params.get("arguments", {}).get("code", "")
    text = f"Review this rust code, 3 deep.\n\n{code}"
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return encode({"jsonrpc": "2.0", "id": request["id"], "result": {"messages": [message]}})


def main() -> None:
    """Answer every line until the input ends."""
    rest = b""
    while chunk := os.read(0, 65536):
        *lines, rest = (rest + chunk).split(b"\n")
        replies = [answer(line) + b"\n" for line in lines if b'"id"' in line]
        if replies:
            os.write(1, b"".join(replies))


main()
