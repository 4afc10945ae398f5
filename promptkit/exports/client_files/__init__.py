"""Prompts as client files: slash commands and skills with the prompt's text, or a command that renders it."""
