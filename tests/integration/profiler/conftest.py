"""The harness as a process around real commands, where possible under a real CPU limit."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.job.harness import Harness, cpu_groups


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


@pytest.fixture
def limit_cpu(harness: Harness) -> Iterator[Callable[[int], None]]:
    with cpu_groups(harness) as limit:
        yield limit
