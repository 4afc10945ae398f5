import subprocess
import sys
import time
from urllib.parse import quote

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from uritemplate import expand

from promptkit.catalog.uri_templates import MAX_URI_LENGTH, URITemplate, expand_template, is_template

KEYS = {"semi": ";", "dot": ".", "comma": ","}
FLAT = ["semi", ";", "dot", ".", "comma", ","]
COLOURS = ["red", "green", "blue"]

#: From RFC 6570, sections 3.2.1 to 3.2.9: a template, its expansion, and the variables that the expansion
#: shows.
EXPANSIONS = [
    ("{count}", "one,two,three", {"count": ["one", "two", "three"]}),
    ("{count*}", "one,two,three", {"count": ["one", "two", "three"]}),
    ("{/count}", "/one,two,three", {"count": ["one", "two", "three"]}),
    ("{/count*}", "/one/two/three", {"count": ["one", "two", "three"]}),
    ("{;count}", ";count=one,two,three", {"count": ["one", "two", "three"]}),
    ("{;count*}", ";count=one;count=two;count=three", {"count": ["one", "two", "three"]}),
    ("{?count}", "?count=one,two,three", {"count": ["one", "two", "three"]}),
    ("{?count*}", "?count=one&count=two&count=three", {"count": ["one", "two", "three"]}),
    ("{&count*}", "&count=one&count=two&count=three", {"count": ["one", "two", "three"]}),
    ("{var}", "value", {"var": "value"}),
    ("{hello}", "Hello%20World%21", {"hello": "Hello World!"}),
    ("{half}", "50%25", {"half": "50%"}),
    ("O{undef}X", "OX", {}),
    ("{x,y}", "1024,768", {"x": "1024", "y": "768"}),
    ("{x,hello,y}", "1024,Hello%20World%21,768", {"x": "1024", "hello": "Hello World!", "y": "768"}),
    ("?{x,empty}", "?1024,", {"x": "1024", "empty": ""}),
    ("?{x,undef}", "?1024", {"x": "1024"}),
    ("{var:3}", "val", {"var": "val"}),
    ("{var:30}", "value", {"var": "value"}),
    ("{list}", "red,green,blue", {"list": COLOURS}),
    ("{list*}", "red,green,blue", {"list": COLOURS}),
    ("{keys}", "semi,%3B,dot,.,comma,%2C", {"keys": FLAT}),
    ("{keys*}", "semi=%3B,dot=.,comma=%2C", {"keys": KEYS}),
    ("{+var}", "value", {"var": "value"}),
    ("{+hello}", "Hello%20World!", {"hello": "Hello World!"}),
    ("{+half}", "50%25", {"half": "50%"}),
    ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex", {"base": "http://example.com/home/"}),
    ("{+base}index", "http://example.com/home/index", {"base": "http://example.com/home/"}),
    ("O{+undef}X", "OX", {}),
    ("{+path}/here", "/foo/bar/here", {"path": "/foo/bar"}),
    ("here?ref={+path}", "here?ref=/foo/bar", {"path": "/foo/bar"}),
    ("{+x,hello,y}", "1024,Hello%20World!,768", {"x": "1024", "hello": "Hello World!", "y": "768"}),
    ("{+path,x}/here", "/foo/bar,1024/here", {"path": "/foo/bar", "x": "1024"}),
    ("{+path:6}here", "/foo/bhere", {"path": "/foo/b"}),
    ("{+list}", "red,green,blue", {"list": COLOURS}),
    ("{+list*}", "red,green,blue", {"list": COLOURS}),
    ("{#var}", "#value", {"var": "value"}),
    ("{#hello}", "#Hello%20World!", {"hello": "Hello World!"}),
    ("{#half}", "#50%25", {"half": "50%"}),
    ("foo{#empty}", "foo#", {"empty": ""}),
    ("foo{#undef}", "foo", {}),
    ("{#x,hello,y}", "#1024,Hello%20World!,768", {"x": "1024", "hello": "Hello World!", "y": "768"}),
    ("{#path,x}/here", "#/foo/bar,1024/here", {"path": "/foo/bar", "x": "1024"}),
    ("{#path:6}here", "#/foo/bhere", {"path": "/foo/b"}),
    ("{#list}", "#red,green,blue", {"list": COLOURS}),
    ("{.who}", ".fred", {"who": "fred"}),
    ("{.who,who}", ".fred.fred", {"who": "fred"}),
    ("{.half,who}", ".50%25.fred", {"half": "50%", "who": "fred"}),
    ("www{.dom*}", "www.example.com", {"dom": ["example", "com"]}),
    ("X{.var}", "X.value", {"var": "value"}),
    ("X{.empty}", "X.", {"empty": ""}),
    ("X{.undef}", "X", {}),
    ("X{.var:3}", "X.val", {"var": "val"}),
    ("X{.list}", "X.red,green,blue", {"list": COLOURS}),
    ("X{.list*}", "X.red.green.blue", {"list": COLOURS}),
    ("X{.keys}", "X.semi,%3B,dot,.,comma,%2C", {"keys": FLAT}),
    ("X{.empty_keys}", "X", {}),
    ("{/who}", "/fred", {"who": "fred"}),
    ("{/who,who}", "/fred/fred", {"who": "fred"}),
    ("{/half,who}", "/50%25/fred", {"half": "50%", "who": "fred"}),
    ("{/who,dub}", "/fred/me%2Ftoo", {"who": "fred", "dub": "me/too"}),
    ("{/var}", "/value", {"var": "value"}),
    ("{/var,empty}", "/value/", {"var": "value", "empty": ""}),
    ("{/var,undef}", "/value", {"var": "value"}),
    ("{/var,x}/here", "/value/1024/here", {"var": "value", "x": "1024"}),
    ("{/var:1,var}", "/v/value", {"var": "value"}),
    ("{/list}", "/red,green,blue", {"list": COLOURS}),
    ("{/list*}", "/red/green/blue", {"list": COLOURS}),
    ("{/list*,path:4}", "/red/green/blue/%2Ffoo", {"list": COLOURS, "path": "/foo"}),
    ("{/keys}", "/semi,%3B,dot,.,comma,%2C", {"keys": FLAT}),
    ("{/keys*}", "/semi=%3B/dot=./comma=%2C", {"keys": KEYS}),
    ("{;who}", ";who=fred", {"who": "fred"}),
    ("{;half}", ";half=50%25", {"half": "50%"}),
    ("{;empty}", ";empty", {"empty": ""}),
    ("{;v,empty,who}", ";v=6;empty;who=fred", {"v": "6", "empty": "", "who": "fred"}),
    ("{;v,bar,who}", ";v=6;who=fred", {"v": "6", "who": "fred"}),
    ("{;x,y}", ";x=1024;y=768", {"x": "1024", "y": "768"}),
    ("{;x,y,undef}", ";x=1024;y=768", {"x": "1024", "y": "768"}),
    ("{;hello:5}", ";hello=Hello", {"hello": "Hello"}),
    ("{;list}", ";list=red,green,blue", {"list": COLOURS}),
    ("{;list*}", ";list=red;list=green;list=blue", {"list": COLOURS}),
    ("{;keys}", ";keys=semi,%3B,dot,.,comma,%2C", {"keys": FLAT}),
    ("{;keys*}", ";semi=%3B;dot=.;comma=%2C", {"keys": KEYS}),
    ("{?who}", "?who=fred", {"who": "fred"}),
    ("{?half}", "?half=50%25", {"half": "50%"}),
    ("{?x,y}", "?x=1024&y=768", {"x": "1024", "y": "768"}),
    ("{?x,y,empty}", "?x=1024&y=768&empty=", {"x": "1024", "y": "768", "empty": ""}),
    ("{?x,y,undef}", "?x=1024&y=768", {"x": "1024", "y": "768"}),
    ("{?var:3}", "?var=val", {"var": "val"}),
    ("{?list}", "?list=red,green,blue", {"list": COLOURS}),
    ("{?list*}", "?list=red&list=green&list=blue", {"list": COLOURS}),
    ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C", {"keys": FLAT}),
    ("{?keys*}", "?semi=%3B&dot=.&comma=%2C", {"keys": KEYS}),
    ("{&who}", "&who=fred", {"who": "fred"}),
    ("{&half}", "&half=50%25", {"half": "50%"}),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024", {"x": "1024"}),
    ("{&x,y,empty}", "&x=1024&y=768&empty=", {"x": "1024", "y": "768", "empty": ""}),
    ("{&var:3}", "&var=val", {"var": "val"}),
    ("{&list}", "&list=red,green,blue", {"list": COLOURS}),
    ("{&list*}", "&list=red&list=green&list=blue", {"list": COLOURS}),
    ("{&keys*}", "&semi=%3B&dot=.&comma=%2C", {"keys": KEYS}),
]

#: URIs that are not exact expansions but have one clear meaning.
LENIENT = [
    ("x:{a}", "x:b c", {"a": "b c"}),
    ("x:{a}", "x:é", {"a": "é"}),
    ("x:{a}", "x:user@host:1!", {"a": "user@host:1!"}),
    ("x:{a}", "x:b=c&d", {"a": "b=c&d"}),
    ("x:{a}", "x:%c3%a9", {"a": "é"}),
    ("x:{a}", "x:%61", {"a": "a"}),
    ("x:caf%C3%A9/{a}", "x:caf%c3%a9/b", {"a": "b"}),
    ("x:caf%C3%A9/{a}", "x:café/b", {"a": "b"}),
    ("x:caf%c3%a9/{a}", "x:caf%C3%A9/b", {"a": "b"}),
    ("x:caf%c3%a9/{a}", "x:café/%c3%a9", {"a": "é"}),
    ("x:a%20b/{a}/d%20e", "x:a b/c/d e", {"a": "c"}),
    ("x:%22{a}%7C", 'x:"b|', {"a": "b"}),
    ("x{/a}", "x/b,c", {"a": ["b", "c"]}),
    ("x{.a}", "x.b.c", {"a": "b.c"}),
    ("x{?a}", "x?a=b/c?d", {"a": "b/c?d"}),
    ("x{?a}", "x?a=b=c", {"a": "b=c"}),
    ("x{?a}", "x?a=1+1", {"a": "1+1"}),
    ("x{/a*}", "x/b=c=d", {"a": {"b": "c=d"}}),
    ("x{?a}", "x?a", {"a": ""}),
    ("x{?a}", "x?a=1&a=2", {"a": ["1", "2"]}),
    ("x{?a,b}", "x?b=2&a=1", {"a": "1", "b": "2"}),
    ("x{?a,b}", "x?a=1&&b=2&", {"a": "1", "b": "2"}),
    ("x{;a,b}", "x;b=2;a=1", {"a": "1", "b": "2"}),
]

#: Adjacent expressions that compete for the same text.
NEIGHBOURS = [
    ("x:{+path}", "x:a/b?c#d", {"path": "a/b?c#d"}),
    ("x:{+path}{?lines}", "x:a/b?lines=3", {"path": "a/b", "lines": "3"}),
    ("x:{+path}{?lines}", "x:a?b", {"path": "a?b"}),
    ("x:{+path}{?lines}", "x:a?linesman=1", {"path": "a?linesman=1"}),
    ("x:{+path}{#part}", "x:a/b#c", {"path": "a/b", "part": "c"}),
    ("x:{+folder}/{name}", "x:a/b/c", {"folder": "a/b", "name": "c"}),
    ("x:{+folder}/{name}", "x:a//b", {"folder": "a/", "name": "b"}),
    ("x:{name}.txt", "x:a.txt.txt", {"name": "a.txt"}),
    ("x:{name}{.kind}", "x:a.json", {"name": "a", "kind": "json"}),
    ("x:{name}{.kind}", "x:a", {"name": "a"}),
    ("x:{year}-{month}-{day}", "x:2026-01-31", {"year": "2026", "month": "01", "day": "31"}),
    ("x:{owner}/{name}{/path*}", "x:a/b/c/d", {"owner": "a", "name": "b", "path": ["c", "d"]}),
    ("x{/a}{/b}", "x/1/2", {"a": "1", "b": "2"}),
    ("x{?a}{&b}", "x?a=1&b=2", {"a": "1", "b": "2"}),
    ("x{?a}{&b}", "x&b=2", {"b": "2"}),
    ("x{?a}&fixed", "x?a=1&fixed", {"a": "1"}),
    ("x{;a}{?b}", "x;a=1?b=2", {"a": "1", "b": "2"}),
    ("x{?a,rest*}", "x?a=1&b=2&c=3", {"a": "1", "rest": {"b": "2", "c": "3"}}),
    ("x{?rest*}", "x?rest=1&b=2", {"rest": {"rest": "1", "b": "2"}}),
    ("x:{a}/{a}", "x:1/1", {"a": "1"}),
]

MISMATCHES = [
    ("x:a", "x:b"),
    ("x:a", "x:ab"),
    ("x:a", ""),
    ("x:{a}", "y:b"),
    ("x:{a}b", "x:"),
    ("x:{a}", "x:b/c"),
    ("x:{a}", "x:b?c"),
    ("x:{a}", "x:b#c"),
    ("x{/a}", "x/b/c"),
    ("x{/a,b}", "x/1/2/3"),
    ("x{.a,b}", "x.1.2.3"),
    ("x:{a,b}", "x:1,2,3"),
    ("x{/a*,b*}", "x/1/2/3"),
    ("x{?a}", "x?b=1"),
    ("x{?a}", "x?a=1&b=2"),
    ("x{?a}", "x?A=1"),
    ("x{?a}", "x?a=1#b"),
    ("x{?a}", "x?"),
    ("x{?a*,b*}", "x?c=1"),
    ("x{?a*}", "x?b=1&b=2"),
    ("x{;a}", "x;b=1"),
    ("x:{a}/{a}", "x:1/2"),
    ("x{/a:1,a}", "x/v/other"),
    ("x:{a:3}", "x:abcd"),
    ("x:{a}", "x:%"),
    ("x:{a}", "x:%4"),
    ("x:{a}", "x:%zz"),
    ("x:{a}", "x:%ff"),
    ("x:{a}", "x:%c3"),
    ("x:{a}", "x:%ed%a0%80"),
    ("x:{a}", "x:\ud800"),
    ("x{?a}", "x?a=%c3&a=%a9"),
]


def matching(cases):
    """Parametrize a test by template, URI and variables."""
    return pytest.mark.parametrize(
        ("template", "uri", "variables"), cases, ids=[f"{template} {uri!a}" for template, uri, _ in cases]
    )


class TestMatch:
    @matching(EXPANSIONS)
    def test_expansions_of_rfc_6570_are_matched(self, template, uri, variables):
        """Matching the RFC's own expansions recovers the variables that the expansions contain."""
        assert URITemplate(template).match(uri) == variables

    @matching(LENIENT)
    def test_unescaped_characters_are_accepted(self, template, uri, variables):
        """Unescaped characters and pairs in any order are accepted, because clients send them."""
        assert URITemplate(template).match(uri) == variables

    @matching(NEIGHBOURS)
    def test_adjacent_expressions(self, template, uri, variables):
        """An expression does not consume text that the next expression needs."""
        assert URITemplate(template).match(uri) == variables

    @pytest.mark.parametrize(("template", "uri"), MISMATCHES, ids=ascii)
    def test_mismatches(self, template, uri):
        """Other literals, unknown names, excess or conflicting values and bad escapes do not match."""
        assert URITemplate(template).match(uri) is None

    @pytest.mark.parametrize("operator", ["+", "#", ".", "/", ";", "?", "&", ""])
    def test_expressions_can_be_empty(self, operator):
        """Every expression can be empty."""
        assert URITemplate(f"x:a{{{operator}b,c}}").match("x:a") == {}

    @pytest.mark.parametrize(
        ("template", "end"),
        [("x:{a}/{b}{?c}", "/b"), ("x:{+path}{?lines}", "?lines=1"), ("x:{+a}/!{?b,c}/!{d}{e}", "/!/!d")],
    )
    def test_maximum_length_of_a_uri(self, template, end):
        """The maximum length of a URI is the same for every template."""
        uri = f"x:{'a' * (MAX_URI_LENGTH - len(end) - 2)}{end}"

        assert URITemplate(template).match(uri) is not None
        assert URITemplate(template).match(uri.replace("a", "aa", 1)) is None

    @given(st.text(st.sampled_from("x:ab?&=/#;.,%é2") | st.characters(), max_size=30))
    @example("x:%")
    def test_no_text_raises(self, uri):
        """Any text either matches or does not, without an exception."""
        variables = URITemplate("x:{a}{.b*}{/c*}{;d}{?e,f*}{#g}").match(f"x:{uri}")

        assert variables is None or all(isinstance(value, str | list | dict) for value in variables.values())

    @pytest.mark.parametrize(
        "template",
        [
            "x:{a}{b}{c}{d}{e}!",
            "x:{a}.{b}.{c}.{d}!",
            "x:{+a}/{+b}/{+c}/{d}!",
            "x:{+a}{?b,bb}{&b}{#c}!",
            "x{/a*}{/b*}{/c*}!",
            "x:aaaaaaaa{a}aaaaaaaa{b}aaaaaaaa!",
            "x:{+a}.{b}!",
            "x:{+a}{?b*}{.c}!",
        ],
    )
    @pytest.mark.parametrize("part", ["a", "a.", "/a", "?b=", "&b=1", "#"])
    def test_hostile_uri_is_rejected_quickly(self, template, part):
        """A hostile URI is rejected quickly, however many ways there are to split it."""
        uri_template = URITemplate(template)
        uri = ("x:" + part * MAX_URI_LENGTH)[: MAX_URI_LENGTH - 1] + "\n"

        start = time.process_time()
        variables = uri_template.match(uri)

        assert variables is None
        assert time.process_time() - start < 2


# "!" separates expressions, because drawn text never contains it unescaped.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
FREE = st.text(st.sampled_from("aé /?#:@&=;._~-"), min_size=1, max_size=6)
SEGMENT = TEXT.filter(lambda text: "." not in text)
OPERATORS = {
    "": TEXT,
    "+": FREE,
    "#": FREE,
    ".": SEGMENT,
    "/": TEXT,
    ";": TEXT,
    "?": TEXT,
    "&": TEXT,
}


@st.composite
def expressions(draw, number):
    """Draw an expression whose variable names start with the letter of its *number*, and values for them."""
    operator = draw(st.sampled_from(list(OPERATORS)))
    texts = OPERATORS[operator]
    # A value with "=" could not be distinguished from a pair in these expressions.
    items = texts.filter(lambda text: "=" not in text) if operator in ("+", "#") else texts
    letter = "abcd"[number]
    names = [f"{letter}{i}" for i in range(draw(st.integers(1, 3)))]
    values = {name: draw(texts) for name in names}
    specs = list(names)
    several = st.lists(items, min_size=2, max_size=3)
    kind = draw(st.sampled_from(["scalars", "list", "exploded list", "exploded dict"]))
    if kind == "list":
        names, specs, values = names[:1], specs[:1], {names[0]: draw(several)}
    elif kind == "exploded list":
        specs[-1] += "*"
        values[names[-1]] = draw(st.lists(items, min_size=1, max_size=3))
    elif kind == "exploded dict":
        names, specs = names[:1], [f"{names[0]}*"]
        keys = items.filter(lambda text: text not in names)
        values = {names[0]: draw(st.dictionaries(keys, items, min_size=1, max_size=3))}
    return f"{{{operator}{','.join(specs)}}}", values


@st.composite
def templates(draw):
    """Draw a template and values for all its variables."""
    template, values = "x:", {}
    for number in range(draw(st.integers(1, 4))):
        expression, expression_values = draw(expressions(number))
        template += f"/!{expression}"
        values |= expression_values
    return template, values


class TestRoundTrips:
    @settings(deadline=None, max_examples=100)
    @given(templates())
    def test_matching_undoes_expansion(self, drawn):
        """Matching an expansion returns the values that were expanded."""
        template, values = drawn

        assert URITemplate(template).match(expand(template, values)) == values

    @settings(deadline=None)
    @given(st.dictionaries(st.sampled_from("abc"), TEXT))
    def test_pairs_can_be_omitted(self, values):
        """Any pair can be missing, because pairs have names."""
        template = "x:d{?a,b,c}"

        assert URITemplate(template).match(expand(template, values)) == values

    @settings(deadline=None)
    @given(TEXT, TEXT)
    def test_order_of_pairs_does_not_matter(self, a, b):
        """The order of pairs does not matter."""
        uri = f"x?b={quote(b, '')}&a={quote(a, '')}"

        assert URITemplate("x{?a,b}").match(uri) == {"a": a, "b": b}


@pytest.mark.parametrize(
    ("value", "uri"),
    [
        (None, "x:"),
        (True, "x:?a=true"),
        ({"b", "a"}, "x:?a=a,b"),
        (frozenset({2, 1}), "x:?a=1,2"),
        (["b", None, 1.5], "x:?a=b,1.5"),
        (("b", False), "x:?a=b,false"),
        ({"k": 1, "none": None}, "x:?a=k,1"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_values_in_a_template(value, uri):
    """
    Values of any type are written as text, sets are sorted, and the value None is omitted, even within other
    values.
    """
    assert expand_template("x:{?a}", {"a": value}) == uri


class TestTemplate:
    def test_templates_are_values(self):
        """Templates are immutable values."""
        assert URITemplate("x:{a}") == URITemplate("x:{a}") != URITemplate("x:{b}")
        assert len({URITemplate("x:{a}"), URITemplate("x:{a}")}) == 1
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            URITemplate("x:{a}").text = "x:{b}"

    @pytest.mark.parametrize(
        ("template", "names"),
        [("x:a", ()), ("x:{b}{?a,c*}{d:3}", ("b", "a", "c", "d")), ("x:{a}/{a}", ("a",))],
        ids=["none", "several", "twice"],
    )
    def test_variables_are_listed(self, template, names):
        """Variables are listed once each, in order of appearance."""
        assert URITemplate(template).names == names

    @pytest.mark.parametrize(
        "text", ["", "x:{", "x:{}", "x:}", "x:{a b}", "x:{!a}", "x:{a:0}", "x:{a=1}", "a b"]
    )
    def test_invalid_template_is_rejected(self, text):
        """Text that is not a template by RFC 6570 is rejected."""
        assert not is_template(text)
        with pytest.raises(
            ValueError,
            match=r"is not a URI template: use characters that are valid in a URI, and variables in",
        ):
            URITemplate(text)

    def test_uritemplate_is_imported_lazily(self):
        """The uritemplate package is not imported before the first template is created."""
        modules = "promptkit.catalog.catalog, promptkit.declarations.resources"
        script = f"import sys, {modules}\nprint('uritemplate' in sys.modules)"

        result = subprocess.run(
            [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
        )

        assert result.stdout == "False\n"
