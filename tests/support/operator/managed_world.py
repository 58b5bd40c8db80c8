"""A Job that is managed, with its TrainingJob: the part of the Job's own controller is played by `control`."""

import copy
from dataclasses import replace
from typing import Any

from support.operator.objects import START, Json
from support.operator.world import World
from synergy_api import names
from synergy_api.timestamps import format_time
from synergy_operator.actions import Action, ClaimPod, SetSuspended
from synergy_operator.job.managed.adopt import training_job
from synergy_operator.views.observed import Observed
from synergy_operator.views.owners.kinds import KINDS
from synergy_operator.views.owners.view import OwnerView, read_owner
from synergy_operator.views.pod import read_pod

JOB = KINDS["Job"]
SUSPENDED: Json = {"type": "Suspended", "status": "True"}
"""The condition by which a controller notes the suspension."""


def job_template(gpus: int = 1, **resources: str) -> Json:
    """A pod template with GPUs."""
    limits = {"nvidia.com/gpu": str(gpus), **resources}
    return {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}]}
    }


def managed_job(*, marked: bool = True, annotations: Json | None = None, **spec: Any) -> Json:
    """A suspended Job with the label, as the operator leaves it."""
    item: Json = {
        "metadata": {
            "namespace": "team",
            "name": "j",
            "uid": "uid-j",
            "resourceVersion": "1",
            "labels": {names.LABEL_MANAGED: "true"},
            "annotations": annotations or {},
        },
        "spec": {"parallelism": 2, "completions": 2, "suspend": True, "template": job_template(), **spec},
        "status": {"conditions": [SUSPENDED]},
    }
    wanted = read_owner(JOB, item).marked_spec
    return {**item, "spec": dict(wanted)} if marked and wanted is not None else item


class ManagedWorld(World):
    """The TrainingJob of `owner` in its world."""

    def __init__(self, owner: Json | None = None) -> None:
        self.owner: Json | None = owner or managed_job()
        view = read_owner(JOB, self.owner)
        manifest = training_job(view)
        super().__init__(name=view.job, **manifest["spec"])
        self.job["metadata"]["ownerReferences"] = manifest["metadata"]["ownerReferences"]
        self._made = 0

    @property
    def owner_view(self) -> OwnerView:
        assert self.owner is not None
        return read_owner(JOB, self.owner)

    def observe(self) -> Observed:
        """As the controller would hand it over."""
        pods = [read_pod(pod) for _, pod in sorted(self.pods.items())]
        claimed = tuple(pod for pod in pods if pod.owner == self.view.uid)
        waiting = tuple(pod for pod in pods if pod.run < 0 and pod.gated and not pod.terminal)
        owner = self.owner_view if self.owner is not None else None
        return replace(super().observe(), pods=claimed, owner=owner, unclaimed=waiting)

    def _do(self, action: Action) -> None:
        match action:
            case SetSuspended():
                assert self.owner is not None
                self.owner["spec"]["suspend"] = action.suspended
                self._touch(self.owner)
            case ClaimPod():
                pod = self.pods[action.name]
                pod["metadata"]["labels"] |= {names.LABEL_RUN: str(action.run), names.LABEL_RANK: str(action.rank)}
                told = {names.ANNOTATION_PLANNED_NODE: action.node, names.ANNOTATION_JOB_UID: action.job_uid}
                pod["metadata"]["annotations"] |= told
                pod["spec"]["affinity"] = {"nodeAffinity": action.node_affinity}
                self._touch(pod)
            case _:
                super()._do(action)

    def control(self) -> None:
        """The Job controller makes pods up to the parallelism, or deletes those of a suspended Job."""
        assert self.owner is not None
        spec = self.owner["spec"]
        alive = [name for name, pod in self.pods.items() if pod["status"]["phase"] not in ("Succeeded", "Failed")]
        if spec["suspend"]:
            for name in alive:
                self.delete(name)
            return
        done = sum(pod["status"]["phase"] == "Succeeded" for pod in self.pods.values())
        for _ in range(min(spec["parallelism"], spec["completions"] - done) - len(alive)):
            self._made += 1
            template = copy.deepcopy(spec["template"])
            reference = {"uid": "uid-j", "controller": True}
            for container in template["spec"]["containers"]:
                container["resources"]["requests"] = container["resources"]["limits"]  # as the API server does
            template["metadata"] |= {"name": f"j-{self._made:03}", "namespace": "team", "ownerReferences": [reference]}
            self._create(self.pods, template)
        self.owner["status"] = {"succeeded": done, "startTime": format_time(START)}
        self._touch(self.owner)

    def ends(self, kind: str, message: str = "") -> None:
        """The Job controller notes the Job's end."""
        assert self.owner is not None
        self.owner["status"]["conditions"] = [{"type": kind, "status": "True", "message": message}]
        self._touch(self.owner)

    def bring_up(self) -> None:
        """The plan's place is granted, and all pods run there."""
        self.settle()
        self.grant(("n1", 1, 1000, 1), ("n2", 1, 1000, 1))
        self.settle()
        self.control()
        self.run_all()
