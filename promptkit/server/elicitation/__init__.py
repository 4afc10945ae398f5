"""Questions that prompts ask the person at the client while they render."""
