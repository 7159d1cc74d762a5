"""Every use of a tool, counted without a judge. Pure."""

import re
from collections.abc import Iterator

from zelda_ci.domain import tool_names
from zelda_ci.domain.judgement import ToolUse
from zelda_ci.domain.manifest import ItemKind, ToolsManifest
from zelda_ci.domain.session import SessionTranscript, UserSaid
from zelda_ci.redact import Redactor

MOST_TOOLS = 200

_COMMAND = re.compile(r"<command-name>/?([^<\s]{1,100})</command-name>")


def count(transcript: SessionTranscript, manifest: ToolsManifest | None, redact: Redactor) -> tuple[ToolUse, ...]:
    """Calls by tool, the most used first, with errors and denials.

    Rules, CLAUDE.md files and hooks have no call. A skill or command that was written with a slash, in the prompt or
    in what Claude Code put to the model, counts as called.
    """
    counts: dict[str, list[int]] = {}
    for call in transcript.tool_calls:
        tally = counts.setdefault(tool_names.label(call), [0, 0, 0])
        tally[0] += 1
        tally[1] += call.is_error and not call.denied
        tally[2] += call.denied
    for name in _slashed(transcript, manifest):
        counts.setdefault(tool_names.skill(name), [0, 0, 0])[0] += 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1][0], item[0]))[:MOST_TOOLS]
    return tuple(ToolUse(tool=redact(tool), calls=c, errors=e, denied=d) for tool, (c, e, d) in ranked)


def _slashed(transcript: SessionTranscript, manifest: ToolsManifest | None) -> Iterator[str]:
    kinds = (ItemKind.SKILL, ItemKind.COMMAND)
    known = {item.name for item in manifest.items if item.kind in kinds and item.loaded} if manifest else set()
    texts = [entry.text for entry in transcript.entries if isinstance(entry, UserSaid)]
    words = transcript.prompt.split(maxsplit=1)
    typed = [words[0].removeprefix("/")] if words and words[0].startswith("/") else []
    for name in (*typed, *(name for text in texts for name in _COMMAND.findall(text))):
        if name in known:
            yield name
