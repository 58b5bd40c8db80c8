"""Why a job is where it is."""

from typing import Any

import pytest

from support.extender.cluster import GI, NOW, allocation, job_object, share
from synergy_api.timestamps import format_time
from synergy_view.seen import SeenJob, read, read_all
from synergy_view.top import FailingNodeRow
from synergy_view.why import Holder, why

WAITS = {"position": 3, "reason": "NoFreeGPU", "message": "needs 4 GPUs at once"}


def seen(name: str = "j", **more: Any) -> SeenJob:
    return read(job_object(name, **more))


def queued(name: str, position: int, **more: Any) -> SeenJob:
    return seen(name, status={"queue": {**WAITS, "position": position}}, **more)


def running(name: str, gpus: int = 1, gpu_type: str = "V100", **more: Any) -> SeenJob:
    held = allocation(share("n1", gpus=gpus), gpuType=gpu_type)
    return seen(name, gpus=gpus, status={"phase": "Running", "allocation": held, **more})


def test_a_waiting_job_has_the_words_of_its_place_in_the_queue() -> None:
    answer = why(queued("j", 3), [], NOW)
    assert (answer.job, answer.phase, answer.reason) == ("team/j", "Queued", "NoFreeGPU")
    assert (answer.message, answer.position) == ("needs 4 GPUs at once", 3)


def test_jobs_before_it_are_in_their_order_and_only_those_that_want_the_same_gpus() -> None:
    others = [queued("b", 2), queued("a", 1), queued("c", 4), queued("t", 1, spec={"gpuTypes": ["T4"]})]
    answer = why(queued("j", 3, spec={"gpuTypes": ["V100"]}), others, NOW)
    assert answer.ahead == ("team/a", "team/b")


def test_the_jobs_that_hold_gpus_which_it_could_use_most_gpus_first() -> None:
    others = [running("small"), running("large", 4), running("other", 8, "T4"), queued("w", 1)]
    answer = why(queued("j", 3, spec={"gpuTypes": ["V100"]}), others, NOW)
    assert answer.holders == (Holder("team/large", 4, "V100", "team"), Holder("team/small", 1, "V100", "team"))


def test_nothing_stands_in_the_way_of_a_job_that_runs() -> None:
    answer = why(running("j"), [running("other")], NOW)
    assert (answer.holders, answer.ahead, answer.position) == ((), (), None)


@pytest.mark.parametrize(
    ("spec", "progress", "want"),
    [
        ({}, {}, "step 100 of 1000, 2 steps/s: 7m30s left if it keeps its GPUs"),
        ({"steps": None, "epochs": 4}, {"epochSteps": 50}, "step 100 of 200 (4 epochs of 50), 2 steps/s: 50s left"),
        ({"steps": None, "epochs": 4}, {}, "step 100 (4 epochs), 2 steps/s: what is left is known after its first"),
        ({"steps": None, "maxRunSeconds": 3600}, {"trainedSeconds": 600.0}, "step 100, 2 steps/s: 50m left if"),
        (
            {},
            {"trainedSeconds": 100.0, "pausedSeconds": 50.0},
            "2 steps/s: 15m left if it keeps its GPUs, 50% of its time in evaluations and saves",
        ),
        ({}, {"metrics": {"lr": 0.001, "loss": 0.31234}}, "left if it keeps its GPUs, loss 0.3123, lr 0.001"),
    ],
)
def test_a_running_job_says_what_is_left_and_what_that_assumes(
    spec: dict[str, Any], progress: dict[str, Any], want: str
) -> None:
    told = {"run": 1, "steps": 100, "stepsPerSecond": 2.0, **progress}
    one = job_object(
        "j", spec=spec, status={"phase": "Running", "allocation": allocation(share("n1")), "progress": told}
    )
    one["spec"] = {key: value for key, value in one["spec"].items() if value is not None}
    assert want in why(read(one), [], NOW).message


def test_a_job_is_not_in_its_own_way() -> None:
    one = queued("j", 3)
    assert why(one, [one], NOW).ahead == ()


def test_what_the_operator_found_wrong_comes_before_the_queue() -> None:
    problem = {"reason": "InvalidSpec", "message": "spec.steps is 0"}
    answer = why(seen(status={"problem": problem, "queue": WAITS}), [], NOW)
    assert (answer.reason, answer.message) == ("InvalidSpec", "spec.steps is 0")


def test_a_suspended_job_says_how_it_goes_on() -> None:
    answer = why(seen(spec={"suspend": True}, status={"phase": "Suspended", "queue": WAITS}), [], NOW)
    assert (answer.reason, answer.next_step) == ("Suspended", "kubectl synergy resume j -n team")


def test_a_running_job_says_where_since_when_and_how_long_yet() -> None:
    progress = {"steps": 400, "stepsPerSecond": 2.0}
    service = {"run": 1, "runningSince": format_time(NOW - 300)}
    message = why(running("j", 4, progress=progress, service=service), [], NOW).message
    assert message == (
        "it runs on 4 V100 GPUs of 1 node since 5m, step 400 of 1000, 2 steps/s: 5m left if it keeps its GPUs"
    )


@pytest.mark.parametrize(
    ("phase", "starts"),
    [("Pending", "the operator has not"), ("Queued", "no plan"), ("Starting", "its pods"), ("Yielding", "it writes")],
)
def test_a_phase_without_a_reason_is_told_in_words(phase: str, starts: str) -> None:
    answer = why(seen(status={"phase": phase}), [], NOW)
    assert answer.reason == phase
    assert answer.message.startswith(starts)


def test_a_start_that_is_held_up_has_the_words_of_its_condition() -> None:
    condition = {"type": "Running", "status": "False", "reason": "ImagePullBackOff", "message": "no such image",
                 "lastTransitionTime": format_time(NOW), "observedGeneration": 1}  # fmt: skip
    held = allocation(share("n1"))
    answer = why(seen(status={"phase": "Starting", "allocation": held, "conditions": [condition]}), [], NOW)
    assert (answer.reason, answer.message) == ("ImagePullBackOff", "no such image")


def test_profile_runs_say_how_many_points_there_are() -> None:
    point = {"gpuType": "V100", "cpuMillis": 1000, "memoryBytes": GI, "stepsPerSecond": 1.0}
    profile = {"state": "Measuring", "points": [point]}
    answer = why(seen(status={"phase": "Profiling", "profile": profile}), [], NOW)
    assert (answer.reason, answer.message[:41]) == ("Profiling", "its profile is being measured, 1 point so")
    waits = why(seen(status={"phase": "Profiling", "profile": profile, "queue": WAITS}), [], NOW)
    assert (waits.reason, "1 point measured so far" in waits.message) == ("NoFreeGPU", True)


def test_a_finished_job_tells_how_it_ended() -> None:
    condition = {"type": "Finished", "status": "True", "reason": "BackoffLimitExceeded", "message": "4 runs failed",
                 "lastTransitionTime": format_time(NOW), "observedGeneration": 1}  # fmt: skip
    answer = why(seen(status={"phase": "Failed", "conditions": [condition]}), [], NOW)
    assert (answer.reason, answer.message) == ("BackoffLimitExceeded", "4 runs failed")


def test_a_job_that_could_not_be_measured_tells_what_the_profile_run_said() -> None:
    common = {"lastTransitionTime": format_time(NOW), "observedGeneration": 1}
    profiled = {"type": "Profiled", "status": "False", "reason": "ProfileCrashed", "message": "exit code 1", **common}
    finished = {"type": "Finished", "status": "True", "reason": "ProfileFailed", "message": "not measured", **common}
    answer = why(seen(status={"phase": "Failed", "conditions": [profiled, finished]}), [], NOW)
    assert (answer.reason, answer.message) == (
        "ProfileFailed",
        "not measured. Profiled: ProfileCrashed: exit code 1",
    )


def test_a_job_that_is_deleted_is_told_first() -> None:
    answer = why(seen(status={"queue": WAITS}, deletionTimestamp=format_time(NOW)), [], NOW)
    assert answer.reason == "Deleted"


def test_a_deadline_and_a_restriction_are_notes() -> None:
    late = {"reason": "TooSlow", "message": "ends an hour late"}
    limits = {"tenant": "team", "reason": "WeightCapped", "message": "weight 5 counts as 1"}
    answer = why(seen(status={"queue": WAITS, "late": late, "restriction": limits}), [], NOW)
    assert answer.notes == ("TooSlow: ends an hour late", "WeightCapped: weight 5 counts as 1")


def test_who_preempted_a_waiting_job_is_a_note_and_no_more_once_it_runs() -> None:
    record = {"at": format_time(NOW), "run": 3, "rule": "Urgent", "by": ["ml/now"]}
    answer = why(seen(status={"queue": WAITS, "preemptions": [record]}), [], NOW)
    told = "Preempted by Urgent: run 3: ml/now, whose class is urgent, gets the GPUs at once"
    assert answer.notes == (told,)
    runs = {"phase": "Running", "allocation": allocation(share("n1")), "preemptions": [record]}
    assert why(seen(status=runs), [], NOW).notes == ()


def test_nodes_that_keep_failing_jobs_are_a_note_to_jobs_that_wait_for_them() -> None:
    row = FailingNodeRow(node="n1", gpu_type="V100", gpus=8, state="Avoided", jobs=(), retry_s=NOW, message="n1 fails")
    assert why(seen(status={"queue": WAITS}), [], NOW, [row]).notes == ("n1 fails",)
    assert why(seen(status={"queue": WAITS}, spec={"gpuTypes": ["A100"]}), [], NOW, [row]).notes == ()
    runs = {"phase": "Running", "allocation": allocation(share("n1"))}
    assert why(seen(status=runs), [], NOW, [row]).notes == ()


def test_a_job_of_another_version_is_named_with_the_field() -> None:
    jobs, unreadable = read_all([job_object("a"), job_object("b", status={"phase": "Dreaming"})])
    assert [job.name for job in jobs] == ["a"]
    assert [(one.full_name, one.problem[:6]) for one in unreadable] == [("team/b", "phase:")]


def elsewhere(phase: str, **more: Any) -> SeenJob:
    place = {"name": "east", "offer": 1, "fixed": True, "since": format_time(NOW)}
    status = {"phase": phase, "cluster": place, **more}
    return seen("j", gpus=4, spec={"managedBy": "kube-synergy.dev/clusters"}, status=status)


def offered(status: str, reason: str, message: str) -> dict[str, str]:
    return {
        "type": "Offered",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time(NOW),
    }


def test_a_job_in_a_worker_cluster_names_it_and_none_of_this_clusters_jobs() -> None:
    there = [offered("True", "OfferedToCluster", "cluster east has the job")]
    answer = why(elsewhere("Queued", queue=WAITS, conditions=there), [queued("a", 1), running("b", 8)], NOW)
    assert (answer.cluster, answer.reason, answer.position) == ("east", "NoFreeGPU", 3)
    assert (answer.ahead, answer.holders) == ((), ())
    assert answer.notes == ("OfferedToCluster: cluster east has the job",)
    runs = why(elsewhere("Running", conditions=there), [], NOW)
    assert runs.message == "it runs on 4 GPUs in cluster east"


def test_a_job_that_no_worker_cluster_has_says_why() -> None:
    away = [offered("False", "NoCluster", "no cluster takes the job: east: full")]
    answer = why(elsewhere("Pending", conditions=away), [], NOW)
    assert (answer.reason, answer.message) == ("NoCluster", "no cluster takes the job: east: full")
    assert why(elsewhere("Pending"), [], NOW).message == "no controller of worker clusters has looked at it yet"
