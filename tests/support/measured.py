"""What `make coverage` counts beside the tests' own process: commands, and the supervisors that these start."""

import atexit
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from tests.support.places import make_passable
from zelda_ci.sandbox import programs

SUPERVISOR = """\
import sys
sys.path += {path}
import coverage, os, runpy
os.environ.update({environ})
# What it starts is confined, and could not keep a count of its own where the repository lies.
os.register_at_fork = lambda **_: None
coverage.process_startup()
for name in {environ}:
    del os.environ[name]
del sys.path[-{entries}:]
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def measured() -> dict[str, str]:
    """What a process needs to know for its lines to count; nothing where they are not counted."""
    return {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}


def count_supervisors() -> None:
    """Have this process start its supervisors with coverage, which `python -I -S` does not do by itself."""
    spec = find_spec("coverage") if measured() else None
    if not spec or not spec.origin:
        return
    folder, owner = make_passable(prefix="measured-"), os.getpid()
    # Commands are forks of the process that made it, and leave it to the others.
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if owner == os.getpid() else None)
    path = [str(Path(spec.origin).parents[1])]
    file, usual = folder / "supervisor.py", programs.supervisor
    file.write_text(SUPERVISOR.format(path=path, entries=len(path), environ=measured()))

    at = len(programs.python())
    programs.supervisor = lambda parent: [*programs.python(), str(file), *usual(parent)[at:]]
