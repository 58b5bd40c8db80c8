"""Speeds that have a limit on threads in them, as references: what is estimated from them has it in it once."""

from dataclasses import replace
from typing import Any

import pytest

from support.planner.planning import GIB, job, node, planned
from synergy_core.model.snapshot import Allocation, Job, Profile
from synergy_core.model.usage import Usage
from synergy_core.throughput.threads import ceiling

K80 = node("k", 2, gpu_type="K80")
SHARED = tuple(
    node(name, 1, cpus=6, gpu_type="V100", replicas=2, gpu_memory_bytes=GIB, client_thread_percent=50) for name in "vw"
)
HEAVY, LIGHT = 0.8, 0.2
KEPT = 0.5 / HEAVY
"""What half the threads leave the heavy one."""


def _usage(compute: float | None) -> dict[str, Usage]:
    return {} if compute is None else {"V100": Usage(compute=compute, bandwidth=0.1, memory_bytes=1)}


def _matrix(*speeds: float, percent: int = 100) -> Profile:
    """One point per CPU more; the first is the share's 6 CPUs."""
    cpu = tuple(6000 * (index + 1) for index in range(len(speeds)))
    rows = tuple((speed,) for speed in speeds)
    return Profile(cpu_millis=cpu, memory_bytes=(GIB,), steps_per_s=rows, client_thread_percent=percent)


def _job(name: str, compute: float | None, k80: float, **more: Any) -> Job:
    v100 = more.pop("v100", None)
    profiles = {"K80": _matrix(k80)} | ({} if v100 is None else {"V100": v100})
    return job(name, gpu_types=("K80", "V100"), profiles=profiles, usage=_usage(compute), steps_total=10**9, **more)


def _reference(how: str, compute: float | None = HEAVY) -> Job:
    """2 steps/s on a K80, 10 on a whole V100."""
    limited = 10.0 * ceiling(_usage(compute or HEAVY)["V100"], 50)
    match how:
        case "whole":
            return _job("b", compute, 2.0, v100=_matrix(10.0))
        case "limited":
            return _job("b", compute, 2.0, v100=_matrix(limited, percent=50))
        case _:
            return _job("b", compute, 2.0, measured={"V100": limited})


def _new(reference: Job, compute: float | None, *nodes: Any, policy: str = "max-throughput") -> Allocation:
    """The place of a job that gains what the reference gains and was not measured on V100s."""
    new = _job("a", compute, 4.0)
    result = planned([K80, *(nodes or SHARED)], [new, reference], policy=policy, mechanism="tune")
    return next(one for one in result.allocations if one.job == "a")


@pytest.mark.parametrize("how", ["whole", "limited", "as it ran"])
@pytest.mark.parametrize("policy", ["max-throughput", "max-min-fairness", "las"])
def test_an_estimate_has_the_limit_in_it_once(how: str, policy: str) -> None:
    place = _new(_reference(how), HEAVY, policy=policy)
    assert (place.gpu_type, place.estimated) == ("V100", True)
    assert place.steps_per_s == place.proportional_steps_per_s == pytest.approx(2 * 10.0 * KEPT)


@pytest.mark.parametrize("how", ["whole", "limited", "as it ran"])
def test_who_needs_fewer_threads_than_its_reference_loses_less_to_the_limit(how: str) -> None:
    assert _new(_reference(how), LIGHT).steps_per_s == pytest.approx(20.0)
    assert _new(_reference(how, LIGHT), HEAVY).steps_per_s == pytest.approx(20.0 * KEPT)


@pytest.mark.parametrize("how", ["whole", "limited", "as it ran"])
def test_who_is_not_known_to_need_threads_is_taken_to_lose_what_its_reference_loses(how: str) -> None:
    assert _new(_reference(how), None).steps_per_s == pytest.approx(20.0 * KEPT)


@pytest.mark.parametrize("how", ["limited", "as it ran"])
@pytest.mark.parametrize("compute", [None, LIGHT, HEAVY])
def test_what_a_limit_cost_the_reference_nobody_knows_and_the_like_of_it_loses_no_more(
    how: str, compute: float | None
) -> None:
    assert _new(_reference(how, None), compute).steps_per_s == pytest.approx(20.0 * KEPT)


def test_who_is_like_a_job_that_its_cpu_holds_up_loses_nothing_to_the_limit() -> None:
    """Half the threads are enough for 6.25 of the reference's 10 steps/s; its share's CPU for 4, or, another, for 6."""
    for matrix in (_matrix(4.0, 10.0), _matrix(4.0, 6.25, percent=50)):
        reference = _job("b", HEAVY, 2.0, v100=matrix)
        assert _new(reference, HEAVY).steps_per_s == pytest.approx(8.0)
    reference = _job("b", LIGHT, 2.0, v100=_matrix(8.0, 10.0))
    assert _new(reference, HEAVY).steps_per_s == pytest.approx(2 * 6.25), "now the threads do"


def test_where_some_gpus_are_not_shared_an_estimate_is_of_those() -> None:
    whole = node("x", 2, cpus=12, gpu_type="V100", gpu_memory_bytes=GIB)
    assert _new(_reference("whole"), HEAVY, *SHARED, whole).steps_per_s == pytest.approx(20.0)
    full = replace(whole, gpus_used=2)
    assert _new(_reference("whole"), HEAVY, *SHARED, full).steps_per_s == pytest.approx(20.0 * KEPT)
    limited = _new(_reference("limited"), HEAVY, *SHARED, full)
    assert limited.steps_per_s == pytest.approx(20.0 * KEPT), "also if the reference was seen on the shared ones"


def test_an_estimate_that_no_number_can_hold_without_the_limit_is_none() -> None:
    reference = _job("b", None, 1.0, measured={"V100": 1e308})
    new = _job("a", HEAVY, 1.5)
    result = planned([K80, *SHARED], [new, reference], policy="las", mechanism="tune")
    assert result.estimates == ()
    assert len(planned([K80, *SHARED], [replace(new, usage={}), reference], policy="las").estimates) == 1
