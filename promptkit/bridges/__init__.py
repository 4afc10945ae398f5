"""
Bridges: prompts for tools that evaluate them, store them, or send them to models.

`langfuse` and `mlflow` return the arguments that register a prompt in the tool, `inspect_ai` returns the
samples of a data set, and `langchain` returns messages. A tool is imported when its function is called;
install its package yourself.
"""
