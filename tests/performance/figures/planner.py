"""Plans beside a plain first fit of the same jobs."""

from dataclasses import replace
from itertools import cycle

from performance.case import Case
from synergy_cli.bench.planner.command import first_fit
from synergy_cli.bench.workload import a_round_later, cluster
from synergy_core.cache import Memory
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Snapshot
from synergy_core.plan import plan

_POLICY = "las"
_ROUND = PlanConfig(policy=_POLICY, mechanism="tune")
_FILL = PlanConfig(policy=_POLICY, mechanism="tune", mode="fill")


def _busy(nodes: int, jobs: int) -> Snapshot:
    """A cluster in its second round, with all GPUs taken."""
    start = cluster(nodes=nodes, jobs=jobs, seed=0)
    return a_round_later(start, plan(start, _ROUND), seed=1)


def plan_round(nodes: int, jobs: int) -> Case:
    """The plan of a round, from nothing, over a first fit."""
    snapshot = _busy(nodes, jobs)
    return Case(lambda: plan(snapshot, _ROUND), lambda: first_fit(snapshot))


def plan_one_more(nodes: int, jobs: int) -> Case:
    """A plan between rounds after a job came or went, with the memory of the plan before, over a first fit."""
    snapshot = _busy(nodes, jobs)
    without = replace(snapshot, jobs=snapshot.jobs[:-1])
    turns, memory = cycle((without, snapshot)), Memory()
    return Case(lambda: plan(next(turns), _FILL, memory), lambda: first_fit(snapshot))


def plan_growth(nodes: int, jobs: int, times: int) -> Case:
    """The plan of a round over that of a cluster that many times as small."""
    small, large = _busy(nodes, jobs), _busy(times * nodes, times * jobs)
    return Case(lambda: plan(large, _ROUND), lambda: plan(small, _ROUND))
