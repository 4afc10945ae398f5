"""Preview: a local web page that shows the renderings of a folder of prompts while they are edited."""
