"""How GitHub reads Markdown: a test that foreign text in it is code alone."""

import re

from hypothesis import strategies as st
from markdown_it import MarkdownIt

#: GitHub renders CommonMark with HTML, and its own extensions.
RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

#: What GitHub makes something of, in a name or a text.
FOREIGN = [
    "x</code> ![i](https://evil.example/p.png)",
    "`x` ![i](https://evil.example/p.png) `",
    "`` x ` <img src=https://evil.example/p.png> ```",
    "```\n</details>\n<script>alert(1)</script>\n```",
    "````\n# Title\n@everyone fixes #1\n````",
    "x\n\n![i](https://evil.example/p.png)\n\n<b>",
    "x\r\r![i](https://evil.example/p.png)",
    "x\u2028\u2028![i](https://evil.example/p.png)",
    "<!-- ",
    "--> <b>",
    "</code></summary></details><img src=x>",
    "@octocat @github/security www.evil.example https://evil.example mail@evil.example",
    "#1 GH-1 octocat/repo#1 0123456789abcdef0123456789abcdef01234567",
    "~~~\n@octocat\n~~~",
    "- [ ] x\n\n\n    y",
    "| a | b |\n|---|---|\n| c | d |",
    "[^1]: x[^1] [a]: https://evil.example",
    "&lt;b&gt; &#60;b&#62; :smile: $`x`$ $$x$$ ~~x~~ **x** \\`",
    "\u202eevil \ud800 \x1b[31m \x00",
    "`",
    "",
    " ",
]

#: Texts of the marks that Markdown and HTML are made of.
ALPHABET = st.lists(
    st.sampled_from([
        *"`~<>![]()*_#-+|&;:@\\/\"'=\n\r\t $^.1a",
        "```", "<b>", "</code>", "</summary>", "</details>", "<!--", "-->", "![a](//b.c)", "https://b.c",
        "www.b.c", "\u2028", "&lt;", "\u200b", "\n\n",
    ]),
    max_size=30,
).map("".join)  # fmt: skip


def assert_foreign_text_is_code(markdown):
    """Assert that a page has words of our own, and all other text in blocks, spans and elements of code."""
    for token in RENDERER.parse(markdown):
        for one in (token, *(token.children or ())):
            assert one.type in {
                *("inline", "text", "code_inline", "fence", "html_block", "softbreak"),
                *("heading_open", "heading_close", "paragraph_open", "paragraph_close"),
                *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
                *("strong_open", "strong_close"),
            }, one
            if one.type == "fence":
                assert one.info == "diff"
            elif one.type == "html_block":
                for line in one.content.splitlines():
                    _assert_known_html(line)
            elif one.type == "text":
                assert re.fullmatch(r"[A-Za-z0-9 :,]*(?: are not shown: | shows them\.)?", one.content), one


def _assert_known_html(line):
    rest = re.sub(r"<code>(?:[^\W_]|[ …]|&#\d+;)*</code>", "<code></code>", line)
    assert re.sub(r"<!-- promptkit diff -->|</?(?:details|summary|code)>", "", rest) == "", line
