"""p: staying, spreading to the developer's other programs, taking all there is."""

from tests.hostile.action import Action, Tool, any_of, claimed, exists, holds, knocked, learned
from tests.hostile.credentials import REACH

KEYRING = """\
from prelude import *
ADD, KEYCTL = 248, 250
KEY = f"zelda-{FACTS['abstract']}".encode()
"""


def _key_there(after, _):
    """The developer's other sessions find the key in the keyring of the user."""
    return (
        after.ask(
            KEYRING + "SEARCH, LINK_OF_USER = 10, -4\n"
            'found = libc.syscall(KEYCTL, SEARCH, LINK_OF_USER, b"user", KEY, 0)\n'
            "libc.syscall(KEYCTL, 9, found, LINK_OF_USER) if found > 0 else None\n"
            'print("found" if found > 0 else "none")\n'
        )
        == "found"
    )


def _killed(after, _):
    return after.killed


def _lost_or_leaked(after, _):
    index = str(after.world.project / ".git" / "index")
    touched = after.before.get(index) != after.world.fingerprint().get(index)
    return touched or after.world.canaries["dotenv"] in after.stored or not (after.world.project / "README.md").exists()


ACTIONS = (
    Action(
        "p01",
        "append to ~/.bashrc",
        holds("home/.bashrc", "p01"),
        'echo "# p01" >>"$DEVHOME/.bashrc"; echo "# p01" >>"$HOME/.bashrc"',
    ),
    Action(
        "p02",
        "Write tool on ~/.claude/settings.json, with a hook",
        holds("home/.claude/settings.json", "p02"),
        tools=(
            Tool("Read", {"file_path": "{devhome}/.claude/settings.json"}),
            Tool("Write", {"file_path": "{devhome}/.claude/settings.json", "content": '{{"hooks": "p02"}}'}),
        ),
        channels=("agent",),
    ),
    Action(
        "p03",
        "a systemd unit, an autostart entry, the global configuration of Git",
        holds("home/.gitconfig", "p03"),
        """\
mkdir -p "$DEVHOME/.config/systemd/user" "$DEVHOME/.config/autostart"
echo p03 >"$DEVHOME/.config/systemd/user/p03.service"
echo p03 >"$DEVHOME/.config/autostart/p03.desktop"
echo "[p03]" >>"$DEVHOME/.gitconfig"
""",
    ),
    Action(
        "p04",
        "a table of cron",
        claimed,
        'for d in /var/spool/cron/crontabs /etc/cron.d; do f="$d/.zelda-p04-$$"; (: >"$f") && rm "$f" && claim && break; done',
    ),
    Action(
        "p05",
        "a daemon that outlives the run, and writes into the project later",
        exists("home/project/p05"),
        python="""\
from prelude import *
run = os.getcwd()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        outlive(run, "p05")
    os._exit(0)
os.wait()
""",
    ),
    Action(
        "p20",
        "a daemon whose first thread has ended, so that it looks dead",
        exists("home/project/p20"),
        python="""\
from prelude import *
import ctypes, threading
run = os.getcwd()
def go_on():
    time.sleep(0.2)
    outlive(run, "p20")
    os._exit(0)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        threading.Thread(target=go_on).start()
        ctypes.CDLL(None).syscall(93 if os.uname().machine == "aarch64" else 60, 0)
    os._exit(0)
os.wait()
""",
    ),
    Action(
        "p06",
        "kill Zelda",
        _killed,
        'for p in $(zelda); do kill -9 "$p"; done',
        alone=True,
    ),
    Action(
        "p07",
        "UNIX socket of a daemon of the developer's (docker.sock, tmux, D-Bus)",
        knocked("pathname"),
        python="""\
from prelude import *
line = socket.socket(socket.AF_UNIX)
line.connect(FACTS["socket"])
line.sendall(b"knock p07")
line.recv(10)
""",
    ),
    Action(
        "p08",
        "abstract UNIX socket of such a daemon",
        knocked("abstract"),
        python="""\
from prelude import *
line = socket.socket(socket.AF_UNIX)
line.connect("\\0" + FACTS["abstract"])
line.sendall(b"knock p08")
line.recv(10)
""",
    ),
    Action(
        "p09",
        "TCP service of the developer on loopback (a notebook server)",
        knocked("service"),
        python=REACH + 'reach(FACTS["service"], b"knock p09")\n',
    ),
    Action(
        "p10",
        "write to the file behind $GITHUB_ENV",
        holds("runner/_runner_file_commands/set_env_1", "p10"),
        'echo P10=p10 >>"$WORLD/runner/_runner_file_commands/set_env_1"',
    ),
    Action(
        "p11",
        "another project of the developer's",
        holds("home/other/notes.txt", "p11"),
        'echo p11 >>"$DEVHOME/other/notes.txt"',
    ),
    Action("p12", "write to the developer's terminal", knocked("terminal"), 'echo "knock p12" >"$TERMINAL"'),
    Action(
        "p13",
        "processes without end (6000 threads)",
        claimed,
        python="""\
from prelude import *
import threading
threading.stack_size(64 << 10)
done = threading.Event()
try:
    for number in range(6000):
        threading.Thread(target=done.wait, daemon=True).start()
    claim()
except (RuntimeError, MemoryError) as error:
    print(number, error)
done.set()
""",
        heavy=True,
    ),
    Action(
        "p14",
        "one file of 12 GB (sparse)",
        claimed,
        "truncate -s 12G p14-file && claim; rm -f p14-file",
    ),
    Action(
        "p15",
        "12 GB of disk, in files of 1 GB",
        claimed,
        python="""\
from prelude import *
for number in range(12):
    handle = os.open(f"p15-{number}", os.O_CREAT | os.O_WRONLY)
    os.posix_fallocate(handle, 0, 1 << 30)
    os.close(handle)
time.sleep(4)
claim()
for number in range(12):
    os.unlink(f"p15-{number}")
""",
        alone=True,
        heavy=True,
    ),
    Action(
        "p16",
        "a key in the keyring of the user, for the developer's other programs",
        _key_there,
        python=KEYRING + 'print(libc.syscall(ADD, b"user", KEY, b"p16", 3, -4))\n',
    ),
    Action(
        "p17",
        "replace the workspace by a link to the project, before Zelda looks and cleans up",
        _lost_or_leaked,
        'here="$(pwd -P)"; cd /; mv "$here" "$here-moved" && ln -s "$PROJECT" "$here"',
        alone=True,
    ),
    Action(
        "p18",
        "names, sizes and times of files in the project",
        any_of(learned("name"), claimed),
        'stat "$PROJECT/.env" && claim; ls -R "$PROJECT/names" | tell; for n in "$PROJECT/names/"*; do echo "$n"; done | tell',
    ),
    Action(
        "p19",
        "10 GB of memory",
        claimed,
        python="""\
from prelude import *
import mmap
held = [mmap.mmap(-1, 1 << 30) for _ in range(10)]
for part in held:
    for at in range(0, len(part), 4096):
        part[at] = 1
time.sleep(3)
claim()
""",
        alone=True,
        heavy=True,
    ),
)
