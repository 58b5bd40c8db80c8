"""The batch/v1 Job that measures one point: the user's own command under the harness."""

import hashlib
from typing import Final

from synergy_api import names
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_operator.actions import Manifest
from synergy_operator.pods.gang import LOOPBACK, identity, rendezvous
from synergy_operator.pods.template import Additions, PodShare, owner_reference, pod_metadata, pod_spec
from synergy_operator.pods.throughput import regex_option
from synergy_operator.profile.fingerprint import fingerprint
from synergy_operator.views.annotations import (
    ANNOTATION_FINGERPRINT,
    ANNOTATION_HIT_RATE,
    ANNOTATION_POINT,
    ANNOTATION_REPEAT,
    ANNOTATION_STORAGE,
)
from synergy_operator.views.batch_job import STORAGE_VARIABLE, BatchJobView, Target
from synergy_operator.views.job import JobView
from synergy_operator.views.settings import HOST_IP, WorkerSettings

ATTEMPTS: Final = 2
"""How often a point is tried before the profile fails."""

_LONGEST_NAME: Final = 63
_MARK: Final = 8
START_SECONDS: Final = 600
_HOST_IP_VARIABLE: Final = "SYNERGY_HOST_IP"
KEEP_SECONDS: Final = 3600


def profile_job_name(job: str, run: int, target: Target, attempt: int) -> str:
    """The name of a profile Job, which is also a label's value.

    It consists of job, run, CPU, hit rate in ten thousandths, number of the repeat, and `attempt`, which counts from 0.
    The hit rate follows `c` if storage is read without a limit, `h` if there is a limit. The run makes the name unique,
    so a Job of an earlier grant is never taken for one of this grant. A hash replaces the end of a job name that is too
    long.
    """
    end = f"-{run}-{target.cpu_millis}"
    if target.hit_rate is not None:
        end += f"{'c' if target.storage_bytes_per_s is None else 'h'}{round(10_000 * target.hit_rate)}"
    if target.repeat:
        end += f"r{target.repeat}"
    end += ("", "b")[attempt]
    return fitting_name(job, end)


def is_unchanged(job: BatchJobView) -> bool:
    """Whether the annotations of a point's Job agree with its name and its pod template, which the API server lets no
    one change. The name does not contain the bytes per second from storage, the template does."""
    limit = job.target.storage_bytes_per_s
    if limit is not None and limit != job.storage_limit:
        return False
    return job.name in (profile_job_name(job.job, job.run, job.target, attempt) for attempt in range(ATTEMPTS))


def fitting_name(job: str, end: str) -> str:
    """The job's name with this end, in the length of a label's value; a hash replaces the rest of a longer name."""
    room = _LONGEST_NAME - len(end)
    if len(job) > room:
        mark = hashlib.sha256(job.encode()).hexdigest()[:_MARK]
        job = f"{job[: room - _MARK - 1].rstrip('-')}-{mark}"
    return job + end


def profile_job(
    job: JobView,
    spec: TrainingJobSpec,
    run: int,
    share: PodShare,
    target: Target,
    *,
    attempt: int,
    settings: WorkerSettings,
    counted: bool = False,
    most_grace_seconds: int | None = None,
) -> Manifest:
    """The Job of one run of a point: one pod on the granted node, with the point's CPU and the full memory of the
    series. `most_grace_seconds` bounds the grace period of its template. A `counted` run reads GPU counters as the spec
    says, and what the workers send each other.

    Less memory is not measured with a smaller limit but with a hit rate that the library simulates.
    """
    labels = {
        names.LABEL_JOB: job.name,
        names.LABEL_RUN: str(run),
        names.LABEL_RANK: "0",
        names.LABEL_ROLE: names.ROLE_PROFILE,
    }
    profile = spec.profile
    options = {
        "--warmup-steps": profile.warmup_steps,
        "--steps": profile.steps,
        "--timeout": profile.timeout_seconds,
        "--counters": profile.counters if counted else "Off",
        "--workers": share.gpus if counted else 1,
    }
    runs = 1
    if counted:  # the harness runs the command again for kernels, and with one worker: each run has its own timeout
        runs += (profile.counters == "Nsight") + (share.gpus > 1)
    words = [word for option, value in options.items() for word in (option, str(value))]
    counters = _counter_environment(settings) if counted and profile.counters == "Auto" else {}
    additions = Additions(
        env={
            **rendezvous(LOOPBACK, 0, 1, share.gpus),
            **identity(job, spec, run),
            **_storage_environment(target),
            **counters,
        },
        command=["python3", "-m", "synergy_profiler", *words, *regex_option(spec), "--"],
        claim=profile_job_name(job.name, run, target, attempt),
        pod_fields={_HOST_IP_VARIABLE: "status.hostIP"} if counters else {},
        most_grace_seconds=most_grace_seconds,
    )
    metadata = pod_metadata(spec.template, labels, share)
    metadata["annotations"][names.ANNOTATION_JOB_UID] = job.uid
    return {
        "metadata": {
            "name": profile_job_name(job.name, run, target, attempt),
            "namespace": job.namespace,
            "labels": labels,
            "annotations": {**_annotations(target), ANNOTATION_FINGERPRINT: fingerprint(spec)},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": runs * profile.timeout_seconds + START_SECONDS,
            "ttlSecondsAfterFinished": KEEP_SECONDS,
            "template": {
                "metadata": metadata,
                "spec": pod_spec(spec.template, share, settings, additions),
            },
        },
    }


def _storage_environment(target: Target) -> dict[str, str]:
    """Variables that set how the library reads the data; empty if all of it counts as in memory."""
    found = {}
    if target.hit_rate is not None:
        found["SYNERGY_PROFILE_HIT_RATE"] = str(target.hit_rate)
    if target.storage_bytes_per_s is not None:
        found[STORAGE_VARIABLE] = str(target.storage_bytes_per_s)
    return found


def _counter_environment(settings: WorkerSettings) -> dict[str, str]:
    """Where the node's dcgm-exporter is and how often it collects; empty if none is set."""
    if not settings.dcgm_url:
        return {}
    return {
        "SYNERGY_DCGM_URL": settings.dcgm_url.replace(HOST_IP, f"$({_HOST_IP_VARIABLE})"),
        "SYNERGY_DCGM_INTERVAL_S": f"{settings.dcgm_interval_seconds:g}",
    }


def _annotations(target: Target) -> dict[str, str]:
    """The target, in the form in which it is read back from the Job."""
    values = {
        ANNOTATION_POINT: target.cpu_millis,
        ANNOTATION_HIT_RATE: target.hit_rate,
        ANNOTATION_STORAGE: target.storage_bytes_per_s,
        ANNOTATION_REPEAT: target.repeat or None,
    }
    return {name: str(value) for name, value in values.items() if value is not None}
