"""What the simulator needs to run the past again: trace, profiles and cluster, as a zip file.

Jobs that exist are exported as objects tell them. Of those that are gone the history has all but the matrices: a
ThroughputProfile has them where an identical job was measured; of the others the speed of their runs is known.
"""

import asyncio
import csv
import io
import json
import time
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from heapq import merge
from itertools import chain, groupby
from statistics import fmean
from typing import Any, Final

import yaml

from synergy_api.cluster.pools import NodeCapacity
from synergy_dashboard.api.live_pages import round_s_of
from synergy_dashboard.api.past import amounts
from synergy_dashboard.api.past.overheads import overheads
from synergy_dashboard.api.problems import CALL_FAILED, Refusal, explain
from synergy_dashboard.facts import History, JobFact, RunFact
from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.live.scope import Scope
from synergy_kube import ApiError, KubeClient
from synergy_kube.answers import Page
from synergy_kube.resources import THROUGHPUT_PROFILES, TRAINING_JOBS
from synergy_view.export import ANY_AMOUNT, COLUMNS, NO_STEPS, Measured, arrival, export, from_begin, matrix_of
from synergy_view.seen import read_all
from synergy_view.words import count

_GIB: Final = 1 << 30
_Profiles = Mapping[str, Sequence[Mapping[str, Any]]]
"""Matrices by fingerprint."""


@dataclass(frozen=True)
class _Past:
    """What happened to jobs since a time. `jobs` reads them anew, by creation. `runs` are of all jobs, also of those
    that the user may not see: they say when GPUs were free. After `known_s` these are all."""

    jobs: Callable[[], Iterator[JobFact]]
    runs: Sequence[RunFact]
    resized: Collection[str]
    known_s: float


@dataclass
class _Found:
    """What the export has. `rows` are those of the jobs that exist, with `arrival_s` in seconds since the epoch."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    uids: set[str] = field(default_factory=set)
    exported: set[str] = field(default_factory=set)
    """The uids of the jobs in `rows`."""
    told: list[tuple[JobFact, list[RunFact]]] = field(default_factory=list)
    """The jobs of the trace of which all runs are known, with these."""
    all_known: bool = True
    """Whether all runs of all jobs are known."""
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

    def trace(self, past: _Past, profiles: _Profiles) -> Iterator[dict[str, Any]]:
        """The rows of all jobs by arrival, also of those that exist no more, with the matrices by fingerprint. Of the
        latter few are in memory at a time."""
        return merge(sorted(self.rows, key=arrival), self._gone(past, profiles), key=arrival)

    def _gone(self, past: _Past, profiles: _Profiles) -> Iterator[dict[str, Any]]:
        runs: dict[str, list[RunFact]] = {}
        for run in past.runs:
            if run.purpose == "Train":
                runs.setdefault(run.uid, []).append(run)
        for _, at_once in groupby(past.jobs(), key=lambda job: job.created_s):
            rows = []
            for job in at_once:
                row = None if job.uid in self.uids else self._row(job, profiles, runs.get(job.uid, ()))
                if row is not None:
                    rows.append(row)
                if job.created_s <= past.known_s:
                    self.all_known = False
                elif job.uid in runs and (row is not None or job.uid in self.exported):
                    self.told.append((job, runs[job.uid]))
            yield from sorted(rows, key=arrival)

    def measured(self, past: _Past, gpus: Mapping[str, int]) -> Measured:
        """How the jobs of the trace did on nodes with so many GPUs."""
        told = {job.uid for job, _ in self.told}
        others = [run for run in past.runs if run.uid not in told or run.purpose != "Train"]
        start_s, restart_s = overheads(self.told, past.resized, gpus, others)
        if not self.all_known:
            self.notes.append(
                f"what starts cost is that of the newest {count(len(told), 'job')}: there were more than "
                f"{amounts.MOST_FACTS} runs since the first one came"
            )
        avg_jct_s = fmean(self.jcts_s) if self.jcts_s else None
        return Measured(ended=len(self.jcts_s), avg_jct_s=avg_jct_s, start_s=start_s, restart_s=restart_s)

    def _row(self, job: JobFact, measured: _Profiles, runs: Iterable[RunFact]) -> dict[str, Any] | None:
        """A job that exists no more, with the matrices by fingerprint, and its runs; None if it is left out."""
        name = f"{job.namespace}/{job.name}"
        model, found = _model(job), _matrices_of(job, measured.get(job.fingerprint, ()))
        if not found:
            speeds = {run.gpu_type: run.steps_per_s for run in runs if run.gpu_type and run.steps_per_s > 0}
            model, found = name, {kind: matrix_of(*ANY_AMOUNT, [[speed]]) for kind, speed in speeds.items()}
            said = "the speed of its runs stands for all amounts of CPU and memory" if found else "is left out"
            self.notes.append(f"{name}: {said}: it was deleted, and no profile of it is kept")
        if not found:
            return None
        steps = job.steps or (job.steps_done if job.finished_s is not None else 0)
        if not steps:
            self.notes.append(f"{name}: {NO_STEPS}")
            return None
        for gpu_type, matrix in found.items():
            self.models.setdefault(model, {}).setdefault(gpu_type, {})[str(job.gpus)] = matrix
        if job.finished_s is not None:
            self.jcts_s.append(job.finished_s - job.created_s)
        row = {"job_id": name, "arrival_s": job.created_s, "gpus": job.gpus, "model": model}
        return {**row, "steps": steps, "tenant": job.tenant, "weight": job.weight}

    def archive(self, past: _Past, profiles: _Profiles, gpus: Mapping[str, int], round_s: float) -> bytes:
        """The zip file; empty if no job can be exported."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as target:
            if not _write_trace(target, from_begin(self.trace(past, profiles), round_s)):
                return b""
            measured = self.measured(past, gpus)
            target.writestr("profiles.json", json.dumps({"models": self.models}))
            if self.cluster is not None:
                target.writestr("cluster.yaml", yaml.safe_dump(dict(self.cluster), sort_keys=False))
            target.writestr("notes.txt", "".join(f"{note}\n" for note in dict.fromkeys(self.notes)))
            target.writestr("measured.json", json.dumps(asdict(measured)))
        return content.getvalue()


async def archive(live: LiveCluster, store: History, client: KubeClient, scope: Scope, since_s: float) -> bytes:
    """The zip file of the jobs that the user may see and that came since then. Raises Refusal 404 or 503."""
    past = await asyncio.to_thread(_past, store, since_s, live.clock(), scope.namespaces)
    live.refresh()
    capacities = list(live.rows.capacities.values())
    found = _Found()
    try:
        for namespace in (None,) if scope.namespaces is None else sorted(scope.namespaces):
            async for page in client.pages(TRAINING_JOBS, namespace):
                await asyncio.to_thread(found.add_living, page, capacities, since_s)
        wanted = await asyncio.to_thread(lambda: {job.fingerprint for job in past.jobs()} - {""})
        profiles = await _measured(client, wanted)
    except CALL_FAILED as error:
        raise Refusal(503, f"the API server does not give the jobs: {explain(error)}") from None
    gpus = {node.name: node.gpus for node in capacities}
    content = await asyncio.to_thread(found.archive, past, profiles, gpus, round_s_of(live))
    if not content:
        raise Refusal(404, "no job with a profile came in that time: a simulation needs both")
    return content


def _past(store: History, since_s: float, until_s: float, namespaces: Collection[str] | None) -> _Past:
    """The jobs of these namespaces that came since then. Of more runs than are read at once, their own come first."""
    own = store.runs(since_s, until_s, namespaces, amounts.MOST_FACTS)
    every = own if namespaces is None else store.runs(since_s, until_s, None, amounts.MOST_FACTS)
    return _Past(
        jobs=partial(_jobs, store, since_s, until_s, namespaces),
        runs=list({(run.uid, run.run): run for _, run in (*own, *every)}.values()),
        resized=store.resized(since_s, until_s, namespaces),
        known_s=max(amounts.known_since_s(amounts.ends(runs, until_s)) for runs in (own, every)),
    )


def _jobs(store: History, since_s: float, until_s: float, namespaces: Collection[str] | None) -> Iterator[JobFact]:
    """The jobs by creation, read in pages."""
    page = store.jobs(since_s, until_s, namespaces, amounts.MOST_JOBS)
    while page:
        yield from page
        page = store.jobs(since_s, until_s, namespaces, amounts.MOST_JOBS, page[-1])


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


def _write_trace(target: zipfile.ZipFile, rows: Iterator[dict[str, Any]]) -> bool:
    """Write the trace as its rows come. False if there are none."""
    file = zipfile.ZipInfo("trace.csv", time.localtime()[:6])
    file.compress_type = zipfile.ZIP_DEFLATED
    first = next(rows, None)
    with target.open(file, "w") as content, io.TextIOWrapper(content, "utf-8", newline="") as text:
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(chain(() if first is None else (first,), rows))
    return first is not None


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
