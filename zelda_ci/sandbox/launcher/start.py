"""Starts a program of this package: `python -I -S start.py NAME ARGUMENT…`.

Each is a module with a function `main`, since Python keeps modules compiled, and compiles a script at every start.
"""

import os
import sys

sys.path.append(os.path.abspath(f"{__file__}/../../../.."))  # noqa: PTH100  # pathlib would slow the start
name = sys.argv[1]
getattr(__import__("zelda_ci.sandbox.launcher", fromlist=[name]), name).main(sys.argv[2:])
