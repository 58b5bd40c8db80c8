"""`kube-synergy bench planner`: seconds of one plan, beside a plain first fit and the proportional mechanism."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from statistics import median

import click

from synergy_cli.bench.planner.growth import growth_over_n_log_n
from synergy_cli.bench.planner.large_clusters import measure_large
from synergy_cli.bench.planner.policies import measure_policies
from synergy_cli.bench.workload import a_round_later, among_tenants, cluster
from synergy_cli.errors import bad_options
from synergy_cli.text_table import text_table
from synergy_core.cache import Memory
from synergy_core.collector import collector_paused
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Snapshot
from synergy_core.plan import plan

_SIZES = ((16, 200, 0.02), (64, 1_000, 0.1), (1_280, 5_000, 1.0))
"""Nodes of 8 GPUs, jobs, seconds that one plan may take."""


@dataclass(frozen=True, slots=True)
class Case:
    """One size. All times in seconds, the median of the repeats; ratios to the references of the same run."""

    gpus: int
    jobs: int
    running: int
    entering: int
    preempted: int
    round_s: float
    fill_s: float
    proportional_s: float
    first_fit_s: float
    ratio_to_proportional: float
    ratio_to_first_fit: float
    aim_s: float
    within_aim: bool
    ratio_to_no_tenants: float | None = None
    """Processor time of a plan under `--tenants` over that of the same plan without them."""


@click.command("planner")
@click.option("--seed", default=0, show_default=True, help="Seed of the random jobs.")
@click.option(
    "--repeats", default=5, show_default=True, type=click.IntRange(1), help="Number of plans. A figure is their median."
)
@click.option("--policy", default="las", show_default=True, help="Ordering policy.")
@click.option(
    "--tenants",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Also plan with so many tenants, in departments of four, to which all GPUs are guaranteed in equal parts.",
)
@click.option(
    "--large", is_flag=True, help="Plan 10,240 to 100,000 GPUs instead, as one and in parts: minutes, and 1.5 GB."
)
@click.option(
    "--processes",
    default=2,
    show_default=True,
    type=click.IntRange(1, 64),
    help="With --large: processes in which parts are planned.",
)
@click.option(
    "--policies", is_flag=True, help="Plan 10,240 GPUs and 5,000 jobs under each policy instead: processor seconds."
)
@click.option("--only", default="", metavar="P[,P...]", help="With --policies: these alone.")
@click.option(
    "--types",
    default=1,
    show_default=True,
    type=click.IntRange(1, 8),
    help="With --policies: GPU types among which nodes and jobs are dealt out.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def planner_command(
    *,
    seed: int,
    repeats: int,
    policy: str,
    tenants: int,
    large: bool,
    processes: int,
    policies: bool,
    only: str,
    types: int,
    as_json: bool,
) -> None:
    """Measure one plan of a busy cluster: after two rounds, with all GPUs taken and many jobs waiting."""
    if large:
        with bad_options():
            measure_large(seed=seed, policy=policy, processes=processes, as_json=as_json)
        return
    if policies:
        with bad_options():
            measure_policies(types=types, seed=seed, only=[name for name in only.split(",") if name], as_json=as_json)
        return
    cases = []
    for nodes, jobs, aim_s in _SIZES:
        if not as_json:
            click.echo(f"{nodes * 8} GPUs, {jobs} jobs ...", err=True)
        with bad_options():
            case = _measure(nodes, jobs, aim_s, seed=seed, repeats=repeats, policy=policy)
            ratio = _ratio(nodes, jobs, tenants, seed=seed, repeats=repeats, policy=policy) if tenants else None
            cases.append(replace(case, ratio_to_no_tenants=ratio))
    growth = growth_over_n_log_n([(case.gpus + case.jobs, case.round_s) for case in cases])
    if as_json:
        report = {"benchmark": "planner", "seed": seed, "repeats": repeats, "policy": policy, "mechanism": "tune"}
        fit = {"growth_over_n_log_n": growth, "n": "GPUs + jobs"}
        click.echo(json.dumps({**report, **fit, "cases": [asdict(case) for case in cases]}))
    else:
        click.echo(_text(cases))
        for case in cases if tenants else ():
            click.echo(f"{case.gpus} GPUs, {tenants} tenants: {case.ratio_to_no_tenants:.2f} times as long as without")
        click.echo(f"seconds of a round grow with (n log n)^{growth:.2f}, n being GPUs + jobs")


def _measure(nodes: int, jobs: int, aim_s: float, *, seed: int, repeats: int, policy: str) -> Case:
    tune = PlanConfig(policy=policy, mechanism="tune")
    proportional = PlanConfig(policy=policy, mechanism="proportional")
    start = cluster(nodes=nodes, jobs=jobs, seed=seed)
    snapshot = a_round_later(start, plan(start, tune), seed=seed + 1)
    result = plan(snapshot, tune)
    was_running = {job.name for job in snapshot.jobs if job.running is not None}
    round_s = _median_seconds(lambda: plan(snapshot, tune), repeats)
    proportional_s = _median_seconds(lambda: plan(snapshot, proportional), repeats)
    first_fit_s = _median_seconds(lambda: first_fit(snapshot), repeats)
    return Case(
        gpus=nodes * 8,
        jobs=jobs,
        running=len(was_running),
        entering=sum(1 for a in result.allocations if a.job not in was_running),
        preempted=len(result.preempted),
        round_s=round_s,
        fill_s=_median_seconds(lambda: plan(snapshot, PlanConfig(policy=policy, mode="fill")), repeats),
        proportional_s=proportional_s,
        first_fit_s=first_fit_s,
        ratio_to_proportional=round_s / proportional_s,
        ratio_to_first_fit=round_s / first_fit_s,
        aim_s=aim_s,
        within_aim=round_s <= aim_s,
    )


def _ratio(nodes: int, jobs: int, tenants: int, *, seed: int, repeats: int, policy: str) -> float:
    """Plans with and without tenants by turns: each with the memory of its last one, as the extender plans."""
    config = PlanConfig(policy=policy, mechanism="tune")
    start = cluster(nodes=nodes, jobs=jobs, seed=seed)
    without = a_round_later(start, plan(start, config), seed=seed + 1)
    snapshots = (without, among_tenants(without, tenants))
    spent: tuple[list[float], list[float]] = ([], [])
    memories = (Memory(), Memory())
    for _ in range(repeats + 1):
        for snapshot, memory, seconds in zip(snapshots, memories, spent, strict=True):
            began = time.process_time()
            plan(snapshot, config, memory)
            seconds.append(time.process_time() - began)
    return median(spent[1][1:]) / median(spent[0][1:])


def _median_seconds(work: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        with collector_paused():
            started = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - started)
    return median(seconds)


def first_fit(snapshot: Snapshot) -> dict[str, list[tuple[str, int]]]:
    """The plainest packing: jobs by attained service, GPUs of the first nodes that have any, nothing else looked at."""
    free = [node.gpus for node in snapshot.nodes]
    idle = sum(free)
    placed: dict[str, list[tuple[str, int]]] = {}
    for job in sorted(snapshot.jobs, key=lambda job: (job.attained_gpu_s, job.arrival_s, job.name)):
        need = job.gpus
        if need > idle:
            continue
        for index, node in enumerate(snapshot.nodes):
            taken = min(need, free[index])
            if taken:
                free[index] -= taken
                need -= taken
                placed.setdefault(job.name, []).append((node.name, taken))
            if need == 0:
                break
        idle -= job.gpus
    return placed


def _text(cases: list[Case]) -> str:
    header = (
        "GPUs",
        "jobs",
        "running",
        "entering",
        "preempted",
        "round ms",
        "fill ms",
        "proportional ms",
        "first fit ms",
        "to proportional",
        "to first fit",
        "aim ms",
    )
    rows = [
        (
            str(case.gpus),
            str(case.jobs),
            str(case.running),
            str(case.entering),
            str(case.preempted),
            *(f"{s * 1000:.1f}" for s in (case.round_s, case.fill_s, case.proportional_s, case.first_fit_s)),
            f"{case.ratio_to_proportional:.2f}x",
            f"{case.ratio_to_first_fit:.1f}x",
            f"{case.aim_s * 1000:.0f}",
        )
        for case in cases
    ]
    return text_table(header, rows)
