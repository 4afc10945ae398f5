"""
Bridges: prompts in the formats of tools that evaluate prompts, store them, or send them to models.

`langfuse` and `mlflow` return the arguments for registering a prompt in the tool, `inspect_ai` returns the
samples of a data set, and `langchain` returns messages. `inspect_ai` and `langchain` import the tool's
package when their functions are called. You need to install this package yourself.
"""
