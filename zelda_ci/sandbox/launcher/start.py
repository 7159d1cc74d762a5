"""Starts a program of this package, a module, which Python keeps compiled: `python -I -S start.py NAME ARGUMENT…`."""

import os
import sys

# The package without those above it: a confined program may list this folder, and none above.
package = type(sys)("zelda_ci.sandbox.launcher")
package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["zelda_ci"] = sys.modules[package.__name__] = package

name = sys.argv[1]
getattr(__import__(package.__name__, fromlist=[name]), name).main(sys.argv[2:])
