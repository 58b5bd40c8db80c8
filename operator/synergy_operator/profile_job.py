"""The batch/v1 Job that measures one CPU point: the user's own command under the harness."""

import hashlib
from typing import Final

from synergy_api import names
from synergy_api.training_job import TrainingJobSpec
from synergy_operator.actions import Manifest
from synergy_operator.config import Settings
from synergy_operator.fingerprint import fingerprint
from synergy_operator.gang import identity, rendezvous
from synergy_operator.template import Additions, Place, owner_reference, pod_metadata, pod_spec
from synergy_operator.throughput import regex_words
from synergy_operator.views import ANNOTATION_FINGERPRINT, ANNOTATION_JOB_UID, ANNOTATION_POINT, JobView

ATTEMPTS: Final = 2
"""How often a point is tried before the profile has failed."""

_LONGEST_NAME: Final = 63
_MARK: Final = 8
_START_SECONDS: Final = 600
_KEEP_SECONDS: Final = 3600


def profile_job_name(job: str, run: int, cpu_millis: int, attempt: int) -> str:
    """The run in the name makes it new after each grant, so that a Job of an earlier place is never taken for this
    one's; `attempt` counts from 0. It is also a label's value: where job, run and point are too long together, a hash
    stands for the end of the job's name."""
    end = f"-{run}-{cpu_millis}" + ("", "b")[attempt]
    room = _LONGEST_NAME - len(end)
    if len(job) > room:
        mark = hashlib.sha256(job.encode()).hexdigest()[:_MARK]
        job = f"{job[: room - _MARK - 1].rstrip('-')}-{mark}"
    return job + end


def profile_job(
    job: JobView, spec: TrainingJobSpec, run: int, place: Place, *, attempt: int, settings: Settings
) -> Manifest:
    """The Job of one point: one pod, pinned to the granted node, with the point's CPU and the series' full memory."""
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
    }
    words = [word for option, value in options.items() for word in (option, str(value))]
    additions = Additions(
        env={**rendezvous("127.0.0.1", 0, 1, place.gpus), **identity(job, spec, run)},
        command=["python3", "-m", "synergy_profiler", *words, *regex_words(spec), "--"],
    )
    metadata = pod_metadata(spec.template, labels, place.node)
    metadata["annotations"][ANNOTATION_JOB_UID] = job.uid
    return {
        "metadata": {
            "name": profile_job_name(job.name, run, place.cpu_millis, attempt),
            "namespace": job.namespace,
            "labels": labels,
            "annotations": {ANNOTATION_POINT: str(place.cpu_millis), ANNOTATION_FINGERPRINT: fingerprint(spec)},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": profile.timeout_seconds + _START_SECONDS,
            "ttlSecondsAfterFinished": _KEEP_SECONDS,
            "template": {
                "metadata": metadata,
                "spec": pod_spec(spec.template, place, settings, additions),
            },
        },
    }
