"""Many calls with few tasks."""

import asyncio

import pytest

from synergy_extender.writing.some_at_once import some_at_once


async def test_all_are_done_in_order_and_never_more_at_once() -> None:
    begun, ended, most = list[int](), list[int](), 0

    async def double(number: int) -> int:
        nonlocal most
        begun.append(number)
        most = max(most, len(begun) - len(ended))
        await asyncio.sleep(0.001 * (number % 5))
        ended.append(number)
        return 2 * number

    assert await some_at_once(double, range(50), most=4) == [2 * number for number in range(50)]
    assert begun == list(range(50))
    assert ended != begun, "who takes longer holds up nobody"
    assert most == 4
    assert await some_at_once(double, [], most=4) == []


async def test_the_first_error_is_raised_alone_and_ends_the_rest() -> None:
    begun, cancelled = list[int](), list[int]()

    async def fail(number: int) -> None:
        begun.append(number)
        if number == 3:
            raise ValueError("the third")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(number)
            raise

    with pytest.raises(ValueError, match="the third"):
        await some_at_once(fail, range(50), most=4)
    assert begun == [0, 1, 2, 3]
    assert sorted(cancelled) == [0, 1, 2]
