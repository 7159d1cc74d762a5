"""The text of runner/action.yml, which `make schemas` writes: inputs and outputs are those of action.yml."""

import re

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
