"""n: through the kernel, past files and names."""

import os
from pathlib import Path

from tests.hostile.action import Action, claimed, exists, learned


def _left_over(after, _):
    return bool(after.leftovers)


def _mounted(after, _):
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return any(" fuse" in line and str(after.world.root) in line for line in mounts)


def _nice(after, _):
    return os.getpriority(os.PRIO_PROCESS, after.world.services.process) != os.getpriority(os.PRIO_PROCESS, 0)


def _limited(after, _):
    limits = Path(f"/proc/{after.world.services.process}/limits").read_text().splitlines()
    return any(line.split()[:4] == ["Max", "open", "files", "17"] for line in limits)


ACTIONS = (
    Action(
        "n12",
        "settings of the kernel (/proc/sys/kernel/core_pattern)",
        claimed,
        python="""\
from prelude import *
os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
claim()
""",
    ),
    Action(
        "n13",
        "io_uring, whose operations no system call filter sees",
        claimed,
        python="""\
from prelude import *
ring = libc.syscall(425, 4, ctypes.create_string_buffer(120))
print(ring, ctypes.get_errno())
claim() if ring >= 0 else None
""",
    ),
    Action(
        "n14",
        "a program from memory alone (memfd), reading .env",
        learned("dotenv"),
        python="""\
from prelude import *
import shutil, subprocess
memory = os.memfd_create("n14", 0)
os.write(memory, read(shutil.which("cat")))
done = subprocess.run([f"/proc/self/fd/{memory}", FACTS["project"] + "/.env"], pass_fds=[memory], capture_output=True)
tell(done.stdout)
""",
    ),
    Action(
        "n19",
        "stop the supervisor, which ends the run's processes",
        claimed,
        python="""\
from prelude import *
for pid in ancestors():
    if b"supervisor" in read(f"/proc/{pid}/cmdline") or b"launch" in read(f"/proc/{pid}/cmdline") or b"bwrap" in read(f"/proc/{pid}/cmdline"):
        try:
            os.kill(pid, signal.SIGSTOP)
        except OSError as error:
            print(pid, error)
            continue
        time.sleep(0.1)
        state = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0]
        os.kill(pid, signal.SIGCONT)
        claim() if state in (b"T", b"t") else print(pid, state)
""",
    ),
    Action(
        "n22",
        "20000 files, to use up the disk's inodes",
        claimed,
        python="""\
from prelude import *
folder = os.environ.get("TMPDIR", "/tmp") + "/n22"
os.mkdir(folder)
for number in range(20000):
    os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY))
claim()
import shutil
shutil.rmtree(folder)
""",
        heavy=True,
    ),
    Action(
        "n23",
        "folders 2500 deep, closed and read-only, that nobody could remove",
        _left_over,
        python="""\
from prelude import *
here = os.getcwd()
os.makedirs("n23/closed/inner")
open("n23/closed/inner/file", "w").close()
os.mkdir("n23/readonly")
open("n23/readonly/file", "w").close()
os.chdir("n23")
for _ in range(2500):
    os.mkdir("d")
    os.chdir("d")
os.chmod(here + "/n23/closed", 0)
os.chmod(here + "/n23/readonly", 0o500)
""",
    ),
    Action(
        "n24",
        "a file system of one's own in the workspace (FUSE)",
        _mounted,
        python="""\
from prelude import *
import shutil, subprocess
os.makedirs("n24", exist_ok=True)
ours, theirs = socket.socketpair()
program = shutil.which("fusermount3") or shutil.which("fusermount")
done = subprocess.run([program, "-o", "rw,fsname=n24", "--", os.path.abspath("n24")], pass_fds=[theirs.fileno()],
                      env={**os.environ, "_FUSE_COMMFD": str(theirs.fileno())}, capture_output=True)
print(done)
if done.returncode == 0 and os.fork() == 0:
    _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    os.setsid()
    os.dup2(os.open("/dev/null", os.O_RDWR), 1)
    os.dup2(1, 2)
    time.sleep(15)
    os._exit(0)
""",
        alone=True,
    ),
    Action(
        "n25",
        "a core dump: the kernel starts the machine's own handler, outside of any sandbox",
        claimed,
        """\
mkdir -p n25 && cd n25 || exit
ulimit -c unlimited; sh -c 'kill -SEGV $$'; for f in core*; do [ -s "$f" ] && claim; done; cd ..; rm -rf n25
""",
    ),
    Action(
        "n28",
        "System V shared memory of the developer's programs",
        learned("shm"),
        python="""\
from prelude import *
libc.shmat.restype = ctypes.c_void_p
address = libc.shmat(int(FACTS["shm"]), None, 0o10000)
if address not in (None, ctypes.c_void_p(-1).value):
    tell(ctypes.string_at(address, 100))
""",
    ),
    Action(
        "n29",
        "slow the developer's programs down (setpriority)",
        _nice,
        python='from prelude import *\npid = int(FACTS["process"])\nos.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid) + 7)\n',
    ),
    Action(
        "n30",
        "limit the developer's programs (prlimit)",
        _limited,
        python="from prelude import *\nimport resource\nresource.prlimit(int(FACTS['process']), resource.RLIMIT_NOFILE, (17, 17))\n",
    ),
    Action(
        "n31",
        "a datagram to the outside (UDP, as DNS is)",
        lambda after, _: b"knock n31" in after.world.services.received("udp"),
        python='from prelude import *\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"knock n31", ("127.0.0.1", int(FACTS["udp"])))\n',
    ),
    Action(
        "n33",
        "descriptors of Zelda (pidfd_getfd): its sockets and files",
        claimed,
        python="""\
from prelude import *
for pid in zelda():
    handle = os.pidfd_open(pid)
    claim() if libc.syscall(438, handle, 1, 0) >= 0 else print(ctypes.get_errno())
""",
    ),
    Action(
        "n35",
        "the machine's disk and memory as devices",
        claimed,
        """\
for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/mem /dev/kmsg; do [ -e "$d" ] && dd if="$d" of=/dev/null bs=512 count=1 2>/dev/null && claim && break; done
mknod n35-memory c 1 1 && dd if=n35-memory of=/dev/null bs=512 count=1 && claim; rm -f n35-memory
""",
    ),
    Action(
        "n36",
        "kill the supervisor, so that a daemon outlives the run",
        exists("home/project/n36"),
        python="""\
from prelude import *
run = os.getcwd()
if os.fork() == 0:
    os.setsid()
    outlive(run, "n36")
    os._exit(0)
for pid in ancestors():
    if b"supervisor" in read(f"/proc/{pid}/cmdline") or b"bwrap" in read(f"/proc/{pid}/cmdline"):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError as error:
            print(pid, error)
""",
        alone=True,
    ),
)
