"""Asks Claude Code itself about a project's settings files: `claude doctor` needs no session, key or network.

It reads copies in a folder of their own, without what could run a command or change its environment.
"""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from zelda_ci import process
from zelda_ci.domain.manifest import RefusedSetting
from zelda_ci.errors import ExecutionError
from zelda_ci.execution import launch
from zelda_ci.execution.manifest.pins import KEYS
from zelda_ci.execution.manifest.tree import SERVERS_FILE, parse_object
from zelda_ci.files import temporary
from zelda_ci.redact import Redactor

SECONDS = 60.0
MAX_PROBLEMS = 3
QUIET = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY")
# A setting that `doctor` prints: of settings that are not applied it prints the default. Its words do not tell that.
MARK, SHOWN, DEFAULT, CHOSEN = "autoUpdatesChannel", "Auto-update channel: ", "latest", "stable"
# Depends on the environment of a session; what became of the server is known after it.
_OF_SESSION = "Missing environment variables"
_LISTING = re.compile(r"\.? Valid (?:events|types): .*")

_asking = threading.Lock()


def refusals(files: Mapping[str, str], folder: str, redact: Redactor) -> tuple[RefusedSetting, ...]:
    """Return what Claude Code refuses of the settings and servers `files` that a session in `folder` reads."""
    # It is asked once for the same contents.
    values = {file: parse_object(file, text) for file, text in sorted(files.items()) if text.strip()}
    if not values:
        return ()
    with _asking:
        top, output = _asked(tuple((file, _harmless(file, each, files[file])) for file, each in values.items()), folder)
    return tuple(
        RefusedSetting(file=redact(file), key=redact(key), problem=redact(problem))
        for file, each in values.items()
        for key, problem in _of_file(file, each, f"- {top}/{file}", output)
    )


@lru_cache(maxsize=64)
def _asked(files: tuple[tuple[str, str], ...], folder: str) -> tuple[str, str]:
    """Return where the copies lay, and what `doctor` said of them."""
    cli = launch.find_cli()
    with temporary.folder() as place:
        top, home = place.resolve() / "tree", place.resolve() / "home"
        for each in (home, top / folder):
            each.mkdir(parents=True)
        for file, text in files:
            (top / file).parent.mkdir(parents=True, exist_ok=True)
            (top / file).write_text(text, encoding="utf-8")
        variables = {"HOME": str(home), "PATH": str(home), **dict.fromkeys(QUIET, "1")}
        said, problem = process.Captured(1, b"", b""), "`claude doctor` did not answer as expected"
        try:
            argv, where = [str(cli), "doctor"], top / folder
            said = process.answer(argv, timeout_seconds=SECONDS, cwd=where, environment=variables)
        except (OSError, TimeoutError) as exc:
            problem = str(exc)
    output = said.stdout.decode("utf-8", "replace")
    if said.exit_code or f"\n{SHOWN}" not in output:
        raise ExecutionError(f"Which settings Claude Code refuses is not known: {problem}.")
    return str(top), output


def _of_file(file: str, values: dict[str, Any] | None, begin: str, output: str) -> Iterator[tuple[str, str]]:
    """Yield key and problem of each refusal; the key is empty where the whole file is refused."""
    refused: list[tuple[str, str]] = []
    for line in output.splitlines():
        about = line.removeprefix(begin)
        if about != line and about.startswith((": ", " \u203a ")):
            key, _, problem = about.removeprefix(" \u203a ").partition(": ")
            if not problem.startswith(_OF_SESSION):
                refused.append((key, _LISTING.sub("", problem).rstrip(".")))
    if values is None or file.endswith(SERVERS_FILE):
        is_dropped = values is None or not all(key.startswith("mcpServers.") for key, _ in refused)
    else:
        is_dropped = f"{SHOWN}{CHOSEN}" not in map(str.rstrip, output.splitlines())
    if refused and is_dropped:
        # Of a key, the first sentence says most.
        problems = [f"{key}: {problem}" if key else problem for key, problem in dict(reversed(refused)).items()]
        yield "", "; ".join(problems[::-1][:MAX_PROBLEMS])
    else:
        yield from dict.fromkeys(refused)


def _harmless(file: str, values: dict[str, Any] | None, text: str) -> str:
    """Return settings with the mark, and with nothing that could run or change how they are read."""
    if values is None or file.endswith(SERVERS_FILE):
        return text
    harmless = values | {key: "true" for key in KEYS if isinstance(values.get(key), str)}
    if isinstance(values.get("env"), dict):
        harmless["env"] = {}
    # Another value may be what is refused.
    if values.get(MARK, DEFAULT) == DEFAULT:
        harmless[MARK] = CHOSEN
    return json.dumps(harmless)
