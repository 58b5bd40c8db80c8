"""When the operator writes a status, and when the write can wait."""

import pytest

from support.operator.world import World
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_operator.job.status_write import operator_part, write_delay
from synergy_operator.views.observed import Observed


@pytest.fixture(name="ungated")
def fixture_ungated() -> tuple[Observed, TrainingJobStatus, float]:
    """A job whose worker's gate has fallen and whose status still says Gated, and when it fell."""
    world = World()
    world.settle()
    world.grant()
    world.settle()
    assert [worker.state for worker in world.status.workers] == ["Gated"]
    observed = world.observe()
    (pod,) = observed.pods
    assert pod.ungated_at is not None
    return observed, world.status, pod.ungated_at


def without_gates(status: TrainingJobStatus) -> TrainingJobStatus:
    """What the operator would write once the gates have fallen."""
    waiting = [worker.model_copy(update={"state": "Waiting"}) for worker in status.workers]
    return operator_part(status).model_copy(update={"workers": waiting})


def test_a_write_about_gates_alone_waits_until_five_seconds_after_they_fell(
    ungated: tuple[Observed, TrainingJobStatus, float],
) -> None:
    observed, status, fell = ungated
    after = without_gates(status)
    assert write_delay(status, after, observed, fell + 2) == 3.0
    assert write_delay(status, after, observed, fell + 5) is None


def test_any_other_change_is_written_at_once(ungated: tuple[Observed, TrainingJobStatus, float]) -> None:
    observed, status, fell = ungated
    running = without_gates(status).model_copy(update={"phase": "Running"})
    assert write_delay(status, running, observed, fell + 2) is None
    assert write_delay(status, operator_part(status), observed, fell + 2) is None
