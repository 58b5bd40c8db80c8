"""What goes wrong, and when, from the seed alone."""

import random
from dataclasses import dataclass

_SHORT, _LONG = (0.3, 4.0), (2.0, 15.0)

KINDS: dict[str, tuple[int, tuple[float, float]]] = {
    "kill-operator": (8, _SHORT),
    "kill-extender-leader": (8, _SHORT),
    "kill-extender-follower": (4, _SHORT),
    "kill-scheduler": (6, _SHORT),
    "kill-default-scheduler": (2, _SHORT),
    "kill-api-server": (3, _SHORT),
    "kill-etcd": (3, _SHORT),
    "pause-operator": (5, _LONG),
    "pause-extender-leader": (6, _LONG),
    "pause-extender-follower": (3, _LONG),
    "pause-scheduler": (4, _LONG),
    "pause-default-scheduler": (1, _LONG),
    "pause-api-server": (2, _SHORT),
    "pause-etcd": (2, _SHORT),
    "cut-operator-api": (5, _LONG),
    "cut-extender-leader-api": (6, _LONG),
    "cut-extender-follower-api": (3, _LONG),
    "cut-scheduler-api": (4, _LONG),
    "cut-scheduler-extender": (4, _LONG),
    "cut-workers-extender": (5, _LONG),
    "cut-api-server-etcd": (3, _LONG),
    "cut-node": (3, (30.0, 170.0)),
    "slow-checkpoint": (3, (20.0, 90.0)),
    "fail-node": (6, _LONG),
    "delete-pod": (8, (0.0, 0.0)),
    "delete-pod-at-once": (6, (0.0, 0.0)),
    "crash-worker": (6, (0.0, 0.0)),
    "delete-allocation": (6, (0.0, 0.0)),
    "storm-429-operator": (2, _LONG),
    "storm-429-extender": (2, _LONG),
    "storm-500-operator": (2, _LONG),
    "storm-500-extender": (2, _LONG),
    "deny-creations": (3, _LONG),
    "deny-ungating": (3, _LONG),
    "fill-quota": (3, _LONG),
    "submit-oversize": (3, _LONG),
    "drop-job": (3, _LONG),
    "step-operator-clock": (1, _LONG),
    "step-extender-leader-clock": (1, _LONG),
    "step-extender-follower-clock": (1, _LONG),
}
"""Weight of each kind, and the range of its length in seconds."""

_GAP_SECONDS = 1.0


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong `at` seconds from the start, for `seconds`; `pick` (0 to 1) chooses among targets, and
    `way` (0 to 1) among ways of doing it."""

    kind: str
    at: float
    seconds: float
    pick: float
    way: float


def schedule(seed: int, count: int) -> list[Fault]:
    """So many faults, about one a second; every kind once before any kind comes more often than by chance."""
    chance = random.Random(f"faults {seed}")
    kinds = list(KINDS)
    chance.shuffle(kinds)
    weights = [weight for weight, _ in KINDS.values()]
    kinds = (kinds + chance.choices(list(KINDS), weights, k=max(0, count - len(kinds))))[:count]
    chance.shuffle(kinds)
    faults, at = [], 3.0
    for kind in kinds:
        at += chance.expovariate(1 / _GAP_SECONDS)
        low, high = KINDS[kind][1]
        faults.append(Fault(kind, at, chance.uniform(low, high), chance.random(), chance.random()))
    return faults
