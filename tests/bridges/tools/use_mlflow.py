"""Store a prompt in a local MLflow registry, load it again, and fill it with MLflow's code."""

import json

import mlflow
from mlflow_prompt import store
from tickets import triage

from promptkit import prompt
from promptkit.bridges.mlflow import template


def main() -> None:
    """Print the stored prompt, and MLflow's rendering of it, as JSON."""
    store()
    stored = mlflow.genai.load_prompt("triage", version=1)
    texts = {"product": "a bank", "ticket": "\\1 {{x}}\nlog in"}
    mlflow.genai.register_prompt(**template(greet))
    print(  # noqa: T201 (the test reads it)
        json.dumps(
            {
                "stored": [stored.name, stored.version, stored.commit_message, sorted(stored.variables)],
                "form": stored.response_format,
                "compiled": stored.format(**texts),
                "rendered": [
                    {"role": turn.role, "content": str(turn.content)} for turn in triage.render(**texts).shown
                ],
                "text": mlflow.genai.load_prompt("prompts:/greet/1").format(name="Ann {{name}}"),
            }
        )
    )


@prompt
def greet(name: str) -> str:
    """Greet a person."""
    return f"Say {{hello}} to {name}}}."


if __name__ == "__main__":
    main()
