"""What the extender does with objects, beside reading their JSON."""

import json

from performance.case import Case
from support.extender.cluster import NOW, allocation, cluster, job_object, node_object, pod_object, share, worker_labels
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import read_job, read_pod
from synergy_extender.decisions.concerned import KnownPlaces
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.plan_result import PlanResult, Stances
from synergy_extender.planner.question import Asked, question_after
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.snapshot.known.snapshot import KnownSnapshot
from synergy_extender.snapshot.snapshot import build_snapshot

Json = dict[str, object]


def running_jobs(jobs: int) -> list[Json]:
    """Jobs with a GPU each, eight to a node."""
    return [
        job_object(
            f"job-{index:05}", status={"phase": "Running", "allocation": allocation(share(f"node-{index // 8:04}"))}
        )
        for index in range(jobs)
    ]


def their_pods(jobs: int) -> list[Json]:
    """A worker of each of these jobs."""
    return [
        pod_object(
            f"job-{index:05}-1-0", node=f"node-{index // 8:04}", gpus=1, cpu="1", memory="1Gi", phase="Running",
            labels=worker_labels(f"job-{index:05}"),
        )
        for index in range(jobs)
    ]  # fmt: skip


def read_jobs(jobs: int) -> Case:
    """The views of so many jobs, over reading their JSON."""
    items = running_jobs(jobs)
    bodies = [json.dumps(item) for item in items]
    return Case(lambda: [read_job(item) for item in items], lambda: [json.loads(body) for body in bodies])


def snapshot(jobs: int) -> Case:
    """The planner's snapshot of so many running jobs, over reading their JSON."""
    state, bodies = _running(jobs)
    return Case(
        lambda: build_snapshot(state, mode="round", now=NOW + 1, round_s=20),
        lambda: [json.loads(body) for body in bodies],
    )


def pass_again(jobs: int) -> Case:
    """Snapshot, question and decision of a pass in which nothing has changed of so many running jobs, over reading
    their JSON."""
    state, bodies = _running(jobs)
    known, places = KnownSnapshot(), KnownPlaces()

    def once() -> Asked:
        built = build_snapshot(state, mode="fill", now=NOW + 1, round_s=20, known=known)
        kept = tuple(job.running for job in built.base.jobs if job.running is not None)
        plan = Plan(allocations=kept, waiting=(), preempted=(), resized=(), policy="las", mechanism="tune")
        result = PlanResult(plan, "fill", Stances(state.jobs, NOW + 1), built.refused, built.entitled)
        decide(state, Moment(NOW + 1, Rounds(20), 50_000), result, AssumedBindings(), known=places)
        return Asked(built.base, built.clocks)

    before = once()
    return Case(
        lambda: question_after(before, once(), PlanConfig(), 1.0),
        lambda: [json.loads(body) for body in bodies],
    )


def _running(jobs: int) -> tuple[ClusterState, list[str]]:
    items = running_jobs(jobs)
    nodes = [node_object(f"node-{index:04}") for index in range((jobs + 7) // 8)]
    state = cluster(nodes, map(read_job, items), map(read_pod, their_pods(jobs)))
    return state, [json.dumps(item) for item in items]
