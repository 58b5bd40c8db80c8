"""Problems and allocations as JSON: every field, and a refusal by name for each that makes no sense."""

import json
from typing import Any

import numpy as np
import pytest

from synergy_core.model.snapshot import Tenant
from synergy_core.model.snapshot_format import SnapshotError
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.problem import AllocationMatrix, Problem
from synergy_core.policies.allocation.problem_format import allocation_document, parse_problem

WHOLE: dict[str, Any] = {
    "workers": {"v100": 2, "k80": 3},
    "costs_per_hour": {"k80": 0.5},
    "jobs": [
        {"id": "a", "throughputs": {"v100": 4.0, "v100_unconsolidated": 3.0}, "scale_factor": 2},
        {
            "id": "b",
            "throughputs": {"k80": 1.0},
            "weight": 2.0,
            "steps_remaining": 10.0,
            "time_since_start": 5.0,
            "arrival": 7.0,
            "slo_s": 9.0,
            "tenant": "y",
        },
        {"id": "c", "throughputs": {"v100": 2.0, "k80": 1.0}, "isolated_time": 3.0, "time_since_start": 8.0},
    ],
    "tenants": [{"name": "x"}, {"name": "y", "weight": 3.0, "policy": "fifo"}],
    "pairs": [{"ids": ["c", "b"], "throughputs": {"k80": [0.9, 0.8]}}],
}


def _parsed(**change: Any) -> Problem:
    return parse_problem(json.dumps({**WHOLE, **change}), seed=4)


def test_every_field_is_read() -> None:
    made = _parsed()
    assert (made.types, made.jobs, made.seed) == (("v100", "k80"), ("a", "b", "c"), 4)
    assert made.columns == ("v100", "k80", "v100_unconsolidated")
    assert made.column_type.tolist() == [0, 1, 0]
    assert made.workers.tolist() == [2.0, 3.0]
    assert made.throughputs.tolist() == [[4.0, 0.0, 3.0], [0.0, 1.0, 0.0], [2.0, 1.0, 0.0]]
    assert made.scale.tolist() == [2.0, 1.0, 1.0]
    assert made.weight.tolist() == [1.0, 2.0, 1.0]
    assert np.array_equal(made.steps, [np.nan, 10.0, np.nan], equal_nan=True)
    assert made.elapsed.tolist() == [0.0, 5.0, 8.0]
    assert made.isolated_elapsed.tolist() == [0.0, 5.0, 3.0]
    assert made.arrival.tolist() == [0.0, 7.0, 0.0]
    assert made.slo.tolist() == [np.inf, 9.0, np.inf]
    assert made.tenant.tolist() == [-1, 1, -1]
    assert made.tenants == (Tenant("x"), Tenant("y", 3.0, "fifo"))
    assert np.array_equal(made.cost, [np.nan, 0.5], equal_nan=True)
    assert made.pairs.tolist() == [[2, 1]]
    assert made.pair_throughputs.tolist() == [[[0.0, 0.0], [0.9, 0.8], [0.0, 0.0]]]


def test_without_the_optional_parts_there_are_none() -> None:
    made = parse_problem('{"workers": {"v": 1}, "jobs": [{"id": "a", "throughputs": {"v": 1.0}}]}')
    assert (made.pairs.shape, made.pair_throughputs.shape, made.tenants) == ((0, 2), (0, 1, 2), ())
    assert made.seed == 0


def _job(**change: Any) -> dict[str, Any]:
    return {"jobs": [{"id": "a", "throughputs": {"v100": 1.0}, **change}], "pairs": []}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_job(throughputs={"t4": 1.0}), "jobs[0].throughputs.t4: is not in workers; add it there or remove it here"),
        (_job(throughputs={"t4_unconsolidated": 1.0}), "jobs[0].throughputs.t4_unconsolidated: is not in workers"),
        (_job(throughputs={"v100": -1.0}), "jobs[0].throughputs.v100"),
        (_job(tenant="z"), "jobs[0].tenant: 'z' is not in tenants; add it there or leave it out here"),
        (_job(weight=0.0), "jobs[0].weight"),
        (_job(slo_s=0.0), "jobs[0].slo_s: is in the past"),
        (_job(colour="red"), "jobs[0].colour"),
        ({"jobs": [WHOLE["jobs"][0]] * 2, "pairs": []}, "jobs[1].id: 'a' occurs twice; give each its own"),
        ({"tenants": [{"name": "y"}] * 2}, "tenants[1].name: 'y' occurs twice"),
        ({"costs_per_hour": {"t4": 1.0}}, "costs_per_hour.t4: is not in workers"),
        ({"pairs": [{"ids": ["a", "z"], "throughputs": {}}]}, "pairs[0].ids[1]: 'z' is no job's id"),
        ({"pairs": [{"ids": ["b", "b"], "throughputs": {}}]}, "pairs[0].ids: names one job twice"),
        ({"pairs": [{"ids": ["a", "b"], "throughputs": {"t4": [1, 1]}}]}, "pairs[0].throughputs.t4: is not in workers"),
        ({"jobs": []}, "pairs[0].ids[0]"),
        ({"jobs": [], "pairs": []}, "jobs: is empty"),
        ({"workers": {}}, "workers"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SnapshotError) as refused:
        _parsed(**change)
    if "workers" not in change:
        assert message in str(refused.value)


def test_what_is_no_problem_at_all_is_refused() -> None:
    with pytest.raises(SnapshotError):
        parse_problem("[]")


def test_an_allocation_is_told_by_the_ids_of_its_rows_and_its_columns() -> None:
    made = _parsed()
    found = solve(made, "max-min-fairness")
    told = allocation_document(made, found, seconds=0.25)
    assert [row["ids"] for row in told["allocation"]] == [["a"], ["b"], ["c"], ["c", "b"]]
    assert told["allocation"][0]["x"] == dict(zip(made.columns, found.x[0].tolist(), strict=True))
    assert told["effective_throughput"]["a"] == pytest.approx(4 * found.x[0, 0] + 3 * found.x[0, 2])
    assert (told["objective"], told["status"], told["seconds"]) == (found.objective, "optimal", 0.25)
    assert (told["solver"], told["normalisation"]) == ("HIGHS", found.normalisation)
    assert "note" not in told


def test_an_objective_that_is_no_number_is_null_and_a_note_is_told() -> None:
    made = _parsed()
    x = np.zeros((made.rows, len(made.columns)))
    matrix = AllocationMatrix(x=x, objective=np.inf, status="heuristic", solver="s", normalisation="n", note="why")
    told = allocation_document(made, matrix, seconds=0.0)
    assert (told["objective"], told["note"]) == (None, "why")
    assert told["effective_throughput"] == {"a": 0.0, "b": 0.0, "c": 0.0}
