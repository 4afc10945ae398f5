"""The building blocks of prompts: content, messages, turns, and `Arg` for parameters."""
