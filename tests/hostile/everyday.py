"""e: what builds and tests do every day, and must be able to do inside as well."""

from tests.hostile.action import Action, claimed


def _shell(ident: str, what: str, script: str) -> Action:
    return Action(ident, what, claimed, shell=f"set -e\nmkdir -p {ident} && cd {ident}\n{script}\nclaim\n")


def _python(ident: str, what: str, script: str) -> Action:
    head = f"from prelude import *\nos.makedirs({ident!r}, exist_ok=True)\nos.chdir({ident!r})\n"
    return Action(ident, what, claimed, python=f"{head}{script}\nclaim()\n")


WHEEL = """\
python3 - <<'P'
import zipfile
with zipfile.ZipFile("everyday-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("everyday.py", "WORD = 'installed'\\n")
    wheel.writestr("everyday-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: everyday\\nVersion: 1.0\\n")
    wheel.writestr("everyday-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("everyday-1.0.dist-info/RECORD", "")
P
"""

EVERYDAY = (
    _shell(
        "e01",
        "git: commit, branch, stash, log",
        "cd ..; echo e01 >e01/f; git add -f e01/f; git commit -qm e01; git branch e01; echo x >>e01/f; git stash -q; git stash pop -q; git log -1 --format=%s | grep -q e01",
    ),
    _shell(
        "e02",
        "python -m venv",
        "python3 -m venv --without-pip v; v/bin/python -c 'import sys; assert sys.prefix != sys.base_prefix'",
    ),
    _python(
        "e03",
        "Python: a multiprocessing pool",
        "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n    assert pool.map(abs, [-1, -2]) == [1, 2]",
    ),
    _python(
        "e04",
        "Python: a multiprocessing manager",
        "import multiprocessing\nwith multiprocessing.get_context('fork').Manager() as manager:\n    assert manager.dict(a=1)['a'] == 1",
    ),
    _shell("e05", "gcc: compile, link, run", "printf 'int main(void){return 0;}' >a.c; gcc a.c -o a; ./a"),
    _shell(
        "e06",
        "node: worker threads",
        "node -e \"const {Worker}=require('worker_threads'); new Worker('0',{eval:true}).on('exit',c=>process.exit(c))\"",
    ),
    _python(
        "e07",
        "a pseudo-terminal",
        "import pty\nsaid = []\npty.spawn(['sh', '-c', 'test -t 1'], lambda fd: os.read(fd, 100))",
    ),
    _shell(
        "e08",
        "files in /tmp and by mktemp",
        'f="$(mktemp)"; echo x >"$f"; rm "$f"; g="/tmp/e08-$$"; echo x >"$g"; rm "$g"',
    ),
    _python(
        "e09",
        "a server and a client on loopback",
        "server = socket.create_server(('127.0.0.1', 0))\nline = socket.create_connection(server.getsockname())\nserver.accept()[0].sendall(b'hello')\nassert line.recv(9) == b'hello'",
    ),
    _python(
        "e10",
        "a server on a fixed port",
        "server = socket.create_server(('127.0.0.1', 18765))\nsocket.create_connection(('localhost', 18765)).close()",
    ),
    _python(
        "e11",
        "SQLite with a write-ahead log",
        "import sqlite3\nbase = sqlite3.connect('e11.db')\nassert base.execute('pragma journal_mode=wal').fetchone()[0] == 'wal'\nbase.execute('create table t(a)')\nbase.commit()",
    ),
    _shell(
        "e12",
        "hard and symbolic links, renames across folders",
        "echo x >a; ln a b; ln -s a c; mkdir d; mv b d/; mv d e; cat c e/b >/dev/null",
    ),
    _shell("e13", "a FIFO", 'mkfifo p; (echo x >p &); read -r line <p; [ "$line" = x ]'),
    _shell("e14", "flock and lock files", "flock lock true"),
    _python(
        "e15",
        "a UNIX socket",
        "server = socket.socket(socket.AF_UNIX)\nserver.bind('s')\nserver.listen()\nline = socket.socket(socket.AF_UNIX)\nline.connect('s')",
    ),
    _python(
        "e16",
        "a debugger on a child of one's own (ptrace)",
        "pid = os.fork()\nif pid == 0:\n    libc.ptrace(0, 0, None, None)\n    os.kill(os.getpid(), signal.SIGSTOP)\n    os._exit(0)\n_, status = os.waitpid(pid, 0)\nassert os.WIFSTOPPED(status)\nassert libc.ptrace(7, pid, None, None) == 0\nos.waitpid(pid, 0)",
    ),
    _shell(
        "e17",
        "ps and /proc of own processes",
        "ps -o pid= -p $$ | grep -q .; test -r /proc/self/status; grep -q . /proc/meminfo",
    ),
    _shell("e18", "a file of 150 MB", "dd if=/dev/zero of=f bs=1M count=150 2>/dev/null; rm f"),
    _shell(
        "e19",
        "npm install of a local package",
        'mkdir dep; echo \'{"name":"dep","version":"1.0.0"}\' >dep/package.json; echo \'{"name":"top","version":"1.0.0","dependencies":{"dep":"file:./dep"}}\' >package.json; npm install --offline --no-audit --no-fund --silent; node -e "require.resolve(\'dep/package.json\')"',
    ),
    _shell(
        "e20",
        "pip install of a local wheel",
        WHEEL
        + "python3 -m pip install -q --no-index --disable-pip-version-check --target lib ./everyday-1.0-py3-none-any.whl; PYTHONPATH=lib python3 -c 'import everyday'",
    ),
    _shell(
        "e21",
        "chown to oneself, chmod, umask, times",
        'echo x >f; chown "$(id -u):$(id -g)" f; chmod 750 f; umask 027; touch -d 2020-01-01 f; [ -x f ]',
    ),
)
