"""Events follow from the difference between two statuses."""

from synergy_api.parts.profile import ProfilePoint
from synergy_api.reasons.words import Reason
from synergy_api.resources.training_job import ProfileStatus, TrainingJobStatus
from synergy_operator.job.events import events

GIB = 2**30


def measured(*points: ProfilePoint) -> TrainingJobStatus:
    return TrainingJobStatus(profile=ProfileStatus(state="Measuring", points=list(points)))


def point(job: str, cpu_millis: int, steps_per_second: float, **fields: float) -> ProfilePoint:
    return ProfilePoint(
        gpu_type="A100", cpu_millis=cpu_millis, memory_bytes=GIB, steps_per_second=steps_per_second, job=job, **fields
    )


FIRST, SECOND = point("j-1", 1000, 2.0), point("j-2", 2500, 4.0, hit_rate=0.4)


def test_each_measured_point_is_posted_when_it_comes() -> None:
    (first,) = events(TrainingJobStatus(), measured(FIRST))
    assert first.reason == Reason.POINT_MEASURED
    (second,) = events(measured(FIRST), measured(FIRST, SECOND))
    assert "2500m" in second.message
    assert "40% of the data in memory" in second.message
    assert "4 " in second.message


def test_a_point_that_was_known_is_not_posted_again() -> None:
    assert events(measured(FIRST, SECOND), measured(FIRST, SECOND)) == ()
    assert events(measured(FIRST, SECOND), measured(SECOND)) == ()
