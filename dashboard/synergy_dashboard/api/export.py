"""What the simulator needs to run the past again: trace, profiles and cluster, as a zip file."""

import asyncio
import csv
import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from synergy_api.cluster.pools import NodeCapacity
from synergy_dashboard.api.problems import CALL_FAILED, Refusal, explain
from synergy_dashboard.facts import History, JobFact
from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.live.scope import Scope
from synergy_kube import ApiError, KubeClient
from synergy_kube.resources import THROUGHPUT_PROFILES, TRAINING_JOBS

_GIB: Final = 1 << 30
_COLUMNS: Final = ("job_id", "arrival_s", "gpus", "model", "steps", "tenant", "weight")
Matrices = Sequence[Mapping[str, Any]]


@dataclass
class _Measured:
    """Matrices as the API has them: of jobs by uid, and of identical jobs by fingerprint."""

    of_job: dict[str, Matrices] = field(default_factory=dict)
    of_fingerprint: dict[str, Matrices] = field(default_factory=dict)

    def of(self, job: JobFact) -> Matrices:
        return self.of_job.get(job.uid) or self.of_fingerprint.get(job.fingerprint) or ()


async def archive(live: LiveCluster, store: History, client: KubeClient, scope: Scope, since_s: float) -> bytes:
    """The zip file of the jobs that the user may see and that came since then. Raises Refusal 404 or 503."""
    known = await asyncio.to_thread(store.jobs, since_s, live.clock(), scope.namespaces)
    jobs = [job for job in known if job.created_s >= since_s]
    try:
        measured = await _measured(client, scope, {job.fingerprint for job in jobs} - {""})
    except CALL_FAILED as error:
        raise Refusal(503, f"the API server does not give the profiles: {explain(error)}") from None
    kept = [job for job in jobs if measured.of(job)]
    if not kept:
        raise Refusal(404, "no job with a profile came in that time: a simulation needs both")
    live.refresh()
    capacities = list(live.rows.capacities.values())
    return await asyncio.to_thread(_zip, kept, len(jobs) - len(kept), measured, capacities)


async def _measured(client: KubeClient, scope: Scope, fingerprints: set[str]) -> _Measured:
    """The matrices of the visible jobs, and of identical ones for those that are gone."""
    found = _Measured()
    for namespace in (None,) if scope.namespaces is None else sorted(scope.namespaces):
        async for page in client.pages(TRAINING_JOBS, namespace):
            for item in page:
                profile = (item.get("status") or {}).get("profile") or {}
                matrices = profile.get("matrices") or (item["spec"].get("profile") or {}).get("matrices") or ()
                found.of_job[item["metadata"]["uid"]] = matrices
    try:
        async for page in client.pages(THROUGHPUT_PROFILES):
            for item in page:
                fingerprint = item["spec"]["fingerprint"]
                if fingerprint in fingerprints:
                    found.of_fingerprint[fingerprint] = item["spec"]["matrices"]
    except ApiError as error:
        if error.code not in (403, 404):
            raise
    return found


def _zip(jobs: Sequence[JobFact], left_out: int, measured: _Measured, capacities: Iterable[NodeCapacity]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("trace.csv", _trace(jobs))
        target.writestr("profiles.json", json.dumps({"models": _models(jobs, measured)}))
        target.writestr("cluster.yaml", yaml.safe_dump({"pools": _pools(capacities)}, sort_keys=False))
        target.writestr("README.txt", _readme(len(jobs), left_out))
    return content.getvalue()


def _trace(jobs: Sequence[JobFact]) -> str:
    text, names = io.StringIO(), Counter[str]()
    first = min(job.created_s for job in jobs)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for job in sorted(jobs, key=lambda one: (one.created_s, one.uid)):
        name = f"{job.namespace}/{job.name}"
        names[name] += 1
        arrival = f"{job.created_s - first:.3f}"
        again = f"{name}#{names[name]}" if names[name] > 1 else name
        writer.writerow((again, arrival, job.gpus, _model(job), job.steps, job.tenant, job.weight))
    return text.getvalue()


def _models(jobs: Iterable[JobFact], measured: _Measured) -> dict[str, dict[str, dict[str, Any]]]:
    models: dict[str, dict[str, dict[str, Any]]] = {}
    for job in jobs:
        for matrix in measured.of(job):
            by_gpus = models.setdefault(_model(job), {}).setdefault(matrix["gpuType"], {})
            by_gpus[str(job.gpus)] = {
                "cpus": [millis / 1000 for millis in matrix["cpuMillis"]],
                "memory_gib": [amount / _GIB for amount in matrix["memoryBytes"]],
                "steps_per_s": matrix["stepsPerSecond"],
            }
    return models


def _model(job: JobFact) -> str:
    """What identical jobs have in common; the job's own name where nothing is known of that."""
    return job.fingerprint or f"{job.namespace}/{job.name}@{job.uid}"


def _pools(capacities: Iterable[NodeCapacity]) -> list[dict[str, Any]]:
    """Equal nodes together. Those that take nothing new count too: they may again."""
    alike: dict[tuple[Any, ...], list[NodeCapacity]] = {}
    for one in capacities:
        if one.gpu_type and one.gpus:
            key = (one.gpu_type, one.amounts, one.replicas if one.mps else 1, one.price_per_hour)
            alike.setdefault(key, []).append(one)
    return [
        {
            "name": f"{gpu_type.lower()}-{index}",
            "gpu_type": gpu_type,
            "nodes": len(nodes),
            "gpus_per_node": amounts.gpus,
            "cpus_per_node": amounts.cpu_millis / 1000,
            "memory_gib_per_node": amounts.memory_bytes / _GIB,
            "cost_per_hour": price,
            "storage_gib_per_s": (nodes[0].storage_bytes_per_s or 0) / _GIB,
            "replicas": replicas,
            "gpu_memory_gib": nodes[0].gpu_memory_bytes / _GIB,
            "client_thread_percent": nodes[0].client_thread_percent,
        }
        for index, ((gpu_type, amounts, replicas, price), nodes) in enumerate(sorted(alike.items(), key=_first_name), 1)
    ]


def _first_name(entry: tuple[tuple[Any, ...], list[NodeCapacity]]) -> str:
    return min(one.name for one in entry[1])


def _readme(jobs: int, left_out: int) -> str:
    return (
        "kube-synergy simulate --trace trace.csv --profiles profiles.json --cluster cluster.yaml\n\n"
        f"{jobs} jobs, the first at second 0.\n{left_out} jobs are left out: they have no sensitivity matrix.\n"
    )
