"""Which cgroup is the container's, and what it counts; version 1 and 2."""

from pathlib import Path

import pytest

from synergy_job.cgroup import Cgroup

V1_STAT = "cache 9\ntotal_cache 4096\ntotal_rss 1000\ntotal_shmem 24\n"
V2_STAT = "anon 3000\nfile 4096\nshmem 72\n"


class Machine:
    """A made-up /proc/self and the hierarchies that it names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.proc = folder / "proc"
        self.proc.mkdir()
        self.groups: list[str] = []
        self.mounts: list[str] = ["31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755"]

    def version_1(self, controller: str, path: str, root: str, where: str) -> Path:
        mount = self.folder / controller
        self.groups.append(f"4:{controller}:{path}")
        self.mounts.append(f"34 31 0:31 {root} {mount} rw,relatime shared:3 - cgroup cgroup rw,{controller}")
        (mount / where).mkdir(parents=True, exist_ok=True)
        return mount / where

    def version_2(self, path: str, root: str, where: str) -> Path:
        mount = self.folder / "unified"
        self.groups.append(f"0::{path}")
        self.mounts.append(f"40 31 0:40 {root} {mount} rw,relatime - cgroup2 cgroup2 rw,nsdelegate")
        group = mount / where
        group.mkdir(parents=True, exist_ok=True)
        (group / "cgroup.controllers").write_text("cpu memory\n")
        return group

    def cgroup(self) -> Cgroup:
        (self.proc / "cgroup").write_text("\n".join(self.groups) + "\n")
        (self.proc / "mountinfo").write_text("\n".join(self.mounts) + "\n")
        return Cgroup.of_this_process(self.proc)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("path", "root", "where"),
    [
        ("/kubepods/pod1/abc", "/kubepods/pod1/abc", "."),  # a container: its group is bound on the mount point
        ("/", "/", "."),  # a container with a cgroup namespace
        ("/user/me", "/", "user/me"),  # a process on the machine itself
    ],
)
def test_version_1(machine: Machine, path: str, root: str, where: str) -> None:
    (machine.version_1("cpuacct", path, root, where) / "cpuacct.usage").write_text("2500000000\n")
    (machine.version_1("memory", path, root, where) / "memory.stat").write_text(V1_STAT)
    found = machine.cgroup()
    assert found.cpu_seconds() == 2.5
    assert found.memory_bytes() == 1024


@pytest.mark.parametrize(("path", "root", "where"), [("/", "/", "."), ("/kubepods/abc", "/", "kubepods/abc")])
def test_version_2(machine: Machine, path: str, root: str, where: str) -> None:
    group = machine.version_2(path, root, where)
    (group / "cgroup.type").write_text("domain\n")
    (group / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    (group / "memory.stat").write_text(V2_STAT)
    found = machine.cgroup()
    assert found.cpu_seconds() == 1.5
    assert found.memory_bytes() == 3072


def test_version_1_beside_an_empty_version_2(machine: Machine) -> None:
    machine.version_2("/", "/", ".")
    (machine.version_1("cpuacct", "/pod", "/pod", ".") / "cpuacct.usage").write_text("1000000000\n")
    found = machine.cgroup()
    assert found.cpu_seconds() == 1.0
    assert found.memory_bytes() is None


def test_the_machines_root_group_counts_everybody_and_is_not_used(machine: Machine) -> None:
    root = machine.version_1("cpuacct", "/", "/", ".")
    (root / "cpuacct.usage").write_text("1\n")
    (root / "release_agent").write_text("\n")
    unified = machine.version_2("/", "/", ".")
    (unified / "memory.stat").write_text(V2_STAT)
    found = machine.cgroup()
    assert (found.cpu_seconds(), found.memory_bytes()) == (None, None)


def test_without_cgroups_nothing_is_known(tmp_path: Path) -> None:
    found = Cgroup.of_this_process(tmp_path / "none")
    assert (found.cpu_seconds(), found.memory_bytes(), found.cpu_limit()) == (None, None, None)


def test_a_group_that_vanishes_is_not_an_error(machine: Machine) -> None:
    group = machine.version_1("cpuacct", "/pod", "/pod", ".")
    (group / "cpuacct.usage").write_text("1\n")
    found = machine.cgroup()
    (group / "cpuacct.usage").unlink()
    assert found.cpu_seconds() is None


def test_the_limit_of_a_version_2_group_is_read_anew_each_time(machine: Machine) -> None:
    group = machine.version_2("/pod", "/pod", ".")
    for name, text in (("cgroup.type", "domain\n"), ("cpu.stat", "usage_usec 1\n"), ("cpu.max", "50000 100000\n")):
        (group / name).write_text(text)
    found = machine.cgroup()
    assert found.cpu_limit() == 0.5
    (group / "cpu.max").write_text("75000 100000\n")
    assert found.cpu_limit() == 0.75


@pytest.mark.parametrize(
    ("files", "want"),
    [
        ({"cpu.cfs_quota_us": "25000\n", "cpu.cfs_period_us": "100000\n"}, 0.25),
        ({"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.cfs_quota_us": "100\n", "cpu.cfs_period_us": "0\n"}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "nonsense"}, None),
        ({"cpu.max": "100000"}, None),
        ({}, None),
    ],
)
def test_the_limit_of_a_version_1_group_and_none(machine: Machine, files: dict[str, str], want: float | None) -> None:
    group = machine.version_1("cpu", "/pod", "/pod", ".")
    for name, text in {"cpu.stat": "nr_periods 0\n", **files}.items():
        (group / name).write_text(text)
    assert machine.cgroup().cpu_limit() == want
