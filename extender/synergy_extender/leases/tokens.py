"""Who is behind a bearer token: TokenReview, and for people SubjectAccessReview."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from synergy_api.names import GROUP
from synergy_kube import KubeClient
from synergy_kube.resources import ACCESS_REVIEWS, TOKEN_REVIEWS

T = TypeVar("T")

CACHE_SECONDS: Final = 60.0
REFUSAL_SECONDS: Final = 5.0
"""Who is refused is not asked about again for so long: it bounds what somebody who keeps trying costs the API server,
and how long somebody who has just been let in waits."""
CACHE_MOST: Final = 20_000
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


class _Answers(Generic[T]):
    """Answers by a question's hash, each kept for so many seconds, and no more than `CACHE_MOST` of them: the oldest
    goes first."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: dict[bytes, tuple[float, T]] = {}

    def get(self, key: bytes, now: float) -> T | None:
        """The answer, unless there is none or it is too old."""
        until, answer = self._kept.get(key, (now, None))
        return answer if until > now else None

    def keep(self, key: bytes, answer: T, asked_at: float) -> None:
        """Keep an answer to what was asked then."""
        self._kept.pop(key, None)
        while len(self._kept) >= CACHE_MOST:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (asked_at + self._seconds, answer)


class Reviewer:
    """Asks the API server about tokens. Positive answers are kept for `CACHE_SECONDS` under the token's hash, negative
    ones for `REFUSAL_SECONDS`, apart from each other: made-up tokens displace nobody who was let in."""

    def __init__(self, client: KubeClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._known: _Answers[Identity] = _Answers(CACHE_SECONDS)
        self._unknown: _Answers[bool] = _Answers(REFUSAL_SECONDS)
        self._allowed: _Answers[bool] = _Answers(CACHE_SECONDS)
        self._denied: _Answers[bool] = _Answers(REFUSAL_SECONDS)

    async def identify(self, token: str, audience: str | None) -> Identity | None:
        """Whose token it is, for that audience (None: the API server's own); None if it is refused.

        Raises ApiError, aiohttp.ClientError or TimeoutError when the API server does not answer.
        """
        key = hashlib.sha256(f"{audience}\0{token}".encode()).digest()
        now = self._clock()
        known = self._known.get(key, now)
        if known is not None or self._unknown.get(key, now):
            return known
        spec: dict[str, Any] = {"token": token} | ({"audiences": [audience]} if audience is not None else {})
        async with self._slots:
            answer = await self._client.create(TOKEN_REVIEWS, {"spec": spec})
        identity = identity_of(answer.get("status") or {}, audience)
        if identity is not None:
            self._known.keep(key, identity, now)
        else:
            self._unknown.keep(key, True, now)
        return identity

    async def may_read_jobs(self, identity: Identity) -> bool:
        """Whether that user may `get` TrainingJobs in every namespace. Raises like `identify`."""
        now = self._clock()
        key = hashlib.sha256(repr(sorted(identity.user.items())).encode()).digest()
        if self._allowed.get(key, now) or self._denied.get(key, now):
            return bool(self._allowed.get(key, now))
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
        (self._allowed if allowed else self._denied).keep(key, True, now)
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
