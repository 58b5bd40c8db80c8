"""A plan is the same with the memory of earlier plans as without."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.planning import job, node
from support.planner.snapshots import configs, in_mode, queues, snapshots
from synergy_core.cache import Memory
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Snapshot
from synergy_core.plan import plan


def _carried_out(jobs: tuple[Job, ...], result: Plan) -> tuple[Job, ...]:
    """What goes on as it was stays one object, as a caller keeps it."""
    given_now = {allocation.job: allocation for allocation in result.allocations}
    return tuple(
        one if one.running is given_now.get(one.name) else replace(one, running=given_now.get(one.name)) for one in jobs
    )


@settings(max_examples=40)
@given(snapshots(), configs, st.data())
def test_what_was_planned_before_changes_nothing(snapshot: Snapshot, config: PlanConfig, data: st.DataObject) -> None:
    memory = Memory()
    for step in range(4):
        answer = plan(snapshot, config)
        assert plan(snapshot, config, memory) == answer
        jobs = tuple(one for one in _carried_out(snapshot.jobs, answer) if data.draw(st.integers(0, 4)) > 0)
        jobs += data.draw(queues(f"c{step}", max_size=2))
        nodes = snapshot.nodes if data.draw(st.booleans()) else data.draw(snapshots()).nodes
        snapshot = replace(snapshot, nodes=nodes, jobs=jobs)
        config = in_mode(config, data.draw(st.sampled_from(("round", "fill"))))


def test_a_job_that_goes_on_as_it_was_is_remembered_and_one_that_left_is_not() -> None:
    memory = Memory()
    nodes = (node("n1"),)
    memory.begin(nodes, 0.05)
    first, second = job("a"), job("b")
    remembered, left = memory.info(first), memory.info(second)
    memory.begin(nodes, 0.05)
    assert memory.info(first) is remembered
    memory.begin(nodes, 0.05)
    assert memory.info(second) is not left
    assert memory.info(replace(first)) is not remembered


def test_other_nodes_or_another_tolerance_leave_nothing_to_remember() -> None:
    memory = Memory()
    one = job("a")
    for nodes, tolerance in (((node("n1"),), 0.05), ((node("n2"),), 0.05), ((node("n2"),), 0.1)):
        memory.begin(nodes, tolerance)
        first = memory.info(one)
        memory.begin(nodes, tolerance)
        assert memory.info(one) is first
    memory.begin((node("n1"),), 0.05)
    assert memory.info(one) is not first
    assert [pool.nodes[0].name for pool in memory.pools] == ["n1"]
