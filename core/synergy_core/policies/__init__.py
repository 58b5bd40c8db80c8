"""The order in which jobs should run.

A policy is a function `(Queue) -> Ranking`. It sees all jobs that run or want to run, and answers with their order. It
does not look at nodes, and does not know what the jobs get beside their GPUs, so that every policy works with every
mechanism. Ties are broken by arrival, then by name.

The policies that optimise the fraction of its time that each job spends on each GPU type (Gavel; `policies.allocation`)
answer with an order as well, and with the GPU type that each job gets in this round (`rounds.time_shares`).
"""

from collections.abc import Callable, Mapping

from synergy_core.policies import (
    best_effort,
    fifo,
    ftf,
    las,
    sf,
    srsf,
    srtf,
    two_dimensional_gittins,
    two_dimensional_las,
    yarn_cs,
)
from synergy_core.policies.queue import Queue, Ranking
from synergy_core.policies.rounds import time_shares

Policy = Callable[[Queue], Ranking]

POLICIES: Mapping[str, Policy] = {
    "2d-gittins": two_dimensional_gittins.rank,
    "2d-las": two_dimensional_las.rank,
    "best-effort": best_effort.rank,
    "fifo": fifo.rank,
    "ftf": ftf.rank,
    "las": las.rank,
    "sf": sf.rank,
    "srsf": srsf.rank,
    "srtf": srtf.rank,
    "yarn-cs": yarn_cs.rank,
    **{name: time_shares.ranked_by(name) for name in time_shares.NAMES},
}
