"""Writes of progress keep to a budget, jobs take turns, and the newest report counts."""

import asyncio
import time

import pytest

from support.extender.cluster import key
from support.waiting import eventually
from synergy_extender.cluster.views import Key
from synergy_extender.leases.progress_budget import ProgressBudget
from synergy_extender.leases.reports import Report, Reported


class World:
    """A budget that notes what it writes, and when."""

    def __init__(self, per_second: float, *, changes: bool = True) -> None:
        self.written: list[tuple[Key, int]] = []
        self.moments: list[float] = []
        self.changes = changes
        self.budget = ProgressBudget(self._write, per_second)

    async def _write(self, job: Key, reported: Reported) -> bool:
        self.written.append((job, reported.report.step))
        self.moments.append(time.monotonic())
        return self.changes

    def report(self, name: str, step: int, run: int = 1, uid: str = "") -> None:
        self.budget.offer(key(name), Reported(uid or f"uid-{name}", run, Report(step=step)))

    async def until(self, count: int) -> None:
        async def there() -> bool:
            return len(self.written) >= count

        task = asyncio.create_task(self.budget.run())
        try:
            await eventually(there, seconds=20, what=f"{count} writes", every=0.01)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_writes_keep_to_the_budget() -> None:
    world = World(50.0)
    for index in range(150):
        world.report(f"j{index}", 1)
    await world.until(150)
    # one second's worth at once, the rest at the pace of the budget
    assert world.moments[-1] - world.moments[0] >= 0.95 * (150 - 50) / 50


async def test_jobs_take_turns_and_the_newest_report_counts() -> None:
    world = World(1000.0)
    for step in range(5):
        for name in ("a", "b", "c"):
            world.report(name, step)
    await world.until(3)
    assert sorted(world.written) == [(key("a"), 4), (key("b"), 4), (key("c"), 4)]
    assert len(world.budget) == 0


async def test_a_run_that_reports_for_the_first_time_and_a_job_that_is_looked_at_come_first() -> None:
    world = World(1000.0)
    for name in ("a", "b", "c"):
        world.report(name, 1)
    await world.until(3)
    world.written.clear()
    for name in ("a", "b", "c"):
        world.report(name, 2)
    assert world.budget.newest(key("c"), "uid-c") is not None
    world.report("new", 1)
    await world.until(4)
    assert [job.name for job, _ in world.written] == ["new", "c", "a", "b"]
    assert world.budget.newest(key("nobody"), "uid-nobody") is None


async def test_a_job_that_took_the_name_of_another_comes_first_and_has_none_of_its_reports() -> None:
    world = World(1000.0)
    for name in ("a", "b"):
        world.report(name, 1)
    await world.until(2)
    world.written.clear()
    world.report("a", 2)
    world.report("b", 1, uid="uid-later")
    await world.until(2)
    assert [job.name for job, _ in world.written] == ["b", "a"]
    assert world.budget.newest(key("b"), "uid-later") is not None
    assert world.budget.newest(key("b"), "uid-b") is None


async def test_a_report_that_changes_nothing_costs_no_turn() -> None:
    world = World(5.0, changes=False)
    for index in range(60):
        world.report(f"j{index}", 1)
    begun = time.monotonic()
    await world.until(60)
    assert time.monotonic() - begun < 6.0, "at 5 a second they would take 11 s"


async def test_what_is_written_at_once_takes_the_place_of_what_waits_and_gone_jobs_are_forgotten() -> None:
    world = World(1000.0)
    world.report("a", 1)
    world.report("b", 1)
    world.budget.take(key("a"), Reported("uid-a", 1, Report(step=9, done=True)))
    assert len(world.budget) == 1
    newest = world.budget.newest(key("a"), "uid-a")
    assert newest is not None
    assert newest.reported.report.step == 9
    world.budget.keep({key("a")})
    assert len(world.budget) == 0
    assert world.budget.newest(key("b"), "uid-b") is None


@pytest.mark.parametrize("per_second", [0.5, 3.0])
async def test_a_small_budget_writes_too(per_second: float) -> None:
    world = World(per_second)
    world.report("a", 1)
    await world.until(1)
    assert world.written == [(key("a"), 1)]


async def test_one_jobs_error_stops_no_other_jobs_writes(caplog: pytest.LogCaptureFixture) -> None:
    world = World(1000.0)

    async def write(job: Key, reported: Reported) -> bool:
        if job.name == "bad":
            raise ValueError("an answer that is no JSON")
        return await world._write(job, reported)

    world.budget = ProgressBudget(write, 1000.0)
    for name in ("a", "bad", "b"):
        world.report(name, 1)
    await world.until(2)
    assert {job.name for job, _ in world.written} == {"a", "b"}
    assert "the progress of team/bad is not written" in caplog.text
