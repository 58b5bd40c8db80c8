"""`kube-synergy simulate | compare --colocation`, and the co-location thesis' figures."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from support.simulator.quick_figures import quick_figures
from synergy_cli.main import main

TRACE = "job_id,arrival_s,gpus,model,steps,duration_s\n" + "\n".join(f"j{i},0,1,m5,1000,1000" for i in range(4))
POOL = "name: v, gpu_type: V100, nodes: 1, gpus_per_node: 2, cpus_per_node: 24, memory_gib_per_node: 400"


def _run(folder: Path, command: str, *arguments: str, shared: str = ", replicas: 2, gpu_memory_gib: 16") -> Result:
    trace, cluster = folder / "T.csv", folder / "C.yaml"
    trace.write_text(TRACE)
    cluster.write_text(f"pools: [{{{POOL}{shared}}}]")
    inputs = ["--trace", str(trace), "--cluster", str(cluster), "--profiles", "built-in"]
    return CliRunner().invoke(main, [command, *inputs, *arguments])


def test_compare_puts_modes_side_by_side(tmp_path: Path) -> None:
    arguments = ("--policies", "fifo", "--mechanisms", "tune", "--usage", "built-in", "--processes", "1", "--json")
    done = _run(tmp_path, "compare", *arguments, "--colocation", "none,thesis,auto")
    runs = {one["colocation"]: one for one in json.loads(done.stdout)["runs"]}
    assert list(runs) == ["none", "thesis", "auto"]
    assert runs["auto"]["makespan_s"] < runs["none"]["makespan_s"]
    assert runs["auto"]["avg_jct_s"] < runs["none"]["avg_jct_s"]


def test_simulate_names_the_mode(tmp_path: Path) -> None:
    assert _run(tmp_path, "simulate", "--usage", "built-in", "--colocation", "auto").exit_code == 0


def test_pools_tell_what_mps_leaves_a_client_of_the_threads(tmp_path: Path) -> None:
    arguments = ("--usage", "built-in", "--colocation", "auto", "--json")
    shared = ", replicas: 2, gpu_memory_gib: 16, client_thread_percent: "
    all_, few = (
        json.loads(_run(tmp_path, "simulate", *arguments, shared=f"{shared}{percent}").stdout)["avg_jct_s"]
        for percent in (100, 5)
    )
    assert few > 1.5 * all_, "it would keep a quarter of the GPU busy"


@pytest.mark.parametrize(
    ("arguments", "shared", "message"),
    [
        (("--colocation", "spam"), ", replicas: 2", "--colocation: "),
        (("--colocation", "auto"), ", replicas: 2", "--colocation: no job of the trace has a usage"),
        (("--colocation", "auto", "--usage", "built-in"), "", "--cluster: no pool has replicas above 1"),
        (("--usage", "nowhere.csv"), "", "nowhere.csv: cannot be read"),
        ((), ", gpu_memory_gib: -1", "pools[0].gpu_memory_gib: must be a number of at least 0"),
        ((), ", client_thread_percent: 0", "pools[0].client_thread_percent: must be a whole number of at least 1"),
        ((), ", client_thread_percent: 33.3", "pools[0].client_thread_percent: must be a whole number of at least 1"),
        ((), ", client_thread_percent: 101", "pools[0].client_thread_percent: must be at most 100 percent, is 101"),
    ],
)
def test_bad_options_are_refused(arguments: tuple[str, ...], shared: str, message: str, tmp_path: Path) -> None:
    done = _run(tmp_path, "simulate", *arguments, shared=shared)
    assert (done.exit_code, message in done.stderr, done.stderr.count("\n")) == (2, True, 1)


PAIRS = {
    "v100": {
        "('one', 1)": {"null": 2.0, "('one', 1)": [1.5, 1.5], "('two', 1)": [1.8, 0.9], "('one', 2)": [1.0, 1.0]},
        "('two', 1)": {"null": 1.0, "('one', 1)": [0.9, 1.8], "('two', 1)": [0.0, 0.0]},
        "('one', 2)": {"null": 3.0},
    }
}


def _with_pairs(folder: Path, *arguments: str, table: Any = PAIRS) -> Result:
    trace, cluster, profiles = folder / "T.csv", folder / "C.yaml", folder / "P.json"
    rows = [f"{index},0,{model},1,{steps}" for index, (model, steps) in enumerate((("one", 18000), ("two", 9000)))]
    trace.write_text("\n".join(["job_id,arrival_s,model,gpus,steps", *rows]))
    pool = "name: v, gpu_type: V100, nodes: 1, gpus_per_node: 1, cpus_per_node: 8, memory_gib_per_node: 60"
    cluster.write_text(f"pools: [{{{pool}}}]")
    profiles.write_text(json.dumps(table))
    inputs = ["--trace", str(trace), "--cluster", str(cluster), "--profiles", str(profiles), "--json"]
    return CliRunner().invoke(main, ["simulate", "--policy", "max-min-fairness", *inputs, *arguments])


def test_pairs_of_the_gavel_table_are_shared_at_the_speeds_that_it_tells(tmp_path: Path) -> None:
    alone, shared = (json.loads(_with_pairs(tmp_path, *options).stdout) for options in ((), ("--sharing",)))
    assert (alone["makespan_s"], shared["makespan_s"]) == (pytest.approx(18000), pytest.approx(10000))
    assert shared["preemptions"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sharing", "--policy", "las"), "--sharing: las has no such variant"),
        (("--sharing", "--colocation", "auto"), "--sharing: means --colocation gavel"),
        (("--colocation", "gavel", "--policy", "sjf"), "--colocation: sjf has no such variant"),
        (("--colocation", "gavel"), "--cluster: no pool has replicas above 1"),
    ],
)
def test_sharing_through_x_is_for_policies_and_clusters_that_can(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    done = _with_pairs(tmp_path, *arguments)
    assert (done.exit_code, message in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ([1.0], "must be the speeds of both jobs, is a list of 1"),
        ([1.0, -1.0], "must be a number of at least 0, is -1.0"),
        (1.0, "must be a list of numbers"),
    ],
)
def test_bad_pairs_name_their_field(entry: Any, message: str, tmp_path: Path) -> None:
    table = {"v100": {"('one', 1)": {"null": 2.0, "('two', 1)": entry}, "('two', 1)": {"null": 1.0}}}
    done = _with_pairs(tmp_path, table=table)
    assert (done.exit_code, "v100.('one', 1).('two', 1)" in done.stderr) == (2, True)
    assert message in done.stderr


def test_in_the_best_case_the_makespan_is_what_the_thesis_says_or_less(tmp_path: Path) -> None:
    found = quick_figures("colocation-best", tmp_path / "plot.html")
    for mode in ("thesis", "auto"):
        assert found[f"{mode}_makespan_10"] <= 0.63
        assert found[f"{mode}_makespan_2"] <= 0.5
        assert found[f"{mode}_jct_10"] <= 1.61
        assert 1.0 <= found[f"{mode}_jct_2"] <= 1.25
        assert found[f"{mode}_queue_10"] < 0.2


def test_in_the_worst_case_the_makespan_is_never_longer(tmp_path: Path) -> None:
    found = quick_figures("colocation-worst", tmp_path / "plot.html")
    for mode in ("thesis", "auto"):
        for workers in (10, 2):
            assert found[f"{mode}_makespan_{workers}"] <= 1.001


def test_auto_is_as_good_as_the_best_of_the_others_on_three_gpu_types(tmp_path: Path) -> None:
    found = quick_figures("colocation-modes", tmp_path / "plot.html")
    assert found["auto_behind_at_most"] <= 0.02
    hours = {mode: found[f"max-min-fairness_(20,70,10)_2_{mode}_h"] for mode in ("none", "thesis", "gavel", "auto")}
    assert hours["auto"] < 0.99 * hours["none"]
