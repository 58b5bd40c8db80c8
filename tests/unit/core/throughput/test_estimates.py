"""Speeds on GPU types without a matrix: measured while the job ran there, else estimated from other jobs."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from support.planner.planning import GIB, holding, job, node, places, planned
from support.planner.snapshots import configs, snapshots
from synergy_core.cache import Memory
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import FieldError, Job, Profile, Snapshot
from synergy_core.model.snapshot_format import SnapshotError, parse_snapshot, plan_document, snapshot_document
from synergy_core.model.usage import Usage
from synergy_core.plan import plan
from synergy_core.throughput import estimates
from synergy_core.throughput.estimates import Speeds
from synergy_core.throughput.gpu_types import estimated

NODES = (node("v", 1, gpu_type="V100"), node("k", 1, gpu_type="K80"))
FAIR = {"policy": "max-min-fairness", "mechanism": "tune"}


def _typed(name: str, named: tuple[str, ...] = ("K80", "V100"), **more: Any) -> Job:
    speeds = {t: more.pop(t) for t in ("K80", "V100") if t in more}
    profiles = {
        t: Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((speed,),)) for t, speed in speeds.items()
    }
    return job(name, **{"gpu_types": named, "profiles": profiles, "steps_total": 10**9, **more})


REFERENCE = _typed("reference", K80=1.0, V100=5.0)


def _types(result: Any) -> dict[str, str]:
    return {allocation.job: allocation.gpu_type for allocation in result.allocations}


def test_a_job_gets_the_type_that_it_names_and_has_no_matrix_for() -> None:
    """The one that was never measured on V100s gains there what the other gains; that one gains nothing here."""
    flat = _typed("flat", K80=1.0, V100=1.0, weight=1.0)
    result = planned(NODES, [flat, _typed("new", K80=2.0)], policy="max-throughput", mechanism="tune")
    assert _types(result) == {"flat": "V100", "new": "K80"} or _types(result) == {"flat": "K80", "new": "V100"}
    both = [REFERENCE, _typed("new", K80=2.0)]
    result = planned(NODES, both, policy="max-throughput", mechanism="tune")
    assert _types(result) == {"new": "V100", "reference": "K80"}
    new = next(one for one in result.allocations if one.job == "new")
    assert (new.steps_per_s, new.estimated) == (pytest.approx(10.0), True)
    assert [(e.job, e.gpu_type, e.reference) for e in result.estimates] == [("new", "V100", "reference")]


def test_a_job_of_the_same_model_stands_for_it_by_the_samples_of_a_gpu() -> None:
    jobs = [
        REFERENCE,
        _typed("small", model="m", batch_size=16, K80=1.0, V100=2.0),
        _typed("large", model="m", batch_size=64, K80=1.0, V100=8.0),
        _typed("new", model="m", batch_size=32, K80=3.0),
    ]
    result = planned(NODES, jobs, policy="max-throughput", mechanism="tune")
    assert [(one.job, one.steps_per_s) for one in result.estimates] == [("new", pytest.approx(3.0 * 4.0))]
    assert parse_snapshot(json.dumps(snapshot_document(Snapshot(nodes=NODES, jobs=tuple(jobs))))).jobs == tuple(jobs)


@pytest.mark.parametrize(("named", "estimate"), [((), "named"), (("K80", "V100"), "none")])
def test_unless_it_is_asked_for_a_type_without_a_matrix_stays_closed(named: tuple[str, ...], estimate: str) -> None:
    jobs = [REFERENCE, _typed("new", named, K80=2.0)]
    for policy in ("max-throughput", "max-min-fairness"):
        result = planned(NODES, jobs, policy=policy, mechanism="tune", estimate=estimate)
        assert _types(result).get("new", "K80") == "K80"
        assert result.estimates == ()


def test_all_asks_for_every_type_that_a_job_may_use() -> None:
    jobs = [REFERENCE, _typed("new", (), K80=2.0), _typed("bound", ("K80",), K80=2.0)]
    result = planned(NODES, jobs, estimate="all", **FAIR)
    assert [(one.job, one.gpu_type) for one in result.estimates] == [("new", "V100")]


def test_on_an_estimate_a_job_keeps_its_whole_share() -> None:
    """A matrix may say that a job needs less than its share; an estimate may be wrong."""
    result = planned([node("v", 4, gpu_type="V100")], [REFERENCE, _typed("new", K80=2.0)], **FAIR)
    held = {a.job: a.workers[0].cpu_millis for a in result.allocations}
    assert held["new"] == 6000
    assert planned([node("v", 4, gpu_type="V100")], [REFERENCE], **FAIR).allocations[0].workers[0].cpu_millis < 6000


def test_what_was_measured_there_stands_in_place_of_the_estimate() -> None:
    slow = replace(_typed("new", K80=2.0), measured={"V100": 2.5})
    result = planned(NODES, [REFERENCE, slow], policy="max-throughput", mechanism="tune")
    assert result.estimates == ()
    assert _types(result) == {"new": "K80", "reference": "V100"}
    running = replace(slow, running=holding("new", ("v", 1, 24, 500), gpu_type="V100"), preemptible=False)
    (held,) = planned(NODES, [running]).allocations
    assert (held.steps_per_s, held.estimated) == (2.5, False)


def test_measured_speeds_are_references_for_others() -> None:
    jobs = [replace(_typed("first", K80=1.0), measured={"V100": 3.0}), _typed("second", K80=2.0)]
    (one,) = planned(NODES, jobs, **FAIR).estimates
    assert (one.job, one.steps_per_s, one.reference) == ("second", pytest.approx(6.0), "first")


def test_a_matrix_is_never_replaced_by_what_was_measured_or_estimated() -> None:
    odd = replace(_typed("odd", K80=2.0, V100=4.0), measured={"V100": 400.0})
    result = planned(NODES[:1], [REFERENCE, odd], policy="max-throughput", mechanism="tune")
    assert result.estimates == ()
    speeds = {allocation.job: allocation.steps_per_s for allocation in result.allocations}
    assert speeds == {"reference": 5.0}


def test_a_job_without_any_matrix_is_not_kept_to_the_first_type_that_it_ran_on() -> None:
    """With a speed on one type alone the others would be closed to it: it is equally fast everywhere till then."""
    ran = replace(_typed("ran"), measured={"K80": 3.0})
    memory = Memory()
    memory.begin(NODES, 0.05)
    memory.speeds.begin([ran], memory.pools, "named")
    assert memory.speeds.of == {}
    memory.speeds.begin([ran, REFERENCE], memory.pools, "named")
    assert memory.speeds.of["ran"] == {"K80": 3.0, "V100": pytest.approx(15.0)}
    assert memory.speeds.is_estimated("ran", "V100")
    assert not memory.speeds.is_estimated("ran", "K80")


def test_matrices_are_read_once_as_long_as_they_and_the_nodes_are_the_same() -> None:
    memory = Memory()
    memory.begin(NODES, 0.05)
    speeds, jobs = Speeds(), [REFERENCE, _typed("new", K80=2.0)]
    speeds.begin(jobs, memory.pools, "named")
    before = speeds._read["reference"]
    speeds.begin([replace(one, waiting_s=3.0) for one in jobs], memory.pools, "named")
    assert speeds._read["reference"] is before
    speeds.begin(jobs, memory.pools, "none")
    assert (speeds.of, speeds.estimates) == ({}, ())


def test_what_was_estimated_is_used_again_as_long_as_no_more_is_known_or_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(estimates, "estimated", lambda *question: asked.append(question) or estimated(*question))
    new, memory = _typed("new", K80=2.0), Memory()

    def speed(*jobs: Job, **changes: Any) -> float:
        memory.begin((replace(NODES[0], **changes), *NODES[1:]), 0.05)
        memory.speeds.begin(jobs, memory.pools, "named")
        return memory.speeds.of["new"]["V100"]

    assert speed(REFERENCE, new) == speed(replace(REFERENCE, waiting_s=3.0), new) == pytest.approx(10.0)
    assert speed(REFERENCE, new, price_per_hour=1.0) == pytest.approx(10.0)
    assert len(asked) == 1
    assert speed(_typed("reference", K80=1.0, V100=3.0), new) == pytest.approx(6.0)
    assert speed(_typed("reference", K80=1.0, V100=3.0), new, price_per_hour=1.0) == pytest.approx(6.0)
    assert len(asked) == 2
    running = replace(holding("new", ("v", 1, 24, 500)), proportional_steps_per_s=7.0, estimated=True)
    assert speed(replace(new, running=running)) == 7.0
    assert speed(REFERENCE, replace(new, running=running)) == pytest.approx(10.0)


def _by_its_estimate(**more: Any) -> Job:
    held = replace(holding("new", ("v", 1, 24, 500)), proportional_steps_per_s=10.0, steps_per_s=10.0, estimated=True)
    return replace(_typed("new", K80=2.0), running=held, **more)


@pytest.mark.parametrize("policy", ["max-throughput", "max-min-fairness", "las"])
def test_who_runs_by_an_estimate_goes_on_by_it_when_its_references_are_gone(policy: str) -> None:
    result = planned(NODES, [_by_its_estimate()], policy=policy, mechanism="proportional")
    (held,) = result.allocations
    assert (held.gpu_type, held.estimated, held.proportional_steps_per_s) == ("V100", True, 10.0)
    assert [(e.gpu_type, e.steps_per_s, e.reference) for e in result.estimates] == [("V100", 10.0, "")]
    assert result.preempted == ()


def test_a_reference_stands_before_what_was_estimated_earlier() -> None:
    (one,) = planned(NODES, [_by_its_estimate(), _typed("reference", K80=1.0, V100=3.0)], **FAIR).estimates
    assert (one.steps_per_s, one.reference) == (pytest.approx(6.0), "reference")


@pytest.mark.parametrize("more", [{"measured": {"V100": 1.0}}, {"gpu_types": ("K80",)}, {"purpose": "profile"}])
def test_an_earlier_estimate_stands_only_where_one_is_wanted(more: dict[str, Any]) -> None:
    assert planned(NODES, [_by_its_estimate(**more)], **FAIR).estimates == ()
    assert planned(NODES[1:], [_by_its_estimate()], **FAIR).estimates == (), "there are no such GPUs any more"


def test_what_a_limit_on_threads_takes_is_not_taken_again_in_each_plan() -> None:
    shared = node("v", 1, gpu_type="V100", replicas=2, gpu_memory_bytes=GIB, client_thread_percent=50)
    usage = {"V100": Usage(model="m", compute=1.0, bandwidth=0.1, memory_bytes=1)}
    new = _by_its_estimate(usage=usage)
    for _ in range(3):
        (held,) = planned([shared], [new], **FAIR).allocations
        new = replace(new, running=held)
    assert held.proportional_steps_per_s == pytest.approx(10.0)


@settings(max_examples=20)
@given(snapshots(), configs)
def test_who_names_no_type_without_a_matrix_is_planned_as_without_estimates(
    snapshot: Snapshot, config: PlanConfig
) -> None:
    jobs = tuple(replace(one, gpu_types=tuple(sorted(one.profiles)), measured={}) for one in snapshot.jobs)
    snapshot = replace(snapshot, jobs=jobs)
    assert plan(snapshot, config) == plan(snapshot, replace(config, estimate="none"))


@settings(max_examples=20)
@given(snapshots(), configs)
def test_every_estimate_is_of_a_type_that_the_job_names_and_has_no_matrix_for(
    snapshot: Snapshot, config: PlanConfig
) -> None:
    result = plan(snapshot, config)
    jobs = {one.name: one for one in snapshot.jobs}
    for one in result.estimates:
        assert one.gpu_type in jobs[one.job].gpu_types
        assert one.gpu_type not in jobs[one.job].profiles
        assert one.gpu_type not in jobs[one.job].measured
        if one.reference:
            reference = jobs[one.reference]
            assert one.gpu_type in reference.profiles.keys() | reference.measured.keys()
        else:  # what it came from is gone, and the job runs by it
            running = jobs[one.job].running
            assert running is not None
            assert running.estimated
            assert running.gpu_type == one.gpu_type
    for allocation in result.allocations:
        if allocation.estimated:
            assert (allocation.job, allocation.gpu_type) in {(one.job, one.gpu_type) for one in result.estimates}


def test_snapshots_and_plans_say_what_was_measured_and_estimated() -> None:
    snapshot = Snapshot(nodes=NODES, jobs=(replace(REFERENCE, measured={"H100": 3.0}), _typed("new", K80=2.0)))
    assert parse_snapshot(json.dumps(snapshot_document(snapshot))) == snapshot
    document = plan_document(plan(snapshot, PlanConfig(policy="max-throughput")), seconds=0.0)
    (entry,) = document["estimates"]
    assert {**entry, "steps_per_s": 10.0} == {
        "job": "new", "gpu_type": "V100", "steps_per_s": 10.0, "reference": "reference"
    }  # fmt: skip
    assert [a.get("estimated") for a in document["allocations"] if a["job"] == "new"] == [True]
    bad = snapshot_document(snapshot)
    bad["jobs"][0]["measured"]["H100"] = 0
    with pytest.raises(SnapshotError, match=r"jobs\[0\].measured.H100"):
        parse_snapshot(json.dumps(bad))


def test_an_unknown_mode_is_an_error_that_names_the_choices() -> None:
    with pytest.raises(FieldError, match="estimate: 'some' is not there; choose one of all, named, none"):
        planned(NODES, [], estimate="some")


def test_it_runs_where_its_speed_is_estimated_to_be_best() -> None:
    """Also under policies that make a line: the fastest free type first."""
    result = planned((*NODES, node("v2", 1, gpu_type="V100")), [REFERENCE, _typed("new", K80=2.0)], policy="las")
    assert {name: set(where) for name, where in places(result).items()} in (
        {"new": {"v"}, "reference": {"v2"}}, {"new": {"v2"}, "reference": {"v"}}
    )  # fmt: skip
