"""`zelda run` while somebody sets the clock: what took time took as long as it did."""

import shutil
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.command import environment, run_cold, the_result
from tests.support.projects import repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text

HOURS = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME && !access(MARK, F_OK)) now->tv_sec += OFFSET;
  return result;
}
time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return out ? (*out = now.tv_sec) : now.tv_sec;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, to give one process another clock")
@pytest.mark.parametrize("hours", [-2, 2])
def test_a_clock_that_is_set_amid_a_run_changes_no_duration(tmp_path: Path, hours: int) -> None:
    mark, library = tmp_path / "set", tmp_path / "clock.so"
    flags = (f'-DMARK="{mark}"', f"-DOFFSET={hours * 3600}", "-shared", "-fPIC", "-o", library)
    subprocess.run(["cc", "-x", "c", "-", *flags], input=HOURS, text=True, check=True)
    project = repository(tmp_path, {"zelda/test-one.yaml": "prompt: Say hello.\n"})

    def model(_: ApiRequest) -> Reply:
        mark.touch()
        return text("Hello.")

    with ScriptedApi(model) as api:
        environ = environment(project, api.url, LD_PRELOAD=str(library))
        done = run_cold(["run"], project.path, environ)
    assert done.returncode == 0, done.stdout + done.stderr
    result = the_result(project)
    began, ended = (datetime.fromisoformat(result[name]) for name in ("startedAt", "finishedAt"))
    assert 0 < (ended - began).total_seconds() < 600
    (elapsed,) = (line for line in done.stdout.splitlines() if "Elapsed" in line)
    assert elapsed.endswith(" s")
    assert "-" not in elapsed
