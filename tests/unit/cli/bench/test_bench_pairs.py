"""`kube-synergy bench pairs`: its pairs are those of real plans, and each change costs what it should."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from synergy_cli.bench.pairs import rows as bench_rows
from synergy_cli.bench.pairs.rows import one_by_one_s, rows
from synergy_cli.bench.pairs.workload import PairsWorkload
from synergy_cli.main import main
from synergy_core.cache import Memory
from synergy_core.colocation.combinations import Combinations
from synergy_core.colocation.grouping import Candidate, Grouping
from synergy_core.colocation.kinds.pairs_on_type import PairsOnType
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Snapshot
from synergy_core.plan import plan

CONFIG = PlanConfig(policy="max-min-fairness", colocation="gavel")


def _report(*options: str) -> Any:
    result = CliRunner().invoke(main, ["bench", "pairs", "--json", *options])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def _planned_rows(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot, config: PlanConfig) -> tuple[Ints, Floats]:
    """What a plan of the snapshot gives its policy."""
    found: list[tuple[Ints, Floats]] = []
    asked = Combinations.rows

    def spy(self: Combinations, *args: Any) -> tuple[Ints, Floats]:
        found.append(asked(self, *args))
        return found[-1]

    with monkeypatch.context() as patched:
        patched.setattr(Combinations, "rows", spy)
        plan(snapshot, config)
    (only,) = found
    return only


@pytest.mark.parametrize("predictor", ["built-in", "corrected", "references"])
def test_the_rows_are_those_that_a_plan_gives_its_policy(monkeypatch: pytest.MonkeyPatch, predictor: str) -> None:
    workload = PairsWorkload(types=2, references=3, measured=0 if predictor == "built-in" else 2, seed=4)
    config = replace(CONFIG, predictors=workload.estimators()) if predictor == "references" else CONFIG
    snapshot = workload.snapshot(12)
    pairs, throughputs = _planned_rows(monkeypatch, snapshot, config)
    (case,) = _report("--jobs", "12", "--predictor", predictor, "--types", "2", "--references", "3", "--seed", "4")[
        "cases"
    ]
    assert (case["predictor"], case["jobs"], case["rows"]) == (predictor, 12, len(pairs))
    assert 0 < case["rows"] <= 66
    assert case["fractions"] == (0 if predictor == "built-in" else 12 * 2 * 2 * 2)
    found = rows(snapshot, config, Memory())
    assert found.seconds > 0
    assert np.array_equal(found.pairs, pairs)
    assert np.array_equal(found.throughputs, throughputs)


def test_the_predictors_do_not_predict_the_same() -> None:
    workload = PairsWorkload(types=1, references=3, measured=2, seed=0)
    snapshot = workload.snapshot(10)
    unmeasured = replace(snapshot, jobs=tuple(replace(job, beside_references=()) for job in snapshot.jobs))
    fitted = replace(CONFIG, predictors=workload.estimators())
    ways = [(unmeasured, CONFIG), (snapshot, CONFIG), (snapshot, fitted), (unmeasured, fitted)]
    found = [rows(*way, Memory()).throughputs.tolist() for way in ways]
    assert all(one != other for one, other in combinations(found, 2))


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[Counter[str]]:
    """Pairs of kinds that were worked out, by GPU type, for each time that rows were asked for."""
    found: list[Counter[str]] = []
    measure, init, kept = bench_rows.rows, PairsOnType.__init__, PairsOnType.kept
    types: dict[int, str] = {}

    def begun(*args: Any) -> Any:
        found.append(Counter())
        return measure(*args)

    def made(self: PairsOnType, grouping: Grouping, gpu_type: str, *rest: Any) -> None:
        types[id(self)] = gpu_type
        init(self, grouping, gpu_type, *rest)

    def counted(self: PairsOnType, two: Ints) -> Floats:
        found[-1][types[id(self)]] += two.shape[1]
        return kept(self, two)

    monkeypatch.setattr("synergy_cli.bench.pairs.command.rows", begun)
    monkeypatch.setattr(PairsOnType, "__init__", made)
    monkeypatch.setattr(PairsOnType, "kept", counted)
    return found


def test_each_change_has_worked_out_what_it_changes(worked_out: list[Counter[str]]) -> None:
    every = 10 * 11 // 2  # a kind beside itself too
    _report("--jobs", "10", "--types", "2", "--predictor", "built-in")
    assert worked_out == [{"V100": every, "A100": every}, {}, {"V100": every}, {"V100": 11, "A100": 11}]


def test_a_job_that_was_measured_changes_all_pairs_of_the_built_in_predictor(worked_out: list[Counter[str]]) -> None:
    _report("--jobs", "10", "--types", "1", "--predictor", "corrected")
    assert worked_out == [{"V100": 55}, {}, {"V100": 55}, {"V100": 11}, {"V100": 78}]


def test_with_references_it_changes_its_own_pairs_only(worked_out: list[Counter[str]]) -> None:
    _report("--jobs", "10", "--types", "1", "--predictor", "references")
    assert worked_out == [{"V100": 55}, {}, {"V100": 10}, {"V100": 11}, {"V100": 12}]


def test_a_job_more_has_pairs_where_no_more_jobs_have(
    monkeypatch: pytest.MonkeyPatch, worked_out: list[Counter[str]]
) -> None:
    monkeypatch.setattr("synergy_core.colocation.combinations._MOST_CONSIDERED", 10)
    _report("--jobs", "10", "--types", "1", "--predictor", "references")
    assert worked_out == [{"V100": 55}, {}, {"V100": 10}, {"V100": 10}, {"V100": 10}]


def test_the_reference_works_out_each_pair_by_itself_on_each_type(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    together = Grouping.together

    def spy(self: Grouping, jobs: Sequence[Job], gpu_type: str) -> Candidate | None:
        asked.append((gpu_type, *(job.name for job in jobs)))
        return together(self, jobs, gpu_type)

    monkeypatch.setattr(Grouping, "together", spy)
    snapshot = PairsWorkload(types=2, references=1, measured=1, seed=0).snapshot(30)
    names = [job.name for job in snapshot.jobs]
    every = {(gpu_type, *two) for gpu_type in ("A100", "V100") for two in combinations(names, 2)}
    monkeypatch.setattr(bench_rows, "_SAMPLE", 1000)
    assert one_by_one_s(snapshot, CONFIG, seed=0) > 0
    assert (set(asked), len(asked)) == (every, len(every))
    asked.clear()
    monkeypatch.setattr(bench_rows, "_SAMPLE", 20)
    one_by_one_s(snapshot, CONFIG, seed=0)
    assert set(asked) < every
    assert (len(set(asked)), len(asked)) == (40, 40)


def test_seconds_of_a_sample_are_scaled_to_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((5.0, 7.0))
    monkeypatch.setattr(bench_rows, "_SAMPLE", 10)
    monkeypatch.setattr("synergy_cli.bench.pairs.rows.time.process_time", lambda: next(clock))
    snapshot = PairsWorkload(types=1, references=1, measured=0, seed=0).snapshot(25)
    assert one_by_one_s(snapshot, CONFIG, seed=0) == pytest.approx(2.0 * 300 / 10)


def test_json_has_the_options_and_the_ratio_to_the_reference() -> None:
    report = _report("--jobs", "4", "--jobs", "6", "--predictor", "references", "--measured", "1", "--seed", "9")
    options = ("benchmark", "types", "references", "measured", "seed")
    assert [report[name] for name in options] == ["pairs", 3, 8, 1, 9]
    assert [case["jobs"] for case in report["cases"]] == [4, 6]
    for case in report["cases"]:
        assert case["ratio"] == pytest.approx(case["one_by_one_s"] / case["first_s"])
        steps = ("first_s", "again_s", "measurement_s", "job_s", "measured_job_s", "one_by_one_s")
        assert all(case[step] > 0 for step in steps)


def test_the_table_has_a_row_for_each_predictor_and_size() -> None:
    result = CliRunner().invoke(main, ["bench", "pairs", "--jobs", "3", "--jobs", "5", "--types", "1"])
    lines = result.stdout.splitlines()
    assert [line.split()[:2] for line in lines[2:8]] == [
        [predictor, jobs] for predictor in ("built-in", "corrected", "references") for jobs in ("3", "5")
    ]
    assert lines[8] == "processor seconds, GPU types: 1; each job measured beside 2 of 8 references"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            ("--measured", "3", "--references", "2"),
            "--measured: 3 is more than there are; give at most 2 (--references)",
        ),
        (("--jobs", "1501"), "Invalid value for '--jobs': 1501 is not in the range 2<=x<=1500."),
        (("--types", "9"), "Invalid value for '--types': 9 is not in the range 1<=x<=8."),
        (("--measured", "0"), "Invalid value for '--measured': 0 is not in the range x>=1."),
        (
            ("--predictor", "sums"),
            "Invalid value for '--predictor': 'sums' is not one of 'built-in', 'corrected', 'references'.",
        ),
    ],
)
def test_options_that_cannot_be_are_one_line(options: tuple[str, ...], error: str) -> None:
    result = CliRunner().invoke(main, ["bench", "pairs", *options])
    assert (result.exit_code, result.stderr) == (2, f"error: {error}\n")


def test_the_same_seed_gives_the_same_workload_and_another_one_another() -> None:
    one, same, another = (PairsWorkload(types=2, references=3, measured=2, seed=seed).snapshot(5) for seed in (1, 1, 2))
    assert one == same
    assert one != another
