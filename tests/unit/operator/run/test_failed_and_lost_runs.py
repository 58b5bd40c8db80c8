"""What goes wrong on the way: workers that fail, nodes that are lost, pods that never start or are refused."""

import json
from collections.abc import Callable

import pytest

from support.operator.objects import node
from support.operator.world import World, two_workers
from synergy_api.timestamps import format_time, parse_time
from synergy_operator.run.fencing import MARGIN_SECONDS
from synergy_operator.views.annotations import ANNOTATION_UNGATED_AT


def test_one_failure_ends_the_whole_gang_and_counts_once() -> None:
    world = two_workers()
    world.run_all()
    world.wait(30)
    world.exit("job-1-1", 1)
    world.settle()
    assert world.status.phase == "Yielding"
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.exit("job-1-0", 143)
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert (service.failures, service.last.exit_code) == (1, 1)
    assert service.retry_at is not None
    assert parse_time(service.retry_at) == world.now + 10
    assert world.status.phase == "Queued"
    assert "worker 1 ended with exit code 1" in world.message("Running")
    assert world.pod_names() == ["job-1-1"], "the failed pod stays for its log until the next run"
    world.grant(("n1", 2, 6000, 16))
    world.settle()
    assert world.pod_names() == ["job-2-0", "job-2-1"]


def test_the_backoff_doubles_to_five_minutes_and_the_limit_ends_the_job() -> None:
    world = World(backoffLimit=6)
    waits = []
    for run in range(1, 8):
        world.settle()
        world.grant()
        world.run_all()
        world.exit(f"job-{run}-0", 2)
        world.settle()
        assert world.status.service is not None
        assert world.status.service.retry_at is not None
        waits.append(parse_time(world.status.service.retry_at) - world.now)
    assert waits == [10, 20, 40, 80, 160, 300, 300]
    assert world.status.phase == "Failed"
    assert world.reason("Finished") == "BackoffLimitExceeded"
    assert "failed runs: 7, spec.backoffLimit is 6" in world.message("Finished")


def test_a_worker_killed_for_memory_says_what_to_raise() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", 137, reason="OOMKilled")
    world.settle()
    assert world.reason("Running") == "OutOfMemory"
    assert "8Gi" in world.message("Running")
    assert "resources.min.memory" in world.message("Running")


def test_a_command_that_cannot_start_fails_with_the_runtime_s_words() -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.exit("job-1-0", 128, message="exec: no such file", reason="StartError")
    world.settle()
    assert world.reason("Running") == "WorkerNotStarted"
    assert "exec: no such file" in world.message("Running")


def node_pressure(world: World) -> None:
    """The kubelet evicts a worker, and kills it when its grace period is over."""
    taken = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    world.set_pod("job-1-1", conditions=[taken], reason="Evicted", message="The node was low on resource: memory.")
    world.exit("job-1-1", 137)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (node_pressure, "WorkerLost"),
        (lambda w: w.delete("job-1-1"), "WorkerLost"),
        (lambda w: w.pods.pop("job-1-1"), "WorkerLost"),
        (lambda w: w.refuse("job-1-1", "OutOfnvidia.com/gpu", "no GPU left"), "WorkerRefused"),
        (
            lambda w: w.set_pod(
                "job-1-1",
                conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}],
            ),
            "WorkerLost",
        ),
        (lambda w: w.exit("job-1-1", 137, reason="ContainerStatusUnknown"), "WorkerLost"),
    ],
)
def test_a_lost_worker_takes_the_gang_back_and_is_no_failure(harm: Callable[[World], object], reason: str) -> None:
    world = two_workers()
    world.run_all()
    harm(world)
    world.settle()
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.exit("job-1-0", 75, json.dumps({"step": 7}))
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, service.failures, service.preemptions) == ("Evicted", 0, 0)
    assert world.status.phase == "Queued"
    assert world.reason("Running") == reason


@pytest.mark.parametrize(
    ("message", "phase"), [("", "Queued"), ("stopped", "Queued"), ('{"outcome": "finished", "step": 100}', "Succeeded")]
)
def test_a_pod_that_was_taken_away_is_done_only_if_it_says_so(message: str, phase: str) -> None:
    """The operator was away meanwhile, and the script ends with 0 on SIGTERM."""
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.delete("job-1-0")
    world.exit("job-1-0", 0, message)
    world.settle()
    world.reap()
    world.settle()
    assert world.status.phase == phase


def test_a_launcher_with_an_exit_code_of_its_own_has_yielded_if_the_library_says_so() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", 1, json.dumps({"outcome": "yielded", "step": 42, "checkpoint_step": 42}))
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, service.last.step, service.failures) == ("Yielded", 42, 0)
    assert world.status.phase == "Queued"


def test_a_pod_that_its_node_refused_is_queued_again() -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.refuse("job-1-0", "OutOfnvidia.com/gpu", "Pod was rejected: no GPU left")
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert service.last.outcome == "Evicted"
    assert service.retry_at is not None
    assert parse_time(service.retry_at) == world.now + 10
    assert "no GPU left" in world.message("Running")


def test_peers_that_fail_because_a_node_is_lost_are_no_failure() -> None:
    world = World(gpus=2)
    world.settle()
    world.grant(("n1", 1, 3000, 8), ("n2", 1, 3000, 8))
    world.run_all()
    world.nodes["n2"] = node("n2", ready=False)
    world.exit("job-1-0", 1)
    world.settle()
    assert world.reason("Running") == "NodeNotFenced"
    assert "node n2 does not report" in world.message("Running")
    assert world.status.service is not None
    assert world.status.service.last is not None
    assert world.status.service.last.reason.startswith("WorkerLost")


def _cut_off() -> World:
    """A job whose node does not report any more, and whose pod somebody (the node lifecycle controller) deletes."""
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.nodes["n1"] = node("n1", ready=False)
    world.settle()
    assert world.status.phase == "Running", "an unready node alone ends nothing"
    world.delete("job-1-0")
    return world


def test_a_worker_that_nobody_sees_is_given_up_only_once_it_is_fenced() -> None:
    world = _cut_off()
    # 30 s of grace, the library's fence, and a margin
    assert world.settle().requeue_after == pytest.approx(30 + 600 + MARGIN_SECONDS)
    assert world.reason("Running") == "NodeNotFenced"
    assert "out-of-service" in world.message("Running")
    world.wait(629 + MARGIN_SECONDS)
    world.settle()
    assert "job-1-0" in world.pods
    assert world.status.service is not None
    assert world.status.service.ended_run == 0
    world.wait(1)
    world.settle()
    assert world.pod_names() == []
    assert world.status.phase == "Queued"
    assert world.status.service.failures == 0


@pytest.mark.parametrize("how", ["gone", "out of service"])
def test_a_node_that_is_dead_for_certain_fences_at_once(how: str) -> None:
    world = _cut_off()
    world.settle()
    world.wait(60)
    if how == "gone":
        del world.nodes["n1"]
    else:
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
        world.nodes["n1"]["spec"]["taints"] = [taint]
    world.settle()
    assert world.pod_names() == []
    assert world.status.phase == "Queued"


def test_a_node_that_reports_again_ends_its_pod_itself() -> None:
    world = _cut_off()
    world.settle()
    world.nodes["n1"] = node("n1")
    world.settle()
    assert world.reason("Running") == "WorkerLost"
    world.exit("job-1-0", 0)
    world.settle()
    assert world.status.phase == "Queued"


def test_a_pod_that_somebody_removed_by_force_keeps_the_next_run_waiting() -> None:
    world = _cut_off()
    world.settle()
    del world.pods["job-1-0"]
    world.settle()
    assert world.status.service is not None
    assert world.status.service.ended_run == 1
    retry_at = world.status.service.retry_at
    assert retry_at is not None
    assert parse_time(retry_at) == pytest.approx(world.now + 600 + MARGIN_SECONDS, abs=1.0)


@pytest.mark.parametrize("lost", [["n2"], ["n1", "n2"]])
def test_one_worker_of_a_gang_that_may_train_unseen_keeps_the_next_run_waiting(lost: list[str]) -> None:
    """Whatever was seen of the others: the first worker has ended, its node reports or not."""
    world = World(gpus=2)
    world.settle()
    world.grant(("n1", 1, 3000, 8), ("n2", 1, 3000, 8))
    world.run_all()
    world.exit("job-1-0", 75, json.dumps({"step": 12}))
    for name in lost:
        world.nodes[name] = node(name, ready=False)
    del world.pods["job-1-1"]
    world.settle()
    assert world.status.service is not None
    assert world.status.service.ended_run == 1
    retry_at = world.status.service.retry_at
    assert retry_at is not None
    assert parse_time(retry_at) == pytest.approx(world.now + 600 + MARGIN_SECONDS, abs=1.0)


def test_a_pod_removed_by_force_from_a_dead_node_keeps_nobody_waiting() -> None:
    world = _cut_off()
    world.settle()
    del world.pods["job-1-0"]
    del world.nodes["n1"]
    world.settle()
    assert world.status.service is not None
    retry_at = world.status.service.retry_at
    assert retry_at is None or parse_time(retry_at) <= world.now + 10.5


def test_a_half_bound_gang_is_taken_back_whole_after_thirty_seconds() -> None:
    world = two_workers()
    world.settle()
    world.bind("job-1-0")
    world.start("job-1-0")
    world.cannot_bind("job-1-1", "0/2 nodes are available: Insufficient cpu")
    assert world.settle().requeue_after == pytest.approx(30.0)
    world.wait(29)
    world.settle()
    assert world.reason("Running") == "WorkerWaiting"
    world.wait(1)
    world.settle()
    assert world.pod_names() == ["job-1-0"]
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.reap()
    world.settle()
    assert world.reason("Running") == "GangNotBound"
    assert "Insufficient cpu" in world.message("Running")
    assert world.status.phase == "Queued"


def test_a_gang_that_no_scheduler_looks_at_holds_its_place_for_two_minutes() -> None:
    """A kube-scheduler that is away comes back sooner; pods with a resource claim that is not there it never sees."""
    world = two_workers()
    world.settle()
    world.wait(119)
    assert world.settle().requeue_after == pytest.approx(1.0)
    assert world.status.phase == "Starting"
    assert world.pod_names() == ["job-1-0", "job-1-1"]
    world.wait(1)
    world.settle()
    assert world.pod_names() == []
    assert world.status.phase == "Queued"
    assert world.reason("Running") == "GangNotBound"
    assert "resource claims" in world.message("Running")


def test_a_scheduling_gate_of_the_template_is_named_and_holds_gpus_ever_more_seldom() -> None:
    container = {"name": "train", "image": "i", "command": ["c"]}
    world = two_workers(
        template={"spec": {"containers": [container], "schedulingGates": [{"name": "example.com/mine"}]}}
    )
    waits = []
    for _ in range(3):
        world.settle()
        world.wait(30)
        world.settle()
        assert world.pod_names() == []
        assert "scheduling gate example.com/mine" in world.message("Running")
        service = world.status.service
        assert service is not None
        waits.append(parse_time(service.retry_at or "") - world.now)
        world.wait(waits[-1])
        world.grant(("n1", 2, 6000, 16))
    assert waits == [10, 20, 40]


def test_an_image_that_cannot_be_pulled_is_told_at_once_and_fails_later() -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.stuck("job-1-0", "ImagePullBackOff", "no such image")
    assert world.settle().requeue_after == pytest.approx(120.0)
    assert "no such image" in world.message("Running")
    assert world.posted() == ["WorkersStarting", "ImageNotPulled"]
    assert "correct the image in spec.template" in world.message("Running")
    world.wait(120)
    world.settle()
    world.reap()
    world.settle()
    assert world.reason("Running") == "ImageNotPulled"
    assert world.status.service is not None
    assert world.status.service.failures == 1


def test_of_several_workers_that_cannot_start_the_longest_wait_counts() -> None:
    world = two_workers()
    world.settle()
    world.bind()
    for name in ("job-1-0", "job-1-1"):
        world.stuck(name, "ImagePullBackOff", "no such image")
    later = {ANNOTATION_UNGATED_AT: format_time(world.now + 60)}
    world.pods["job-1-1"]["metadata"]["annotations"] |= later
    world.wait(60)
    assert world.settle().requeue_after == pytest.approx(60.0)
    world.wait(60)
    world.settle()
    assert world.reason("Running") == "ImageNotPulled"
    assert all("deletionTimestamp" in pod["metadata"] for pod in world.pods.values())


def test_a_worker_that_cannot_start_gives_its_place_back_as_soon_as_it_is_asked_to() -> None:
    """However short the rounds, an image that is not there counts as a failure."""
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.stuck("job-1-0", "ImagePullBackOff", "no such image")
    world.settle()
    world.revoke()
    world.settle()
    world.reap()
    world.settle()
    assert world.reason("Running") == "ImageNotPulled"
    assert world.status.service is not None
    assert (world.status.service.failures, world.status.service.preemptions) == (1, 0)


def test_a_volume_that_never_attaches_does_not_keep_the_gpus_for_ever() -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.warnings["job-1-0"] = ("FailedAttachVolume", "Multi-Attach error for volume data")
    world.wait(899)
    world.settle()
    assert world.reason("Running") == "VolumeNotMounted"
    assert world.settle().requeue_after == pytest.approx(1.0)
    assert world.status.phase == "Starting"
    world.wait(1)
    world.settle()
    world.reap()
    world.settle()
    assert world.reason("Running") == "WorkerNotStarted"
    assert "after 900 s" in world.message("Running")
    assert world.status.service is not None
    assert (world.status.service.failures, world.status.service.ended_run) == (1, 1)


def test_sidecars_do_not_keep_a_finished_run_open() -> None:
    side = {"name": "side", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    container = {"name": "train", "image": "i", "command": ["c"]}
    world = World(template={"spec": {"containers": [container, side]}})
    world.settle()
    world.grant()
    world.run_all()
    assert world.pods["job-1-0"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2500m"
    assert world.status.workers[0].cpu_millis == 3000
    world.exit("job-1-0", 0)
    world.settle()
    assert "deletionTimestamp" not in world.pods["job-1-0"]["metadata"], "a pod that is about to end keeps its log"
    world.wait(10)
    world.settle()
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.reap()
    world.settle()
    assert world.status.phase == "Succeeded"


def test_a_share_that_the_sidecars_use_up_fails_with_the_numbers() -> None:
    side = {"name": "side", "image": "i", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    container = {"name": "train", "image": "i", "command": ["c"]}
    world = World(template={"spec": {"containers": [container, side]}})
    world.settle()
    world.grant(("n1", 1, 2000, 8))
    world.settle()
    assert world.reason("Running") == "SidecarsTooLarge"
    assert world.pod_names() == []


def test_a_pod_the_api_server_refuses_gives_the_place_back_with_its_words() -> None:
    world = World()
    world.settle()
    run = world.grant()
    world.refusals = type(world.refusals)(run=run, message="exceeded quota: gpus")
    world.settle()
    assert world.reason("Running") == "PodRefused"
    assert "exceeded quota: gpus" in world.message("Running")
    assert world.status.service is not None
    assert world.status.service.failures == 0


def test_a_pod_that_is_refused_for_ever_counts_as_a_failure() -> None:
    world = World(backoffLimit=0)
    world.settle()
    run = world.grant()
    world.refusals = type(world.refusals)(
        run=run, message='unknown field "spec.containers[0].imagePulPolicy"', invalid=True
    )
    world.settle()
    assert world.status.service is not None
    assert world.status.service.failures == 1
    assert world.status.phase == "Failed"
    assert "imagePulPolicy" in world.message("Finished")


def on_two_nodes() -> World:
    world = World(gpus=2)
    world.settle()
    world.grant(("n1", 1, 3000, 8), ("n2", 1, 3000, 8))
    world.run_all()
    return world


def failures_on(world: World) -> list[tuple[str, int]]:
    service = world.status.service
    assert service is not None
    return [(one.node, one.run) for one in service.node_failures]


def test_the_node_of_the_worker_that_failed_first_is_recorded() -> None:
    world = on_two_nodes()
    world.exit("job-1-1", 1)
    world.wait(2)
    world.exit("job-1-0", 1)
    world.settle()
    assert failures_on(world) == [("n2", 1)]
    service = world.status.service
    assert service is not None
    assert parse_time(service.node_failures[0].at) == world.now


def test_workers_that_fail_together_name_each_of_their_nodes() -> None:
    world = on_two_nodes()
    world.exit("job-1-0", 1)
    world.exit("job-1-1", 1)
    world.settle()
    assert failures_on(world) == [("n1", 1), ("n2", 1)]


@pytest.mark.parametrize(("code", "reason"), [(137, "OOMKilled"), (75, ""), (0, "")])
def test_no_node_is_named_for_a_jobs_own_limit_or_a_good_end(code: int, reason: str) -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", code, reason=reason)
    world.settle()
    assert failures_on(world) == []


@pytest.mark.parametrize(("reason", "named"), [("UnexpectedAdmissionError", [("n1", 1)]), ("OutOfcpu", [])])
def test_a_node_that_refuses_a_pod_is_named_if_its_devices_are_why(reason: str, named: list[tuple[str, int]]) -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.pods["job-1-0"]["status"] |= {"phase": "Failed", "reason": reason, "message": "no healthy devices"}
    world.settle()
    assert failures_on(world) == named


def test_a_job_keeps_its_newest_failures() -> None:
    world = World(backoffLimit=100)
    for run in range(1, 20):
        world.settle()
        world.grant()
        world.run_all()
        world.exit(f"job-{run}-0", 2)
        world.settle()
        world.wait(400)
    assert [run for _, run in failures_on(world)] == list(range(4, 20))
