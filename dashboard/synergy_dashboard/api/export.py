"""What the simulator needs to run the past again: trace, profiles and cluster, as a zip file.

Jobs that exist are exported as `kubectl synergy export` does. Of those that are gone the history has all but the
matrices: a ThroughputProfile has them where an identical job was measured.
"""

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
from synergy_kube.answers import Page
from synergy_kube.resources import THROUGHPUT_PROFILES, TRAINING_JOBS
from synergy_view.export import COLUMNS, export
from synergy_view.seen import read_all

_GIB: Final = 1 << 30


@dataclass
class _Found:
    """Rows of the trace with `arrival_s` in seconds since the epoch, and what else the export has."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    uids: set[str] = field(default_factory=set)
    models: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    cluster: Mapping[str, Any] | None = None
    notes: list[str] = field(default_factory=list)

    def add_living(self, page: Page, capacities: Sequence[NodeCapacity], since_s: float) -> None:
        """The jobs of a page; their matrices are many, those of identical jobs are kept once."""
        jobs, unreadable = read_all(page)
        created = {job.full_name: job.created_s for job in jobs}
        found = export(jobs, capacities, since_s)
        self.rows += [{**row, "arrival_s": created[row["job_id"]]} for row in found.trace]
        self.uids |= {job.uid for job in jobs}
        for model, by_type in found.profiles["models"].items():
            for gpu_type, by_gpus in by_type.items():
                self.models.setdefault(model, {}).setdefault(gpu_type, {}).update(by_gpus)
        self.cluster = found.cluster
        self.notes += [*found.notes, *(f"{one.full_name}: is left out: {one.problem}" for one in unreadable)]

    def add_gone(self, jobs: Iterable[JobFact], measured: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Jobs that exist no more, with the matrices by fingerprint."""
        for job in jobs:
            name = f"{job.namespace}/{job.name}"
            if job.uid in self.uids:
                continue
            if job.fingerprint not in measured:
                self.notes.append(f"{name}: is left out: it was deleted, and no profile of it is kept")
                continue
            for matrix in measured[job.fingerprint]:
                if not job.gpu_types or matrix["gpuType"] in job.gpu_types:
                    by_gpus = self.models.setdefault(_model(job), {}).setdefault(matrix["gpuType"], {})
                    by_gpus[str(job.gpus)] = _matrix(matrix)
            row = {"job_id": name, "arrival_s": job.created_s, "gpus": job.gpus, "model": _model(job)}
            self.rows.append({**row, "steps": job.steps, "tenant": job.tenant, "weight": job.weight})

    def archive(self) -> bytes:
        """The zip file."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as target:
            target.writestr("trace.csv", _trace(self.rows))
            target.writestr("profiles.json", json.dumps({"models": self.models}))
            if self.cluster is not None:
                target.writestr("cluster.yaml", yaml.safe_dump(dict(self.cluster), sort_keys=False))
            target.writestr("notes.txt", "".join(f"{note}\n" for note in dict.fromkeys(self.notes)))
        return content.getvalue()


async def archive(live: LiveCluster, store: History, client: KubeClient, scope: Scope, since_s: float) -> bytes:
    """The zip file of the jobs that the user may see and that came since then. Raises Refusal 404 or 503."""
    known = await asyncio.to_thread(store.jobs, since_s, live.clock(), scope.namespaces)
    jobs = [job for job in known if job.created_s >= since_s]
    live.refresh()
    capacities = list(live.rows.capacities.values())
    found = _Found()
    try:
        for namespace in (None,) if scope.namespaces is None else sorted(scope.namespaces):
            async for page in client.pages(TRAINING_JOBS, namespace):
                await asyncio.to_thread(found.add_living, page, capacities, since_s)
        measured = await _measured(client, {job.fingerprint for job in jobs} - {""})
    except CALL_FAILED as error:
        raise Refusal(503, f"the API server does not give the jobs: {explain(error)}") from None
    found.add_gone(jobs, measured)
    if not found.rows:
        raise Refusal(404, "no job with a profile came in that time: a simulation needs both")
    return await asyncio.to_thread(found.archive)


async def _measured(client: KubeClient, fingerprints: set[str]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """The matrices by fingerprint, as the API has them."""
    found: dict[str, Sequence[Mapping[str, Any]]] = {}
    try:
        async for page in client.pages(THROUGHPUT_PROFILES):
            for item in page:
                fingerprint = item["spec"].get("fingerprint")
                if fingerprint in fingerprints:
                    found[fingerprint] = item["spec"].get("matrices") or []
    except ApiError as error:
        if error.code not in (403, 404):
            raise
    return found


def _trace(rows: Iterable[dict[str, Any]]) -> str:
    """The rows by arrival, the first at second 0. Jobs that had the same name one after the other get different
    names."""
    listed = sorted(rows, key=lambda row: (row["arrival_s"], row["job_id"]))
    text, names = io.StringIO(), Counter[str]()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in listed:
        name = row["job_id"]
        names[name] += 1
        again = f"{name}#{names[name]}" if names[name] > 1 else name
        writer.writerow({**row, "job_id": again, "arrival_s": round(row["arrival_s"] - listed[0]["arrival_s"])})
    return text.getvalue()


def _model(job: JobFact) -> str:
    """What identical jobs have in common, with the GPU types that it may use."""
    return "@".join((job.fingerprint, "+".join(sorted(job.gpu_types)))) if job.gpu_types else job.fingerprint


def _matrix(matrix: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "cpus": [millis / 1000 for millis in matrix["cpuMillis"]],
        "memory_gib": [amount / _GIB for amount in matrix["memoryBytes"]],
        "steps_per_s": matrix["stepsPerSecond"],
    }
