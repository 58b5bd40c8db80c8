"""What the demo makes of the versions of a job's status."""

from typing import Any

from synergy_cli.demo.checks import shortcomings
from synergy_cli.demo.observation import Observation
from synergy_cli.demo.story import SENSITIVE, Story
from synergy_cli.demo.table import speed_gained


def job(gpus: int = 1, steps: int = 100, **status: Any) -> dict[str, Any]:
    return {"spec": {"gpus": gpus, "steps": steps}, "status": status}


def granted(run: int, cpu: int, purpose: str = "Train") -> dict[str, Any]:
    share = {"node": "n1", "gpus": 1, "cpuMillis": cpu, "memoryBytes": 1}
    return {"run": run, "state": "Granted", "purpose": purpose, "workers": [share]}


def progress(run: int, steps: int, speed: float) -> dict[str, Any]:
    return {"run": run, "steps": steps, "stepsPerSecond": speed}


def seen_in_full() -> Observation:
    seen = Observation(SENSITIVE)
    seen.see(job(phase="Pending"))
    seen.see(job(phase="Profiling"))
    seen.see(job(phase="Queued", queue={"position": 1, "reason": "NoFreeGPU", "message": "2 jobs are ahead"}))
    seen.see(job(phase="Starting", allocation=granted(2, 700)))
    seen.see(job(phase="Running", allocation=granted(2, 700), progress=progress(2, 30, 10.0)))
    left = {"last": {"run": 2, "outcome": "Yielded", "step": 40}, "preemptions": 1}
    seen.see(job(phase="Yielding", allocation={**granted(2, 700), "state": "Revoked", "reason": "round over"}))
    seen.see(job(phase="Queued", service=left))
    seen.see(job(phase="Running", allocation=granted(3, 1200), progress=progress(3, 40, 16.0), service=left))
    seen.see(job(phase="Succeeded", allocation=granted(3, 1200), progress=progress(3, 100, 18.0), service=left))
    return seen


def test_each_new_phase_is_told_once_with_its_reason() -> None:
    seen = Observation("a")
    waiting = {"position": 1, "reason": "NoFreeGPU", "message": "2 jobs are ahead"}
    assert seen.see(job(phase="Queued", queue=waiting)) == ["phase Queued: 2 jobs are ahead"]
    assert seen.see(job(phase="Queued", queue=waiting)) == []


def test_each_measured_point_is_told_once() -> None:
    seen = Observation("a")
    first = {"gpuType": "A100", "cpuMillis": 400, "stepsPerSecond": 5.0}
    second = {"gpuType": "A100", "cpuMillis": 800, "stepsPerSecond": 9.5}
    seen.see(job(profile={"points": [first]}))
    assert seen.see(job(profile={"points": [first, second]})) == ["measured 9.50 steps/s with 800m CPU"]


def test_a_grant_a_resize_and_a_revocation_are_told() -> None:
    seen = Observation("a")
    assert seen.see(job(allocation=granted(1, 700))) == ["granted run 1: 1 GPU and 700m CPU on n1"]
    assert seen.see(job(allocation=granted(1, 900))) == ["resized in place: 1 GPU and 900m CPU on n1"]
    revoked = {**granted(1, 900), "state": "Revoked", "reason": "round over"}
    assert seen.see(job(allocation=revoked)) == ["revoked: round over"]


def test_speeds_are_kept_by_the_cpu_they_were_measured_with() -> None:
    seen = seen_in_full()
    assert seen.speeds == {700: [10.0], 1200: [16.0, 18.0]}
    assert speed_gained(seen, 700) == 1.75
    assert speed_gained(seen, 500) is None
    assert seen.yields == {2: 40}
    assert seen.starts == {2: 30, 3: 40}


def test_a_profile_place_does_not_count_as_cpu_of_the_training() -> None:
    seen = Observation("a")
    seen.see(job(allocation=granted(1, 4000, "Profile")))
    assert seen.largest_cpu_millis == 0


def story_of(*observations: Observation) -> Story:
    return Story({seen.name: seen for seen in observations}, proportional_per_gpu=700)


def test_all_shown_leaves_nothing_to_say_but_the_phases_that_others_show() -> None:
    assert shortcomings(story_of(seen_in_full())) == ["no job was seen in phase Failed, Suspended"]


def test_a_job_that_resumed_behind_its_checkpoint_is_named() -> None:
    seen = seen_in_full()
    seen.starts[3] = 39
    assert f"{SENSITIVE} left run 2 at step 40 and reported step 39 first in run 3" in shortcomings(story_of(seen))


def test_a_job_with_other_than_its_steps_is_named() -> None:
    seen = seen_in_full()
    seen.see(job(phase="Succeeded", progress=progress(3, 101, 18.0)))
    assert f"{SENSITIVE} did 101 steps instead of 100" in shortcomings(story_of(seen))


def test_no_gain_and_no_preemption_are_named() -> None:
    seen = Observation(SENSITIVE)
    seen.see(job(phase="Running", allocation=granted(1, 700), progress=progress(1, 10, 10.0)))
    missing = "\n".join(shortcomings(story_of(seen)))
    assert "not above its proportional share of 700m" in missing
    assert "1.1 times as fast" in missing
    assert "not measured with both; profile runs measure too little on a busy machine" in missing
    assert "no job was preempted" in missing


def test_a_waiting_job_is_explained_when_its_turn_will_not_come_in_a_moment() -> None:
    waits, broken, *trains = (Observation(name) for name in ("waits", "broken", "first", "second"))
    waits.see(job(phase="Queued", queue={"position": 1, "reason": "NoFreeGPU", "message": "2 jobs are ahead"}))
    for one in (broken, *trains):
        one.see(job(phase="Running"))
    assert story_of(waits, trains[0]).waiting() is None, "a GPU is free"
    assert story_of(waits, broken, trains[0]).waiting() is None, "the broken job leaves its GPU at once"
    assert story_of(waits, *trains).waiting() == "waits"
