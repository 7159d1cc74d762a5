"""The floor: sessions of the bare Agent SDK, side by side. Arguments: the API's URL, folders that hold a `copy`."""

import asyncio
import sys
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


async def session(url: str, private: Path) -> None:
    options = ClaudeAgentOptions(
        cwd=private / "copy",
        model="claude-sonnet-5-5",
        system_prompt={"type": "preset", "preset": "claude_code"},
        setting_sources=["project"],
        permission_mode="bypassPermissions",
        max_turns=30,
        env={
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-ant-fake-bench",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CONFIG_DIR": str(private / "config"),
            "HOME": str(private),
            "IS_SANDBOX": "1",
        },
    )
    async for message in query(prompt="Add a greeting and commit it.", options=options):
        if isinstance(message, ResultMessage) and (message.is_error or message.num_turns < 3):
            raise SystemExit(f"the session failed: {message}")


async def main(url: str, *folders: str) -> None:
    async with asyncio.TaskGroup() as group:
        for folder in folders:
            group.create_task(session(url, Path(folder)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
