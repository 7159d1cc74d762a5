"""What a run may read beside its own folders: system and toolchains, by an allow-list; never a home as a whole."""

import os
import pwd
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from zelda_ci import process
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.errors import ConfigError

# Version managers: their programs on PATH look for the rest in HOME, which is another one in a session.
TOOLCHAINS = {
    "ASDF_DATA_DIR": ".asdf", "MISE_DATA_DIR": ".local/share/mise", "NODENV_ROOT": ".nodenv", "NVM_DIR": ".nvm",
    "PYENV_ROOT": ".pyenv", "RBENV_ROOT": ".rbenv", "RUSTUP_HOME": ".rustup", "SDKMAN_DIR": ".sdkman",
    "VOLTA_HOME": ".volta",
}  # fmt: skip
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/sys/devices/system")

# Of /etc, and little of it: every mount takes time. No shadow, no keys, no tokens: package managers' configuration may
# hold some, so it must be asked for.
CONFIGURATION = (
    "R", "alternatives", "bash.bashrc", "bashrc", "claude-code", "crypto-policies", "debian_version", "dotnet", "fonts",
    "gai.conf", "group", "gss", "host.conf", "hostname", "hosts", "inputrc", "java", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "login.defs", "lsb-release", "magic", "mailcap",
    "maven", "mime.types", "networks", "nsswitch.conf", "os-release", "passwd", "perl", "pki/ca-trust",
    "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf", "profile", "profile.d", "protocols", "redhat-release",
    "resolv.conf", "services", "shells", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "vim",
    "xml", "zsh",
)  # fmt: skip
FAMILIES = ("ImageMagick-*", "java-*", "jvm-*", "php*", "python3*")
# Variables that name a toolchain's folder, and those of a certificate authority of one's own.
SDKS = ("ANDROID_HOME", "DOTNET_ROOT", "GOROOT", "JAVA_HOME")
CERTIFICATES = (
    "CARGO_HTTP_CAINFO", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "NIX_SSL_CERT_FILE", "PIP_CERT",
    "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
)  # fmt: skip
# Of an installation in somebody's home or among data: the rest may be anything, `~/.local/share/keyrings` included.
PARTS = (
    *("bin", "sbin", "lib", "lib32", "lib64", "libexec", "include", "pyvenv.cfg", "conda-meta", "ssl", "Cellar", "opt"),
)
PROGRAM_FOLDERS = {"bin", "sbin", "shims", "condabin"}
# Of version managers (pyenv, rbenv, asdf, mise): what a shim starts, and which one, lies in folders beside it.
SHIMS = "shims"
PACKAGES = Path("/opt")
# Where the system keeps data of applications.
DATA = ("/srv", "/var", "/mnt", "/media")
# Whose targets are readable: all paths must fit into one argument of a program.
MAX_LINKS = 400
# User ids of people lie from the one to below the other.
FIRST_PERSON, NOBODY = 1000, 65534
# In a home; no suite may ask for them.
SECRETS = (
    ".aws", ".azure", ".config", ".docker", ".git-credentials", ".gnupg", ".kube", ".netrc", ".npmrc",
    ".password-store", ".pypirc", ".ssh",
)  # fmt: skip
# Where daemons have their sockets, and the kernel what is no file: neither these nor what is in them.
OF_DAEMONS = ("/run", "/var/run", "/dev", "/proc", "/sys")
# Shared with everybody: a folder in them may be meant, they themselves are not.
SHARED = ("/tmp", "/var/tmp")  # noqa: S108 - nothing is written there
# Looking for sockets in a folder takes no longer.
SEARCH_SECONDS = 20
NARROW = "Name folders of toolchains or data outside the project, as narrow as possible."
_RESOLVING = threading.Lock()


def barrier(path: Path) -> Path | None:
    """The first folder on the way to a path, links followed, that other users may not enter, such as root's home."""
    real = _real(path)
    for folder in (*reversed(path.parents), path, *reversed(real.parents), real):
        with suppress(OSError):
            mode = folder.stat().st_mode
            if stat.S_ISDIR(mode) and not mode & stat.S_IXOTH:
                return folder
    return None


def is_within_reach(path: Path, base: Path) -> bool:
    """Whether a run's own user gets to a path; what lies in the workspaces' `base`, Zelda opens to it."""
    return path.is_relative_to(base) or barrier(path) is None


def is_open(file: Path) -> bool:
    """Whether everybody may read a file, and pass through the folders above it."""
    return file.is_file() and bool(file.stat().st_mode & stat.S_IROTH) and barrier(file) is None


def unreachable(file: Path) -> str | None:
    """What is in the way to a file below a closed folder, and what helps, in sentences; nothing where it is open."""
    if (folder := barrier(file)) is None:
        return None
    way_out = f"Let others pass through it (chmod 711 {folder}), install it elsewhere, or use isolation level full."
    return f"{file} lies below {folder}, which the run's own user may not enter. {way_out}"


@dataclass(frozen=True)
class PrivateFolders:
    """The folders that decide what may not be read, links followed: project, base of all workspaces, and homes."""

    project: Path
    base: Path
    homes: tuple[Path, ...] = ()

    @classmethod
    def of(cls, project: Path, base: Path, environ: Mapping[str, str]) -> "PrivateFolders":
        """Add the homes of people and root to what HOME says: in a job's container, and under sudo, that is another."""
        people = (it for it in pwd.getpwall() if it.pw_uid == 0 or FIRST_PERSON <= it.pw_uid < NOBODY)
        # Those of daemons may be anything, even /usr/bin.
        known = {Path(it.pw_dir) for it in people}
        homes = sorted(_real(home) for home in known if home.is_absolute() and not _is_system(home))
        own = [_real(Path(environ["HOME"]))] if environ.get("HOME") else []
        return cls(_real(project), _real(base), tuple(home for home in (*own, *homes) if home != Path("/")))

    @property
    def hidden(self) -> Sequence[Path]:
        """Folders that nothing readable may contain."""
        return [self.project, self.base, *self.homes]

    def is_private(self, path: Path) -> bool:
        """Whether it contains the project, the home or the workspaces, or lies in the project or the workspaces."""
        real = os.path.realpath(path)
        return _is_below(real, (self.project, self.base)) or any(_is_below(hidden, (real,)) for hidden in self.hidden)

    def is_secret(self, path: Path) -> bool:
        """Whether it is or lies in a home's place for credentials."""
        return _is_below(_real(path), (home / name for home in self.homes for name in SECRETS))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_below(path: str | Path, places: Iterable[str | Path]) -> bool:
    # Each run asks thousands of times, and pathlib of Python 3.11 takes both apart for every answer.
    return any(f"{path}/".startswith(f"{str(place).rstrip('/')}/") for place in places)


def _is_system(path: Path) -> bool:
    return _is_below(path, SYSTEM) and not path.is_symlink()


def refusals(suite: ResolvedSuite, private: PrivateFolders) -> Iterator[tuple[str, str]]:
    """Keys of a suite that name what may not be readable, each with a sentence that says why."""
    # Relative folders of programs are the project's own.
    programs = [entry for entry in suite.execution.path if entry.startswith("/")]
    for key, paths in (("isolation.readPaths", suite.isolation.read_paths), ("execution.path", programs)):
        for path in paths:
            if why := refusal(Path(path), private):
                yield key, f"{key} lists {path}, which {why}."


def check_readable(suite: ResolvedSuite, private: PrivateFolders) -> None:
    """Raise a `ConfigError` for a path of a suite that is missing, or holds the project or secrets."""
    for _, sentence in refusals(suite, private):
        raise ConfigError(sentence, hint=NARROW, code="READ_PATH_REFUSED")


def refusal(path: Path, private: PrivateFolders) -> str | None:
    """Why a path may not be made readable, to be read after it; nothing where it may."""
    real = _real(path)
    daemons, shared = ([_real(Path(place)) for place in places] for places in (OF_DAEMONS, SHARED))
    is_top = real == Path("/")
    if not is_top and any(place.is_relative_to(real) or real.is_relative_to(place) for place in daemons):
        return "is or holds a place of daemons, devices or the kernel"
    if not is_top and any(place.is_relative_to(real) for place in shared):
        return "is shared with every program of the machine"
    if not path.exists():
        return "does not exist"
    if private.is_private(path):
        return "would show the project, the home folder or other workspaces"
    if private.is_secret(path):
        return "is a place for credentials"
    # Who can reach a socket can speak to the daemon behind it, however little else may be read.
    try:
        found = process.answer(["find", str(real), "-type", "s", "-print", "-quit"], timeout_seconds=SEARCH_SECONDS)
    except TimeoutError:
        return f"is too large to look for sockets in it ({SEARCH_SECONDS} s)"
    return f"is or holds a socket, {os.fsdecode(found.stdout.rstrip())!a}" if found.stdout else None


def readable(
    environment: Mapping[str, str], private: PrivateFolders, ours: Iterable[Path], extra: Iterable[str] = ()
) -> list[Path]:
    """Everything that exists and a run may read, as written: also `ours` that it needs, and what the suite asks for."""
    etc = Path("/etc")
    found = [
        *(part for name in SYSTEM for part in without(Path(name), private)),
        *(etc / name for name in CONFIGURATION),
        *(path for pattern in FAMILIES for path in etc.glob(pattern)),
        *(part for path in _toolchains(environment) for part in _installation(path, private)),
        *(Path(environment[name]) for name in CERTIFICATES if name in environment),
        *map(Path, extra),
    ]
    needed = {*ours}
    outermost: list[Path] = []
    # Folders that are readable and hold the path that is looked at, from the outermost, each with where it really is.
    around: list[tuple[Path, str]] = []
    for path in sorted({*found, *needed}):
        # Unlike pathlib's of Python 3.11, it bears with a PATH that leads into folders that are closed to the user.
        if not path.is_absolute() or not os.path.exists(path):  # noqa: PTH110
            continue
        if path not in needed and private.is_private(path):
            continue
        real = os.path.realpath(path)
        while around and not _is_below(path, around[-1][:1]):
            around.pop()
        # Bubblewrap mounts a folder as it is: a link in it that leads elsewhere needs its target mounted as well.
        if not around or not _is_below(real, around[-1][1:]):
            outermost.append(path)
            around.append((path, real))
    return outermost


def without(folder: Path, private: PrivateFolders) -> Iterator[Path]:
    """The folder, or where something private lies in it, all that lies beside that."""
    if not private.is_private(folder):
        yield folder
    elif folder not in private.hidden and folder.is_dir() and any(_is_below(it, (folder,)) for it in private.hidden):
        for entry in sorted(folder.iterdir()):
            yield from without(entry, private)


def _toolchains(environment: Mapping[str, str]) -> Iterator[Path]:
    """Folders in which programs on PATH lie, and those in which their links end."""
    yield from (Path(sys.base_prefix), Path(sys.prefix))
    yield from (Path(environment[name]) for name in (*SDKS, *TOOLCHAINS) if name in environment)
    budget = MAX_LINKS
    entries = [Path(entry) for entry in environment.get("PATH", "").split(os.pathsep)]
    # /bin and /usr/bin are one.
    for entry in {_real(entry): entry for entry in entries if entry.is_absolute()}.values():
        if not (_is_below(entry, SYSTEM) and _is_system(_real(entry))):
            yield from (entry, _real(entry))
        # Runs that begin together would each resolve them.
        with _RESOLVING:
            targets = _targets(entry, budget)
        budget = max(budget - len(targets), 0)
        yield from targets


@cache
def _targets(folder: Path, most: int) -> frozenset[Path]:
    """Where links in a folder of programs lead: the file, and the folder of programs in which it lies."""
    # Read once: /usr/bin holds hundreds of links, and every phase of every run asks.
    try:
        with os.scandir(folder) as entries:
            # One to a name without a slash leads to its neighbour, which has an entry of its own.
            leads = (it.path for it in entries if it.is_symlink() and "/" in os.readlink(it.path))  # noqa: PTH115 - fast
            links = [*islice(leads, most)]
    except OSError:
        return frozenset()
    ends = {_real(Path(link)) for link in links}
    files = {end for end in ends if not _is_system(end) and not end.is_relative_to(folder)}
    # A package's own folder holds what its program needs; it is never /opt itself, which holds all packages.
    packages = (end.parent for end in files)
    return frozenset(files).union(each for each in packages if each.name in PROGRAM_FOLDERS or PACKAGES in each.parents)


def _installation(folder: Path, private: PrivateFolders) -> Iterator[Path]:
    """What belongs to the programs in a folder: in `/opt/x/bin`, all of `/opt/x`; among data, only parts of that."""
    yield folder
    if folder.name not in PROGRAM_FOLDERS:
        return
    prefix, is_short = folder.parent, len(folder.parts) <= 3
    if folder.name == SHIMS and not private.is_private(prefix) and not private.is_secret(prefix):
        yield prefix
    # A prefix such as ~/.local or /srv/app holds more than programs: keyrings, configuration, the state of other tools.
    elif _is_below(_real(prefix), private.homes) or private.is_private(prefix) or _is_below(prefix, DATA) or is_short:
        yield from (prefix / part for part in PARTS if prefix not in {Path("/"), *private.homes})
    else:
        yield prefix
