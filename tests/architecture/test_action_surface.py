"""action.yml, its reference in docs/action.md, the README, the examples and the settings say the same."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from zelda_ci.ci.settings import INPUTS
from zelda_ci.config.schema import choices
from zelda_ci.domain.suite import IsolationSettings
from zelda_ci.pipeline.fingerprints import IMAGE

REPOSITORY = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((REPOSITORY / "action.yml").read_text())
REFERENCE = (REPOSITORY / "docs" / "action.md").read_text()
WORKFLOWS = [
    *sorted((REPOSITORY / "examples").glob("zelda*.yml")),
    *sorted((REPOSITORY / ".github" / "workflows").glob("zelda*.yml")),
]


def table(heading: str) -> dict[str, list[str]]:
    """First cell → the others, of the table in a section of the reference."""
    section = re.split(r"^## ", REFERENCE, flags=re.MULTILINE)
    (text,) = [each for each in section if each.startswith(heading + "\n")]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]
    return {name.strip("`"): rest for name, *rest in rows}


def test_the_action_has_the_outputs_that_are_written_and_described() -> None:
    code = "".join(path.read_text() for path in (REPOSITORY / "zelda_ci/ci").glob("*.py"))
    assert [name for name in ACTION["outputs"] if f'"{name}"' not in code] == []
    assert list(table("Outputs")) == list(ACTION["outputs"])


LEVELS = choices(IsolationSettings.model_fields["level"].annotation)


def test_the_words_that_an_input_allows_are_in_its_description() -> None:
    allowed = {name: choices(field.annotation) for name, field in INPUTS.items()}
    assert len(allowed["mode"]) == 5
    described = {name: each["description"] for name, each in ACTION["inputs"].items()}
    assert [(name, word) for name in allowed for word in allowed[name] if word not in described[name]] == []


def test_the_bug_report_knows_every_level() -> None:
    form = yaml.safe_load((REPOSITORY / ".github/ISSUE_TEMPLATE/bug.yml").read_text())
    (asked,) = [field for field in form["body"] if field.get("id") == "isolation"]
    assert [level for level in LEVELS if level != "auto"] == asked["attributes"]["options"][:-1]


def test_the_action_on_the_runner_has_the_same_inputs_and_outputs() -> None:
    runner: dict[str, Any] = yaml.safe_load((REPOSITORY / "runner/action.yml").read_text())
    assert (runner["inputs"], runner["outputs"]) == (ACTION["inputs"], ACTION["outputs"])
    assert runner["runs"] == {"using": "node24", "main": "main.js"}


def test_the_readme_leads_to_the_reference() -> None:
    assert "docs/action.md" in (REPOSITORY / "README.md").read_text()


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_workflows_use_inputs_and_outputs_that_exist(file: Path) -> None:
    for job in yaml.safe_load(file.read_text())["jobs"].values():
        for step in job.get("steps", ()):
            if step.get("uses", "").startswith(("./", "zelda-ci/")):
                assert set(step.get("with", {})) <= set(INPUTS)
    assert set(re.findall(r"steps\.zelda\.outputs\.([a-z-]+)", file.read_text())) <= set(ACTION["outputs"])
    assert {name.lower() for name in re.findall(r'"INPUT_([A-Z-]+)=', file.read_text())} <= set(INPUTS)


def test_the_action_starts_what_the_image_offers_and_passes_nothing_by_argument() -> None:
    runs = ACTION["runs"]
    assert (runs["using"], runs["image"], runs["args"]) == ("docker", "Dockerfile", ["ci"])
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["/usr/bin/tini", "-s", "--", "/opt/zelda/bin/python3", "-IBu", "-m", "zelda_ci"]' in dockerfile
    assert f" {IMAGE}=1 ZELDA_WORKSPACES=/var/lib/zelda/runs\n" in dockerfile
    assert "mkdir -m 1777 /var/lib/zelda\n" in dockerfile
    assert not re.search(r"^USER ", dockerfile, re.MULTILINE)


def test_the_image_is_made_of_locked_packages_only() -> None:
    lines = (REPOSITORY / "Dockerfile").read_text().replace("\\\n", " ")
    pips = [command for command in re.split(r"&&|\n", lines) if "bin/pip" in command and " install " in command]
    assert len(pips) == 3
    assert all("--require-hashes" in each or "--no-deps" in each for each in pips)
    # What is installed before Zelda is made of nothing else, so that a new version is a new last layer.
    first, *_, last = re.findall(r"^(?:COPY|ADD) .*", lines, re.MULTILINE)
    assert first == "COPY requirements/ /requirements/"
    assert last == lines.rstrip().rpartition("\n")[2] == "COPY --from=package /package/ /opt/zelda/"


def spoken() -> str:
    """All texts in our code, with a mark wherever something is put in."""
    found = []
    for path in sorted([*(REPOSITORY / "zelda_ci").rglob("*.py"), *(REPOSITORY / "runner").glob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "\0" for part in node.values]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def test_messages_that_troubleshooting_explains_are_ours() -> None:
    (_, section) = REFERENCE.split("## Troubleshooting\n")
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    ours = [row for row in rows if not row.endswith("'s)")]
    assert len(ours) > 15
    quoted = [message for row in ours for message in re.findall(r"`([^`]+)`", row)]
    said = spoken().replace("`", "")
    parts = [part.strip() for message in quoted for part in re.split(r"\.\.\.|, ", message)]
    assert [part for part in parts if part not in said] == []
