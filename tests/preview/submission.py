"""The data that a browser submits for a form: its successful controls, by the rules of HTML."""

import math
import re

import html5lib
from starlette.datastructures import FormData

#: Patterns of the values that browsers keep, by input type.
_FLOAT = re.compile(r"-?(\d+(\.\d+)?|\.\d+)([eE][-+]?\d+)?")
_DATE = r"\d{4,}-\d\d-\d\d"
_VALID = {
    "number": lambda text: _FLOAT.fullmatch(text) and math.isfinite(float(text)),
    "date": re.compile(_DATE).fullmatch,
}
_LINES = {"text", "password", "search"}


def parse_html(html):
    """Parse an HTML fragment into a tree."""
    return html5lib.parse(f"<!doctype html><title>x</title>{html}", namespaceHTMLElements=False)


def controls_by_name(html):
    """Return the controls of a page by name."""
    controls = [
        control for control in parse_html(html).iter() if control.tag in ("input", "textarea", "select")
    ]
    return {control.get("name"): control for control in controls}


def collect_form_data(html):
    """Return the data that an untouched form submits."""
    return FormData(
        [(name, _normalize_line_ends(value)) for name, value in _iterate_entries(parse_html(html))]
    )


def _iterate_entries(tree):
    for control in tree.iter():
        name = control.get("name")
        if control.tag == "textarea":
            yield name, "".join(control.itertext())
        elif control.tag == "select":
            options = control.findall("option")
            chosen = [option for option in options if option.get("selected") is not None] or options[:1]
            yield from ((name, option.get("value")) for option in chosen)
        elif control.tag == "input" and control.get("type") in ("radio", "checkbox"):
            if control.get("checked") is not None:
                yield name, control.get("value", "on")
        elif control.tag == "input" and control.get("type") != "file":
            yield name, _sanitize(control.get("type", "text"), control.get("value", ""))


def _sanitize(kind, text):
    if kind in _VALID:
        return text if _VALID[kind](text) else ""
    return re.sub("[\r\n]", "", text) if kind in _LINES else text


def _normalize_line_ends(text):
    return re.sub("\r\n|\r|\n", "\r\n", text)
