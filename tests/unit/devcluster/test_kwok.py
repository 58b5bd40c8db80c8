"""How fake nodes stay alive."""

import pytest

from synergy_devcluster.node.kwok import grace_seconds, lease_seconds

_RENEWED_UNDER_LOAD = 15
"""Leases a second."""


@pytest.mark.parametrize(
    ("nodes", "seconds"), [(0, 10), (50, 10), (100, 10), (101, 11), (637, 64), (1200, 120), (9999, 120)]
)
def test_leases_last_longer_the_more_nodes_there_are(nodes: int, seconds: int) -> None:
    assert lease_seconds(nodes) == seconds


@pytest.mark.parametrize("nodes", [1, 50, 387, 637, 1250])
def test_nodes_of_all_sizes_cost_some_forty_writes_a_second_and_none_is_lost_under_load(nodes: int) -> None:
    assert nodes / (lease_seconds(nodes) / 4) <= 42
    assert grace_seconds(nodes) > 2 * nodes / _RENEWED_UNDER_LOAD


def test_the_nodes_of_a_small_cluster_are_lost_as_on_any() -> None:
    assert grace_seconds(250) == 50
