"""What the planner tells a policy: prices, speeds of jobs with a part of the threads, who decides on sharing."""

from dataclasses import dataclass
from typing import Any

import pytest

from support.planner.planning import GIB, job, node, planned
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import FieldError, Profile
from synergy_core.policies.ranking import _as_clients, shares_by_matrix

FLAT = {"V100": Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((1.0,),))}


def test_one_node_without_a_price_leaves_its_type_without_one() -> None:
    one = job("j", profiles=FLAT, gpu_types=("V100",), steps_total=100)
    nodes = [node("a", 2, price_per_hour=3.0), node("b", 2)]
    with pytest.raises(FieldError, match="nodes: of type V100 lack price_per_hour"):
        planned(nodes, [one], policy="min-cost")
    without_gpus = [node("a", 2, price_per_hour=3.0), node("t", 0, gpu_type="T4")]
    assert [each.job for each in planned(without_gpus, [one], policy="min-cost").allocations] == ["j"]


@dataclass
class _Threads:
    limits_threads: bool

    def alone(self, _: Any, gpu_type: str) -> float:
        return {"V100": 0.5, "T4": 1.0}[gpu_type]


def test_where_threads_are_limited_a_job_alone_has_the_speed_of_its_threads() -> None:
    speeds = {"V100": 8.0, "T4": 2.0}
    assert _as_clients(job("j"), speeds, _Threads(True)) == {"V100": 4.0, "T4": 2.0}  # type: ignore[arg-type]
    assert _as_clients(job("j"), speeds, _Threads(False)) is speeds  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "colocation", "matrix"),
    [
        ("max-min-fairness", "auto", True),
        ("max-min-fairness", "none", False),
        ("fifo", "auto", False),
        ("fifo", "gavel", True),
        ("las", "auto", False),
    ],
)
def test_the_matrix_decides_on_sharing_where_there_is_one_and_for_fifo_if_it_is_asked_to(
    policy: str, colocation: Any, matrix: bool
) -> None:
    assert shares_by_matrix(PlanConfig(policy=policy, colocation=colocation)) == matrix
