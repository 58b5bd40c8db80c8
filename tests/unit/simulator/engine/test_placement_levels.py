"""A simulated job's speed by how near its nodes are."""

from pathlib import Path

import pytest

from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Allocation, NodeShare
from synergy_core.throughput.all_reduce import spread_speed
from synergy_simulator.engine.run import Run
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool, read_cluster
from synergy_simulator.inputs.errors import InputError
from synergy_simulator.inputs.links import Links
from synergy_simulator.workloads.workload import Task

GIB = 2**30
POOL = SimulatedPool(
    name="n", gpu_type="V100", nodes=8, gpus_per_node=4, cpus_per_node=12, memory_gib_per_node=64,
    nodes_per_domain=(4, 2), domain_gib_per_s=(1.0, 10.0),
)  # fmt: skip
LINK = 1e8


def pace(*nodes: int, gpus: int = 8, **more: object) -> float:
    """The speed on these nodes of a job that would do a step a second on the nearest."""
    given = {"model_bytes": 10**9, "overlap": 0.0, **more}
    task = Task(
        name="j",
        arrival_s=0.0,
        gpus=gpus,
        model="m",
        steps=100.0,
        profiles={},
        share_steps_per_s=1.0,
        alone_s=1.0,
        **given,
    )  # type: ignore[arg-type]
    cluster = Cluster((POOL,))
    run = Run(task, profiling_s=0.0, fewest_nodes=cluster.fewest_nodes(gpus), links=Links(cluster.nodes(), LINK))
    each = gpus // len(nodes)
    workers = tuple(NodeShare(node=f"n-{index}", gpus=each, cpu_millis=1, memory_bytes=1) for index in nodes)
    run.hold(Allocation(job="j", gpu_type="V100", workers=workers), 0.0, 1.0)
    return run.speed


def ring(link: float, nodes: int) -> float:
    return spread_speed(10**9, 1.0, link, nodes, 0.0)


def test_links_of_levels_slow_a_gang_down() -> None:
    assert pace(0, 1) == 1.0, "a rack"
    assert pace(0, 2) == pytest.approx(ring(GIB, 2) / ring(10 * GIB, 2)), "a block"
    assert pace(0, 4) == pytest.approx(ring(LINK, 2) / ring(10 * GIB, 2)), "two blocks"
    assert pace(0, 1, 2, 3) == pytest.approx(ring(GIB, 4) / ring(10 * GIB, 2)), "more nodes in one block"
    assert pace(0, 4, model_bytes=None) == 1.0, "nobody knows what it sends"


def test_measured_levels_go_before_links() -> None:
    told = {"V100": {"1": 0.7, "0": 0.4}}
    assert pace(0, 1, level_speeds=told) == 1.0
    assert pace(0, 2, level_speeds=told) == 0.7
    assert pace(0, 4, level_speeds=told) == 0.4
    assert pace(0, gpus=4, level_speeds=told) == 1.0
    assert pace(0, 1, 2, 3, spread_speed=0.5, gpus=8) == 0.5


CLUSTER = """\
pools:
  - {name: n, gpu_type: V100, nodes: 8, gpus_per_node: 4, cpus_per_node: 12, memory_gib_per_node: 64,
     nodes_per_domain: %s, domain_gib_per_s: %s}
"""


def test_a_cluster_file_says_which_nodes_are_near_each_other(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER % ("[4, 2]", "[1, 10]"))
    assert read_cluster(file).pools == (POOL,)
    nodes = read_cluster(file).nodes()
    assert [node.domains for node in nodes[:3]] == [("n-0", "n-0"), ("n-0", "n-0"), ("n-0", "n-1")]
    assert nodes[0].domain_bytes_per_s == (GIB, 10 * GIB)


@pytest.mark.parametrize(
    ("sizes", "rates", "words"),
    [
        ("[4, 3]", "[]", r"nodes_per_domain: 4 is not a multiple of 3; give the widest level first"),
        ("[2, 2]", "[]", "is not a multiple"),
        ("[2]", "[1, 2]", "domain_gib_per_s: has more entries than nodes_per_domain"),
        ("4", "[]", "nodes_per_domain: must be a list of at most 4 entries"),
        ("[0]", "[]", r"nodes_per_domain\[0\]: must be a whole number of at least 1"),
        ("[2]", "[-1]", r"domain_gib_per_s\[0\]"),
    ],
)
def test_levels_that_make_no_sense_are_refused(tmp_path: Path, sizes: str, rates: str, words: str) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER % (sizes, rates))
    with pytest.raises(InputError, match=words):
        read_cluster(file)


def test_the_default_configuration_knows_no_link() -> None:
    assert Links(Cluster((POOL,)).nodes(), PlanConfig().link_bytes_per_s).at("V100", 0) is None
