"""Every kind of steering in every state, in one session of the real Claude Code: the manifest says what it did."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import result
from tests.integration.test_manifest_against_claude_code import SERVER, Led, lead
from tests.support.scripted_api import tool_call
from tests.support.steered import head, safe, workspace_in
from zelda_ci.domain.kinds import CALLED, FOLLOWED, KINDS, ItemKind, Shown
from zelda_ci.domain.manifest import CUT, ONLY_NAME, ManifestItem
from zelda_ci.execution.manifest.scan import memory_lines
from zelda_ci.metrics.tool_usage import subjects
from zelda_ci.selection.felt import with_felt

HOOK = "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: echo {}\n"
# As the head of a file may spell it, and whether Claude Code takes it for a yes.
SPELLINGS = {
    "1": True, "0": False, "yes": True, "no": False, "on": True, "off": False, "True": True, "'true'": True,
    "' TRUE'": True, "'yes '": True, "2": False, "1.0": True, "null": False, "y": False, "[true]": False,
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "agent": "lead",
    "outputStyle": "terse",
    "skillOverrides": {"s-name": "name-only", "s-user": "user-invocable-only", "s-off": "off", "c-name": "name-only",
                       "c-off": "off", "w-off": "off"},
    "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "true"}]}]},
}  # fmt: skip
KIT, MOD, MARKET = ".claude/skills/kit", ".claude/skills/moddy", "market/p"
PLUGINS = {
    f"{KIT}/.claude-plugin/plugin.json": json.dumps({"name": "kit", "commands": "./more"}),
    f"{KIT}/skills/inner/SKILL.md": head(description="MARK:kit:inner;"),
    f"{KIT}/commands/never.md": "Never.\n",
    f"{KIT}/more/ops/go.md": head(description="MARK:kit:ops:go;"),
    f"{KIT}/agents/team/a.md": head(name="helper", description="MARK:kit:team:helper;"),
    f"{KIT}/workflows/w.js": "export const meta = {name: 'flow', description: 'MARK:kit:flow;'}\n",
    f"{KIT}/hooks/hooks.json": json.dumps(
        {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    ),
    f"{KIT}/output-styles/curt.md": head(name="curt", description="x"),
    f"{KIT}/settings.json": "{}",
    f"{KIT}/bin/prog": "#!/bin/sh\n",
    f"{KIT}/.mcp.json": json.dumps({"mcpServers": {"greeter": SERVER}}),
    f"{MOD}/.claude-plugin/plugin.json": json.dumps({"name": "moddy"}),
    f"{MOD}/skills/of-mod/SKILL.md": head(description="MARK:moddy:of-mod;"),
    f"{MOD}/hooks/hooks.json": json.dumps({"modules": ["./register.js"]}),
    f"{MOD}/hooks/register.js": "export function register(on) {}\n",
    ".claude/skills/offk/.claude-plugin/plugin.json": json.dumps({"name": "offk"}),
    ".claude/skills/offk/skills/o/SKILL.md": head(description="MARK:offk:o;"),
    ".claude/skills/nameless/.claude-plugin/plugin.json": "{}",
    "market/.claude-plugin/marketplace.json": json.dumps(
        {
            "name": "market",
            "owner": {"name": "x"},
            "plugins": [{"name": "p", "source": "./p"}, {"name": "far", "source": {"source": "npm", "package": "x"}}],
        }
    ),
    f"{MARKET}/.claude-plugin/plugin.json": json.dumps({"name": "p"}),
    f"{MARKET}/skills/sold/SKILL.md": head(description="MARK:p:sold;"),
}
SETTINGS |= {
    "extraKnownMarketplaces": {"market": {"source": {"source": "directory", "path": "./market"}}},
    "enabledPlugins": {"offk@skills-dir": False, "p@market": True, "far@market": True, "gone@market": True},
}
FILES = {
    **PLUGINS,
    "CLAUDE.md": "MARK:CLAUDE.md\n",
    ".claude/rules/r.md": "MARK:.claude/rules/r.md\n",
    ".claude/rules/waits.md": head("MARK:.claude/rules/waits.md\n", paths="src/**"),
    ".claude/settings.json": json.dumps(SETTINGS),
    ".claude/output-styles/terse.md": head("MARK:STYLE\n", name="terse", description="x"),
    **{f".claude/skills/{name}/SKILL.md": head(description=f"MARK:{name};") for name in ("s-name", "s-user", "s-off")},
    ".claude/skills/s-when/SKILL.md": "---\ndescription: Ships.\nwhen_to_use: MARK:s-when;\n---\nDo it.\n",
    ".claude/skills/s-long/SKILL.md": head(description="d" * 1600 + " MARK:s-long;"),
    ".claude/skills/s-hooked/SKILL.md": f"---\ndescription: MARK:s-hooked;\n{HOOK.format('SKILL-HOOK')}---\nDo it.\n",
    ".claude/skills/s-silent/SKILL.md": f"---\ndescription: MARK:s-silent;\n{HOOK.format('NEVER')}---\nDo it.\n",
    **{
        f".claude/skills/d{number}/SKILL.md": head(description=f"MARK:d{number};", disable_model_invocation=value)
        for number, value in enumerate(SPELLINGS)
    },
    **{
        f".claude/skills/u{number}/SKILL.md": head(description=f"MARK:u{number};", user_invocable=value)
        for number, value in enumerate(SPELLINGS)
    },
    **{f".claude/commands/{name}.md": head(description=f"MARK:{name};") for name in ("c-name", "c-off", "c-plain")},
    ".claude/agents/lead.md": head("MARK:LEAD\n", name="lead", description="MARK:lead;"),
    ".claude/agents/colon.md": head(name="a:b", description="MARK:a:b;"),
    ".claude/agents/plain.md": head(name="plain", description="MARK:plain;"),
    **{
        f".claude/workflows/{name}.js": f"export const meta = {{name: '{name}', description: 'MARK:{name};'}}\n"
        for name in ("w-on", "w-off")
    },
    ".claude/workflows/w-none.js": "export default 1\n",
}  # fmt: skip
# Heads of files as people write them, each of a skill with the name that is put into it.
HEADS = (
    "\ufeff---\ndescription: MARK:{};\n---\n", "---\r\ndescription: MARK:{};\r\n---\r\n",
    "---\r\ndescription: x a: b\r\n---\r\nMARK:{};\r\n",
    "---\rdescription: MARK:{};\r---\r", "\n---\ndescription: MARK:{};\n---\n",
    "---\n\ndescription: MARK:{};\n---\n", "---\n---\nMARK:{};\n", "---\n# none\n---\nMARK:{};\n",
    "----\ndescription: x\n----\n",
    "---\ndescription: MARK:{}; a --- b\ndisable-model-invocation: true\n---\n", "---\ndescription: MARK:{};\n",
    "---\ndescription: 'MARK:{}; ---'\ndisable-model-invocation: true\n---\n", "---\ndescription: MARK:{};\n  ---\n",
    "---\ndescription:\tMARK:{};\nmetadata:\n\ta: b\n---\n", "---\n\tdescription: MARK:{};\n---\n",
    "---\n- a\n---\nMARK:{};\n",
    "---\nDescription: MARK:{};\n---\nx\n", "---\ndescription: MARK:{};\nDisable-Model-Invocation: true\n---\n",
    "---\ndescription: MARK:{};\ndisable_model_invocation: true\n---\n", "---\nx: &a MARK:{};\ndescription: *a\n---\n",
    "---\ndescription: 12\n---\nMARK:{};\n", "---\ndescription: yes\n---\nMARK:{};\n",
    "---\ndescription: ~\n---\nMARK:{};\n",
    "---\ndescription: 2024-01-01\n---\nMARK:{};\n", "---\ndescription: [a]\n---\nMARK:{};\n",
    "---\ndescription: MARK:{}; a: b\ndisable-model-invocation: true\n---\n", "---\ndescription: @MARK:{};\n---\n",
    '---\ndescription: MARK:{};\nx:\n - a\n  - b: c: d\n"\n---\nx\n', '---\ndescription: "MARK:{};\nx: y\n---\nz\n',
    *(f"---\ndescription: MARK:{{}};\ndisable-model-invocation: {word}\n---\n" for word in (
        "1e0", "'1.0'", "0o1", "0b1", "01", "+1", "!!str true", "\ttrue", "true # x", "", "On ", "1.5", "{{a: 1}}",
    )),
)  # fmt: skip
NAMES = ("With Space", "a.b", "ünï", "-dash", ".dot", "less<than", "quote'q", " lead", "node_modules", "x" * 200)
ODD = {
    **{f".claude/skills/h{number}/SKILL.md": text.format(f"h{number}") for number, text in enumerate(HEADS)},
    **{f".claude/skills/{name}/SKILL.md": head(description=f"MARK:{name};") for name in NAMES},
    **{
        f".claude/agents/a{number}.md": head(name=f"'{name}'", description=f"MARK:{name};")
        for number, name in enumerate(("Agent One", "agent.two", "-agent", "yes", "  spaces", "a\uff1ab", "UP"))
    },
    **{f".claude/agents/{name}.md": head(name=name, description=f"MARK:{name};") for name in ("on", "no", "1_0", "12")},
    ".claude/agents/denied.md": head(name="denied", description="MARK:denied;"),
    ".claude/agents/inline.md": "---\ndescription: MARK:inline; --- x\nname: inline\n---\nx\n",
    ".claude/agents/hooked.md": "---\nname: hooked\ndescription: MARK:hooked;\nhooks:\n  PreToolUse: bad\n---\nx\n",
    ".claude/commands/box/SKILL.md": head(description="MARK:box;"),
    ".claude/commands/box/other.md": head(description="MARK:box:other;"),
    ".claude/commands/deep/in/skill.md": head(description="MARK:deep:in;"),
    ".claude/commands/up.MD": head(description="MARK:up;"),
    ".claude/commands/.hid.md": head(description="MARK:.hid;"),
    **{
        f".claude/workflows/w-{mode}.js": f"export const meta = {{name: 'w-{mode}', description: 'MARK:w-{mode};'}}\n"
        for mode in ("name-only", "user-invocable-only", "on")
    },
    ".claude/settings.local.json": json.dumps({"skillOverrides": {"h0": "off"}, "permissions": {"deny": ["Skill"]}}),
    ".claude/settings.json": "\ufeff" + json.dumps(
        {
            "skillOverrides": {f"w-{mode}": mode for mode in ("name-only", "user-invocable-only")},
            "permissions": {"deny": ["Agent(denied)", "Skill(h1)"]},
        }
    ),
    "CLAUDE.md": "<!-- nothing -->\n",
    "AGENTS.md": "MARK:AGENTS.md\n- a\n    - @docs/list.md\n**@docs/bold.md**\n(@docs/not.md)\n",
    **{f"docs/{name}.md": f"MARK:docs/{name}.md\n" for name in ("list", "bold", "rule", "paths")},
    ".claude/rules/imports.md": "MARK:.claude/rules/imports.md\n@../../docs/rule.md\n",
    ".claude/rules/inline.md": "---\nx: a --- b\npaths: src/**\n---\nMARK:.claude/rules/inline.md\n",
    ".claude/rules/local.md": head("MARK:.claude/rules/local.md\n@../../docs/paths.md\n", paths="src/**"),
    **{
        f".claude/rules/p{number}.md": head(f"MARK:.claude/rules/p{number}.md\n", paths=paths)
        for number, paths in enumerate(
            ("'**/**'", "/**", "['**', 'src/**']", "['**, **']", "[lib/**]", "'src/{a,b}.py'", "5", "''", "[]")
        )
    },
    "src/lib/x.py": "x\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Led:
    return lead(tmp_path_factory.mktemp("odd"), ODD, tool_call("Read", {"file_path": "$WORKSPACE/src/lib/x.py"}))


@pytest.fixture(scope="module")
def led(tmp_path_factory: pytest.TempPathFactory) -> Led:
    replies = [
        tool_call("Skill", {"skill": "s-hooked"}),
        tool_call("Bash", {"command": "true"}),
        tool_call("Skill", {"skill": "w-on"}),
    ]
    return lead(tmp_path_factory.mktemp("kinds"), FILES, *replies)


# Markdown with the name of a file in it, after an @: Claude Code imports it from running text.
IMPORTS = (
    "- item\n\n    {}\n", "1. x\n\n   {}\n", "- x\n  more {}\n", "para\n    {}\n", "x\n\n    {}\n", "x\n\n\t{}\n",
    "- a\n\n        {}\n", "- a\n\n      {}\n", "- a\n    - b\n\n        {}\n", "> {}\n", "|a|b|\n|-|-|\n|{}|x|\n",
    "|a|b|\n|-|-|\n| {} |x|\n", "<div>\n{}\n</div>\n", "a <b>{}</b>\n", "[x]({})\n", "[{}](http://x)\n", "# {}\n",
    "~~~\n{}\n~~~\n", "````\n```\n{}\n```\n````\n", "- a\n  ```\n  {}\n  ```\n", "   ```\n   {}\n   ```\n",
    "``{}``\n", "a `b\n{}` c\n", "a `b {}\n", "```\n{}\n", "<!-- {} -->\n", "a <!-- {} --> b\n", "\\{}\n", "*{}*\n",
    "**{}**\n", "a *b {} c* d\n", "~~{}~~\n", "_{}_\n", "({})\n", '"{}"\n', "see:{}\n", "see {}.\n", "see {}, x\n",
    "- [ ] {}\n", "{}\n====\n", "a<br>{}\n", "&nbsp;{}\n", "[a]: {}\n", "[^1]: {}\n", "- a\n    {}\n",
    "10. a\n\n    {}\n", ">     {}\n", "> - a\n>\n>   {}\n", "1. a\n\n        {}\n", "- a\n\nx\n\n    {}\n",
    "* a\n\n  b\n\n  {}\n", "a\n: {}\n", "<p>{}</p>\n", "<p>\n\n{}\n\n</p>\n",
    "<details>\n<summary>x</summary>\n\n- {}\n</details>\n", "<pre>\n{}\n</pre>\n", "<script>\n{}\n</script>\n",
    "![{}](x.png)\n", "<{}>\n", "**a {}**\n", "**{}** x\n", "---\n{}\n---\nz\n", "- a\r\n\r\n    {}\r\n",
    "a\u00a0{}\n", "a\u200b{}\n", "<code>{}</code>\n", "x{}\n", "/{}\n", "-{}\n", "   {}\n", "    - {}\n",
    "x\n\n    - {}\n", "<!-- c --> {}\n", "<!--\na\n-->\n{}\n", "text <!-- c --> {}\n", "text <!-- {} -->\n",
    "<!-- c -->\n{}\n", "<!-- c\n\n{}\n\n-->\n", "- a <!-- c --> {}\n", "a <!-- c -->{}\n", "<b><!-- x --> {}</b>\n",
    "@{}\n", "\\* {}\n", "\\@{}\n", "&amp; {}\n", "---\nx: {}\n---\n", '[a]\n\n[a]: /u "{}"\n', "x_{}_\n",
    "~{}~\n", "www.x.org {}\n", "a@b.c {}\n", "http://x.y {}\n", "a  \n{}\n", "a\\\n{}\n", "- a\n\t{}\n",
    "- a\n\n\t{}\n", "1.\ta\n\n\t{}\n", "1) a\n\n   {}\n", "+ a\n\n  {}\n", "> a\n{}\n", "~~~py\n{}\n~~~\n",
    "```\n{}\n````\n", "```\nx\n```\n{}\n", "`` a ` {} ``\n", "a\n<div>{}</div>\n", '<a href="x {}">b</a>\n',
    "a | b\n--|--\n{} | x\n", "| a | b |\n|--|--|\n| x | see {} now |\n", "## x {} ##\n", "- **a**: {}\n",
    "\U0001f600 {}\n", "a\n\n    * {}\n",
)  # fmt: skip
ENDINGS = (
    "",
    ".md",
    ".MD",
    ".txt",
    ".py",
    ".json",
    ".lock",
    ".png",
    ".pdf",
    ".svg",
    ".mdx",
    ".mdc",
    ".ipynb",
    ".gitignore",
)
IMPORTING: dict[str, str | Path] = {
    **{f".claude/rules/i{number}.md": text.format(f"@../../docs/i{number}.md") for number, text in enumerate(IMPORTS)},
    **{f"docs/i{number}.md": f"MARK:docs/i{number}.md;\n" for number in range(len(IMPORTS))},
    "CLAUDE.md": "".join(f"@docs/end{ending} " for ending in ENDINGS)
    + "@docs/with\\ space.md @docs/part.md#of @docs/nul.md "
    + "@docs @docs/long.md @docs/huge.md @docs/again.md @@docs/no.md @%docs/no.md ",
    **{f"docs/end{ending}": f"MARK:docs/end{ending};\n" for ending in ENDINGS},
    **{f"docs/{name}.md": f"MARK:docs/{name}.md;\n" for name in ("with space", "part", "no")},
    "docs/nul.md": "MARK:docs/nul.md;\0\n",
    "docs/long.md": "MARK:docs/long.md;\n" + "x y\n" * 100_000,
    "docs/huge.md": "MARK:docs/huge.md;\n" + "x y\n" * (1 << 20),
    "docs/again.md": Path("part.md"),
}
LINKED = {
    "lib/commands/a.md": head(description="MARK:a;"), "lib/commands/deep/b.md": head(description="MARK:b;"),
    "lib/skills/s/SKILL.md": head(description="MARK:s;"), "lib/agents/x.md": head(name="x", description="MARK:x;"),
    "lib/rules/r.md": "MARK:rules/r.md;\n@beside.txt\n", "lib/rules/deep/r.md": "MARK:rules/deep/r.md;\n",
    "lib/rules/beside.txt": "MARK:lib/rules/beside.txt;\n",
    "lib/workflows/w.js": "export const meta = {name: 'w', description: 'MARK:w;'}\n",
    "lib/one.md": head(name="one", description="MARK:one;"),
}  # fmt: skip
LINKED_FOLDERS: dict[str, str | Path] = {
    **LINKED,
    **{
        f".claude/{folder}": Path("../lib", folder) for folder in ("skills", "commands", "agents", "rules", "workflows")
    },
}
LINKED_INSIDE: dict[str, str | Path] = {
    **LINKED,
    **{f".claude/{folder}/to": Path("../../lib", folder) for folder in ("commands", "agents", "rules")},
    ".claude/workflows/w.js": Path("../../lib/workflows/w.js"),
    # Of two names of a folder, the order of the file system decides.
    **{f".claude/{folder}/two": Path("../../lib", folder) for folder in ("agents", "rules")},
    **{f".claude/{folder}/loop": Path("../../.claude", folder) for folder in ("agents", "rules")},
    **{f".claude/skills/{name}": Path("../../lib/skills/s") for name in ("s", "t")},
    **{f".claude/{folder}/one.md": Path("../../lib/one.md") for folder in ("commands", "agents")},
    ".claude/commands/same.md": Path("../../lib/one.md"),
    ".claude/skills/nowhere": Path("../../lib/none"), ".claude/rules/nowhere.md": Path("../../lib/none.md"),
    ".claude/rules/one.md": Path("../../lib/rules/r.md"),
}  # fmt: skip


def test_claude_md_files_and_rules_import_what_claude_code_imports(tmp_path: Path) -> None:
    led = lead(tmp_path, IMPORTING)
    real = {name for name, text in IMPORTING.items() if f"MARK:{name};" in str(text) and f"MARK:{name};" in led.told()}
    assert led.loaded(ItemKind.MEMORY) - {"CLAUDE.md"} == real
    assert len(IMPORTS) / 3 < len(real) < len(IMPORTING) / 3
    reasons = led.not_loaded(ItemKind.MEMORY)
    assert {reasons[f"docs/end{ending}"] for ending in ENDINGS if ending in (".png", ".pdf", ".svg", ".mdx")} == {
        "Claude Code imports no files with this ending"
    }


@pytest.mark.parametrize("files", [LINKED_FOLDERS, LINKED_INSIDE], ids=["folders", "inside"])
def test_linked_files_and_folders_are_what_claude_code_makes_of_them(
    tmp_path: Path, files: dict[str, str | Path]
) -> None:
    led = lead(tmp_path, files)
    for kind in CALLED - {ItemKind.MCP_SERVER}:
        listed = {name for each in KINDS[kind].listed for name in getattr(led.started, each)}
        own = [it for it in led.manifest.items if it.kind is kind]
        assert {it.name for it in own if it.loaded} == {it.name for it in own} & listed
        assert not [it for it in own if not (it.loaded or it.problem)]
        assert any(it.loaded for it in own)
    told = {name.removeprefix("lib/") for name in LINKED if f"MARK:{name.removeprefix('lib/')};" in led.told()}
    rules = [
        str(it.file).rpartition("rules/")[2] for it in led.manifest.items if it.kind is ItemKind.RULE and it.loaded
    ]
    assert len(rules) == len(told) == 2
    assert led.loaded(ItemKind.MEMORY) == {"lib/rules/beside.txt"}
    assert "MARK:lib/rules/beside.txt;" in led.told()


# What a listing has no room for, and what rules withhold.
DENIED = {
    "Skill(k-*)": None, "Skill(k-word *)": "k-words", "Skill(k-start:*)": "k-starting", "Skill(/k-slash)": "k-slash",
    "Skill(k-label)": "k-labelled", "Skill(ops:go)": "ops:go", "Skill(K-CASE)": None, " Skill(k-blank) ": None,
    "Skill(kit:inner)": "kit:inner", "Agent(a-no)": "a-no", "Task(a-task)": "a-task", " Agent(a-blank) ": None,
    "Agent(a-yes:*)": None, "Agent(kit:team:helper)": "kit:team:helper", "mcp__whole": "whole",
    "mcp__tool__greet": "tool", "mcp__glob__gr*": "glob", "mcp__*_ird_*": "we ird any", "mcp__open": None,
    "mcp__*_any": None, "mcp__g?eet": None, "mcp__plugin_kit_greeter": "plugin:kit:greeter", "mcp__opener__": None,
}  # fmt: skip
WITHHELD = {
    **{f".claude/skills/k-{name}/SKILL.md": head(description=f"MARK:k-{name};") for name in (
        "words", "starting", "slash", "free", "CASE", "case", "blank")},
    ".claude/skills/k-labelled/SKILL.md": head(name="k-label", description="MARK:k-labelled;"),
    ".claude/commands/ops/go.md": head(description="MARK:ops:go;"),
    **{f".claude/agents/a-{name}.md": head(name=f"a-{name}", description=f"MARK:a-{name};") for name in (
        "no", "task", "blank", "yes")},
    **{file: text for file, text in PLUGINS.items() if file.startswith(KIT)},
    ".mcp.json": json.dumps({"mcpServers": {
        # Of two servers with the same command, Claude Code starts one.
        name: {"command": "env", "args": [f"NAME={name[:2]}", SERVER["command"], *SERVER["args"]]} for name in (
            "whole", "tool", "glob", "we ird any", "opener")}}),
    ".claude/settings.json": json.dumps({"permissions": {"deny": [*DENIED]}}),
}  # fmt: skip


@pytest.fixture(scope="module")
def withheld(tmp_path_factory: pytest.TempPathFactory) -> Led:
    names = ("k-words", "k-starting", "k-slash", "k-free", "k-case", "k-blank", "k-labelled", "ops:go", "kit:inner")
    calls = [tool_call("Skill", {"skill": name}) for name in names]
    return lead(tmp_path_factory.mktemp("withheld"), WITHHELD, *calls)


def test_what_rules_deny_is_said_with_the_rule_and_never_missed(withheld: Led) -> None:
    rules = {name: rule for rule, name in DENIED.items() if name}
    for manifest in (withheld.manifest, withheld.by_files):
        noted = {str(it.name): str(it.note) for it in manifest.items if it.loaded and it.note and "denied" in it.note}
        assert noted == {name: f"denied by {rule}" for name, rule in rules.items()}
        judged = {subject.item.name for subject in subjects(manifest, ()).values()}
        assert judged.isdisjoint(rules)
        assert {"k-free", "k-case", "k-blank", "a-blank", "a-yes", "opener"} <= judged
        hidden = {str(it.name) for it in of(withheld, *CALLED) if it.shown is Shown.HIDDEN}
        assert hidden == {name for name, rule in rules.items() if not rule.startswith("Skill(")}
    refused = {str(call.input["skill"]) for call in withheld.transcript.tool_calls if "blocked" in str(call.output)}
    assert refused == {
        str(it.name) for it in of(withheld, ItemKind.SKILL, ItemKind.COMMAND) if it.shown is Shown.DENIED
    }
    said, real = listings(withheld)
    assert said == real
    (server,) = [it for it in of(withheld, ItemKind.MCP_SERVER) if it.shown is not Shown.HIDDEN]
    assert {*server.tools} == {tool for tool in withheld.started.tools if tool.startswith("mcp__")}


TAKEN = {
    ("*",): {"Skill", "Agent", "mcp"},
    ("Skill", "Task(*)"): {"Skill", "Agent"},
    ("Agent", "mcp__*"): {"Agent", "mcp"},
}


@pytest.mark.parametrize("rules", TAKEN, ids=" ".join)
def test_a_tool_that_a_rule_takes_away_hides_what_it_calls(tmp_path: Path, rules: tuple[str, ...]) -> None:
    led = lead(tmp_path, {**WITHHELD, ".claude/settings.json": json.dumps({"permissions": {"deny": rules}})})
    calls = TAKEN[rules]
    for manifest in (led.manifest, led.by_files):
        told = [
            (KINDS[it.kind].call, it.shown is Shown.HIDDEN) for it in manifest.items if it.kind in CALLED and it.loaded
        ]
        assert {call for call, is_hidden in told if is_hidden} == calls
        assert not calls & {call for call, is_hidden in told if not is_hidden}
    assert listings(led)[0] == listings(led)[1]


FULL = {
    f".claude/skills/f{number:02}/SKILL.md": head(description=f"MARK:f{number:02}; {'word ' * 280}")
    for number in range(40)
}


@pytest.mark.parametrize(
    ("settings", "names", "cut"),
    [
        ({}, 24, 0),
        ({"skillListingMaxDescChars": 50}, 0, 40),
    ],
)
def test_a_listing_that_is_full_leaves_out_what_the_manifest_says(
    tmp_path: Path, settings: dict[str, Any], names: int, cut: int
) -> None:
    led = lead(tmp_path, {**FULL, ".claude/settings.json": json.dumps(settings)})
    said, real = listings(led)
    assert said == real
    skills = [*of(led, ItemKind.SKILL)]
    assert [it.shown for it in skills].count(Shown.NAME) == [str(it.note) for it in skills].count(ONLY_NAME) == names
    assert [str(it.note) for it in skills].count(CUT) == cut
    for item in skills:
        entry = item.name if item.shown is Shown.NAME else f"{item.name}: {item.description}"
        assert json.dumps(f"\n- {entry}\n")[1:-1] in led.told()


def of(led: Led, *kinds: ItemKind) -> Iterator[ManifestItem]:
    found = [item for item in led.manifest.items if item.kind in kinds]
    assert {item.kind for item in found} == set(kinds)
    return iter(found)


def listings(led: Led) -> tuple[dict[str, Shown | None], dict[str, Shown | None]]:
    """What the manifest says of the listing of what can be called, and what the model was told."""
    said: dict[str, Shown | None] = {}
    real: dict[str, Shown | None] = {}
    for item in (it for it in led.manifest.items if it.kind in CALLED - {ItemKind.MCP_SERVER}):
        said[item.name] = item.shown if item.loaded else None
        word = json.dumps(item.name)[1:-1]
        has_name = re.search(rf"- {re.escape(word)}(?![\w-])", led.told())
        has_text = f"MARK:{word};" in led.told()
        real[item.name] = Shown.DESCRIPTION if has_text else Shown.NAME if has_name else None
        if item.description and "MARK" not in item.description and has_name:
            # Of what is longer than its limit, Claude Code tells the beginning.
            real[item.name] = Shown.DESCRIPTION if item.description[:1000] in led.told() else Shown.NAME
    as_listed = {Shown.HIDDEN: None, Shown.DENIED: Shown.DESCRIPTION}
    return {name: as_listed.get(shown, shown) if shown else None for name, shown in said.items()}, real


def test_odd_files_are_read_as_claude_code_reads_them(odd: Led) -> None:
    said, real = listings(odd)
    assert said == real
    assert len([shown for shown in said.values() if shown is None]) > 10
    for kind in CALLED - {ItemKind.MCP_SERVER}:
        listed = {name for each in KINDS[kind].listed for name in getattr(odd.started, each)}
        assert {item.name for item in of(odd, kind) if item.loaded and item.announced} <= listed
    followed = {str(item.name): item.loaded for item in of(odd, *FOLLOWED)}
    assert followed.pop("CLAUDE.md"), "which holds nothing but a comment"
    assert followed == {name: f"MARK:{name}" in odd.told(last=True) for name in followed}
    assert {name for name, text in ODD.items() if f"MARK:{name}" in text} == followed.keys()


def test_the_model_was_told_of_each_what_the_manifest_says(led: Led) -> None:
    said, real = listings(led)
    assert said == real
    assert {*said.values()} == {Shown.DESCRIPTION, Shown.NAME, None}
    assert {item.shown for item in led.manifest.items if item.shown} == {*Shown} - {Shown.DENIED}
    for number, is_yes in enumerate(SPELLINGS.values()):
        assert said[f"d{number}"] is (None if is_yes else Shown.DESCRIPTION)


def test_what_claude_code_listed_is_what_the_manifest_calls_loaded(led: Led) -> None:
    for kind in CALLED - {ItemKind.MCP_SERVER}:
        listed = {name for each in KINDS[kind].listed for name in getattr(led.started, each)}
        for item in of(led, kind):
            # Skills that no person can call are told to the model, and are in no list.
            assert item.loaded == (item.name in listed or not item.announced), item.name


def test_what_is_followed_was_in_the_first_request(led: Led) -> None:
    for item in of(led, *FOLLOWED):
        assert item.loaded == (f"MARK:{item.name}" in led.told()), item.name
    (main,) = [item for item in led.manifest.items if item.is_main]
    assert (main.name, main.text, main.is_followed) == ("lead", "MARK:LEAD", True)
    assert "MARK:LEAD" in led.told()
    assert "MARK:STYLE" in led.told()


def test_hooks_in_heads_are_loaded_once_their_skill_was_called(led: Led) -> None:
    hooks = {(item.file.split("/")[-2], item.name): item.loaded for item in of(led, ItemKind.HOOK)}
    assert hooks == {
        (".claude", "SessionStart"): True,
        ("hooks", "UserPromptSubmit"): True,
        ("s-hooked", "PreToolUse:Bash"): True,
        ("s-silent", "PreToolUse:Bash"): False,
    }
    ran = {str(entry.name) for entry in led.transcript.entries if entry.type == "hookRan"}
    assert {"SessionStart:startup", "PreToolUse:Bash", "UserPromptSubmit"} <= ran


def test_plugins_are_those_of_the_session_and_what_is_absent_says_why(led: Led) -> None:
    own = {str(item.name): str(item.reason) for item in of(led, ItemKind.PLUGIN) if not item.loaded}
    assert {name for name in led.started.plugins if not name.endswith("@builtin")} == {"kit@skills-dir", "p@market"}
    assert own.keys() == {"moddy@skills-dir", "offk@skills-dir", "nameless@skills-dir", "far@market", "gone@market"}
    assert "isolation.mods" in own["moddy@skills-dir"]
    assert "nothing is fetched" in own["far@market"]
    assert {note.split()[2] for note in led.manifest.notes if note.startswith("The plugin ")} == own.keys()
    (mod,) = of(led, ItemKind.MOD)
    assert not mod.loaded
    (server,) = of(led, ItemKind.MCP_SERVER)
    assert (server.name, server.loaded) == ("plugin:kit:greeter", True)
    assert server.tools


def test_claude_md_that_the_project_itself_switches_off_is_not_waited_for(tmp_path: Path) -> None:
    settings = json.dumps({"env": {"CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1"}})
    led = lead(tmp_path, {"CLAUDE.md": "MARK:CLAUDE.md\n", ".claude/settings.json": settings})
    assert not led.loaded(ItemKind.MEMORY)
    assert "MARK:CLAUDE.md" not in led.told()
    assert not memory_lines(workspace_in(tmp_path / "run with space" / "ws"), safe)


def test_what_was_called_or_ran_is_used(led: Led) -> None:
    outcome = with_felt(result(), led.manifest, led.transcript, safe)
    used = {use.unit.name for use in outcome.steering or () if use.used}
    assert {"s-hooked", "w-on", "SessionStart", "PreToolUse:Bash"} <= used
    assert used.isdisjoint({"kit:flow", "s-silent", "c-plain", "plain"})
