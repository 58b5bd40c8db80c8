"""Jobs are offered one after the other to the clusters where they start soonest, by simulation."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from synergy_clusters.choice import Prospect
from synergy_clusters.forecast.prospects import Asked, Question, place
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Allocation, Job, Node, NodeShare, Profile, Snapshot

GIB = 1 << 30
ONE = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((1.0,),))
NOW = 600.0
FIFO = PlanConfig(policy="fifo", explain=False)


def job(name: str, *, gpus: int = 1, steps: int = 1000, **more: Any) -> Job:
    return Job(
        name=name,
        gpus=gpus,
        steps_total=steps,
        arrival_s=more.pop("arrival_s", NOW),
        **{"profiles": {"V100": ONE}, **more},
    )


def cluster(*jobs: Job, gpus: int = 1, gpu_type: str = "V100") -> tuple[Snapshot, PlanConfig]:
    node = Node(name="n", gpu_type=gpu_type, gpus=gpus, cpu_millis=4000 * gpus, memory_bytes=16 * GIB * gpus)
    return Snapshot(nodes=(node,), jobs=jobs, now=NOW, config={"policy": "fifo"}), FIFO


def running(steps_left: int, name: str = "busy") -> Job:
    share = NodeShare(node="n", gpus=1, cpu_millis=1000, memory_bytes=GIB)
    held = Allocation(job=name, gpu_type="V100", workers=(share,), steps_per_s=1.0)
    return job(name, steps=steps_left, arrival_s=0.0, running=held, started_s=0.0, run_started_s=0.0)


def asked(name: str, *clusters: str, waits_in: str = "", **more: Any) -> Asked:
    return Asked(name, dict.fromkeys(clusters, job(name, **more)), waits_in)


def test_a_job_goes_where_a_gpu_is_free_first() -> None:
    clusters = {"east": cluster(running(400)), "west": cluster(running(300))}
    placed = place(Question(clusters, [asked("a", "east", "west")], NOW))
    assert placed["a"].best == Prospect(NOW + 300, NOW + 1300, "west")


def test_each_job_counts_for_those_after_it() -> None:
    clusters = {"east": cluster(running(400)), "west": cluster(running(300))}
    jobs = [asked(name, "east", "west") for name in ("a", "b", "c")]
    placed = place(Question(clusters, jobs, NOW))
    assert [placed[name].best.cluster for name in ("a", "b", "c")] == ["west", "east", "west"]  # type: ignore[union-attr]


def test_a_cluster_that_never_has_the_gpus_says_so() -> None:
    placed = place(Question({"east": cluster(), "west": cluster(gpus=4)}, [asked("a", "east", "west", gpus=4)], NOW))
    assert placed["a"].best is not None
    assert placed["a"].best.cluster == "west"
    assert placed["a"].problems.keys() == {"east"}


def test_a_job_that_no_cluster_can_hold_goes_nowhere() -> None:
    placed = place(Question({"east": cluster()}, [asked("a", "east", gpus=8)], NOW))
    assert placed["a"].best is None


def test_a_job_without_a_measured_speed_still_has_a_start() -> None:
    clusters = {"east": cluster(running(400)), "west": cluster(running(300))}
    placed = place(Question(clusters, [asked("a", "east", "west", profiles={})], NOW))
    assert placed["a"].best is not None
    assert (placed["a"].best.start_s, placed["a"].best.cluster) == (NOW + 300, "west")


def test_a_waiting_job_stays_where_it_is_unless_it_gains_much() -> None:
    here = {"east": cluster(running(400), job("a"))}
    near, sooner = {**here, "west": cluster(running(350))}, {**here, "west": cluster()}
    assert place(Question(near, [asked("a", "west", waits_in="east")], NOW))["a"].best == Prospect(
        NOW + 400, NOW + 1400, "east"
    )
    assert place(Question(sooner, [asked("a", "west", waits_in="east")], NOW))["a"].best == Prospect(
        NOW, NOW + 1000, "west"
    )


def test_a_job_whose_cluster_is_away_goes_to_another_if_that_takes_it() -> None:
    placed = place(Question({"west": cluster(running(300))}, [asked("a", "west", waits_in="east")], NOW))
    assert placed["a"].best == Prospect(NOW + 300, NOW + 1300, "west")
    assert place(Question({}, [asked("a", waits_in="east")], NOW))["a"].best is None


def test_jobs_for_which_no_time_is_left_are_not_reached() -> None:
    times = iter([True, False])
    jobs = [asked("a", "east"), asked("b", "east")]
    placed = place(Question({"east": cluster()}, jobs, NOW), lambda: next(times))
    assert placed["a"].reached
    assert not placed["b"].reached


@settings(max_examples=10)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.permutations(["a", "b", "c"]))
def test_the_choice_does_not_depend_on_the_order_of_clusters(lengths: list[int], order: list[str]) -> None:
    made = {name: cluster(running(100 * lengths[i % len(lengths)])) for i, name in enumerate("abc")}
    jobs = [asked(f"j{i}", *order) for i in range(3)]
    shuffled = {name: made[name] for name in order}
    assert place(Question(made, jobs, NOW)) == place(Question(shuffled, jobs, NOW))
