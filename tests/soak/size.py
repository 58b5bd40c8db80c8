"""How large a soak is, and what is drawn for it from its seed. Pure."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from synergy_operator.run.fencing import MARGIN_SECONDS
from synergy_operator.views.settings import FENCE_SECONDS

GPUS_PER_NODE = 8
GPU_MIX = {1: 0.62, 2: 0.20, 4: 0.16, 8: 0.02}
"""Share of the jobs that have so many GPUs: 1.82 on average."""
MEAN_GPUS = sum(gpus * share for gpus, share in GPU_MIX.items())
_LIFE_SHARE = 1 / 3
_LIFE_LEAST_S, _LIFE_MOST_S = 20.0, 1200.0
_MOST_JOBS_PER_S = 1.5
"""On average so many jobs a second end, and as many come: what two cores serve beside API server, etcd and nodes."""
_SHORTEST = 0.1
"""Of the mean, the shortest training."""


@dataclass(frozen=True)
class Size:
    """`load` is the share of the GPUs that unfinished jobs ask for."""

    gpus: int
    minutes: float
    load: float = 0.9
    seed: int = 1
    round_s: int = 60
    mean_life_s: float = 0.0
    """Mean seconds of a job's training; 0: a third of the soak, within 20 s and 20 minutes, and longer where more than
    1.5 jobs a second would come."""

    @property
    def nodes(self) -> int:
        """Fake nodes."""
        return math.ceil(self.gpus / GPUS_PER_NODE)

    @property
    def seconds(self) -> float:
        """For how long jobs arrive."""
        return 60.0 * self.minutes

    @property
    def life_s(self) -> float:
        """Mean seconds of a job's training."""
        least_s = self.asked / MEAN_GPUS / _MOST_JOBS_PER_S
        return self.mean_life_s or max(min(max(_LIFE_LEAST_S, _LIFE_SHARE * self.seconds), _LIFE_MOST_S), least_s)

    @property
    def asked(self) -> int:
        """GPUs that unfinished jobs ask for together."""
        return int(self.load * self.gpus)

    @property
    def at_first_s(self) -> float:
        """How long the first jobs may take until the load is reached: a third of the soak."""
        return self.seconds / 3

    @property
    def drain_s(self) -> float:
        """How long the jobs that are left may take to end after the soak: one whose worker vanished from a node that
        failed waits for its fence."""
        return FENCE_SECONDS + MARGIN_SECONDS + 120.0 + self.asked / 10

    @property
    def gap_s(self) -> float:
        """Mean seconds between two disturbances."""
        return max(15.0, self.seconds / 16)


@dataclass(frozen=True)
class SoakJob:
    """A job and for how many seconds it trains."""

    name: str
    gpus: int
    seconds: float


def jobs(size: Size) -> Iterator[SoakJob]:
    """Jobs without end. Training times are exponential, as a tenth of the mean at least."""
    chance = random.Random(f"soak jobs {size.seed}")
    index = 0
    while True:
        gpus = chance.choices(list(GPU_MIX), list(GPU_MIX.values()))[0]
        seconds = max(_SHORTEST * size.life_s, chance.expovariate(1 / size.life_s))
        yield SoakJob(f"job-{index:06}", min(gpus, size.gpus), seconds)
        index += 1


class Kind(StrEnum):
    """What happens to the product and to its nodes."""

    OPERATOR_KILLED = "operator-killed"
    OPERATOR_RESTARTED = "operator-restarted"
    LEADER_KILLED = "extender-leader-killed"
    LEADER_RESTARTED = "extender-leader-restarted"
    FOLLOWER_RESTARTED = "extender-follower-restarted"
    SCHEDULER_RESTARTED = "scheduler-restarted"
    NODES_FAILED = "nodes-failed"


_NODES_WEIGHT = 4
"""Nodes fail so many times as often as each component."""


@dataclass(frozen=True)
class Disturbance:
    """Something that happens `at` seconds from the start and lasts `seconds`. `nodes` fail, by number."""

    kind: Kind
    at: float
    seconds: float
    nodes: tuple[int, ...] = ()


def disturbances(size: Size) -> list[Disturbance]:
    """One after another, none within the last tenth of the soak. Each kind comes once before any comes by chance."""
    chance = random.Random(f"soak disturbances {size.seed}")
    kinds = list(Kind)
    chance.shuffle(kinds)
    weights = [_NODES_WEIGHT if kind is Kind.NODES_FAILED else 1 for kind in Kind]
    found: list[Disturbance] = []
    at = chance.uniform(0.5, 1.5) * size.gap_s
    while at < 0.9 * size.seconds:
        kind = kinds.pop() if kinds else chance.choices(list(Kind), weights)[0]
        fails = kind is Kind.NODES_FAILED
        most = max(1, size.nodes // 200)
        nodes = tuple(sorted(chance.sample(range(size.nodes), chance.randint(1, most)))) if fails else ()
        seconds = chance.uniform(0.5, 2.0) * min(60.0, size.gap_s) if fails else chance.uniform(0.3, 4.0)
        found.append(Disturbance(kind, at, seconds, nodes))
        at += chance.uniform(0.5, 1.5) * size.gap_s
    return found
