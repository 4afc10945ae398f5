"""Form fields in the browser: the function receives the entered values."""

import inspect

import pytest

from tests import sample_types

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = [pytest.mark.slow, pytest.mark.installs]

HEAD = f"""{inspect.getsource(sample_types)}
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID
from promptkit import Arg, prompt
"""

#: A type, how a value is entered, the value, and its `repr` in the function.
TYPES = [
    ("str", "fill", "Two\nlines <b>", "'Two\\nlines <b>'"),
    ("int", "type", "1000", "1000"),
    ("Annotated[int, msgspec.Meta(ge=1, le=9)]", "type", "9", "9"),
    ("float", "type", "2.5", "2.5"),
    ("Decimal", "type", "2.50", "Decimal('2.50')"),
    ("bool", "check", "yes", "True"),
    ("Tone", "check", "Cold", "<Tone.COLD: 'Cold'>"),
    ("Level", "check", "HIGH", "<Level.HIGH: 2>"),
    ("Literal['python', 'rust']", "check", "rust", "'rust'"),
    ("Literal['a', 'b', 'c', 'd', 'e']", "select", "d", "'d'"),
    ("date", "fill", "2026-01-31", "datetime.date(2026, 1, 31)"),
    ("datetime", "fill", "2026-01-31T12:30", "datetime.datetime(2026, 1, 31, 12, 30)"),
    ("time", "fill", "12:30", "datetime.time(12, 30)"),
    ("timedelta", "fill", "1h 30m", "datetime.timedelta(seconds=5400)"),
    (
        "UUID",
        "fill",
        "12345678123456781234567812345678",
        "UUID('12345678-1234-5678-1234-567812345678')",
    ),
    ("Path", "fill", "notes/today.md", "PosixPath('notes/today.md')"),
    ("bytes", "upload", "h\u00e9", "b'h\\xc3\\xa9'"),
    ("list[bytes]", "upload", "hi", "[b'hi']"),
    ("list[str]", "fill", "one, and\ntwo", "['one, and', 'two']"),
    ("list[int]", "fill", "1\n2", "[1, 2]"),
    ("list[Tone]", "tick", "Cold\nwarm", "[<Tone.WARM: 'warm'>, <Tone.COLD: 'Cold'>]"),
    ("set[int]", "fill", "2", "{2}"),
    ("frozenset[str]", "fill", "a", "frozenset({'a'})"),
    ("tuple[int, ...]", "fill", "1, 2", "(1, 2)"),
    ("tuple[int, str]", "fill", '[1, "a"]', "(1, 'a')"),
    ("dict[str, int]", "fill", '{"a": 1}', "{'a': 1}"),
    ("dict[str, list[Point]]", "fill", '{"a": [{"x": 1}]}', "{'a': [Point(x=1, y=0.0)]}"),
    ("Point", "fill", '{"x": 1, "y": 2}', "Point(x=1, y=2.0)"),
    ("list[Point]", "fill", '[{"x": 1}]', "[Point(x=1, y=0.0)]"),
    (
        "Place",
        "fill",
        '{"name": "here", "points": []}',
        "Place(name='here', points=[], tone=<Tone.WARM: 'warm'>, notes={})",
    ),
    ("Options", "fill", '{"depth": 2}', "{'depth': 2}"),
    ("Pair", "fill", '[1, "r"]', "Pair(left=1, right='r')"),
    ("Circle", "fill", '{"radius": 3}', "Circle(radius=3, name='')"),
    ("int | str", "fill", "5", "5"),
    ("float | Literal['auto']", "complete", "AUTO", "'auto'"),
    ("int | None", "type", "5", "5"),
]

RECIPES = {
    "types.py": HEAD
    + "".join(
        f'\n@prompt(name="takes-{number}")\n'
        f"def takes_{number}(value: {kind}) -> str:\n    return f'    {{value!r}}'\n"
        for number, (kind, *_) in enumerate(TYPES)
    ),
    "forms.py": HEAD
    + '''
def words(typed):
    return [word for word in ("python", "perl", "php", "rust") if word.startswith(typed)]

@prompt
def review(
    language: Annotated[str, Arg("The language of the code", complete=words)],
    depth: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3,
    where: Annotated[Point | None, Arg("Where", title="The place")] = None,
    lines: list[int] | None = None,
    style: Literal["terse", "verbose"] = "terse",
):
    """Review code."""
    return f"Review {language} to {depth}, at {where}, {lines}, {style}."

@prompt
def whisper(token: Annotated[str, Arg(secret=True)], text: str = "hi"):
    return f"Say {text} with {len(token)} characters."

@prompt
def examples(
    change: Annotated[str, Arg("What changed", examples=["Fix <the> bug", "Add it"])],
    tone: Annotated[Tone, Arg(examples=[Tone.COLD])],
):
    return f"Say {change} {tone.value}."
''',
}


#: The ARIA role of the control for each way to enter a value.
ROLES = {
    "fill": "textbox",
    "type": "spinbutton",
    "check": "radiogroup",
    "tick": "group",
    "select": "combobox",
    "complete": "combobox",
    "upload": "button",
}


def find_field(page, name, role="textbox"):
    """Return the control with an argument's accessible name."""
    return page.locator("#arguments").get_by_role(role, name=name, exact=True)


def enter_value(page, how, value):
    """Enter a value in the way the control expects."""
    control = find_field(page, "value", ROLES[how])
    if how == "check":
        control.get_by_role("radio", name=value, exact=True).check()
    elif how == "tick":
        for label in value.splitlines():
            control.get_by_role("checkbox", name=label, exact=True).check()
    elif how == "select":
        control.select_option(value)
    elif how == "upload":
        control.set_input_files({"name": "notes.txt", "mimeType": "text/plain", "buffer": value.encode()})
    elif how == "type":
        control.press_sequentially(value)
    else:
        control.fill(value)


@pytest.mark.parametrize(
    ("number", "how", "value", "expected"),
    [(number, *row[1:]) for number, row in enumerate(TYPES)],
    ids=[kind for kind, *_ in TYPES],
)
def test_function_receives_the_entered_value(number, how, value, expected, visit):
    """Each type has a control named after its argument, and the function receives the entered value."""
    page = visit.prompt(f"takes-{number}")

    enter_value(page, how, value)

    expect(page.locator("#conversation .formatted pre")).to_have_text(f"{expected}\n")


class TestErrors:
    """Errors are shown at the fields that cause them."""

    def test_errors_are_shown_at_their_fields(self, visit):
        """Each error is shown at its control, which is marked invalid until the value is corrected."""
        page = visit.prompt("review")
        find_field(page, "language", "combobox").fill("rust")
        find_field(page, "depth", "spinbutton").fill("12")
        find_field(page, "The place").fill('{"x": "many"}')
        find_field(page, "lines").fill("1\ntwo")

        for name, role, message in (
            ("depth", "spinbutton", "12"),
            ("The place", "textbox", "'where.x' is 'many'"),
            ("lines", "textbox", "'lines[1]' is 'two'"),
        ):
            control = find_field(page, name, role)
            expect(control).to_have_attribute("aria-invalid", "true")
            expect(page.locator(f"#{control.get_attribute('aria-errormessage')}")).to_contain_text(message)
        expect(page.locator("#state")).to_contain_text("3 arguments need attention: depth, where, lines")

        find_field(page, "depth", "spinbutton").fill("9")
        expect(find_field(page, "depth", "spinbutton")).not_to_have_attribute("aria-invalid", "true")
        find_field(page, "The place").fill('{"x": 1}')
        find_field(page, "lines").fill("1\n2")
        expect(page.locator("#conversation")).to_contain_text(
            "Review rust to 9, at Point(x=1, y=0.0), [1, 2], terse."
        )

    def test_errors_are_announced(self, visit):
        """Errors and the state of the rendering are announced to screen readers."""
        page = visit.prompt("review")
        find_field(page, "language", "combobox").fill("rust")
        find_field(page, "depth", "spinbutton").fill("12")

        errors = page.locator("#errors-of-depth")
        expect(errors).to_contain_text("12")
        assert errors.get_attribute("aria-live") == "polite"
        expect(page.get_by_role("status").filter(has_text="1 argument needs attention")).to_be_visible()
        expect(find_field(page, "depth", "spinbutton")).to_have_accessible_error_message(errors.inner_text())

    def test_missing_argument_is_marked_as_required(self, visit):
        """A required argument is also marked as required for assistive technology."""
        page = visit.prompt("review")

        assert find_field(page, "language", "combobox").get_attribute("required") is not None
        expect(page.locator("#errors-of-language")).to_have_text("'language' is missing")
        expect(find_field(page, "language", "combobox")).to_have_accessible_description(
            "The language of the code 'language' is missing"
        )


class TestTyping:
    """Typed text is kept and rendered."""

    def test_last_key_press_wins(self, visit):
        """The last key press wins, even if earlier replies arrive in between."""
        page = visit.prompt("review")
        text = "the quick brown fox jumps over the lazy dog"
        find_field(page, "language", "combobox").press_sequentially(text)

        expect(page.locator("#conversation")).to_contain_text(f"Review {text} to 3")
        expect(find_field(page, "language", "combobox")).to_have_value(text)
        expect(find_field(page, "language", "combobox")).to_be_focused()

    def test_early_input_is_rendered_once_the_scripts_load(self, visit):
        """Values entered before the scripts have loaded are rendered once they have."""
        page = visit.page
        page.route("**/*.js", lambda _route: None)
        page.goto(f"{visit.window.origin}/prompts/review?depth=7", wait_until="commit")
        find_field(page, "language", "combobox").fill("rust")
        page.get_by_role("radio", name="verbose").check()
        page.unroute("**/*.js")  # lets the pending requests continue

        expect(page.locator("#conversation")).to_contain_text("Review rust to 7, at None, None, verbose.")

    def test_untouched_page_sends_no_form(self, visit):
        """A page that loads before anything is entered sends no further requests."""
        page, methods = visit.page, []
        page.on("request", lambda request: methods.append(request.method))
        visit.prompt("review", "?language=rust&where=x&depth=7&lines=1%0A2")
        page.evaluate("new Promise((done) => setTimeout(() => requestAnimationFrame(done), 50))")

        assert set(methods) == {"GET"}

    def test_cursor_keeps_its_position(self, visit):
        """The cursor keeps its position while renderings arrive."""
        page = visit.prompt("review", "?language=abcd")
        control = find_field(page, "language", "combobox")
        control.focus()
        control.press("Home")
        control.press("ArrowRight")
        for key in "xyz":
            control.press(key)
            expect(page.locator("#conversation")).to_contain_text(key)

        expect(control).to_have_value("axyzbcd")

    def test_completion_values_are_offered(self, visit):
        """The completion function's values are offered while the user types."""
        page = visit.prompt("review")
        options = page.locator("datalist#values-of-language option")
        control = page.get_by_role("combobox", name="language")

        control.focus()
        expect(options).to_have_count(4)
        control.press_sequentially("p")
        expect(options).to_have_count(3)
        control.press_sequentially("y")
        expect(options).to_have_count(1)
        expect(options).to_have_attribute("value", "python")

    def test_address_restores_the_page(self, visit, windows):
        """The address holds the entered values, so that another window shows the same page."""
        page = visit.prompt("review")
        find_field(page, "language", "combobox").fill("rust & c++ <b>")
        find_field(page, "depth", "spinbutton").fill("7")
        find_field(page, "lines").fill("1\n2")
        page.get_by_role("radio", name="verbose").check()
        text = "Review rust & c++ <b> to 7, at None, [1, 2], verbose."
        expect(page.locator("#conversation")).to_contain_text(text)

        other = windows(visit.address)
        other.page.goto(visit.address)
        other.page.goto(page.url)
        expect(other.page.locator("#conversation")).to_contain_text(text)
        expect(find_field(other.page, "language", "combobox")).to_have_value("rust & c++ <b>")
        expect(find_field(other.page, "lines")).to_have_value("1\n2")
        expect(other.page.get_by_role("radio", name="verbose")).to_be_checked()

    def test_going_back_restores_the_values(self, visit):
        """Going back from another prompt restores the entered values."""
        page = visit.prompt("review")
        find_field(page, "language", "combobox").fill("rust")
        expect(page.locator("#conversation")).to_contain_text("Review rust")
        page.get_by_role("link", name="whisper").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("whisper")
        page.go_back()

        expect(page.locator("#conversation")).to_contain_text("Review rust")
        expect(find_field(page, "language", "combobox")).to_have_value("rust")

    def test_secret_is_hidden(self, visit):
        """A secret is typed into a password field and appears neither on the page nor in the address."""
        page = visit.prompt("whisper")
        find_field(page, "token").fill("hunter2-hunter2")
        expect(page.locator("#conversation")).to_contain_text("Say hi with 15 characters.")

        assert find_field(page, "token").get_attribute("type") == "password"
        assert "hunter2" not in page.url
        assert "hunter2" not in page.inner_text("body")

    def test_button_fills_in_an_example(self, visit):
        """A button fills in one of the author's examples."""
        page = visit.prompt("examples")
        page.get_by_role("button", name="change: Example 2").click()
        page.get_by_role("button", name="tone: Example").click()
        expect(page.locator("#conversation")).to_contain_text("Say Add it Cold.")

        page = visit.prompt("examples")
        expect(page.locator("#conversation")).to_contain_text("Say Fix <the> bug Cold.")
