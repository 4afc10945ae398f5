"""The replies to one caller do not depend on anything that only another caller can see."""

from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit import prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.loader.recipes import Recipes
from tests.subjects import Site, caller, cursor_in
from tests.wire import initialize, modern, request

SCOPES = ("a", "b", "c")

#: Similar names, because the error for an unknown name suggests the nearest one.
PROMPTS = ("alpha", "alpha2", "alpine", "beta", "find", "hidden")
TEMPLATES = ("docs://{name}", "docs://{name}/{part}", "docs://plan", "docs://plans", "notes://today")
URIS = ("docs://plan", "docs://plans", "docs://plam", "docs://a/b", "notes://today", "notes://tomorrow")
LISTS = ("prompts/list", "resources/list", "resources/templates/list", "tools/list")
OLD = "2025-11-25"
NAMES = (*PROMPTS, "alpa")
ARGUMENTS = ({}, {"word": "one"}, {"word": "nine"}, {"world": "one"})
OPTIONS = {"alpha": {"cache": 60}, "beta": {"tool": False}, "hidden": {"elicit": True}}


def make_prompt(name, scopes, version):
    """Return a prompt whose description shows its version."""

    def render(word: Literal["one", "two"], more: str = "") -> str:
        return f"{name} says {word}{more}"

    named = {"name": name, "description": f"Version {version}."}
    return prompt(**named, scopes=scopes, **OPTIONS.get(name, {}))(render)


def make_resource(template, scopes, version):
    """Return a resource whose text shows its version."""
    if "{part}" in template:

        def read(name: Literal["a", "b"], part: str) -> str:
            return f"{template} of {name} and {part}, version {version}"

    elif "{name}" in template:

        def read(name: Literal["plan", "plans", "plam"]) -> str:
            return f"{template} of {name}, version {version}"

    else:

        def read() -> str:
            return f"{template}, version {version}"

    return resource(template, name=template[-8:], scopes=scopes)(read)


def catalog_of(world, seen_by=None):
    """
    Return the catalog of a world, which maps each name to its scopes and its version.

    With *seen_by*, the catalog has only what a caller with these scopes can see, without any required scopes.
    """
    declarations = {True: [], False: []}
    for name, (scopes, version) in world.items():
        if seen_by is not None and not set(scopes) <= seen_by:
            continue
        make = make_prompt if name in PROMPTS else make_resource
        declarations[name in PROMPTS].append(make(name, () if seen_by is not None else scopes, version))
    catalog = compile(Recipes(prompts=tuple(declarations[True]), resources=tuple(declarations[False])))
    assert {diagnostic.rule for diagnostic in catalog.diagnostics} <= {Rule.NO_PROMPTS}
    return catalog


def list_request(list_number, cursor_number, cursors):
    """Return a request for a page of a list, perhaps with a cursor that another caller has received."""
    return modern(
        1,
        LISTS[list_number % len(LISTS)],
        {"cursor": cursors[cursor_number % len(cursors)]} if cursor_number and cursors else {},
    )


def get_request(name_number, arguments_number, _cursors):
    """Return a request for a prompt, which may be unknown."""
    params = {
        "name": NAMES[name_number % len(NAMES)],
        "arguments": ARGUMENTS[arguments_number % len(ARGUMENTS)],
    }
    return modern(1, "prompts/get", params, capabilities={"elicitation": {}})


def call_request(name_number, form_number, _cursors):
    """Return a call of a prompt as a tool, or of one of the tools that search and get prompts."""
    name, arguments = NAMES[name_number % len(NAMES)], ARGUMENTS[form_number % len(ARGUMENTS)]
    wrapped = {"name": name, "arguments": arguments}
    calls = (
        wrapped,
        {"name": "get_prompt", "arguments": wrapped},
        {"name": "find_prompts", "arguments": {"query": name}},
    )
    return modern(1, "tools/call", calls[form_number % 3])


def read_request(uri_number, _, _cursors):
    """Return a request for a resource, which may be unknown."""
    return modern(1, "resources/read", {"uri": URIS[uri_number % len(URIS)]})


def completion_request(ref_number, argument_number, _cursors):
    """Return a completion request for a prompt or a template."""
    templates = (*TEMPLATES, "docs://{nam}")
    ref = {"type": "ref/prompt", "name": NAMES[ref_number % len(NAMES)]}
    if argument_number % 2:
        ref = {"type": "ref/resource", "uri": templates[ref_number % len(templates)]}
    argument = {"name": ("word", "name", "part")[argument_number % 3], "value": ""}
    return modern(1, "completion/complete", {"ref": ref, "argument": argument})


def subscribe_request(uri_number, _, _cursors):
    """Return a handshake client's subscription request, although it has no stream."""
    return request(1, "resources/subscribe", {"uri": URIS[uri_number % len(URIS)]})


def listen_request(first_number, second_number, _cursors):
    """Return a request for a stream of all changes."""
    notifications = {"promptsListChanged": True, "resourcesListChanged": True, "toolsListChanged": True}
    notifications["resourceSubscriptions"] = [URIS[first_number % len(URIS)], URIS[second_number % len(URIS)]]
    return modern(1, "subscriptions/listen", {"notifications": notifications})


def handshake_request(form_number, list_number, _cursors):
    """Return a handshake, or a list request that needs one."""
    return initialize(OLD) if form_number % 2 else request(1, LISTS[list_number % len(LISTS)])


a_scope_set = st.sets(st.sampled_from(SCOPES), max_size=2).map(sorted)
a_world = st.dictionaries(
    st.sampled_from((*PROMPTS, *TEMPLATES)), st.tuples(a_scope_set, st.integers(1, 2)), min_size=2
)
a_number = st.integers(0, 60)
KINDS = (
    list_request,
    list_request,
    get_request,
    get_request,
    call_request,
    read_request,
    completion_request,
    subscribe_request,
    listen_request,
    handshake_request,
)
a_step = st.tuples(st.booleans(), st.tuples(st.sampled_from(KINDS), a_number, a_number))
a_subject = st.sets(st.sampled_from((*SCOPES, "other")), max_size=4).map(frozenset)


@settings(max_examples=30)
@given(
    worlds=st.lists(a_world, min_size=1, max_size=3),
    scopes=st.tuples(a_subject, a_subject),
    rounds=st.lists(st.lists(a_step, max_size=12), min_size=1, max_size=3),
    tools=st.sampled_from([True, "search"]),
)
def test_replies_do_not_depend_on_the_other_caller(worlds, scopes, rounds, tools):
    """
    For any sequence of requests by two callers, with reloads in between, each caller gets exactly the
    bytes that a server without scopes would send if its catalog held only what this caller can see.
    """
    subjects = [caller(f"subject {number}", *subject_scopes) for number, subject_scopes in enumerate(scopes)]
    shared_site = Site(catalog_of(worlds[0]), tools=tools, page_size=2)
    sites = {
        subject_scopes: Site(catalog_of(worlds[0], subject_scopes), tools=tools, page_size=2)
        for subject_scopes in set(scopes)
    }
    exchanges, cursors = [], []
    for number, steps in enumerate(rounds):
        if number:
            world = worlds[number % len(worlds)]
            shared_site.replace(catalog_of(world))
            for subject_scopes, site in sites.items():
                site.replace(catalog_of(world, subject_scopes))
        for is_second, step in steps:
            make_request, *numbers = step
            message = make_request(*numbers, cursors)
            is_old = "_meta" not in message.get("params", {}) and message["method"] != "initialize"
            fields = {"mcp_protocol_version": OLD} if is_old else {}
            channel = shared_site.post(message, subjects[is_second], **fields)
            expected_channel = sites[scopes[is_second]].post(message, subjects[is_second], **fields)
            exchanges.append((message, channel, expected_channel))
            cursors += filter(None, map(cursor_in, expected_channel.said))
        for message, channel, expected_channel in exchanges:
            assert without_state(channel.said) == without_state(expected_channel.said), message


def without_state(lines):
    """Return the lines without signed tokens, which differ in each run."""
    return [line.partition(b'"requestState":')[0] for line in lines]
