"""What a pod's token says of itself. Nothing here is proof: only the API server can tell whether it signed the token.

A token that does not even claim to be a worker's is refused without a question to the API server.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

import msgspec

LONGEST_TOKEN: Final = 8192
EXPIRED_SECONDS: Final = 2 * 86400.0
"""How long a token must have expired to be refused here. The API server's clock decides about the rest: this machine's
clock may be wrong by a day, and the lease of a healthy worker must not depend on it."""


class ClaimError(ValueError):
    """The token cannot be a worker's; the message says why."""


@dataclass(frozen=True, slots=True)
class PodClaim:
    """The pod that a token says it is bound to; all empty for a token that is bound to none."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Pod(msgspec.Struct):
    name: str
    uid: str


class _Kubernetes(msgspec.Struct):
    namespace: str
    pod: _Pod | None = None


class _Claims(msgspec.Struct):
    aud: str | list[str]
    exp: float
    kubernetes: _Kubernetes | None = msgspec.field(name="kubernetes.io", default=None)


_CLAIMS: Final = msgspec.json.Decoder(_Claims)


def claims_of(token: str, audience: str, now: float) -> PodClaim:
    """The pod that the token names, if it says that it is for `audience` and has not expired long before `now` (Unix
    time). Raises ClaimError."""
    parts = token.split(".")
    if len(token) > LONGEST_TOKEN or len(parts) != 3:
        raise ClaimError("the token is not one that a kubelet gives a pod")
    try:
        claims = _CLAIMS.decode(base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise ClaimError("the token is not one that a kubelet gives a pod") from error
    if audience not in ([claims.aud] if isinstance(claims.aud, str) else claims.aud):
        raise ClaimError(f"the token is not for the audience {audience}")
    if claims.exp < now - EXPIRED_SECONDS:
        raise ClaimError("the token has expired long ago")
    if claims.kubernetes is None or claims.kubernetes.pod is None:
        return PodClaim()
    return PodClaim(claims.kubernetes.namespace, claims.kubernetes.pod.name, claims.kubernetes.pod.uid)
