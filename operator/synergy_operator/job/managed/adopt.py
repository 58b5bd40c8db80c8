"""The TrainingJob of a managed object."""

from collections.abc import Sequence
from typing import Any, Final

from synergy_api.amounts import DIMENSIONS
from synergy_api.names import API_VERSION
from synergy_operator.views.owners.kinds import KINDS
from synergy_operator.views.owners.view import OwnerView

MOST_TYPES: Final = 16
"""GPU types that a TrainingJob can name."""


def training_job(owner: OwnerView, gpu_types: Sequence[str] = ()) -> dict[str, Any]:
    """The manifest. The plan gives exactly what the pods ask for, and assumes nothing about how long they train.

    `gpu_types` are those that it may have; empty for all.
    """
    kind = KINDS[owner.kind]
    controller = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    whole = {
        one.spec_field: one.format(getattr(owner.requests, one.field) * owner.workers)
        for one in DIMENSIONS
        if getattr(owner.requests, one.field)
    }
    spec: dict[str, Any] = {
        "gpus": owner.requests.gpus * owner.workers,
        "gpusPerWorker": owner.requests.gpus,
        "steps": 1,
        "profile": {"mode": "Skip"},
        "preemption": "Signal" if owner.preemptible else "Never",
        "managed": {"apiVersion": kind.api_version, "kind": kind.name, "name": owner.name},
        "template": owner.template,
    }
    if gpu_types:
        spec["gpuTypes"] = list(gpu_types)[:MOST_TYPES]
    if whole:
        spec["resources"] = {"min": whole, "max": whole}
    priority = (owner.template.get("spec") or {}).get("priorityClassName")
    if priority:
        spec["priorityClassName"] = priority
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"name": owner.job, "namespace": owner.namespace, "ownerReferences": [controller]},
        "spec": spec,
    }
