"""What in the files that steer does not work as it is written, with its line and the fix."""

from collections.abc import Mapping
from pathlib import Path

from zelda_ci.execution.manifest.scan import scan
from zelda_ci.pipeline.context import steering_problems
from zelda_ci.redact import Redactor

safe = Redactor(())
RULE = "Every amount of money is a Decimal, and no float ever holds one."
LONG = "x" * 1600


def _problems(top: Path, files: Mapping[str, str]) -> list[str]:
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    found = steering_problems(scan(top, top, safe), top, files, safe)
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
CLAUDE.md:5: repeats .claude/rules/money.md, line 10, word for word ("every amount of money is a decimal and"). \
Say it in one of the two.
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


def test_a_file_that_is_too_large_is_nobodys_import(tmp_path: Path) -> None:
    assert _problems(tmp_path, {"CLAUDE.md": "x" * (5 << 20)}) == []
