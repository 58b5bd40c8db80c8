"""`kube-synergy solve`: one JSON object, or a table; one line for bad input."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cvxpy import SolverError

from synergy_cli.main import main
from synergy_core.policies.allocation import ALLOCATION_POLICIES


def _problem(**changes: Any) -> dict[str, Any]:
    """Section 4.1's, with prices."""
    speeds = ((40.0, 10.0), (12.0, 4.0), (100.0, 50.0))
    jobs = [
        {"id": str(i), "throughputs": {"v100": v, "k80": k}, "steps_remaining": 1000} for i, (v, k) in enumerate(speeds)
    ]
    return {"workers": {"v100": 1, "k80": 1}, "costs_per_hour": {"v100": 2.48, "k80": 0.45}, "jobs": jobs, **changes}


def _run(document: Any, *arguments: str) -> Result:
    text = document if isinstance(document, str) else json.dumps(document)
    return CliRunner().invoke(main, ["solve", "-", *arguments], input=text)


def _job(**changes: Any) -> dict[str, Any]:
    return {"id": "a", "throughputs": {"v100": 1.0}, "steps_remaining": 1000, **changes}


def test_json_is_the_worked_example_of_section_4_1() -> None:
    answer = json.loads(_run(_problem(), "--policy", "max-min-fairness", "--json").stdout)
    assert answer["objective"] == pytest.approx(8 / 11, abs=1e-6)
    assert answer["allocation"][0] == {"ids": ["0"], "x": {"v100": pytest.approx(5 / 11), "k80": 0.0}}
    assert answer["effective_throughput"]["0"] == pytest.approx(200 / 11)
    assert (answer["status"], answer["solver"]) == ("optimal", "HIGHS")
    assert answer["normalisation"].startswith("throughput / throughput at the equal share")
    assert 0 < answer["seconds"] < 60


@pytest.mark.parametrize("policy", sorted(ALLOCATION_POLICIES))
def test_every_policy_answers_aware_and_agnostic(policy: str) -> None:
    for more in ([], ["--agnostic"]):
        answer = json.loads(_run(_problem(), "--policy", policy, "--json", *more).stdout)
        assert len(answer["allocation"]) == 3
        assert answer["objective"] > 0


def test_pairs_are_used_unless_told_otherwise() -> None:
    pairs = [{"ids": ["0", "1"], "throughputs": {"v100": [39.0, 11.0]}}]
    shared = json.loads(_run(_problem(pairs=pairs), "--policy", "max-min-fairness", "--json").stdout)
    alone = json.loads(_run(_problem(pairs=pairs), "--policy", "max-min-fairness", "--no-sharing", "--json").stdout)
    assert shared["allocation"][3]["x"]["v100"] > 0
    assert alone["allocation"][3] == {"ids": ["0", "1"], "x": {"v100": 0.0, "k80": 0.0}}
    assert shared["objective"] > alone["objective"] == pytest.approx(8 / 11)


def test_workers_on_servers_of_their_own_are_a_column_that_takes_the_types_workers() -> None:
    near, far = {"v100": 8.0, "v100_unconsolidated": 5.0}, {"v100": 0.0, "v100_unconsolidated": 4.0}
    document = {
        "workers": {"v100": 4},
        "jobs": [_job(scale_factor=4, throughputs=near), _job(id="b", scale_factor=4, throughputs=far)],
    }
    answer = json.loads(_run(document, "--policy", "max-min-fairness", "--json").stdout)
    first, second = (row["x"] for row in answer["allocation"])
    assert first["v100_unconsolidated"] == second["v100"] == 0.0
    assert first["v100"] + second["v100_unconsolidated"] == pytest.approx(1.0)


def test_levels_of_domains_are_columns_that_take_the_types_workers() -> None:
    near = {"v100": 8.0, "v100_within_2": 9.0, "v100_within_1": 5.0, "v100_unconsolidated": 2.0}
    document = {"workers": {"v100": 4}, "jobs": [_job(scale_factor=4, throughputs=near)]}
    (row,) = json.loads(_run(document, "--policy", "max-min-fairness", "--json").stdout)["allocation"]
    assert row["x"] == pytest.approx({"v100": 0, "v100_unconsolidated": 0, "v100_within_1": 0, "v100_within_2": 1})


def test_the_table_names_objective_status_and_shares() -> None:
    lines = _run(_problem(), "--policy", "max-min-fairness").stdout.splitlines()
    assert lines[0].startswith("max-min-fairness: 0.727273 (")
    assert lines[1].startswith("optimal, HIGHS, ")
    assert lines[5].split() == ["0", "0.4545", "0.0000", "18.18"]


def test_a_time_limit_of_nothing_says_so_and_still_answers() -> None:
    answer = json.loads(_run(_problem(), "--policy", "makespan", "--time-limit", "0", "--json").stdout)
    assert (answer["status"], answer["note"]) == ("time-limit", "the isolated allocation")


CHOICES = ", ".join(sorted(ALLOCATION_POLICIES))


@pytest.mark.parametrize(
    ("document", "policy", "line"),
    [
        (_problem(), "magic", f"--policy: 'magic' is not there; choose one of {CHOICES}"),
        ("what", "fifo", "not JSON: expected value at line 1 column 1"),
        (_problem(color=1), "fifo", "color: unknown field; remove it or correct its name"),
        (_problem(jobs=[_job(speed=1)]), "fifo", "jobs[0].speed: unknown field; remove it or correct its name"),
        (_problem(jobs=[{"id": "a"}]), "fifo", "jobs[0].throughputs: missing; add it"),
        (_problem(jobs=[]), "fifo", "jobs: is empty; there is nothing to allocate"),
        (
            _problem(workers={}, costs_per_hour={}),
            "fifo",
            "jobs[0].throughputs.v100: is not in workers; add it there or remove it here",
        ),
        (
            _problem(workers={"v100": 0, "k80": 0}),
            "fifo",
            "workers: there is no worker at all; give at least one type a number above 0",
        ),
        (
            _problem(jobs=[_job(weight=-1.0)]),
            "fifo",
            "jobs[0].weight: input should be greater than or equal to 0.000001, is -1.0",
        ),
        (
            _problem(jobs=[_job(weight=0.0)]),
            "fifo",
            "jobs[0].weight: input should be greater than or equal to 0.000001, is 0.0",
        ),
        (
            _problem(jobs=[_job(weight=1e7)]),
            "fifo",
            "jobs[0].weight: input should be less than or equal to 1000000, is 10000000.0",
        ),
        *(
            (
                _problem(jobs=[_job(throughputs={"v100": speed})]),
                "finish-time-fairness",
                f"jobs[0].throughputs.v100: must be 0 or from 1e-06 to 1e+09 steps per second, is {speed:g}",
            )
            for speed in (1e-307, 9e-7, 2e9)
        ),
        (_problem(jobs=[_job(time_since_start=-1.0)]), "fifo", "jobs[0].time_since_start: must be at least 0, is -1"),
        (_problem(jobs=[_job(steps_remaining=-1)]), "fifo", "jobs[0].steps_remaining: must be at least 0, is -1"),
        (
            _problem(jobs=[_job(scale_factor=0)]),
            "fifo",
            "jobs[0].scale_factor: input should be greater than or equal to 1, is 0",
        ),
        (
            _problem(jobs=[_job(throughputs={"v100": -1.0})]),
            "fifo",
            "jobs[0].throughputs.v100: must be 0 or from 1e-06 to 1e+09 steps per second, is -1",
        ),
        (
            _problem(jobs=[_job(throughputs={"v100": 0.0, "k80": 0.0})]),
            "fifo",
            (
                "jobs[0].throughputs: all are 0 on the types that have workers, so job 'a' could never run; "
                "give at least one above 0 or leave the job out"
            ),
        ),
        (
            _problem(jobs=[_job(throughputs={"t4": 1.0})]),
            "fifo",
            "jobs[0].throughputs.t4: is not in workers; add it there or remove it here",
        ),
        (_problem(jobs=[_job(), _job()]), "fifo", "jobs[1].id: 'a' occurs twice; give each its own"),
        (
            _problem(jobs=[_job(tenant="x")]),
            "hierarchical",
            "jobs[0].tenant: 'x' is not in tenants; add it there or leave it out here",
        ),
        (
            _problem(tenants=[{"name": "a", "weight": -1}]),
            "hierarchical",
            "tenants[0].weight: input should be greater than or equal to 0.000001, is -1",
        ),
        (
            _problem(tenants=[{"name": "a", "policy": "lifo"}]),
            "hierarchical",
            "tenants[0].policy: input should be 'fairness' or 'fifo', is 'lifo'",
        ),
        (
            _problem(pairs=[{"ids": ["0", "9"], "throughputs": {}}]),
            "fifo",
            "pairs[0].ids[1]: '9' is no job's id; correct it or remove the pair",
        ),
        (
            _problem(pairs=[{"ids": ["0", "0"], "throughputs": {}}]),
            "fifo",
            "pairs[0].ids: names one job twice; a pair is of two jobs",
        ),
        (
            _problem(pairs=[{"ids": ["0", "1"], "throughputs": {"v100": [-1, 1]}}]),
            "fifo",
            "pairs[0].throughputs.v100: must be 0 or from 1e-06 to 1e+09 steps per second, is -1",
        ),
        (
            _problem(jobs=[_job(steps_remaining=None)]),
            "makespan",
            "jobs[0].steps_remaining: is missing; makespan needs it of every job",
        ),
        (
            _problem(costs_per_hour={}),
            "min-cost",
            "costs_per_hour.v100: is missing; the cost policies need the price of every worker type",
        ),
        (_problem(costs_per_hour={"v100": 0.0, "k80": 1.0}), "min-cost", "costs_per_hour.v100: must be above 0, is 0"),
        (
            _problem(costs_per_hour={"t4": 1.0}),
            "min-cost",
            "costs_per_hour.t4: is not in workers; add it there or remove it here",
        ),
        (
            _problem(jobs=[_job(slo_s=-5.0)]),
            "min-cost-slo",
            "jobs[0].slo_s: is in the past (-5); give the seconds from now, or null for none",
        ),
        (
            _problem(jobs=[_job(slo_s=10.0)]),
            "min-cost-slo",
            "jobs[0].slo_s: 10 s cannot be met: 1000 steps take job 'a' 1000 s at its fastest; give it more time",
        ),
        (
            _problem(jobs=[_job(slo_s=10.0, steps_remaining=None)]),
            "min-cost-slo",
            "jobs[0].steps_remaining: is missing; a job with an SLO needs it",
        ),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_2(document: Any, policy: str, line: str) -> None:
    result = _run(document, "--policy", policy, "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [f"error: {line}"]


def test_deadlines_that_cannot_be_met_together_name_one_of_the_jobs() -> None:
    jobs = [_job(slo_s=1200.0), _job(id="b", slo_s=1100.0)]
    result = _run(_problem(jobs=jobs), "--policy", "min-cost-slo", "--json")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: jobs[1].slo_s: no feasible allocation: ")


def test_a_solver_that_does_not_cope_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(*_: Any, **__: Any) -> None:
        raise SolverError("Solver 'CLARABEL' failed.")

    monkeypatch.setattr("cvxpy.Problem.solve", gives_up)
    result = _run(_problem(), "--policy", "strategy-proof")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: jobs: the solver has no answer (Clarabel: Solver 'CLARABEL' failed.); "
        "weights, speeds or steps are too many orders of magnitude apart\n"
    )


@pytest.mark.parametrize("limit", ["nan", "inf", "-1"])
def test_a_time_limit_that_is_no_number_of_seconds_is_refused(limit: str) -> None:
    result = _run(_problem(), "--policy", "fifo", "--time-limit", limit)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: Invalid value for '--time-limit': ")


def test_a_file_that_is_not_there_is_one_line() -> None:
    result = CliRunner().invoke(main, ["solve", "nowhere.json", "--policy", "fifo"])
    assert result.exit_code == 2
    assert (
        result.stderr
        == "error: PROBLEM.json: cannot read nowhere.json: No such file or directory; give the path of a file\n"
    )
