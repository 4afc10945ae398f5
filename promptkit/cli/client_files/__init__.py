"""Prompts as files of clients, slash commands and skills: with their text, or with what renders them."""
