"""Skills: instructions that models read, written in Python, or as folders that begin with a ``SKILL.md``."""
