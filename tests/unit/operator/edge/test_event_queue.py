"""Events beside the work: in order for each subject, one that fails or too many stop nothing."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from support.waiting import eventually
from synergy_operator.edge.event_queue import EventQueue


def at_once() -> asyncio.Event:
    """There is no other work."""
    idle = asyncio.Event()
    idle.set()
    return idle


@pytest_asyncio.fixture
async def queue() -> AsyncIterator[EventQueue]:
    made = EventQueue(at_once())
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def noting(posted: list[str], text: str, seconds: float = 0.0) -> Callable[[], Awaitable[None]]:
    async def post() -> None:
        await asyncio.sleep(seconds)
        posted.append(text)

    return post


async def test_of_one_subject_the_first_is_posted_first_and_of_another_meanwhile(queue: EventQueue) -> None:
    posted: list[str] = []
    queue.add("a", noting(posted, "slow", 0.3))
    queue.add("a", noting(posted, "next"))
    for index in range(20):
        queue.add(f"other-{index}", noting(posted, f"other-{index}"))

    async def all_there() -> bool:
        return len(posted) == 22

    await eventually(all_there, seconds=10, what="all events", every=0.02)
    assert posted.index("slow") < posted.index("next")
    assert posted.index("slow") > 0, "others do not wait for a slow one"


async def test_one_that_fails_does_not_stop_the_next(queue: EventQueue, caplog: pytest.LogCaptureFixture) -> None:
    posted: list[str] = []

    async def fails() -> None:
        raise RuntimeError("no such thing")

    queue.add("a", fails)
    queue.add("a", noting(posted, "next"))

    async def there() -> bool:
        return posted == ["next"]

    await eventually(there, seconds=10, what="the next event", every=0.02)
    assert "no such thing" in caplog.text


async def test_other_work_comes_first() -> None:
    idle, posted = asyncio.Event(), list[str]()
    queue = EventQueue(idle)
    queue.add("a", noting(posted, "told"))
    task = asyncio.create_task(queue.run())
    await asyncio.sleep(0.05)
    assert posted == []
    idle.set()

    async def there() -> bool:
        return posted == ["told"]

    await eventually(there, seconds=10, what="the event", every=0.02)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("idle", "count", "least_s"),
    [(asyncio.Event(), 8, 7 / 20.0), (at_once(), 40, 19 / 40.0)],
    ids=["20 a second beside other work", "20 at once without, and then 40 a second"],
)
async def test_only_some_are_posted_per_second(idle: asyncio.Event, count: int, least_s: float) -> None:
    posted: list[float] = []
    queue = EventQueue(idle, patience_s=0.05, per_second=20.0, per_second_at_rest=40.0)

    async def post() -> None:
        posted.append(asyncio.get_running_loop().time())

    for index in range(count):
        queue.add(f"subject-{index}", post)
    task = asyncio.create_task(queue.run())

    async def all_there() -> bool:
        return len(posted) == count

    await eventually(all_there, seconds=30, what="all events", every=0.02)
    assert posted[-1] - posted[0] >= least_s - 0.001
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_after_a_rest_some_come_at_once() -> None:
    """As many as half a second brings: 20 at 40 a second."""
    queue = EventQueue(at_once(), per_second_at_rest=40.0)

    async def turns() -> None:
        for _ in range(20):
            await queue._turn(0.0)

    taken = asyncio.create_task(turns())
    await asyncio.sleep(0)
    assert taken.done(), "none of them waits"


async def test_too_many_are_lost_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    queue, posted = EventQueue(at_once()), list[str]()
    with caplog.at_level(logging.WARNING):
        for index in range(2501):
            queue.add("a", noting(posted, str(index)))
    assert [record.getMessage() for record in caplog.records] == ["a: an event is not posted, too many are waiting"]
