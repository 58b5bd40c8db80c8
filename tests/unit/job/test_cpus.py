"""How many CPUs a process may use: what its cgroup says now, in either version."""

import os
from pathlib import Path

import pytest

import synergy_job

MACHINE = float(len(os.sched_getaffinity(0)))


def write(folder: Path, **files: str) -> Path:
    """A cgroup with these files; `__` stands for a folder's slash, `_dot_` for a dot."""
    for name, text in files.items():
        file = folder / name.replace("__", "/").replace("_dot_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def test_the_limit_of_a_version_2_group_is_read_anew_each_time(tmp_path: Path) -> None:
    assert synergy_job.cpus(write(tmp_path, cpu_dot_max="50000 100000\n")) == 0.5
    assert synergy_job.cpus(write(tmp_path, cpu_dot_max="75000 100000\n")) == 0.75


def test_the_limit_of_a_version_1_group_is_in_two_files(tmp_path: Path) -> None:
    group = write(tmp_path, cpu__cpu_dot_cfs_quota_us="25000\n", cpu__cpu_dot_cfs_period_us="100000\n")
    assert synergy_job.cpus(group) == 0.25


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"cpu_dot_max": "max 100000\n"},
        {"cpu_dot_max": "nonsense"},
        {"cpu_dot_max": "100000"},
        {"cpu__cpu_dot_cfs_quota_us": "-1\n", "cpu__cpu_dot_cfs_period_us": "100000\n"},
        {"cpu__cpu_dot_cfs_quota_us": "100\n", "cpu__cpu_dot_cfs_period_us": "0\n"},
    ],
)
def test_without_a_limit_it_is_the_machine_s_cpus(tmp_path: Path, files: dict[str, str]) -> None:
    assert synergy_job.cpus(write(tmp_path, **files)) == MACHINE


def test_a_limit_above_the_machine_is_the_machine(tmp_path: Path) -> None:
    assert synergy_job.cpus(write(tmp_path, cpu_dot_max="100000000 100000\n")) == MACHINE
