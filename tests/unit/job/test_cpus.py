"""How many CPUs a process may use: the limit of its cgroup, which `test_cgroup.py` reads, within the machine's."""

import os

import pytest

import synergy_job
from synergy_job.cgroup import Cgroup

MACHINE = float(len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(("limit", "want"), [(0.25, 0.25), (None, MACHINE), (1000.0, MACHINE)])
def test_it_is_the_limit_within_the_machine(limit: float | None, want: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cgroup, "cpu_limit", lambda _: limit)
    assert synergy_job.cpus() == want
