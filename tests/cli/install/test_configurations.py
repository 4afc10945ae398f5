"""Texts with one server more, changed or less: everything else in them stays byte for byte."""

import contextlib
import json
import re
import tomllib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from promptkit.clients.configurations import ServerTable
from promptkit.clients.profiles import INSTALLABLE
from promptkit.files.writing import FileRefusedError

pytestmark = pytest.mark.sampled

JSON, TOML, YAML_CLIENT = INSTALLABLE["cursor"], INSTALLABLE["codex"], INSTALLABLE["goose"]
ENTRY = {"command": "/bin/promptkit", "args": ["serve", "/prompts"]}
GOOSE = {"type": "stdio", "enabled": True, "cmd": "/bin/promptkit", "args": ["serve", "/prompts"]}


def added(client, text, entry=ENTRY, name="ours"):
    return ServerTable(client, text).changed(name, entry)


def removed(client, text, name="ours"):
    return ServerTable(client, text).changed(name, None)


def refusal(client, text, entry=ENTRY):
    with pytest.raises(FileRefusedError) as refused:
        added(client, text, entry)
    return str(refused.value)


# JSON, as people and programs write it ---------------------------------------------------------------

blanks = st.text(" \t\n", max_size=3)
comments = st.sampled_from(["", "", "", '// it\'s "so" {\n', "/* , } */", "\n  // a\n  // b\n"])
gaps = st.tuples(blanks, comments, blanks).map("".join)
names = st.sampled_from(["a", "b", 'quo"te', "sla//sh", "é", "/*x*/", "mcpServers"])
scalars = st.one_of(
    st.sampled_from(["1", "-1.50e+3", "true", "null", '"\\u00e9\\/"', '"// no comment"']),
    st.text(max_size=4).map(json.dumps),
)


@st.composite
def objects(draw, depth=2, own=()):
    """The text of an object, with members of its own among others."""
    members = [(json.dumps(name), draw(value)) for name, value in own]
    for name in draw(st.lists(names, unique=True, max_size=3)):
        if name not in dict(own):
            value = scalars if depth == 0 else st.one_of(scalars, objects(depth - 1), arrays(depth - 1))
            members.insert(draw(st.integers(0, len(members))), (json.dumps(name), draw(value)))
    inside = ",".join(
        f"{draw(gaps)}{name}{draw(gaps)}:{draw(gaps)}{value}{draw(gaps)}" for name, value in members
    )
    last = "," if members and draw(st.booleans()) else ""
    return f"{{{inside}{last}{draw(gaps)}}}"


@st.composite
def arrays(draw, depth):
    """The text of an array."""
    item = scalars if depth == 0 else st.one_of(scalars, objects(depth - 1))
    items = draw(st.lists(item, max_size=2))
    return f"[{','.join(items)}{',' if items and draw(st.booleans()) else ''}]"


files = st.one_of(objects(), objects(own=[("mcpServers", objects(1))]))


def is_subsequence(less, more):
    characters = iter(more)
    return all(any(one == other for other in characters) for one in less)


@given(files)
def test_an_entry_is_added_to_any_json(text):
    """
    Every character of the file is still there, in its order, and it says what it said, and the entry.
    """
    table = ServerTable(JSON, text)
    assume("ours" not in table.entries and isinstance(table._data.get("mcpServers", {}), dict))

    changed = table.changed("ours", ENTRY)

    assert is_subsequence(text, changed)
    assert ServerTable(JSON, changed).entries == {**table.entries, "ours": ENTRY}


@given(files)
def test_an_entry_is_taken_out_of_any_json(text):
    """
    What was added goes again, and every comment, member and comma of others stays.
    """
    table = ServerTable(JSON, text)
    assume("ours" not in table.entries and isinstance(table._data.get("mcpServers", {}), dict))

    back = removed(JSON, table.changed("ours", ENTRY))

    assert is_subsequence(re.sub(r"\s", "", text), re.sub(r"\s", "", back))
    assert ServerTable(JSON, back).entries == table.entries


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "mcpServers": {\n    "a": {"command": "x"} // mine\n  }\n}\n',
        '{\r\n\t"mcpServers": {\r\n\t\t"a": 1, /* one */\r\n\t},\r\n}\r\n',
        '\ufeff{\n    "mcpServers": {\n        "a": {}\n    }, // behind\n    "b": [1, 2,]\n}',
        '{"mcpServers": {}}',
    ],
)
def test_taking_out_undoes_adding(text):
    """
    Where others stand on lines of their own, the file is as it was, byte for byte.
    """
    assert removed(JSON, added(JSON, text)) == text


def test_an_entry_stands_as_its_neighbours_do():
    """
    Indentation, ends of lines and a last comma are those of the file.
    """
    text = '{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"}, // mine\r\n\t},\r\n}\r\n'

    assert added(JSON, text) == (
        '{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"}, // mine\r\n'
        '\t\t"ours": {\r\n\t\t\t"command": "/bin/promptkit",\r\n'
        '\t\t\t"args": [\r\n\t\t\t\t"serve",\r\n\t\t\t\t"/prompts"\r\n\t\t\t]\r\n\t\t},\r\n\t},\r\n}\r\n'
    )


#: Entries that people have added to, among others, and what is to stand there.
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
def test_an_entry_is_changed_in_place(client):
    """
    It is written anew where it stands, with what people have added to it; all else stays, comments too.
    """
    text, wanted = IN_PLACE[client.format]

    changed = added(client, text)

    assert changed == wanted
    assert ServerTable(client, changed).entries["ours"] == {**ENTRY, "env": {"A": "1"}}


def test_what_only_toml_has_is_not_written():
    """
    A date that people have put into an entry stays, so that the entry is left alone.
    """
    text = '[mcp_servers.ours]\ncommand = "old"\nsince = 1979-05-27\n'

    assert refusal(TOML, text) == "it cannot be changed without changing other parts of the file"


def test_an_entry_becomes_one_with_a_url():
    """
    What started the server goes, and what people have added stays.
    """
    text = added(JSON, '{"mcpServers": {"ours": {"note": "x"}}}')

    assert ServerTable(JSON, added(JSON, text, {"url": "http://a"})).entries == {
        "ours": {"note": "x", "url": "http://a"}
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "this is not JSON: Expecting property name enclosed in double quotes"),
        ('{"a": 1} x', "this is not JSON: Extra data"),
        ('{"a": 1,, }', "this is not JSON: Expecting property name enclosed in double quotes"),
        ("{,}", "this is not JSON: Expecting property name enclosed in double quotes"),
        ('{"a": NaN}', "this is not JSON: NaN is not a value"),
        ("[]", "it holds no object, so a server cannot be added"),
        ('{"mcpServers": 1}', "'ours' has no place in it, as 'mcpServers' holds something else"),
        (
            '{"mcpServers": {}, "mcpServers": {}}',
            "it has 'mcpServers' twice in one object: take one of them out",
        ),
        ("[" * 100_000, "it is nested too deeply to be read"),
        ('{"a": /* ', "this is not JSON: Expecting value"),
    ],
    ids=lambda value: value[:20],
)
def test_json_that_is_refused(text, said):
    """
    What cannot be read, or has no place for an entry, is told.
    """
    assert refusal(JSON, text) == said


def test_a_fault_has_its_place():
    """
    The line and the column are those of the file, comments counted.
    """
    with pytest.raises(FileRefusedError) as refused:
        ServerTable(JSON, '{\n  // one\n  /* two\n */ "a" 1\n}')

    assert (refused.value.line, refused.value.column) == (4, 9)


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
    """A file of Codex."""
    return draw(pairs) + "".join(f"{draw(ends)}{head}\n{draw(pairs)}" for head in draw(headings))


@given(toml_files())
def test_any_toml_keeps_its_lines(text):
    """
    Every line of the file is still there, in its order, and it says what it said, and the entry; taken out
    again, nothing but an empty line may be left.
    """
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # a key twice
        assume(False)  # noqa: FBT003 (its only parameter)
    changed = added(TOML, text)
    moved = added(TOML, changed, {**ENTRY, "command": "/elsewhere/promptkit"})
    back = removed(TOML, changed)

    assert is_subsequence(text.splitlines(), changed.splitlines())
    assert moved == changed.replace("/bin/", "/elsewhere/")
    assert tomllib.loads(changed) == {
        **before,
        "mcp_servers": {**before.get("mcp_servers", {}), "ours": ENTRY},
    }
    assert [line for line in back.splitlines() if line] == [line for line in text.splitlines() if line]


def test_taking_out_of_toml_undoes_adding():
    """
    The file is as it was, byte for byte, whatever ends its lines; what stands behind the entry stays.
    """
    text = '[mcp_servers.a]\r\ncommand = "x" # y\r\n\r\n[[list]]\r\nb = [\r\n  [1],\r\n]\r\n'
    behind = "\r\n# of the next\r\n[next]\r\na = 1\r\n"

    assert removed(TOML, added(TOML, text)) == text
    assert removed(TOML, added(TOML, text) + behind) == text + behind


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = ", "this is not TOML: Invalid value (at end of document)"),
        ("mcp_servers = 1", "'ours' has no place in it, as 'mcp_servers' holds something else"),
        (
            'mcp_servers = {x = {command = "y"}}',
            "it cannot be changed without changing other parts of the file",
        ),
    ],
)
def test_toml_that_is_refused(text, said):
    """
    What cannot be read, or would be laid out anew, is told.
    """
    assert refusal(TOML, text) == said


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers]\nours = {command = "/bin/promptkit", args = ["serve"]}\n',
        'mcp_servers.ours.command = "/bin/promptkit"\nmcp_servers.ours.args = ["serve"]\n',
    ],
    ids=["inline", "dotted"],
)
def test_an_entry_without_a_heading_is_not_taken_out_of_toml(text):
    """
    An entry that is found, and that cannot be taken out by its lines, is told: it does not count as gone.
    """
    assert "ours" in ServerTable(TOML, text).entries
    with pytest.raises(FileRefusedError, match="cannot be changed"):
        removed(TOML, text)


def test_what_looks_like_a_table_of_toml():
    """
    Lines of a text are no table: nothing is changed in them.
    """
    text = "a = '''\n[mcp_servers.ours]\ncommand = \"x\"\n'''\nmcp_servers.ours.command = \"y\"\n"

    assert refusal(TOML, text) != ""
    with pytest.raises(FileRefusedError):
        removed(TOML, text)


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
def test_taking_out_of_yaml_undoes_adding(text):
    """
    The file is as it was, byte for byte, with comments, blank lines, quotes and ``null``.
    """
    changed = added(YAML_CLIENT, text, GOOSE)

    assert is_subsequence(re.sub(r" ?\{\}", "", text), changed)
    assert removed(YAML_CLIENT, changed) == text


def test_an_entry_stands_behind_the_others_in_yaml():
    """
    It is behind what the last one says, and before the comments behind that.
    """
    lines = "  ours:\n    type: stdio\n    enabled: true\n    cmd: /bin/promptkit\n"
    lines += "    args:\n    - serve\n    - /prompts\n"

    assert added(YAML_CLIENT, GOOSE_FILE, GOOSE) == GOOSE_FILE.replace("lines\n", f"lines\n{lines}")


@pytest.mark.parametrize("text", ["", "# nothing\n", "a: 1", "extensions:\n", "extensions: # none\na: 1\n"])
def test_yaml_without_extensions(text):
    """
    They are made, and what was there stays.
    """
    changed = added(YAML_CLIENT, text, GOOSE)

    assert is_subsequence(text, changed)
    assert YAML(typ="safe").load(changed)["extensions"] == {"ours": GOOSE}


def test_an_entry_of_yaml_is_changed_in_place():
    """
    Its own lines are replaced, those of a list that promptkit wrote in another way before, too, and no other.
    """
    text = added(YAML_CLIENT, GOOSE_FILE, GOOSE)
    older = text.replace("cmd: /bin/promptkit", "cmd: old").replace(
        "args:\n    - serve\n    - /prompts\n", 'args: ["serve", "/x"]\n'
    )

    assert older != text
    assert added(YAML_CLIENT, older, GOOSE) == text


def test_words_that_yaml_takes_for_something_else():
    """
    They stand in quotes, as does what has blanks or marks in it.
    """
    words = ["yes", "null", "1", "a: b", "a #b", "- a", "", "*a", "é", "~", "0x1F", "1979-05-27", "a:"]
    entry = {**GOOSE, "args": words, "cmd": "no", "env": {word: word for word in words}}

    changed = added(YAML_CLIENT, GOOSE_FILE, entry)

    assert ServerTable(YAML_CLIENT, changed).entries["ours"] == entry


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "this is not YAML: expected the node content, but found '<stream end>'"),
        ("a: 1\na: 2\n", "this is not YAML: found duplicate key"),
        ("- a\n", "it holds no mapping, so a server cannot be added"),
        ("extensions: 1\n", "'ours' has no place in it, as 'extensions' holds something else"),
        (
            "extensions: {a: {}}\n",
            "it cannot be changed without changing other parts of the file",
        ),
        (
            "a: >\n  b\n\nextensions:\n- a\n",
            "'ours' has no place in it, as 'extensions' holds something else",
        ),
        ("a: &x 1\nextensions:\n  one:\n    b: *x\n", "it has aliases, "),
        ("base: &x\n  a: {}\nextensions: *x\n", "it has aliases, "),
    ],
)
def test_yaml_that_is_refused(text, said):
    """
    What cannot be read, or would change what stands elsewhere, is told.
    """
    assert refusal(YAML_CLIENT, text, GOOSE).startswith(said)


# All of them ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INSTALLABLE)
def test_a_file_of_nothing_else(name):
    """
    Where there is no file, one is written that holds the entry alone.
    """
    client = INSTALLABLE[name]
    text = added(client, "", {"command": "x"})

    assert ServerTable(client, text).entries == {"ours": {"command": "x"}}
    assert ServerTable(client, "").entries == {}


def test_opencode_has_two_places():
    """
    Where the newer table of servers exists, entries go there; a server that is called so is no such table.
    """
    client, entry = INSTALLABLE["opencode"], {"type": "local", "command": ["x"]}
    newer, older = '{"mcp": {"servers": {}}}', '{"mcp": {"servers": {"type": "local", "command": ["y"]}}}'

    assert json.loads(added(client, newer, entry)) == {"mcp": {"servers": {"ours": entry}}}
    assert set(json.loads(added(client, older, entry))["mcp"]) == {"servers", "ours"}


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 10)
)


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("client", "text", "said"),
    [
        (YAML_CLIENT, BOMB, "it has aliases, "),
        (YAML_CLIENT, MERGES, "it has aliases, "),
        (YAML_CLIENT, "a: &a {<<: *a}\n", "it has aliases, "),
        (YAML_CLIENT, "a: &a\n  b: [*a]\n", "it has aliases, "),
        (YAML_CLIENT, "a: " + "[" * 50_000, "it is nested too deeply to be read"),
        (
            YAML_CLIENT,
            "a: 1\n" * 100_000,
            "it has more than 131,072 characters, which are too many to be read as YAML",
        ),
        (TOML, "a = " + "[" * 100_000, "it is nested too deeply to be read"),
        (TOML, "a = " + "{a = " * 100_000, "it is nested too deeply to be read"),
        (JSON, "[" * 100_000, "it is nested too deeply to be read"),
        (JSON, '{"mcpServers": ' + '{"a":' * 500_000, "it is nested too deeply to be read"),
        (
            JSON,
            "{" + "".join(f'"k{n}":1,' for n in range(200_000)) + '"k199999":2}',
            "it has 'k199999' twice",
        ),
        (JSON, '{"a": "' + r"\"" * 500_000, "this is not JSON"),
        (JSON, "{" + "/* " * 500_000, "this is not JSON"),
        (JSON, "{}" + "/* " * 500_000, "this is not JSON"),
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
        "twice",
        "string",
        "comment",
        "last comment",
    ],
)
def test_a_text_as_a_weapon(client, text, said):
    """
    It is refused, in time that grows with its length, and nothing else is raised.
    """
    assert said in refusal(client, text)


def test_a_deep_text_that_can_be_read():
    """
    What a reader takes, and what compares or copies it does not, is refused as well.
    """
    for depth in (200, 400, 800, 1600):
        for client, text in (
            (JSON, '{"x": ' + "[" * depth + "]" * depth + "}"),
            (TOML, "x = " + "[" * depth + "]" * depth + "\n"),
            (TOML, f"{'.'.join('a' * depth)} = 1\n"),
            (YAML_CLIENT, "x: " + "[" * depth + "]" * depth + "\n"),
        ):
            with contextlib.suppress(FileRefusedError):
                added(client, text, GOOSE if client is YAML_CLIENT else ENTRY)
