"""Whatever can be written can be read: no field, absent or present, makes a file unreadable."""

import importlib
import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import pytest
from pydantic import AwareDatetime

from tests.builders import suite
from zelda_ci import domain
from zelda_ci.domain.attribution import Attribution
from zelda_ci.domain.base import Record, Setting
from zelda_ci.domain.manifest import ManifestEntry
from zelda_ci.domain.measures import METRICS, EvalResult
from zelda_ci.domain.run import CountedTrials
from zelda_ci.domain.session import SessionImage
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Changes, WorkspaceSource
from zelda_ci.storage import codec

for module in pkgutil.iter_modules(domain.__path__, "zelda_ci.domain."):
    importlib.import_module(module.name)

NOW = datetime(2026, 2, 13, tzinfo=UTC)
PLAIN = {
    str: "\u00fc\u2028",
    int: 1,
    float: 0.5,
    bool: True,
    datetime: NOW,
    AwareDatetime: NOW,
    NoneType: None,
    Any: None,
    dict: {"a": None},
}


# Whatever else other tests have imported is not these.
STORED = ("zelda_ci.domain.", "zelda_ci.storage.")
SETTINGS = ResolvedSuite.__module__
# Results store what these have in common with the record below them.
IN_MEMORY = {Changes, WorkspaceSource, CountedTrials}


def samples(kind: Any, *, full: bool) -> list[Any]:
    """A value of each kind that an annotation allows."""
    origin, inner = get_origin(kind), get_args(kind)
    match origin:
        case _ if isinstance(kind, NewType):
            return samples(kind.__supertype__, full=full)
        case _ if origin is Annotated:
            return samples(inner[0], full=full)
        case _ if origin in {Union, UnionType}:
            return [value for each in inner for value in samples(each, full=full)]
        case _ if origin is Literal:
            return list(inner)
        case _ if origin is tuple and inner[1:] != (...,):
            return [tuple(samples(each, full=full)[0] for each in inner)]
        case _ if origin is tuple:
            return [(value,) for value in samples(inner[0], full=full)]
        case _ if origin is dict and inner:
            return [{key: value} for key in samples(inner[0], full=full) for value in samples(inner[1], full=full)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return list(kind)
    # What else a record within a record may hold is tried where it is written by itself.
    return [next(records(kind, full=full)) if isinstance(kind, type) and issubclass(kind, Record) else PLAIN[kind]]


def records(kind: type[Record], *, full: bool) -> Iterator[Record]:
    """One with each value of each field, be it with all of its fields, or with those alone that it needs."""
    if kind is ResolvedSuite or issubclass(kind, Setting):
        # Keys of users have rules of their own, and tests of their own.
        yield suite(testCommand="make") if kind is ResolvedSuite else kind()
        return
    fields = {name: field for name, field in kind.model_fields.items() if not field.exclude}
    values = {name: samples(f.annotation, full=full) for name, f in fields.items() if full or f.is_required()}
    if kind is SessionImage:
        values["sha256"] = ["0f" * 32]
    if kind is Attribution:
        values["units"] = [2 * values["units"][0]]
    if kind is EvalResult:
        for metric, spec in METRICS.items():
            for details in (Record(), *records(spec.details, full=full)):
                yield EvalResult(metric=metric, version="1", reasoning=values["reasoning"][0], details=details)
        return
    first = {name: found[0] for name, found in values.items()}
    yield kind(**first)
    for name, found in values.items():
        yield from (kind(**{**first, name: other}) for other in found[1:])


def kinds(base: type[Record] = Record) -> Iterator[type[Record]]:
    for kind in base.__subclasses__():
        if kind.__module__.startswith(STORED) and kind.__module__ != SETTINGS and not issubclass(kind, Setting):
            yield kind
            yield from kinds(kind)


KINDS = sorted({*kinds()} - IN_MEMORY, key=lambda kind: kind.__name__)


def test_the_sample_holds_what_is_stored() -> None:
    assert {EvalResult, ManifestEntry} <= {*KINDS}
    assert len(KINDS) > 100


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_record_is_read_again_with_all_fields_and_without_those_that_may_be_absent(kind: type[Record]) -> None:
    for full in (False, True):
        for record in records(kind, full=full):
            assert codec.decode(kind, codec.encode(record), "file") == record
