"""Amounts as the planner's dimensions. A dimension that snapshots have no field for goes into `further`."""

import pytest

from synergy_api.amounts import Amounts
from synergy_core.model import snapshot as core
from synergy_extender.cluster import dimensions
from synergy_extender.cluster.dimensions import (
    amounts_of_place,
    bounds_of,
    job_fields,
    least_of,
    node_fields,
    share_fields,
)


@pytest.fixture(params=[("cpu_millis", "memory_bytes"), ("cpu_millis",), ()], ids=["own fields", "memory", "all"])
def own(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The dimensions that snapshots have as fields; the others are further ones."""
    monkeypatch.setattr(dimensions, "BASE", request.param)
    names: tuple[str, ...] = request.param
    return names


def test_a_node_offers_each_dimension_once(own: tuple[str, ...]) -> None:
    made = node_fields(Amounts(8, 24000, 96), Amounts(1, 3000, 7))
    for name, has, held in (("cpu_millis", 24000, 3000), ("memory_bytes", 96, 7)):
        if name in own:
            assert (made[name], made[f"{name}_used"]) == (has, held)
        else:
            assert (made["further"][name], made["further_used"][name]) == (has, held)
    assert made["further"].keys() == made["further_used"].keys() == {"cpu_millis", "memory_bytes"} - set(own)


def test_what_is_overdrawn_counts_as_nothing(own: tuple[str, ...]) -> None:
    made = node_fields(Amounts(8, 24000, 96), Amounts(1, -5, 7))
    assert (made["cpu_millis_used"] if "cpu_millis" in own else made["further_used"]["cpu_millis"]) == 0


def test_bounds_come_back_as_they_were(own: tuple[str, ...]) -> None:
    bounds = {"cpu_millis": (100, 4000), "memory_bytes": (7, None)}
    made = core.Job(name="j", gpus=1, arrival_s=0.0, **job_fields(bounds))
    assert bounds_of(made) == ((100, 4000), (7, None))
    assert least_of(made, 3) == Amounts(3, 100, 7)


def test_a_place_comes_back_as_it_was(own: tuple[str, ...]) -> None:
    given = Amounts(2, 500, 9)
    share = core.NodeShare(node="n", gpus=2, **{"cpu_millis": 0, "memory_bytes": 0, **share_fields(given)})
    assert amounts_of_place(share) == given
