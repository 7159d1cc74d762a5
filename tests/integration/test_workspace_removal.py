"""Removal of trees beside other processes and mounts."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from zelda_ci.files import removal

MOUNTS = """
set -e
mkdir -p {tree}/inner/mounted {victim}
touch {victim}/precious {tree}/inner/other
chmod 500 {victim}
mount --bind {victim} {tree}/inner/mounted
{python} -c '
import shlex
import sys
from pathlib import Path
import anyio
from zelda_ci.files import removal
anyio.run(removal.discard, Path(sys.argv[1]), Path(sys.argv[2]))
' {tree} {trash}
"""


def test_a_mount_inside_is_not_entered(tmp_path: Path) -> None:
    """In a mount namespace of its own; where the machine allows none, there is no way for a session to mount either."""
    if subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs user and mount namespaces")
    tree, victim, trash = (tmp_path / name for name in ("tree", "victim", "trash"))
    script = MOUNTS.format(tree=tree, victim=victim, trash=trash, python=shlex.quote(sys.executable))
    argv = ["unshare", "-Urm", "sh", "-c", script]
    done = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "cannot be deleted" in done.stderr
    assert (victim / "precious").exists()
    assert victim.stat().st_mode & 0o777 == 0o500
    removal.empty_now(trash)
    assert list(trash.iterdir()) == []
    assert (victim / "precious").exists()
