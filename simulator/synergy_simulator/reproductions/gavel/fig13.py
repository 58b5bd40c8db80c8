"""Figure 13 of Gavel: weighted fairness over three entities, first in first out within each, on 3 GPUs of each type.

A job is added every four steps, the first six of entity 0 (weight 1), then six of entity 1 (weight 2), then six of
entity 2 (weight 3). At each step the allocation is solved anew, as the paper's figure does; no job ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.model.snapshot import Tenant
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.problem import Problem, effective_throughput
from synergy_core.policies.allocation.shares import equal_share_throughput
from synergy_simulator.inputs.traces import TraceJob
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.reproductions.common import Findings, Inputs
from synergy_simulator.reproductions.gavel.common import GavelInputs
from synergy_simulator.workloads.gavel_mix import TYPES

ENTITIES: Final = (Tenant("entity 0", 1.0, "fifo"), Tenant("entity 1", 2.0, "fifo"), Tenant("entity 2", 3.0, "fifo"))
_EACH: Final = 6
_STEPS_BETWEEN: Final = 4
_GPUS: Final = 3


@dataclass(frozen=True, slots=True)
class _Moment:
    """With so many jobs there."""

    parts: Floats
    """Of each job that is there, its part of all normalised throughput."""

    def of_entity(self, entity: int) -> float:
        return float(self.parts[entity * _EACH : (entity + 1) * _EACH].sum())


def fig13(inputs: Inputs) -> Findings:
    """Parts of the total throughput as jobs are added."""
    gavel = GavelInputs.of(inputs)
    jobs = gavel.drawn(_EACH * len(ENTITIES))
    moments = [_moment(gavel, jobs[:count]) for count in range(1, len(jobs) + 1)]
    rows = []
    for count in (_EACH, 2 * _EACH, 3 * _EACH):
        moment = moments[count - 1]
        there = range(count // _EACH)
        weights = sum(ENTITIES[entity].weight for entity in there)
        served = " / ".join(f"{np.count_nonzero(_of(moment, entity) > 1e-6)} of {_EACH}" for entity in there)
        rows.append(
            (
                f"{_STEPS_BETWEEN * count}",
                f"{count}",
                " / ".join(f"{moment.of_entity(entity):.2f}" for entity in there),
                " / ".join(f"{ENTITIES[entity].weight / weights:.2f}" for entity in there),
                served,
            )
        )
    last = moments[-1]
    figures = {f"entity_{entity}_part": last.of_entity(entity) for entity in range(len(ENTITIES))}
    figures |= {f"entity_{entity}_served": float(np.count_nonzero(_of(last, entity) > 1e-6)) for entity in range(3)}
    header = ("time step", "jobs", "parts of the throughput, by entity", "by weight", "jobs that are served")
    differs = [
        gavel.speeds_note,
        "The paper does not tell which job types are added; these are drawn uniformly.",
        f"Seed {inputs.seed}. Throughputs are relative to those with an equal share of all GPUs.",
        "What an entity's jobs cannot use goes to the others. Shares follow the weights only if all are limited.",
    ]
    title = "Gavel, figure 13: fairness over entities, FIFO within"
    return Findings(title, header, rows, differs, [_chart(title, moments)], figures)


def _of(moment: _Moment, entity: int) -> Floats:
    return moment.parts[entity * _EACH : (entity + 1) * _EACH]


def _moment(gavel: GavelInputs, jobs: Sequence[TraceJob]) -> _Moment:
    problem = _problem(gavel, jobs)
    answer = solve(problem, "hierarchical")
    normalised = effective_throughput(problem, answer.x) / equal_share_throughput(problem)
    return _Moment(np.asarray(normalised / normalised.sum()))


def _problem(gavel: GavelInputs, jobs: Sequence[TraceJob]) -> Problem:
    """The jobs that are there; entities without one are not."""
    count, entities = len(jobs), -(-len(jobs) // _EACH)
    found = [[gavel.speeds.find(job.model or "", gpu_type, 1) for gpu_type in TYPES] for job in jobs]
    speeds = [[0.0 if one is None else one.steps_per_s[-1][-1] for one in row] for row in found]
    return Problem(
        types=TYPES,
        workers=np.full(len(TYPES), float(_GPUS)),
        columns=TYPES,
        column_type=np.arange(len(TYPES)),
        jobs=tuple(job.name for job in jobs),
        throughputs=np.array(speeds),
        scale=np.ones(count),
        weight=np.ones(count),
        steps=np.full(count, np.nan),
        elapsed=np.zeros(count),
        isolated_elapsed=np.zeros(count),
        arrival=np.arange(count, dtype=float),
        slo=np.full(count, np.inf),
        tenant=np.arange(count) // _EACH,
        cost=np.full(len(TYPES), np.nan),
        pairs=np.empty((0, 2), dtype=np.int64),
        pair_throughputs=np.empty((0, len(TYPES), 2)),
        tenants=ENTITIES[:entities],
    )


def _chart(title: str, moments: Sequence[_Moment]) -> Chart:
    """A line for each job, the parts of those before it below: the bands of the figure."""
    lines = []
    for job in range(len(moments)):
        points = [
            (_STEPS_BETWEEN * (count + 1), float(moment.parts[: job + 1].sum()))
            for count, moment in enumerate(moments)
            if job <= count
        ]
        lines.append(Line(f"job {job}", points))
    return Chart(lines, title=title, x="time step", y="part of the throughput, stacked")
