"""The example scripts as real processes, where possible under a real CPU limit."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.job.example import Example
from support.job.harness import Harness, cpu_groups
from support.job.process import free_port, kill_what_is_left


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


@pytest.fixture
def limit_cpu(harness: Harness) -> Iterator[Callable[[int], None]]:
    with cpu_groups(harness) as limit:
        yield limit


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Example]:
    """A job of 120 steps."""
    environ = {
        "SYNERGY_JOB": "example",
        "SYNERGY_NAMESPACE": "team",
        "SYNERGY_RUN": "1",
        "SYNERGY_STEPS": "120",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(free_port()),
        "SYNERGY_PEER_PORT": str(free_port()),
    }
    made = Example(tmp_path, environ)
    yield made
    kill_what_is_left(made.running)
