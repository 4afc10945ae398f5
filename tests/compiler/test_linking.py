"""Merging and linking: which version of each file is served, given what the files declare."""

from pathlib import Path

import pytest

from promptkit import prompt, resource
from promptkit.compiler.compilation import compile_files
from promptkit.compiler.linking import link, merge
from promptkit.errors.diagnostics import Diagnostic, Location
from promptkit.errors.rules import Rule
from promptkit.loader.recipes import LoadedFile, Recipes


def make_file(file, *declarations, error=""):
    """Build a file with the given declarations, or with an import error if *error* is given."""
    diagnostics = (Diagnostic(Rule.IMPORT_FAILED, error, "fix it", Location(file)),) if error else ()
    prompts = tuple(declaration for declaration in declarations if hasattr(declaration, "options"))
    return LoadedFile(
        Path(file),
        prompts,
        tuple(declaration for declaration in declarations if declaration not in prompts),
        diagnostics,
    )


def make_prompt(name, text, annotation=str):
    """Build a prompt with the given name and *text*; an unsupported annotation makes it invalid."""

    def function(a: annotation = "") -> str:
        return text

    return prompt(name=name)(function)


def make_resource(uri, text):
    """Build a resource."""
    return resource(uri)(lambda: text)


class Folder:
    """Recipes that are loaded repeatedly."""

    def __init__(self):
        self.files, self.owners, self.catalog = [], {}, None

    def load(self, *files):
        """Load the current version of each file, and return the rendered text of each prompt by name."""
        merged = merge(self.files, compile_files(Recipes(by_file=files)), self.owners)
        linked = link(merged, owners=self.owners)
        self.files, self.owners, self.catalog = merged, linked.owners, linked.catalog
        return {name: compiled.render().messages[0].content.text for name, compiled in self.catalog.items()}

    @property
    def stale_files(self):
        """The files that are served in their previous version, with the number of loads since then."""
        return {str(file.file): file.age for file in self.files if file.age}

    @property
    def diagnostic_codes(self):
        """The file and the code of each diagnostic."""
        return [(diagnostic.location.file, diagnostic.rule.value) for diagnostic in self.catalog.diagnostics]


@pytest.fixture
def folder():
    """A folder that was never loaded."""
    return Folder()


def test_broken_file_keeps_its_previous_version(folder):
    """While a file is broken, its previous version is served; the other files are updated."""
    folder.load(make_file("a", make_prompt("x", "1")), make_file("b", make_prompt("y", "1")))

    for count in (1, 2, 3):
        texts = folder.load(make_file("a", error="no"), make_file("b", make_prompt("y", f"{count}")))

        assert texts == {"x": "1", "y": f"{count}"}
        assert folder.stale_files == {"a": count}
        assert folder.diagnostic_codes == [("a", "PK101")]


def test_fixed_file_replaces_its_previous_version(folder):
    """A fixed file replaces the previous version that was served."""
    folder.load(make_file("a", make_prompt("x", "1"), make_prompt("old", "1")))
    folder.load(make_file("a", error="no"))

    assert folder.load(make_file("a", make_prompt("x", "2"))) == {"x": "2"}
    assert (folder.stale_files, folder.diagnostic_codes) == ({}, [])


def test_removed_file_leaves_the_catalog(folder):
    """A removed file is removed from the catalog, even if it was broken."""
    folder.load(make_file("a", make_prompt("x", "1")), make_file("b", make_prompt("y", "1")))
    folder.load(make_file("a", error="no"), make_file("b", make_prompt("y", "1")))

    assert folder.load(make_file("b", make_prompt("y", "1"))) == {"y": "1"}


def test_initially_broken_file_is_updated_unless_it_loses_a_prompt(folder):
    """A file that was never valid is updated despite its errors, as long as it loses no prompt."""
    bad = make_prompt("bad", "", object)

    assert folder.load(make_file("a", make_prompt("x", "1"), bad)) == {"x": "1"}
    assert folder.load(make_file("a", make_prompt("x", "2"), bad)) == {"x": "2"}
    assert folder.load(make_file("a", make_prompt("z", "3"), bad)) == {"x": "2"}
    assert folder.load(make_file("a", make_prompt("x", "4"), make_prompt("z", "4"), bad)) == {
        "x": "4",
        "z": "4",
    }
    assert folder.load(make_file("a", error="no")) == {"x": "4", "z": "4"}
    assert folder.load(make_file("a", make_prompt("x", "5"))) == {"x": "5"}


def test_valid_file_is_kept_whole(folder):
    """A valid file is kept whole while new versions have errors, even when the errors change."""
    folder.load(make_file("a", make_prompt("x", "1")))

    assert folder.load(make_file("a", make_prompt("x", "2"), make_prompt("bad", "", object))) == {"x": "1"}
    assert folder.load(make_file("a", make_prompt("x", "3"), make_prompt("worse", "", object))) == {"x": "1"}


def test_last_served_version_stays(folder):
    """If two broken files declared the same name, the version that was served last stays."""
    folder.load(make_file("a", make_prompt("x", "1")), make_file("b"))
    folder.load(make_file("a", error="no"), make_file("b", make_prompt("x", "2")))

    assert folder.load(make_file("a", error="no"), make_file("b", error="no")) == {"x": "2"}


def test_shared_definition_is_not_a_duplicate(folder):
    """One definition in two files is not a duplicate, even while one file keeps an older version."""
    first, second = make_prompt("x", "1"), make_prompt("x", "2")
    folder.load(make_file("a", first), make_file("b", first))

    assert folder.diagnostic_codes == []
    assert folder.load(make_file("a", error="no"), make_file("b", second)) == {"x": "2"}
    assert folder.diagnostic_codes == [("a", "PK101")]


@pytest.mark.parametrize("newcomer", ["a", "z"])
def test_served_name_cannot_be_taken(folder, newcomer):
    """A file cannot take over a name that another file serves, whichever file sorts first."""
    owner = make_file("m", make_prompt("x", "owner"))
    folder.load(make_file(newcomer, make_prompt("y", "1")), owner)

    texts = folder.load(make_file(newcomer, make_prompt("y", "2"), make_prompt("x", "taken")), owner)

    assert texts == {"x": "owner", "y": "1"}
    assert folder.stale_files == {newcomer: 1}
    assert folder.load(make_file(newcomer, make_prompt("y", "3"), make_prompt("x", "mine"))) == {
        "x": "mine",
        "y": "3",
    }


def test_new_file_cannot_take_over_a_name(folder):
    """A new file cannot take over a name from another file; its other prompts are served."""
    owner = make_file("m", make_prompt("x", "owner"))
    folder.load(owner)

    assert folder.load(make_file("a", make_prompt("x", "a"), make_prompt("y", "a")), owner) == {
        "x": "owner",
        "y": "a",
    }


def test_owner_keeps_its_name_at_every_load(folder):
    """The file that serves a name keeps it at every load, even when both files break."""
    owner, newcomer = (
        make_file("m", make_prompt("x", "owner")),
        make_file("a", make_prompt("x", "a"), make_prompt("y", "a")),
    )
    folder.load(owner)
    for _ in range(2):
        assert folder.load(newcomer, owner) == {"x": "owner", "y": "a"}

    assert folder.load(make_file("a", error="no"), make_file("m", error="no")) == {"x": "owner", "y": "a"}
    assert [rule for _, rule in folder.diagnostic_codes] == ["PK202", "PK101", "PK101"]


def test_initial_duplicates_do_not_block_updates(folder):
    """Duplicates that exist from the first load do not stop either file from being updated."""
    folder.load(
        make_file("a", make_prompt("x", "a1")), make_file("b", make_prompt("x", "b1"), make_prompt("y", "1"))
    )

    texts = folder.load(
        make_file("a", make_prompt("x", "a2")), make_file("b", make_prompt("x", "b2"), make_prompt("y", "2"))
    )

    assert texts["y"] == "2"
    assert folder.stale_files == {}


def test_moved_prompt_is_not_a_duplicate(folder):
    """A prompt that moves between valid files is not a duplicate."""
    folder.load(make_file("a", make_prompt("x", "a"), make_prompt("y", "a")), make_file("b"))

    assert folder.load(make_file("a", make_prompt("y", "a")), make_file("b", make_prompt("x", "b"))) == {
        "x": "b",
        "y": "a",
    }
    assert folder.diagnostic_codes == []


def test_resources_are_kept_by_uri_template(folder):
    """Resources are kept by URI template as prompts are by name."""
    folder.load(make_file("a", make_resource("n:1", "a")), make_file("b", make_resource("n:2", "b")))
    folder.load(
        make_file("a", make_resource("n:1", "a"), make_resource("n:2", "a")), make_file("b", error="no")
    )

    assert folder.catalog.read("n:2").text == "a"
    assert folder.stale_files == {"b": 1}


def test_prompt_and_resource_can_share_a_name(folder):
    """A prompt and a resource can have the same name."""
    assert folder.load(make_file("a", make_prompt("n:1", "p"), make_resource("n:1", "r"))) == {}
    assert [diagnostic.rule for diagnostic in folder.catalog.diagnostics] == [Rule.BAD_NAME]
    assert folder.catalog.read("n:1").text == "r"


def test_linking_does_not_depend_on_the_order_of_files(folder):
    """The catalog does not depend on the order in which files are linked."""
    files = compile_files(
        Recipes(
            by_file=[
                make_file(name, make_prompt("x", name), make_prompt(f"own-{name}", name)) for name in "abc"
            ]
        ),
    )

    forward, backward = link(files).catalog, link(files[::-1]).catalog

    assert (list(forward), forward.diagnostics) == (list(backward), backward.diagnostics)
