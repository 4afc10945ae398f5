"""Random mutations of lines."""

import json

UNUSUAL_VALUES = [
    None,
    True,
    0,
    -1,
    1.5,
    2**63,
    10**40,
    1e308,
    "",
    "\x00",
    "ß" * 50,
    "x" * 5000,
    [],
    {},
    [[]],
    {"": None},
    "2.0",
    "prompts/get",
]
BYTES = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\n", b"\r", b'"', b"\\", b"{", b"]", b",", b"9" * 400]
UNUSUAL_JSON = ["NaN", "-Infinity", "1e999", '"\\ud800"', "01", "tru", '{"a":1,"a":2}', "-0", "1E5"]
NAMES = ["id", "method", "params", "jsonrpc", "result", "error", "_meta", "name", "arguments", "zzz"]


def _locations(value, locations):
    """Collect every container in *value* with each of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        locations.append((value, key))
        _locations(inner, locations)
    return locations


class Mutations:
    """
    Random mutations of the bytes, the structure or the text of messages.

    Args:
        random:
            The random generator.
    """

    def __init__(self, random):
        self._random = random
        self._of_bytes = [
            self._flip,
            self._delete,
            self._insert,
            self._repeat,
            self._truncate,
            self._swap_slices,
        ]
        self._of_structure = [self._replace, self._remove, self._rename, self._swap, self._nest, self._add]
        self._of_text = [self._duplicate_key, self._unusual_text, self._wrap, self._spread]

    def mutate(self, message):
        """Return *message* as a line without its line end, mutated once or a few times."""
        message = json.loads(json.dumps(message))
        kind = self._random.choice(["bytes", "structure", "structure", "text"])
        if kind == "structure":
            for _ in range(self._random.choice([1, 1, 2, 4])):
                self._random.choice(self._of_structure)(message)
        text = json.dumps(message, ensure_ascii=self._random.random() < 0.5, separators=(",", ":"))
        if kind == "text":
            text = self._random.choice(self._of_text)(text)
        line = text.encode(errors="surrogatepass")
        if kind == "bytes":
            for _ in range(self._random.choice([1, 1, 2, 8])):
                line = self._random.choice(self._of_bytes)(line)
        return line

    def _cut(self, line):
        return sorted((self._random.randrange(len(line) + 1), self._random.randrange(len(line) + 1)))

    def _flip(self, line):
        if not line:
            return line
        at = self._random.randrange(len(line))
        return line[:at] + bytes([line[at] ^ 1 << self._random.randrange(8)]) + line[at + 1 :]

    def _delete(self, line):
        start, end = self._cut(line)
        return line[:start] + line[min(end, start + self._random.choice([1, 2, 10])) :]

    def _insert(self, line):
        at = self._random.randrange(len(line) + 1)
        return line[:at] + self._random.choice(BYTES) + line[at:]

    def _repeat(self, line):
        start, end = self._cut(line)
        return line[:end] + line[start:end] + line[end:]

    def _truncate(self, line):
        return line[: self._random.randrange(len(line) + 1)]

    def _swap_slices(self, line):
        first, second = self._cut(line)
        return line[:first] + line[second:] + line[first:second]

    def _location(self, message):
        return self._random.choice(_locations(message, []) or [({}, None)])

    def _replace(self, message):
        container, key = self._location(message)
        container[key] = json.loads(json.dumps(self._random.choice(UNUSUAL_VALUES)))

    def _remove(self, message):
        container, key = self._location(message)
        if key is not None:
            del container[key]

    def _rename(self, message):
        container, key = self._location(message)
        if isinstance(container, dict) and key is not None:
            container[self._random.choice([*NAMES, key.upper(), f"{key} "])] = container.pop(key)

    def _swap(self, message):
        (first, a), (second, b) = self._location(message), self._location(message)
        if a is not None and b is not None and first is second:
            first[a], second[b] = second[b], first[a]

    def _nest(self, message):
        container, key = self._location(message)
        if key is None:
            return
        value = container[key]
        for _ in range(self._random.choice([1, 3, 50, 94, 120, 200])):
            value = [value] if self._random.random() < 0.5 else {"a": value}
        container[key] = value

    def _add(self, message):
        container, _ = self._location(message)
        if isinstance(container, dict):
            container[self._random.choice(NAMES)] = json.loads(
                json.dumps(self._random.choice(UNUSUAL_VALUES))
            )
        else:
            container.append(self._random.choice(["x", 1, None]))

    def _duplicate_key(self, text):
        name = self._random.choice(NAMES)
        value = json.dumps(self._random.choice(UNUSUAL_VALUES))
        member = f"{json.dumps(name)}:{value}"
        return "{" + member + "," + text[1:] if self._random.random() < 0.7 else f"{text[:-1]},{member}}}"

    def _unusual_text(self, text):
        return text[:-1] + f',"odd":{self._random.choice(UNUSUAL_JSON)}' + text[-1:]

    def _wrap(self, text):
        return self._random.choice(
            ["[{}]", "[{0},{0}]", " {} ", "[[{}]]", "\t{}\r", '{{"a":{}}}', "[1,{}]"]
        ).format(text)

    def _spread(self, text):
        return text.replace(",", " ,\r\t ").replace(":", " : ")
