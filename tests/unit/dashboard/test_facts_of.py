"""What one change of a TrainingJob tells."""

from typing import Any

import pytest

from synergy_api.timestamps import format_time
from synergy_dashboard.facts import Sample
from synergy_dashboard.recorder.changes import facts_of
from synergy_dashboard.recorder.trimming import trim
from synergy_dashboard.recorder.use import use_at
from synergy_dashboard.store.bundle import Facts, WaitNow
from synergy_view.seen import read

Json = dict[str, Any]
NOW = 2_000_000.0
WORKERS = [{"node": "n1", "gpus": 2, "cpuMillis": 4000, "memoryBytes": 8 << 30}]


def job(*, uid: str = "u1", spec: Json | None = None, **status: Any) -> Json:
    item = {
        "metadata": {
            "namespace": "team",
            "name": "job",
            "uid": uid,
            "resourceVersion": "1",
            "creationTimestamp": format_time(NOW - 500),
            "managedFields": [{"manager": "x"}],
        },
        "spec": {
            "gpus": 2,
            "steps": 100,
            "template": {"spec": {"containers": [{"name": "t"}]}},
            "slo": {"deadline": format_time(NOW)},
            **(spec or {}),
        },
        "status": {"conditions": [], "summary": {}, **status},
    }
    return trim(item)


def granted(run: int = 1, state: str = "Granted", **more: Any) -> Json:
    workers = [] if state == "Released" else WORKERS
    return {"run": run, "state": state, "gpuType": "V100", "workers": workers, **more}


def ended(run: int, outcome: str = "Yielded", **more: Any) -> Json:
    return {"run": run, "endedRun": run, "last": {"run": run, "outcome": outcome}, **more}


def test_what_is_kept_of_a_job_is_small_and_can_be_read() -> None:
    kept = job(
        allocation=granted(), progress={"steps": 5, "placements": []}, profile={"state": "Skipped", "points": []}
    )
    assert "managedFields" not in kept["metadata"]
    assert kept["spec"] == {"gpus": 2, "steps": 100, "template": {}}
    assert kept["status"].keys() == {"allocation", "progress", "profile"}
    assert kept["status"]["progress"] == {"steps": 5}
    assert read(kept).status.allocation is not None


def test_a_new_job_is_told_with_its_tenant() -> None:
    (fact,) = facts_of(None, job(spec={"tenant": "vision", "gpuTypes": ["T4"]}), NOW).jobs
    assert (fact.tenant, fact.gpu_types, fact.created_s, fact.phase) == ("vision", ("T4",), NOW - 500, "Pending")
    (fact,) = facts_of(None, job(), NOW).jobs
    assert fact.tenant == "team"


def test_a_change_that_tells_nothing_is_no_fact() -> None:
    item = job(phase="Running", allocation=granted(), queue=None)
    assert facts_of(item, item, NOW) == Facts()
    assert facts_of(None, None, NOW) == Facts()


def test_a_grant_ends_the_wait() -> None:
    before = job(queue={"position": 2, "reason": "WaitingForTurn", "message": "m"})
    facts = facts_of(before, job(allocation=granted(stepsPerSecond=3.0)), NOW)
    (run,) = facts.runs
    assert (run.run, run.granted_s, run.started_s, run.ended_s, run.seen) == (1, NOW, None, None, True)
    assert (run.shares[0].node, run.gpus, run.steps_per_s, run.outcome) == ("n1", 2, 3.0, "")
    assert facts.waits == (WaitNow(uid="u1", at_s=NOW),)


def test_times_are_those_of_the_objects() -> None:
    since = {"run": 1, "runningSince": format_time(NOW - 60), "attainedGPUSeconds": 10.0}
    before = job(allocation=granted(), service=since)
    after = job(allocation=granted(), service=ended(1, "Failed", attainedGPUSeconds=110.0))
    (run,) = facts_of(before, after, NOW).runs
    assert (run.started_s, run.ended_s, run.outcome) == (NOW - 60, NOW - 10, "Failed")


def test_a_revoked_run_has_its_reason() -> None:
    (run,) = facts_of(job(allocation=granted()), job(allocation=granted(state="Revoked", reason="for b")), NOW).runs
    assert (run.revoked_s, run.revoked_reason, run.ended_s) == (NOW, "for b", None)


def test_a_preempted_run_names_the_rule_and_who_gets_the_gpus() -> None:
    record = {"at": format_time(NOW), "run": 1, "rule": "PriorityClass", "by": ["ml/high"]}
    revoked = job(allocation=granted(state="Revoked", reason="it yields"), preemptions=[record])
    (run,) = facts_of(job(allocation=granted()), revoked, NOW).runs
    assert run.revoked_reason == "it yields: ml/high gets the GPUs by its higher PriorityClass"


def test_other_shares_of_the_same_run_are_a_resize() -> None:
    smaller = [{**WORKERS[0], "cpuMillis": 1000}]
    (resize,) = facts_of(job(allocation=granted()), job(allocation=granted(workers=smaller)), NOW).resizes
    assert (resize.run, resize.at_s, resize.shares[0].cpu_millis) == (1, NOW, 1000)
    assert facts_of(job(allocation=granted()), job(allocation=granted(2, workers=smaller)), NOW).resizes == ()
    assert facts_of(job(allocation=granted()), job(allocation=granted(state="Released")), NOW).resizes == ()


def test_runs_that_were_passed_over_are_known_by_number_only() -> None:
    after = job(allocation=granted(4), service=ended(3, "Evicted"))
    facts = {run.run: run for run in facts_of(job(allocation=granted(1)), after, NOW).runs}
    assert sorted(facts) == [1, 2, 3, 4]
    assert [facts[n].outcome for n in (1, 2, 3, 4)] == ["Unknown", "Unknown", "Evicted", ""]
    assert [facts[n].seen for n in (1, 2, 3, 4)] == [True, False, False, True]
    assert [facts[n].ended_s for n in (1, 2, 3, 4)] == [NOW, NOW, NOW, None]


def test_a_run_that_began_and_ended_in_a_gap_was_not_seen() -> None:
    after = job(allocation=granted(2, "Released"), service=ended(2, "Succeeded"))
    facts = {run.run: run for run in facts_of(job(allocation=granted(1)), after, NOW).runs}
    assert (facts[2].seen, facts[2].outcome, facts[2].gpu_type) == (False, "Succeeded", "V100")
    assert (facts[1].seen, facts[1].outcome) == (True, "Unknown")


def test_a_job_that_goes_takes_its_run_and_its_wait_with_it() -> None:
    facts = facts_of(job(allocation=granted()), None, NOW)
    assert [one.deleted_s for one in facts.jobs] == [NOW]
    assert [(one.ended_s, one.outcome, one.reason) for one in facts.runs] == [(NOW, "Unknown", "the job was deleted")]
    assert facts.waits == (WaitNow(uid="u1", at_s=NOW),)
    over = job(allocation=granted(state="Released"), service=ended(1))
    assert facts_of(over, None, NOW).runs == ()


def test_there_is_one_sample_in_ten_seconds() -> None:
    def report(at_s: float) -> Json:
        return job(allocation=granted(), progress={"steps": 7, "stepsPerSecond": 2.0, "updatedAt": format_time(at_s)})

    memory = 8 << 30
    expected = Sample(uid="u1", at_s=NOW, steps=7, steps_per_s=2.0, cpu_millis=4000, memory_bytes=memory)
    assert facts_of(job(), report(NOW), NOW + 1).samples == (expected,)
    assert facts_of(report(NOW), report(NOW + 9), NOW + 9).samples == ()
    assert [one.at_s for one in facts_of(report(NOW + 9), report(NOW + 11), NOW + 11).samples] == [NOW + 11]


def test_what_cannot_be_read_names_its_field() -> None:
    with pytest.raises(ValueError, match=r"allocation\.run"):
        facts_of(job(), job(allocation={"state": "Granted"}), NOW)
    assert facts_of(job(allocation={"state": "Granted"}), job(), NOW).jobs  # as if it were new


def test_use_is_told_by_type_at_round_times() -> None:
    node = {
        "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "V100"}},
        "status": {"allocatable": {"nvidia.com/gpu": "8", "cpu": "8", "memory": "8Gi"}},
    }
    jobs = [read(job(allocation=granted())), read(job(uid="u2", queue={"position": 1, "reason": "WaitingForTurn"}))]
    (use,) = use_at(jobs, [node], [], NOW + 7)
    assert (use.at_s, use.gpu_type, use.gpus, use.gpus_given) == (NOW // 30 * 30, "V100", 8, 2)
    assert (use.gpus_wanted, use.waiting) == (2, 1)
