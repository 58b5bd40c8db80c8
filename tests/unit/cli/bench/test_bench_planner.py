"""`kube-synergy bench planner`: every figure beside its reference, repeatable by its seed."""

import json
import math

import pytest
from click.testing import CliRunner

from support.planner import promises
from synergy_cli.bench.planner import command as bench_planner
from synergy_cli.bench.planner import large_clusters, policies
from synergy_cli.bench.workload import a_round_later, cluster, the_round_after
from synergy_cli.main import main
from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan
from synergy_core.policies import POLICIES


@pytest.fixture
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_planner, "_SIZES", ((2, 20, 60.0), (3, 40, 60.0)))


@pytest.mark.usefixtures("small_sizes")
def test_json_has_the_times_the_references_and_the_ratios() -> None:
    result = CliRunner().invoke(main, ["bench", "planner", "--json", "--repeats", "1", "--seed", "3"])
    report = json.loads(result.stdout)
    assert (report["seed"], report["repeats"], report["mechanism"]) == (3, 1, "tune")
    case, larger = report["cases"]
    sizes = [(one["gpus"] + one["jobs"], one["round_s"]) for one in (case, larger)]
    assert report["growth_over_n_log_n"] == pytest.approx(bench_planner.growth_over_n_log_n(sizes))
    assert (case["gpus"], case["jobs"], case["within_aim"]) == (16, 20, True)
    assert case["ratio_to_proportional"] == pytest.approx(case["round_s"] / case["proportional_s"])
    assert case["ratio_to_first_fit"] == pytest.approx(case["round_s"] / case["first_fit_s"])
    assert case["running"] > 0
    assert case["entering"] > 0


@pytest.mark.usefixtures("small_sizes")
def test_the_table_has_a_row_per_size() -> None:
    result = CliRunner().invoke(main, ["bench", "planner", "--repeats", "1"])
    assert len(result.stdout.splitlines()) == 5
    assert [line.split()[:2] for line in result.stdout.splitlines()[2:4]] == [["16", "20"], ["24", "40"]]
    assert result.stdout.splitlines()[4].startswith("seconds of a round grow with (n log n)^")


def test_growth_over_n_log_n_is_1_for_n_log_n_and_about_2_for_its_square() -> None:
    def measured(power: float) -> list[tuple[int, float]]:
        return [(n, 1e-6 * (n * math.log(n)) ** power) for n in (300, 1500, 15000)]

    assert bench_planner.growth_over_n_log_n(measured(1.0)) == pytest.approx(1.0)
    assert bench_planner.growth_over_n_log_n(measured(2.0)) == pytest.approx(2.0)


def test_large_clusters_are_planned_as_one_and_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_clusters, "SIZES", ((2, 20), (4, 40)))
    monkeypatch.setattr(large_clusters, "TYPES", (1, 2))
    result = CliRunner().invoke(main, ["bench", "planner", "--large", "--json", "--policy", "fifo"])
    report = json.loads(result.stdout)
    cases = report["cases"]
    assert [(one["gpus"], one["jobs"], one["types"]) for one in cases] == [
        (16, 20, 1),
        (32, 40, 1),
        (16, 20, 2),
        (32, 40, 2),
    ]
    sizes = [(one["gpus"] + one["jobs"], one["round_s"]) for one in cases[:2]]
    assert report["growth_over_n_log_n"] == pytest.approx(bench_planner.growth_over_n_log_n(sizes))
    assert all(one["next_s"] > 0 for one in cases)
    assert all(one["running"] + one["waiting"] == one["jobs"] and one["memory_mb"] > 10 for one in cases)
    assert [one["forks_s"] is None for one in cases] == [True, True, False, False]
    assert all(one["forks_s"] > 0 for one in cases[2:])


def test_the_table_of_large_clusters_has_a_row_per_size_and_number_of_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_clusters, "SIZES", ((2, 20), (4, 40)))
    monkeypatch.setattr(large_clusters, "TYPES", (1,))
    lines = CliRunner().invoke(main, ["bench", "planner", "--large", "--processes", "3"]).stdout.splitlines()
    assert "in parts, 3 processes: own s" in lines[0]
    assert [line.split()[:3] for line in lines[2:4]] == [["16", "1", "20"], ["32", "1", "40"]]
    assert lines[4].startswith("processor seconds of a round on one GPU type grow with (n log n)^")


@pytest.fixture
def small_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "NODES", 4)
    monkeypatch.setattr(policies, "JOBS", 40)


@pytest.mark.usefixtures("small_cluster")
def test_each_policy_is_measured_on_both_mechanisms() -> None:
    result = CliRunner().invoke(main, ["bench", "planner", "--policies", "--json", "--types", "2"])
    report = json.loads(result.stdout)
    assert (report["gpus"], report["jobs"], report["types"]) == (32, 40, 2)
    measured = [(one["policy"], one["mechanism"]) for one in report["cases"]]
    assert measured == [(name, mechanism) for name in sorted(POLICIES) for mechanism in ("proportional", "tune")]
    assert all(one["first_s"] > 0 and one["next_s"] > 0 for one in report["cases"])
    assert all(one["within_aim"] == (one["first_s"] <= report["aim_s"]) for one in report["cases"])


@pytest.mark.usefixtures("small_cluster")
def test_the_table_of_policies_has_a_row_for_each() -> None:
    lines = CliRunner().invoke(main, ["bench", "planner", "--policies", "--only", "fifo,las"]).stdout.splitlines()
    assert lines[0].split()[:2] == ["policy", "proportional:"]
    assert [line.split()[0] for line in lines[2:4]] == ["fifo", "las"]
    assert lines[4] == "processor seconds of one round: 32 GPUs, 40 jobs, GPU types: 1"


@pytest.mark.usefixtures("small_cluster")
def test_an_unknown_policy_among_those_to_measure_is_one_line() -> None:
    result = CliRunner().invoke(main, ["bench", "planner", "--policies", "--only", "x", "--json"])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "'x' is not there" in result.stderr


def test_the_next_round_is_another_moment_with_a_few_other_jobs() -> None:
    start = cluster(nodes=8, jobs=100, seed=0, types=2)
    result = plan(start, PlanConfig())
    later = the_round_after(start, result, seed=1, leaving=0.5)
    given = {one.job: one for one in result.allocations}
    before = {job.name: job for job in start.jobs}
    stayed = [job for job in later.jobs if job.name in before]
    came = [job for job in later.jobs if job.name not in before]
    assert len(later.jobs) == len(start.jobs)
    assert 0 < len(came) < len(given)
    assert all(job is not before[job.name] and job.running is given.get(job.name) for job in stayed)
    assert all(job.attained_gpu_s > before[job.name].attained_gpu_s for job in stayed if job.running)
    assert all(job.waiting_s > before[job.name].waiting_s for job in stayed if not job.running)
    assert all(set(job.gpu_types) <= {node.gpu_type for node in start.nodes} for job in came)


def test_jobs_of_a_cluster_of_several_types_fit_the_types_of_its_nodes() -> None:
    found = cluster(nodes=6, jobs=200, seed=1, types=3)
    kinds = {node.gpu_type for node in found.nodes}
    assert len(kinds) == 3
    assert all(set(job.gpu_types) == set(job.profiles) <= kinds for job in found.jobs)
    assert {len(job.gpu_types) for job in found.jobs} == {1, 3}


@pytest.mark.usefixtures("small_sizes")
def test_an_unknown_policy_is_one_line() -> None:
    result = CliRunner().invoke(main, ["bench", "planner", "--policy", "x", "--json"])
    assert result.exit_code == 2
    assert result.stderr == f"error: --policy: 'x' is not there; choose one of {', '.join(sorted(POLICIES))}\n"


def test_the_same_seed_gives_the_same_workload_and_another_one_another() -> None:
    assert cluster(nodes=2, jobs=9, seed=1) == cluster(nodes=2, jobs=9, seed=1)
    assert cluster(nodes=2, jobs=9, seed=1) != cluster(nodes=2, jobs=9, seed=2)


def test_the_workload_is_a_full_cluster_where_the_plan_keeps_its_promises() -> None:
    config = PlanConfig()
    start = cluster(nodes=8, jobs=100, seed=0)
    snapshot = a_round_later(start, plan(start, config), seed=1)
    result = plan(snapshot, config)
    promises.all_promises(snapshot, result, fill=False)
    assert sum(w.gpus for a in result.allocations for w in a.workers) == 64


def test_first_fit_gives_every_job_all_its_gpus_and_no_gpu_twice() -> None:
    snapshot = cluster(nodes=4, jobs=50, seed=0)
    placed = bench_planner.first_fit(snapshot)
    gpus = {job.name: job.gpus for job in snapshot.jobs}
    used: dict[str, int] = {}
    for name, seats in placed.items():
        assert sum(count for _, count in seats) == gpus[name]
        for node, count in seats:
            used[node] = used.get(node, 0) + count
    assert all(count <= 8 for count in used.values())
    assert sum(used.values()) == 32
