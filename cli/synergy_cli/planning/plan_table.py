"""A plan as tables: the jobs that run, with nodes and resources, and the jobs that wait, with reasons."""

from collections.abc import Iterator

from synergy_cli.text_table import text_table
from synergy_core.model.answer import Plan
from synergy_core.model.snapshot import Allocation
from synergy_view.words import count

_GIB = 2**30


def plan_text(plan: Plan, *, seconds: float) -> str:
    """The whole plan as text."""
    gpus = sum(worker.gpus for allocation in plan.allocations for worker in allocation.workers)
    jobs, waiting = len(plan.allocations), len(plan.waiting)
    summary = (
        f"{plan.policy} on {plan.mechanism}: {count(jobs, 'job runs', 'jobs run')} on {count(gpus, 'GPU')}, "
        f"{count(waiting, 'waits', 'wait')} (planned in {seconds * 1000:.1f} ms)"
    )
    parts = [summary]
    if plan.allocations:
        header = ("job", "type", "node", "GPUs", "CPU", "memory GiB", "steps/s", "against its share", "")
        parts.append(text_table(header, [row for a in plan.allocations for row in _rows(plan, a)]))
    if plan.waiting:
        lines = (f"{place}. {w.job}: {w.reason}\n   {w.message}" for place, w in enumerate(plan.waiting, start=1))
        parts.append("\n".join(["waiting, the first in line first", *lines]))
    if plan.growth:
        lines = (f"{count(g.nodes, 'node')} of {g.group} for {', '.join(g.jobs)}" for g in plan.growth)
        parts.append("\n".join(["nodes to ask for", *lines]))
    if plan.estimates:
        lines = (
            f"{e.job} on {e.gpu_type}: {e.steps_per_s:.3g} steps/s, "
            + (f"like {e.reference}" if e.reference else "as before")
            for e in plan.estimates
        )
        parts.append("\n".join(["estimated, never measured", *lines]))
    if plan.late:
        parts.append("\n".join(["late", *(f"{late.job}: {late.reason}\n   {late.message}" for late in plan.late)]))
    by_fractions = [one.job for one in plan.allocations if one.delta_by_fractions]
    if by_fractions:
        parts.append(f"delta from fractions, for want of iteration times: {', '.join(by_fractions)}")
    if plan.shares_from:
        parts.append(f"no new allocation was found in time; what serves is: {plan.shares_from}")
    return "\n\n".join(parts)


def _rows(plan: Plan, allocation: Allocation) -> Iterator[tuple[str, ...]]:
    """A row per node; what concerns the whole job is in the first."""
    job = [allocation.job, allocation.gpu_type]
    speed = [*_speed(allocation), _note(plan, allocation.job)]
    for worker in allocation.workers:
        cpu, memory = f"{worker.cpu_millis / 1000:.2f}", f"{worker.memory_bytes / _GIB:.1f}"
        yield (*job, worker.node, str(worker.gpus), cpu, memory, *speed)
        job, speed = ["", ""], ["-", "-", ""]


def _speed(allocation: Allocation) -> tuple[str, str]:
    speed, usual = allocation.steps_per_s, allocation.proportional_steps_per_s
    about = "~" if allocation.estimated else ""
    return f"{about}{speed:.3g}" if speed else "-", f"{speed / usual:.2f}x" if speed and usual else "-"


def _note(plan: Plan, job: str) -> str:
    if job in plan.preempted:
        return "moves"
    return "resized" if job in plan.resized else ""
