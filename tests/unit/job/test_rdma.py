"""Counters of RDMA devices, in folders as the kernel's sysfs has them."""

from pathlib import Path

from synergy_job.rdma import sent_bytes


def device(root: Path, name: str, node: str, words: str = "1000", *, virtual: bool = True, given: bool = True) -> Path:
    """A device with one port; its counter's file."""
    (root / "sys" / "infiniband_verbs" / node).mkdir(parents=True)
    (root / "sys" / "infiniband_verbs" / node / "ibdev").write_text(f"{name}\n")
    (root / "dev").mkdir(exist_ok=True)
    if given:
        (root / "dev" / node).touch()
    (root / "sys" / "infiniband" / name / "device").mkdir(parents=True)
    if virtual:
        (root / "sys" / "infiniband" / name / "device" / "physfn").mkdir()
    counters = root / "sys" / "infiniband" / name / "ports" / "1" / "counters"
    counters.mkdir(parents=True)
    (counters / "port_xmit_data").write_text(f"{words}\n")
    return counters / "port_xmit_data"


def told(root: Path) -> dict[str, int]:
    return sent_bytes(str(root / "sys"), str(root / "dev"))


def test_words_of_own_virtual_functions_count_as_four_bytes(tmp_path: Path) -> None:
    device(tmp_path, "mlx5_2", "uverbs2", "1000")
    device(tmp_path, "mlx5_3", "uverbs3", "7", given=False)
    device(tmp_path, "mlx5_0", "uverbs0", "500", virtual=False)
    assert told(tmp_path) == {"mlx5_2/1": 4000}


def test_a_port_that_does_not_count_and_other_nodes_are_left_out(tmp_path: Path) -> None:
    device(tmp_path, "mlx5_2", "uverbs2", "N/A (no PMA)")
    device(tmp_path, "mlx5_4", "uverbs4", "5").unlink()
    (tmp_path / "dev" / "rdma_cm").touch()
    assert told(tmp_path) == {}


def test_without_rdma_nothing_is_told(tmp_path: Path) -> None:
    assert told(tmp_path) == {}
    assert sent_bytes() == {} or all(value >= 0 for value in sent_bytes().values())
