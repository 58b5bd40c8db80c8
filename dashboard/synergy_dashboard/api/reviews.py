"""The user behind a bearer token and their rights: TokenReview and SubjectAccessReview, cached for a short time."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from synergy_api.names import GROUP
from synergy_dashboard.api.turns import Turns
from synergy_dashboard.live.scope import EVERYTHING, Scope
from synergy_kube import KubeClient
from synergy_kube.resources import ACCESS_REVIEWS, TOKEN_REVIEWS

T = TypeVar("T")
CACHE_SECONDS: Final = 60.0
REFUSAL_SECONDS: Final = 5.0
"""How long a refused token is not reviewed again."""
HIDDEN_SECONDS: Final = 300.0
"""How long a list leaves out a namespace that the user may not see: most users may see few of many."""
_CACHE_MOST: Final = 50_000
"""For example of 200 users and 250 namespaces."""


@dataclass(frozen=True)
class Identity:
    """A user as the API server identifies them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


class Reviewer(Protocol):
    """Reviews of users. Methods raise BusyError when too many reviews are waiting, and the errors of KubeClient."""

    async def identify(self, token: str, peer: str) -> Identity | None:
        """The token's owner; None if the token is refused."""
        ...

    async def may_see(self, user: Identity, namespace: str | None, refusal_s: float = CACHE_SECONDS) -> bool:
        """True if the user may get TrainingJobs of a namespace (None: of all namespaces). A no may be so old."""
        ...


class ClusterReviewer:
    """Asks the API server. `clock` gives seconds that never go back."""

    def __init__(self, client: KubeClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._turns = Turns(clock)
        self._identities: _Answers[Identity] = _Answers(clock)
        self._rights: _Answers[bool] = _Answers(clock)

    async def identify(self, token: str, peer: str) -> Identity | None:
        """The token's owner; None if the token is refused. The cache keeps hashes of tokens only."""

        async def ask() -> Identity | None:
            answer = await self._client.create(TOKEN_REVIEWS, {"spec": {"token": token}})
            return identity_of(answer.get("status") or {})

        key = hashlib.sha256(token.encode()).digest()
        return await self._identities.answer(
            key, ask, self._turns.known, lambda: self._turns.new(peer), refusal_s=REFUSAL_SECONDS
        )

    async def may_see(self, user: Identity, namespace: str | None, refusal_s: float = CACHE_SECONDS) -> bool:
        """True if the user may get TrainingJobs of a namespace (None: of all namespaces). A no may be so old."""

        async def ask() -> bool | None:
            attributes = {"group": GROUP, "resource": "trainingjobs", "verb": "get"}
            spec = {
                "user": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": user.extra,
                "resourceAttributes": {**attributes, **({} if namespace is None else {"namespace": namespace})},
            }
            answer = await self._client.create(ACCESS_REVIEWS, {"spec": spec})
            return True if (answer.get("status") or {}).get("allowed") else None

        about = repr((user.name, user.uid, user.groups, sorted(user.extra.items()), namespace))
        key = hashlib.sha256(about.encode()).digest()
        return bool(await self._rights.answer(key, ask, self._turns.known, self._turns.known, refusal_s=refusal_s))


async def scope_of(reviewer: Reviewer, user: Identity, namespaces: Collection[str]) -> Scope:
    """Those of these namespaces that the user may see."""
    if await reviewer.may_see(user, None):
        return EVERYTHING
    seen = await _seen(reviewer, user, namespaces, HIDDEN_SECONDS)
    # The API answers a user without any right with 403. A right that they get then works within a minute.
    return Scope(seen or await _seen(reviewer, user, namespaces, CACHE_SECONDS))


async def _seen(reviewer: Reviewer, user: Identity, namespaces: Collection[str], refusal_s: float) -> frozenset[str]:
    listed = sorted(namespaces)
    allowed = await asyncio.gather(*(reviewer.may_see(user, one, refusal_s) for one in listed))
    return frozenset(name for name, may in zip(listed, allowed, strict=True) if may)


def identity_of(status: Mapping[str, Any]) -> Identity | None:
    """The identity in a TokenReview's status; None if the token was refused."""
    user = status.get("user") or {}
    if not status.get("authenticated") or not user.get("username"):
        return None
    return Identity(
        str(user["username"]), str(user.get("uid") or ""), tuple(user.get("groups") or ()), user.get("extra") or {}
    )


_Turn = Callable[[], AbstractAsyncContextManager[None]]


class _Answers(Generic[T]):
    """Cached answers by the question's hash: a yes for a minute, a no for as long as who asks wants. Each kind has its
    own limit, and the oldest entry goes first. So invented tokens displace no accepted token."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._yes: dict[bytes, tuple[T, float]] = {}
        self._no: dict[bytes, float] = {}
        """When the question was asked."""
        self._asking: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    async def answer(
        self, key: bytes, ask: Callable[[], Awaitable[T | None]], again: _Turn, first: _Turn, *, refusal_s: float
    ) -> T | None:
        """The cached answer, unless it is a no that is older than `refusal_s`; or a new one. Equal questions at the
        same time share one review. The review takes a turn of `again` if the newest answer was a yes, else of `first`.
        """
        kept, value = self._kept(key, refusal_s)
        if kept:
            return value
        lock = self._asking.setdefault(key, asyncio.Lock())
        async with lock:
            kept, value = self._kept(key, refusal_s)
            if kept:
                return value
            async with again() if key in self._yes else first():
                asked_at = self._clock()
                value = await ask()
            self._keep(key, value, asked_at)
        return value

    def _kept(self, key: bytes, refusal_s: float) -> tuple[bool, T | None]:
        now = self._clock()
        if self._no.get(key, float("-inf")) + refusal_s > now:
            return True, None
        found = self._yes.get(key)
        return (True, found[0]) if found is not None and found[1] > now else (False, None)

    def _keep(self, key: bytes, value: T | None, asked_at: float) -> None:
        self._yes.pop(key, None)
        self._no.pop(key, None)
        kept: dict[bytes, Any] = self._no if value is None else self._yes
        while len(kept) >= _CACHE_MOST:
            del kept[next(iter(kept))]
        kept[key] = asked_at if value is None else (value, asked_at + CACHE_SECONDS)
