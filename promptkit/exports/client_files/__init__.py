"""Prompts as files of clients: slash commands and skills, with their text or a command that renders it."""
