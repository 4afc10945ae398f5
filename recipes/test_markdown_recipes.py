"""Tests of the Markdown prompts. Their cases are in their front matter."""

from promptkit.catalog.catalog import Catalog


def test_breaking_changes_come_first(promptkit_catalog: Catalog) -> None:
    """Release notes start with the breaking changes, if there are any."""
    notes = promptkit_catalog["release_notes"]
    sent = {"version": "2.0", "changes": "Search in several folders"}

    assert "Before you update" in notes.render({**sent, "breaking": "Replace --old"}).text
    assert "Before you update" not in notes.render(sent).text


def test_optional_lines_are_omitted(promptkit_catalog: Catalog) -> None:
    """A decision record mentions a date and alternatives only if they are given."""
    record = promptkit_catalog["decision_record"]
    sent = {"decision": "We store dates in UTC", "reasons": "They differed."}
    text = record.render({**sent, "alternatives": "local time, both", "date": "2026-01-31"}).text

    assert "\nDate: 2026-01-31\n" in text
    assert "considered: local time, both. " in text
    assert not {"Date:", "considered"} & set(record.render(sent).text.split())
