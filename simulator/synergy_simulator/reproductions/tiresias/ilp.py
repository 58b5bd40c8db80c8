"""Tiresias' appendix D: the integer programme for placing a job beside placing it by skew, on small clusters.

Section 3.3 says of it that it is extremely slow on a large cluster, and does not gain what it is made for.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synergy_core.mechanisms.optimum.placement_ilp import least_load, load_of
from synergy_core.model.placement import choose
from synergy_core.model.snapshot import Placement
from synergy_simulator.reproductions.common import Findings, Inputs, mean
from synergy_simulator.workloads.tiresias_mix import MODEL_BYTES, SKEW

GPUS = 4
"""Of a node, as in the paper's testbed."""
WORKERS = 8
MODEL = "VGG19"
_BUSIEST_BYTES = 2_000_000_000
"""A node with a GPU in use has up to so many bytes a step on its link."""


@dataclass(frozen=True, slots=True)
class Case:
    """A job with a parameter server for each worker, on a cluster that others use."""

    servers_bytes: Sequence[int]
    free_gpus: Sequence[int]
    load_bytes: Sequence[int]


@dataclass(frozen=True, slots=True)
class Sample:
    """Bytes over the busiest link by the programme, on the fewest nodes, and on leftovers; seconds of the first two."""

    least: float
    packed: float
    spread: float
    programme_s: float
    packed_s: float


def ilp(inputs: Inputs) -> Findings:
    """Random clusters of a few nodes, three quarters of their GPUs free, one job of 8 workers that train VGG19."""
    sizes, count = ((4,), 3) if inputs.quick else ((4, 8, 16), 10)
    rng = random.Random(inputs.seed)  # noqa: S311 - a simulation
    _sample(_case(rng, sizes[0]))  # what is imported once is nobody's cost
    found = {nodes: [_sample(_case(rng, nodes)) for _ in range(count)] for nodes in sizes}
    rows = [
        (
            str(nodes),
            f"{mean([one.packed / one.least for one in samples]):.2f}x",
            f"{mean([one.spread / one.least for one in samples]):.2f}x",
            (
                f"{1000 * mean([one.programme_s for one in samples]):.0f} / "
                f"{1000 * mean([one.packed_s for one in samples]):.2f}"
            ),
        )
        for nodes, samples in found.items()
    ]
    every = [one for samples in found.values() for one in samples]
    figures = {
        "packed": mean([one.packed / one.least for one in every]),
        "spread": mean([one.spread / one.least for one in every]),
        "least_of_packed": min(one.packed / one.least for one in every),
        "slower": mean([one.programme_s / one.packed_s for one in every]),
    }
    header = ("nodes", "on the fewest nodes", "on leftovers", "programme / fewest nodes, ms")
    differs = [
        (
            "The paper gives the programme and no figures of it. Bytes over the busiest node's link in a step, "
            f"relative to the programme's; means of {count} random clusters of nodes with {GPUS} GPUs."
        ),
        (
            "Parameter servers: one beside each worker, as many as workers; the programme may put them anywhere. The "
            f"largest tensor of {MODEL} is on one, the rest evenly on the others."
        ),
    ]
    return Findings("Appendix D: the integer programme beside placing by skew", header, rows, differs, (), figures)


def _case(rng: random.Random, nodes: int) -> Case:
    free: list[int] = []
    while sum(free) < WORKERS:
        free = [sum(rng.random() < 0.75 for _ in range(GPUS)) for _ in range(nodes)]
    largest = round(SKEW[MODEL] * MODEL_BYTES[MODEL])
    rest = (MODEL_BYTES[MODEL] - largest) // (WORKERS - 1)
    load = [rng.randint(0, _BUSIEST_BYTES) if gpus < GPUS else 0 for gpus in free]
    return Case([largest] + [rest] * (WORKERS - 1), free, load)


def _sample(case: Case) -> Sample:
    begun = time.process_time()
    best = least_load(WORKERS, case.servers_bytes, case.free_gpus, case.load_bytes)
    assert best is not None, "a case has the GPUs"
    solved = time.process_time()
    packed = _load(case, "pack")
    placed = time.process_time()
    return Sample(best.load_bytes, packed, _load(case, "spread"), solved - begun, max(placed - solved, 1e-6))


def _load(case: Case, how: Placement) -> float:
    room = np.array(case.free_gpus)
    assigned = dict(choose(how, WORKERS, room, room.astype(float)) or ())
    workers = [assigned.get(node, 0) for node in range(len(room))]
    hosts = [node for node, here in enumerate(workers) for _ in range(here)]
    return load_of(workers, hosts, case.servers_bytes, case.load_bytes)
