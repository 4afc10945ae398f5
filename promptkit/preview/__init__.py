"""Preview: a page on this machine that shows what a folder of prompts says, while one writes it."""
