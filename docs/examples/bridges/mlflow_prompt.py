"""A prompt in MLflow's registry."""

import mlflow
from mlflow.entities.model_registry import PromptVersion
from tickets import triage

from promptkit.bridges.mlflow import template


def store() -> PromptVersion:
    """Store the prompt as a new version, and return what MLflow has of it."""
    return mlflow.genai.register_prompt(**template(triage), commit_message="As it is served")
