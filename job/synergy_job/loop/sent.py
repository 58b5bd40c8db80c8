"""What this process sends the rest of its gang in a step, by the kernel's counters: of its connections, and of the
pod's own RDMA devices."""

from __future__ import annotations

import ipaddress
import os
from typing import TYPE_CHECKING

from synergy_job import rdma
from synergy_job.sockets import Connection, SocketsError, connections, sent_between, socket_inodes

if TYPE_CHECKING:
    from collections.abc import Collection

SETTLE_STEPS = 5
"""Steps before the counting begins: frameworks send the whole model when they start."""
LEAST_STEPS = 20
LEAST_BYTES = 4096
"""Less than this in a step is talk about training, not training."""


class SentMeter:
    """Counts from a few steps after `step` on. It looks when it is asked, and costs nothing between.

    `world_size` processes train together. A process sends to members on its own node and to those at other addresses.
    Over RDMA the pod as a whole is counted: a ring has one link that leaves it, so in all rings the pod sends as much
    as each process.
    """

    def __init__(self, step: int, world_size: int) -> None:
        self._from_step = step + SETTLE_STEPS
        self._world_size = world_size
        self._before: tuple[dict[int, Connection], dict[str, int]] | None = None

    def per_step(self, step: int, peers: Collection[str]) -> int | None:
        """Bytes sent in a step to `peers` (addresses), on average over all steps so far; None while that is not known,
        or next to nothing."""
        if self._world_size < 2 or step < self._from_step:
            return None
        try:
            now = _to_gang(peers), rdma.sent_bytes()
        except (SocketsError, ValueError):
            return None
        if self._before is None:
            self._before, self._from_step = now, step
            return None
        steps = step - self._from_step
        if steps < LEAST_STEPS:
            return None
        (sockets, ports), (sockets_now, ports_now) = self._before, now
        by_sockets = sum(one.sent_bytes for one in sent_between(sockets, sockets_now))
        by_rdma = sum(sent - ports[port] for port, sent in ports_now.items() if port in ports)
        each = max(by_sockets, by_rdma) // steps
        return each if each >= LEAST_BYTES else None


def _to_gang(peers: Collection[str]) -> dict[int, Connection]:
    own = socket_inodes([os.getpid()])
    addresses = {_plain(address) for address in peers}
    return {
        cookie: one
        for cookie, one in connections().items()
        if one.inode in own and (one.remote[0] in addresses or one.remote[0] == one.local[0])
    }


def _plain(address: str) -> str:
    """An IPv4 address that a socket for both families shows in IPv6's form, as what it is."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)
