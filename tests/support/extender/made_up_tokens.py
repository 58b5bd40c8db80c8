"""Tokens that look like those that a kubelet gives a worker, signed by nobody."""

import base64
import json
import time
import uuid
from typing import Any

from synergy_api.names import TOKEN_AUDIENCE


def made_up(namespace: str = "team", name: str = "j-1-0", uid: str = "", **claims: Any) -> str:
    """A token that names this pod, or one that nobody knows; `claims` replace what it says. No two are the same."""
    body = {
        "aud": [TOKEN_AUDIENCE],
        "exp": time.time() + 3000,
        "jti": str(uuid.uuid4()),
        "kubernetes.io": {"namespace": namespace, "pod": {"name": name, "uid": uid or str(uuid.uuid4())}},
        **claims,
    }
    return ".".join((_part({"alg": "RS256", "kid": "made-up"}), _part(body), "c2lnbmF0dXJl"))


def _part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
