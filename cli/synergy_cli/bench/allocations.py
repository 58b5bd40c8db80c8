"""Random problems for the allocation policies, as Gavel's evaluation draws them (sections 7.1 and 7.4, figure 14).

Jobs are of 26 kinds, drawn evenly, and there is a worker of each of three types for every four jobs. Durations are
10^x minutes, x from 1.5 to 3 for 80 % of the jobs and from 3 to 4 for the others; deadlines in proportion to 1.2, 2 and
10 times the duration. The kinds come from the authors' table of throughputs where it is given, else from one drawn to
look like it: seven families whose speed-up from the slowest type to the fastest is between 2 and 10, and which keep
more of their speed in pairs the smaller their batch.
"""

import ast
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.model.snapshot import Tenant
from synergy_core.policies.allocation.problem import Problem

TYPES = ("v100", "p100", "k80")
PRICES = (2.48, 1.46, 0.45)
"""Dollars per hour."""
_KINDS = 26
_FAMILIES = (4, 5, 1, 5, 5, 1, 5)
"""Batch sizes of each model (table 2)."""
_SLACK = 8.0
"""Deadlines are this much longer than in the paper: here all jobs are due at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """K kinds of jobs with one worker each."""

    alone: Floats
    """K x 3: steps per second."""
    shared: Floats
    """K x K x 3 x 2: of the first and of the second, sharing a worker; 0 where they do not fit together."""


def drawn_table(seed: int) -> Table:
    """A table that looks like the authors', the same for the same seed."""
    rng = np.random.default_rng(seed)
    family = np.repeat(np.arange(len(_FAMILIES)), _FAMILIES)
    size = np.concatenate([np.linspace(0.2, 1.0, count) if count > 1 else np.array([0.6]) for count in _FAMILIES])
    speedup = rng.uniform(2.0, 10.0, len(_FAMILIES))[family] ** (0.5 + 0.5 * size)
    middle = speedup ** rng.uniform(0.5, 0.9, len(_FAMILIES))[family]
    slowest = rng.uniform(1.0, 20.0, len(_FAMILIES))[family] / (0.2 + size)
    alone = np.stack([slowest * speedup, slowest * middle, slowest], axis=1)
    busy = np.clip(size[:, None] + np.array([-0.3, 0.0, 0.3]), 0.05, 1.0)  # the larger the GPU, the less of it is used
    together = busy[:, None, :] + busy[None, :, :]
    kept = np.minimum(1.0, 1.0 / together) * rng.uniform(0.85, 1.0, (_KINDS, _KINDS, 1))
    fits = size[:, None] + size[None, :] < 1.7
    first = kept * alone[:, None, :] * fits[..., None]
    return Table(alone, np.stack([first, first.swapaxes(0, 1)], axis=3))


def read_table(path: Path) -> Table:
    """The authors' `simulation_throughputs.json`: its kinds with one worker."""
    document = json.loads(path.read_text())
    names = sorted(name for name in document[TYPES[0]] if ast.literal_eval(name)[1] == 1)
    alone = np.array([[document[type_][name]["null"] for type_ in TYPES] for name in names])
    shared = np.zeros((len(names), len(names), len(TYPES), 2))
    for column, type_ in enumerate(TYPES):
        for one, name in enumerate(names):
            for other, beside in enumerate(names):
                shared[one, other, column] = document[type_][name].get(beside, (0.0, 0.0))
    return Table(alone, shared)


def problem(
    table: Table,
    jobs: int,
    *,
    pairs: bool = False,
    tenants: int = 0,
    fifo: bool = False,
    different: bool = False,
    seed: int = 0,
) -> Problem:
    """A problem of so many jobs; `pairs`: with all pairs of them.

    `different`: each job's speeds are those of its configuration times a random factor on each type, 0.8 to 1.25. Like
    measured speeds, no two are then equal.
    """
    rng = np.random.default_rng(seed)
    kind = rng.integers(len(table.alone), size=jobs)
    minutes = 10 ** np.where(rng.random(jobs) < 0.8, rng.uniform(1.5, 3.0, jobs), rng.uniform(3.0, 4.0, jobs))
    seconds = 60.0 * minutes
    own = np.random.default_rng([seed, 1]).uniform(0.8, 1.25, (jobs, len(TYPES))) if different else np.ones((jobs, 3))
    alone = table.alone[kind] * own
    ends = np.stack(np.triu_indices(jobs, 1), axis=1) if pairs else np.empty((0, 2), dtype=np.int64)
    return Problem(
        types=TYPES,
        workers=np.full(len(TYPES), max(1, jobs // 4), dtype=float),
        columns=TYPES,
        column_type=np.arange(len(TYPES)),
        jobs=tuple(str(index) for index in range(jobs)),
        throughputs=alone,
        scale=np.ones(jobs),
        weight=np.ones(jobs),
        steps=alone[:, 0] * seconds,
        elapsed=seconds * rng.choice([0.0, 0.25, 0.5, 1.0], jobs),
        isolated_elapsed=seconds * rng.choice([0.0, 0.25, 0.5, 1.0], jobs),
        arrival=np.arange(jobs, dtype=float),
        slo=seconds * rng.choice([1.2, 2.0, 10.0], jobs) * _SLACK,
        tenant=rng.integers(tenants, size=jobs) if tenants else np.full(jobs, -1),
        cost=np.array(PRICES),
        pairs=ends,
        pair_throughputs=table.shared[kind[ends[:, 0]], kind[ends[:, 1]]] * own[ends].swapaxes(1, 2),
        tenants=tuple(Tenant(str(index), index + 1.0, "fifo" if fifo else "fairness") for index in range(tenants)),
    )
