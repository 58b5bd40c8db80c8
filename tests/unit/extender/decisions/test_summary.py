"""The texts that `kubectl get` shows of what the plan gives a job, or of its waiting."""

from collections.abc import Iterable
from typing import Any

from support.extender.cluster import GI, NOW, allocation, cluster, job, node_object, pod_object, share
from synergy_api.parts.summary import Summary
from synergy_core.model import snapshot as core
from synergy_core.model.answer import Plan, Waiting
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.views import JobView, PodView, read_pod
from synergy_extender.decisions.changes import StatusChange
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.plan_result import PlanResult, stance
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.writing.writer import body_of

ROUNDS = Rounds(20)
AT_PLAN = Moment(ROUNDS.end(ROUNDS.at(NOW)) - 1.9, ROUNDS, ROUNDS.at(NOW) + 1)
ROOMY, POOR = node_object("n1", cpu=48, memory_gib=192), node_object("n2", cpu=24, memory_gib=96)


def decided(view: JobView, made: Plan | None = None, pods: Iterable[PodView] = ()) -> list[StatusChange]:
    """What is written of the only job after such a plan, beside `pods`."""
    state = cluster((ROOMY, POOR), [view], pods)
    stances = {view.key: stance(view, AT_PLAN.now)}
    result = PlanResult(made, "round", stances, {}) if made is not None else None
    return decide(state, AT_PLAN, result, AssumedBindings()).changes


def plan(*workers: tuple[str, int, int, int], waits: bool = False) -> Plan:
    """A plan of the only job: (node, GPUs, milli-CPU, GiB) for each node."""
    shares = tuple(core.NodeShare(node=n, gpus=g, cpu_millis=c, memory_bytes=m * GI) for n, g, c, m in workers)
    place = core.Allocation(job="team/j", gpu_type="V100", workers=shares, steps_per_s=2.0)
    waiting = (Waiting(job="team/j", reason="NoFreeGPU", message="waits"),) if waits else ()
    allocations = (place,) if shares else ()
    return Plan(allocations=allocations, waiting=waiting, preempted=(), resized=(), policy="las", mechanism="tune")


def texts(view: JobView, made: Plan | None = None, pods: Iterable[PodView] = ()) -> dict[str, Any]:
    """`status.summary` as it is written."""
    (change,) = decided(view, made, pods)
    written: dict[str, Any] = body_of(view, change)["status"].get("summary", {})
    return written


def test_what_a_job_is_given_stands_beside_its_proportional_share() -> None:
    found = texts(job("j", gpus=2), plan(("n1", 2, 15_000, 60)))
    assert found == {"gpus": "2 V100", "cpu": "15/12", "memory": "60/48Gi"}


def test_on_nodes_of_two_sizes_the_poorer_one_sets_the_share() -> None:
    found = texts(job("j", gpus=3), plan(("n1", 1, 3_000, 12), ("n2", 2, 6_000, 24)))
    assert found["cpu"] == "9/9"


def test_what_pods_of_others_hold_is_no_part_of_the_share() -> None:
    agent = read_pod(pod_object("agent", node="n1", cpu="8", memory="16Gi", phase="Running"))
    found = texts(job("j", gpus=2), plan(("n1", 2, 10_000, 44)), [agent])
    assert found == {"gpus": "2 V100", "cpu": "10/10", "memory": "44/44Gi"}


def test_pods_that_hold_gpus_too_leave_the_other_gpus_their_share() -> None:
    other = read_pod(pod_object("other", node="n1", gpus=4, cpu="8", memory="16Gi", phase="Running"))
    assert texts(job("j", gpus=2), plan(("n1", 2, 10_000, 44)), [other])["cpu"] == "10/12"


def test_beside_pods_that_hold_every_gpu_no_share_is_known() -> None:
    other = read_pod(pod_object("other", node="n1", gpus=8, phase="Running"))
    held = allocation(share("n1", cpu_millis=3000), run=1, until=AT_PLAN.now, state="Granted", admitted=True)
    running = job("j", spec={"suspend": True}, status={"phase": "Running", "allocation": held, "service": {"run": 1}})
    assert texts(running, None, [other])["cpu"] == "3"


def test_a_waiting_job_shows_how_many_gpus_it_waits_for_and_all_its_steps() -> None:
    assert texts(job("j", gpus=2), plan(waits=True)) == {"gpus": "2", "start": "0/1000"}


def test_a_waiting_job_that_has_reported_shows_that_instead() -> None:
    reported = job("j", gpus=2, status={"progress": {"run": 1, "steps": 5}})
    assert texts(reported, plan(waits=True)) == {"gpus": "2"}


def test_a_job_that_holds_and_wants_nothing_any_more_shows_nothing() -> None:
    ended = {
        "phase": "Succeeded",
        "service": {"run": 1, "endedRun": 1},
        "allocation": allocation(share("n1"), run=1),
    }
    assert texts(job("j", status=ended)) == {}


def test_a_place_on_a_node_that_is_gone_shows_what_was_given_alone() -> None:
    held = allocation(share("gone", cpu_millis=3000), run=1, until=AT_PLAN.now, state="Granted", admitted=True)
    status = {"phase": "Running", "allocation": held, "service": {"run": 1}}
    found = texts(job("j", spec={"suspend": True}, status=status))
    assert found["cpu"] == "3"


def test_another_summary_alone_is_no_reason_to_write() -> None:
    (change,) = decided(job("j", gpus=2), plan(waits=True))
    assert change.queue is not None
    told = {"phase": "Queued", "queue": change.queue.to_wire(), "summary": Summary(gpus="9 of another time").to_wire()}
    assert decided(job("j", gpus=2, status=told), plan(waits=True)) == []
