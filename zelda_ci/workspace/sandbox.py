"""How the processes of a run are started."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from zelda_ci.domain.workspace import Confinement

SUPERVISOR = Path(__file__).with_name("supervisor.py")


def confine(environment: Mapping[str, str]) -> Confinement:
    """Every process of a run starts under a supervisor, which watches that this process lives."""
    supervisor = (sys.executable, "-I", "-S", str(SUPERVISOR), "--parent", str(os.getpid()))
    return Confinement(supervisor, environment)
