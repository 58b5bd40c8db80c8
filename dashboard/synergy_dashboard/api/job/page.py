"""One job in detail: its present state from the cluster, its past from the history."""

import asyncio

from synergy_api.length import total_steps
from synergy_dashboard.api.answers import JobPage
from synergy_dashboard.api.live_pages import forecast_of
from synergy_dashboard.api.parts import ApiParts
from synergy_dashboard.api.problems import CALL_FAILED, Refusal, explain
from synergy_dashboard.facts import History, JobFact, ResizeFact, RunFact, Sample, WaitFact
from synergy_dashboard.live.scope import Scope
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import TRAINING_JOBS
from synergy_view.history import history
from synergy_view.seen import SeenJob, read
from synergy_view.surface import surfaces
from synergy_view.why import why

_Recorded = tuple[JobFact, list[RunFact], list[WaitFact], list[ResizeFact], list[Sample]]


async def job_page(parts: ApiParts, scope: Scope, *, namespace: str, name: str) -> JobPage:
    """The page of an existing or deleted job. Raises Refusal 404 or 503."""
    live = parts.live
    job = await _read(parts.client, namespace, name) if live.job(namespace, name) is not None else None
    recorded = await asyncio.to_thread(_recorded, parts.store, namespace, name)
    if recorded is not None and job is not None and recorded[0].uid != job.uid:
        recorded = None  # the one that was recorded had the name before
    if job is None:
        if recorded is None:
            raise Refusal(404, f"there is no TrainingJob {namespace}/{name}, nor was there one since the records began")
        return _gone(live.clock(), recorded, scope)
    told = await parts.events.of(namespace, job.uid)
    others = [one for one in live.rows.jobs.values() if scope.sees(one.namespace)]
    runs, waits, resizes, samples = recorded[1:] if recorded is not None else ([], [], [], [])
    progress, service, now = job.status.progress, job.status.service, live.clock()
    return JobPage(
        now=now,
        namespace=namespace,
        job=name,
        tenant=job.tenant,
        phase=job.phase,
        gpus=job.spec.gpus,
        gpu_types=list(job.spec.gpu_types),
        steps=total_steps(job.spec, job.status) or 0,
        steps_done=progress.steps if progress is not None else 0,
        metrics=dict((progress.metrics if progress is not None else None) or {}),
        steps_per_s=progress.steps_per_second if progress is not None and job.gpus_held else 0.0,
        created_s=job.created_s,
        finished_s=recorded[0].finished_s if recorded is not None else None,
        preemptions=service.preemptions if service is not None else 0,
        failures=service.failures if service is not None else 0,
        why=why(job, others, now),
        forecast=forecast_of(job),
        surfaces=surfaces(job),
        runs=[scope.run(run) for run in runs],
        waits=waits,
        resizes=resizes,
        samples=samples,
        events=list(history(job, told).happenings),
    )


def _gone(now: float, recorded: _Recorded, scope: Scope) -> JobPage:
    fact, runs, waits, resizes, samples = recorded
    return JobPage(
        now=now,
        namespace=fact.namespace,
        job=fact.name,
        tenant=fact.tenant,
        phase=fact.phase,
        gpus=fact.gpus,
        gpu_types=list(fact.gpu_types),
        steps=fact.steps,
        steps_done=fact.steps_done,
        metrics=dict(samples[-1].metrics) if samples else {},
        steps_per_s=0.0,
        created_s=fact.created_s,
        finished_s=fact.finished_s,
        preemptions=fact.preemptions,
        failures=sum(run.outcome == "Failed" for run in runs),
        why=None,
        forecast=None,
        surfaces=[],
        runs=[scope.run(run) for run in runs],
        waits=waits,
        resizes=resizes,
        samples=samples,
        events=[],
    )


def _recorded(store: History, namespace: str, name: str) -> _Recorded | None:
    fact = store.job(namespace, name)
    if fact is None:
        return None
    uid = fact.uid
    return (
        fact,
        list(store.runs_of(uid)),
        list(store.waits_of(uid)),
        list(store.resizes_of(uid)),
        list(store.samples_of(uid)),
    )


async def _read(client: KubeClient, namespace: str, name: str) -> SeenJob | None:
    """The job with its matrices, which the watched copy does not keep."""
    try:
        return read(await client.get(TRAINING_JOBS, name, namespace))
    except NotFound:
        return None
    except CALL_FAILED as error:
        raise Refusal(503, f"the API server does not give the job: {explain(error)}") from None
    except ValueError as error:
        raise Refusal(503, f"TrainingJob {namespace}/{name} is of another version: {error}") from None
