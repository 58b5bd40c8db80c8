"""The one problem of a job, as `kubectl get -o wide` and `kubectl describe` show it first; and that it is told once."""

import json
from typing import Any

import pytest

from support.operator.objects import node
from support.operator.world import World
from synergy_api.resources.scheduling_policy import PolicyName, SchedulingPolicySpec, TenantShare

CONTAINER: dict[str, Any] = {"name": "train", "image": "i", "command": ["c"]}


def problem(world: World) -> str:
    """The reason of the job's problem, empty where it has none."""
    return world.status.problem.reason if world.status.problem else ""


def test_a_job_that_is_not_valid_shows_why_and_no_more_once_it_is() -> None:
    world = World([node("n1", gpus=4)], gpus=8)
    world.settle()
    assert problem(world) == "TooManyGPUs"
    assert world.status.problem is not None
    assert world.status.problem.message == world.message("Valid")
    world.nodes["n2"] = node("n2", gpus=4)
    world.settle()
    assert problem(world) == ""


def test_a_job_that_failed_shows_what_its_last_run_failed_of() -> None:
    world = World(backoffLimit=0)
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", 3)
    world.settle()
    assert world.status.phase == "Failed"
    assert problem(world) == "WorkerFailed"
    assert world.status.problem is not None
    assert "spec.backoffLimit is 0" in world.status.problem.message
    assert "look at the log of pod job-1-0" in world.status.problem.message


def test_a_job_that_could_not_be_measured_shows_why_and_says_it_once() -> None:
    world = World(profile={"mode": "Auto"})
    world.settle()
    for attempt in ("", "b"):
        if not attempt:
            world.grant(("n1", 1, 12000, 8), purpose="Profile")
        world.settle()
        name = next(name for name in sorted(world.jobs) if not world.jobs[name]["status"])
        world.bind(f"{name}-x")
        world.start(f"{name}-x")
        crash = {"outcome": "failed", "reason": "Crashed", "message": "exit code 3", "exit_code": 3, "log_tail": "T"}
        world.exit(f"{name}-x", 1, json.dumps(crash))
        world.finish_job(name, failed="BackoffLimitExceeded")
        world.settle()
    assert world.status.phase == "Failed"
    assert problem(world) == "ProfileCrashed"
    assert sorted(world.posted()) == ["ProfileCrashed", "ProfileFailed", "ProfileWaiting"]


def test_a_job_that_waits_its_turn_or_runs_has_no_problem() -> None:
    world = World()
    world.settle()
    assert problem(world) == ""
    world.grant()
    world.run_all()
    assert (world.status.phase, problem(world)) == ("Running", "")


def test_what_the_planner_says_can_never_be_becomes_condition_event_and_problem() -> None:
    world = World()
    world.settle()
    message = "no node that may take new jobs is open to it: widen the selection."
    world.job["status"]["queue"] = {"position": 1, "reason": "NoAllowedNode", "message": message}
    world.settle()
    assert (world.reason("Running"), world.message("Running")) == ("NoAllowedNode", message)
    assert world.posted() == ["NoAllowedNode"]
    assert problem(world) == "NoAllowedNode"
    world.job["status"]["queue"] = {"position": 1, "reason": "NoFreeGPU", "message": "needs 1 GPU"}
    world.settle()
    assert (world.reason("Running"), problem(world)) == ("NoFreeGPU", "")


def test_a_failure_is_not_told_again_when_a_suspended_job_goes_on() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", 3)
    world.settle()
    world.edit(lambda spec: spec.update(suspend=True))
    world.settle()
    world.edit(lambda spec: spec.update(suspend=False))
    world.settle()
    assert world.posted().count("WorkerFailed") == 1


OVERRIDDEN: dict[str, tuple[dict[str, Any], str]] = {
    "another scheduler": ({"schedulerName": "other"}, "spec.template.spec.schedulerName"),
    "another restart policy": ({"restartPolicy": "OnFailure"}, "spec.template.spec.restartPolicy"),
    "a host name": ({"hostname": "me"}, "spec.template.spec.hostname"),
    "sizes of the whole pod": ({"resources": {"limits": {"cpu": "1"}}}, "spec.template.spec.resources"),
    "a CPU limit": ({"first": {"resources": {"limits": {"cpu": "1"}}}}, "containers[0].resources.limits.cpu"),
    "a memory request": (
        {"first": {"resources": {"requests": {"memory": "1Gi"}}}},
        "containers[0].resources.requests.memory",
    ),
    "other GPUs": (
        {"first": {"resources": {"limits": {"nvidia.com/gpu": 7}}}},
        "containers[0].resources.limits['nvidia.com/gpu']",
    ),
    "a resize policy": (
        {"first": {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}},
        "containers[0].resizePolicy",
    ),
    "a rank": ({"first": {"env": [{"name": "RANK", "value": "9"}]}}, "containers[0].env RANK"),
    "a label of ours": (
        {"metadata": {"labels": {"kube-synergy.dev/job": "x"}}},
        "spec.template.metadata.labels kube-synergy.dev/job",
    ),
}


@pytest.mark.parametrize("case", OVERRIDDEN)
def test_what_the_plan_overrides_is_warned_of_and_the_job_is_planned(case: str) -> None:
    fields, words = OVERRIDDEN[case]
    pod = {key: value for key, value in fields.items() if key not in ("first", "metadata")}
    first = {**CONTAINER, **fields.get("first", {})}
    template = {"spec": {"containers": [first], **pod}, "metadata": fields.get("metadata", {})}
    world = World(template=template)
    world.settle()
    assert world.status.phase == "Queued"
    assert world.reason("Valid") == "FieldsOverridden"
    assert words in world.message("Valid")
    assert world.posted() == ["FieldsOverridden"]
    assert problem(world) == ""


@pytest.mark.parametrize(("gpus", "reason"), [(1, "Accepted"), (2, "FieldsOverridden")])
def test_the_local_rank_is_the_users_in_a_job_of_one_gpu(gpus: int, reason: str) -> None:
    first = {**CONTAINER, "env": [{"name": "LOCAL_RANK", "value": "0"}]}
    world = World(gpus=gpus, template={"spec": {"containers": [first]}})
    world.settle()
    assert world.reason("Valid") == reason


def test_the_hash_of_a_submitted_script_is_used_and_not_warned_of() -> None:
    template = {"metadata": {"annotations": {"kube-synergy.dev/script": "c0ffee"}}, "spec": {"containers": [CONTAINER]}}
    world = World(template=template)
    world.settle()
    assert world.reason("Valid") == "Accepted"


def _by_tenants(*names: str, policy: PolicyName = "hierarchical") -> SchedulingPolicySpec:
    return SchedulingPolicySpec(policy=policy, tenants=[TenantShare(name=name) for name in names])


def test_a_tenant_that_the_policy_does_not_name_is_warned_of_and_the_job_is_planned() -> None:
    world = World(tenant="visoin")
    world.policy = _by_tenants("vision", "speech")
    world.settle()
    assert world.status.phase == "Queued"
    assert world.reason("Valid") == "TenantNotNamed"
    assert "spec.tenant is visoin" in world.message("Valid")
    assert "(vision, speech)" in world.message("Valid")
    assert world.posted() == ["TenantNotNamed"]
    assert problem(world) == ""
    world.policy = _by_tenants("vision", "speech", "visoin")
    world.settle()
    assert world.reason("Valid") == "Accepted"


def test_of_many_tenants_the_first_are_named() -> None:
    world = World(tenant="visoin")
    world.policy = _by_tenants(*(f"t{index}" for index in range(200)))
    world.settle()
    assert "(t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, ...)" in world.message("Valid")


@pytest.mark.parametrize(
    ("tenant", "policy"),
    [
        ("", _by_tenants("vision")),
        ("vision", _by_tenants("vision")),
        ("other", _by_tenants()),
        ("other", _by_tenants("vision", policy="las")),
    ],
    ids=["a job that names none", "one that is named", "a policy without tenants", "a policy of another kind"],
)
def test_a_tenant_is_not_warned_of_where_it_makes_no_difference(tenant: str, policy: SchedulingPolicySpec) -> None:
    world = World(tenant=tenant)
    world.policy = policy
    world.settle()
    assert world.reason("Valid") == "Accepted"


def test_what_agrees_with_the_plan_is_not_warned_of() -> None:
    first = {**CONTAINER, "resources": {"limits": {"nvidia.com/gpu": "1"}}, "env": [{"name": "DATA", "value": "/d"}]}
    pod = {"containers": [first], "schedulerName": "kube-synergy", "restartPolicy": "Never"}
    world = World(template={"spec": pod})
    world.settle()
    assert world.reason("Valid") == "Accepted"
    assert world.posted() == []


def test_sizes_of_the_whole_pod_do_not_reach_it() -> None:
    pod = {"containers": [CONTAINER], "resources": {"requests": {"cpu": "64"}}}
    world = World(template={"spec": pod})
    world.settle()
    world.grant()
    world.settle()
    assert "resources" not in world.pods["job-1-0"]["spec"]


def test_an_init_container_that_outgrows_a_smaller_share_fails_the_run_with_its_name() -> None:
    init = {"name": "fetch", "image": "i", "resources": {"requests": {"memory": "6Gi"}}}
    world = World(template={"spec": {"containers": [CONTAINER], "initContainers": [init]}})
    world.settle()
    assert world.reason("Valid") == "Accepted"
    world.grant(("n1", 1, 3000, 4))
    world.settle()
    assert world.reason("Running") == "InitContainerTooLarge"
    assert "init container fetch needs 0 CPU and 6Gi memory" in world.message("Running")
    assert world.pod_names() == []
