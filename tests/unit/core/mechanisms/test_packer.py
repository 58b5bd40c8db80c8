"""A mechanism that is given more than fits says so instead of planning too much."""

import pytest

from support.planner.planning import job, node
from synergy_core.mechanisms import proportional, tune
from synergy_core.mechanisms.fungible import Pack
from synergy_core.model.pool import Pool, Reservations
from synergy_core.selection.job_info import JobInfo
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry

POOL = Pool("V100", [node("n1", 2, cpus=4)])


@pytest.mark.parametrize("pack", [proportional.pack, tune.pack])
def test_more_floating_gpus_than_there_are(pack: Pack) -> None:
    selection = PoolSelection(Reservations(POOL), floating=[QueueEntry(JobInfo(job("a", 3), [POOL], 0.05))])
    with pytest.raises(RuntimeError, match="reserved GPUs of V100 cannot be placed"):
        pack(selection, "round")


@pytest.mark.parametrize("pack", [proportional.pack, tune.pack])
def test_a_seat_on_a_node_that_has_too_little(pack: Pack) -> None:
    greedy = QueueEntry(JobInfo(job("a", 1, cpu_millis_min=5000), [POOL], 0.05))
    selection = PoolSelection(Reservations(POOL), assigned={greedy: ((0, 1),)})
    with pytest.raises(RuntimeError, match="a does not fit on the nodes that are reserved for it"):
        pack(selection, "round")
