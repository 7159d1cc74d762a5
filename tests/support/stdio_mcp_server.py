"""A tiny MCP server over stdio with one tool, `greet`; started by sessions as `python stdio_mcp_server.py [SECONDS]`.

It takes that many seconds before it answers anything, as servers do that are downloaded or compiled first. What the
variable INSTRUCTIONS says is what it says of itself.
"""

import json
import os
import sys
import time
from typing import Any

TOOL = {
    "name": "greet",
    "description": "Greets somebody.",
    "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "greeter", "version": "1"}
            told = {"instructions": os.environ["INSTRUCTIONS"]} if "INSTRUCTIONS" in os.environ else {}
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": info,
                **told,
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"Hello, {params['arguments']['name']}!"}]}
        case _:
            return {}


time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params", {}))
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
        sys.stdout.flush()
