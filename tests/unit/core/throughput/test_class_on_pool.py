"""What a class of jobs may have on nodes that have changed: as if they had always been so."""

from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner import snapshots
from support.planner.planning import job, node
from synergy_core.cache import Memory
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Job, Node
from synergy_core.throughput.class_on_pool import ClassOnPool


def _known(terms: ClassOnPool, pool: Pool) -> list[object]:
    shares = sorted({*pool.share, pool.best_share})
    return [
        terms.demand,
        terms.lean,
        terms.hard,
        terms.fixed,
        terms.is_share,
        terms.best_steps_per_s,
        terms.shares.tolist(),
        terms.lean_shares.tolist(),
        *(terms.floor_of_share(share) for share in shares),
        *(terms.proportional_to(share) for share in shares),
        *(terms.steps_per_s(share) for share in shares),
        *(terms.reserved_per_gpu(index) for index in range(len(pool.nodes))),
        *(terms.least_of(share, [index]) for index in range(len(pool.nodes)) for share in shares),
    ]


def _all_known(memory: Memory, nodes: tuple[Node, ...], jobs: tuple[Job, ...]) -> list[object]:
    memory.begin(nodes, 0.05)
    infos = [memory.info(one) for one in jobs]
    return [
        [_known(info.on(pool), pool) for pool in memory.pools]
        + [info.job_class.best_speed(memory.pools), info.job_class.fastest_types(memory.pools)]
        for info in infos
    ]


@settings(max_examples=60)
@given(st.data())
def test_a_class_knows_the_same_on_changed_nodes_as_on_new_ones(data: st.DataObject) -> None:
    first = data.draw(snapshots.nodes())
    jobs = data.draw(snapshots.queues("j", max_size=5))
    memory = Memory()
    _all_known(memory, first, jobs)
    for nodes in (data.draw(snapshots.nodes()), first[1:] or first, first):
        assert _all_known(memory, nodes, jobs) == _all_known(Memory(), nodes, jobs)
        assert _all_known(Memory(memory), nodes, jobs) == _all_known(Memory(), nodes, jobs)


def test_the_speeds_of_a_matrix_are_read_once_for_all_nodes() -> None:
    one = job("j", profiles={"V100": snapshots.Profile(cpu_millis=(1000,), memory_bytes=(1,), steps_per_s=((1.0,),))})
    memory = Memory()
    memory.begin((node("n0"),), 0.05)
    speed = memory.info(one).on(memory.pools[0]).speed
    memory.begin((node("n0"), node("n1")), 0.05)
    assert memory.info(one).on(memory.pools[0]).speed is speed
    other = Memory(memory)
    other.begin((node("n0"), node("n1"), node("n2")), 0.05)
    assert other.info(one).on(other.pools[0]).speed is speed
    other.begin((node("n0"),), 0.2)
    assert other.info(one).on(other.pools[0]).speed is not speed
