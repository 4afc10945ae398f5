"""What authors write: content, messages, turns, and `Arg` for parameters."""
