"""`zelda ci` for pull requests: the comment, the check, and everything beside them."""

import json
from pathlib import Path

from tests.scenarios.stage import GOOD, Stage


def test_the_first_push_becomes_the_baseline_of_the_next_pull_request(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        done = stage.push(GOOD)
        print(done.printed)
        assert done.code == 0, done.printed
        assert done.outputs["verdict"] == "passed"
        (stored,) = stage.stored
        provenance = json.loads(stored.files["zelda-ci.json"])
        assert (provenance["sha"], provenance["complete"]) == (stage.tip, True)

        pull = stage.open_pull()
        done = stage.pull_request(pull, GOOD)
        assert done.code == 0, done.printed
        print(done.printed, done.outputs)
        assert done.outputs["baseline-sha"] == stage.tip
        assert done.outputs["verdict"] == "unchanged"
        (body,) = stage.bodies()
        print(body)
        assert f"main@{stage.tip[:7]}" in body
