"""
Bridges: prompts in tools that evaluate them, store them, or send them to models.

`langfuse` and `mlflow` make the arguments with which these store a prompt, `inspect_ai` the samples of a data
set, and `langchain` messages. A tool is imported when a function for it is called; install its package
yourself.
"""
