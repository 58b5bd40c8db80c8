"""`kube-synergy plan`: one JSON object, or a table; one line for bad input."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from support.planner.planning import holding, job, node
from synergy_cli.main import main
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.snapshot import NodeGroup, Profile, Snapshot
from synergy_core.model.snapshot_format import snapshot_document
from synergy_core.policies import POLICIES

EXAMPLE = "examples/snapshots/two-servers.json"


def _run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["plan", *arguments], input=text)


def _example(repository: Path) -> str:
    return str(repository / EXAMPLE)


def test_the_example_is_the_papers_worked_example(repository: Path) -> None:
    answer = json.loads(_run(_example(repository), "--policy", "fifo", "--json").stdout)
    servers = {entry["job"]: entry["workers"][0]["node"] for entry in answer["allocations"]}
    assert servers["research/resnet18"] == servers["research/transformer"]
    assert servers["research/audio-m5"] == servers["research/gnmt"]
    assert servers["research/resnet18"] != servers["research/gnmt"]
    cpus = {entry["job"]: entry["workers"][0]["cpu_millis"] for entry in answer["allocations"]}
    assert cpus["research/resnet18"] == 23000
    assert cpus["research/transformer"] == 1000


def test_a_dash_reads_standard_input(repository: Path) -> None:
    text = (repository / EXAMPLE).read_text()
    answer = json.loads(_run("-", "--mechanism", "proportional", "--json", text=text).stdout)
    assert {entry["workers"][0]["cpu_millis"] for entry in answer["allocations"]} == {12000}


def test_the_table_tells_who_runs_where_with_what_and_who_waits_and_why(repository: Path) -> None:
    lines = _run(_example(repository), "--policy", "fifo").stdout.splitlines()
    assert lines[0].startswith("fifo on tune: 4 jobs run on 16 GPUs, 1 waits (planned in ")
    row = next(line for line in lines if line.startswith("research/resnet18"))
    assert row.split() == ["research/resnet18", "V100", "server-1", "4", "23.00", "400.0", "9.2", "1.92x"]
    assert "1. research/bert-large: NoFreeGPU" in lines
    assert lines[-1].strip().startswith("needs 8 GPUs at once")


def test_the_table_shows_what_moves_and_what_is_resized() -> None:
    jobs = (
        job("moved", 2, running=holding("moved", ("lost", 2, 6, 125))),
        job("grown", 4, wants=(12, 60), running=holding("grown", ("n1", 4, 3, 60))),
    )
    text = json.dumps(snapshot_document(Snapshot(nodes=(node("n1"),), jobs=jobs)))
    lines = _run("-", text=text).stdout.splitlines()
    assert next(line for line in lines if line.startswith("moved")).endswith("moves")
    assert next(line for line in lines if line.startswith("grown")).endswith("resized")


def test_estimated_speeds_are_shown_as_such_and_can_be_left_out() -> None:
    flat = Profile(cpu_millis=(1000,), memory_bytes=(1 << 30,), steps_per_s=((2.0,),))
    fast = replace(flat, steps_per_s=((6.0,),))
    jobs = (
        job("known", profiles={"K80": flat, "V100": fast}),
        job("new", profiles={"K80": flat}, gpu_types=("K80", "V100"), nodes=("v",)),
    )
    nodes = (node("k", gpu_type="K80"), node("v", gpu_type="V100"))
    text = json.dumps(snapshot_document(Snapshot(nodes=nodes, jobs=jobs)))
    lines = _run("-", text=text).stdout.splitlines()
    assert next(line for line in lines if line.startswith("new")).split()[6] == "~6"
    assert lines[-2:] == ["estimated, never measured", "new on V100: 6 steps/s, like known"]
    lines = _run("-", "--estimate", "none", text=text).stdout.splitlines()
    assert next(line for line in lines if line.startswith("new")).split()[6] == "-"
    assert "estimated, never measured" not in lines
    held = replace(holding("new", ("v", 1, 24, 500)), steps_per_s=6.0, proportional_steps_per_s=6.0, estimated=True)
    alone = Snapshot(nodes=nodes, jobs=(replace(jobs[1], running=held),))
    lines = _run("-", "--policy", "max-min-fairness", text=json.dumps(snapshot_document(alone))).stdout.splitlines()
    assert lines[-1] == "new on V100: 6 steps/s, as before"


def test_fill_leaves_running_jobs_alone() -> None:
    jobs = (
        job("first", 8),
        job("old", 8, arrival_s=1.0, running=holding("old", ("n1", 8, 24, 500))),
    )
    text = json.dumps(snapshot_document(Snapshot(nodes=(node("n1"),), jobs=jobs)))
    assert json.loads(_run("-", "--json", text=text).stdout)["preempted"] == ["old"]
    assert json.loads(_run("-", "--json", "--fill", text=text).stdout)["preempted"] == []


@pytest.mark.parametrize(
    ("arguments", "text", "line"),
    [
        (["-"], '{"nodes": [], "jobs": [{"name": "a"}]}', "error: jobs[0].gpus: missing; add it"),
        (["-"], "what", "error: not JSON: expected value at line 1 column 1"),
        (
            ["-", "--policy", "lifo"],
            '{"nodes": [], "jobs": []}',
            f"error: --policy: 'lifo' is not there; did you mean 'fifo'? choose one of {', '.join(sorted(POLICIES))}",
        ),
        (
            ["-", "--mechanism", "magic"],
            '{"nodes": [], "jobs": []}',
            f"error: --mechanism: 'magic' is not there; choose one of {', '.join(sorted(MECHANISMS))}",
        ),
        (
            ["nowhere.json"],
            None,
            "error: SNAPSHOT.json: cannot read nowhere.json: No such file or directory; give the path of a file",
        ),
        (
            ["-"],
            json.dumps(
                {"nodes": [{"name": "n", "gpu_type": "T4", "gpus": 1, "cpu_millis": 10**30, "memory_bytes": 1}]}
            ),
            f"error: nodes[0].cpu_millis: input should be less than or equal to {1 << 50}, is {10**30}",
        ),
        (
            ["-", "--agnostic"],
            '{"nodes": [], "jobs": []}',
            "error: --agnostic: 2d-las has no such variant; leave it out",
        ),
        (
            ["-", "--placement-sensitive"],
            '{"nodes": [], "jobs": []}',
            "error: --placement-sensitive: 2d-las has no such variant; leave it out",
        ),
        (
            ["-", "--policy", "min-cost"],
            '{"nodes": [{"name": "n", "gpu_type": "T4", "gpus": 1, "cpu_millis": 1, "memory_bytes": 1}], "jobs": []}',
            "error: nodes: of type T4 lack price_per_hour; min-cost needs the price of every GPU",
        ),
        (
            ["-"],
            '{"nodes": [], "jobs": [], "tenants": [{"name": "a", "weight": 0.0}]}',
            "error: tenants[0].weight: input should be greater than or equal to 0.000001, is 0.0",
        ),
        (
            ["-"],
            '{"nodes": [], "jobs": [], "tenants": [{"name": "a"}, {"name": "a"}]}',
            "error: tenants[1].name: 'a' is also tenants[0]; names must differ",
        ),
        (
            ["-", "--policy", "hierarchical"],
            json.dumps(
                {
                    "nodes": [],
                    "jobs": [
                        {"name": "j", "gpus": 1, "arrival_s": 0},
                        {"name": "k", "gpus": 1, "arrival_s": 0, "tenant": "visoin"},
                    ],
                    "tenants": [{"name": "vision"}],
                }
            ),
            (
                "error: jobs[1].tenant: 'visoin' is not in tenants; did you mean 'vision'? add it there or leave it "
                "out here"
            ),
        ),
        ([], None, "error: Missing argument 'SNAPSHOT.json'."),
        (["-", "--speed"], None, "error: No such option '--speed'."),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_2(arguments: list[str], text: str | None, line: str) -> None:
    result = _run(*arguments, text=text)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [line]


def test_nodes_to_ask_for_are_told_within_a_price() -> None:
    group = NodeGroup(
        name="cloud", gpu_type="V100", gpus=4, cpu_millis=12_000, memory_bytes=2**36, max_nodes=4, price_per_hour=2.0
    )
    snapshot = Snapshot(nodes=(node("n", 2),), jobs=(job("a", 8), job("b", 2)), node_groups=(group,))
    text = json.dumps(snapshot_document(snapshot))
    assert "nodes to ask for\n2 nodes of cloud for a" in _run("-", "--policy", "fifo", text=text).stdout
    bounded = _run("-", "--policy", "fifo", "--max-price-per-hour", "15", text=text).stdout
    assert "nodes to ask for" not in bounded
    assert "cloud" not in _run("-", "--policy", "fifo", "--max-price-per-hour", "-1", text=text).stdout
