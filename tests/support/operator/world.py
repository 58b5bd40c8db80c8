"""A small world for the operator's pure reconcile: the objects as JSON, the extender, the scheduler and the kubelet as
plain method calls, and a clock that only the test moves.

Nothing here stands in for the API server's own behaviour beyond what the reconcile reads back: it exists to put the
reconcile into every situation, also those that a real cluster shows once a year.
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from support.operator.before import jobs_before
from support.operator.objects import START, Json, job_manifest, node, workers_json
from support.operator.wire import check_wire
from support.planner.reasons import check_event, check_status
from synergy_api import names
from synergy_api.resources.scheduling_policy import Profiling, SchedulingPolicySpec
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_api.timestamps import format_time, parse_time
from synergy_operator.actions import (
    Action,
    Actions,
    ApplyStatus,
    ConfirmUnbound,
    CreateJob,
    CreatePod,
    DeleteJob,
    DeletePod,
    DeleteTrainingJob,
    PostEvent,
    PublishProfile,
    ReadWarning,
    ResizePod,
    UngatePod,
)
from synergy_operator.edge.caches.pod_events import PodEventCache
from synergy_operator.edge.caches.profile_candidates import ProfileCandidates
from synergy_operator.job.reconcile import reconcile
from synergy_operator.profile.known_profiles import check_profile
from synergy_operator.profile.pairs.references import reference_of
from synergy_operator.views.annotations import ANNOTATION_UNGATED_AT
from synergy_operator.views.batch_job import read_batch_job
from synergy_operator.views.cluster import ClusterView, read_cluster
from synergy_operator.views.job import JobView, read_job
from synergy_operator.views.known_profile import KnownProfile
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView, read_pod
from synergy_operator.views.refusals import Refusals
from synergy_operator.views.settings import WorkerSettings
from synergy_operator.views.stored_job import Reference, StoredJob

SETTINGS = WorkerSettings("example/profiler:1", "https://extender.example:9444", "PEM", "low")


EXTENDERS = ("allocation", "queue", "late", "restriction", "marks", "estimates", "progress")
"""The extender's part of a status."""


class World:
    """One TrainingJob with everything around it. `events` are those posted, `deleted` whether the job is gone,
    `complaints` the word and text of the newest warning event of a pod or profile Job, by its name, `partners` the
    pods of the jobs that have its GPU too."""

    def __init__(self, nodes: Iterable[Json] = (), name: str = "job", **spec: Any) -> None:
        self.now = START
        self.job = job_manifest(name, **spec)
        self.pods: dict[str, Json] = {}
        self.jobs: dict[str, Json] = {}
        self.nodes = {item["metadata"]["name"]: item for item in (list(nodes) or [node("n1"), node("n2")])}
        self.pools: list[Json] = []
        self.profiles: dict[str, tuple[KnownProfile, ...]] = {}
        self.candidates = ProfileCandidates()
        self.profiling = Profiling()
        self.settings = SETTINGS
        self.policy = SchedulingPolicySpec()
        self.refusals = Refusals()
        self.resizable = True
        self.partners: tuple[PodView, ...] = ()
        self.told_in = 0.0
        self.references: tuple[StoredJob, ...] = ()
        """Other jobs of the namespace that are references."""
        self.others: dict[str, Json] = {}
        """Other jobs of the namespace, by name."""
        self.pod_events = PodEventCache()
        self.warnings: dict[str, tuple[str, str]] = {}
        self.image_id = ""
        self.events: list[PostEvent] = []
        self.deleted = False
        self.writes = 0
        self._version = 1

    # what there is to see

    @property
    def cluster(self) -> ClusterView:
        return read_cluster(
            self.nodes.values(), self.pools, self.policy.model_copy(update={"profiling": self.profiling})
        )

    @property
    def status(self) -> TrainingJobStatus:
        return self.view.status

    @property
    def view(self) -> JobView:
        return read_job(self.job)

    def observe(self) -> Observed:
        """All of it, as the controller would hand it to the reconcile."""
        return Observed(
            job=self.view,
            cluster=self.cluster,
            settings=self.settings,
            pods=tuple(read_pod(pod) for _, pod in sorted(self.pods.items())),
            batch_jobs=tuple(read_batch_job(job) for _, job in sorted(self.jobs.items())),
            profiles=self.profiles,
            candidates=self.candidates.by_fingerprint,
            refusals=self.refusals,
            pod_events=self.pod_events.of(self.view.key),
            resizable=self.resizable,
            partners=self.partners,
            told_in=self.told_in,
            references=tuple(filter(None, map(self._reference, self.references))),
            **jobs_before(self.view, self._other),
        )

    def _reference(self, stored: StoredJob) -> Reference | None:
        return reference_of(stored, stored.view(), self.profiling.demand_tolerance_percent)

    def _other(self, name: str) -> JobView | None:
        item = self.job if name == self.view.name else self.others.get(name)
        return read_job(item) if item is not None else None

    def reason(self, kind: str) -> str:
        """The reason of a condition, empty if it is not there."""
        return next((c.reason for c in self.status.conditions if c.type == kind), "")

    def message(self, kind: str) -> str:
        """The message of a condition."""
        return next((c.message for c in self.status.conditions if c.type == kind), "")

    def posted(self) -> list[str]:
        """The reasons of all events so far."""
        return [event.reason for event in self.events]

    def pod_names(self, run: int | None = None) -> list[str]:
        """Names of the pods, of one run if one is given."""
        wanted = None if run is None else str(run)
        labels = {name: pod["metadata"]["labels"] for name, pod in self.pods.items()}
        return sorted(name for name, own in labels.items() if wanted in (None, own[names.LABEL_RUN]))

    # the operator

    def step(self) -> Actions:
        """One reconcile, carried out."""
        actions = reconcile(self.observe(), self.now)
        self.carry_out(actions.todo)
        self.candidates.update(self.view.key, None if self.deleted else self.view)
        return actions

    def settle(self, most: int = 60) -> Actions:
        """Reconcile until there is nothing left to do; returns the last, empty outcome."""
        for _ in range(most):
            actions = self.step()
            if not actions.todo or self.deleted:
                return actions
        raise AssertionError(f"no fixed point: still wants {actions.todo}")

    def carry_out(self, actions: Iterable[Action]) -> None:
        """What the API server and its controllers do with the actions."""
        for action in actions:
            self._do(action)

    def _do(self, action: Action) -> None:
        if isinstance(action, UngatePod | ResizePod | ConfirmUnbound):
            if action.name in self.pods:  # else not found
                self._to_pod(action)
            return
        match action:
            case ApplyStatus():
                self._apply(action.status)
            case PostEvent():
                check_event(action.kind, action.reason)
                self.events.append(action)
            case ReadWarning():
                word, text = self.warnings.get(action.name, ("", ""))
                self.pod_events.asked(self.view.key, action.uid, self.now)
                self.pod_events.answer(self.view.key, action.uid, word, text, self.now)
            case CreatePod():
                self._create(self.pods, action.manifest)
            case CreateJob():
                self._create(self.jobs, action.manifest)
                self._make_profile_pod(action.manifest)
            case DeletePod():
                self._delete_pod(action)
            case DeleteJob():
                self.jobs.pop(action.name, None)
            case PublishProfile():
                self._publish(action)
            case DeleteTrainingJob():
                self.deleted = True

    def _to_pod(self, action: UngatePod | ResizePod | ConfirmUnbound) -> None:
        match action:
            case ConfirmUnbound():
                assert "nodeName" not in self.pods[action.name]["spec"], "no watch is late here"
            case UngatePod():
                pod = self.pods[action.name]
                pod["spec"]["schedulingGates"] = [{"name": gate} for gate in action.gates]
                pod["metadata"]["annotations"][ANNOTATION_UNGATED_AT] = format_time(action.at)
                self._touch(pod)
            case ResizePod():
                amounts = {"cpu": f"{action.amounts.cpu_millis}m", "memory": str(action.amounts.memory_bytes)}
                self.pods[action.name]["spec"]["containers"][0]["resources"]["requests"].update(amounts)
                self.pods[action.name]["metadata"]["generation"] += 1
                self._touch(self.pods[action.name])

    def _apply(self, status: TrainingJobStatus) -> None:
        check_status(status)
        wire = status.to_wire()
        check_wire(wire)
        extender = {k: v for k, v in self.job.get("status", {}).items() if k in EXTENDERS}
        self.job["status"] = {**wire, **extender}
        self.writes += 1
        self._touch(self.job)

    def _publish(self, action: PublishProfile) -> None:
        old = self.profiles.get(action.spec["fingerprint"], ())
        assert action.version == next((known.version for known in old if known.name == action.name), "")
        self._version += 1
        item = {"metadata": {"name": action.name, "resourceVersion": str(self._version)}, "spec": action.spec}
        others = (known for known in old if known.name != action.name)
        spec, finding = check_profile(item)
        assert spec is not None, finding
        self.profiles[action.spec["fingerprint"]] = (*others, KnownProfile(action.name, str(self._version), spec))

    def _create(self, into: dict[str, Json], manifest: Mapping[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        if name in into:
            return
        item = copy.deepcopy(dict(manifest))
        item["metadata"] |= {"uid": f"uid-{name}", "creationTimestamp": format_time(self.now), "generation": 1}
        item["status"] = {"phase": "Pending"} if into is self.pods else {}
        into[name] = item
        self._touch(item)

    def _make_profile_pod(self, manifest: Mapping[str, Any]) -> None:
        job, template = manifest["metadata"]["name"], copy.deepcopy(manifest["spec"]["template"])
        name = f"{job}-x"
        template["metadata"] |= {"name": name, "namespace": "team", "ownerReferences": []}
        template["metadata"]["labels"]["batch.kubernetes.io/job-name"] = job
        self._create(self.pods, template)

    def _delete_pod(self, action: DeletePod) -> None:
        pod = self.pods.get(action.name)
        if pod is None:
            return
        unbound = not pod["spec"].get("nodeName")
        if action.grace_seconds == 0 or unbound or pod["status"]["phase"] in ("Succeeded", "Failed"):
            del self.pods[action.name]
            return
        own = pod["spec"].get("terminationGracePeriodSeconds", 30)
        grace = own if action.grace_seconds is None else action.grace_seconds
        pod["metadata"]["deletionTimestamp"] = format_time(self.now + grace)
        self._touch(pod)

    def _touch(self, item: Json) -> None:
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)

    # the user and the extender

    def edit(self, change: Callable[[Json], object]) -> None:
        """The user changes the spec."""
        change(self.job["spec"])
        self.job["metadata"]["generation"] += 1
        self._touch(self.job)

    def grant(
        self,
        *shares: tuple[str, int, int, int],
        purpose: str = "Train",
        admitted: bool = True,
        gpu_type: str = "V100",
        lease_in: float = 300.0,
    ) -> int:
        """The plan gives the job a place: (node, GPUs, milli-CPU, GiB) for each node. Returns the run's number."""
        service = self.status.service
        old = self.job.get("status", {}).get("allocation") or {}
        run = max(old.get("run", 0), service.run if service else 0) + 1
        self.allocate(
            run=run,
            purpose=purpose,
            state="Granted",
            admitted=admitted,
            leaseUntil=format_time(self.now + lease_in),
            gpuType=gpu_type,
            workers=[workers_json(*share) for share in shares or (("n1", 1, 3000, 8),)],
        )
        return int(run)

    def allocate(self, **fields: Any) -> None:
        """The extender changes fields of the allocation."""
        status = self.job.setdefault("status", {})
        status["allocation"] = {**(status.get("allocation") or {}), **fields}
        self._touch(self.job)

    def apply_allocation(self, allocation: Json) -> None:
        """The extender writes the allocation anew: a field that it leaves out is gone."""
        self.job.setdefault("status", {})["allocation"] = dict(allocation)
        self._touch(self.job)

    def queue(self, reason: str, message: str = "", position: int = 1) -> None:
        """The extender says why the job waits."""
        told = {"position": position, "reason": reason, "message": message}
        self.job.setdefault("status", {})["queue"] = told
        self._touch(self.job)

    def revoke(self, lease_in: float = 0.0) -> None:
        """The plan takes the place back at the lease's end."""
        self.allocate(state="Revoked", leaseUntil=format_time(self.now + lease_in), reason="another job is first")

    # the scheduler, the kubelet and time

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds

    def bind(self, *pods: str) -> None:
        """kube-scheduler binds pods, all ungated ones if none are named."""
        for name in pods or [n for n, p in self.pods.items() if not p["spec"].get("schedulingGates")]:
            pod = self.pods[name]
            terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            pod["spec"]["nodeName"] = terms["nodeSelectorTerms"][0]["matchFields"][-1]["values"][0]
            scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(self.now)}
            pod["status"]["conditions"] = [scheduled]
            self._touch(pod)

    def cannot_bind(self, name: str, message: str) -> None:
        """kube-scheduler finds no room for a pod."""
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        self.pods[name]["status"]["conditions"] = [condition]
        self._touch(self.pods[name])

    def start(self, *pods: str) -> None:
        """The kubelet starts pods, all bound ones that have not run if none are named."""
        for name in pods or [n for n, p in self.pods.items() if self._startable(p)]:
            pod = self.pods[name]
            pod["status"]["phase"] = "Running"
            self._container(pod, {"running": {"startedAt": format_time(self.now)}})

    def run_all(self) -> None:
        """Reconcile, bind and start whatever there is, until all of it runs."""
        self.settle()
        self.bind()
        self.start()
        self.settle()

    def stuck(self, name: str, reason: str, message: str = "") -> None:
        """A container of the pod cannot start."""
        self._container(self.pods[name], {"waiting": {"reason": reason, "message": message}})

    def exit(self, name: str, code: int, message: str = "", reason: str = "") -> None:
        """The pod's container ends of itself."""
        pod = self.pods[name]
        old = (pod["status"].get("containerStatuses") or [{"state": {}}])[0]["state"]
        ended = {
            "exitCode": code,
            "startedAt": old.get("running", {}).get("startedAt", format_time(self.now)),
            "finishedAt": format_time(self.now),
            "message": message,
            "reason": reason or ("Completed" if code == 0 else "Error"),
        }
        alone = len(pod["spec"]["containers"]) == 1
        if alone:
            pod["status"]["phase"] = "Succeeded" if code == 0 else "Failed"
        self._container(pod, {"terminated": ended})

    def refuse(self, name: str, reason: str, message: str = "") -> None:
        """The kubelet refuses or evicts the pod."""
        self.pods[name]["status"] = {"phase": "Failed", "reason": reason, "message": message}
        self._touch(self.pods[name])

    def delete(self, name: str) -> None:
        """Somebody deletes the pod; it goes once `reap` is called."""
        self._delete_pod(DeletePod(name, ""))

    def reap(self) -> None:
        """The kubelets end what is deleted."""
        for name, pod in list(self.pods.items()):
            if "deletionTimestamp" in pod["metadata"]:
                self.pod_events.pod_deleted(self.view.key, read_pod(pod))
                del self.pods[name]

    def finish_job(self, name: str, *, failed: str = "") -> None:
        """The Job controller sees the end of a profile Job's pod."""
        kind = (
            {"type": "Failed", "status": "True", "reason": failed} if failed else {"type": "Complete", "status": "True"}
        )
        self.jobs[name]["status"] = {"conditions": [kind]}
        self._touch(self.jobs[name])

    def set_pod(self, name: str, **status: Any) -> None:
        """Set fields of a pod's status."""
        self.pods[name]["status"].update(status)
        self._touch(self.pods[name])

    def _startable(self, pod: Json) -> bool:
        return bool(pod["spec"].get("nodeName")) and "containerStatuses" not in pod["status"]

    def _container(self, pod: Json, state: Json) -> None:
        shown = {"name": pod["spec"]["containers"][0]["name"], "state": state, "imageID": self.image_id}
        pod["status"]["containerStatuses"] = [shown]
        self._touch(pod)


def attained(status: TrainingJobStatus, gpus: int, now: float) -> float:
    """Attained GPU seconds at a time, as the contract defines them."""
    service = status.service
    if service is None:
        return 0.0
    open_seconds = now - parse_time(service.running_since) if service.running_since else 0.0
    return service.attained_gpu_seconds + max(0.0, open_seconds) * gpus


def two_workers(**spec: Any) -> World:
    """A job of two GPUs with one per worker, on one node."""
    world = World(gpus=2, gpusPerWorker=1, **spec)
    world.settle()
    world.grant(("n1", 2, 6000, 16))
    return world
