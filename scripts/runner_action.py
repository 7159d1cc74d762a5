"""Write runner/action.yml: its inputs and outputs are those of action.yml, which stays the one place to change them.

Usage: python scripts/runner_action.py
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "action.yml"
TARGET = ROOT / "runner" / "action.yml"

HEAD = """\
# Written by scripts/runner_action.py from action.yml: change inputs and outputs there.
name: Zelda CI on the runner
description: The same as Zelda CI, without a container, with the toolchains that earlier steps set up
author: The Zelda CI authors

"""
TAIL = """
runs:
  using: node24
  main: main.js
"""


def rendered(action: str) -> str:
    """The runner's action, from the text of the container's.

    Raises:
        ValueError: That text has no inputs and outputs between its head and `runs`.
    """
    shared = re.search(r"^inputs:\n.*?(?=^runs:\n)", action, re.MULTILINE | re.DOTALL)
    if shared is None or "\noutputs:\n" not in shared[0]:
        raise ValueError("action.yml has no inputs and outputs before runs")
    return HEAD + shared[0].rstrip("\n") + "\n" + TAIL


if __name__ == "__main__":
    TARGET.write_text(rendered(SOURCE.read_text("utf-8")), "utf-8")
