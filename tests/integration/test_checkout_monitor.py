"""The check of the checkout: what happens to the developer's tree is reported, however it was done."""

import os
import subprocess
import time
from pathlib import Path

from zelda_ci.redact import Redactor
from zelda_ci.workspace.checkout_monitor import MAX_LISTED, WatchedCheckout


def test_every_change_is_told_and_reading_is_none(tmp_path: Path) -> None:
    project, common = tmp_path / "the project", tmp_path / "common"
    (project / "src" / "deep").mkdir(parents=True)
    code = project / "src" / "deep" / "code.py"
    code.write_text("x = 1\n")
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "link").symlink_to("run.sh")
    (project / ".zelda" / "runs").mkdir(parents=True)
    common.mkdir()
    subprocess.run(["git", "init", "-q", project], check=True)
    watched = WatchedCheckout([project, project / ".git", common], without=[project / ".zelda"])
    code.read_text()
    (project / ".zelda" / "runs" / "new").write_text("ours")
    assert not watched.compare(Redactor(())).changes
    # So that a change of the same clock tick cannot be missed: the kernel's file times move every few milliseconds.
    time.sleep(0.02)
    status = code.stat()
    code.write_text("x = 2\n")
    os.utime(code, ns=(status.st_atime_ns, status.st_mtime_ns))
    (project / "run.sh").unlink()
    (project / "new").symlink_to("src")
    (project / "new").rename(project / "link")
    os.mkfifo(project / ".git" / "index.lock")
    (common / "HEAD").write_text("ref: refs/heads/evil\n")
    found = watched.compare(Redactor(()))
    assert {(change.path, change.kind) for change in found.changes} == {
        ("src/deep/code.py", "changed"),
        ("run.sh", "removed"),
        ("link", "changed"),
        (".git/index.lock", "added"),
        (str(common / "HEAD"), "added"),
    }
    # Of many changes the first are listed, and the others counted.
    for number in range(MAX_LISTED):
        (project / f"new-{number:03}").touch()
    found = watched.compare(Redactor(()))
    assert (len(found.changes), found.more) == (MAX_LISTED, 5)
