"""Which suites `zelda run` runs: folders, patterns, text, what failed last, every project; what it says of others."""

import json
from pathlib import Path

from tests.support.command import results, zelda
from tests.support.history import store
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text
from tests.unit.compare.runs import fulfillment

SUITE = "prompt: {0}\nmetrics: {{toolUsage: false}}\nexecution: {{maxTurns: 2}}\n"


def project_with(tmp_path: Path, *suites: str, **files: str) -> Project:
    written = {f"zelda/{suite}.yaml": SUITE.format(f"Say {suite}.") for suite in suites}
    return repository(tmp_path, {"README.md": "# Sample\n", **written, **files})


def run(project: Project, *arguments: str) -> tuple[int, str]:
    with ScriptedApi(lambda _: text("Hello.")) as api:
        done = zelda(project, "run", *arguments, api=api.url)
    return done.returncode, done.stdout + done.stderr


def ran(project: Project) -> list[str]:
    return sorted(result["suite"] for result in results(project))


def listed(project: Project, *arguments: str) -> list[str]:
    """Of `zelda validate`, which selects as `run` does."""
    done = zelda(project, "validate", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return [suite["config"]["name"] for suite in json.loads(done.stdout)["suites"]]


def test_suites_lie_in_folders_and_are_meant_by_folder_and_pattern(tmp_path: Path) -> None:
    project = project_with(tmp_path, "test-top", "api/test-list", "api/test-show", "web/deep/test-page")
    assert listed(project) == ["list", "show", "top", "page"]
    assert listed(project, "api/*") == listed(project, "zelda/api") == ["list", "show"]
    assert listed(project, "api/test-list.yaml", "web") == ["list", "page"]
    assert listed(project, "{top,page}") == ["top", "page"]
    unknown = zelda(project, "validate", "apy/*")
    assert unknown.returncode == 2
    assert 'No suite matches "apy/*".' in unknown.stderr


def test_suites_are_chosen_by_their_text_and_by_what_failed_last(tmp_path: Path) -> None:
    project = project_with(tmp_path, "test-alpha", "test-beta", "test-gamma")
    store(project.results, "alpha", 0, [fulfillment("F")], batch="1")
    store(project.results, "alpha", 1, [fulfillment("P")], batch="2")
    for trial, verdict in ((1, "F"), (2, "P")):
        store(project.results, "beta", 2 + trial, [fulfillment(verdict)], batch="3", trial=trial)
    code, output = run(project, "--last-failed")
    assert code == 0, output
    assert ran(project).count("beta") == 3
    code, output = run(project, "--last-failed")
    assert code == 2
    assert "Every suite passed when it was last run: nothing to run." in output
    code, output = run(project, "--grep", "say TEST-g.mma")
    assert code == 0, output
    assert ran(project).count("gamma") == 1
    code, output = run(project, "--grep", "(")
    assert (code, "is no regular expression: missing" in output) == (2, True)


def test_every_project_of_a_monorepo_is_found_and_run(tmp_path: Path) -> None:
    files = {
        "packages/api/zelda/test-list.yaml": SUITE.format("List."),
        "packages/web/zelda.config.yaml": "testDir: checks\n",
        "packages/web/checks/test-page.yaml": SUITE.format("Page."),
        "node_modules/other/zelda/test-no.yaml": SUITE.format("No."),
    }
    project = repository(tmp_path, {"README.md": "# Mono\n", **files})
    code, output = run(project, "--all-projects", "--report", "page.html")
    assert code == 0, output
    assert all((project.path / "packages" / name / "page.html").is_file() for name in ("api", "web"))
    stored = [project.path / "packages" / name / ".zelda/runs" for name in ("api", "web")]
    assert [len(list(folder.glob("*/result.json"))) for folder in stored] == [1, 1]
    assert output.index("Project packages/api") < output.index("Project packages/web")
    assert "Projects: packages/api (exit code 0), packages/web (exit code 0)" in output
    above = zelda(project, "check")
    assert "there are projects below: packages/api, packages/web" in " ".join(above.stderr.split())
    assert "--all-projects" in above.stderr
    code, output = run(project, "--all-projects", "page", "--reporter", "junit=out.xml")
    assert code == 0, output
    assert "packages/api" not in output
    assert "page" in (project.path / "packages/web/out.xml").read_text()
    taken = zelda(
        project, "run", "--all-projects", "--reporter", f"junit={project.path}/out.xml", api="http://127.0.0.1:1"
    )
    assert taken.returncode == 2
    assert "Several projects cannot write one report." in taken.stderr
