"""Jobs are offered one after the other to the clusters where they start soonest, by simulation."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.extender import cluster as extender
from synergy_clusters.choice import Prospect
from synergy_clusters.forecast import prospects
from synergy_clusters.forecast.look import Look
from synergy_clusters.forecast.prospects import Asked, Placed, Question
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Allocation, Job, Node, NodeShare, Profile, Snapshot
from synergy_extender.planning.policy import PolicyInForce
from synergy_simulator.engine.planner import SimulatedPlanner

GIB = 1 << 30
ONE = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((1.0,),))
NOW = 600.0
FIFO = PlanConfig(policy="fifo", explain=False)


def job(name: str, *, gpus: int = 1, steps: int | None = 1000, **more: Any) -> Job:
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


def place(*question: Any, **more: Any) -> dict[str, Placed]:
    return dict(prospects.place(*question, **more))


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


def test_a_job_of_unknown_length_has_a_start_too() -> None:
    """Nobody knows the steps of its epochs yet."""
    idle = place(Question({"east": cluster()}, [asked("a", "east", steps=None)], NOW))
    assert idle["a"].best == Prospect(NOW, inf, "east")
    clusters = {"east": cluster(running(400)), "west": cluster(running(300))}
    jobs = [asked("a", "east", "west", steps=None), asked("b", "east", "west"), asked("c", "east", "west")]
    placed = place(Question(clusters, jobs, NOW))
    assert placed["a"].best == Prospect(NOW + 300, inf, "west")
    assert placed["b"].best == Prospect(NOW + 400, NOW + 1400, "east"), "nobody knows when it leaves the west"
    assert placed["c"].problems["west"] == placed["b"].problems["west"]
    assert "jobs without an end hold them" in placed["b"].problems["west"]


def test_a_job_that_waits_to_be_measured_stays_in_the_cluster_that_is_free_first() -> None:
    held = replace(running(100), preemptible=False)
    clusters = {"east": cluster(held, job("a", purpose="profile")), "west": cluster(running(300))}
    placed = place(Question(clusters, [asked("a", "west", waits_in="east")], NOW))
    assert placed["a"].best == Prospect(NOW + 100, inf, "east")


@pytest.mark.parametrize("length", [{"epochs": 3}, {"maxRunSeconds": 900}, {"steps": 1000}])
def test_whatever_says_when_a_job_is_done_an_idle_cluster_gets_it(length: dict[str, int]) -> None:
    state = extender.cluster([extender.node_object("n1")])
    look = Look(state, PolicyInForce(), frozenset({"team"}), extender.NOW)
    made = extender.job_object("a")
    del made["spec"]["steps"]
    future = look.with_jobs([{**made, "spec": {**made["spec"], **length}}])
    jobs = [Asked("team/a", {"east": future.jobs["team/a"]})]
    placed = place(Question({"east": (future.snapshot, future.config)}, jobs, extender.NOW))
    best = placed["team/a"].best
    assert best is not None
    assert (best.cluster, best.start_s) == ("east", extender.NOW)
    assert (best.finish_s < inf) == ("epochs" not in length)


def test_a_job_of_unknown_length_that_never_starts_is_not_looked_at_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch, 20_000)
    clusters = {"east": cluster(replace(running(1), steps_total=None))}
    placed = place(Question(clusters, [asked("a", "east", steps=None)], NOW))
    assert placed["a"].best is None
    assert "jobs without an end hold them" in placed["a"].problems["east"]


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


def counted(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let a test fail that makes more plans."""
    plans, plan = 0, SimulatedPlanner.plan

    def one(*asked_for: Any) -> Any:
        nonlocal plans
        plans += 1
        assert plans < most
        return plan(*asked_for)

    monkeypatch.setattr(SimulatedPlanner, "plan", one)


def test_a_job_that_never_gets_its_memory_keeps_no_other_from_its_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch, 20_000)
    node = Node(
        name="n", gpu_type="V100", gpus=1, cpu_millis=8000, memory_bytes=64 * GIB, memory_bytes_used=4 * GIB
    )  # pods of a DaemonSet
    stuck = job("stuck", memory_bytes_min=62 * GIB, arrival_s=0.0)
    state = Snapshot(nodes=(node,), jobs=(stuck,), now=NOW, config={"policy": "2d-las"})
    jobs = [asked("a", "east"), asked("b", "east", memory_bytes_min=62 * GIB)]
    placed = place(Question({"east": (state, PlanConfig(policy="2d-las", explain=False))}, jobs, NOW))
    assert placed["a"].best == Prospect(NOW, NOW + 1000, "east")
    assert placed["b"].best is None
    assert "CPU and memory" in placed["b"].problems["east"]


def test_one_forecast_that_fails_is_neither_another_jobs_nor_another_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    prospect = prospects._prospect

    def fails(name: str, cluster: str, *more: Any) -> Prospect | None:
        if (name, cluster) == ("a", "east"):
            raise KeyError("x")
        return prospect(name, cluster, *more)

    monkeypatch.setattr(prospects, "_prospect", fails)
    told: list[tuple[str, str]] = []
    clusters = {"east": cluster(), "west": cluster(running(300))}
    jobs = [asked("a", "east", "west"), asked("b", "east", "west")]
    placed = place(Question(clusters, jobs, NOW), failed=lambda *one: told.append(one))
    assert placed["a"] == Placed(
        Prospect(NOW + 300, NOW + 1300, "west"), {"east": "its forecast failed: KeyError('x')"}
    )
    assert placed["b"].best == Prospect(NOW, NOW + 1000, "east")
    assert told == [("a", "east")]


def test_a_job_stays_in_a_cluster_of_which_no_forecast_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = {"east": cluster(job("a")), "west": cluster()}
    clusters["east"][0].config["speed"] = 1  # type: ignore[index]
    placed = place(Question(clusters, [asked("a", "west", waits_in="east")], NOW))
    assert placed["a"].best is None
    assert "config.speed" in placed["a"].problems["east"]


@settings(max_examples=10)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.permutations(["a", "b", "c"]))
def test_the_choice_does_not_depend_on_the_order_of_clusters(lengths: list[int], order: list[str]) -> None:
    made = {name: cluster(running(100 * lengths[i % len(lengths)])) for i, name in enumerate("abc")}
    jobs = [asked(f"j{i}", *order) for i in range(3)]
    shuffled = {name: made[name] for name in order}
    assert place(Question(made, jobs, NOW)) == place(Question(shuffled, jobs, NOW))
