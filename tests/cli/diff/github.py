"""How GitHub renders Markdown: an assertion that untrusted text appears only in code."""

import re

from hypothesis import strategies as st
from markdown_it import MarkdownIt

#: GitHub renders CommonMark with HTML, and its own extensions.
RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

#: Names and texts that GitHub would interpret.
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

#: Texts of characters with a meaning in Markdown or HTML.
ALPHABET = st.lists(
    st.sampled_from([
        *"`~<>![]()*_#-+|&;:@\\/\"'=\n\r\t $^.1a",
        "```", "<b>", "</code>", "</summary>", "</details>", "<!--", "-->", "![a](//b.c)", "https://b.c",
        "www.b.c", "\u2028", "&lt;", "\u200b", "\n\n",
    ]),
    max_size=30,
).map("".join)  # fmt: skip


def assert_untrusted_text_is_code(markdown):
    """Assert that a page contains untrusted text only in code blocks, code spans and code elements."""
    for token in RENDERER.parse(markdown):
        for node in (token, *(token.children or ())):
            assert node.type in {
                *("inline", "text", "code_inline", "fence", "html_block", "softbreak"),
                *("heading_open", "heading_close", "paragraph_open", "paragraph_close"),
                *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
                *("strong_open", "strong_close"),
            }, node
            if node.type == "fence":
                assert node.info == "diff"
            elif node.type == "html_block":
                for line in node.content.splitlines():
                    _assert_known_html(line)
            elif node.type == "text":
                assert re.fullmatch(
                    r"[A-Za-z0-9 :,]*(?: are not shown: run | to see all\.)?", node.content
                ), node


def _assert_known_html(line):
    html = re.sub(r"<code>(?:[^\W_]|[ …]|&#\d+;)*</code>", "<code></code>", line)
    assert re.sub(r"<!-- promptkit diff -->|</?(?:details|summary|code)>", "", html) == "", line
