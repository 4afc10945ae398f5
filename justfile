# Everything that a change has to pass, by the names that people expect. `just check` is what CI runs first.

# Formatting, lints and types.
check:
    ruff check .
    ruff format --check .
    mypy
    mypy --python-version 3.14
    mypy --platform win32
    pyright
    pyright --pythonversion 3.14
    pyright --pythonplatform Windows

# Every test.
test *arguments:
    pytest {{arguments}}

# The site, strictly.
docs:
    zensical build --strict
    python -m docs.llms site

# The measurements that docs/performance.md shows.
bench *arguments:
    python -m benchmarks {{arguments}}

# First paint and keys of the preview, in a browser.
bench-preview *arguments:
    python -m benchmarks.preview {{arguments}}

# The pictures of the preview in the documentation.
screenshots:
    python -m docs.screenshots
