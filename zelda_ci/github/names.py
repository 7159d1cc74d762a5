"""What artifacts and the files in them may be called. Pure."""

import hashlib
import unicodedata

LONGEST = 100
HASH_LENGTH = 8
FORBIDDEN = frozenset('":<>|*?\r\n')
SEPARATORS = frozenset("\\/")
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def artifact_name(text: str) -> str:
    """A legal name for any text; one that had to be changed ends in a hash, so that two texts stay two names."""
    kept = "".join(char if _is_legal(char) else "-" for char in text)[:LONGEST].strip(" .-")
    if text and kept == text:
        return text
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
    return f"{kept[: LONGEST - HASH_LENGTH - 1] or 'artifact'}-{mark}"


def is_artifact_name(name: str) -> bool:
    """Whether GitHub takes it."""
    return bool(name) and not (FORBIDDEN | SEPARATORS).intersection(name)


def is_member_name(name: str) -> bool:
    """Whether a file in an artifact may be called so: a relative path that leads nowhere else."""
    parts = name.split("/")
    return not (FORBIDDEN | {"\\"}).intersection(name) and all(part not in {"", ".", ".."} for part in parts)


def _is_legal(char: str) -> bool:
    return char not in FORBIDDEN | SEPARATORS and unicodedata.category(char) not in INVISIBLE
