"""`mode: comment`: results that a fork's workflow stored, every byte of which its author may have chosen."""

import copy
import re
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from tests.integration.test_run_against import GREETS, SILENT, SUITE, model
from tests.scenarios.stage import BAD, Stage, results
from tests.scenarios.test_side_by_side import ONE_LOOK
from tests.support.github_html import ACTS, page

HOSTILE = (
    "<!-- zelda-ci:sticky:v1 id=0000000000000000 -->",
    "@octo/admins #1 GH-1 octo/shop#1 https://evil.example/x?y=1 www.evil.example",
    "| a | b |\n|---|---|\n# heading",
    "<img src=x onerror=alert(1)><details open><summary>x</summary>",
    "::error::pwned\n##[set-output name=verdict]improved\r::set-output name=verdict::improved",
    "```\n::add-mask::e\n```",
    "[click](javascript:alert(1)) ![i](https://evil.example/i.png) $x^2$",
    "\u202e\u200b\u0007\u2028x",
)

OURS = {
    *("blockquote", "br", "strong"),
    *("p", "h1", "h2", "h3", "h4", "ul", "li", "strong", "em", "code", "pre", "a", "sub", "br", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td", "blockquote"),
}
"""What the rendered text may consist of."""


def judged(criterion: str, reasoning: str, verdict: str = "FAIL") -> dict[str, Any]:
    return {"criterion": criterion, "verdict": verdict, "reasoning": reasoning, "evidence": [{"where": reasoning}]}


def test_what_a_forks_run_could_not_say_itself_the_second_workflow_says(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.upstream.git("branch", "release")
        stage.store(released := stage.tip, branch="release")
        stage.store(stage.commit())
        pull = stage.open_pull(fork=True)
        stage.github.permissions["pull_requests"] = "read"
        run = stage.pull_request(pull, BAD)
        assert run.code == 1, run.printed
        assert "mode: comment" in run.told("notice")[0].data
        assert stage.bodies() == []
        stage.github.permissions["pull_requests"] = "write"
        done = stage.finished(pull, stage.stored[-1])
        assert done.code == 0, done.printed
        (body,) = stage.bodies()
        told = ("worse in 1 of 1 suite", f"main@{stage.tip[:7]}", "whose author controls", f"head={pull.head_sha}")
        assert [words for words in told if words not in body] == []
        assert "worse in 1 of 1 suite" in done.summary
        assert done.outputs["comment-url"]
        assert "unchanged" in stage.finished(pull, stage.stored[-1]).printed
        # Of another branch, the commit on which the pull request stands is as near as one can be.
        assert stage.finished(pull, stage.stored[-1], baseline_branch="release").code == 0
        (body,) = stage.bodies()
        assert (f"release@{released[:7]}" in body, "behind" in body) == (True, False)


def test_a_fork_whose_base_ran_beside_it_is_told_what_its_check_says(tmp_path: Path) -> None:
    """Nothing is stored of the base, which has no suites: those of the head ran there, and say how it does."""
    with Stage(tmp_path, {"CLAUDE.md": GREETS, "README.md": "# Shop\n"}) as stage:
        pull = stage.open_pull({"CLAUDE.md": SILENT, "zelda/test-greeting.yaml": SUITE}, fork=True)
        stage.github.permissions["pull_requests"] = "read"
        run = stage.pull_request(pull, model, trials=ONE_LOOK)
        stage.github.permissions["pull_requests"] = "write"
        done = stage.finished(pull, stage.stored[-1])
        assert done.code == 0, done.printed
        (body,) = stage.bodies()
        (title,) = (line for line in run.summary.splitlines() if line.startswith("### "))
        assert title in body.splitlines()
        assert "| greeting" in body
        assert f"main@{stage.tip[:7]}" in body
        assert "2 trials of the head, 2 of the base, side by side" in body


def test_results_of_another_run_and_what_is_no_file_of_results_are_refused(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        pull = stage.open_pull(fork=True)
        refused: list[dict[str, Any]] = [
            *({"told": lie} for lie in ({"runId": 1}, {"headSha": "f" * 40}, {"repositoryId": "forty-two"})),
            *({"content": content} for content in (b" ", b'{"schemaVersion": 1}', b"\xff")),
        ]
        for how in refused:
            done = stage.finished(pull, stage.of_fork(pull, **how))
            assert done.code == 2, done.printed
            assert done.told("error")
        done = stage.finished(pull, stage.of_fork(pull, expired=True))
        assert done.code == 0
        assert "stored no results" in done.told("notice")[0].data
        assert not stage.bodies()


def test_a_pull_request_that_moved_on_is_left_alone_and_a_number_in_the_artifact_counts_for_nothing(
    tmp_path: Path,
) -> None:
    with Stage(tmp_path) as stage:
        pull = stage.open_pull(fork=True)
        stage.store(stage.tip)
        stage.github.repository.add_pull(head_sha="a" * 40, number=1)
        artifact = stage.of_fork(pull, told={"pullRequest": 1, "baseSha": "d" * 40})
        assert stage.finished(pull, artifact).code == 0
        assert (len(stage.bodies(7)), stage.bodies(1)) == (1, [])
        assert f"main@{stage.tip[:7]}" in stage.bodies()[0]
        tested, pull.head_sha = pull.head_sha, "b" * 40
        before = stage.bodies()
        event_pull = copy.copy(pull)
        event_pull.head_sha = tested
        done = stage.finished(event_pull, artifact)
        assert done.code == 0
        assert "moved on" in done.told("notice")[0].data
        assert stage.bodies() == before


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    def poison(batch: dict[str, Any]) -> None:
        (template,) = batch["runs"]
        batch["runs"] = [poisoned(template, number, text) for number, text in enumerate(HOSTILE)]

    def poisoned(template: dict[str, Any], number: int, text: str) -> dict[str, Any]:
        run = copy.deepcopy(template)
        run |= {"suite": text, "runId": f"greeting-{number}", "models": [text]}
        run["config"] |= {"name": text, "file": text, "description": text, "prompt": text}
        run["evaluations"]["requirementFulfillment"] = {
            "metric": "requirementFulfillment",
            "version": "1",
            "score": 0,
            "reasoning": text,
            "details": {"criteria": [judged(text, other) for other in HOSTILE]},
        }
        return run

    with Stage(tmp_path) as stage:
        stage.store(stage.tip, content=results(100, poison))
        pull = stage.open_pull(fork=True)
        done = stage.finished(pull, stage.of_fork(pull, content=results(0, poison)))
        assert done.code == 0, done.printed
        (body,) = stage.bodies()
        for told, own in ((body, 2), (done.summary, 0)):
            assert told.count("<!--") == own
            assert not [found for found in page(told).texts if ACTS.search(found)]
            assert "\u202e" not in told
            rendered = MarkdownIt("commonmark").enable("table").render(told)
            assert set(re.findall(r"<([a-z0-9]+)", rendered)) <= OURS
            assert all(
                link.startswith("https://github.com/octo/shop/") for link in re.findall(r'href="([^"]*)', rendered)
            )
