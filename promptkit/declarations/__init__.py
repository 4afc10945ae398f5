"""Declarations: `@prompt`, `@resource` and `@skill` make prompts, resources and skills of functions."""
