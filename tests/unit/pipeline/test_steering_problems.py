"""What in the files that steer does not work as it is written, with its line and the fix."""

import time
from collections.abc import Mapping
from pathlib import Path

from zelda_ci.execution.manifest.scan import scan
from zelda_ci.pipeline.context import steering_problems
from zelda_ci.redact import Redactor

safe = Redactor(())
RULE = "Every amount of money is a Decimal, and no float ever holds one."
LONG = "x" * 1600


def _problems(top: Path, files: Mapping[str, str], folder: str = "") -> list[str]:
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    found = steering_problems(scan(top, top / folder, safe), top, files, safe)
    return [f"{it.file}:{it.line}: {it.problem}. {it.fix}" for it in found]


def test_each_problem_has_its_line_and_the_fix(tmp_path: Path) -> None:
    head = "---\nname: {}\ndescription: {}\n---\nDo it.\n"
    assert (
        _problems(
            tmp_path,
            {
                "CLAUDE.md": f"# Rules\n\nSee @docs/style.md and @docs/gone.md too.\n\n- {RULE}\n",
                "docs/style.md": "Be brief.\n",
                "src/app.py": "",
                ".claude/rules/money.md": f"---\npaths:\n  - src/**\n  - lib/**/*.ts\n---\n<!--\na\n-->\n\n* {RULE}\n",
                ".claude/skills/deploy/SKILL.md": head.format("deploy", LONG),
                ".claude/commands/deploy.md": "Deploy it.\n",
                ".claude/agents/one.md": head.format("critic", "Reads."),
                ".claude/agents/two.md": head.format("critic", "Reads."),
            },
        )
        == """
.claude/agents/one.md:2: the sub-agent critic is never used: .claude/agents/two.md has the same name. \
Rename one of them.
.claude/commands/deploy.md:1: the command deploy is never used: .claude/skills/deploy/SKILL.md has the same name. \
Rename one of them.
.claude/rules/money.md:4: the pattern lib/**/*.ts matches no file. Correct it, or take it out.
.claude/skills/deploy/SKILL.md:3: the description has 1,600 characters, and the model is shown 1,536 at most. \
Shorten description and when_to_use by 64.
CLAUDE.md:3: imports docs/gone.md, which is not loaded: it does not exist. Correct the path, or take the import out.
CLAUDE.md:5: repeats .claude/rules/money.md word for word ("every amount of money is a decimal and"). \
Say it in one of the two; there it is line 10.
""".strip().splitlines()
    )


def test_what_works_is_no_problem(tmp_path: Path) -> None:
    files = {
        "CLAUDE.md": "@docs/style.md\n\nMail me@example.org.\n",
        "docs/style.md": f"{RULE}\n{RULE}\n",
        "packages/a/src/x.ts": "",
        ".claude/rules/ts.md": "---\npaths: '**/*.{ts,tsx}'\n---\nNo any.\n",
        "packages/a/.claude/rules/a.md": "---\npaths: src/**\n---\nSmall files.\n",
        ".claude/skills/a/SKILL.md": "---\ndescription: A.\n---\n",
    }
    assert _problems(tmp_path, files) == []


def test_a_file_that_claude_code_cannot_read_is_named(tmp_path: Path) -> None:
    (tmp_path / ".claude/rules").mkdir(parents=True)
    (tmp_path / ".claude/rules/away.md").symlink_to("/etc/hostname")
    assert (
        _problems(tmp_path, {"CLAUDE.md": "x" * (5 << 20), ".claude/skills/none/README.md": "Do it.\n"})
        == """
.claude/rules/away.md:1: the rule .claude/rules/away.md is not loaded: it leads out of the project, or in circles. \
Correct it, or take it out.
.claude/skills/none:1: the skill none is not loaded: a skill is a folder with a SKILL.md right in it. \
Correct it, or take it out.
CLAUDE.md:1: the CLAUDE.md file CLAUDE.md is not loaded: it is larger than 4 MiB. Correct it, or take it out.
""".strip().splitlines()
    )


def test_an_import_has_the_line_in_which_it_is_one(tmp_path: Path) -> None:
    text = "```\n@gone.md\n```\n<!--\n@gone.md\n-->\n\nSee `@gone.md`.\n\nRead @gone.md now, and @docs/a.md.\n"
    found = _problems(tmp_path, {"CLAUDE.md": text, "docs/a.md": "A.\n"})
    # As Claude Code reads it, a full stop belongs to the name.
    assert [it.partition(", which")[0] for it in found] == [
        "CLAUDE.md:10: imports docs/a.md.",
        "CLAUDE.md:10: imports gone.md",
    ]


def test_from_a_folder_in_the_repository_nothing_beside_it_is_imported(tmp_path: Path) -> None:
    files = {
        "CLAUDE.md": "@docs/a.md\n@svc/b.md\n",
        "svc/CLAUDE.md": "@../docs/a.md\n",
        "docs/a.md": "",
        "svc/b.md": "B",
    }
    places = [it.partition(": it lies outside")[0] for it in _problems(tmp_path, files, "svc")]
    assert places == [
        "CLAUDE.md:1: imports docs/a.md, which is not loaded",
        "svc/CLAUDE.md:1: imports ../docs/a.md, which is not loaded",
    ]


def test_a_pattern_has_the_line_in_which_it_stands_whole(tmp_path: Path) -> None:
    files = {".claude/rules/a.md": "---\npaths:\n  - src/**/*.ts\n  - src/**\n---\nA.\n"}
    assert [it.partition(" matches")[0] for it in _problems(tmp_path, files)] == [
        ".claude/rules/a.md:3: the pattern src/**/*.ts",
        ".claude/rules/a.md:4: the pattern src/**",
    ]


def test_hundreds_of_rules_and_comments_that_never_end_take_a_moment(tmp_path: Path) -> None:
    words = [" ".join(f"w{n * step % 997}" for n in range(400)) for step in range(1, 301)]
    files = {f".claude/rules/{n}.md": text for n, text in enumerate(words)}
    began = time.monotonic()
    _problems(tmp_path, files | {"CLAUDE.md": "<!--\n" * 20_000})
    assert time.monotonic() - began < 10
