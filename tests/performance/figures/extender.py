"""What the extender does with objects, beside reading their JSON."""

import json

from performance.case import Case
from support.extender.cluster import NOW, allocation, cluster, job_object, node_object, pod_object, share, worker_labels
from synergy_extender.cluster.views import read_job, read_pod
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
    items = running_jobs(jobs)
    bodies = [json.dumps(item) for item in items]
    nodes = [node_object(f"node-{index:04}") for index in range((jobs + 7) // 8)]
    state = cluster(nodes, map(read_job, items), map(read_pod, their_pods(jobs)))
    return Case(
        lambda: build_snapshot(state, mode="round", now=NOW + 1, round_s=20),
        lambda: [json.loads(body) for body in bodies],
    )
