"""Many calls, of which only some wait for their answer at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def some_at_once(do: Callable[[T], Awaitable[R]], items: Sequence[T], *, most: int) -> list[R]:
    """The result of each item. They are begun in their order, with `most` tasks: a task for each of thousands of items
    would take as much memory as what they are about. The first error cancels the rest and is raised alone."""
    results: dict[int, R] = {}
    rest = iter(enumerate(items))

    async def take() -> None:
        for index, item in rest:
            results[index] = await do(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(most, len(items))):
                group.create_task(take())
    except* Exception as errors:  # noqa: BLE001 - raised again, without the group around it
        raise errors.exceptions[0] from None
    return [results[index] for index in range(len(items))]
