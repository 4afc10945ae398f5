"""Three recipes with six mistakes, and their diagnostics."""

SIX_MISTAKES = {
    "names": """
        from promptkit import prompt

        @prompt(name="my prompt:x")
        def review(diff: str) -> str:
            return diff
    """,
    "signatures": """
        from promptkit import prompt

        @prompt
        def bare(diff) -> str:
            return diff

        @prompt
        def packed(*diffs: str) -> str:
            return str(diffs)

        @prompt
        def typed(when: complex, tone: int = "warm") -> str:
            return str(when)
    """,
    "twice": """
        from promptkit import prompt

        @prompt
        def plan() -> str:
            return "first"

        @prompt
        def plan() -> str:
            return "second"
    """,
}

FOUND = """\
recipes/names.py:3: error PK201: prompt 'my prompt:x': a name must have 1 to 64 characters: letters A-Z and a-z, digits, '_' and '-'
    call it 'my-prompt-x'
recipes/signatures.py:4: error PK301: prompt 'bare': parameter 'diff' has no annotation
    write its type, for example 'diff: str'
recipes/signatures.py:8: error PK302: prompt 'packed': parameter '*diffs' has no fixed name
    name each parameter; clients fill them one by one
recipes/signatures.py:12: error PK304: prompt 'typed': no client can fill parameter 'when' of type complex
    use a type that can be written as text or JSON, or register this one with promptkit.register_type
recipes/signatures.py:12: error PK305: prompt 'typed': parameter 'tone' has the default 'warm', which is not of type int
    correct the default, or widen the annotation
recipes/twice.py:7: error PK202: prompt 'plan': it is already defined at recipes/twice.py:3
    rename one of them, or give it a name with @prompt(name='plan-2')"""  # noqa: E501 (each diagnostic is one line)
