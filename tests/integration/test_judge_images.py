"""A judge that sees what a session saw, from the developer's chair: run, recorded, replayed, and judged again."""

import base64
import hashlib
import json
import struct
import threading
import zlib
from pathlib import Path
from typing import Any

from tests.support.command import zelda
from tests.support.judging import verdict
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, http_error, text, tool_call

SUITE = """\
prompt: Make a red page.
acceptanceCriteria: [The page is red.]
judge: {timeoutSeconds: 300}
"""
RULES = 'Pages are "red\\pink" — always.\n'
SEEN = [{"where": "turn 2 call 1 image 1", "quote": ""}]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def red_page() -> bytes:
    """A picture of 8 by 8 red points."""
    rows = (b"\0" + b"\xff\0\0" * 8) * 8
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def script(request: ApiRequest) -> Reply:
    """The session draws a page and looks at it; the judge goes by what it sees."""
    if request.answer_tool is not None:
        return answered(request, verdict(1, evidence=SEEN))
    drawn = base64.b64encode(red_page()).decode()
    work = [
        tool_call("Bash", {"command": f"echo {drawn} | base64 -d > page.png"}),
        tool_call("Read", {"file_path": "page.png"}),
        text("Done."),
    ]
    return work[request.index]


def answered(request: ApiRequest, judgement: dict[str, Any]) -> Reply:
    """What each of the two judges says: on the criterion, and on the rule, which has no bearing."""
    if request.answer_tool == "answer_verdicts":
        return tool_call(request.answer_tool, {"criteria": [judgement]})
    rule = {"number": 1, "evidence": [], "reasoning": "No occasion.", "verdict": "NOT_APPLICABLE", "tool": ""}
    return tool_call(str(request.answer_tool), {"findings": [rule]})


def images_in(request: ApiRequest) -> list[bytes]:
    """What a judge was shown at the beginning of a question."""
    content = request.messages[0]["content"]
    return [base64.b64decode(block["source"]["data"]) for block in content if block["type"] == "image"]


def judged(project: Project, metric: str = "requirementFulfillment") -> list[dict[str, Any]]:
    """What became of every run, the latest last."""
    files = sorted(project.results.glob("runs/page-*/result.json"))
    return [json.loads(file.read_bytes())["evaluations"][metric] for file in files]


def test_a_judge_sees_the_images_of_a_session_live_replayed_and_again(tmp_path: Path) -> None:
    project = repository(tmp_path, {"CLAUDE.md": RULES, "zelda/test-page.yaml": SUITE})
    cassettes = tmp_path / "cassettes"
    with ScriptedApi(script) as api:
        done = zelda(project, "run", "--record", str(cassettes), api=api.url)
        asked = [request for request in api.requests if request.answer_tool]
    assert done.returncode == 0, done.stdout + done.stderr

    (run,) = project.results.glob("runs/page-*")
    calls = [
        call
        for entry in json.loads((run / "transcript.json").read_bytes())["entries"]
        for call in entry.get("toolCalls", ())
    ]
    ((named,),) = [call["images"] for call in calls if call["name"] == "Read"]
    (file,) = (run / "images").iterdir()
    assert file.name == f"{named['sha256']}.png"
    assert hashlib.sha256(file.read_bytes()).hexdigest() == named["sha256"]
    assert [call.get("images") for call in calls if call["name"] == "Bash"] == [None]
    # Both judges, at the same place.
    assert {request.answer_tool for request in asked} == {"answer_verdicts", "answer_tool_findings"}
    assert [images_in(request) for request in asked] == [[file.read_bytes()]] * 2
    (result,) = judged(project)
    assert result["score"] == 100.0
    assert result["details"]["criteria"][0]["evidence"] == [{"kind": "image", "turn": 2, "call": 1, "image": 1}]

    replayed = zelda(project, "run", "--replay", str(cassettes))
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert "not exactly what was recorded" not in replayed.stdout + replayed.stderr
    first, second = judged(project)
    assert first == second

    an_api_that_refuses_images_is_asked_without_them(project)
    an_image_that_is_gone_is_missed(project)


def an_api_that_refuses_images_is_asked_without_them(project: Project) -> None:
    # Both are refused before either can tell the other.
    both = threading.Barrier(2, timeout=PATIENCE)

    def refuses(request: ApiRequest) -> Reply:
        if images_in(request):
            both.wait()
            return http_error(400, "messages.0.content.1: this model does not support image input")
        return answered(request, verdict(1, "FAIL", evidence=[]))

    with ScriptedApi(refuses) as api:
        again = zelda(project, "rejudge", "latest", api=api.url)
    assert sorted(len(images_in(request)) for request in api.requests) == [0, 0, 1, 1], again.stdout + again.stderr
    assert "this image is not shown: the judge's API refused images" in json.dumps(api.requests[-1].messages)
    for metric in ("requirementFulfillment", "toolUsage"):
        assert judged(project, metric)[-1]["details"]["notes"] == [
            "Of 1 image of the session, the judge did not see 1: the judge's API refused images."
        ]


def an_image_that_is_gone_is_missed(project: Project) -> None:
    for file in project.results.glob("runs/page-*/images/*"):
        file.unlink()

    def cites(request: ApiRequest) -> Reply:
        is_first = "cannot be cited" not in request.last_user_text
        return answered(request, verdict(1, evidence=SEEN) if is_first else verdict(1, "FAIL", evidence=[]))

    with ScriptedApi(cites) as api:
        zelda(project, "rejudge", "latest", api=api.url)
    assert [images_in(request) for request in api.requests] == [[], [], []]
    assert all("this image is not shown: its file is gone" in json.dumps(each.messages) for each in api.requests)
    assert judged(project)[-1]["details"]["notes"] == [
        "Of 1 image of the session, the judge did not see 1: its file is gone."
    ]
