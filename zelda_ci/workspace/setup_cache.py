"""What setup has installed, kept for later runs that would install the same.

Only commands that are known to install dependencies and nothing else are kept, by what they depend on: the command,
lock files and manifests, the folders that it names, platform, toolchains and variables. Archives lie where no run can
reach them. They are filled before a session has begun, and copied into a run before anything has run there.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.variables import MARKER
from zelda_ci.files import atomic, untrusted
from zelda_ci.sandbox import programs
from zelda_ci.sandbox.confine import machine_path
from zelda_ci.sandbox.readable_paths import TOOLCHAINS
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.ignored import Stamps, stamps
from zelda_ci.workspace.protection import simple_commands

VERSION = 1
MAX_ARCHIVE_BYTES, MAX_ENTRIES = 2 << 30, 200_000
MAX_KEPT, MAX_KEPT_BYTES, KEPT_SECONDS = 8, 6 << 30, 14 * 86_400.0
CHUNK = 1 << 20
MAX_MANIFESTS = 200

# How commands begin that install what lock files and manifests say. A version of Python may follow its name.
INSTALLERS = re.compile(
    r"(npm|pnpm|yarn|bun) (ci|install|i)( |$)|yarn$|corepack enable( |$)|"
    r"(\S*/)?python -m (venv|pip install) |(\S*/)?pip install |virtualenv |"
    r"uv (sync( |$)|venv( |$)|pip (install|sync) )|(poetry|pdm|pipenv) (install|sync)( |$)|"
    r"go mod download( |$)|cargo fetch( |$)|bundle (config|install)( |$)"
)
# A line that does anything else than start programs, one after the other.
SPECIAL = r"|<>`$()\\\\*?\[\]{}~#!'"
PLAIN_LINE = re.compile(rf"[^{SPECIAL}]*(?:'[^']*'[^{SPECIAL}]*)*")
# Bundler's own programs and the project's code are read by these.
WHOLE_TREE = re.compile(r"(^|\s)(-e|--editable|\.|\.\[\S*|bundle)(\s|$)")
MANIFESTS = re.compile(
    r"(.*/)?(package\.json|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|pnpm-workspace\.yaml|yarn\.lock|"
    r"bun\.lockb?|bunfig\.toml|\.npmrc|\.yarnrc(\.yml)?|\.pnpmfile\.c?js|pyproject\.toml|setup\.(py|cfg)|uv\.(lock|toml)|"
    r"poetry\.(lock|toml)|pdm\.(lock|toml)|Pipfile(\.lock)?|[\w.-]*requirements[\w.-]*|[\w.-]*constraints[\w.-]*|"
    r"go\.(mod|sum|work|work\.sum)|Cargo\.(toml|lock)|rust-toolchain(\.toml)?|\.cargo/config(\.toml)?|"
    r"\.(python|node|ruby|go)-version|\.nvmrc|\.tool-versions|\.?mise\.toml|pip\.conf|\.yarn/.*|patches/.*)"
)
HOOKS = re.compile(rb'"(pre|post)?(install|prepare|prepublish)"\s*:')
LOCAL = re.compile(
    rb"(file|link|workspace):|\"link\": true|(editable|directory|path)\s*=|^\[build-system", re.MULTILINE
)
# In lists of requirements: other lists, and folders.
FURTHER = re.compile(rb"^\s*(-[erc]|--editable|--requirement|--constraint|\.|/)", re.MULTILINE)
LISTS = re.compile(r"(.*/)?[\w.-]*(requirements|constraints)[\w.-]*")
# Modules that would be loaded in the place of those that make an environment.
SHADOWS = frozenset({*sys.stdlib_module_names, "pip", "setuptools", "virtualenv", "sitecustomize", "usercustomize"})
# What differs from run to run, or says nothing of what is installed.
VOLATILE = frozenset({"PATH", "HOME", "TMPDIR", MARKER, "GIT_CEILING_DIRECTORIES", "GIT_CONFIG_GLOBAL", "TERM", "USER"})
VOLATILE |= {"LOGNAME", "COLORTERM"}
# Of a HOME, what only saves downloads: nothing that was installed needs it.
DOWNLOADS = (
    ".npm/_cacache",
    ".npm/_logs",
    ".cache/pip",
    ".cache/uv",
    ".cache/yarn",
    ".cache/node",
    ".cache/pypoetry/cache",
)


def is_known(suite: ResolvedSuite) -> bool:
    """Whether the suite's setup is one that installs dependencies and does nothing else."""
    command = suite.setup_command
    if command is None or (isinstance(command, str) and (suite.shell or not _is_plain(command))):
        return False
    parts = [" ".join([_program(words[0]), *words[1:]]) for words, _ in simple_commands(command, 1)]
    return bool(parts) and all(INSTALLERS.match(part) for part in parts)


def _is_plain(line: str) -> bool:
    return bool(PLAIN_LINE.fullmatch(line)) and "&" not in line.replace("&&", "")


def _program(word: str) -> str:
    return re.sub(r"(python|pip)[\d.]+$", r"\1", word)


@dataclass(frozen=True)
class SetupTree:
    """The files that setup finds."""

    commit: str
    git: Git
    prefix: str
    """The project's folder, relative to the top."""


async def key_of(tree: SetupTree, suite: ResolvedSuite, environment: Mapping[str, str]) -> str | None:
    """What setup of a suite depends on, as a digest; nothing where its result is not to be kept."""
    if not is_known(suite):
        return None
    lines = (await tree.git("ls-tree", "-r", "-z", "--full-tree", tree.commit)).split(b"\0")[:-1]
    files = {os.fsdecode(path): entry for entry, _, path in (line.partition(b"\t") for line in lines)}
    command = suite.setup_command
    words = [word for words, _ in simple_commands(command or (), 1) for word in words]
    told = {path: files[path].decode() for path in files if _matters(path, tree.prefix, suite, words)}
    whole = bool(WHOLE_TREE.search(" ".join(words))) or await _reads_more(tree, told)
    facts = [
        VERSION,
        command,
        suite.execution.path,
        suite.isolation.network.setup,
        tree.prefix,
        sorted((path, entry.decode()) for path, entry in files.items()) if whole else sorted(told.items()),
        sorted(_variables(environment).items()),
        list(_toolchains(words, environment)),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _matters(path: str, prefix: str, suite: ResolvedSuite, words: Iterable[str]) -> bool:
    """Whether setup reads a file: a manifest, what the command names, or a program or module that it would start."""
    if MANIFESTS.fullmatch(path):
        return True
    inside = PurePosixPath(path)
    if prefix not in {"", "."}:
        if not inside.is_relative_to(prefix):
            return False
        inside = inside.relative_to(prefix)
    if inside.parts[0].removesuffix(".py") in SHADOWS:
        return True
    named = [PurePosixPath(os.path.normpath(word.rpartition("=")[2])) for word in (*words, *suite.execution.path)]
    return any(inside.is_relative_to(place) for place in named if place != PurePosixPath())


async def _reads_more(tree: SetupTree, told: Mapping[str, str]) -> bool:
    """Whether a manifest has more read or run than manifests: scripts of the project, or packages within it."""
    read = {path: entry.split(" ")[2] for path, entry in told.items() if MANIFESTS.fullmatch(path)}
    if len(read) > MAX_MANIFESTS:
        return True
    for path, blob in read.items():
        text = await tree.git("cat-file", "blob", blob)
        if HOOKS.search(text) or LOCAL.search(text) or (LISTS.fullmatch(path) and FURTHER.search(text)):
            return True
    return False


def _variables(environment: Mapping[str, str]) -> Mapping[str, str]:
    run = environment.get(MARKER, "\0")
    return {name: text for name, text in environment.items() if name not in VOLATILE and run not in text}


def _toolchains(words: Iterable[str], environment: Mapping[str, str]) -> Iterator[object]:
    """Platform, programs and their versions, as far as files tell without running anything."""
    path = machine_path(environment)
    yield [platform.system(), platform.machine(), path]
    with suppress(OSError):
        yield Path("/etc/os-release").read_text(errors="replace")
    for word in sorted({*words, "python3", "node"}):
        if (program := shutil.which(word, path=path)) and "/" not in word:
            real = Path(os.path.realpath(program))
            status = real.stat()
            yield [program, str(real), status.st_size, status.st_mtime_ns]
    for name in sorted(TOOLCHAINS):
        if root := environment.get(name):
            with suppress(OSError):
                yield [name, Path(root, "version").read_text(errors="replace")]
            with suppress(OSError):
                yield [name, sorted(entry.name for entry in Path(root, "versions").iterdir())]


@dataclass(frozen=True)
class SetupStamps:
    """A run's folders before setup."""

    tree: Stamps
    repository: Stamps

    @classmethod
    def of(cls, run: WorkspaceFolder) -> "SetupStamps":
        """As they are now; blocks while it looks."""
        return cls(stamps(run.root), _of_repository(run.git_dir))

    def added(self, run: WorkspaceFolder) -> list[str] | None:
        """What setup has added since, by the outermost paths below the run's folder; nothing where it did more.

        Of HOME it is everything, but for downloads.
        """
        now = SetupStamps.of(run)
        if now.repository != self.repository:
            return None
        tops = added(self.tree, now.tree)
        if tops is None:
            return None
        _clear_downloads(run.home)
        return [f"{run.root.name}/{top}" for top in tops] + [f"{run.home.name}/{name}" for name in os.listdir(run.home)]  # noqa: PTH208


def _of_repository(git_dir: Path) -> Stamps:
    """Git renews its index when it is asked for the state of the tree."""
    return {path: stamp for path, stamp in stamps(git_dir).items() if not path.endswith(b"/index")}


def added(before: Stamps, after: Stamps) -> list[str] | None:
    """The outermost entries that were added to a tree; nothing where anything else has changed."""
    if any(after.get(path) != stamp for path, stamp in before.items()):
        return None
    folders = {
        b"/".join(parts[:length]) for parts in (path.split(b"/") for path in before) for length in range(len(parts))
    }
    tops = dict[str, None]()
    for path in after.keys() - before.keys():
        parts = path.split(b"/")
        places = (b"/".join(parts[:length]) for length in range(1, len(parts) + 1))
        tops[os.fsdecode(next(place for place in places if place not in folders))] = None
    return sorted(tops)


def _clear_downloads(home: Path) -> None:
    """Remove what need not be kept of a HOME; no link is followed."""
    for name in DOWNLOADS:
        *above, last = name.split("/")
        with suppress(OSError), untrusted.entered(home, above) as folder:
            shutil.rmtree(last, ignore_errors=True, dir_fd=folder)


def list_entries(listing: Path, tops: Sequence[str], uid: int | None) -> None:
    """Write what is to be packed where the run itself can read it."""
    number = untrusted.open_regular(listing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(number, "wb") as file:  # noqa: PTH123  # a descriptor
        file.write(b"".join(os.fsencode(top) + b"\0" for top in tops))
        if uid is not None:
            os.fchown(file.fileno(), uid, uid)


def packing(archive: Path, run: Path, listing: Path) -> tuple[str, ...]:
    """The command that packs what is listed, to be run as the run's setup is."""
    limits = (str(MAX_ARCHIVE_BYTES), str(MAX_ENTRIES), str(listing))
    return (*programs.python(anybody=True), str(programs.ARCHIVE), "pack", str(archive), str(run), *limits)


def unpacking(archive: Path, run: Path) -> tuple[str, ...]:
    """The command that puts it back."""
    return (*programs.python(anybody=True), str(programs.ARCHIVE), "unpack", str(archive), str(run))


def keep(cache: Path, key: str, archive: Path) -> None:
    """Copy a run's archive into the cache, whole or not at all; its name says what is in it."""
    cache.mkdir(mode=0o700, exist_ok=True)
    digest = hashlib.sha256()
    for chunk in _chunks(archive):
        digest.update(chunk)
    for earlier in _archives(cache, key):
        earlier.unlink(missing_ok=True)
    atomic.write_whole(cache / f"{key}-{digest.hexdigest()}.tar", _chunks(archive), durable=False)
    retire(cache)


def bring(cache: Path, key: str, target: Path) -> bool:
    """Copy the archive of a key to a run, where there is a sound one; a damaged one is removed."""
    for archive in _archives(cache, key):
        digest = hashlib.sha256()
        try:
            # Never through a link: the folder is the run's.
            number = untrusted.open_regular(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(number, "wb") as file:  # noqa: PTH123  # a descriptor
                for chunk in _chunks(archive):
                    digest.update(chunk)
                    file.write(chunk)
            if digest.hexdigest() == archive.stem.rpartition("-")[2]:
                os.utime(archive)
                return True
        except OSError:
            pass
        archive.unlink(missing_ok=True)
        target.unlink(missing_ok=True)
    return False


def retire(cache: Path) -> None:
    """Remove what was not used for two weeks, and of the rest what was used longest ago, down to the limits."""
    found = sorted(((status := file.lstat()).st_mtime, status.st_size, file) for file in cache.glob("*"))
    count, size = len(found), sum(each[1] for each in found)
    for used, length, file in found:
        old = time.time() - used > (3600 if file.suffix != ".tar" else KEPT_SECONDS)
        if old or (file.suffix == ".tar" and (count > MAX_KEPT or size > MAX_KEPT_BYTES)):
            with suppress(OSError):
                file.unlink()
            count, size = count - 1, size - length


def _archives(cache: Path, key: str) -> Sequence[Path]:
    return sorted(cache.glob(f"{key}-*.tar"))


def _chunks(file: Path) -> Iterator[bytes]:
    with open(untrusted.open_regular(file), "rb") as opened:  # noqa: PTH123  # a descriptor
        while chunk := opened.read(CHUNK):
            yield chunk
