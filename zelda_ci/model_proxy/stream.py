"""Event streams as a cassette keeps them: one delta per block, tool input as JSON, no pings."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

PIECES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""Deltas that grow a text, and the field that holds the next piece."""


def joined(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the deltas of each block, so that no path is split between two of them."""
    kept: list[dict[str, Any]] = []
    for event in events:
        if event.get("type") == "ping":
            continue
        if kept and (longer := _continued(kept[-1], event)):
            kept[-1] = longer
        else:
            kept.append(event)
    return [_with_input(event) for event in kept]


def played(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The events as the API sends them."""
    for event in events:
        match event:
            case {"delta": {"type": "input_json_delta", "input": given, **rest}}:
                yield {**event, "delta": {"type": "input_json_delta", **rest, "partial_json": json.dumps(given)}}
            case _:
                yield event


def message(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The message that `stream: false` would have given."""
    whole: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        match event:
            case {"type": "message_start", "message": dict(start)}:
                whole = dict(start)
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                blocks[index] = dict(block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)} if index in blocks:
                _grow(blocks[index], delta)
            case {"type": "message_delta", "delta": dict(delta)}:
                whole |= delta
                whole["usage"] = {**whole.get("usage", {}), **event.get("usage", {})}
            case _:
                pass
    return {**whole, "content": [blocks[index] for index in sorted(blocks)]}


def _continued(event: dict[str, Any], following: dict[str, Any]) -> dict[str, Any] | None:
    if event.get("type") != "content_block_delta" or event.get("index") != following.get("index"):
        return None
    old, new = event.get("delta"), following.get("delta")
    if not (isinstance(old, dict) and isinstance(new, dict) and old.get("type") == new.get("type")):
        return None
    field = PIECES.get(str(old.get("type")))
    if field is None:
        return None
    return {**event, "delta": {**old, **new, field: str(old.get(field, "")) + str(new.get(field, ""))}}


def _with_input(event: dict[str, Any]) -> dict[str, Any]:
    match event:
        case {"delta": {"type": "input_json_delta", "partial_json": str(text), **rest}}:
            try:
                given = json.loads(text)
            except ValueError:
                return event  # the model's mistake, kept as it is
            return {**event, "delta": {"type": "input_json_delta", **rest, "input": given}}
        case _:
            return event


def _grow(block: dict[str, Any], delta: dict[str, Any]) -> None:
    match delta:
        case {"type": "input_json_delta", "input": given}:
            block["input"] = given
        case {"type": "signature_delta", "signature": signature}:
            block["signature"] = signature
        case {"type": "citations_delta", "citation": citation}:
            block["citations"] = [*(block.get("citations") or []), citation]
        case {"type": str(kind)} if kind in PIECES:
            field = PIECES[kind]
            block[field] = str(block.get(field, "")) + str(delta.get(field, ""))
