"""Adding, changing and removing a server in a configuration file keeps every other byte."""

import contextlib
import json
import re
import tomllib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from promptkit.clients.configuration_files import ServerTable
from promptkit.clients.profiles import INSTALLABLE
from promptkit.files.edits import FileEditError

JSON, TOML, YAML_CLIENT = INSTALLABLE["cursor"], INSTALLABLE["codex"], INSTALLABLE["goose"]
ENTRY = {"command": "/bin/promptkit", "args": ["serve", "/prompts"]}
GOOSE = {"type": "stdio", "enabled": True, "cmd": "/bin/promptkit", "args": ["serve", "/prompts"]}


def add(client, text, entry=ENTRY, name="ours"):
    return ServerTable(client, text).with_entry(name, entry)


def remove(client, text, name="ours"):
    return ServerTable(client, text).with_entry(name, None)


def rejection(client, text, entry=ENTRY):
    with pytest.raises(FileEditError) as error:
        add(client, text, entry)
    return str(error.value)


# JSON -------------------------------------------------------------------------------------------------

blanks = st.text(" \t\n", max_size=3)
comments = st.sampled_from(["", "", "", '// it\'s "so" {\n', "/* , } */", "\n  // a\n  // b\n"])
gaps = st.tuples(blanks, comments, blanks).map("".join)
keys = st.sampled_from(["a", "b", 'quo"te', "sla//sh", "é", "/*x*/", "mcpServers"])
scalars = st.one_of(
    st.sampled_from(["1", "-1.50e+3", "true", "null", '"\\u00e9\\/"', '"// no comment"']),
    st.text(max_size=4).map(json.dumps),
)


@st.composite
def objects(draw, depth=2, required=()):
    """Generate the text of an object that has the required members among others."""
    members = [(json.dumps(name), draw(value)) for name, value in required]
    for name in draw(st.lists(keys, unique=True, max_size=3)):
        if name not in dict(required):
            value = scalars if depth == 0 else st.one_of(scalars, objects(depth - 1), arrays(depth - 1))
            members.insert(draw(st.integers(0, len(members))), (json.dumps(name), draw(value)))
    inside = ",".join(
        f"{draw(gaps)}{name}{draw(gaps)}:{draw(gaps)}{value}{draw(gaps)}" for name, value in members
    )
    last = "," if members and draw(st.booleans()) else ""
    return f"{{{inside}{last}{draw(gaps)}}}"


@st.composite
def arrays(draw, depth):
    """Generate the text of an array."""
    item = scalars if depth == 0 else st.one_of(scalars, objects(depth - 1))
    items = draw(st.lists(item, max_size=2))
    return f"[{','.join(items)}{',' if items and draw(st.booleans()) else ''}]"


files = st.one_of(objects(), objects(required=[("mcpServers", objects(1))]))


def is_subsequence(less, more):
    characters = iter(more)
    return all(any(expected == character for character in characters) for expected in less)


@given(files)
def test_added_json_entry(text):
    """Adding an entry keeps every character and every other value of the file."""
    table = ServerTable(JSON, text)
    assume("ours" not in table.entries and isinstance(table._data.get("mcpServers", {}), dict))

    changed = table.with_entry("ours", ENTRY)

    assert is_subsequence(text, changed)
    assert ServerTable(JSON, changed).entries == {**table.entries, "ours": ENTRY}


@given(files)
def test_removed_json_entry(text):
    """Removing an added entry keeps all comments, and the members and commas of other entries."""
    table = ServerTable(JSON, text)
    assume("ours" not in table.entries and isinstance(table._data.get("mcpServers", {}), dict))

    restored = remove(JSON, table.with_entry("ours", ENTRY))

    assert is_subsequence(re.sub(r"\s", "", text), re.sub(r"\s", "", restored))
    assert ServerTable(JSON, restored).entries == table.entries


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "mcpServers": {\n    "a": {"command": "x"} // mine\n  }\n}\n',
        '{\r\n\t"mcpServers": {\r\n\t\t"a": 1, /* one */\r\n\t},\r\n}\r\n',
        '\ufeff{\n    "mcpServers": {\n        "a": {}\n    }, // behind\n    "b": [1, 2,]\n}',
        '{"mcpServers": {}}',
    ],
)
def test_removing_undoes_adding(text):
    """If entries are on separate lines, removing one restores the file byte for byte."""
    assert remove(JSON, add(JSON, text)) == text


def test_added_entry_follows_the_style_of_the_file():
    """Indentation, line ends and a trailing comma follow the file."""
    text = '{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"}, // mine\r\n\t},\r\n}\r\n'

    assert add(JSON, text) == (
        '{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"}, // mine\r\n'
        '\t\t"ours": {\r\n\t\t\t"command": "/bin/promptkit",\r\n'
        '\t\t\t"args": [\r\n\t\t\t\t"serve",\r\n\t\t\t\t"/prompts"\r\n\t\t\t]\r\n\t\t},\r\n\t},\r\n}\r\n'
    )


#: Entries with values that users have added, before and after a change.
IN_PLACE = {
    "json": (
        """{ // a
  "mcpServers": {
    "ours": {"env": {"A": "1"}, "command": "old", "args": []}, // b
    "c": {}
  }
}
""",
        """{ // a
  "mcpServers": {
    "ours": {
      "env": {
        "A": "1"
      },
      "command": "/bin/promptkit",
      "args": [
        "serve",
        "/prompts"
      ]
    }, // b
    "c": {}
  }
}
""",
    ),
    "toml": (
        """# a
[mcp_servers.ours]
command = "old"
args = [
]

[mcp_servers.ours.env]
A = "1"

# b
[c]
""",
        """# a
[mcp_servers.ours]
command = "/bin/promptkit"
args = ["serve", "/prompts"]
env = { A = "1" }

# b
[c]
""",
    ),
}


@pytest.mark.parametrize("client", [JSON, TOML], ids=["json", "toml"])
def test_entry_is_changed_in_place(client):
    """
    An entry is rewritten in place with the user's additions, and everything around it stays, even comments.
    """
    text, expected = IN_PLACE[client.format]

    changed = add(client, text)

    assert changed == expected
    assert ServerTable(client, changed).entries["ours"] == {**ENTRY, "env": {"A": "1"}}


def test_entry_with_toml_date_is_rejected():
    """An entry with a TOML date cannot be rewritten, so the change is rejected."""
    text = '[mcp_servers.ours]\ncommand = "old"\nsince = 1979-05-27\n'

    assert rejection(TOML, text) == "it cannot be changed without changing other parts of the file"


def test_command_becomes_url():
    """The command is replaced by the URL, and the user's additions stay."""
    text = add(JSON, '{"mcpServers": {"ours": {"note": "x"}}}')

    assert ServerTable(JSON, add(JSON, text, {"url": "http://a"})).entries == {
        "ours": {"note": "x", "url": "http://a"}
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "it is not valid JSON: Expecting property name enclosed in double quotes"),
        ('{"a": 1} x', "it is not valid JSON: Extra data"),
        ('{"a": 1,, }', "it is not valid JSON: Expecting property name enclosed in double quotes"),
        ("{,}", "it is not valid JSON: Expecting property name enclosed in double quotes"),
        ("[]", "it is not an object, so a server cannot be added"),
        ('{"mcpServers": 1}', "the server 'ours' cannot be added, because 'mcpServers' is not a table"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a": /* ', "it is not valid JSON: Expecting value"),
    ],
    ids=lambda value: value[:20],
)
def test_invalid_json(text, message):
    """Unreadable files, and files that cannot hold an entry, are rejected."""
    assert rejection(JSON, text) == message


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (
            '{"mcpServers": {"a": {}}, "mcpServers": {}}',
            '{"mcpServers": {"a": {}}, "mcpServers": {"ours": {}}}',
        ),
        ('{"x": 1, "mcpServers": {}, "x": 2}', '{"x": 1, "mcpServers": {"ours": {}}, "x": 2}'),
    ],
)
def test_duplicate_keys(text, result):
    """If a key occurs twice, its last value counts, as in JavaScript."""
    changed = ServerTable(JSON, text).with_entry("ours", {})

    assert "".join(changed.split()) == "".join(result.split())


def test_error_location():
    """An error has the line and column in the file, counting comments."""
    with pytest.raises(FileEditError) as error:
        ServerTable(JSON, '{\n  // one\n  /* two\n */ "a" 1\n}')

    assert (error.value.line, error.value.column) == (4, 9)


# TOML -------------------------------------------------------------------------------------------------

keys = st.sampled_from(["a", "b", '"quo ted"', "model"])
values = st.sampled_from(["1", '"x" # why', "[1, 2] ", "1979-05-27", "{x = 1}", "'''a\nb'''", "0x1F"])
pairs = st.dictionaries(keys, values, max_size=3).map(
    lambda found: "".join(f"{key} = {value}\n" for key, value in found.items())
)
headings = st.lists(
    st.sampled_from(["[other]", "[mcp_servers.x]", "[[list]]", "[mcp_servers.y.env]", "# end"]),
    unique=True,
    max_size=4,
)


ends = st.text("\n", max_size=2)


@st.composite
def toml_files(draw):
    """Generate a configuration file of Codex."""
    return draw(pairs) + "".join(f"{draw(ends)}{head}\n{draw(pairs)}" for head in draw(headings))


@given(toml_files())
def test_toml_keeps_its_lines(text):
    """Adding an entry keeps every line and every value; removing it leaves at most an empty line."""
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # a key twice
        assume(False)  # noqa: FBT003 (its only parameter)
    changed = add(TOML, text)
    moved = add(TOML, changed, {**ENTRY, "command": "/elsewhere/promptkit"})
    restored = remove(TOML, changed)

    assert is_subsequence(text.splitlines(), changed.splitlines())
    assert moved == changed.replace("/bin/", "/elsewhere/")
    assert tomllib.loads(changed) == {
        **before,
        "mcp_servers": {**before.get("mcp_servers", {}), "ours": ENTRY},
    }
    assert [line for line in restored.splitlines() if line] == [line for line in text.splitlines() if line]


def test_removing_from_toml_undoes_adding():
    """
    Removing an entry restores the file byte for byte, whatever its line ends, and keeps what follows the
    entry.
    """
    text = '[mcp_servers.a]\r\ncommand = "x" # y\r\n\r\n[[list]]\r\nb = [\r\n  [1],\r\n]\r\n'
    following = "\r\n# of the next\r\n[next]\r\na = 1\r\n"

    assert remove(TOML, add(TOML, text)) == text
    assert remove(TOML, add(TOML, text) + following) == text + following


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "it is not valid TOML: Invalid value (at end of document)"),
        ("mcp_servers = 1", "the server 'ours' cannot be added, because 'mcp_servers' is not a table"),
        (
            'mcp_servers = {x = {command = "y"}}',
            "it cannot be changed without changing other parts of the file",
        ),
    ],
)
def test_invalid_toml(text, message):
    """Files that are unreadable, or would be reformatted, are rejected."""
    assert rejection(TOML, text) == message


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers]\nours = {command = "/bin/promptkit", args = ["serve"]}\n',
        'mcp_servers.ours.command = "/bin/promptkit"\nmcp_servers.ours.args = ["serve"]\n',
    ],
    ids=["inline", "dotted"],
)
def test_inline_toml_entry_is_not_removed(text):
    """An entry without a table header is found, but cannot be removed."""
    assert "ours" in ServerTable(TOML, text).entries
    with pytest.raises(FileEditError, match="cannot be changed"):
        remove(TOML, text)


def test_toml_table_in_a_string():
    """Lines of a multi-line string are not mistaken for a table."""
    text = "a = '''\n[mcp_servers.ours]\ncommand = \"x\"\n'''\nmcp_servers.ours.command = \"y\"\n"

    assert rejection(TOML, text) != ""
    with pytest.raises(FileEditError):
        remove(TOML, text)


# YAML -------------------------------------------------------------------------------------------------

GOOSE_FILE = """\
GOOSE_PROVIDER: "openai" # the usual
extensions:
  developer:
    args:
    - a
    - "b: c"
    bundled: null
    # mine
    description: |
      two

      lines
  # behind the last

GOOSE_MODE: ~
"""


@pytest.mark.parametrize(
    "text",
    [
        GOOSE_FILE,
        GOOSE_FILE.replace("\n", "\r\n"),
        "extensions:\n    one:\n        a:   1\n",
        "extensions: {} # none\nb: 2\n",
        "extensions:\n  one: {a: 1, b: [x]}\nlast: >-\n  text\n",
    ],
)
def test_removing_from_yaml_undoes_adding(text):
    """Removing an entry restores the file byte for byte, with its comments, blank lines, quotes and nulls."""
    changed = add(YAML_CLIENT, text, GOOSE)

    assert is_subsequence(re.sub(r" ?\{\}", "", text), changed)
    assert remove(YAML_CLIENT, changed) == text


def test_yaml_entry_is_appended():
    """An entry is added after the last entry, and before the comments after that entry."""
    lines = "  ours:\n    type: stdio\n    enabled: true\n    cmd: /bin/promptkit\n"
    lines += "    args:\n    - serve\n    - /prompts\n"

    assert add(YAML_CLIENT, GOOSE_FILE, GOOSE) == GOOSE_FILE.replace("lines\n", f"lines\n{lines}")


@pytest.mark.parametrize("text", ["", "# nothing\n", "a: 1", "extensions:\n", "extensions: # none\na: 1\n"])
def test_yaml_without_extensions(text):
    """Missing or empty `extensions` are created, and the other lines stay."""
    changed = add(YAML_CLIENT, text, GOOSE)

    assert is_subsequence(text, changed)
    assert YAML(typ="safe").load(changed)["extensions"] == {"ours": GOOSE}


def test_yaml_entry_is_changed_in_place():
    """Only the lines of the entry are replaced, even if its list was written in another style."""
    text = add(YAML_CLIENT, GOOSE_FILE, GOOSE)
    older = text.replace("cmd: /bin/promptkit", "cmd: old").replace(
        "args:\n    - serve\n    - /prompts\n", 'args: ["serve", "/x"]\n'
    )

    assert older != text
    assert add(YAML_CLIENT, older, GOOSE) == text


def test_yaml_strings_are_quoted():
    """Strings that YAML would parse as another type are quoted, and so are special characters."""
    words = ["yes", "null", "1", "a: b", "a #b", "- a", "", "*a", "é", "~", "0x1F", "1979-05-27", "a:"]
    entry = {**GOOSE, "args": words, "cmd": "no", "env": {word: word for word in words}}

    changed = add(YAML_CLIENT, GOOSE_FILE, entry)

    assert ServerTable(YAML_CLIENT, changed).entries["ours"] == entry


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "it is not valid YAML: expected the node content, but found '<stream end>'"),
        ("a: 1\na: 2\n", "it is not valid YAML: found duplicate key"),
        ("- a\n", "it is not a mapping, so a server cannot be added"),
        ("extensions: 1\n", "the server 'ours' cannot be added, because 'extensions' is not a table"),
        (
            "extensions: {a: {}}\n",
            "it cannot be changed without changing other parts of the file",
        ),
        (
            "a: >\n  b\n\nextensions:\n- a\n",
            "the server 'ours' cannot be added, because 'extensions' is not a table",
        ),
        ("a: &x 1\nextensions:\n  one:\n    b: *x\n", "it contains aliases, "),
        ("base: &x\n  a: {}\nextensions: *x\n", "it contains aliases, "),
    ],
)
def test_invalid_yaml(text, message):
    """Files that are unreadable, or would change elsewhere, are rejected."""
    assert rejection(YAML_CLIENT, text, GOOSE).startswith(message)


# All formats ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INSTALLABLE)
def test_new_file(name):
    """If there is no file, the new file contains only the entry."""
    client = INSTALLABLE[name]
    text = add(client, "", {"command": "x"})

    assert ServerTable(client, text).entries == {"ours": {"command": "x"}}
    assert ServerTable(client, "").entries == {}


def test_opencode_tables():
    """
    The entry is added to opencode's `servers` table, if that exists and is not a server named `servers`.
    """
    client, entry = INSTALLABLE["opencode"], {"type": "local", "command": ["x"]}
    newer, older = '{"mcp": {"servers": {}}}', '{"mcp": {"servers": {"type": "local", "command": ["y"]}}}'

    assert json.loads(add(client, newer, entry)) == {"mcp": {"servers": {"ours": entry}}}
    assert set(json.loads(add(client, older, entry))["mcp"]) == {"servers", "ours"}


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 10)
)


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("client", "text", "message"),
    [
        (YAML_CLIENT, BOMB, "it contains aliases, "),
        (YAML_CLIENT, MERGES, "it contains aliases, "),
        (YAML_CLIENT, "a: &a {<<: *a}\n", "it contains aliases, "),
        (YAML_CLIENT, "a: &a\n  b: [*a]\n", "it contains aliases, "),
        (YAML_CLIENT, "a: " + "[" * 50_000, "it is nested too deeply"),
        (
            YAML_CLIENT,
            "a: 1\n" * 100_000,
            "it has more than 131,072 characters, the limit for YAML files",
        ),
        (TOML, "a = " + "[" * 100_000, "it is nested too deeply"),
        (TOML, "a = " + "{a = " * 100_000, "it is nested too deeply"),
        (JSON, "[" * 100_000, "it is nested too deeply"),
        (JSON, '{"mcpServers": ' + '{"a":' * 500_000, "it is nested too deeply"),
        (JSON, '{"a": "' + r"\"" * 500_000, "it is not valid JSON"),
        (JSON, "{" + "/* " * 500_000, "it is not valid JSON"),
        (JSON, "{}" + "/* " * 500_000, "it is not valid JSON"),
    ],
    ids=[
        "bomb",
        "merges",
        "merge loop",
        "loop",
        "deep YAML",
        "long YAML",
        "deep TOML",
        "deep tables",
        "deep JSON",
        "deep objects",
        "string",
        "comment",
        "last comment",
    ],
)
def test_hostile_text(client, text, message):
    """Hostile text is rejected in linear time with a `FileEditError`."""
    assert message in rejection(client, text)


def test_deeply_nested_text():
    """Deeply nested text is edited, or rejected with a `FileEditError`."""
    for depth in (200, 800):
        for client, text in (
            (JSON, '{"x": ' + "[" * depth + "]" * depth + "}"),
            (TOML, "x = " + "[" * depth + "]" * depth + "\n"),
            (TOML, f"{'.'.join('a' * depth)} = 1\n"),
            (YAML_CLIENT, "x: " + "[" * depth + "]" * depth + "\n"),
        ):
            with contextlib.suppress(FileEditError):
                add(client, text, GOOSE if client is YAML_CLIENT else ENTRY)
