"""`kube-synergy bench planner --large`: one plan of up to 100,000 GPUs, as one and in parts."""

import json
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context

import click

from synergy_cli.bench.planner.growth import growth_over_n_log_n
from synergy_cli.bench.planner.next_round import next_rounds
from synergy_cli.bench.workload import a_round_later, cluster
from synergy_cli.text_table import text_table
from synergy_core.collector import collector_paused
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.partitions.by_parts import plan_by_parts
from synergy_core.plan import plan
from synergy_extender.planner.forked import Forked

SIZES = ((1_280, 5_000), (6_400, 25_000), (12_500, 50_000))
"""Nodes of 8 GPUs, jobs."""
TYPES = (1, 4)
"""GPU types among which nodes and jobs are dealt out."""


@dataclass(frozen=True, slots=True)
class LargeCase:
    """One size. All times are processor seconds of one plan; but for `next_s` with no memory of earlier ones."""

    gpus: int
    types: int
    jobs: int
    running: int
    waiting: int
    round_s: float
    next_s: float
    """A round of the leader that planned the one before: 1 % of the running jobs have ended, and as many have come."""
    fill_s: float
    memory_mb: float
    """Peak of the process that planned as one, with the snapshots of some rounds."""
    own_s: float | None = None
    """In parts: of the process that divides, plans its parts, and joins."""
    forks_s: float | None = None
    """In parts: of the other processes together."""
    longest_s: float | None = None
    """In parts: from the beginning to the end of the round, by a clock. It counts other work of the machine."""


def measure_large(*, seed: int, policy: str, processes: int, as_json: bool) -> None:
    """Measures all sizes, each in a process of its own, and prints a table or a JSON object."""
    cases: list[LargeCase] = []
    for types in TYPES:
        for nodes, jobs in SIZES:
            if not as_json:
                click.echo(f"{nodes * 8} GPUs of {types} types, {jobs} jobs ...", err=True)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                case = pool.submit(measured, nodes, jobs, types, seed=seed, policy=policy, processes=processes)
                cases.append(case.result())
    growth = growth_over_n_log_n([(case.gpus + case.jobs, case.round_s) for case in cases if case.types == 1])
    if as_json:
        report = {"benchmark": "planner", "large": True, "seed": seed, "policy": policy, "mechanism": "tune"}
        fit = {"processes": processes, "growth_over_n_log_n": growth, "n": "GPUs + jobs"}
        click.echo(json.dumps({**report, **fit, "cases": [asdict(case) for case in cases]}))
        return
    click.echo(_text(cases, processes))
    click.echo(f"processor seconds of a round on one GPU type grow with (n log n)^{growth:.2f}, n being GPUs + jobs")


def measured(nodes: int, jobs: int, types: int, *, seed: int, policy: str, processes: int) -> LargeCase:
    """One size."""
    config = PlanConfig(policy=policy, mechanism="tune")
    start = cluster(nodes=nodes, jobs=jobs, seed=seed, types=types)
    snapshot = a_round_later(start, plan(start, config), seed=seed + 1)
    del start
    round_s, _, _, result = _spent(lambda: plan(snapshot, config))
    fill_s, *_ = _spent(lambda: plan(snapshot, PlanConfig(policy=policy, mechanism="tune", mode="fill")))
    next_s = next_rounds(snapshot, config, seed=seed + 2).seconds
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    own_s, forks_s, longest_s = None, None, None
    if types > 1:
        own_s, forks_s, longest_s, _ = _spent(lambda: plan_by_parts(snapshot, config, Forked(processes)))
    return LargeCase(
        gpus=nodes * 8,
        types=types,
        jobs=jobs,
        running=len(result.allocations),
        waiting=len(result.waiting),
        round_s=round_s,
        next_s=next_s,
        fill_s=fill_s,
        memory_mb=memory_mb,
        own_s=own_s,
        forks_s=forks_s,
        longest_s=longest_s,
    )


def _spent(work: Callable[[], Plan]) -> tuple[float, float, float, Plan]:
    """Processor seconds of this process and of its children, seconds by a clock, and the plan."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with collector_paused():
        clock, began = time.perf_counter(), time.process_time()
        result = work()
        own, seconds = time.process_time() - began, time.perf_counter() - clock
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds, result


def _text(cases: Sequence[LargeCase], processes: int) -> str:
    header = (
        "GPUs",
        "types",
        "jobs",
        "running",
        "waiting",
        "round s",
        "next round s",
        "fill s",
        "MB",
        f"in parts, {processes} processes: own s",
        "forks s",
        "clock s",
    )
    return text_table(
        header,
        [
            (
                *(str(n) for n in (case.gpus, case.types, case.jobs, case.running, case.waiting)),
                f"{case.round_s:.2f}",
                f"{case.next_s:.2f}",
                f"{case.fill_s:.2f}",
                f"{case.memory_mb:.0f}",
                *("" if s is None else f"{s:.2f}" for s in (case.own_s, case.forks_s, case.longest_s)),
            )
            for case in cases
        ],
    )
