"""The harness as a process around real commands, where possible under a real CPU limit."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.harness import Harness

CPU_CONTROLLER = Path("/sys/fs/cgroup/cpu")
ACCOUNTING = Path("/sys/fs/cgroup/cpuacct")
PERIOD_US = 100_000


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


@pytest.fixture
def limit_cpu(harness: Harness) -> Iterator[Callable[[int], None]]:
    """Puts what the harness starts from then on under a limit in milli-CPU, as the kubelet does."""
    name = f"kube-synergy-test-{uuid.uuid4().hex[:8]}"
    quota, accounting = CPU_CONTROLLER / name, ACCOUNTING / name
    try:
        quota.mkdir()
        accounting.mkdir()
    except OSError as error:
        pytest.skip(f"no right to make a cgroup of version 1 here: {error}")
    harness.groups.extend([quota, accounting])

    def limit(millis: int) -> None:
        (quota / "cpu.shares").write_text("200000")  # before whatever else this machine is doing
        (quota / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (quota / "cpu.cfs_quota_us").write_text(str(millis * PERIOD_US // 1000))

    yield limit
    for group in harness.groups:
        group.rmdir()
