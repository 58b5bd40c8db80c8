"""How fake nodes stay alive."""

import pytest

from synergy_devcluster.node.kwok import lease_seconds

_GRACE_S = 50
"""Of kube-controller-manager: a node whose lease is older is not ready."""


@pytest.mark.parametrize(
    ("nodes", "seconds"), [(0, 10), (50, 10), (100, 10), (101, 11), (637, 64), (1200, 120), (9999, 120)]
)
def test_leases_last_longer_the_more_nodes_there_are(nodes: int, seconds: int) -> None:
    assert lease_seconds(nodes) == seconds


@pytest.mark.parametrize("nodes", [1, 50, 387, 637, 1250])
def test_nodes_of_all_sizes_cost_some_forty_writes_a_second_and_none_is_late(nodes: int) -> None:
    renewed_s = lease_seconds(nodes) / 4
    assert nodes / renewed_s <= 42
    assert renewed_s < 0.7 * _GRACE_S
