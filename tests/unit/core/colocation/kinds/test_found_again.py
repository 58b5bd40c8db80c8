"""Which pairs a plan works out again after a change."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from support.planner.snapshots import GIB
from synergy_core.cache import Memory
from synergy_core.colocation.kinds.pairs_on_type import PairsOnType
from synergy_core.colocation.predictors.estimator import Estimator
from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.colocation.predictors.references import References
from synergy_core.colocation.predictors.sums import LinearSums
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.config import PlanConfig
from synergy_core.model.measurement import Predictor
from synergy_core.model.snapshot import BesideReference, Job, Node, Shared, Snapshot
from synergy_core.model.usage import Usage
from synergy_core.plan import plan

TYPES = ("K80", "V100")
CONFIG = PlanConfig(policy="max-min-fairness", mechanism="proportional", colocation="gavel")
TABLE = PairTable({("ref", "ref"): 0.9})
BY_REFERENCES = Estimator(References.of(TABLE, ["ref"]))
NODES = tuple(
    Node(
        name=f"{gpu_type}-{number}", gpu_type=gpu_type, gpus=1, cpu_millis=8000, memory_bytes=64 * GIB, replicas=2,
        gpu_memory_bytes=16 * GIB,
    )
    for gpu_type in TYPES
    for number in range(2)
)  # fmt: skip


def _usage(model: str) -> Usage:
    return Usage(compute=0.3, bandwidth=0.1, memory_bytes=GIB, model=model)


def _snapshot() -> Snapshot:
    """Three jobs, one of a reference's model: six pairs on each GPU type, also of each job and one like it."""
    jobs = tuple(
        Job(
            name=name, gpus=1, tenant="t", sharing=True, steps_total=10**6, measured=dict.fromkeys(TYPES, 5.0),
            usage=dict.fromkeys(TYPES, _usage(name)),
        )
        for name in ("one", "other", "ref")
    )  # fmt: skip
    return Snapshot(nodes=NODES, jobs=jobs, round_s=300.0)


def _node(snapshot: Snapshot) -> Snapshot:
    """One node is cordoned. What is left beside a GPU of the type is as before."""
    first, *others = snapshot.nodes
    return replace(snapshot, nodes=(replace(first, schedulable=False), *others))


def _beside_other(snapshot: Snapshot) -> Snapshot:
    one, *others = snapshot.jobs
    seen = Shared(gpu_type="K80", partners=("other",), usages=(_usage("other"),), fraction=0.8, at_s=0.0)
    return replace(snapshot, jobs=(replace(one, shared=(seen,)), *others))


def _beside_reference(snapshot: Snapshot) -> Snapshot:
    one, *others = snapshot.jobs
    seen = BesideReference(gpu_type="K80", usage=_usage("ref"), kept=0.8, reference_kept=0.7)
    return replace(snapshot, jobs=(replace(one, beside_references=(seen,)), *others))


@pytest.mark.parametrize(
    ("change", "predictor", "pairs"),
    [
        (_node, None, {"K80": 6}),
        (_beside_other, None, {"K80": 6}),
        (_beside_reference, None, {"K80": 6}),
        (_beside_other, TABLE, {}),
        (_beside_other, LinearSums(base=1.156, compute=-0.248, bandwidth=0.035), {}),
        # a job of which other things are known is of another kind, on all types
        (_beside_other, BY_REFERENCES, {"K80": 3, "V100": 3}),
        (_beside_reference, BY_REFERENCES, {"K80": 3, "V100": 3}),
    ],
)
def test_only_the_pairs_that_a_change_concerns_are_worked_out_again(
    change: Callable[[Snapshot], Snapshot],
    predictor: Predictor | None,
    pairs: dict[str, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: dict[str, int] = {}
    kept = PairsOnType.kept

    def counted(self: PairsOnType, two: Ints) -> Floats:
        found[self._gpu_type] = found.get(self._gpu_type, 0) + two.shape[1]
        return kept(self, two)

    monkeypatch.setattr(PairsOnType, "kept", counted)
    config = CONFIG if predictor is None else replace(CONFIG, predictors=dict.fromkeys(TYPES, predictor))
    memory, snapshot = Memory(), _snapshot()
    plan(snapshot, config, memory)
    assert found == dict.fromkeys(TYPES, 6)
    found.clear()
    plan(change(snapshot), config, memory)
    assert found == pairs
