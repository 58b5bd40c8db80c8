"""Keys are looked at one at a time each, and all of them in turn at a bounded cost."""

import asyncio

import pytest

from synergy_clusters.views import Key
from synergy_clusters.work import MOST_IN_TURN, ROUND_SECONDS, Turns, Work


def key(number: int) -> Key:
    return "team", f"j{number}"


async def test_a_key_is_looked_at_by_one_task_and_again_if_something_came_meanwhile() -> None:
    work = Work(2)
    work.mark(key(1))
    assert await work.next() == [key(1)]
    work.mark(key(1))
    work.mark(key(2))
    assert await work.next() == [key(2)]
    work.done(key(1))
    assert await work.next() == [key(1)]


async def test_only_so_many_are_looked_at_together() -> None:
    work = Work(2)
    for number in range(3):
        work.mark(key(number))
    assert len(await work.next()) == 2
    waits = asyncio.ensure_future(work.next())
    await asyncio.sleep(0)
    assert not waits.done()
    work.done(key(0))
    assert await waits == [key(2)]


async def test_of_two_times_the_sooner_one_counts() -> None:
    work = Work(1)
    work.later(key(1), 0.01)
    work.later(key(1), 1000)
    work.later(key(2), 1000)
    work.later(key(2), 0.02)
    assert await asyncio.wait_for(work.next(), 20) == [key(1)]
    work.done(key(1))
    assert await asyncio.wait_for(work.next(), 20) == [key(2)]


@pytest.mark.parametrize("number", [1, MOST_IN_TURN, 2 * MOST_IN_TURN + 1])
def test_each_key_has_its_turn_and_no_look_has_too_many(number: int) -> None:
    now = [0.0]
    turns = Turns(lambda: map(key, (*range(number), 0)), lambda: now[0])
    assert turns.next() == []
    now[0] = ROUND_SECONDS
    looks = [turns.next() for _ in range(4)]
    assert [one for look in looks for one in look] == [key(one) for one in range(number)]
    assert max(map(len, looks)) <= MOST_IN_TURN
    now[0] = 2 * ROUND_SECONDS
    assert turns.next()[0] == key(0)
