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


@dataclass(frozen=True)
class Timing:
    """Seconds. A leader that could not renew for `renew_s` stops; others wait `lease_s` after its last sign of life."""

    lease_s: float = 6.0
    renew_s: float = 4.0
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


class LeaderElection:
    """Keeps trying to hold the Lease at `place` (namespace, name). `leading`: no other replica can have it now."""

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
        self._told = False
        self._seen_version = ""
        self._seen_at = 0.0
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

    async def run(self) -> None:
        """Try for the lead, and keep it, until cancelled."""
        while True:
            started = self._clock()
            try:
                async with asyncio.timeout(self._timing.renew_s / 2), self._at_lease:
                    won = self._clock() >= self._not_before and await self._try()
                self._renewed_at = started if won and started >= self._not_before else None
            except CALL_FAILED as error:
                _LOG.warning("leader election: %s", explain(error))
            self._tell()
            await asyncio.sleep(self._timing.retry_s)
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
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            return await self._create()
        self._look(lease)
        if self.holder not in ("", self._identity) and not self._expired(lease):
            return False
        lease["spec"] = self._spec(self._identity, self._timing.lease_s, lease.get("spec") or {})
        try:
            self._look(await self._client.replace(LEASES, self._name, lease, self._namespace))
        except Conflict:
            return False
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

    def _look(self, lease: dict[str, Any]) -> None:
        version = str(lease["metadata"]["resourceVersion"])
        if version != self._seen_version:
            self._seen_version, self._seen_at = version, self._clock()
        self.holder = (lease.get("spec") or {}).get("holderIdentity") or ""

    def _expired(self, lease: dict[str, Any]) -> bool:
        """By this process's own clock, since it last saw the Lease change: clocks of machines differ."""
        duration = float((lease.get("spec") or {}).get("leaseDurationSeconds") or self._timing.lease_s)
        return self._clock() - self._seen_at > duration

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
        leading = self.leading
        if leading != self._told:
            self._told = leading
            _LOG.info("this replica %s", "leads" if leading else "no longer leads")
            self._on_change(leading)
