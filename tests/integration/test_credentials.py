"""The credentials that people have, each through the real command against an endpoint of its form."""

import json
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

import pytest

from tests.integration.test_judge_command import is_judge
from tests.support.command import environment, results, run
from tests.support.judging import answer, verdict
from tests.support.projects import repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, http_error, text, tool_call
from tests.support.scripted_clouds import chunk, frame, signature
from zelda_ci.errors import ConfigError
from zelda_ci.model_proxy.upstream import Bedrock, Vertex
from zelda_ci.model_proxy.wire import BrokenOff, Call, UnreachableError
from zelda_ci.redact import Secret

SUITE = """\
prompt: Look around.
acceptanceCriteria: [It is done.]
execution: {model: MODEL}
judgeModel: MODEL
metrics: {toolUsage: false}
"""
TOKEN = "fake-token-of-the-developer-0123456789"
AWS = {"AWS_ACCESS_KEY_ID": "AKIAFAKEFAKEFAKEFAKE", "AWS_SECRET_ACCESS_KEY": TOKEN, "AWS_SESSION_TOKEN": f"{TOKEN}-2"}
BEDROCK = {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu-west-1"}
VERTEX = {"CLAUDE_CODE_USE_VERTEX": "1", "CLOUD_ML_REGION": "us-east5", "ANTHROPIC_VERTEX_PROJECT_ID": "p-1"}
ON_BEDROCK = "eu.anthropic.claude-sonnet-5-5-20260101-v1:0"

WAYS = {
    "token": ({"ANTHROPIC_AUTH_TOKEN": TOKEN}, "ANTHROPIC_BASE_URL", "claude-sonnet-5-5"),
    "subscription": ({"CLAUDE_CODE_OAUTH_TOKEN": TOKEN}, "ANTHROPIC_BASE_URL", "claude-sonnet-5-5"),
    "signed": ({**AWS, **BEDROCK}, "ANTHROPIC_BEDROCK_BASE_URL", ON_BEDROCK),
    "profile": ({"AWS_PROFILE": "work", **BEDROCK}, "ANTHROPIC_BEDROCK_BASE_URL", ON_BEDROCK),
    "vertex": (
        {"CLOUDSDK_AUTH_ACCESS_TOKEN": TOKEN, **VERTEX},
        "ANTHROPIC_VERTEX_BASE_URL",
        "claude-sonnet-5-5@20260101",
    ),
}


def script(request: ApiRequest) -> Reply:
    if is_judge(request):
        return answer(verdict(1, evidence=[{"where": "turn 1 call 1", "quote": "all is well"}]))
    command = "cat README.md; env; cat /proc/$PPID/environ; true"
    return text("Done.") if request.tool_results else tool_call("Bash", {"command": command})


def is_proven(way: str, request: ApiRequest, host: str) -> bool:
    """Whether a request carries the credential as that endpoint wants it, and no other."""
    headers = dict(request.headers)
    key, authorization = headers.get("x-api-key"), headers.get("authorization")
    if way in {"signed", "profile"}:
        sent = json.loads(request.raw_body)
        # What was signed is the body that the endpoint got: the test's server has added model and stream.
        body = {key: value for key, value in sent.items() if key not in {"model", "stream"}}
        compact = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        proof = signature(request.path, {**headers, "host": host}, compact, TOKEN)
        assert f"{AWS['AWS_ACCESS_KEY_ID']}/" in str(authorization)
        return str(authorization).endswith(proof) and headers["x-amz-security-token"] == f"{TOKEN}-2"
    is_beta = "oauth-2025-04-20" in headers.get("anthropic-beta", "").split(",")
    return (key, authorization) == (None, f"Bearer {TOKEN}") and is_beta == (way == "subscription")


@pytest.mark.parametrize("way", WAYS)
def test_a_session_and_its_judge_are_paid_with_it_and_the_session_never_sees_it(tmp_path: Path, way: str) -> None:
    variables, address, model = WAYS[way]
    if way == "profile":
        profile = "".join(f"{name.lower()} = {value}\n" for name, value in AWS.items())
        file = tmp_path / "aws-credentials"
        file.write_text(f"[work]\n{profile}")
        variables = {**variables, "AWS_SHARED_CREDENTIALS_FILE": str(file)}
    files = {"README.md": "all is well\n", "zelda/test-look.yaml": SUITE.replace("MODEL", f"'{model}'")}
    project = repository(tmp_path, files)
    with ScriptedApi(script) as api:
        url = api.url + ("/v1" if way == "vertex" else "")
        done = run(["run"], project.path, environment(project, **{address: url}, **variables))
        assert done.returncode == 0, done.stdout + done.stderr
        assert {is_judge(request) for request in api.requests} == {True, False}
        assert all(is_proven(way, request, api.url.partition("//")[2]) for request in api.requests)
        assert {request.body["model"] for request in api.requests} == {model}
    (result,) = results(project)
    assert result["api"]["models"][model]["costUsd"] > 0
    stored = "".join(file.read_text("utf-8", "replace") for file in project.results.rglob("*") if file.is_file())
    assert TOKEN not in stored + done.stdout + done.stderr
    assert "ZELDA_RUN" in stored


REFUSED = {
    "nothing": ({}, "ANTHROPIC_API_KEY is not set, and a session needs it.", "CLAUDE_CODE_OAUTH_TOKEN"),
    "no region": ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "but not AWS_REGION", "Set AWS_REGION"),
    "no profile": (
        {**BEDROCK, "AWS_PROFILE": "work"},
        "The config profile (work) could not be found",
        "Set AWS_BEARER",
    ),
    "no file": (
        {**VERTEX, "GOOGLE_APPLICATION_CREDENTIALS": "/no/key.json"},
        "Google Cloud's credentials cannot be used: File /no/key.json was not found",
        "gcloud auth application-default login",
    ),
    "another cloud": ({"CLAUDE_CODE_USE_FOUNDRY": "1"}, "does not know that platform", "CLAUDE_CODE_USE_BEDROCK=1"),
}


def test_what_cannot_be_had_is_said_with_the_way_out_before_anything_is_made(tmp_path: Path) -> None:
    project = repository(tmp_path, {"zelda/test-look.yaml": SUITE.replace("MODEL", "claude-sonnet-5-5")})
    for variables, message, hint in REFUSED.values():
        done = run(["run"], project.path, environment(project, **variables))
        assert done.returncode == 2, message
        assert message in done.stderr
        assert hint in done.stderr
        assert not list(project.results.glob("runs/*"))


def bedrock() -> Bedrock:
    return Bedrock("eu-west-1", {"authorization": Secret(TOKEN)}, "", {})


def translation_of_bedrock() -> Callable[[bytes], Iterable[bytes]]:
    translate = bedrock().translation("application/vnd.amazon.eventstream")
    assert translate
    return translate


def test_a_failure_inside_amazons_stream_becomes_an_event_and_broken_bytes_are_refused() -> None:
    failure = frame({":message-type": "exception", ":exception-type": "throttlingException"}, b'{"message": "Slow."}')
    event = chunk(b'{"type": "ping"}')
    whole = frame({":message-type": "event"}, event) + failure
    translate = translation_of_bedrock()
    written = b"".join(piece for at in range(len(whole)) for piece in translate(whole[at : at + 1]))
    assert written.count(b"event: ") == 2
    assert b'"rate_limit_error","message":"Slow."' in written
    for broken in (b"HTTP/1.1 500 Oops, an error page", whole[:20] + b"x" + whole[21:]):
        with pytest.raises(BrokenOff):
            list(translation_of_bedrock()(broken))


def test_a_credential_of_a_cloud_is_not_passed_on_to_the_session_that_it_pays_for(tmp_path: Path) -> None:
    suite = SUITE.replace("{model: MODEL}", f"{{model: {ON_BEDROCK}, env: [AWS_SECRET_ACCESS_KEY]}}")
    project = repository(tmp_path, {"zelda/test-look.yaml": suite.replace("MODEL", f"'{ON_BEDROCK}'")})
    done = run(["run"], project.path, environment(project, **AWS, **BEDROCK))
    assert done.returncode == 2
    assert "zelda/test-look.yaml: execution.env: AWS_SECRET_ACCESS_KEY must not be passed on" in done.stderr


def test_a_subscription_that_is_for_claude_code_alone_runs_sessions_and_no_judge(tmp_path: Path) -> None:
    said = "This credential is only authorized for use with Claude Code and cannot be used for other API requests."
    project = repository(tmp_path, {"zelda/test-look.yaml": SUITE.replace("MODEL", "claude-sonnet-5-5")})
    variables = {"CLAUDE_CODE_OAUTH_TOKEN": TOKEN, "ZELDA_NO_CHECK": ""}
    with ScriptedApi([], check=http_error(400, said)) as api:
        environ = environment(project, ANTHROPIC_BASE_URL=api.url, **variables)
        done = run(["check", "--json"], project.path, environ)
        assert len(api.checks) == 1
    model, judge = json.loads(done.stdout)["checks"][-2:]
    assert (model["subject"], model["status"], judge["subject"], judge["status"]) == (
        "model",
        "warning",
        "judge",
        "failed",
    )
    assert "set ANTHROPIC_API_KEY" in judge["hint"]
    assert done.returncode == 2


def test_a_cloud_whose_library_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.eventstream", None)
    with pytest.raises(ConfigError) as caught:
        bedrock()
    assert (caught.value.code, caught.value.hint) == ("EXTRA_MISSING", "pip install 'zelda-ci[bedrock]'")


def test_credentials_of_google_are_renewed_and_its_failure_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    google, errors = import_module("google.auth"), import_module("google.auth.exceptions")

    class Renewing:
        token = 0

        def before_request(self, request: object, method: str, url: str, headers: dict[str, str]) -> None:
            self.token += 1
            if self.token > 1:
                raise errors.RefreshError("the login has expired")
            headers["authorization"] = f"Bearer {TOKEN}-{self.token}"

    monkeypatch.setattr(google, "default", lambda _: (Renewing(), None))
    vertex = Vertex("p-1", "us-east5", {}, "", {})
    call = Call("/v1/messages", [], b"{}", {"model": "claude-sonnet-5-5@20260101"})
    assert (b"authorization", f"Bearer {TOKEN}-1".encode()) in vertex.wired(call)[1]
    assert vertex.masked(f"no: {TOKEN}-1") == "no: ***"
    with pytest.raises(UnreachableError, match="cannot be renewed: the login has expired"):
        vertex.wired(call)
