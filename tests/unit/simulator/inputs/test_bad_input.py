"""Bad input: file, line and field are named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.simulator.simulation import CLUSTER, PROFILES, server
from synergy_simulator.inputs.clusters import read_cluster
from synergy_simulator.inputs.errors import InputError
from synergy_simulator.inputs.profiles import read_profiles
from synergy_simulator.inputs.traces import read_trace
from synergy_simulator.workloads.workload import build_workload

HEADER = "job_id,arrival_s,gpus,model,steps"
LONG = "job_id,arrival_s,gpus,model,steps,duration_s,tenant,weight,slo_s,batch_size,skew"


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", "line 1", "is empty"),
        (HEADER, "t.csv", "has no jobs"),
        ("job_id,arrival_s,gpus,steps\na,0,1,5", "line 1, model", "missing"),
        ("job_id,arrival_s,gpus,model\na,0,1,hungry", "line 1, steps", "missing"),
        (f"{HEADER},colour\na,0,1,hungry,5,red", "line 1, colour", "unknown column"),
        ("job_id,arrival_s,gpus,model,steps,steps\na,0,1,hungry,5,5", "line 1, steps", "twice"),
        (f"{HEADER}\na,0,1,hungry,5\nb,-1,1,hungry,5", "line 3, arrival_s", "at least 0"),
        (f"{HEADER}\na,nan,1,hungry,5", "line 2, arrival_s", "finite"),
        (f"{HEADER}\na,1e308,1,hungry,5", "line 2, arrival_s", "must be within 1e+15"),
        (f"{HEADER}\na,soon,1,hungry,5", "line 2, arrival_s", "must be a number, is 'soon'"),
        (f"{HEADER}\n,0,1,hungry,5", "line 2, job_id", "is empty"),
        (f"{HEADER}\na,0,0,hungry,5", "line 2, gpus", "at least 1"),
        (f"{HEADER}\na,0,1.5,hungry,5", "line 2, gpus", "whole number"),
        (f"{HEADER}\na,0,1,hungry,-5", "line 2, steps", "at least 1"),
        (f"{HEADER}\na,0,1,hungry", "line 2", "4 values for 5 columns"),
        (f"{HEADER}\n\n\na,0,1,hungry,5\n\na,1,1,hungry,5", "line 6, job_id", "also on line 4"),
        (f"{LONG}\na,0,1,hungry,,,,,,,", "line 2, steps", "give one of them"),
        (f"{LONG}\na,0,1,hungry,,-3,,,,,", "line 2, duration_s", "above 0"),
        (f"{LONG}\na,0,1,hungry,5,,,0,,,", "line 2, weight", "at least 1e-06"),
        (f"{LONG}\na,0,1,hungry,5,,,1e7,,,", "line 2, weight", "at most 1e+06"),
        (f"{LONG}\na,0,1,hungry,5,,,,-1,,", "line 2, slo_s", "above 0"),
        (f"{LONG}\na,0,1,hungry,5,,,,,0,", "line 2, batch_size", "at least 1"),
        (f"{LONG}\na,0,1,hungry,5,,,,,,-1", "line 2, skew", "at least 0"),
        (f"{HEADER},model_bytes\na,0,1,hungry,5,0", "line 2, model_bytes", "at least 1"),
        (f"{HEADER},spread_speed\na,0,1,hungry,5,0", "line 2, spread_speed", "above 0"),
        (f"{HEADER},spread_speed\na,0,1,hungry,5,60", "line 2, spread_speed", "must be at most 1, is 60"),
        (f"{HEADER},checkpoint_bytes\na,0,1,hungry,5,-1", "line 2, checkpoint_bytes", "at least 0"),
        (f"{HEADER},priority\na,0,1,hungry,5,1.5", "line 2, priority", "whole number"),
        (f"{HEADER},priority\na,0,1,hungry,5,2147483648", "line 2, priority", "must be below 2147483648"),
        ("timestamp,duration,num_gpus,gpu_time,cluster\nnoon,5,1,5,x", "line 2, timestamp", "must be a time"),
        ("job_id,arrival_s,model,gpus,total_iterations,fair_iter_s\n", "line 1, fair_duration_s", "missing"),
    ],
)
def test_a_bad_trace(tmp_path: Path, text: str, where: str, what: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert where in str(caught.value).partition(":")[0]
    assert what in caught.value.problem


@pytest.mark.parametrize(
    ("line", "where", "what"),
    [
        ("a,0,1,unheard,5", "line 2, model", "known are frugal, hungry"),
        ("a,0,4,hungry,5", "line 2, gpus", "more than the cluster has of one type (2)"),
        ("a,0,1,hungry,5\nb,0,2,lame,5", "line 3, model", "no profile for 2 GPUs"),
        ("a,0,1,lame,5", "line 2, model", "zero throughput"),
    ],
)
def test_a_trace_that_does_not_go_with_profiles_and_cluster(tmp_path: Path, line: str, where: str, what: str) -> None:
    lame = {"cpus": [30], "memory_gib": [1000, 2000], "steps_per_s": [[0.0, 1.0]]}
    table = json.loads(json.dumps(PROFILES))
    if "lame" in line:
        table["models"]["lame"] = {"V100": {"1": lame}}
    (tmp_path / "p.json").write_text(json.dumps(table))
    (tmp_path / "t.csv").write_text(f"{HEADER}\n{line}\n")
    profiles = read_profiles(tmp_path / "p.json")
    with pytest.raises(InputError) as caught:
        build_workload(read_trace(tmp_path / "t.csv"), profiles, server(2))
    assert where in str(caught.value)
    assert what in caught.value.problem


def test_steps_without_profiles_need_a_duration(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{HEADER}\na,0,1,x,5\n")
    with pytest.raises(InputError, match="line 2, duration_s: is missing, and no profiles tell"):
        build_workload(read_trace(tmp_path / "t.csv"), None, server(2))


def _entry(table: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = table["models"]["hungry"]["V100"]["1"]
    return entry


@pytest.mark.parametrize(
    ("spoil", "where", "what"),
    [
        (lambda t: t.update(extra=1), "extra", "unknown field"),
        (lambda t: t.pop("models"), "", "must be an object with profiles"),
        (lambda t: t.update(models=[]), "models", "must be an object"),
        (lambda t: _entry(t).pop("cpus"), "models.hungry.V100.1.cpus", "is missing"),
        (lambda t: _entry(t).update(colour=1), "models.hungry.V100.1.colour", "unknown field"),
        (lambda t: _entry(t).update(cpus=[]), "models.hungry.V100.1.cpus", "list of numbers"),
        (lambda t: _entry(t).update(cpus=[3, 3, 12]), "models.hungry.V100.1.cpus[1]", "not above"),
        (lambda t: _entry(t).update(memory_gib=[-1]), "models.hungry.V100.1.memory_gib[0]", "at least"),
        (lambda t: _entry(t).update(steps_per_s=[[1], [2]]), "models.hungry.V100.1.steps_per_s", "2 rows for 3"),
        (lambda t: _entry(t).update(steps_per_s=[[1], [2], [3, 4]]), "models.hungry.V100.1.steps_per_s[2]", "2 values"),
        (lambda t: _entry(t).update(steps_per_s=[[1], [2], [-3]]), "models.hungry.V100.1.steps_per_s[2][0]", "least 0"),
        (lambda t: _entry(t).update(steps_per_s=[[1], ["x"], [3]]), "models.hungry.V100.1.steps_per_s[1][0]", "'x'"),
        (lambda t: _entry(t).update(steps_per_s=[[0], [0], [0]]), "models.hungry.V100.1.steps_per_s", "never end"),
        (lambda t: t["models"]["hungry"]["V100"].update(two={}), "models.hungry.V100.two", "GPU count"),
    ],
)
def test_bad_profiles(tmp_path: Path, spoil: Callable[[dict[str, Any]], Any], where: str, what: str) -> None:
    table = json.loads(json.dumps(PROFILES))
    spoil(table)
    path = tmp_path / "p.json"
    path.write_text(json.dumps(table))
    with pytest.raises(InputError) as caught:
        read_profiles(path)
    assert caught.value.place.field == where
    assert what in caught.value.problem


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "line 1: not JSON"),
        ('{"models": {"m": {}, "m": {}}}', "m: occurs twice"),
        ('{"v100": {"(1, 2)": {"null": 1}}}', "must look like"),
        ('{"v100": {"(\'m\', 1)": {}}}', "null: is missing"),
        ('{"v100": {"(\'m\', 1)": {"null": 1e-307}}}', "null: must be 0 or from 1e-06 to 1e+09 steps per second"),
        (
            '{"models": {"m": {"v100": {"1": {"cpus": [1], "memory_gib": [1], "steps_per_s": [[1e-307]]}}}}}',
            "steps_per_s[0][0]: must be 0 or from 1e-06 to 1e+09 steps per second",
        ),
        ('{"3": {"m": {"1": {"cpus_per_gpu": [1]}}}}', "3.m.1.mem_steps: must be a list"),
    ],
)
def test_profiles_that_are_no_table(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(InputError) as caught:
        read_profiles(tmp_path / "p.json")
    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("change", "where", "what"),
    [
        (("nodes: 1,", "nodes: 0,"), "line 2, pools[0].nodes", "at least 1"),
        (("nodes: 1,", "nodes: 2000000000,"), "line 2, pools[0].nodes", "at most 1,000,000"),
        (("nodes: 1,", "nodes: many,"), "line 2, pools[0].nodes", "is 'many'"),
        (("nodes: 1,", ""), "line 2, pools[0].nodes", "is missing"),
        (("nodes: 1,", "nodes: 1, nodes: 2,"), "line 2, pools[0].nodes", "twice"),
        (("cpus_per_node: 6", "cpus_per_node: -6"), "line 2, pools[0].cpus_per_node", "at least 0"),
        (("memory_gib_per_node: 125", "memory_gib_per_node: 1e300"), "pools[0].memory_gib_per_node", "at most"),
        (("memory_gib_per_node: 125", "memory_gib_per_node: 0"), "pools[0].memory_gib_per_node", "above 0"),
        (("cost_per_hour", "price"), "line 2, pools[0].price", "unknown field"),
        (("name: v,", "name: [v],"), "line 2, pools[0].name", "must be a text"),
        (("pools:", "pool:"), "pool", "unknown field"),
        (("  - {", "  - {{"), "line", "not YAML"),
    ],
)
def test_a_bad_cluster(tmp_path: Path, change: tuple[str, str], where: str, what: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(CLUSTER.replace(*change))
    with pytest.raises(InputError) as caught:
        read_cluster(path)
    assert where in str(caught.value)
    assert what in caught.value.problem


@pytest.mark.parametrize("text", ["", "pools: []", "pools: 3", "- 1"])
def test_a_cluster_without_pools(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(InputError, match="must be a"):
        read_cluster(tmp_path / "c.yaml")


def test_two_pools_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CLUSTER + CLUSTER.splitlines()[1])
    with pytest.raises(InputError, match=r"line 3, pools\[1\].name: 'v' occurs twice"):
        read_cluster(tmp_path / "c.yaml")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_trace(tmp_path / "nothing.csv")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"job_id\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        read_trace(tmp_path / "t.csv")
