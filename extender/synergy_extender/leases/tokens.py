"""Who is behind a bearer token: TokenReview, and for people SubjectAccessReview."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from synergy_api.names import GROUP
from synergy_kube import KubeClient
from synergy_kube.resources import ACCESS_REVIEWS, TOKEN_REVIEWS

CACHE_SECONDS = 60.0
_CACHE_MOST = 20_000
_AT_ONCE = 16
_POD_NAME = "authentication.kubernetes.io/pod-name"
_POD_UID = "authentication.kubernetes.io/pod-uid"
_SERVICE_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True)
class Identity:
    """Who the API server says the token is. The pod's fields are empty for a token that is bound to no pod."""

    user: Mapping[str, Any]
    username: str
    pod_namespace: str
    pod_name: str
    pod_uid: str


class Reviewer:
    """Asks the API server about tokens. Positive answers are kept for `CACHE_SECONDS` under the token's hash."""

    def __init__(self, client: KubeClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._known: dict[bytes, tuple[float, Identity]] = {}
        self._allowed: dict[bytes, float] = {}

    async def identify(self, token: str, audience: str | None) -> Identity | None:
        """Whose token it is, for that audience (None: the API server's own); None if it is refused.

        Raises ApiError, aiohttp.ClientError or TimeoutError when the API server does not answer.
        """
        key = hashlib.sha256(f"{audience}\0{token}".encode()).digest()
        now = self._clock()
        known = self._known.get(key)
        if known is not None and known[0] > now:
            return known[1]
        spec: dict[str, Any] = {"token": token} | ({"audiences": [audience]} if audience is not None else {})
        async with self._slots:
            answer = await self._client.create(TOKEN_REVIEWS, {"spec": spec})
        identity = identity_of(answer.get("status") or {}, audience)
        if identity is not None:
            _make_room(self._known, lambda kept: kept[0] <= now)
            self._known[key] = (now + CACHE_SECONDS, identity)
        return identity

    async def may_read_jobs(self, identity: Identity) -> bool:
        """Whether that user may `get` TrainingJobs in every namespace. Raises like `identify`."""
        now = self._clock()
        key = hashlib.sha256(repr(sorted(identity.user.items())).encode()).digest()
        if self._allowed.get(key, 0.0) > now:
            return True
        attributes = {"group": GROUP, "resource": "trainingjobs", "verb": "get"}
        spec = {
            "user": identity.username,
            "uid": identity.user.get("uid", ""),
            "groups": identity.user.get("groups") or [],
            "extra": identity.user.get("extra") or {},
            "resourceAttributes": attributes,
        }
        async with self._slots:
            answer = await self._client.create(ACCESS_REVIEWS, {"spec": spec})
        allowed = bool((answer.get("status") or {}).get("allowed"))
        if allowed:
            _make_room(self._allowed, lambda until: until <= now)
            self._allowed[key] = now + CACHE_SECONDS
        return allowed


def identity_of(status: Mapping[str, Any], audience: str | None) -> Identity | None:
    """The identity in a TokenReview's status; None where the token was refused or is for another audience."""
    if not status.get("authenticated"):
        return None
    if audience is not None and audience not in (status.get("audiences") or []):
        return None
    user = status.get("user") or {}
    extra = user.get("extra") or {}
    username = str(user.get("username", ""))
    namespace = username.removeprefix(_SERVICE_ACCOUNT).split(":")[0] if username.startswith(_SERVICE_ACCOUNT) else ""
    return Identity(user, username, namespace, _only(extra, _POD_NAME), _only(extra, _POD_UID))


def _only(extra: Mapping[str, Any], name: str) -> str:
    values = extra.get(name) or []
    return str(values[0]) if len(values) == 1 else ""


def _make_room(cache: dict[bytes, Any], stale: Callable[[Any], bool]) -> None:
    if len(cache) < _CACHE_MOST:
        return
    for key in [key for key, value in cache.items() if stale(value)]:
        del cache[key]
    if len(cache) >= _CACHE_MOST:
        cache.clear()
