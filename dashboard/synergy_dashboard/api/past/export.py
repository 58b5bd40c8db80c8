"""What the simulator needs to run the past again: trace, profiles and cluster, as a zip file.

Jobs that exist are exported as objects tell them. Of those that are gone the history has all but the matrices: a
ThroughputProfile has them where an identical job was measured; of the others the speed of their runs is known.
"""

import asyncio
import csv
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any, Final

import yaml

from synergy_api.cluster.pools import NodeCapacity
from synergy_dashboard.api.live_pages import round_s_of
from synergy_dashboard.api.past.overheads import overheads
from synergy_dashboard.api.problems import CALL_FAILED, Refusal, explain
from synergy_dashboard.facts import History, JobFact, RunFact
from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.live.scope import Scope
from synergy_kube import ApiError, KubeClient
from synergy_kube.answers import Page
from synergy_kube.resources import THROUGHPUT_PROFILES, TRAINING_JOBS
from synergy_view.export import ANY_AMOUNT, COLUMNS, NO_STEPS, Measured, by_arrival, export, matrix_of
from synergy_view.seen import read_all

_GIB: Final = 1 << 30


@dataclass
class _Found:
    """Rows of the trace with `arrival_s` in seconds since the epoch, and what else the export has."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    uids: set[str] = field(default_factory=set)
    exported: set[str] = field(default_factory=set)
    """The uids of the jobs in `rows`."""
    models: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    cluster: Mapping[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    jcts_s: list[float] = field(default_factory=list)

    def add_living(self, page: Page, capacities: Sequence[NodeCapacity], since_s: float) -> None:
        """The jobs of a page; their matrices are many, those of identical jobs are kept once."""
        jobs, unreadable = read_all(page)
        by_name = {job.full_name: job for job in jobs}
        found = export(jobs, capacities, since_s)
        self.rows += [{**row, "arrival_s": by_name[row["job_id"]].created_s} for row in found.trace]
        self.exported |= {by_name[row["job_id"]].uid for row in found.trace}
        self.uids |= {job.uid for job in jobs}
        for model, by_type in found.profiles["models"].items():
            for gpu_type, by_gpus in by_type.items():
                self.models.setdefault(model, {}).setdefault(gpu_type, {}).update(by_gpus)
        self.cluster = found.cluster
        self.jcts_s += found.jcts_s
        self.notes += [*found.notes, *(f"{one.full_name}: is left out: {one.problem}" for one in unreadable)]

    def add_gone(
        self, job: JobFact, measured: Mapping[str, Sequence[Mapping[str, Any]]], runs: Iterable[RunFact]
    ) -> None:
        """A job that exists no more, with the matrices by fingerprint, and its runs."""
        name = f"{job.namespace}/{job.name}"
        model, found = _model(job), _matrices_of(job, measured.get(job.fingerprint, ()))
        if not found:
            speeds = {run.gpu_type: run.steps_per_s for run in runs if run.gpu_type and run.steps_per_s > 0}
            model, found = name, {kind: matrix_of(*ANY_AMOUNT, [[speed]]) for kind, speed in speeds.items()}
            said = "the speed of its runs stands for all amounts of CPU and memory" if found else "is left out"
            self.notes.append(f"{name}: {said}: it was deleted, and no profile of it is kept")
        if not found:
            return
        steps = job.steps or (job.steps_done if job.finished_s is not None else 0)
        if not steps:
            self.notes.append(f"{name}: {NO_STEPS}")
            return
        for gpu_type, matrix in found.items():
            self.models.setdefault(model, {}).setdefault(gpu_type, {})[str(job.gpus)] = matrix
        row = {"job_id": name, "arrival_s": job.created_s, "gpus": job.gpus, "model": model}
        self.rows.append({**row, "steps": steps, "tenant": job.tenant, "weight": job.weight})
        self.exported.add(job.uid)
        if job.finished_s is not None:
            self.jcts_s.append(job.finished_s - job.created_s)

    def archive(self, round_s: float, measured: Measured) -> bytes:
        """The zip file."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as target:
            target.writestr("trace.csv", _trace(by_arrival(self.rows, round_s)))
            target.writestr("profiles.json", json.dumps({"models": self.models}))
            if self.cluster is not None:
                target.writestr("cluster.yaml", yaml.safe_dump(dict(self.cluster), sort_keys=False))
            target.writestr("notes.txt", "".join(f"{note}\n" for note in dict.fromkeys(self.notes)))
            target.writestr("measured.json", json.dumps(asdict(measured)))
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
    everyone, resized = await asyncio.to_thread(_runs, store, since_s, live.clock())
    runs: dict[str, list[RunFact]] = {}
    for run in everyone:
        if run.purpose == "Train":
            runs.setdefault(run.uid, []).append(run)
    for job in jobs:
        if job.uid not in found.uids:
            found.add_gone(job, measured, runs.get(job.uid, ()))
    if not found.rows:
        raise Refusal(404, "no job with a profile came in that time: a simulation needs both")
    told = [(job, runs[job.uid]) for job in jobs if job.uid in found.exported & runs.keys()]
    exported = {job.uid for job, _ in told}
    others = [run for run in everyone if run.uid not in exported or run.purpose != "Train"]
    start_s, restart_s = overheads(told, resized, {node.name: node.gpus for node in capacities}, others)
    measured_s = Measured(
        ended=len(found.jcts_s),
        avg_jct_s=fmean(found.jcts_s) if found.jcts_s else None,
        start_s=start_s,
        restart_s=restart_s,
    )
    return await asyncio.to_thread(found.archive, round_s_of(live), measured_s)


def _runs(store: History, since_s: float, until_s: float) -> tuple[list[RunFact], set[str]]:
    """All runs, also of jobs that the user may not see: they say when GPUs were free. And the jobs of which a run was
    resized."""
    runs = [run for _, run in store.runs(since_s, until_s, None)]
    return runs, {one.uid for one in store.resizes(since_s, until_s)}


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


def _trace(rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _model(job: JobFact) -> str:
    """What identical jobs have in common, with the GPU types that it may use."""
    return "@".join((job.fingerprint, "+".join(sorted(job.gpu_types)))) if job.gpu_types else job.fingerprint


def _matrices_of(job: JobFact, measured: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        matrix["gpuType"]: matrix_of(
            [millis / 1000 for millis in matrix["cpuMillis"]],
            [amount / _GIB for amount in matrix["memoryBytes"]],
            matrix["stepsPerSecond"],
        )
        for matrix in measured
        if not job.gpu_types or matrix["gpuType"] in job.gpu_types
    }
