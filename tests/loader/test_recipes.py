"""Claims about what is served of each file, as pure functions of what files declare."""

from pathlib import Path

import pytest

from promptkit import prompt, resource
from promptkit.compiler.compilation import compile_files
from promptkit.compiler.linking import link, merge
from promptkit.errors.diagnostics import Diagnostic, Location
from promptkit.errors.rules import Rule
from promptkit.loader.recipes import LoadedFile, Recipes


def declares(file, *made, fault=""):
    """What a file declares, and perhaps why it cannot be imported."""
    found = (Diagnostic(Rule.IMPORT_FAILED, fault, "mend it", Location(file)),) if fault else ()
    prompts = tuple(one for one in made if hasattr(one, "options"))
    return LoadedFile(Path(file), prompts, tuple(one for one in made if one not in prompts), found)


def say(name, text, annotation=str):
    """A prompt of that name and *text*; it is at fault if no client can fill the annotation."""

    def function(a: annotation = "") -> str:
        return text

    return prompt(name=name)(function)


def document(uri, text):
    """A resource."""
    return resource(uri)(lambda: text)


class Folder:
    """
    Recipes that are loaded again and again.
    """

    def __init__(self):
        self.files, self.owners, self.catalog = [], {}, None

    def load(self, *declared):
        """Load what files declare now; return what prompts say, by name."""
        merged = merge(self.files, compile_files(Recipes(by_file=declared)), self.owners)
        linked = link(merged, owners=self.owners)
        self.files, self.owners, self.catalog = merged, linked.owners, linked.catalog
        return {name: made.render().messages[0].content.text for name, made in self.catalog.items()}

    @property
    def kept(self):
        """The files that are served as they were, and for how many loads."""
        return {str(file.file): file.age for file in self.files if file.age}

    @property
    def faults(self):
        """The file and the rule of each fault that is known."""
        return [(found.location.file, found.rule.value) for found in self.catalog.diagnostics]


@pytest.fixture
def folder():
    """A folder in which nothing was loaded so far."""
    return Folder()


def test_a_fault_keeps_its_file_alone(folder):
    """
    The others are taken, for as long as the fault lasts.
    """
    folder.load(declares("a", say("x", "1")), declares("b", say("y", "1")))

    for count in (1, 2, 3):
        said = folder.load(declares("a", fault="no"), declares("b", say("y", f"{count}")))

        assert said == {"x": "1", "y": f"{count}"}
        assert folder.kept == {"a": count}
        assert folder.faults == [("a", "PK101")]


def test_a_kept_file_is_mended(folder):
    """
    Its new version is served, and the old one is forgotten.
    """
    folder.load(declares("a", say("x", "1"), say("old", "1")))
    folder.load(declares("a", fault="no"))

    assert folder.load(declares("a", say("x", "2"))) == {"x": "2"}
    assert (folder.kept, folder.faults) == ({}, [])


def test_a_file_that_is_gone_is_not_kept(folder):
    """
    What is removed is removed, broken or not.
    """
    folder.load(declares("a", say("x", "1")), declares("b", say("y", "1")))
    folder.load(declares("a", fault="no"), declares("b", say("y", "1")))

    assert folder.load(declares("b", say("y", "1"))) == {"y": "1"}


def test_a_fault_from_the_start_is_replaced_by_what_is_no_worse(folder):
    """
    A file that was never sound is taken with other faults, as long as nothing of it is lost.
    """
    bad = say("bad", "", object)

    assert folder.load(declares("a", say("x", "1"), bad)) == {"x": "1"}
    assert folder.load(declares("a", say("x", "2"), bad)) == {"x": "2"}
    assert folder.load(declares("a", say("z", "3"), bad)) == {"x": "2"}
    assert folder.load(declares("a", say("x", "4"), say("z", "4"), bad)) == {"x": "4", "z": "4"}
    assert folder.load(declares("a", fault="no")) == {"x": "4", "z": "4"}
    assert folder.load(declares("a", say("x", "5"))) == {"x": "5"}


def test_a_sound_file_that_becomes_partly_sound_is_kept_whole(folder):
    """
    Also when the next version has yet another fault.
    """
    folder.load(declares("a", say("x", "1")))

    assert folder.load(declares("a", say("x", "2"), say("bad", "", object))) == {"x": "1"}
    assert folder.load(declares("a", say("x", "3"), say("worse", "", object))) == {"x": "1"}


def test_the_younger_of_two_that_were_kept(folder):
    """
    A name that two broken files declared is served as it was served last.
    """
    folder.load(declares("a", say("x", "1")), declares("b"))
    folder.load(declares("a", fault="no"), declares("b", say("x", "2")))

    assert folder.load(declares("a", fault="no"), declares("b", fault="no")) == {"x": "2"}


def test_one_definition_that_two_files_hold(folder):
    """
    It is no duplicate, also while one of the files is kept with an older version of it.
    """
    first, second = say("x", "1"), say("x", "2")
    folder.load(declares("a", first), declares("b", first))

    assert folder.faults == []
    assert folder.load(declares("a", fault="no"), declares("b", second)) == {"x": "2"}
    assert folder.faults == [("a", "PK101")]


@pytest.mark.parametrize("newcomer", ["a", "z"])
def test_what_a_file_serves_is_not_taken_from_it(folder, newcomer):
    """
    The file that newly declares the same is at fault, and kept, whichever comes first.
    """
    owner = declares("m", say("x", "owner"))
    folder.load(declares(newcomer, say("y", "1")), owner)

    said = folder.load(declares(newcomer, say("y", "2"), say("x", "taken")), owner)

    assert said == {"x": "owner", "y": "1"}
    assert folder.kept == {newcomer: 1}
    assert folder.load(declares(newcomer, say("y", "3"), say("x", "mine"))) == {"x": "mine", "y": "3"}


def test_a_new_file_takes_nothing_either(folder):
    """
    The rest of it is served.
    """
    owner = declares("m", say("x", "owner"))
    folder.load(owner)

    assert folder.load(declares("a", say("x", "a"), say("y", "a")), owner) == {"x": "owner", "y": "a"}


def test_who_serves_a_name_goes_on_to_at_every_load(folder):
    """
    A file that was refused a name is refused it at the next load, too, also once both files are broken.
    """
    owner, newcomer = declares("m", say("x", "owner")), declares("a", say("x", "a"), say("y", "a"))
    folder.load(owner)
    for _ in range(2):
        assert folder.load(newcomer, owner) == {"x": "owner", "y": "a"}

    assert folder.load(declares("a", fault="no"), declares("m", fault="no")) == {"x": "owner", "y": "a"}
    assert [rule for _, rule in folder.faults] == ["PK202", "PK101", "PK101"]


def test_duplicates_from_the_start_keep_no_file(folder):
    """
    Both files go on being taken: nothing gets worse.
    """
    folder.load(declares("a", say("x", "a1")), declares("b", say("x", "b1"), say("y", "1")))

    said = folder.load(declares("a", say("x", "a2")), declares("b", say("x", "b2"), say("y", "2")))

    assert said["y"] == "2"
    assert folder.kept == {}


def test_a_prompt_that_moves_between_sound_files(folder):
    """
    It has no fault.
    """
    folder.load(declares("a", say("x", "a"), say("y", "a")), declares("b"))

    assert folder.load(declares("a", say("y", "a")), declares("b", say("x", "b"))) == {"x": "b", "y": "a"}
    assert folder.faults == []


def test_resources_go_by_their_templates(folder):
    """
    What holds for names of prompts holds for URI templates.
    """
    folder.load(declares("a", document("n:1", "a")), declares("b", document("n:2", "b")))
    folder.load(declares("a", document("n:1", "a"), document("n:2", "a")), declares("b", fault="no"))

    assert folder.catalog.read("n:2").text == "a"
    assert folder.kept == {"b": 1}


def test_a_prompt_and_a_resource_may_be_called_alike(folder):
    """
    Names and templates do not meet.
    """
    assert folder.load(declares("a", say("n:1", "p"), document("n:1", "r"))) == {}
    assert [found.rule for found in folder.catalog.diagnostics] == [Rule.BAD_NAME]
    assert folder.catalog.read("n:1").text == "r"


def test_linking_does_not_depend_on_the_order_of_files(folder):
    """
    The same pieces make the same catalog.
    """
    pieces = compile_files(
        Recipes(by_file=[declares(f, say("x", f), say(f"own-{f}", f)) for f in "abc"]),
    )

    one, other = link(pieces).catalog, link(pieces[::-1]).catalog

    assert (list(one), one.diagnostics) == (list(other), other.diagnostics)
