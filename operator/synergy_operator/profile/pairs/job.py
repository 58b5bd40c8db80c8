"""The two batch/v1 Jobs of a pair: the new job and a reference, each with its own command under the harness."""

from dataclasses import replace
from typing import Final

from synergy_api import names
from synergy_api.amounts import Amounts
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_operator.actions import Manifest
from synergy_operator.pods.gang import LOOPBACK, identity, rendezvous
from synergy_operator.pods.template import Additions, PodShare, owner_reference, pod_metadata, pod_spec
from synergy_operator.pods.throughput import regex_option
from synergy_operator.profile.job import KEEP_SECONDS, START_SECONDS, fitting_name
from synergy_operator.profile.pairs.references import NextPair
from synergy_operator.views.annotations import (
    ANNOTATION_FINGERPRINT,
    ANNOTATION_POINT,
    ANNOTATION_REFERENCE,
    ANNOTATION_REFERENCE_MODEL,
)
from synergy_operator.views.job import JobView
from synergy_operator.views.settings import WorkerSettings

OWN: Final = 0
"""Rank of the new job's pod; the reference's is 1."""


def pair_jobs(
    job: JobView,
    spec: TrainingJobSpec,
    run: int,
    share: PodShare,
    pair: NextPair,
    *,
    number: int,
    fingerprint: str,
    seconds: int,
    settings: WorkerSettings,
    most_grace_seconds: int | None = None,
) -> tuple[Manifest, Manifest]:
    """The Jobs of pair `number` of a run, on the GPU that the run holds as `share`.

    The new job's pod asks for one of the GPU's devices, and the reference's for the rest: no other pod fits beside
    them. Both belong to the new job, so one grant holds them and one deletion removes them.
    """
    own, others = _split(pair, share)
    reference = pair.reference.view()
    made = []
    for rank, view, its_spec, its_share in ((OWN, job, spec, own), (1, reference, reference.spec, others)):
        if its_spec is None:
            raise ValueError(f"reference {view.name} has no spec")
        labels = {
            names.LABEL_JOB: job.name,
            names.LABEL_RUN: str(run),
            names.LABEL_RANK: str(rank),
            names.LABEL_ROLE: names.ROLE_PROFILE,
        }
        timeout = its_spec.profile.timeout_seconds + seconds
        options = {
            "--warmup-steps": its_spec.profile.warmup_steps,
            "--timeout": timeout,
            "--pair-seconds": seconds,
        }
        words = [word for option, value in options.items() for word in (option, str(value))]
        additions = Additions(
            env={**rendezvous(LOOPBACK, 0, 1, 1), **identity(view, its_spec, run)},
            command=["python3", "-m", "synergy_profiler", *words, *regex_option(its_spec), "--"],
            most_grace_seconds=most_grace_seconds,
        )
        metadata = pod_metadata(its_spec.template, labels, its_share)
        metadata["annotations"][names.ANNOTATION_JOB_UID] = job.uid
        annotations = {
            ANNOTATION_POINT: str(its_share.amounts.cpu_millis),
            ANNOTATION_REFERENCE: pair.reference.name,
            ANNOTATION_REFERENCE_MODEL: pair.model,
            ANNOTATION_FINGERPRINT: fingerprint,
        }
        made.append(
            {
                "metadata": {
                    "name": fitting_name(job.name, f"-{run}-p{number}{'ab'[rank]}"),
                    "namespace": job.namespace,
                    "labels": labels,
                    "annotations": annotations,
                    "ownerReferences": [owner_reference(job)],
                },
                "spec": {
                    "backoffLimit": 0,
                    "activeDeadlineSeconds": timeout + START_SECONDS,
                    "ttlSecondsAfterFinished": KEEP_SECONDS,
                    "template": {
                        "metadata": metadata,
                        "spec": pod_spec(its_spec.template, its_share, settings, additions),
                    },
                },
            }
        )
    return made[0], made[1]


def _split(pair: NextPair, share: PodShare) -> tuple[PodShare, PodShare]:
    """What each pod gets: what it needs; in proportion where the grant is smaller than both need."""
    both = pair.own.plus(pair.others).fields
    room = share.amounts.fields
    own = pair.own._replace(
        **{name: max(1, min(need, room[name] * need // both[name])) for name, need in pair.own.fields.items()}
    )
    rest = share.amounts.minus(own)
    others = Amounts(1, *(max(1, min(need, left)) for need, left in zip(pair.others[1:], rest[1:], strict=True)))
    devices = share.devices or 2
    return replace(share, amounts=own, devices=1), replace(share, amounts=others, devices=devices - 1)
