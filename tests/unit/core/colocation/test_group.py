"""Co-located jobs as the one job that policies and mechanisms see."""

from support.planner.planning import holding
from synergy_core.colocation.group import running_group
from synergy_core.model.snapshot import Job


def _runs(name: str, **more: object) -> Job:
    return Job(name=name, gpus=1, running=holding(name, ("n1", 1, 3, 60)), **more)  # type: ignore[arg-type]


def test_a_group_came_with_its_first_member_and_runs_since_the_last_began() -> None:
    members = [_runs("a", arrival_s=2.0, run_started_s=5.0), _runs("b", arrival_s=1.0, run_started_s=9.0)]
    whole = running_group(members).job
    assert (whole.arrival_s, whole.run_started_s) == (1.0, 9.0)
    assert running_group([_runs("a"), _runs("b")]).job.run_started_s is None


def test_a_group_needs_and_may_have_what_its_members_do_together() -> None:
    members = [
        _runs("a", cpu_millis_min=500, memory_bytes_min=10, cpu_millis_max=4000, memory_bytes_max=70, weight=2.0),
        _runs("b", cpu_millis_min=700, memory_bytes_min=20, cpu_millis_max=3000),
    ]
    whole = running_group(members).job
    assert (whole.gpus, whole.weight) == (1, 3.0)
    assert (whole.cpu_millis_min, whole.memory_bytes_min) == (1200, 30)
    assert (whole.cpu_millis_max, whole.memory_bytes_max) == (7000, None)
    assert whole.running is not None
    assert whole.running.workers == holding("", ("n1", 1, 6, 120)).workers


def test_a_group_may_be_preempted_where_each_member_may() -> None:
    assert running_group([_runs("a"), _runs("b")]).job.preemptible
    assert not running_group([_runs("a"), _runs("b", preemptible=False)]).job.preemptible
