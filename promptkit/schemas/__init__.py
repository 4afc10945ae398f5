"""JSON Schemas for editors: of ``[tool.promptkit]``, and of the front matter of Markdown prompts."""
