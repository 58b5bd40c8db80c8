"""Work that gives way to other work: passes over all jobs after a change of the cluster."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.operator.objects import node
from support.waiting import eventually
from synergy_api.amounts import DIMENSIONS
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_operator.edge.passes import Passes
from synergy_operator.edge.work_queue import FairQueue, WorkQueue
from synergy_operator.views.cluster import ClusterView, read_cluster

_STEPS = st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from(("add", "pass", "rest"))), max_size=60)
_NODES = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(("V100", "A100")), st.integers(0, 9), st.booleans(), st.booleans()),
    max_size=12,
    unique_by=lambda one: one[0],
)


async def test_other_keys_come_first_but_not_for_ever() -> None:
    queue, worked = _queue()
    for index in range(20):
        queue.add_in_passing(("team", f"passing-{index}"))
    for index in range(20):
        queue.add(("team", f"new-{index}"))
    assert queue.length == 40
    task = asyncio.create_task(queue.run())
    await _until(lambda: len(worked) == 40)
    names = [name for _, name in worked]
    first = names[: names.index("new-19") + 1]
    assert sum(name.startswith("passing") for name in first) == 2, "every eighth of the turns"
    assert [name for name in names if name.startswith("new")] == [f"new-{index}" for index in range(20)]
    await _stop(task)


async def test_a_key_that_waits_in_passing_comes_to_the_others_once_it_is_added() -> None:
    queue, worked = _queue()
    for name in ("a", "b", "c"):
        queue.add_in_passing(("team", name))
    queue.add(("team", "c"))
    queue.add_in_passing(("team", "c"))
    assert queue.length == 3
    task = asyncio.create_task(queue.run())
    await _until(lambda: len(worked) == 3)
    assert [name for _, name in worked] == ["c", "a", "b"]
    assert queue.idle.is_set()
    await _stop(task)


@pytest.mark.parametrize("in_passing", [False, True])
async def test_a_key_that_waits_moves_to_the_line_where_it_belongs_once_it_is_added_again(in_passing: bool) -> None:
    worked: list[str] = []
    urgent: set[str] = set()

    async def work(key: str) -> float | None:
        worked.append(key)
        return None

    queue = WorkQueue(work, workers=1, line=FairQueue(urgent.__contains__))
    for name in "abcd":
        queue.add(name)
    (queue.add_in_passing if in_passing else queue.add)("e")
    urgent.add("e")
    queue.add("e")
    assert queue.length == 5
    task = asyncio.create_task(queue.run())
    await _until(lambda: len(worked) == 5)
    assert worked == ["a", "e", "b", "c", "d"]
    await _stop(task)


@given(_STEPS, st.integers(1, 3))
def test_each_key_is_worked_on_after_it_was_added_last_and_nothing_is_left(
    steps: list[tuple[str, str]], workers: int
) -> None:
    asyncio.run(_work_through(steps, workers))


async def _work_through(steps: list[tuple[str, str]], workers: int) -> None:
    running, wanted = Counter[str](), set[str]()

    async def work(key: str) -> float | None:
        running[key] += 1
        assert running[key] == 1
        wanted.discard(key)
        await asyncio.sleep(0)
        running[key] -= 1
        return None

    queue: WorkQueue[str] = WorkQueue(work, workers=workers)
    task = asyncio.create_task(queue.run())
    for key, step in steps:
        if step == "rest":
            await asyncio.sleep(0)
            continue
        wanted.add(key)
        (queue.add if step == "add" else queue.add_in_passing)(key)
        assert not queue.idle.is_set() or running[key]
    for _ in range(4 * len(steps) + 4):
        await asyncio.sleep(0)
    assert not wanted
    assert queue.length == 0
    assert queue.idle.is_set()
    assert queue.oldest_seconds == 0.0
    await _stop(task)


async def test_the_first_pass_begins_at_once_and_the_next_after_a_time_for_each_job() -> None:
    added: list[float] = []
    loop = asyncio.get_running_loop()
    keys = [("team", str(index)) for index in range(10)]
    passes = Passes(lambda: keys, lambda key: added.append(loop.time()), seconds_each=0.02)
    began = loop.time()
    passes.ask()
    passes.ask()
    await _until(lambda: len(added) == 10)
    passes.ask()
    await _until(lambda: len(added) == 20)
    assert added[10] - began >= 0.2
    await asyncio.sleep(0.05)
    assert len(added) == 20, "asked twice, it passes once"


@given(_NODES, _NODES, st.integers(1, 4))
def test_what_a_view_of_the_cluster_knows_is_as_computed_anew(
    before: list[tuple[int, str, int, bool, bool]], after: list[tuple[int, str, int, bool, bool]], size: int
) -> None:
    old, new = _cluster(before), _cluster(after)
    for kind, nodes in new.by_type.items():
        counts = [node.gpus // size * size for node in nodes]
        for _ in range(2):  # computed, and remembered
            assert new.whole_workers(kind, size) == (max(counts), sum(counts))
            for one in DIMENSIONS:
                assert new.total(kind, one.field) == sum(getattr(node.amounts, one.field) for node in nodes)
    names = old.names | new.names
    differ = {
        n for n in names if (n in old.names, old.lost(n), old.dead(n)) != (n in new.names, new.lost(n), new.dead(n))
    }
    assert differ <= new.nodes_changed_since(old)
    assert new.nodes_changed_since(new) == frozenset()


def _cluster(nodes: list[tuple[int, str, int, bool, bool]]) -> ClusterView:
    items = []
    for number, kind, gpus, ready, out in nodes:
        item = node(f"n{number}", kind=kind, gpus=gpus, ready=ready)
        if out:
            item["spec"]["taints"] = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
        items.append(item)
    return read_cluster(items, [], SchedulingPolicySpec())


def _queue() -> tuple[WorkQueue[tuple[str, str]], list[tuple[str, str]]]:
    worked: list[tuple[str, str]] = []

    async def work(key: tuple[str, str]) -> float | None:
        worked.append(key)
        return None

    return WorkQueue(work, workers=1, line=FairQueue(lambda key: key[0])), worked


async def _until(holds: Callable[[], bool]) -> None:
    async def probe() -> bool:
        return holds()

    await eventually(probe, seconds=30, what="the queue to do its work", every=0.005)


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
