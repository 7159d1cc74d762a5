"""What Claude Code itself says of a project's settings files: `claude doctor` needs no session, key or network.

It reads copies in a folder of their own, without what could run a command or change its environment.
"""

import json
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from zelda_ci import process
from zelda_ci.domain import numbers
from zelda_ci.domain.manifest import RefusedSetting
from zelda_ci.errors import ExecutionError
from zelda_ci.execution import launch
from zelda_ci.execution.manifest.pins import KEYS
from zelda_ci.redact import Redactor

SECONDS = 60.0
PREFIX = "zelda-doctor-"
# Beyond it, a value of settings is left out; Claude Code knows none that is nested more than ten times.
MAX_NESTING = 100
MAX_PROBLEMS = 3
QUIET = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY")
# A setting that `doctor` prints: of settings that are not applied it prints the default. Its words do not tell that.
MARK, DEFAULT, CHOSEN = "autoUpdatesChannel", "latest", "stable"
_MARK = re.compile(r"^Auto-update channel: (.*)$", re.MULTILINE)
# Depends on the environment of a session; what became of the server is known after it.
_OF_SESSION = "Missing environment variables"
_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]|[^"\[\]{}]+|"', re.DOTALL)
_LISTING = re.compile(r"\.? Valid (?:events|types): .*")

_asking = threading.Lock()


def refusals(files: Mapping[str, str], folder: str, redact: Redactor) -> tuple[RefusedSetting, ...]:
    """Return what Claude Code refuses of settings files; asked once for the same contents.

    Args:
        files: Those of `settings_files` that are there, with their texts.
        folder: In which sessions work.
        redact: For what it says.

    Raises:
        ExecutionError: It cannot be asked, or does not answer.
    """
    texts = tuple(sorted((file, text) for file, text in files.items() if text.strip()))
    if not texts:
        return ()
    with _asking:
        top, output = _asked(texts, folder)
    return tuple(
        RefusedSetting(file=redact(file), key=redact(key), problem=redact(problem), lost=lost)
        for file, text in texts
        for key, problem, lost in _of_file(file, text, f"- {top}/{file}", output)
    )


@lru_cache(maxsize=64)
def _asked(files: tuple[tuple[str, str], ...], folder: str) -> tuple[str, str]:
    """Where the copies lay, and what `doctor` said of them."""
    cli = launch.find_cli()
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):  # by a start that was killed
        with suppress(OSError):
            if left.lstat().st_mtime < time.time() - 10 * SECONDS:
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        top, home = Path(name).resolve() / "tree", Path(name).resolve() / "home"
        for place in (home, top / folder):
            place.mkdir(parents=True)
        for file, text in files:
            (top / file).parent.mkdir(parents=True, exist_ok=True)
            (top / file).write_text(_harmless(text) if file.endswith("settings.json") else text, encoding="utf-8")
        environment = {"HOME": str(home), "PATH": str(home), **dict.fromkeys(QUIET, "1")}
        try:
            said = process.answer(
                [str(cli), "doctor"], timeout_seconds=SECONDS, cwd=top / folder, environment=environment
            )
        except (OSError, TimeoutError) as problem:
            raise _unknown(str(problem)) from problem
    output = said.stdout.decode("utf-8", "replace")
    if said.exit_code or not _MARK.search(output):
        raise _unknown("`claude doctor` did not answer as expected")
    return str(top), output


def _unknown(why: str) -> ExecutionError:
    return ExecutionError(f"Which settings Claude Code refuses is not known: {why}.")


def _of_file(file: str, text: str, begin: str, output: str) -> Iterator[tuple[str, str, str]]:
    """Key, problem and loss of each refusal."""
    told: list[tuple[str, str]] = []
    for line in output.splitlines():
        about = line.removeprefix(begin)
        if about != line and about.startswith((": ", " \u203a ")):
            key, _, problem = about.removeprefix(" \u203a ").partition(": ")
            if not problem.startswith(_OF_SESSION):
                told.append((key, _LISTING.sub("", problem).rstrip(".")))
    if told and _is_dropped(file, text, told, output):
        # Of a key, the first sentence says most.
        problems = [f"{key}: {problem}" if key else problem for key, problem in dict(reversed(told)).items()]
        yield "", "; ".join(problems[::-1][:MAX_PROBLEMS]), _lost(text)
    else:
        yield from ((*each, "") for each in dict.fromkeys(told))


def _is_dropped(file: str, text: str, told: Sequence[tuple[str, str]], output: str) -> bool:
    """Whether nothing of the file is applied."""
    values = _parsed(text)
    if values is None or file.endswith(".mcp.json"):
        return values is None or not all(key.startswith("mcpServers.") for key, _ in told)
    shown = _MARK.search(output)
    return shown is not None and shown[1].strip() != _marked(values)


def _marked(values: Mapping[str, Any]) -> object:
    given = values.get(MARK, DEFAULT)
    return CHOSEN if given == DEFAULT else given


def _harmless(text: str) -> str:
    """The settings with the mark, and with nothing that could run or change how they are read."""
    values = _parsed(text)
    if values is None:
        return text
    helpers = {key: "true" for key in KEYS if isinstance(values.get(key), str)}
    environment: dict[str, Any] = {"env": {}} if isinstance(values.get("env"), dict) else {}
    return json.dumps({**values, **helpers, **environment, MARK: _marked(values)})


def _parsed(text: str) -> dict[str, Any] | None:
    """The settings, without what Python cannot read for its nesting."""
    for read in (str, _flattened):
        with suppress(RecursionError):
            try:
                values = json.loads(read(text.removeprefix("\ufeff")))
            except ValueError:
                return None
            return values if isinstance(values, dict) else None
    return None


def _flattened(text: str) -> str:
    depth, kept = 0, []
    for piece in _JSON.findall(text):
        depth += piece in "[{"
        if depth < MAX_NESTING:
            kept.append(piece)
        elif depth == MAX_NESTING and piece in "[{":
            kept.append("null")
        depth -= piece in "]}"
    return "".join(kept)


def _lost(text: str) -> str:
    values = _parsed(text) or {}
    events, rules, servers = (values.get(key) for key in ("hooks", "permissions", "mcpServers"))
    groups = [it for listed in _values(events) if isinstance(listed, list) for it in listed if isinstance(it, dict)]
    hooks = [hook for group in groups if isinstance(hooks := group.get("hooks"), list) for hook in hooks]
    counts = {"hook": len(hooks), "server": len(_values(servers))}
    for kind in ("deny", "ask", "allow"):
        listed = rules.get(kind) if isinstance(rules, dict) else None
        counts[f"{kind} rule"] = len(listed) if isinstance(listed, list) else 0
    found = [numbers.format_count(count, noun) for noun, count in counts.items() if count]
    return " and ".join(filter(None, [", ".join(found[:-1]), *found[-1:]]))


def _values(value: object) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else []
