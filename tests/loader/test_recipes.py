"""Merging and linking: which version of each file is served, given what the files declare."""

from pathlib import Path

import pytest

from promptkit import prompt, resource
from promptkit.compiler.compilation import compile_files
from promptkit.compiler.linking import link, merge
from promptkit.errors.diagnostics import Diagnostic, Location
from promptkit.errors.rules import Rule
from promptkit.loader.recipes import LoadedFile, Recipes


def declares(file, *made, fault=""):
    """Build what a file declares, with an import error if *fault* is given."""
    found = (Diagnostic(Rule.IMPORT_FAILED, fault, "mend it", Location(file)),) if fault else ()
    prompts = tuple(one for one in made if hasattr(one, "options"))
    return LoadedFile(Path(file), prompts, tuple(one for one in made if one not in prompts), found)


def say(name, text, annotation=str):
    """Build a prompt with the given name and *text*; an unsupported annotation makes it invalid."""

    def function(a: annotation = "") -> str:
        return text

    return prompt(name=name)(function)


def document(uri, text):
    """Build a resource."""
    return resource(uri)(lambda: text)


class Folder:
    """Recipes that are loaded repeatedly."""

    def __init__(self):
        self.files, self.owners, self.catalog = [], {}, None

    def load(self, *declared):
        """Load what the files declare now, and return the rendered text of each prompt by name."""
        merged = merge(self.files, compile_files(Recipes(by_file=declared)), self.owners)
        linked = link(merged, owners=self.owners)
        self.files, self.owners, self.catalog = merged, linked.owners, linked.catalog
        return {name: made.render().messages[0].content.text for name, made in self.catalog.items()}

    @property
    def kept(self):
        """The files that are served in their previous version, with the number of loads since then."""
        return {str(file.file): file.age for file in self.files if file.age}

    @property
    def faults(self):
        """The file and the code of each diagnostic."""
        return [(found.location.file, found.rule.value) for found in self.catalog.diagnostics]


@pytest.fixture
def folder():
    """A folder that was never loaded."""
    return Folder()


def test_a_fault_keeps_its_file_alone(folder):
    """While a file is broken, its previous version is served; the other files are updated."""
    folder.load(declares("a", say("x", "1")), declares("b", say("y", "1")))

    for count in (1, 2, 3):
        said = folder.load(declares("a", fault="no"), declares("b", say("y", f"{count}")))

        assert said == {"x": "1", "y": f"{count}"}
        assert folder.kept == {"a": count}
        assert folder.faults == [("a", "PK101")]


def test_a_kept_file_is_mended(folder):
    """A fixed file replaces its kept version."""
    folder.load(declares("a", say("x", "1"), say("old", "1")))
    folder.load(declares("a", fault="no"))

    assert folder.load(declares("a", say("x", "2"))) == {"x": "2"}
    assert (folder.kept, folder.faults) == ({}, [])


def test_a_file_that_is_gone_is_not_kept(folder):
    """A removed file is removed from the catalog, even if it was broken."""
    folder.load(declares("a", say("x", "1")), declares("b", say("y", "1")))
    folder.load(declares("a", fault="no"), declares("b", say("y", "1")))

    assert folder.load(declares("b", say("y", "1"))) == {"y": "1"}


def test_a_fault_from_the_start_is_replaced_by_what_is_no_worse(folder):
    """A file that never was valid is updated despite its errors, as long as it loses no prompt."""
    bad = say("bad", "", object)

    assert folder.load(declares("a", say("x", "1"), bad)) == {"x": "1"}
    assert folder.load(declares("a", say("x", "2"), bad)) == {"x": "2"}
    assert folder.load(declares("a", say("z", "3"), bad)) == {"x": "2"}
    assert folder.load(declares("a", say("x", "4"), say("z", "4"), bad)) == {"x": "4", "z": "4"}
    assert folder.load(declares("a", fault="no")) == {"x": "4", "z": "4"}
    assert folder.load(declares("a", say("x", "5"))) == {"x": "5"}


def test_a_sound_file_that_becomes_partly_sound_is_kept_whole(folder):
    """A valid file is kept whole while new versions have errors, even when the errors change."""
    folder.load(declares("a", say("x", "1")))

    assert folder.load(declares("a", say("x", "2"), say("bad", "", object))) == {"x": "1"}
    assert folder.load(declares("a", say("x", "3"), say("worse", "", object))) == {"x": "1"}


def test_the_younger_of_two_that_were_kept(folder):
    """If two broken files declared the same name, the version that was served last stays."""
    folder.load(declares("a", say("x", "1")), declares("b"))
    folder.load(declares("a", fault="no"), declares("b", say("x", "2")))

    assert folder.load(declares("a", fault="no"), declares("b", fault="no")) == {"x": "2"}


def test_one_definition_that_two_files_hold(folder):
    """One definition in two files is not a duplicate, even while one file keeps an older version."""
    first, second = say("x", "1"), say("x", "2")
    folder.load(declares("a", first), declares("b", first))

    assert folder.faults == []
    assert folder.load(declares("a", fault="no"), declares("b", second)) == {"x": "2"}
    assert folder.faults == [("a", "PK101")]


@pytest.mark.parametrize("newcomer", ["a", "z"])
def test_what_a_file_serves_is_not_taken_from_it(folder, newcomer):
    """A file cannot take a name that another file serves, whichever file sorts first."""
    owner = declares("m", say("x", "owner"))
    folder.load(declares(newcomer, say("y", "1")), owner)

    said = folder.load(declares(newcomer, say("y", "2"), say("x", "taken")), owner)

    assert said == {"x": "owner", "y": "1"}
    assert folder.kept == {newcomer: 1}
    assert folder.load(declares(newcomer, say("y", "3"), say("x", "mine"))) == {"x": "mine", "y": "3"}


def test_a_new_file_takes_nothing_either(folder):
    """A new file cannot take a name from another file; its other prompts are served."""
    owner = declares("m", say("x", "owner"))
    folder.load(owner)

    assert folder.load(declares("a", say("x", "a"), say("y", "a")), owner) == {"x": "owner", "y": "a"}


def test_who_serves_a_name_goes_on_to_at_every_load(folder):
    """The file that serves a name keeps it at every load, even when both files break."""
    owner, newcomer = declares("m", say("x", "owner")), declares("a", say("x", "a"), say("y", "a"))
    folder.load(owner)
    for _ in range(2):
        assert folder.load(newcomer, owner) == {"x": "owner", "y": "a"}

    assert folder.load(declares("a", fault="no"), declares("m", fault="no")) == {"x": "owner", "y": "a"}
    assert [rule for _, rule in folder.faults] == ["PK202", "PK101", "PK101"]


def test_duplicates_from_the_start_keep_no_file(folder):
    """Duplicates that exist from the first load do not stop either file from being updated."""
    folder.load(declares("a", say("x", "a1")), declares("b", say("x", "b1"), say("y", "1")))

    said = folder.load(declares("a", say("x", "a2")), declares("b", say("x", "b2"), say("y", "2")))

    assert said["y"] == "2"
    assert folder.kept == {}


def test_a_prompt_that_moves_between_sound_files(folder):
    """A prompt that moves between valid files is not a duplicate."""
    folder.load(declares("a", say("x", "a"), say("y", "a")), declares("b"))

    assert folder.load(declares("a", say("y", "a")), declares("b", say("x", "b"))) == {"x": "b", "y": "a"}
    assert folder.faults == []


def test_resources_go_by_their_templates(folder):
    """Resources are kept by URI template as prompts are by name."""
    folder.load(declares("a", document("n:1", "a")), declares("b", document("n:2", "b")))
    folder.load(declares("a", document("n:1", "a"), document("n:2", "a")), declares("b", fault="no"))

    assert folder.catalog.read("n:2").text == "a"
    assert folder.kept == {"b": 1}


def test_a_prompt_and_a_resource_may_be_called_alike(folder):
    """A prompt and a resource can have the same name."""
    assert folder.load(declares("a", say("n:1", "p"), document("n:1", "r"))) == {}
    assert [found.rule for found in folder.catalog.diagnostics] == [Rule.BAD_NAME]
    assert folder.catalog.read("n:1").text == "r"


def test_linking_does_not_depend_on_the_order_of_files(folder):
    """The catalog does not depend on the order in which files are linked."""
    pieces = compile_files(
        Recipes(by_file=[declares(f, say("x", f), say(f"own-{f}", f)) for f in "abc"]),
    )

    one, other = link(pieces).catalog, link(pieces[::-1]).catalog

    assert (list(one), one.diagnostics) == (list(other), other.diagnostics)
