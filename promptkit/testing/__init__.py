"""Testing prompts with pytest."""
