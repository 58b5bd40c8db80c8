"""The TrainingJob of a managed object."""

from typing import Any

from synergy_api.amounts import DIMENSIONS
from synergy_api.names import API_VERSION
from synergy_operator.views.owners.kinds import KINDS
from synergy_operator.views.owners.view import OwnerView


def training_job(owner: OwnerView) -> dict[str, Any]:
    """The manifest. The plan gives exactly what the pods ask for, and assumes nothing about how long they train."""
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
