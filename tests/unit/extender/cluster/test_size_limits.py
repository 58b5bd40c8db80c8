"""What refusals taught of a run's pods: the books say what they have, and plans keep within it."""

from typing import Any

from support.extender.cluster import (
    GI,
    NOW,
    allocation,
    cluster,
    job,
    key,
    node_object,
    pod_object,
    share,
    worker_labels,
)
from synergy_api.parts.allocation import Allocation
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, PodView, read_pod
from synergy_extender.decisions.changes import ChangeKind
from synergy_extender.decisions.decide import decide
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.snapshot.snapshot import build_snapshot

ROUNDS = Rounds(20)
REASON = "ResizeInfeasible: so it is"


def limited(limits: dict[str, Any], *shares: dict[str, Any], run: int = 1, **more: Any) -> JobView:
    """A running job that was refused something in `run`."""
    bounds = {"run": run, "reason": REASON, **limits}
    planned = more.pop("planned", [])
    status = {"phase": "Running", "allocation": allocation(*shares, planned=planned), "sizeLimits": bounds}
    return job("j", gpus=sum(item["gpus"] for item in shares), status=status, **more)


def holding(node: str, cpu: str, memory_gib: int, rank: int = 0) -> PodView:
    """A worker with one GPU."""
    labels = worker_labels("j", rank=rank)
    return read_pod(pod_object(f"j-1-{rank}", node=node, gpus=1, cpu=cpu, memory=f"{memory_gib}Gi", labels=labels))


def books(state: ClusterState) -> Allocation:
    """The allocation after a decision without a plan."""
    changes = decide(state, Moment(NOW, ROUNDS, 50_000), None, AssumedBindings()).changes
    if not changes:
        kept = state.jobs[key("j")].status.allocation
        assert kept is not None
        return kept
    (change,) = changes
    assert change.kind in {ChangeKind.STAY, ChangeKind.ADMIT}
    assert change.allocation is not None
    return change.allocation


def sizes(shares: list[Any]) -> list[tuple[str, int, int]]:
    return [(item.node, item.cpu_millis, item.memory_bytes // GI) for item in shares]


def test_growth_that_cannot_be_is_free_for_others_at_once() -> None:
    running = limited({"maxCpuMillis": 3000}, share("n1", cpu_millis=5000, memory_bytes=8 * GI))
    held = books(cluster([node_object("n1")], [running], [holding("n1", "3", 8)]))
    assert sizes(held.workers) == [("n1", 3000, 8)]
    assert held.planned == []
    assert (held.run, held.state, held.admitted) == (1, "Granted", True)


def test_planned_growth_is_cut_to_what_can_be() -> None:
    running = limited(
        {"maxCpuMillis": 3000},
        share("n1", cpu_millis=2000),
        planned=[{"node": "n1", "gpus": 1, "cpuMillis": 5000, "memoryBytes": GI}],
    )
    others = read_pod(pod_object("other", node="n1", cpu="22"))
    held = books(cluster([node_object("n1", cpu=24)], [running], [holding("n1", "2", 1), others]))
    assert sizes(held.workers) == [("n1", 2000, 1)]
    assert sizes(held.planned) == [("n1", 3000, 1)]


def test_memory_that_is_not_given_back_needs_no_room_to_stand_in_the_books_again() -> None:
    running = limited({"minMemoryBytes": 8 * GI}, share("n1", memory_bytes=4 * GI))
    others = read_pod(pod_object("other", node="n1", memory="88Gi"))
    held = books(cluster([node_object("n1", memory_gib=96)], [running], [holding("n1", "1", 8), others]))
    assert sizes(held.workers) == [("n1", 1000, 8)]
    assert held.planned == []


def test_the_rest_of_a_gang_waits_for_the_room_that_it_gave_away() -> None:
    running = limited({"minMemoryBytes": 16 * GI}, share("n1", memory_bytes=4 * GI), share("n2", memory_bytes=4 * GI))
    others = read_pod(pod_object("other", node="n2", memory="90Gi"))
    pods = [holding("n1", "1", 8), holding("n2", "1", 4, rank=1), others]
    held = books(cluster([node_object("n1"), node_object("n2")], [running], pods))
    assert sizes(held.workers) == [("n1", 1000, 4), ("n2", 1000, 4)]
    assert sizes(held.planned) == [("n1", 1000, 8), ("n2", 1000, 8)]


def test_bounds_of_an_older_run_say_nothing() -> None:
    running = limited({"maxCpuMillis": 500}, share("n1", cpu_millis=5000), run=7)
    state = cluster([node_object("n1")], [running], [holding("n1", "5", 1)])
    assert sizes(books(state).workers) == [("n1", 5000, 1)]
    (planned,) = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot.jobs
    assert planned.cpu_millis_max is None


def test_plans_keep_within_the_bounds_even_against_the_spec() -> None:
    spec = {"resources": {"min": {"cpu": "6", "memory": "1Gi"}, "max": {"cpu": "9", "memory": "2Gi"}}}
    bounds = {"maxCpuMillis": 5000, "minMemoryBytes": 8 * GI}
    running = limited(bounds, share("n1", cpu_millis=5000, memory_bytes=8 * GI), spec=spec)
    state = cluster([node_object("n1")], [running], [holding("n1", "5", 8)])
    (planned,) = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot.jobs
    assert (planned.cpu_millis_min, planned.cpu_millis_max) == (5000, 5000)
    assert (planned.memory_bytes_min, planned.memory_bytes_max) == (8 * GI, 8 * GI)
