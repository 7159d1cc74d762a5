"""Places as a judge cites them, written briefly: "turn 7 call 2", "src/a.py:3-5", "absent: TODO in src/**"."""

import re
from typing import Any

from zelda_ci.domain.details import CHECKS, TASK, Citation
from zelda_ci.metrics.evidence import CitedPlace

_TURN = re.compile(r"(said:)?turn (\d+)(?:,? call (\d+))?(?: image ?(\d*))?", re.IGNORECASE)
_ABSENT = re.compile(r"absent: (.+) in (.+)", re.DOTALL)
_LINES = re.compile(r"(.+):(\d+)(?:-(\d+))?", re.DOTALL)


def cite(where: str, quote: str = "") -> dict[str, Any]:
    """The citation of a place."""
    return {**_place(where), "quote": quote}


def place(where: str, quote: str = "") -> CitedPlace:
    """The same, as evaluators read it."""
    return CitedPlace.model_validate(cite(where, quote))


def citation(where: str, quote: str = "") -> Citation:
    """The same, as results hold it."""
    return Citation.model_validate(cite(where, quote))


def typed(answer: Any) -> Any:
    """Answers of a judge in which every `where` has become a typed place."""
    if isinstance(answer, dict):
        if "where" in answer:
            return cite(answer["where"], answer.get("quote") or "")
        return {name: typed(value) for name, value in answer.items()}
    return [typed(value) for value in answer] if isinstance(answer, list | tuple) else answer


def _place(where: str) -> dict[str, Any]:
    kind, _, path = where.partition(":")
    if where in {CHECKS, TASK, "transcript"}:
        return {"kind": "checks" if where == CHECKS else where}
    if found := _TURN.fullmatch(where):
        said, turn, call, image = found.groups()
        named = {"turn": int(turn), "call": int(call or 0), "image": int(image or 0)}
        return {"kind": "said" if said else "image" if image is not None else "transcript", **named}
    if found := _ABSENT.fullmatch(where):
        pattern = "" if found[1] == "any file" else found[1]
        is_regex = len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/")
        return {
            "kind": "absent",
            "pattern": pattern[1:-1] if is_regex else pattern,
            "is_regex": is_regex,
            "paths": found[2].split(", "),
        }
    if kind in {"patch", "removed"}:
        return {"kind": kind, "path": path}
    if found := _LINES.fullmatch(where):
        return {"kind": "file", "path": found[1], "first_line": int(found[2]), "last_line": int(found[3] or 0)}
    return {"kind": "file", "path": where}
