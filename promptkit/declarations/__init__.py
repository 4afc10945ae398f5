"""Declarations: `@prompt`, `@resource` and `@skill` turn functions into prompts, resources and skills."""
