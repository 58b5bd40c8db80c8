"""A training run from grant to release."""

import json

import pytest

from support.operator.world import World, two_workers
from synergy_api.names import ANNOTATION_MAY_START, ANNOTATION_OFFER, LABEL_HUB
from synergy_api.timestamps import parse_time
from synergy_operator.actions import CreatePod, DeletePod, EnsureGangKey, EnsureService, UngatePod


def test_a_new_job_without_a_profile_is_queued_and_waits_for_the_plan() -> None:
    world = World()
    world.settle()
    assert world.status.phase == "Queued"
    assert world.reason("Valid") == "Accepted"
    assert world.reason("Profiled") == "ProfileSkipped"
    assert world.reason("Running") == "WaitingForPlan"
    assert world.status.observed_generation == 1


def test_all_pods_are_made_before_any_gate_falls() -> None:
    world = two_workers()
    made = world.step()
    kinds = [type(action) for action in made.todo]
    assert kinds[:2] == [EnsureService, EnsureGangKey]
    assert kinds.count(CreatePod) == 2
    assert UngatePod not in kinds
    world.settle()
    assert world.status.service is not None
    assert world.status.service.run == 1
    assert all(not pod["spec"]["schedulingGates"] for pod in world.pods.values())


def test_a_job_of_one_gpu_needs_no_key_and_no_service() -> None:
    world = World()
    world.settle()
    world.grant()
    assert {type(action) for action in world.step().todo}.isdisjoint({EnsureGangKey, EnsureService})
    world.settle()
    (pod,) = world.pods.values()
    assert "subdomain" not in pod["spec"]
    env = {entry["name"]: entry.get("value") for entry in pod["spec"]["containers"][0]["env"]}
    assert (env["MASTER_ADDR"], env["PET_MASTER_ADDR"]) == ("127.0.0.1", "127.0.0.1")


def test_no_gate_falls_before_the_run_is_recorded() -> None:
    world = two_workers()
    world.step()
    recorded = world.step()
    assert UngatePod not in [type(action) for action in recorded.todo]
    assert UngatePod in [type(action) for action in world.step().todo]


def test_a_quick_start_is_written_twice_once_the_pods_are_there_and_once_they_run() -> None:
    world = World()
    world.settle()
    world.grant()
    written = world.writes
    world.settle()
    assert (world.writes, world.status.phase) == (written + 1, "Starting")
    world.bind("job-1-0")
    world.start("job-1-0")
    world.settle()
    assert (world.writes, world.status.phase) == (written + 2, "Running")


def test_that_a_gate_has_fallen_is_shown_where_the_worker_does_not_run_soon() -> None:
    world = World()
    world.settle()
    world.grant()
    wait = world.settle().requeue_after
    assert [worker.state for worker in world.status.workers] == ["Gated"]
    assert wait is not None
    assert wait <= 5.0
    world.wait(wait)
    world.settle()
    assert [worker.state for worker in world.status.workers] == ["Waiting"]
    assert world.reason("ResourcesAsPlanned") == "AsPlanned"


def test_gates_stay_until_the_place_is_really_free() -> None:
    world = World()
    world.settle()
    world.grant(admitted=False)
    world.settle()
    assert world.pods["job-1-0"]["spec"]["schedulingGates"] == [{"name": "kube-synergy.dev/place"}]
    assert world.status.phase == "Starting"
    assert world.reason("Running") == "WaitingForRoom"
    world.allocate(admitted=True)
    world.settle()
    assert world.pods["job-1-0"]["spec"]["schedulingGates"] == []


def test_a_gate_of_the_user_is_left_alone() -> None:
    container = {"name": "train", "image": "i", "command": ["c"]}
    template = {"spec": {"containers": [container], "schedulingGates": [{"name": "mine"}]}}
    world = World(template=template)
    world.settle()
    world.grant()
    world.settle()
    assert world.pods["job-1-0"]["spec"]["schedulingGates"] == [{"name": "mine"}]


def test_the_job_runs_once_every_worker_does() -> None:
    world = two_workers()
    world.settle()
    world.bind()
    world.start("job-1-0")
    world.settle()
    assert world.status.phase == "Starting"
    assert world.message("Running") == "run 1 starts: 1 of 2 workers run"
    world.wait(2)
    world.start("job-1-1")
    world.settle()
    assert world.status.phase == "Running"
    service = world.status.service
    assert service is not None
    assert service.running_since is not None
    assert parse_time(service.running_since) == world.now
    assert world.status.start_time == service.running_since
    assert [worker.state for worker in world.status.workers] == ["Running", "Running"]


def test_the_time_of_a_run_whose_place_was_spread_is_counted_as_such() -> None:
    world = two_workers()
    assert world.status.allocation is not None
    world.allocate(**{**world.status.allocation.to_wire(), "spread": True})
    world.run_all()
    world.wait(50)
    for rank in range(2):
        world.exit(f"job-1-{rank}", 0)
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.received_seconds == service.spread_seconds == {"V100": 50.0}


def test_a_job_that_its_script_ends_early_has_succeeded_and_says_why() -> None:
    world = two_workers()
    world.run_all()
    message = {
        "outcome": "finished",
        "step": 40,
        "trained_seconds": 49.5,
        "ended_early": "the loss is low " + "e" * 300,
    }
    world.exit("job-1-0", 0, json.dumps(message))
    world.exit("job-1-1", 0)
    world.settle()
    assert world.status.phase == "Succeeded"
    last = world.status.service.last if world.status.service is not None else None
    assert last is not None
    assert (last.step, last.trained_seconds) == (40, 49.5)
    assert last.ended_early == message["ended_early"][:200]
    assert last.reason.startswith("EndedEarly: run 1: the script ended training after step 40: the loss is low e")


def test_a_job_is_done_when_all_workers_ended_with_zero() -> None:
    world = two_workers()
    world.run_all()
    world.wait(50)
    world.exit("job-1-0", 0, json.dumps({"outcome": "finished", "step": 100}))
    world.settle()
    assert world.status.phase == "Running"
    world.wait(10)
    world.exit("job-1-1", 0)
    world.settle()
    service = world.status.service
    assert world.status.phase == "Succeeded"
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, service.last.step, service.last.exit_code) == ("Succeeded", 100, 0)
    assert service.ended_run == 1
    assert service.attained_gpu_seconds == pytest.approx(120.0)
    assert service.received_seconds == {"V100": 60.0}
    assert world.status.completion_time is not None
    assert world.reason("Finished") == "JobSucceeded"
    assert world.pod_names() == ["job-1-0", "job-1-1"], "the pods of the last run stay for their logs"


def test_a_run_so_short_that_it_was_never_seen_running_counts_all_the_same() -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.start()
    world.wait(5)
    world.exit("job-1-0", 0)
    world.settle()
    service = world.status.service
    assert service is not None
    assert world.status.phase == "Succeeded"
    assert service.attained_gpu_seconds == pytest.approx(5.0)
    assert world.status.start_time is not None


def test_workers_that_yield_at_the_lease_end_are_queued_again_with_their_step() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.revoke(lease_in=10)
    world.settle()
    assert world.status.phase == "Yielding"
    assert "another job is first" in world.message("Running")
    world.wait(10)
    world.exit("job-1-0", 75, json.dumps({"outcome": "yielded", "step": 42, "checkpoint_step": 42}))
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert world.status.phase == "Queued"
    assert (service.ended_run, service.preemptions, service.failures) == (1, 1, 0)
    assert (service.last.outcome, service.last.step, service.last.exit_code) == ("Yielded", 42, 75)
    assert service.retry_at is None
    assert world.pod_names() == [], "the pods of a run that yielded are deleted"
    assert "WorkersLeft" in world.posted()


def test_a_worker_with_the_library_has_thirty_seconds_beyond_its_lease() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.revoke(lease_in=10)
    assert world.settle().requeue_after == pytest.approx(40.0)
    world.wait(39)
    world.settle()
    assert "deletionTimestamp" not in world.pods["job-1-0"]["metadata"]
    world.wait(1)
    world.settle()
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert service.last.outcome == "Yielded"
    assert service.last.reason.startswith("LeaseOver")


@pytest.mark.parametrize("preemption", ["Signal", "Never"])
def test_a_worker_without_the_library_is_told_to_go_at_its_lease_end(preemption: str) -> None:
    world = World(preemption=preemption)
    world.settle()
    world.grant()
    world.run_all()
    world.revoke(lease_in=10)
    world.settle()
    world.wait(9)
    world.settle()
    assert "deletionTimestamp" not in world.pods["job-1-0"]["metadata"]
    world.wait(1)
    world.settle()
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.exit("job-1-0", 143)
    world.settle()
    assert world.status.service is not None
    assert world.status.service.failures == 0
    assert world.status.phase == "Queued"


def test_what_never_started_gives_its_place_back_at_once() -> None:
    world = World()
    world.settle()
    world.grant(admitted=False)
    world.settle()
    world.revoke(lease_in=100)
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.ended_run == 1
    assert service.preemptions == 0
    assert world.pod_names() == []


def test_a_grant_of_nothing_is_given_back() -> None:
    world = World()
    world.settle()
    world.grant()
    world.allocate(workers=[])
    world.settle()
    assert world.status.service is not None
    assert world.status.service.ended_run == 1
    assert world.status.phase == "Queued"


def test_stragglers_are_stopped_thirty_seconds_after_the_first_worker_left() -> None:
    world = two_workers()
    world.run_all()
    world.exit("job-1-0", 75, json.dumps({"step": 12}))
    assert world.settle().requeue_after == pytest.approx(30.0)
    world.wait(30)
    world.settle()
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, service.last.step) == ("Yielded", 12)
    assert service.preemptions == 0, "the lease was not revoked"


def test_the_thirty_seconds_of_stragglers_count_from_the_first_worker_that_left() -> None:
    world = World(gpus=3, gpusPerWorker=1)
    world.settle()
    world.grant(("n1", 3, 9000, 24))
    world.run_all()
    world.exit("job-1-0", 75, json.dumps({"step": 12}))
    world.settle()
    world.wait(20)
    world.exit("job-1-1", 75, json.dumps({"step": 12}))
    assert world.settle().requeue_after == pytest.approx(10.0)


def test_the_pod_of_a_failed_worker_stays_for_its_log() -> None:
    world = World(backoffLimit=0)
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", 2)
    world.pods["job-1-0"]["status"]["phase"] = "Running"  # the kubelet tells of the container first
    world.settle()
    assert "deletionTimestamp" not in world.pods["job-1-0"]["metadata"]
    world.pods["job-1-0"]["status"]["phase"] = "Failed"
    world.settle()
    assert world.status.phase == "Failed"
    assert world.pod_names() == ["job-1-0"]


def test_a_suspended_job_does_not_start_and_says_so() -> None:
    world = World()
    world.settle()
    world.grant()
    world.edit(lambda spec: spec.update(suspend=True))
    world.settle()
    assert world.status.phase == "Suspended"
    assert world.status.service is not None
    assert world.status.service.ended_run == 1
    world.edit(lambda spec: spec.update(suspend=False))
    world.settle()
    assert world.status.phase == "Queued"


def test_the_time_in_which_a_job_is_held_is_kept() -> None:
    world = World()
    world.settle()
    for held in (100.0, 20.0):
        world.edit(lambda spec: spec.update(suspend=True))
        world.settle()
        world.wait(held)
        world.settle()
        world.edit(lambda spec: spec.update(suspend=False))
        world.settle()
        world.wait(7)
        world.settle()
    assert world.status.service is not None
    assert (world.status.service.suspended_since, world.status.service.suspended_seconds) == (None, 120.0)


@pytest.mark.parametrize(
    ("said", "seconds"), [("1.25", 1.25), ("true", None), ('"long"', None), ("-0.5", None), ("1e999", None)]
)
def test_what_the_last_save_took_is_kept(said: str, seconds: float | None) -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.revoke()
    world.exit("job-1-0", 75, f'{{"outcome": "yielded", "step": 9, "checkpoint_step": 9, "save_seconds": {said}}}')
    world.settle()
    assert world.status.service is not None
    assert world.status.service.last is not None
    assert (world.status.service.last.step, world.status.service.last.save_seconds) == (9, seconds)


def test_a_suspended_run_leaves_when_the_plan_revokes_it() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.edit(lambda spec: spec.update(suspend=True))
    world.settle()
    assert world.status.phase == "Running"
    world.revoke()
    world.exit("job-1-0", 75)
    world.settle()
    assert world.status.phase == "Suspended"
    assert world.reason("Running") == "Suspended"


def test_a_run_waits_for_the_pods_of_an_earlier_one() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.allocate(run=2)
    actions = world.step()
    assert [type(a) for a in actions.todo if isinstance(a, CreatePod)] == []
    assert DeletePod in [type(a) for a in actions.todo]
    world.reap()
    world.settle()
    assert world.pod_names() == ["job-2-0"]


def test_a_job_that_is_being_deleted_is_left_to_the_garbage_collector() -> None:
    world = World()
    world.settle()
    world.grant()
    world.job["metadata"]["deletionTimestamp"] = world.job["metadata"]["creationTimestamp"]
    assert world.step().todo == ()


def test_an_early_end_without_a_step_is_a_success_like_any_other() -> None:
    world = two_workers()
    world.run_all()
    world.exit("job-1-0", 0, json.dumps({"outcome": "finished", "ended_early": "the loss is low"}))
    world.exit("job-1-1", 0)
    world.settle()
    last = world.status.service.last if world.status.service is not None else None
    assert last is not None
    assert last.reason.startswith("WorkersSucceeded")


def test_a_hubs_job_has_no_pods_before_the_hub_lets_it_start() -> None:
    world = World()
    annotations = {ANNOTATION_OFFER: "2"}
    world.job["metadata"] |= {"labels": {LABEL_HUB: "hub"}, "annotations": annotations}
    world.settle()
    world.grant()
    world.settle()
    assert not world.pods
    assert (world.status.phase, world.reason("Running")) == ("Starting", "WaitingForHub")
    annotations[ANNOTATION_MAY_START] = "1"
    world.settle()
    assert not world.pods, "that was for another offer"
    annotations[ANNOTATION_MAY_START] = "2"
    world.settle()
    assert world.pod_names() == ["job-1-0"]
