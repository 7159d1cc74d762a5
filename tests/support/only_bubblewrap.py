"""A program on a system that lets bubblewrap make namespaces, and nobody else: `python -m … MODULE ARGUMENT…`."""

import runpy
import sys
from unittest import mock

from zelda_ci.sandbox import levels

if __name__ == "__main__":
    del sys.argv[0]
    with mock.patch.object(levels, "_refused", return_value="namespaces: forbidden"):
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
