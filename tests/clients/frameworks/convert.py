"""
Convert tools for a model as a framework does, in a separate environment.

The argument is the framework. Standard input holds the tools as JSON: the name and ``inputSchema`` of each,
and sample arguments. The output for each is JSON: the schema for the model, and what the server receives if
the model calls the tool with each of the samples; or the error.
"""

import asyncio
import importlib.util
import json
import sys
from collections.abc import Callable
from typing import Any

from mcp.types import CallToolRequestParams, Tool

#: The schema for the model, and a function that converts the model's arguments to the ones that are sent.
Converted = tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]


def openai_agents(tool: Tool) -> Converted:
    """Convert as the OpenAI Agents SDK does, in its strict form."""
    from agents.mcp import MCPServerStdio
    from agents.mcp.util import MCPUtil

    server = MCPServerStdio({"command": "none"})
    function_tool = MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=True)
    return {**function_tool.params_json_schema, "strict": function_tool.strict_json_schema}, _unchanged


def google_genai(tool: Tool) -> Converted:
    """Convert as Google's SDK does, for Gemini."""
    from google.genai._mcp_utils import mcp_to_gemini_tool

    (declared,) = mcp_to_gemini_tool(tool).function_declarations or ()
    return declared.parameters.model_dump(mode="json", exclude_none=True), _unchanged


def litellm(tool: Tool) -> Converted:
    """Convert as LiteLLM does, for Gemini."""
    from litellm.experimental_mcp_client.tools import transform_mcp_tool_to_openai_tool
    from litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini import VertexGeminiConfig

    openai_tool = transform_mcp_tool_to_openai_tool(tool)
    (gemini_tools,) = VertexGeminiConfig()._map_function([openai_tool], {})
    (declared,) = gemini_tools["function_declarations"]
    return declared["parameters"], _unchanged


def langchain(tool: Tool) -> Converted:
    """Convert as LangChain does, for any model that accepts OpenAI's form."""
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool

    connection = {"transport": "stdio", "command": "none", "args": []}
    langchain_tool = convert_mcp_tool_to_langchain_tool(None, tool, connection=connection)
    schema = convert_to_openai_tool(langchain_tool)["function"]["parameters"]
    return schema, lambda arguments: langchain_tool._parse_input(arguments, None)


def autogen(tool: Tool) -> Converted:
    """
    Convert as AutoGen does: through a pydantic class, which gives the schema and validates the arguments.
    """
    from autogen_ext.tools.mcp import StdioMcpToolAdapter, StdioServerParams

    adapter = StdioMcpToolAdapter(StdioServerParams(command="none"), tool)
    kind = adapter.args_type()
    return (
        adapter.schema["parameters"],
        lambda arguments: kind.model_validate(arguments).model_dump(exclude_unset=True),
    )


def crewai(tool: Tool) -> Converted:
    """Convert as CrewAI does, also through a pydantic class, without importing the rest of CrewAI."""
    package = importlib.util.find_spec("crewai")
    path = f"{package.submodule_search_locations[0]}/utilities/pydantic_schema_utils.py"
    spec = importlib.util.spec_from_file_location("pydantic_schema_utils", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kind = module.create_model_from_schema(tool.inputSchema, model_name="Arguments", enrich_descriptions=True)
    return (
        kind.model_json_schema(),
        lambda arguments: kind.model_validate(arguments).model_dump(exclude_unset=True),
    )


FRAMEWORKS = {
    "openai-agents": openai_agents,
    "google-genai": google_genai,
    "litellm": litellm,
    "langchain": langchain,
    "autogen": autogen,
    "crewai": crewai,
}


def _unchanged(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def _attempt(work: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except Exception as error:  # noqa: BLE001 (each framework has its own)
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}


def _convert(convert: Callable[[Tool], Converted], case: dict[str, Any]) -> dict[str, Any]:
    schema, send = convert(Tool(name=case["name"], description="Test.", inputSchema=case["inputSchema"]))
    json.dumps(schema)  # raises if it is recursive

    def call(arguments: dict[str, Any]) -> dict[str, Any]:
        params = CallToolRequestParams(name=case["name"], arguments=send(arguments))
        return {"sent": json.loads(params.model_dump_json())["arguments"]}

    return {"schema": schema, "calls": [_attempt(call, arguments) for arguments in case["samples"]]}


async def _main() -> None:
    convert = FRAMEWORKS[sys.argv[1]]
    outcomes = [_attempt(_convert, convert, case) for case in json.load(sys.stdin)]
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    asyncio.run(_main())
