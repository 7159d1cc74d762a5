"""Fences around text that a session may have written: whatever stands inside, it cannot end the fence."""

import secrets

OPENING = "<evidence-"
"""How every fence begins."""

NONCE_BYTES = 16


def new_nonce() -> str:
    """A mark that nobody can guess: to be made for each run after its session has ended."""
    return secrets.token_hex(NONCE_BYTES)


def mark_of(nonce: str) -> str:
    """A short form, for the many small marks inside a fence."""
    return nonce[:8]


def fence(kind: str, text: str, nonce: str) -> str:
    """The text between marks that only the holder of the nonce can write.

    Args:
        kind: What it is, in our own words: letters, digits and hyphens.
        text: Anything at all. Where it holds the nonce, which takes a leak, the nonce is masked in it.
        nonce: From `new_nonce`.

    Raises:
        ValueError: The kind is not ours, or the nonce too short to be one.
    """
    if not kind.replace("-", "").isalnum() or len(nonce) < 2 * NONCE_BYTES:
        raise ValueError("a fence needs a plain kind and a nonce of its own")
    inner = text.replace(nonce, "*" * len(nonce))
    return f'{OPENING}{nonce} kind="{kind}">\n{inner}\n</evidence-{nonce}>'
