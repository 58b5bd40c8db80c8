"""Leader election with a Lease object, as Kubernetes' own components do it (client-go, leaderelection)."""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from synergy_extender.failures import CALL_FAILED, explain
from synergy_kube import Conflict, KubeClient, NotFound
from synergy_kube.resources import LEASES

_LOG = logging.getLogger(__name__)
_AGAIN_S = 0.2
"""From a renewal that failed until the leader tries again."""


@dataclass(frozen=True)
class Timing:
    """Seconds. A leader that could not renew for `renew_s` stops; others wait `lease_s` after its last sign of life."""

    lease_s: float = 6.0
    renew_s: float = 5.0
    retry_s: float = 1.0

    def __post_init__(self) -> None:
        if not self.lease_s > self.renew_s > self.retry_s > 0:
            raise ValueError(
                f"leader election: lease {self.lease_s} s must be above renew {self.renew_s} s, and that above retry "
                f"{self.retry_s} s"
            )


class Lead(Protocol):
    """What a writer asks of the election."""

    @property
    def leading(self) -> bool:
        """Whether this replica may write now."""

    @property
    def left_s(self) -> float:
        """For how many seconds no other replica can have the lead."""

    @property
    def near(self) -> bool:
        """Whether this replica may have the lead within seconds, because the leader is silent."""


class LeaderElection:
    """Keeps trying to hold the Lease at `place` (namespace, name). `leading`: no other replica can have it now.

    `on_change` is called with it when it has changed, and when `near` has.
    """

    def __init__(
        self,
        client: KubeClient,
        place: tuple[str, str],
        identity: str,
        timing: Timing,
        *,
        on_change: Callable[[bool], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._namespace, self._name = place
        self._identity = identity
        self._timing = timing
        self._on_change = on_change
        self._clock = clock
        self._renewed_at: float | None = None
        self._not_before = -math.inf
        self._at_lease = asyncio.Lock()
        self._told = (False, False)
        self._seen_version = ""
        self._seen_at, self._looked_at = 0.0, 0.0
        self._expires_at = math.inf
        self._mine: dict[str, Any] | None = None
        """The Lease as this replica has written it last."""
        self.holder = ""

    @property
    def leading(self) -> bool:
        """Whether this process may write. Ask right before each write: time may have passed unseen."""
        return self._renewed_at is not None and self._clock() - self._renewed_at < self._timing.renew_s

    @property
    def left_s(self) -> float:
        """For how many seconds no other replica can have the lead; 0 without it. A write must be over by then."""
        if not self.leading or self._renewed_at is None:
            return 0.0
        return self._renewed_at + self._timing.lease_s - self._clock()

    @property
    def near(self) -> bool:
        """Whether the holder was silent for half of its lease when this replica last looked."""
        others = not self.leading and self.holder not in ("", self._identity)
        return others and self._looked_at > (self._seen_at + self._expires_at) / 2

    async def run(self) -> None:
        """Try for the lead, and keep it, until cancelled."""
        while True:
            started, failed = self._clock(), False
            try:
                async with asyncio.timeout(self._timing.renew_s / 2), self._at_lease:
                    won = self._clock() >= self._not_before and await self._try()
                if self._told[0] and not self.leading:
                    self._tell()  # one that looked at the lead meanwhile waits for word that it is back
                self._renewed_at = started if won and started >= self._not_before else None
            except CALL_FAILED as error:
                _LOG.warning("leader election: %s", explain(error))
                failed = True
            self._tell()
            await asyncio.sleep(_AGAIN_S if failed and self.leading else self._pause_s)
            self._tell()

    async def release(self) -> None:
        """Give up the lead, and do not try for it again for the length of a lease. Another replica can lead at once.

        A renewal that is on its way is waited for: it would hold the Lease again, or be in the way.
        """
        self._not_before = self._clock() + self._timing.lease_s
        if not self.leading:
            return
        self._renewed_at = None
        self._tell()
        async with self._at_lease:
            lease = await self._client.get(LEASES, self._name, self._namespace)
            if lease["spec"].get("holderIdentity") == self._identity:
                lease["spec"] = self._spec("", 1, lease["spec"])
                await self._client.replace(LEASES, self._name, lease, self._namespace)

    async def _try(self) -> bool:
        """Hold or take the Lease; False while it is another's."""
        mine, self._mine = self._mine, None
        if mine is not None and await self._hold(mine):
            return True
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            return await self._create()
        self._look(lease)
        if self.holder not in ("", self._identity) and self._clock() < self._expires_at:
            return False
        return await self._hold(lease)

    async def _hold(self, lease: dict[str, Any]) -> bool:
        """Write into the Lease that this replica holds it; False if it has changed since."""
        spec = self._spec(self._identity, self._timing.lease_s, lease.get("spec") or {})
        try:
            answer = await self._client.replace(LEASES, self._name, {**lease, "spec": spec}, self._namespace)
        except (Conflict, NotFound):
            return False
        self._look(answer)
        self._mine = answer
        return True

    async def _create(self) -> bool:
        body = {
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._spec(self._identity, self._timing.lease_s, {}),
        }
        try:
            self._look(await self._client.create(LEASES, body, self._namespace))
        except Conflict:
            return False
        return True

    @property
    def _pause_s(self) -> float:
        """Until the next try: another's Lease is looked at when it ends, not up to a try later."""
        ends_in = self._expires_at - self._clock()
        return min(self._timing.retry_s, ends_in) if ends_in > 0 else self._timing.retry_s

    def _look(self, lease: dict[str, Any]) -> None:
        """A Lease ends by this process's own clock, since it last saw it change: clocks of machines differ."""
        version, spec = str(lease["metadata"]["resourceVersion"]), lease.get("spec") or {}
        self._looked_at = self._clock()
        if version != self._seen_version:
            self._seen_version, self._seen_at = version, self._looked_at
        self.holder = spec.get("holderIdentity") or ""
        self._expires_at = self._seen_at + float(spec.get("leaseDurationSeconds") or self._timing.lease_s)

    def _spec(self, holder: str, seconds: float, before: dict[str, Any]) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        changes = before.get("holderIdentity") != holder
        transitions = int(before.get("leaseTransitions") or 0)
        return {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(seconds)),
            "acquireTime": now if changes else before.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": transitions + 1 if changes and holder and before else transitions,
        }

    def _tell(self) -> None:
        leading, near = self.leading, self.near
        (led, was_near), self._told = self._told, (leading, near)
        if leading != led:
            _LOG.info("this replica %s", "leads" if leading else "no longer leads")
        elif near and not was_near:
            _LOG.info("the leader is silent: this replica gets ready")
        if (leading, near) != (led, was_near):
            self._on_change(leading)
