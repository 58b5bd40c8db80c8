"""Jobs that are measured on some GPU types only: which, and that each can be a reference for others."""

from itertools import combinations

import pytest

from support.operator.objects import node
from support.operator.world import World
from synergy_api.parts.profile import SensitivityMatrix
from synergy_api.resources.scheduling_policy import Profiling
from synergy_api.resources.training_job import ProfileStatus, TrainingJobSpec
from synergy_operator.profile.series import missing_types, types_to_measure

TYPES = ("A100", "K80", "T4", "V100")


def _world(most: int | None, **spec: object) -> World:
    world = World([node(f"n-{kind}", kind=kind) for kind in TYPES], profile={"mode": "Auto"}, **spec)  # type: ignore[arg-type]
    world.profiling = Profiling(max_gpu_types=most)
    return world


def _profile(number: int, *measured: str) -> ProfileStatus:
    matrices = [
        SensitivityMatrix(gpu_type=kind, cpu_millis=[1000], memory_bytes=[1], steps_per_second=[[1.0]])
        for kind in measured
    ]
    return ProfileStatus(state="Waiting", fingerprint=f"{number:08x}".ljust(64, "0"), matrices=matrices)


def _spec(world: World) -> TrainingJobSpec:
    spec = world.view.spec
    assert spec is not None
    return spec


def _missing(world: World, profile: ProfileStatus) -> tuple[str, ...]:
    return missing_types(profile, _spec(world), world.cluster)


def test_without_a_bound_a_job_is_measured_on_all_types() -> None:
    assert _missing(_world(None), _profile(0)) == TYPES
    assert _missing(_world(9), _profile(0)) == TYPES
    assert [types_to_measure(_spec(world), world.cluster) for world in map(_world, (None, 9, 2))] == [4, 4, 2]


def test_different_jobs_are_measured_on_different_types_and_each_type_by_some() -> None:
    world = _world(2)
    chosen = [_missing(world, _profile(number)) for number in range(len(TYPES))]
    assert all(len(one) == 2 for one in chosen)
    assert {kind for one in chosen for kind in one} == set(TYPES)
    assert len(set(chosen)) == len(TYPES)
    apart = [pair for pair in combinations(chosen, 2) if not set(pair[0]) & set(pair[1])]
    assert len(apart) < len(list(combinations(chosen, 2))), "or nobody could be compared with anybody"


@pytest.mark.parametrize("number", range(4))
def test_what_is_measured_counts_and_the_choice_stays_as_it_was(number: int) -> None:
    world = _world(2)
    first, second = _missing(world, _profile(number))
    assert _missing(world, _profile(number, first)) == (second,)
    assert _missing(world, _profile(number, first, second)) == ()
    assert _missing(world, _profile(number, *TYPES)) == ()


def test_a_job_that_may_use_fewer_types_is_measured_on_those() -> None:
    world = _world(3, gpuTypes=["T4", "K80"])
    assert _missing(world, _profile(7)) == ("K80", "T4")


def test_a_type_whose_nodes_are_cordoned_is_passed_over() -> None:
    world = _world(2)
    for item in world.nodes.values():
        item["spec"]["unschedulable"] = item["metadata"]["name"] in ("n-A100", "n-K80", "n-T4")
    assert _missing(world, _profile(0)) == ("V100",)


def test_a_matrix_for_a_type_that_it_may_not_use_any_more_does_not_count() -> None:
    assert _missing(_world(2, gpuTypes=["T4", "K80"]), _profile(0, "A100")) == ("K80", "T4")
