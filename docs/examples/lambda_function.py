"""Prompts in AWS Lambda, behind a function URL or an HTTP API: the handler is lambda_function.handler."""

import os
from pathlib import Path

from mangum import Mangum

from promptkit.asgi import app

# Lambda freezes the process between requests, so files are not watched, and no stream of changes is offered.
application = app(
    Path(__file__).with_name("prompts"),
    public_url=os.environ.get("PROMPTS_URL"),
    hosts=["*"] if "PROMPTS_URL" not in os.environ else [],
    watch=False,
)
handler = Mangum(application, lifespan="off")
