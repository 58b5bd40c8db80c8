"""Who is behind a bearer token: TokenReview, and for people SubjectAccessReview."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from weakref import WeakValueDictionary

from synergy_api.names import GROUP
from synergy_extender.leases.review_turns import Lane, ReviewTurns
from synergy_kube import KubeClient
from synergy_kube.resources import ACCESS_REVIEWS, TOKEN_REVIEWS

T = TypeVar("T")

CACHE_SECONDS: Final = 60.0
REFUSAL_SECONDS: Final = 5.0
"""A refused token is not reviewed again for so long. That bounds what a client that keeps trying costs the API server,
and how long a client that has just been let in waits."""
CACHE_MOST: Final = 20_000
FORGOTTEN_SECONDS: Final = 3600.0
"""After so long without use an accepted token is forgotten: its pod is gone, or the kubelet gave it another one."""
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


@dataclass(frozen=True, slots=True)
class Turn:
    """In which lane a question waits, and about which pod it is."""

    lane: Lane = Lane.PERSON
    pod_uid: str = ""


@dataclass(frozen=True, slots=True)
class _Answer(Generic[T]):
    """What the API server said; None is its no."""

    value: T | None
    until: float


class _Answers(Generic[T]):
    """Answers by a question's hash: a yes for `CACHE_SECONDS`, a no for `REFUSAL_SECONDS`. Of each there are no more
    than `CACHE_MOST`, the oldest goes first: made-up tokens displace no accepted one. What is too old by
    `FORGOTTEN_SECONDS` goes too."""

    def __init__(self) -> None:
        self._yes: dict[bytes, _Answer[T]] = {}
        self._no: dict[bytes, _Answer[T]] = {}

    def get(self, key: bytes, now: float) -> _Answer[T] | None:
        """The answer, unless there is none or it is too old."""
        kept = (store.get(key) for store in (self._yes, self._no))
        return next((answer for answer in kept if answer is not None and answer.until > now), None)

    def accepted(self, key: bytes) -> bool:
        """Whether the newest answer was a yes, though it may be too old."""
        return key in self._yes

    def keep(self, key: bytes, value: T | None, asked_at: float) -> _Answer[T]:
        """Keep the answer to what was asked then."""
        store, seconds = (self._no, REFUSAL_SECONDS) if value is None else (self._yes, CACHE_SECONDS)
        self._yes.pop(key, None)
        self._no.pop(key, None)
        while store:
            oldest = next(iter(store))
            if len(store) < CACHE_MOST and store[oldest].until > asked_at - FORGOTTEN_SECONDS:
                break
            del store[oldest]
        store[key] = _Answer(value, asked_at + seconds)
        return store[key]


class Reviewer:
    """Asks the API server about tokens, and remembers its answers for a while."""

    def __init__(self, client: KubeClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._turns = ReviewTurns()
        self._asking: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()
        self._identities: _Answers[Identity] = _Answers()
        self._readers: _Answers[bool] = _Answers()

    async def identify(
        self, token: str, audience: str | None, *, peer: str = "", admit: Callable[[], Turn] = Turn
    ) -> Identity | None:
        """Whose token it is, for that audience (None: the API server's own); None if it is refused. `peer` is the
        address it came from.

        `admit` is called before the API server reviews a token that it has not accepted before. It says whose turn that
        takes, or raises what refuses the token at once.

        Raises BusyError when too many ask, ApiError, aiohttp.ClientError or TimeoutError when the API server does not
        answer.
        """

        async def ask() -> Identity | None:
            spec: dict[str, Any] = {"token": token} | ({"audiences": [audience]} if audience is not None else {})
            answer = await self._client.create(TOKEN_REVIEWS, {"spec": spec})
            return identity_of(answer.get("status") or {}, audience)

        return await self._answer(self._identities, f"{audience}\0{token}", ask, peer, admit)

    async def may_read_jobs(self, identity: Identity, *, peer: str = "") -> bool:
        """Whether that user may `get` TrainingJobs in every namespace. Raises like `identify`."""

        async def ask() -> bool | None:
            attributes = {"group": GROUP, "resource": "trainingjobs", "verb": "get"}
            spec = {
                "user": identity.username,
                "uid": identity.user.get("uid", ""),
                "groups": identity.user.get("groups") or [],
                "extra": identity.user.get("extra") or {},
                "resourceAttributes": attributes,
            }
            answer = await self._client.create(ACCESS_REVIEWS, {"spec": spec})
            return True if (answer.get("status") or {}).get("allowed") else None

        allowed = await self._answer(self._readers, repr(sorted(identity.user.items())), ask, peer, Turn)
        return bool(allowed)

    async def _answer(
        self,
        answers: _Answers[T],
        question: str,
        ask: Callable[[], Awaitable[T | None]],
        peer: str,
        admit: Callable[[], Turn],
    ) -> T | None:
        """What is remembered, else what is said now. Of those who ask the same at once, one asks for all."""
        key = hashlib.sha256(question.encode()).digest()
        kept = answers.get(key, self._clock())
        if kept is not None:
            return kept.value
        turn = Turn(Lane.RENEWAL) if answers.accepted(key) else admit()
        async with self._asking.setdefault(key, asyncio.Lock()):
            kept = answers.get(key, self._clock())
            if kept is None:
                async with self._turns.turn(turn.lane, peer, turn.pod_uid):
                    now = self._clock()
                    kept = answers.keep(key, await ask(), now)
        return kept.value


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
