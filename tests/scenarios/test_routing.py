"""`zelda ci` on a pull request that changes a description: what is called for which prompt, base beside head."""

from pathlib import Path

from tests.integration.test_routing import PROJECT, script
from tests.scenarios.stage import Stage
from tests.support.steered import head


def test_the_comment_shows_precision_and_recall_of_base_and_head(tmp_path: Path) -> None:
    with Stage(tmp_path, dict(PROJECT)) as stage:
        stage.push(script, jobs="2")
        unclear = head("Tag it.\n", description="Handles things.")
        pull = stage.open_pull({".claude/skills/release/SKILL.md": unclear})
        done = stage.pull_request(pull, script, jobs="2")
        assert done.code == 0, done.printed
        (body,) = stage.bodies()
        # What is usual for routing suites is the base's, too.
        assert "loosens" not in body
        title, _, fold = body.partition("<summary>Routing: ")[2].partition("</summary>")
        assert title == "zelda/test-routing.yaml: 5 of 6 → 4 of 6 as expected"
        assert [
            line for line in fold.partition("</details>")[0].splitlines() if line.startswith(("| skill", "- "))
        ] == [
            "| skill changelog | 1 of 1 → 1 of 2 | 1 of 1 |",
            "| skill release | 2 of 2 → 1 of 1 | 2 of 2 → 1 of 2 |",
            "| skill speed | \\- | 0 of 1 |",
            "- skill release: skill changelog instead: routing.2 (new)",
            "- skill speed: nothing was called: routing.5",
            "- skill speed: the model saw only the beginning of its description",
        ]
