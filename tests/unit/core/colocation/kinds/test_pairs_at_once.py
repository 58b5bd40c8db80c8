"""Pairs that are worked out many at once have the numbers of those that are worked out one by one, bit for bit."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.snapshots import GIB
from synergy_core.cache import Memory
from synergy_core.colocation.combinations import Combinations
from synergy_core.colocation.grouping import WORTH, Grouping
from synergy_core.colocation.kinds import pairs_on_type
from synergy_core.colocation.predictors.effects import fit_effects
from synergy_core.colocation.predictors.estimator import Estimator
from synergy_core.colocation.predictors.generic import EFFECTS
from synergy_core.colocation.predictors.of_pairs import of_pairs
from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.colocation.predictors.references import References
from synergy_core.colocation.predictors.sums import LinearSums
from synergy_core.model.arrays import Floats
from synergy_core.model.config import PlanConfig
from synergy_core.model.measurement import Observation, Predictor, SharedMeasurement
from synergy_core.model.snapshot import BesideReference, Job, Node, Profile, Shared, Snapshot
from synergy_core.model.usage import Usage
from synergy_core.selection.scheduling_queue import JobIndex

TYPES = ("A100", "K80", "V100")
CONFIG = PlanConfig(policy="max-min-fairness", colocation="gavel", mechanism="proportional")
MODELS = ("", "a", "b", "a beside", "a beside b", "beside b", "c")


@dataclass(frozen=True)
class _OneAtATime:
    """A predictor that knows no other way."""

    def fractions(self, usages: Sequence[Usage]) -> tuple[float, ...]:
        both = zip(usages, reversed(usages), strict=True)
        return tuple(1.0 - 0.5 * other.compute - 0.1 * own.bandwidth for own, other in both)

    def corrected(self, observations: Sequence[Observation]) -> "_OneAtATime":
        return self


class _OneByOne(Combinations):
    """As `Combinations`, but each pair of kinds by itself."""

    def _kept(
        self, kinds: Mapping[Hashable, Job], types: Sequence[str], fair: Mapping[str, Mapping[str, float]]
    ) -> Floats:
        kept = np.zeros((len(types), len(kinds), len(kinds)))
        for (a, job), (b, other) in combinations_with_replacement(enumerate(kinds.values()), 2):
            two = (job, other)
            allowed = self._rules.types(two)
            for column, gpu_type in enumerate(types):
                if gpu_type in allowed:
                    group = self._grouping.together(two, gpu_type, self._rules.predicted(two, gpu_type))
                    if group is not None and self._gain(two, gpu_type, group.each, fair[gpu_type]):
                        kept[column, a, b], kept[column, b, a] = group.each
        return kept

    def _gain(self, two: Sequence[Job], gpu_type: str, each: Sequence[float], fair: Mapping[str, float]) -> bool:
        return sum(each) > max(self._grouping.alone(job, gpu_type) for job in two) + WORTH and all(
            self._grouping.bears(job, kept, fair[job.name]) for job, kept in zip(two, each, strict=True)
        )


def _usage(rng: Random) -> Usage:
    counters = rng.random() < 0.5
    return Usage(
        compute=rng.random(),
        bandwidth=rng.random(),
        memory_bytes=rng.choice((0, 2 * GIB, rng.randrange(12 * GIB), 1 << 70)),
        model=rng.choice(MODELS),
        configuration=rng.choice(("", "x")),
        counters=counters,
        utilization=rng.random() if counters and rng.random() < 0.5 else None,
    )


def _profile(rng: Random) -> Profile:
    """Not ascending everywhere, as measured ones are."""
    cpu = tuple(sorted({rng.randint(1, 48) * 250 for _ in range(rng.randint(1, 6))}))
    memory = tuple(sorted({rng.randint(1, 80) * GIB for _ in range(rng.randint(1, 5))}))
    knee, saturated, best = rng.randint(250, 12000), rng.randint(1, 80) * GIB, rng.uniform(1, 20)
    table = [
        [best * min(1.0, c / knee, 0.2 + 0.8 * m / saturated) * rng.uniform(0.9, 1.0) for m in memory] for c in cpu
    ]
    if rng.random() < 0.1:
        table = [[0.0 for _ in row] for row in table]
    percent = rng.choice((100, 100, 50))
    return Profile(
        cpu_millis=cpu,
        memory_bytes=memory,
        steps_per_s=tuple(map(tuple, table)),
        client_thread_percent=percent,
    )


def _job(rng: Random, name: str) -> Job:
    known = {gpu_type: _profile(rng) for gpu_type in TYPES if rng.random() < 0.7}
    low = rng.choice((0, 0, rng.randint(1, 6000)))
    bounds: dict[str, Any] = {}
    if rng.random() < 0.3:
        bounds = {"cpu_millis_min": low, "cpu_millis_max": rng.choice((None, low + rng.randint(1, 3000)))}
        bounds |= {"memory_bytes_min": rng.choice((0, 5 * GIB)), "memory_bytes_max": rng.choice((None, 9 * GIB))}
    return Job(
        name=name,
        gpus=rng.choice((1, 1, 1, 1, 1, 2)),
        tenant=rng.choice("ttu"),
        sharing=rng.random() < 0.9,
        sharing_across_tenants=rng.random() < 0.5,
        gpu_types=rng.choice(((), (), (), TYPES[:2])),
        profiles=known,
        measured={gpu_type: rng.uniform(1, 9) for gpu_type in TYPES if gpu_type not in known and rng.random() < 0.5},
        usage={gpu_type: _usage(rng) for gpu_type in TYPES if rng.random() < 0.9},
        min_throughput_fraction=rng.choice((None, 0.0, 0.3, 0.6)),
        nodes=rng.choice((None, None, None, ("n0", "n2"), ("n1",), ("n9",))),
        steps_total=10**6,
        **bounds,
    )


def _node(rng: Random, name: str) -> Node:
    gpus = rng.choice((1, 2, 4))
    return Node(
        name=name,
        gpu_type=rng.choice((*TYPES, "V100", "V100")),
        gpus=gpus,
        cpu_millis=gpus * rng.randint(500, 9000),
        memory_bytes=gpus * rng.randint(1, 90) * GIB,
        further={"network": 100},
        replicas=rng.choice((1, 2, 2, 3)),
        gpu_memory_bytes=rng.choice((8, 16)) * GIB,
        client_memory_bytes=rng.choice((0, 0, 6 * GIB)),
        client_thread_percent=rng.choice((100, 50, 60)),
    )


def _measured(rng: Random, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """What some of them were measured to keep beside each other, and beside references."""
    found = list(jobs)
    for place, job in enumerate(jobs):
        gpu_type = rng.choice(TYPES)
        other = rng.choice(jobs)
        if other is not job and rng.random() < 0.3 and gpu_type in other.usage:
            seen = Shared(
                gpu_type=gpu_type,
                partners=(other.name,),
                usages=(other.usage[gpu_type],),
                fraction=rng.uniform(0.2, 1.2),
                at_s=0.0,
            )
            found[place] = replace(job, shared=(seen,))
        elif rng.random() < 0.2:
            kept, reference_kept = rng.random(), rng.random()
            beside = BesideReference(gpu_type=gpu_type, usage=_usage(rng), kept=kept, reference_kept=reference_kept)
            found[place] = replace(job, beside_references=(beside,))
    return tuple(found)


def _pairs_of_models(rng: Random) -> dict[tuple[str, str], float]:
    return {(one, other): rng.random() for one in MODELS[1:] for other in MODELS[1:] if rng.random() < 0.8}


def _predictor(rng: Random, kind: str) -> Predictor:
    counters = rng.random() < 0.5
    if kind == "sums":
        return LinearSums(base=1.156, compute=-0.248, bandwidth=0.035, counters=counters)
    if kind == "table":
        return PairTable(_pairs_of_models(rng))
    if kind == "estimator":
        table = _pairs_of_models(rng) | {("a", "a"): 0.9}
        return Estimator(References.of(PairTable(table), [name for name in MODELS[1:] if rng.random() < 0.7] + ["a"]))
    if kind == "effects":
        usages = [(_usage(rng), _usage(rng)) for _ in range(12)]
        measurements = [SharedMeasurement(two, (rng.uniform(0.4, 1.0), rng.uniform(0.4, 1.0))) for two in usages]
        return fit_effects(measurements, counters=counters)
    return _OneAtATime()


PREDICTORS = ("sums", "table", "estimator", "effects", "any")


def _rows(way: type[Combinations], snapshot: Snapshot, config: PlanConfig, memory: Memory) -> list[Any]:
    memory.begin(snapshot.nodes, config.demand_tolerance)
    memory.speeds.begin(snapshot.jobs, memory.pools, config.estimate)
    grouping = Grouping(snapshot, memory.pools, config, memory.speeds)
    types = [pool.gpu_type for pool in memory.pools]
    index = JobIndex(snapshot.jobs, memory)
    speeds = [index.speeds(job) for job in snapshot.jobs]
    alone = [
        [each.get(gpu_type, 0.0) * grouping.alone(job, gpu_type) for gpu_type in types]
        for job, each in zip(snapshot.jobs, speeds, strict=True)
    ]
    workers = np.array([float(pool.open_gpus[0]) for pool in memory.pools])
    shape = (len(snapshot.jobs), len(types))
    pairs, rates = way(grouping, memory.pairs).rows(snapshot.jobs, types, np.reshape(alone, shape), workers)
    return [pairs.tolist(), rates.tolist()]


@settings(max_examples=150)
@given(st.randoms(use_true_random=False), st.sampled_from((*PREDICTORS, None)))
def test_rows_are_the_same_as_one_by_one_in_plan_after_plan(rng: Random, kind: str | None) -> None:
    nodes = tuple(_node(rng, f"n{index}") for index in range(rng.randint(1, 6)))
    jobs = tuple(_job(rng, f"j{index}") for index in range(rng.randint(2, 8)))
    config, memory = CONFIG, Memory()
    for step in range(4):
        if step in {0, 3} and kind is not None:
            config = replace(config, predictors={gpu_type: _predictor(rng, kind) for gpu_type in TYPES[:2]})
        if step == 2:
            jobs = _measured(rng, jobs)
        snapshot = Snapshot(nodes=nodes, jobs=jobs)
        expected = _rows(_OneByOne, snapshot, config, Memory())
        assert _rows(Combinations, snapshot, config, memory) == expected
        others = [job for job in jobs if rng.random() < 0.8] + [_job(rng, f"k{step}")]
        measured = rng.choice((jobs[0].measured, dict.fromkeys(jobs[0].measured, 4.0)))
        others.append(replace(jobs[0], name=f"l{step}", measured=measured))
        rng.shuffle(others)
        jobs = tuple(others)


def _open_job(rng: Random, name: str) -> Job:
    """One that shares with any other if that gains."""
    return replace(
        _job(rng, name), gpus=1, sharing=True, sharing_across_tenants=True, min_throughput_fraction=0.0, gpu_types=(),
        nodes=None, cpu_millis_min=0, memory_bytes_min=0,
    )  # fmt: skip


@settings(max_examples=60)
@given(st.integers(0, 1 << 32))
def test_rows_are_those_without_memory_whatever_changes_from_plan_to_plan(seed: int) -> None:
    rng = Random(seed)
    nodes = tuple(_node(rng, f"n{index}") for index in range(6))
    jobs = tuple(_open_job(rng, f"j{index}") for index in range(10))
    config, memory = CONFIG, Memory()
    for step in range(8):
        if step == 0 or rng.random() < 0.3:
            other = {rng.choice(TYPES): _predictor(rng, rng.choice((*PREDICTORS, "estimator", "estimator")))}
            config = replace(config, predictors={**config.predictors, **other})
        if rng.random() < 0.5:
            jobs = _measured(rng, jobs)
        if rng.random() < 0.3:
            nodes = (*nodes[1:], _node(rng, f"n{step + 6}"))
        if rng.random() < 0.1:
            config = replace(config, demand_tolerance=rng.choice((0.05, 0.2)))
        if rng.random() < 0.3:
            jobs = (*jobs[1:], _open_job(rng, f"k{step}"))
        snapshot = Snapshot(nodes=nodes, jobs=jobs)
        assert _rows(Combinations, snapshot, config, memory) == _rows(Combinations, snapshot, config, Memory())


@pytest.mark.parametrize("kind", PREDICTORS)
@settings(max_examples=30)
@given(st.randoms(use_true_random=False))
def test_a_predictor_predicts_the_same_for_many_pairs_as_for_each(kind: str, rng: Random) -> None:
    predictor = _predictor(rng, kind)
    usages = [_usage(rng) for _ in range(6)]
    partners = [(_usage(rng),) for _ in range(3)]
    predictor = predictor.corrected([Observation(_usage(rng), two, rng.random()) for two in partners])
    two = np.array(list(combinations_with_replacement(range(6), 2))).T
    each = [predictor.fractions((usages[one], usages[other])) for one, other in two.T.tolist()]
    assert of_pairs(predictor, usages)(two).T.tolist() == [list(fractions) for fractions in each]


def test_a_weight_of_a_pair_without_two_names_counts_for_none() -> None:
    names = (("compute", ""), ("pair", " beside b"), ("pair", "a beside b"))
    predictor = replace(EFFECTS, names=names, mean=np.array([-0.1, -0.2, -0.4]), covariance=np.eye(3))
    usages = [Usage(compute=0.5, bandwidth=0.1, model=model) for model in ("", "a", "b")]
    two = np.array([(0, 2), (1, 2)]).T
    assert of_pairs(predictor, usages)(two)[0].tolist() == [0.95, 0.55]
    assert [predictor.fractions((usages[one], usages[other]))[0] for one, other in two.T.tolist()] == [0.95, 0.55]


def test_many_pairs_are_worked_out_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(5)
    nodes = tuple(replace(_node(rng, f"n{index}"), replicas=2) for index in range(4))
    snapshot = Snapshot(nodes=nodes, jobs=tuple(_job(rng, f"j{index}") for index in range(12)))
    whole = _rows(Combinations, snapshot, CONFIG, Memory())
    monkeypatch.setattr(pairs_on_type, "_BLOCK", 7)
    assert whole[0]
    assert _rows(Combinations, snapshot, CONFIG, Memory()) == whole
