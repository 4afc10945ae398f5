"""Choosing and dropping files and images."""

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.installs

RECIPES = {
    "files.py": """
from typing import Annotated
from promptkit import Arg, Image, prompt, user

@prompt
def look(picture: bytes, note: str = "none"):
    return user(f"{note}: {len(picture)} bytes", Image(picture))

@prompt
def read(text: Annotated[str, Arg(title="The text")]):
    return f"Read: {text}"

@prompt
def many(files: list[bytes]):
    return f"{[len(file) for file in files]}"
""",
}

#: JavaScript that drops files on an element, as a file manager does.
DROP = """
([target, files]) => {
  const data = new DataTransfer();
  for (const [name, bytes] of files) data.items.add(new File([new Uint8Array(bytes)], name));
  for (const kind of ["dragenter", "dragover", "drop"])
    target.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
}
"""


def drop_files(page, name, *files):
    """Drop files on the field of an argument."""
    target = page.locator(f"#field-of-{name}").element_handle()
    page.evaluate(DROP, [target, [[filename, list(data)] for filename, data in files]])


def make_file(name, data):
    return {"name": name, "mimeType": "application/octet-stream", "buffer": data}


def test_uploaded_image_is_shown(png, visit):
    """An uploaded image is shown, stays while other fields are edited, and can be removed."""
    page = visit.prompt("look")
    page.get_by_role("button", name="picture", exact=True).set_input_files(make_file("dot.png", png))
    image = page.get_by_role("img", name="image of turn")
    expect(image).to_be_visible()
    expect(image).to_have_js_property("naturalWidth", 1)
    expect(page.locator("#field-of-picture")).to_contain_text(f"dot.png {len(png)} bytes")

    page.get_by_role("textbox", name="note").fill("Look")
    expect(page.locator("#conversation")).to_contain_text(f"Look: {len(png)} bytes")
    page.get_by_role("button", name="Remove picture").click()
    expect(page.locator("#state")).to_contain_text("1 argument needs attention: picture")


def test_dropped_image_is_shown(png, visit):
    """An image can also be dropped, and the next file replaces it."""
    page = visit.prompt("look")
    drop_files(page, "picture", ("dot.png", png))
    expect(page.locator("#field-of-picture")).to_contain_text("dot.png")
    expect(page.get_by_role("img", name="image of turn")).to_be_visible()

    drop_files(page, "picture", ("other.png", png + b"\0"))
    expect(page.locator("#field-of-picture")).to_contain_text("other.png")
    expect(page.locator("#conversation")).to_contain_text(f"none: {len(png) + 1} bytes")


def test_dropped_text_can_be_edited(visit):
    """A dropped text file fills the field of its argument, where it can be edited."""
    page = visit.prompt("read")
    drop_files(page, "text", ("notes.txt", "Zwölf\r\nlines".encode()))
    text = page.get_by_role("textbox", name="The text")
    expect(text).to_have_value("Zwölf\nlines")
    expect(page.locator("#conversation")).to_contain_text("Read: Zwölf lines")

    text.fill("Eleven")
    expect(page.locator("#conversation")).to_contain_text("Read: Eleven")


def test_binary_file_for_text_shows_an_error(visit):
    """A file that is not UTF-8 text shows an error with the file's name at its field."""
    page = visit.prompt("read")
    page.locator("#field-of-text summary").click()
    page.get_by_role("button", name="Load a file into The text").set_input_files(
        make_file("x.bin", b"ok\xff")
    )

    expect(page.locator("#errors-of-text")).to_contain_text("'x.bin'")
    expect(page.locator("#errors-of-text")).to_contain_text("not UTF-8 text (byte 3)")


def test_too_large_file_is_not_sent(png, visit):
    """A file that is too large is not sent, and its error stays until another file is chosen."""
    page = visit.prompt("look")
    sizes = []
    page.on("request", lambda request: sizes.append(int(request.headers.get("content-length", 0))))
    chooser = page.get_by_role("button", name="picture", exact=True)
    chooser.set_input_files(make_file("x.png", bytes(5 * 1024**2)))
    error = page.locator("#errors-of-picture")
    expect(error).to_contain_text("up to 4 MiB")

    with page.expect_response("**/render"):
        page.get_by_role("textbox", name="note").press_sequentially("L")
    expect(page.locator("#state")).to_contain_text("1 argument needs attention: picture")
    expect(error).to_contain_text("up to 4 MiB")
    expect(page.locator("#field-of-picture")).to_contain_text("x.png 5,242,880 bytes")
    assert max(sizes) < 10_000

    chooser.set_input_files(make_file("dot.png", png))
    expect(page.locator("#conversation")).to_contain_text(f"L: {len(png)} bytes")
    expect(error).to_be_empty()


def test_large_file_is_sent_once(visit):
    """Later requests and replies do not contain a file that was already uploaded."""
    page = visit.prompt("many")
    drop_files(page, "files", ("a", b"\0" * 300_000))
    expect(page.locator("#conversation")).to_contain_text("[300000]")
    with page.expect_response("**/render") as response:
        page.locator("#arguments").dispatch_event("change")

    assert len(response.value.request.post_data_buffer) < 2_000
    assert len(response.value.body()) < 10_000


def test_list_accepts_several_files(visit):
    """A list argument accepts several files in one drop."""
    page = visit.prompt("many")
    drop_files(page, "files", ("a", b"1"), ("b", b"22"))

    expect(page.locator("#conversation")).to_contain_text("[1, 2]")


def test_upload_is_kept_after_a_reload(png, visit_recipes):
    """An uploaded file is kept when the recipes reload."""
    visit = visit_recipes(files=RECIPES["files.py"])
    page = visit.prompt("look")
    page.get_by_role("button", name="picture", exact=True).set_input_files(make_file("dot.png", png))
    expect(page.locator("#conversation")).to_contain_text(f"none: {len(png)} bytes")

    visit.save("files.py", RECIPES["files.py"].replace("{note}:", "{note} has"))

    expect(page.locator("#conversation")).to_contain_text(f"none has {len(png)} bytes")


def test_too_large_form_is_rejected(visit):
    """A form larger than 32 MiB is rejected with 413, and the page shows why next to the entered text."""
    page = visit.prompt("read")
    visit.window.allow("413")
    page.get_by_role("textbox", name="The text").evaluate(
        """control => {
          control.style.display = "none"; // no browser lays out so much in time
          control.value = "x".repeat(33 * 1024 ** 2);
          control.dispatchEvent(new Event("change", { bubbles: true }));
        }"""
    )

    expect(page.locator("#conversation")).to_contain_text("the preview accepts 32 MiB per request")
    expect(page.locator("#state")).to_have_text("Request rejected")
    expect(page.locator("#arguments textarea")).to_have_count(1)
