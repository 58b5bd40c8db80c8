"""A snapshot as forecasts need it: with the jobs that have come so far, and how the cluster is planned. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from synergy_api.length import total_steps
from synergy_api.timestamps import parse_time
from synergy_core.model import snapshot as core
from synergy_core.model.config import PlanConfig
from synergy_core.model.config.format import config_document
from synergy_extender.cluster.views import JobView


def with_past(snapshot: core.Snapshot, jobs: Iterable[JobView], config: PlanConfig) -> core.Snapshot:
    """The snapshot with the arrivals of all jobs that still exist, their matrices and the options of plans."""
    listed = sorted(jobs, key=lambda job: (job.created, job.key))
    return replace(
        snapshot,
        history=tuple(past_job(job) for job in listed),
        model_profiles=model_profiles(listed),
        config=config_document(config),
    )


def past_job(job: JobView) -> core.PastJob:
    """A job as one that has come."""
    ended, total = job.status.completion_time, total_steps(job.spec, job.status)
    return core.PastJob(
        arrival_s=job.created,
        gpus=job.spec.gpus,
        model=model_name(job),
        steps=None if total is None else float(total),
        finish_s=None if ended is None else parse_time(ended),
    )


def model_profiles(jobs: Iterable[JobView]) -> dict[str, dict[str, Mapping[str, core.Profile]]]:
    """The matrices by model, number of GPUs and GPU type; of several jobs those of the one that comes last."""
    found: dict[str, dict[str, Mapping[str, core.Profile]]] = {}
    for job in jobs:
        if job.profiles:
            found.setdefault(model_name(job), {})[str(job.spec.gpus)] = job.profiles
    return found


def model_name(job: JobView) -> str:
    """What the job trains; its own name if that is not known."""
    return job.model or str(job.key)
