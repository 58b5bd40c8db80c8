"""What the readers make of good input."""

import json
from pathlib import Path

import pytest

from support.simulator.simulation import CLUSTER, native, server
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool, read_cluster
from synergy_simulator.inputs.errors import InputError
from synergy_simulator.inputs.profiles import GIB, read_profiles
from synergy_simulator.inputs.traces import read_trace
from synergy_simulator.workloads.workload import build_workload


def _trace(folder: Path, text: str) -> Path:
    path = folder / "t.csv"
    path.write_text(text)
    return path


def test_the_native_trace_is_sorted_by_arrival_and_steps_follow_from_durations(tmp_path: Path) -> None:
    text = (
        "job_id,arrival_s,gpus,model,steps,duration_s,tenant,weight,slo_s,skew\n"
        "b,20,1,hungry,70,,red,2.5,99,0.3\n"
        "a,10.5,2,frugal,7,50,,,,\n"
    )
    workload = build_workload(read_trace(_trace(tmp_path, text)), native(tmp_path), server(2))
    first, second = workload.tasks
    assert (first.name, first.arrival_s, first.gpus, first.steps, first.alone_s) == ("a", 10.5, 2, 50.0, 50.0)
    assert (second.name, second.steps, second.tenant, second.weight) == ("b", 70, "red", 2.5)
    assert (second.slo_s, second.skew, first.slo_s, first.weight) == (99, 0.3, None, 1.0)


def test_jobs_of_one_model_and_size_have_one_object_of_matrices(tmp_path: Path) -> None:
    text = "job_id,arrival_s,gpus,model,steps\n" + "".join(f"j{i},0,1,hungry,5\n" for i in range(3))
    tasks = build_workload(read_trace(_trace(tmp_path, text)), native(tmp_path), server(2)).tasks
    assert len({id(task.profiles) for task in tasks}) == 1


def test_the_synergy_tables(tmp_path: Path) -> None:
    entry = {
        "cpus_per_gpu": [1, 3, 6],
        "mem_steps": [20.83, 62.5],
        "matrix": [[0.1, 0.3], [0.1, 1.0], [0.1, 2.0]],
        "iter_time_s": 0.5,
        "iter_time_base_s": 0.5,
    }
    (tmp_path / "p.json").write_text(json.dumps({"_note": {}, "3": {"m": {"1": entry}}, "4": {}}))
    table = read_profiles(tmp_path / "p.json")
    profile = table.find("m", "V100", 2)
    assert profile is not None
    assert profile.cpu_millis == (2000, 6000, 12000)
    assert profile.memory_bytes == (round(41.66 * GIB), 125 * GIB)
    assert profile.steps_per_s == ((0.2, 0.6), (0.2, 2.0), (0.2, 4.0))
    text = "job_id,arrival_s,model,gpus,total_iterations,fair_iter_s,fair_duration_s\n0,5,m,1,100,0.5,50.0\n"
    workload = build_workload(read_trace(_trace(tmp_path, text)), table, server(1))
    (task,) = workload.tasks
    assert (task.arrival_s, task.steps, task.alone_s) == (5, 100, 50)


def test_the_gavel_tables_leave_out_types_where_a_job_does_not_run(tmp_path: Path) -> None:
    speeds = {
        "v100": {"('m', 1)": {"null": 4.0, "('m', 1)": [1, 1]}},
        "k80": {"('m', 1)": {"null": 0.0}},
        "v100_unconsolidated": {"('m', 2)": {"null": 3.0}},
    }
    (tmp_path / "p.json").write_text(json.dumps(speeds))
    table = read_profiles(tmp_path / "p.json")
    text = "job_id,arrival_s,job_type,scale_factor,total_steps,duration_v100_s,priority_weight\n0,0.5,m,1,100,25,2.0\n"
    kinds = {"k80": "K80", "v100": "V100"}
    pools = [
        SimulatedPool(name=n, gpu_type=t, nodes=1, gpus_per_node=1, cpus_per_node=3, memory_gib_per_node=9)
        for n, t in kinds.items()
    ]
    (task,) = build_workload(read_trace(_trace(tmp_path, text)), table, Cluster(tuple(pools))).tasks
    assert list(task.profiles) == ["V100"]
    assert (task.steps, task.weight, task.share_steps_per_s) == (100, 2.0, 4.0)
    # half of the GPUs are of no use to it
    assert task.alone_s == pytest.approx(50)


def test_the_tiresias_tables_need_no_profiles(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(
        "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n2,3,4,40,256\n"
    )
    cluster = read_cluster(tmp_path / "c.csv")
    assert cluster.gpus == 24
    text = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n1,8,30,133,vgg11,147,23\n"
    (task,) = build_workload(read_trace(_trace(tmp_path, text)), None, cluster).tasks
    assert (task.name, task.gpus, task.arrival_s, task.alone_s) == ("1", 8, 30, 147)


def test_the_philly_table_begins_at_its_first_job_and_leaves_out_jobs_without_gpus(tmp_path: Path) -> None:
    text = (
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
        "2017-10-09 07:00:55,9.0,0,0.0,11cb48\n"
        "2017-10-09 07:01:05,2951.0,4,11804.0,6214e9\n"
    )
    first, second = read_trace(_trace(tmp_path, text))
    assert (first.arrival_s, first.gpus, first.duration_s, first.tenant) == (0, 4, 2951, "6214e9")
    assert (second.arrival_s, second.model) == (50, None)


def test_a_cluster_in_yaml(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (pool,) = read_cluster(tmp_path / "c.yaml").pools
    assert (pool.nodes, pool.gpus_per_node, pool.cpus_per_node, pool.memory_gib_per_node) == (1, 2, 6.0, 125.0)
    assert (pool.cost_per_hour, pool.storage_gib_per_s, pool.replicas) == (2.0, 0.0, 1)
    (node,) = read_cluster(tmp_path / "c.yaml").nodes()
    assert (node.cpu_millis, node.memory_bytes) == (6000, 125 * GIB)


def _physical(folder: Path, *lines: str) -> Path:
    path = folder / "t.trace"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_the_traces_of_the_gavel_authors_physical_cluster_have_tabs_and_no_header(tmp_path: Path) -> None:
    fields = "m (batch size 8)\tpython3 a.py --b 8\tfolder\t--num_steps\t1\t500\t2\t1.5\t{slo}\t{arrival}"
    lines = fields.format(slo="-1.000000", arrival=90), fields.format(slo=7200, arrival=0)
    late, early = reversed(read_trace(_physical(tmp_path, *lines)))
    assert (early.name, early.arrival_s, early.slo_s) == ("2", 0, 7200)
    assert (late.name, late.arrival_s, late.slo_s) == ("1", 90, None)
    assert (late.model, late.steps, late.gpus, late.weight) == ("m (batch size 8)", 500, 2, 1.5)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "m\tc\tw\t-s\t1\t500\t2\t1\t0\t0",
            "t.trace, line 1, slo: must be seconds above 0, or negative for none, is 0",
        ),
        ("m\tc\tw\t-s\t1\t500\t0\t1\t-1\t0", "t.trace, line 1, scale_factor: must be at least 1, is 0"),
        ("m,c,w,-s,1,500,2,1,-1,0", "has 1 values for 10 columns: job_type, command,"),
        ("", "has no jobs"),
    ],
)
def test_a_bad_one_is_told_by_line_and_field(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(InputError) as error:
        read_trace(_physical(tmp_path, line))
    assert problem in str(error.value)
