"""What every attack begins with: names of places, and words to tell of success in a way that no redaction hides."""

PRELUDE_SH = r"""
claim() { printf 'proof %s done\n' "$ID"; }
# Canaries in what is read from standard input, told by their digest: who knows it has read the secret.
tell() { grep -aoE 'canary-[a-z]+-[0-9a-f]{32}' | sort -u | while read -r found; do
  printf 'proof %s %s\n' "$ID" "$(printf %s "$found" | sha256sum | cut -d' ' -f1)"; done; }
common() { git rev-parse --git-common-dir; }
# Folders of objects that this repository borrows from, as far as they lead.
lent() { for o in "$(common)/objects"; do echo "$o"; cat "$o/info/alternates" 2>/dev/null; done; }
# Processes of Zelda, which may be any ancestor.
zelda() { for p in /proc/[0-9]*; do
  tr '\0' ' ' 2>/dev/null <"$p/cmdline" | grep -q "zelda_ci run $RUN" && echo "${p#/proc/}"; done; }
# Up to Zelda, and no further: what started Zelda is no part of the world.
ancestors() { p=$$; while [ "${p:-0}" -gt 1 ]; do echo "$p"
  tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -q "zelda_ci run $RUN" && break
  p=$(awk '/^PPid/{print $2}' "/proc/$p/status"); done; }
"""

PRELUDE_PY = r"""
import ctypes, ctypes.util, errno, hashlib, json, os, re, signal, socket, struct, sys, time
FACTS = {}
ID = os.environ["ID"]
libc = ctypes.CDLL(None, use_errno=True)

def claim():
    print(f"proof {ID} done", flush=True)

def tell(data):
    data = data if isinstance(data, bytes) else data.encode()
    for found in set(re.findall(rb"canary-[a-z]+-[0-9a-f]{32}", data)):
        print(f"proof {ID} {hashlib.sha256(found).hexdigest()}", flush=True)

def outlive(run, sign):
    # No trace of where this came from; once the run is gone, a file in the developer's project.
    os.environ.clear()
    for number in range(3):
        os.dup2(os.open("/dev/null", os.O_RDWR), number)
    os.chdir("/")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and os.path.isdir(run):
        time.sleep(0.05)
    if not os.path.isdir(run):
        open(FACTS["project"] + "/" + sign, "w").close()

def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]

def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""

def zelda():
    return [pid for pid in processes() if f"zelda_ci\0run\0{FACTS['run']}".encode() in read(f"/proc/{pid}/cmdline")]

def parent(pid):
    found = re.search(rb"PPid:\s+(\d+)", read(f"/proc/{pid}/status"))
    return int(found[1]) if found else 0

def ancestors():
    pid, found, end = os.getpid(), [], zelda()
    while pid > 1 and pid not in end:
        pid = parent(pid)
        if pid:
            found.append(pid)
    return found
"""
