"""Speeds on GPU types that a job was never measured on, from reference jobs."""

import ast
import json
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import papers
from synergy_core.throughput.gpu_types import AT_SHARE, Known, estimated

TYPES = ("A100", "K80", "V100")
_sizes = st.floats(0.01, 100.0)


@pytest.fixture
def gavel_speeds() -> dict[str, dict[str, float]]:
    """Of each configuration of the Gavel authors' table the speed alone on each type, where it has all three."""
    folder = papers.found("gavel")
    if folder is None:
        pytest.skip("the papers' data tables are not beside the project (PAPERS_DATA names their folder)")
    found: dict[str, dict[str, float]] = {}
    for gpu_type, rows in json.loads((folder / "simulation_throughputs.json").read_text()).items():
        for name, partners in rows.items() if not gpu_type.endswith("_unconsolidated") else ():
            if partners.get("null"):
                found.setdefault(str(ast.literal_eval(name)), {})[gpu_type] = partners["null"]
    return {name: speeds for name, speeds in found.items() if len(speeds) == 3}


def _known(
    name: str,
    *,
    gpus: int = 1,
    shape: dict[str, tuple[float, ...]] | None = None,
    model: str = "",
    batch: float | None = None,
    **speeds: float,
) -> Known:
    """A job by its speeds at the share; `shape` are those at half and at twice its CPU, as parts of that."""
    found = {(gpu_type, AT_SHARE): speed for gpu_type, speed in speeds.items()}
    for gpu_type, (half, twice) in (shape or {}).items():
        found[gpu_type, 0.5], found[gpu_type, 2.0] = speeds[gpu_type] * half, speeds[gpu_type] * twice
    return Known(name, gpus, found, model, batch)


@settings(max_examples=50)
@given(
    jobs=st.lists(_sizes, min_size=1, max_size=8),
    types=st.tuples(_sizes, _sizes, _sizes),
    own=_sizes,
    known=st.sampled_from([("K80",), ("V100",), ("A100", "K80")]),
    gpus=st.sampled_from([1, 2, 8]),
)
def test_where_all_jobs_gain_alike_the_estimate_is_exact(
    jobs: list[float], types: tuple[float, float, float], own: float, known: tuple[str, ...], gpus: int
) -> None:
    speed = dict(zip(TYPES, types, strict=True))
    references = [_known(f"r{n}", **{t: one * speed[t] for t in TYPES}) for n, one in enumerate(jobs)]
    new = _known("new", gpus=gpus, **{t: own * speed[t] for t in known})
    found = estimated([*references, new], {"new": TYPES})["new"]
    assert set(found) == set(TYPES) - set(known)  # what was measured is never estimated
    for gpu_type, one in found.items():
        assert one.steps_per_s == pytest.approx(own * speed[gpu_type], rel=1e-9)


def _fast(name: str, **speeds: float) -> Known:
    """Bound by its GPU: CPU does not matter."""
    return _known(name, shape=dict.fromkeys(speeds, (1.0, 1.0)), **speeds)


def _starved(name: str, **speeds: float) -> Known:
    """Bound by its CPU, on whatever GPU."""
    return _known(name, shape=dict.fromkeys(speeds, (0.5, 1.9)), **speeds)


def test_how_a_job_follows_its_cpu_tells_which_reference_it_is_like() -> None:
    references = [
        *(_fast(f"gpu-{n}", K80=1.0 * n, V100=8.0 * n) for n in (1, 2, 3)),
        *(_starved(f"cpu-{n}", K80=1.0 * n, V100=1.1 * n) for n in (1, 2, 3)),
    ]
    wanted = {"x": ["V100"], "y": ["V100"]}
    found = estimated([*references, _fast("x", K80=5.0), _starved("y", K80=5.0)], wanted)
    assert found["x"]["V100"].steps_per_s == pytest.approx(40.0)
    assert found["y"]["V100"].steps_per_s == pytest.approx(5.5)
    assert (found["x"]["V100"].reference[:4], found["y"]["V100"].reference[:4]) == ("gpu-", "cpu-")


def test_a_second_type_tells_which_reference_a_job_is_like() -> None:
    steep, flat = {"K80": 1.0, "V100": 4.0, "A100": 12.0}, {"K80": 1.0, "V100": 1.2, "A100": 1.3}
    references = [_known(f"steep-{n}", **steep) for n in range(3)] + [_known(f"flat-{n}", **flat) for n in range(3)]
    found = estimated([*references, _known("new", K80=2.0, V100=7.4)], {"new": ["A100"]})
    assert found["new"]["A100"].reference == "steep-0"
    # the mean of what both measured types say, in proportions
    assert found["new"]["A100"].steps_per_s == pytest.approx(12.0 * np.sqrt(2.0 * 7.4 / 4.0))


def test_of_references_that_are_alike_the_one_with_as_many_gpus_counts() -> None:
    references = [_known("one", K80=1.0, V100=4.0), _known("eight", gpus=8, K80=8.0, V100=32.0)]
    for gpus, reference in ((1, "one"), (4, "eight")):
        assert (
            estimated([*references, _known("new", gpus=gpus, K80=3.0)], {"new": ["V100"]})["new"]["V100"].reference
            == reference
        )


def test_references_of_the_same_model_count_before_any_fingerprint() -> None:
    near = [_known(f"near{n}", K80=1.0, V100=8.0, A100=16.0) for n in range(3)]
    own = _known("own", model="bert", K80=1.0, V100=2.0, A100=6.0)
    for model, reference, speed in (("bert", "own", 10.0), ("", "near0", 40.0), ("gpt", "near0", 40.0)):
        found = estimated([*near, own, _known("new", model=model, K80=5.0)], {"new": ["V100"]})["new"]["V100"]
        assert (found.reference, found.steps_per_s) == (reference, pytest.approx(speed))


@pytest.mark.parametrize(
    ("batch", "gain", "reference"),
    [
        *[(16, 2.0, "b16"), (20, 2.5, "b16"), (48, 6.0, "b64"), (64, 8.0, "b64")],
        *[(8, 2.0, "b16"), (512, 8.0, "b64"), (None, 8.0, "b64")],
    ],
)
def test_between_two_batches_of_its_model_a_job_gains_what_lies_between(
    batch: float | None, gain: float, reference: str
) -> None:
    """Beyond the smallest and the largest: what these gain. Without its batch: what the nearest fingerprint gains."""
    references = [
        _known("b16", model="m", batch=16, K80=1.0, V100=2.0),
        _known("b64", model="m", batch=64, K80=1.0, V100=8.0),
        _known("no batch", model="m", K80=1.0, V100=100.0),
        _known("other", K80=1.0, V100=50.0),
    ]
    new = _known("new", model="m", batch=batch, K80=3.0)
    found = estimated([*references, new], {"new": ["V100"]})["new"]["V100"]
    assert (found.steps_per_s, found.reference) == (pytest.approx(3.0 * gain), reference)


def test_of_its_model_those_with_as_many_gpus_count_else_the_nearest_number() -> None:
    references = [
        _known(f"{gpus}", gpus=gpus, model="m", batch=8, K80=1.0, V100=gain) for gpus, gain in ((1, 8.0), (8, 2.0))
    ]
    for gpus, gain in ((1, 8.0), (2, 8.0), (4, 2.0), (8, 2.0)):
        new = _known("new", gpus=gpus, model="m", batch=64, K80=1.0)
        assert estimated([*references, new], {"new": ["V100"]})["new"]["V100"].steps_per_s == pytest.approx(gain)


def test_without_a_reference_there_is_no_estimate() -> None:
    apart = [_known("a", K80=1.0, V100=2.0), _known("b", A100=1.0)]
    assert estimated(apart, {"b": ["V100", "K80", "H100"]}) == {}
    assert estimated([_known("alone", K80=1.0)], {"alone": ["V100"]}) == {}
    assert estimated(apart, {}) == {}


@pytest.mark.parametrize(
    ("k80", "v100", "own", "told"),
    [(1e-300, 1e300, 1e200, None), (1e300, 1e-300, 1e-100, None), (1e300, 1e290, 1e-10, 1e-20)],
)
def test_speeds_too_far_apart_for_a_number_are_not_estimated(
    k80: float, v100: float, own: float, told: float | None
) -> None:
    found = estimated([_known("a", K80=k80, V100=v100), _known("new", K80=own)], {"new": ["V100"]})
    assert {name: types["V100"].steps_per_s for name, types in found.items()} == (
        {} if told is None else {"new": pytest.approx(told)}
    )


def test_a_job_that_asks_is_no_reference_for_what_it_asks_of() -> None:
    asking = [_known("x", K80=1.0), _known("y", K80=2.0)]
    assert estimated(asking, {"x": ["V100"], "y": ["V100"]}) == {}


@settings(max_examples=50)
@given(st.data())
def test_the_order_of_the_jobs_does_not_matter_and_speeds_are_positive(data: st.DataObject) -> None:
    def job(name: str) -> Known:
        types = data.draw(st.lists(st.sampled_from(TYPES), unique=True, min_size=1))
        return _known(name, gpus=data.draw(st.sampled_from([1, 2, 4])), **{t: data.draw(_sizes) for t in types})

    jobs = [job(f"j{number}") for number in range(data.draw(st.integers(2, 6)))]
    wanted = {one.name: TYPES for one in jobs}
    found = estimated(jobs, wanted)
    assert found == estimated(data.draw(st.permutations(jobs)), wanted)
    for name, types in found.items():
        own = next(one for one in jobs if one.name == name)
        assert own.types.isdisjoint(types)
        assert all(0.0 < one.steps_per_s < np.inf for one in types.values())


def test_a_fingerprint_is_of_the_job_whatever_its_size() -> None:
    references = [_fast("gpu", K80=1.0, V100=8.0), _starved("cpu", K80=100.0, V100=110.0)]
    new = _fast("new", K80=100.0)
    assert estimated([*references, new], {"new": ["V100"]})["new"]["V100"].reference == "gpu"
    large = replace(new, speeds={place: speed * 1000.0 for place, speed in new.speeds.items()})
    assert estimated([*references, large], {"new": ["V100"]})["new"]["V100"].reference == "gpu"


def _one_of(name: str, speeds: dict[str, float]) -> Known:
    """Of a row of the Gavel authors' table, whose names have the batch of a GPU."""
    config, gpus = ast.literal_eval(name)
    model, _, batch = config.partition(" (batch size ")
    return _known(name, gpus=gpus, model=model, batch=float(batch.rstrip(")") or 1), **speeds)


@pytest.mark.papers
@pytest.mark.parametrize(
    ("same_model", "off_by"), [(True, {1: (0.10, 0.19), 2: (0.09, 0.15)}), (False, {1: (0.37, 0.62), 2: (0.29, 0.44)})]
)
def test_on_gavels_speeds_other_batches_of_the_same_model_tell_far_more_than_other_models(
    gavel_speeds: dict[str, dict[str, float]], same_model: bool, off_by: dict[int, tuple[float, float]]
) -> None:
    """Each of the 26 job types of one GPU left out in turn, and where not `same_model` its whole model with it."""
    jobs = [one for one in (_one_of(name, speeds) for name, speeds in gavel_speeds.items()) if one.gpus == 1]
    assert len(jobs) == 26
    for count, expected in off_by.items():
        off = []
        for one in jobs:
            others = [job for job in jobs if (job is not one if same_model else job.model != one.model)]
            for known in combinations(sorted(one.types), count):
                part = replace(one, speeds={place: speed for place, speed in one.speeds.items() if place[0] in known})
                for gpu_type, answer in estimated([part, *others], {one.name: sorted(one.types)})[one.name].items():
                    off.append(abs(answer.steps_per_s / one.speeds[gpu_type, AT_SHARE] - 1.0))
        assert (np.median(off), np.mean(off)) == (
            pytest.approx(expected[0], abs=0.02),
            pytest.approx(expected[1], abs=0.02),
        )


@pytest.mark.papers
def test_on_gavels_speeds_two_types_tell_the_third_far_better_than_taking_all_types_for_equal(
    gavel_speeds: dict[str, dict[str, float]],
) -> None:
    """Each configuration left out in turn (docs/decisions/0025-estimated-speeds.md has the figures)."""
    jobs = [_known(name, **speeds) for name, speeds in gavel_speeds.items()]
    assert len(jobs) == 80
    off: dict[int, list[float]] = {1: [], 2: []}
    equal: list[float] = []
    for one, count in product(jobs, (1, 2)):
        for known in combinations(sorted(one.types), count):
            part = replace(one, speeds={place: speed for place, speed in one.speeds.items() if place[0] in known})
            found = estimated([part, *(job for job in jobs if job is not one)], {one.name: sorted(one.types)})
            for gpu_type, answer in found[one.name].items():
                truth = one.speeds[gpu_type, AT_SHARE]
                off[count].append(abs(answer.steps_per_s / truth - 1.0))
                equal += [] if count == 2 else [abs(part.speeds[known[0], AT_SHARE] / truth - 1.0)]
    assert (np.median(off[1]), np.median(off[2])) == (pytest.approx(0.30, abs=0.02), pytest.approx(0.25, abs=0.02))
    assert np.mean(off[1]) < 0.3 * np.mean(equal)
