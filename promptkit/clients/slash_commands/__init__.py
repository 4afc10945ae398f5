"""Readers of other clients' slash commands: one prompt per file, with placeholders in the client's syntax."""
