"""The floor: one session through the Agent SDK and nothing else. Arguments: project folder, API URL, private folder."""

import asyncio
import sys
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


async def main(project: str, url: str, private: str) -> None:
    home = Path(private)
    options = ClaudeAgentOptions(
        cwd=project,
        model="claude-sonnet-5-5",
        system_prompt={"type": "preset", "preset": "claude_code"},
        setting_sources=["project"],
        permission_mode="bypassPermissions",
        max_turns=30,
        env={
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-ant-fake-bench",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CONFIG_DIR": str(home / "config"),
            "HOME": str(home),
            "IS_SANDBOX": "1",
        },
    )
    async for message in query(prompt="Add a greeting and commit it.", options=options):
        if isinstance(message, ResultMessage) and (message.is_error or message.num_turns < 3):
            raise SystemExit(f"the session failed: {message}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
