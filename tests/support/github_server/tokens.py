"""Tokens as GitHub makes them, of which only the shape is real."""

import base64
import json


def runtime_token(run: str, job: str) -> str:
    """`ACTIONS_RUNTIME_TOKEN` of a job, which names both in its claims."""
    claims = {"scp": f"Actions.GenericRead:0 Actions.Results:{run}:{job} Actions.UploadArtifacts:0/1:2"}
    head, payload = (base64.urlsafe_b64encode(json.dumps(part).encode()) for part in ({"alg": "none"}, claims))
    return f"{head.decode().rstrip('=')}.{payload.decode().rstrip('=')}.fake"


def backend_ids(token: str) -> tuple[str, str] | None:
    """Run and job in a runtime token."""
    payload = f"{token}..".split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)) or b"{}")
    found = [scope.split(":") for scope in claims.get("scp", "").split(" ") if scope.startswith("Actions.Results:")]
    return (found[0][1], found[0][2]) if found else None
