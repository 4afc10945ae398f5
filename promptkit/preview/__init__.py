"""Preview: a local web page that shows how the prompts in a folder render while they are edited."""
