"""The order in which jobs should run.

A policy is a function `(Queue) -> Ranking`. It sees all jobs that run or want to run, and answers with their order. It
does not see nodes, nor what jobs get beside their GPUs. So every policy works with every mechanism. Ties are broken by
arrival, then by name.

The policies that optimise the fraction of its time that each job spends on each GPU type (Gavel; `policies.allocation`)
answer with an order as well, and with the GPU type that each job gets in this round (`rounds.time_shares`).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

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
"""An ordering policy: puts all jobs that run or want to run in order. Pure and deterministic."""

_KNOWN: dict[str, Policy] = {
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

BUILT_IN: Final = frozenset(_KNOWN)
"""Names of the project's own policies."""

POLICIES: Mapping[str, Policy] = MappingProxyType(_KNOWN)
"""The project's policies, and those that a program has registered."""


def register(name: str, policy: Policy) -> None:
    """Let plans use a policy of somebody's own. A program does so before it plans; a later policy replaces an earlier.

    Raises:
        ValueError: the name is one of the project's own policies.
    """
    if name in BUILT_IN:
        raise ValueError(f"policy: {name} is a policy of kube-synergy; choose another name")
    _KNOWN[name] = policy
