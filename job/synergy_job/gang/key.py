"""The run's key: how rank 0 and a member prove to each other that they belong to one run.

Both have the key from a Secret that the operator made. Member to leader: its hello with a nonce. Leader to member: a
nonce of its own, and its proof. Member to leader: its own proof. A proof is an HMAC over the side that gives it, both
nonces and the whole hello. It fits no other conversation, run or side.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from typing import Any

from synergy_job.environment import ConfigError
from synergy_job.forking import undivided

LEAST_KEY_BYTES = 32
NO_PROOF = "it does not prove that it knows the run's key (the file that SYNERGY_GANG_KEY_FILE names)"


def read_key(file: str) -> bytes | None:
    """The key in the file; None where no file is named, as outside a cluster.

    Raises `ConfigError` if the file cannot be read or holds no key.
    """
    if not file:
        return None
    try:
        with open(file, "rb") as opened:
            key = opened.read().strip()
    except OSError as error:
        raise ConfigError(f"SYNERGY_GANG_KEY_FILE cannot be read: {error}") from error
    if len(key) < LEAST_KEY_BYTES:
        raise ConfigError(f"SYNERGY_GANG_KEY_FILE holds {len(key)} bytes: a key has at least {LEAST_KEY_BYTES}")
    return key


def new_nonce() -> str:
    """A number that was never used before."""
    return secrets.token_hex(16)


def proof(key: bytes, side: str, hello: dict[str, Any], challenge: str) -> str:
    """What `side` ("leader" or "member") says to prove that it knows the key. `hello` holds the member's nonce,
    `challenge` is the leader's."""
    told = json.dumps([side, challenge, hello], sort_keys=True)
    with undivided:
        return hmac.new(key, told.encode(), hashlib.sha256).hexdigest()


def proves(said: object, key: bytes, side: str, hello: dict[str, Any], challenge: str) -> bool:
    """Whether `said` is the proof."""
    return hmac.compare_digest(str(said).encode(errors="replace"), proof(key, side, hello, challenge).encode())
