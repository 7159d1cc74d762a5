"""JSON that two readers could understand differently is refused."""

import pytest

from zelda_ci.github import schemas


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}),
        ('"ä"', "ä"),
        (b"[" * 100 + b"]" * 100, None),
    ],
)
def test_json_is_read(data: bytes | str, value: object) -> None:
    found = schemas.parse_strict(data)
    assert value is None or found == value


REFUSED = (
    *(b"", b"{", b"[1,]", b"{'a': 1}", b'\xff"', b"\xef\xbb\xbf{}", b"9" * 10_000),
    *(b"NaN", b"[Infinity]", b'{"a": -Infinity}', b"1e999", b"-1e999"),
    *(b'{"a": 1, "a": 2}', b'[{"a": {"b": 1, "b": 1}}]'),
    *(b"[" * 101 + b"]" * 101, b"[" * 1_000_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
)


@pytest.mark.parametrize("data", REFUSED)
def test_what_is_no_json_for_everybody_is_refused(data: bytes) -> None:
    with pytest.raises(schemas.NotStrictJsonError):
        schemas.parse_strict(data)
