"""Random messages that conform to the published schemas."""

from tests.wire import MODERN, REVISIONS, published_schema

#: Names of existing items by member; random names would hardly ever exist.
KNOWN = {
    "name": ["plain", "typed", "waits", "slow", "fails", "refuses", "pictures", "asks", "cached", "unknown"],
    "uri": ["note://one", "note://two", "page://first", "page://x%20y", "none://there", "note://"],
    "protocolVersion": REVISIONS,
    "io.modelcontextprotocol/protocolVersion": [*[MODERN] * 9, "2025-11-25", "2031-01-01"],
    "cursor": ["", "bm9wZQ", "zzz"],
    "value": ["", "r", "py", "1"],
}

STRINGS = [
    "",
    "a",
    "code",
    "count",
    "5",
    "yes",
    "2026-01-31",
    "ß€😀",
    "\x00\n\u2028",
    "x" * 300,
    "note://one",
]
NUMBERS = [0, 1, -1, 5, 2**31, 2**53, -(2**63), 0.5, 1e300]
MAX_DEPTH = 6


class Shapes:
    """
    A generator of messages that a client can send, in one revision.

    Args:
        revision:
            The revision of the schema.

        random:
            The random generator.
    """

    def __init__(self, revision, random):
        schema = published_schema(revision)
        self._definitions = schema.get("$defs") or schema["definitions"]
        self._random = random
        self._requests = self._kinds("ClientRequest")
        self._notifications = self._kinds("ClientNotification")

    @property
    def methods(self):
        """The methods of all requests."""
        return [kind["properties"]["method"]["const"] for kind in self._requests]

    def request(self, number):
        """Return a request of any kind."""
        return {"jsonrpc": "2.0", "id": number, **self._members(self._random.choice(self._requests))}

    def notification(self):
        """Return a notification of any kind."""
        return {"jsonrpc": "2.0", **self._members(self._random.choice(self._notifications))}

    def _kinds(self, name):
        union = self._definitions[name]
        kinds = union.get("anyOf", [union])
        return [self._resolved(kind) for kind in kinds]

    def _members(self, kind):
        members = {"method": kind["properties"]["method"]["const"]}
        params = kind["properties"].get("params")
        if params and ("params" in kind["required"] or self._random.random() < 0.7):
            members["params"] = self.draw(params)
        return members

    def _resolved(self, schema):
        while "$ref" in schema:
            schema = self._definitions[schema["$ref"].rpartition("/")[2]]
        return schema

    def draw(self, schema, depth=0, member=""):
        """Return a value that conforms to *schema*, as the value of *member*."""
        schema, chance = self._resolved(schema), self._random
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return chance.choice(schema["enum"])
        for union in ("anyOf", "oneOf"):
            if union in schema:
                return self.draw(chance.choice(schema[union]), depth, member)
        if "allOf" in schema:
            parts = [self.draw(part, depth, member) for part in schema["allOf"]]
            return {name: value for part in parts for name, value in part.items()}
        kind = schema.get("type", "string" if depth > MAX_DEPTH else "any")
        kind = chance.choice(kind) if isinstance(kind, list) else kind
        return getattr(self, f"_{kind}")(schema, depth, member)

    def _object(self, schema, depth, _member):
        required, chance = set(schema.get("required", ())), self._random
        value = {
            name: self.draw(inner, depth + 1, name)
            for name, inner in schema.get("properties", {}).items()
            if name in required or (depth <= MAX_DEPTH and chance.random() < 0.4)
        }
        additional = schema.get("additionalProperties")
        if additional is not None and depth <= MAX_DEPTH:
            inner = additional if isinstance(additional, dict) else {}
            names = chance.sample(["code", "count", "seconds", "name", "word", "x"], chance.randrange(4))
            value |= {name: self.draw(inner, depth + 1) for name in names}
        return value

    def _array(self, schema, depth, _member):
        count = 0 if depth > MAX_DEPTH else self._random.randrange(4)
        return [self.draw(schema.get("items", {}), depth + 1) for _ in range(count)]

    def _string(self, _schema, _depth, member):
        if member in KNOWN and self._random.random() < 0.9:
            return self._random.choice(KNOWN[member])
        return self._random.choice(STRINGS)

    def _integer(self, schema, _depth, _member):
        integers = [number for number in NUMBERS if isinstance(number, int)]
        return max(schema.get("minimum", -(2**63)), self._random.choice(integers))

    def _number(self, schema, _depth, _member):
        low, high = schema.get("minimum", -1e308), schema.get("maximum", 1e308)
        return min(high, max(low, self._random.choice(NUMBERS)))

    def _boolean(self, _schema, _depth, _member):
        return self._random.random() < 0.5

    def _null(self, _schema, _depth, _member):
        return None

    def _any(self, schema, depth, member):
        kind = self._random.choice(["string", "number", "boolean", "null", "object", "array"])
        return getattr(self, f"_{kind}")(schema, depth + 1, member)
