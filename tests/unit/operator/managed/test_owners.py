"""What the operator reads of managed objects, and what it does until they have their TrainingJob."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from support.operator.managed_world import JOB, SUSPENDED, ManagedWorld, job_template, managed_job
from support.operator.objects import Json, node
from synergy_api import names
from synergy_api.reasons import Reason
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_operator.actions import AdoptOwner, MarkOwner, SetSuspended, ShowOnOwner
from synergy_operator.job.managed.adopt import training_job
from synergy_operator.job.managed.follow import follow_owner
from synergy_operator.views.cluster import read_cluster
from synergy_operator.views.owners.kinds import KINDS
from synergy_operator.views.owners.view import OwnerView, job_name, read_owner


def owner(**spec: Any) -> OwnerView:
    return read_owner(JOB, managed_job(**spec))


def of(kind: str, spec: Json, status: Json | None = None) -> OwnerView:
    metadata = {"namespace": "team", "name": "x", "uid": "u", "resourceVersion": "1"}
    return read_owner(KINDS[kind], {"metadata": metadata, "spec": spec, "status": status or {}})


class TestJob:
    def test_its_workers_are_the_pods_that_run_at_once(self) -> None:
        view = owner(parallelism=3, completions=2, template=job_template(2, cpu="1500m", memory="1Gi"))
        assert (view.workers, view.expected, view.problem) == (2, 2, "")
        assert (view.requests.gpus, view.requests.cpu_millis, view.requests.memory_bytes) == (2, 1500, 1 << 30)
        spec = TrainingJobSpec.model_validate(training_job(view)["spec"])
        assert (spec.gpus, spec.gpus_per_worker, spec.preemption) == (4, 2, "Never")
        assert spec.resources.min == spec.resources.max
        assert (spec.resources.min.cpu, spec.resources.min.memory) == ("3", "2Gi")

    def test_a_nearly_complete_one_expects_fewer_pods(self) -> None:
        item = managed_job(parallelism=4, completions=10)
        item["status"] = {"succeeded": 8}
        assert (read_owner(JOB, item).workers, read_owner(JOB, item).expected) == (4, 2)

    def test_an_annotation_lets_plans_preempt_it(self) -> None:
        view = owner(annotations={names.ANNOTATION_PREEMPTIBLE: "true"})
        assert training_job(view)["spec"]["preemption"] == "Signal"

    def test_the_pods_class_is_the_job_s(self) -> None:
        template = job_template()
        template["spec"]["priorityClassName"] = "high"
        assert training_job(owner(template=template))["spec"]["priorityClassName"] == "high"

    @pytest.mark.parametrize(
        ("spec", "problem"),
        [
            ({"template": {"spec": {"containers": [{"name": "c"}]}}}, "none of its pods asks for nvidia.com/gpu"),
            ({"template": job_template(cpu="much")}, "much"),
            ({"template": 5}, "its pod template cannot be read"),
        ],
    )
    def test_what_cannot_be_planned_is_its_problem(self, spec: Json, problem: str) -> None:
        view = owner(marked=False, **spec)
        assert problem in view.problem
        (shown,) = follow_owner(view, None)
        assert isinstance(shown, ShowOnOwner)
        assert (shown.text, shown.event, shown.reason) == ("NotManaged", "Warning", Reason.NOT_MANAGED)
        assert problem in shown.message
        assert follow_owner(replace(view, shown="NotManaged"), None) == ()

    def test_one_that_kueue_suspends_too_is_left_to_it(self) -> None:
        item = managed_job()
        item["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team"
        assert "only one of both" in read_owner(JOB, item).problem

    @pytest.mark.parametrize(
        ("kind", "spec"),
        [
            ("Job", {"managedBy": "kueue.x-k8s.io/multikueue"}),
            ("PyTorchJob", {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}),
        ],
    )
    def test_one_that_its_own_controller_leaves_alone_is_a_problem(self, kind: str, spec: Json) -> None:
        assert "leaves it to kueue.x-k8s.io/multikueue" in of(kind, spec).problem

    def test_one_may_name_its_own_controller(self) -> None:
        assert owner(managedBy="kubernetes.io/job-controller").problem == ""

    def test_names_that_do_not_fit_end_with_a_hash(self) -> None:
        assert job_name("Job", "train") == "job-train"
        long, dotted = job_name("Job", "t" * 63), job_name("Job", "a.b")
        assert len(long) == names.MAX_JOB_NAME
        assert "." not in dotted
        assert job_name("Job", "a-b") != dotted


class TestGpuTypes:
    """The template says nvidia.com/gpu, and no plan can change that."""

    def test_it_gets_types_whose_gpus_have_that_name_and_are_whole(self) -> None:
        amd = {"nodeSelector": {"of": "amd"}, "gpuType": "MI300X", "devices": {"resource": "amd.com/gpu"}}
        shared = {"nodeSelector": {"of": "t4"}, "gpuType": "T4", "sharing": {"mode": "MPS", "replicas": 2}}
        pools = [{"metadata": {"name": name}, "spec": spec} for name, spec in (("amd", amd), ("t4", shared))]
        plain, other, both = node("plain"), node("other"), node("both")
        other["metadata"]["labels"]["of"], both["metadata"]["labels"]["of"] = "amd", "t4"
        other["status"]["allocatable"]["amd.com/gpu"] = "8"

        def types(*nodes: Json) -> tuple[str, ...] | None:
            return read_cluster(nodes, pools, SchedulingPolicySpec()).types_of_templates

        kind = read_cluster([plain], pools, SchedulingPolicySpec()).nodes[0].gpu_type
        assert types(plain, other, both) == (kind,)
        assert types(plain) == types() == ()
        assert types(other) is None
        assert training_job(owner(), (kind,))["spec"]["gpuTypes"] == [kind]
        assert "gpuTypes" not in training_job(owner(), ())["spec"]

    def test_without_any_it_is_told(self) -> None:
        (shown,) = follow_owner(owner(), None, None)
        assert isinstance(shown, ShowOnOwner)
        assert "no node offers whole GPUs by the name nvidia.com/gpu" in shown.message


class TestAdoption:
    def test_it_is_suspended_marked_and_adopted_one_after_the_other(self) -> None:
        item = managed_job(marked=False, suspend=False)
        assert follow_owner(read_owner(JOB, item), None) == (SetSuspended("Job", "j", "uid-j", True),)
        item["spec"]["suspend"] = True
        item["status"] = {"active": 1, "startTime": "2026-01-01T00:00:00Z"}
        assert follow_owner(read_owner(JOB, item), None) == ()
        item["status"] = {"startTime": "2026-01-01T00:00:00Z"}
        assert follow_owner(read_owner(JOB, item), None) == ()
        item["status"]["conditions"] = [SUSPENDED]
        (mark,) = follow_owner(read_owner(JOB, item), None)
        assert isinstance(mark, MarkOwner)
        item["spec"] = copy.deepcopy(dict(mark.spec))
        template = item["spec"]["template"]
        assert template["metadata"]["labels"] == {names.LABEL_JOB: "job-j", names.LABEL_ROLE: "worker"}
        assert template["spec"]["schedulingGates"] == [{"name": names.GATE}]
        (adopt,) = follow_owner(read_owner(JOB, item), None)
        assert isinstance(adopt, AdoptOwner)
        manifest = adopt.manifest
        assert manifest["metadata"]["ownerReferences"][0]["uid"] == "uid-j"
        assert manifest["spec"]["managed"] == {"apiVersion": "batch/v1", "kind": "Job", "name": "j"}
        assert manifest["spec"]["template"] == job_template()

    def test_marks_leave_what_is_there(self) -> None:
        template = job_template()
        template["metadata"] = {"labels": {"a": "b", "job-name": "j"}, "annotations": {"c": "d"}}
        template["spec"]["schedulingGates"] = [{"name": "other"}]
        item = managed_job(template=template)
        marked = item["spec"]["template"]
        assert marked["metadata"]["labels"]["a"] == "b"
        assert marked["spec"]["schedulingGates"] == [{"name": "other"}, {"name": names.GATE}]
        assert read_owner(JOB, item).template["metadata"] == {"labels": {"a": "b"}, "annotations": {"c": "d"}}

    def test_one_that_has_ended_or_goes_is_left_alone(self) -> None:
        view = owner()
        assert follow_owner(replace(view, deleting=True), None) == ()
        assert follow_owner(replace(view, succeeded=True), None) == ()
        assert follow_owner(replace(view, failed=True), None) == ()

    def test_its_state_is_shown_when_it_changes(self) -> None:
        world = ManagedWorld()
        assert follow_owner(world.owner_view, world.view) == ()
        world.settle()
        (shown,) = follow_owner(world.owner_view, world.view)
        assert isinstance(shown, ShowOnOwner)
        assert shown.text == "Queued: WaitingForPlan"
        assert "TrainingJob job-j is Queued" in shown.message
        assert follow_owner(replace(world.owner_view, shown=shown.text), world.view) == ()

    def test_a_training_job_of_somebody_else_is_no_match(self) -> None:
        world = ManagedWorld()
        (shown,) = follow_owner(world.owner_view, replace(world.view, controller="other"))
        assert isinstance(shown, ShowOnOwner)
        assert "exists and is not its own" in shown.message


class TestOtherKinds:
    @pytest.mark.parametrize(
        ("kind", "active"),
        [
            ("Job", {"active": 1}),
            ("JobSet", {"replicatedJobsStatus": [{"active": 0}, {"active": 1}]}),
            ("PyTorchJob", {"replicaStatuses": {"Master": {"active": 0}, "Worker": {"active": 1}}}),
            ("TrainJob", {"jobsStatus": [{"active": 1}]}),
        ],
    )
    def test_one_has_pods_until_its_controller_notes_the_suspension_and_reports_none(
        self, kind: str, active: Json
    ) -> None:
        noted = {"conditions": [SUSPENDED]}
        assert of(kind, {}, {**active, **noted}).active
        assert of(kind, {}, {"conditions": [{**SUSPENDED, "status": "False"}]}).active
        assert of(kind, {}).active
        assert not of(kind, {}, noted).active

    def test_a_job_set_has_workers_in_several_jobs_and_a_driver_without_gpus_is_left_alone(self) -> None:
        driver = {"spec": {"containers": [{"name": "d"}]}}
        workers = {"parallelism": 2, "completions": 2, "template": job_template()}
        jobs = [
            {"name": "driver", "replicas": 1, "template": {"spec": {"template": driver}}},
            {"name": "w", "replicas": 2, "template": {"spec": workers}},
        ]
        view = of("JobSet", {"suspend": True, "replicatedJobs": jobs})
        assert (view.workers, view.suspended) == (4, True)
        assert view.marked_spec is not None
        first, second = (one["template"]["spec"]["template"] for one in view.marked_spec["replicatedJobs"])
        assert first == driver
        assert second["spec"]["schedulingGates"] == [{"name": names.GATE}]
        assert of("JobSet", dict(view.marked_spec)).marked_spec is None

    def test_a_pytorch_job_is_suspended_in_its_run_policy(self) -> None:
        replicas = {"Master": {"template": job_template()}, "Worker": {"replicas": 3, "template": job_template()}}
        spec = {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": replicas}
        view = of("PyTorchJob", spec, {"conditions": [{"type": "Succeeded", "status": "True"}]})
        assert (view.workers, view.suspended, view.succeeded) == (4, True, True)
        assert view.marked_spec is not None
        assert of("PyTorchJob", dict(view.marked_spec)).marked_spec is None

    def test_replicas_of_different_sizes_are_a_problem(self) -> None:
        replicas = {"Master": {"template": job_template()}, "Worker": {"template": job_template(2)}}
        view = of("PyTorchJob", {"pytorchReplicaSpecs": replicas})
        assert "different numbers of GPUs" in view.problem
        assert not view.suspended

    def test_a_train_job_is_marked_by_an_override_of_its_trainer(self) -> None:
        trainer = {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": "4", "cpu": "8"}}}
        other = {"targetJobs": [{"name": "dataset-initializer"}], "spec": {}}
        own = {"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"a": "b"}}}
        spec = {"suspend": True, "trainer": trainer, "podTemplateOverrides": [other, own]}
        view = of("TrainJob", spec)
        assert (view.workers, view.requests.gpus, view.requests.cpu_millis) == (2, 4, 8000)
        assert view.template["spec"]["nodeSelector"] == {"a": "b"}
        assert view.marked_spec is not None
        first, second = view.marked_spec["podTemplateOverrides"]
        assert first == other
        assert second["spec"]["schedulingGates"] == [{"name": names.GATE}]
        assert of("TrainJob", dict(view.marked_spec)).marked_spec is None

    def test_a_train_job_whose_gpus_only_its_runtime_knows_is_a_problem(self) -> None:
        assert "none of its pods asks" in of("TrainJob", {"runtimeRef": {"name": "torch"}}).problem
