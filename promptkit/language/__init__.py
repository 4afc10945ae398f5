"""What authors write: content, messages, turns, and what they say of parameters."""
