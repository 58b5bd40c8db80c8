"""Options of up: what a command line may say, and what is refused with which words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_devcluster.errors import BadInputError
from synergy_devcluster.gpu_plugin.gpu_types import gpu_type, node_labels
from synergy_devcluster.options import FakeNodes, Options, parse_fake_nodes

GIB = 2**30


def test_groups_of_fake_nodes_are_read() -> None:
    assert parse_fake_nodes("V100=25x8, T4=3x4:cpu=16:mem=128Gi") == (
        FakeNodes("V100", nodes=25, gpus=8, cpus=24, memory_bytes=500 * GIB),
        FakeNodes("T4", nodes=3, gpus=4, cpus=16, memory_bytes=128 * GIB),
    )
    assert parse_fake_nodes("") == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("V100", "TYPE=NODESxGPUS"),
        ("V100=25*8", "TYPE=NODESxGPUS"),
        ("V100=0x8", "at least 1 node"),
        ("V100=1x65", "at most 64 GPUs"),
        ("V100=6000x8", "more than 5000 nodes"),
        ("V100=1x8,V100=2x8", "named twice"),
        ("V100=1x8:cpu=0", "cpu=24"),
        ("V100=1x8:mem=5GB", "mem=500Gi"),
        ("V100=1x8:cpu=2:cpu=3", "cpu twice"),
        ("V100=1x8:disk=3", "disk=3"),
    ],
)
def test_bad_groups_are_refused_with_what_to_change(text: str, words: str) -> None:
    with pytest.raises(BadInputError, match="--fake-nodes") as refused:
        parse_fake_nodes(text)
    assert words in str(refused.value)


names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,10}", fullmatch=True)
groups = st.builds(
    FakeNodes,
    type_name=names,
    nodes=st.integers(1, 100),
    gpus=st.integers(0, 64),
    cpus=st.integers(1, 512),
    memory_bytes=st.integers(1, 4096).map(lambda kibibytes: kibibytes * 2**10),
)


@given(st.lists(groups, max_size=5, unique_by=lambda group: group.type_name))
def test_groups_in_words_read_back_as_the_same_groups(made: list[FakeNodes]) -> None:
    assert parse_fake_nodes(",".join(group.in_words() for group in made)) == tuple(made)


@given(st.lists(groups, max_size=3), st.integers(0, 64), st.integers(0, 500))
def test_options_survive_the_state_file(made: list[FakeNodes], gpus: int, volumes: int) -> None:
    options = Options(gpus=gpus, fake_nodes=tuple(made), volumes=volumes)
    assert Options.from_json(options.to_json()) == options


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"gpus": -1}, "--gpus"),
        ({"real_nodes": 4}, "--real-nodes"),
        ({"volumes": 501}, "--volumes"),
        ({"gpu": "a b"}, "GPU type"),
    ],
)
def test_bad_options_name_the_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(BadInputError, match=field):
        Options(**change)  # type: ignore[arg-type]


def test_a_missing_program_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="--bin-dir"):
        Options(bin_dir=tmp_path / "missing")


def test_where_programs_come_from_makes_no_other_cluster(tmp_path: Path) -> None:
    assert Options(gpus=2).same_cluster(Options(gpus=2, bin_dir=tmp_path))
    assert not Options(gpus=2).same_cluster(Options(gpus=3))


def test_labels_are_those_of_gpu_feature_discovery() -> None:
    labels = node_labels(gpu_type("V100"), 8)
    assert labels["nvidia.com/gpu.product"] == "Tesla-V100-SXM2-16GB"
    assert labels["nvidia.com/gpu.count"] == "8"
    assert labels["nvidia.com/gpu.memory"] == "16384"
    assert labels["nvidia.com/gpu.replicas"] == "1"
    assert labels["nvidia.com/gpu.sharing-strategy"] == "none"
    assert labels["nvidia.com/mps.capable"] == "false"
    assert node_labels(gpu_type("V100"), 0) == {}


def test_an_unknown_type_is_its_own_product() -> None:
    assert gpu_type("RTX-6000").product == "RTX-6000"
