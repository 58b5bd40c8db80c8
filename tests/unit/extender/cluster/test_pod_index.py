"""The index answers as if it looked at every pod."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import foreign, key, worker
from synergy_api.amounts import NOTHING, Amounts
from synergy_extender.cluster.pod_index import PodIndex, changes_room
from synergy_extender.cluster.views import Key, PodView

events = st.lists(
    st.tuples(
        st.sampled_from(["a-1-0", "a-2-0", "b-1-0", "x", "y"]),
        st.sampled_from(["", "n1", "n2", "gone"]),
        st.integers(0, 4),
        st.sampled_from(["Running", "Failed"]),
    ),
    max_size=30,
)


def pod(name: str, node: str, gpus: int, phase: str) -> PodView:
    if "-" not in name:
        return foreign(name, node=node, gpus=gpus, phase=phase)
    job, run, rank = name.split("-")
    return worker(job, run=int(run), rank=int(rank), node=node, gpus=gpus, phase=phase)


@given(events)
def test_after_any_history_the_index_agrees_with_a_full_look(history: list[tuple[str, str, int, str]]) -> None:
    index, known = PodIndex(), dict[str, PodView]()
    for name, node, gpus, phase in history:
        if node == "gone":
            index.drop(Key("team", name))
            known.pop(name, None)
        else:
            known[name] = pod(name, node, gpus, phase)
            index.put(known[name])
    assert len(index) == len(known)
    for node in ("n1", "n2"):
        there = [p for p in known.values() if p.node == node and not p.terminal]
        assert index.held(node) == Amounts(sum(p.requests.gpus for p in there))
        assert {p.name for p in index.on_node(node)} == {p.name for p in there}
    for job in ("a", "b"):
        of_job = {n for n in known if n.startswith(f"{job}-")}
        assert {p.name for p in index.of_job(key(job))} == of_job
    assert {p.name for p in index.of_run(key("a"), 1)} == {
        n for n, p in known.items() if n == "a-1-0" and not p.terminal
    }


def test_an_empty_node_holds_nothing() -> None:
    index = PodIndex([foreign("x", node="n1", gpus=1)])
    index.drop(Key("team", "x"))
    assert index.held("n1") == NOTHING
    assert list(index.on_node("n1")) == []
    assert index.get("team", "x") is None


def test_a_copy_stays_as_it_was() -> None:
    index = PodIndex([worker("a", node="n1", gpus=2), worker("b", node="n2", gpus=1)])
    copy = index.copy()
    index.drop(key("a-1-0"))
    index.put(worker("b", node="n2", gpus=1, phase="Succeeded"))
    index.put(worker("c", node="n2", gpus=4))
    assert (copy.held("n1").gpus, copy.held("n2").gpus, len(copy)) == (2, 1, 2)
    assert [pod.name for pod in copy.of_run(key("a"), 1)] == ["a-1-0"]
    assert [pod.name for pod in copy.on_node("n2")] == ["b-1-0"]
    assert (index.held("n1").gpus, index.held("n2").gpus) == (0, 4)


GATED = worker(planned="n1", gpus=1, phase="Pending", schedulingGates=[{"name": "g"}])
FREE = worker(planned="n1", gpus=1, phase="Pending")
BOUND = worker(planned="n1", gpus=1, node="n1", phase="Running")


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        (None, GATED, False),
        (GATED, FREE, False),
        (FREE, BOUND, False),
        (None, BOUND, False),
        (BOUND, BOUND, False),
        (FREE, worker(planned="n1", gpus=1, node="n2"), True),
        (BOUND, worker(planned="n1", gpus=1, node="n1", cpu="3"), True),
        (BOUND, worker(planned="n1", gpus=1, node="n1", phase="Succeeded"), True),
        (BOUND, worker(planned="n1", gpus=1, node="n1", deleting_at=9.0), True),
        (BOUND, None, True),
        (None, foreign("x", gpus=1, node="n1"), True),
        (foreign("x", gpus=1), foreign("x", gpus=1, node="n1"), True),
        (foreign("x", gpus=1, node="n1"), None, True),
    ],
)
def test_a_worker_that_comes_to_its_planned_node_is_no_news_for_the_plan(
    old: PodView | None, new: PodView | None, changes: bool
) -> None:
    assert changes_room(old, new) is changes
