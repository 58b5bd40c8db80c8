"""The worker pods of a run: the plan's node shares become ranks, and each rank gets its pod."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from synergy_api import names
from synergy_api.amounts import Amounts
from synergy_api.length import trained_seconds
from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_operator.actions import Manifest
from synergy_operator.pods.cache_share import cache_environment
from synergy_operator.pods.template import Additions, PodShare, owner_reference, pod_metadata, pod_spec
from synergy_operator.pods.throughput import report_command
from synergy_operator.views.job import JobView
from synergy_operator.views.settings import WorkerSettings

MASTER_PORT: Final = 29500
PEER_PORT: Final = 29499
LOOPBACK: Final = "127.0.0.1"
"""Where rank 0 is, for a process that is alone."""

_TOKEN_VOLUME: Final = "kube-synergy-token"  # noqa: S105 - a volume's name, not a secret
_TOKEN_FOLDER: Final = "/var/run/secrets/kube-synergy"  # noqa: S105 - a path, not a secret
_TOKEN_SECONDS: Final = 3600
GANG_KEY: Final = "gang-key"
"""Key in the gang's Secret, and name of its file in the pod."""


@dataclass(frozen=True, slots=True)
class GangWorker:
    """One rank of a gang: the name of its pod and its share of a node."""

    rank: int
    name: str
    share: PodShare


def gang_workers(job: str, allocation: Allocation, gpus_per_worker: int | None) -> tuple[GangWorker, ...]:
    """The gang of an allocation, by rank.

    Ranks follow the node names. A later allocation of the same run that differs only in CPU and memory therefore gives
    every rank the same node.
    """
    nodes = sorted(allocation.workers, key=lambda share: share.node)
    shares = [share for node in nodes for share in split_share(node, gpus_per_worker)]
    return tuple(
        GangWorker(rank, names.worker_pod_name(job, allocation.run, rank), share) for rank, share in enumerate(shares)
    )


def split_share(share: NodeShare, gpus_per_worker: int | None) -> tuple[PodShare, ...]:
    """One node's share, split into pods of at most `gpus_per_worker` GPUs.

    CPU and memory are split in proportion to GPUs, in whole numbers that add up to the share exactly.
    """
    size, whole = gpus_per_worker or share.gpus, Amounts.of(share)
    pod_shares: list[PodShare] = []
    for first in range(0, share.gpus, size):
        last = min(first + size, share.gpus)
        pod_shares.append(
            PodShare(
                share.node,
                whole.part(last, share.gpus).minus(whole.part(first, share.gpus))._replace(gpus=last - first),
                share.devices * (last - first) // share.gpus if share.devices is not None else None,
                share.resource or names.RESOURCE_GPU,
                tuple(share.device_ids[first:last]),
                share.capacity,
            )
        )
    return tuple(pod_shares)


def worker_pod(
    job: JobView,
    spec: TrainingJobSpec,
    run: int,
    worker: GangWorker,
    *,
    size: int,
    settings: WorkerSettings,
    most_grace_seconds: int | None = None,
) -> Manifest:
    """The manifest of one worker of a gang of `size`, with the scheduling gate that holds it until its resources are
    free. `most_grace_seconds` bounds the grace period of its template."""
    labels = {
        names.LABEL_JOB: job.name,
        names.LABEL_RUN: str(run),
        names.LABEL_RANK: str(worker.rank),
        names.LABEL_ROLE: names.ROLE_WORKER,
    }
    additions = Additions(
        env=_environment(job, spec, run, worker, size=size, settings=settings),
        volumes=[_token_volume(names.gang_secret_name(job.name, job.uid) if spec.has_gang else "")],
        mounts=[{"name": _TOKEN_VOLUME, "mountPath": _TOKEN_FOLDER, "readOnly": True}],
        command=report_command(spec, worker.rank),
        claim=worker.name,
        fields={
            "hostname": worker.name,
            **({"subdomain": names.service_name(job.name)} if spec.has_gang else {}),
            "schedulingGates": [*(spec.template["spec"].get("schedulingGates") or []), {"name": names.GATE}],
        },
        most_grace_seconds=most_grace_seconds,
    )
    return {
        "metadata": {
            **pod_metadata(spec.template, labels, worker.share),
            "name": worker.name,
            "namespace": job.namespace,
            "ownerReferences": [owner_reference(job)],
        },
        "spec": pod_spec(spec.template, worker.share, settings, additions),
    }


def headless_service(job: JobView) -> Manifest:
    """The headless Service that gives the workers of a gang their names. Peers must resolve before they are ready."""
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


def gang_secret(job: JobView) -> Manifest:
    """The Secret of a job's gangs, without its key. It is deleted with the job."""
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
    """Environment variables of the rendezvous, in plain form and as torchrun reads them.

    A pod of one GPU needs no torchrun: it gets the local ones too. Alone in its job it gets none, as frameworks take
    them for a sign of several processes.
    """
    port = str(MASTER_PORT)
    local = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "NODE_RANK": str(rank)} if size > 1 and gpus == 1 else {}
    return {
        **local,
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
    """Environment variables that name the job and the run of a pod, and how long the job trains."""
    return {
        "SYNERGY_JOB": job.name,
        "SYNERGY_NAMESPACE": job.namespace,
        "SYNERGY_JOB_UID": job.uid,
        "SYNERGY_RUN": str(run),
        **({"SYNERGY_ARRAY_INDEX": str(job.index)} if job.index is not None else {}),
        **_length(job, spec),
    }


def _length(job: JobView, spec: TrainingJobSpec) -> dict[str, str]:
    """What ends the job, and how long it has trained and paused so far."""
    limits = {"STEPS": spec.steps, "EPOCHS": spec.epochs, "MAX_RUN_SECONDS": spec.max_run_seconds}
    progress = job.status.progress
    so_far = {
        "TRAINED_SECONDS": int(trained_seconds(job.status)),
        "PAUSED_SECONDS": int(progress.paused_seconds) if progress is not None else 0,
    }
    given = {name: value for name, value in limits.items() if value is not None}
    given |= {name: seconds for name, seconds in so_far.items() if seconds}
    return {f"SYNERGY_{name}": str(value) for name, value in given.items()}


def workers_by_rank(gang: Iterable[GangWorker]) -> dict[int, GangWorker]:
    """The workers of a gang by rank."""
    return {worker.rank: worker for worker in gang}


def _environment(
    job: JobView, spec: TrainingJobSpec, run: int, worker: GangWorker, *, size: int, settings: WorkerSettings
) -> dict[str, str]:
    address = names.master_address(job.name, job.namespace, run) if spec.has_gang else LOOPBACK
    return {
        **rendezvous(address, worker.rank, size, worker.share.gpus),
        **identity(job, spec, run),
        "SYNERGY_EXTENDER_URL": settings.extender_url,
        "SYNERGY_TOKEN_FILE": f"{_TOKEN_FOLDER}/token",
        "SYNERGY_CA_CERT": settings.ca_cert,
        "SYNERGY_PEER_PORT": str(PEER_PORT),
        **({"SYNERGY_GANG_KEY_FILE": f"{_TOKEN_FOLDER}/{GANG_KEY}"} if spec.has_gang else {}),
        "SYNERGY_FENCE_SECONDS": str(settings.fence_seconds),
        **cache_environment(job, spec, worker.share),
    }


def _token_volume(gang_secret: str) -> Mapping[str, Any]:
    """The volume with the pod's token, and with the gang's key if `gang_secret` is not empty."""
    token = {"audience": names.TOKEN_AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": "token"}
    sources: list[Mapping[str, Any]] = [{"serviceAccountToken": token}]
    if gang_secret:
        sources.append({"secret": {"name": gang_secret, "items": [{"key": GANG_KEY, "path": GANG_KEY}]}})
    return {"name": _TOKEN_VOLUME, "projected": {"sources": sources}}
