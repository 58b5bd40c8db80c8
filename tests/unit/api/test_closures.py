"""When nodes must be empty: by an administrator's annotation, and by their pool's maintenance."""

from typing import Any

import pytest

from synergy_api.cluster.closures import Closure, closures_of, next_closure
from synergy_api.cluster.pool import Pool
from synergy_api.cluster.pools import node_capacities, pool_problems
from synergy_api.names import ANNOTATION_EMPTY_BY
from synergy_api.reasons import Reason
from synergy_api.resources.gpu_pool import GPUPoolSpec
from synergy_api.timestamps import format_time

LABELS = {"rack": "r1"}


def node(empty_by: str | None = None) -> dict[str, Any]:
    annotations = {} if empty_by is None else {"annotations": {ANNOTATION_EMPTY_BY: empty_by}}
    return {
        "metadata": {"name": "n1", "labels": LABELS, **annotations},
        "spec": {},
        "status": {
            "allocatable": {"nvidia.com/gpu": "8", "cpu": "24", "memory": "500Gi"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pool(*windows: tuple[float, float]) -> GPUPoolSpec:
    times = [{"start": format_time(start), "end": format_time(end)} for start, end in windows]
    return GPUPoolSpec.model_validate({"nodeSelector": LABELS, "gpuType": "V100", "maintenance": times})


def test_a_drain_has_no_end_and_a_maintenance_has_one() -> None:
    found = closures_of(node(format_time(500)), pool((900, 1000), (100, 200)))
    assert found == (Closure(100, 200), Closure(500), Closure(900, 1000))
    assert closures_of(node(), None) == ()


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (0, Closure(100, 200)),
        (150, Closure(100, 200)),
        (200, Closure(300, 500)),
        (450, Closure(350, 500)),
        (500, None),
    ],
)
def test_the_next_closure_lasts_as_long_as_closures_follow_without_a_pause(
    now: float, expected: Closure | None
) -> None:
    windows = (Closure(100, 200), Closure(300, 400), Closure(350, 500), Closure(390, 395))
    assert next_closure(windows, now) == expected


def test_a_drain_within_a_maintenance_keeps_the_node_closed_after_it() -> None:
    assert next_closure((Closure(100, 200), Closure(150)), 0) == Closure(100)
    assert next_closure((Closure(100, 200), Closure(250)), 0) == Closure(100, 200)


@pytest.mark.parametrize(
    ("text", "window", "words"),
    [
        ("tomorrow", None, f"node n1: annotation {ANNOTATION_EMPTY_BY}: 'tomorrow' is not an RFC 3339 time"),
        (None, (200, 100), "node n1: the pool's spec.maintenance[0].end: 1970-01-01T00:01:40Z must be after start"),
    ],
)
def test_a_time_that_cannot_be_read_closes_the_node_and_is_told(
    text: str | None, window: tuple[float, float] | None, words: str
) -> None:
    """Someone wants it empty: nothing new comes until the time is put right, and what runs there stays."""
    spec = pool(window) if window is not None else pool()
    (found,) = node_capacities([node(text)], [Pool("p", spec)])
    assert (found.schedulable, found.closures, found.gpus, found.pool) == (False, (), 8, "p")
    assert found.problem is not None
    assert found.problem.finding.reason is Reason.INVALID_NODE
    assert found.problem.finding.message.startswith(words)
    assert pool_problems([Pool("p", spec)], [found]) == [found.problem], "the pool says so too"


def test_a_capacity_has_the_closures_of_its_node_and_pool() -> None:
    (found,) = node_capacities([node(format_time(500))], [Pool("p", pool((100, 200)))])
    assert found.closures == (Closure(100, 200), Closure(500))
    assert found.schedulable
