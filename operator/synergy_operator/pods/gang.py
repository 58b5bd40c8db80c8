"""The worker pods of a run: how the plan's shares of nodes become ranks, and what each rank finds around it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from synergy_api import names
from synergy_api.allocation import Allocation, NodeShare
from synergy_api.training_job import TrainingJobSpec
from synergy_operator.actions import Manifest
from synergy_operator.pods.cache_share import cache_environment
from synergy_operator.pods.template import Additions, PodShare, owner_reference, pod_metadata, pod_spec
from synergy_operator.pods.throughput import report_command
from synergy_operator.views.job import JobView
from synergy_operator.views.settings import WorkerSettings

MASTER_PORT: Final = 29500
PEER_PORT: Final = 29499

_TOKEN_VOLUME: Final = "kube-synergy-token"  # noqa: S105 - a volume's name, not a secret
_TOKEN_FOLDER: Final = "/var/run/secrets/kube-synergy"  # noqa: S105 - a path, not a secret
_TOKEN_SECONDS: Final = 3600
GANG_KEY: Final = "gang-key"
"""The key's name in its Secret, and its file beside the token."""


@dataclass(frozen=True, slots=True)
class GangWorker:
    """One rank of a gang: its pod's name and place."""

    rank: int
    name: str
    place: PodShare


def gang_workers(job: str, allocation: Allocation, gpus_per_worker: int | None) -> tuple[GangWorker, ...]:
    """The gang of an allocation. Ranks go by node name, so that a later allocation of the same run that differs only
    in CPU and memory gives every rank the same node."""
    places = [
        place
        for share in sorted(allocation.workers, key=lambda share: share.node)
        for place in split_share(share, gpus_per_worker)
    ]
    return tuple(
        GangWorker(rank, names.worker_pod_name(job, allocation.run, rank), place) for rank, place in enumerate(places)
    )


def split_share(share: NodeShare, gpus_per_worker: int | None) -> tuple[PodShare, ...]:
    """One node's share as pods of at most `gpus_per_worker` GPUs; CPU and memory in proportion to GPUs, in whole
    numbers that add up to the share exactly."""
    size = gpus_per_worker or share.gpus
    places: list[PodShare] = []
    for first in range(0, share.gpus, size):
        last = min(first + size, share.gpus)
        places.append(
            PodShare(
                share.node,
                last - first,
                share.cpu_millis * last // share.gpus - share.cpu_millis * first // share.gpus,
                share.memory_bytes * last // share.gpus - share.memory_bytes * first // share.gpus,
                share.devices * (last - first) // share.gpus if share.devices is not None else None,
                share.resource or names.RESOURCE_GPU,
            )
        )
    return tuple(places)


def worker_pod(
    job: JobView, spec: TrainingJobSpec, run: int, member: GangWorker, *, size: int, settings: WorkerSettings
) -> Manifest:
    """The pod of one rank of `size`, gated until its place is free."""
    labels = {
        names.LABEL_JOB: job.name,
        names.LABEL_RUN: str(run),
        names.LABEL_RANK: str(member.rank),
        names.LABEL_ROLE: names.ROLE_WORKER,
    }
    additions = Additions(
        env=_environment(job, spec, run, member, size=size, settings=settings),
        volumes=[_token_volume(names.gang_secret_name(job.name, job.uid) if has_gang(spec) else "")],
        mounts=[{"name": _TOKEN_VOLUME, "mountPath": _TOKEN_FOLDER, "readOnly": True}],
        command=report_command(spec, member.rank),
        fields={
            "hostname": member.name,
            "subdomain": names.service_name(job.name),
            "schedulingGates": [*(spec.template["spec"].get("schedulingGates") or []), {"name": names.GATE}],
        },
    )
    return {
        "metadata": {
            **pod_metadata(spec.template, labels, member.place),
            "name": member.name,
            "namespace": job.namespace,
            "ownerReferences": [owner_reference(job)],
        },
        "spec": pod_spec(spec.template, member.place, settings, additions),
    }


def headless_service(job: JobView) -> Manifest:
    """The headless Service that gives the workers names; peers must resolve before they are ready."""
    ports = {"rendezvous": MASTER_PORT, "peer": PEER_PORT}
    return {
        "metadata": {
            "name": names.service_name(job.name),
            "namespace": job.namespace,
            "labels": {names.LABEL_JOB: job.name},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {names.LABEL_JOB: job.name, names.LABEL_ROLE: names.ROLE_WORKER},
            "ports": [{"name": name, "port": port, "protocol": "TCP"} for name, port in ports.items()],
        },
    }


def has_gang(spec: TrainingJobSpec) -> bool:
    """Whether a job may run as several processes: one for each GPU under torchrun, be it in a single pod."""
    return spec.gpus > 1


def gang_secret(job: JobView) -> Manifest:
    """The Secret of a job's gangs, without its key. It goes with the job."""
    return {
        "metadata": {
            "name": names.gang_secret_name(job.name, job.uid),
            "namespace": job.namespace,
            "labels": {names.LABEL_JOB: job.name},
            "ownerReferences": [owner_reference(job)],
        },
        "type": "Opaque",
        "immutable": True,
    }


def rendezvous(address: str, rank: int, size: int, gpus: int) -> dict[str, str]:
    """Where the ranks meet, plainly and as torchrun reads it."""
    port = str(MASTER_PORT)
    return {
        "WORLD_SIZE": str(size),
        "RANK": str(rank),
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "PET_NNODES": str(size),
        "PET_NODE_RANK": str(rank),
        "PET_NPROC_PER_NODE": str(gpus),
        "PET_MASTER_ADDR": address,
        "PET_MASTER_PORT": port,
    }


def identity(job: JobView, spec: TrainingJobSpec, run: int) -> dict[str, str]:
    """Which job and run a pod belongs to, and how many steps the job has."""
    return {
        "SYNERGY_JOB": job.name,
        "SYNERGY_NAMESPACE": job.namespace,
        "SYNERGY_JOB_UID": job.uid,
        "SYNERGY_RUN": str(run),
        "SYNERGY_STEPS": str(spec.steps),
    }


def by_rank(gang: Iterable[GangWorker]) -> dict[int, GangWorker]:
    """The members by rank."""
    return {member.rank: member for member in gang}


def _environment(
    job: JobView, spec: TrainingJobSpec, run: int, member: GangWorker, *, size: int, settings: WorkerSettings
) -> dict[str, str]:
    address = names.master_address(job.name, job.namespace, run)
    return {
        **rendezvous(address, member.rank, size, member.place.gpus),
        **identity(job, spec, run),
        "SYNERGY_EXTENDER_URL": settings.extender_url,
        "SYNERGY_TOKEN_FILE": f"{_TOKEN_FOLDER}/token",
        "SYNERGY_CA_CERT": settings.ca_cert,
        "SYNERGY_PEER_PORT": str(PEER_PORT),
        **({"SYNERGY_GANG_KEY_FILE": f"{_TOKEN_FOLDER}/{GANG_KEY}"} if has_gang(spec) else {}),
        "SYNERGY_FENCE_SECONDS": str(settings.fence_seconds),
        **cache_environment(job, spec, member.place),
    }


def _token_volume(gang_secret: str) -> Mapping[str, Any]:
    """The pod's token, and the gang's key where there is a gang."""
    token = {"audience": names.TOKEN_AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": "token"}
    sources: list[Mapping[str, Any]] = [{"serviceAccountToken": token}]
    if gang_secret:
        sources.append({"secret": {"name": gang_secret, "items": [{"key": GANG_KEY, "path": GANG_KEY}]}})
    return {"name": _TOKEN_VOLUME, "projected": {"sources": sources}}
