"""Collections in pages that have a bounded size in bytes, whatever their objects are.

Many objects have 5 KB, and some 1.5 MB: 500 of these at once would end a process. One tenant may write them.
"""

from collections.abc import AsyncGenerator
from typing import Final, Protocol

import aiohttp

from synergy_kube.answers import Page
from synergy_kube.errors import ApiError, LongAnswer

PAGE_ITEMS: Final = 500
"""Objects of a large collection in one answer, as kube-apiserver's own clients ask for them."""
PAGE_BYTES: Final = 16 << 20
"""Of an answer with more than one object. A longer one is not read to its end, and fewer objects are asked for."""
_AIM_BYTES: Final = PAGE_BYTES // 2
"""The next page has about so much, if its objects are like those of the last one."""
_FEW: Final = 10
"""So many fit whatever they are: etcd stores 1.5 MB of one unless it is told otherwise."""
_GROWTH: Final = 4
"""A page has at most so many times the objects of the last one. So a few large objects between many small ones cost
only a few answers that are not read to the end."""
_PAGES_MOST: Final = 10_000


class Ask(Protocol):
    """Asks for one page: `most` objects that follow the page whose `rest` is `after`.

    Raises LongAnswer if they have more than `most_bytes`; 0 is no limit.
    """

    async def __call__(self, *, most: int, after: str, most_bytes: int) -> Page: ...


async def in_pages(ask: Ask, most: int, what: str) -> AsyncGenerator[Page]:
    """All pages of a collection, each of at most `most` objects. `what` names the collection in errors.

    A page is empty once the next one is asked for, so that only one is in memory. Where an answer takes too
    long, few objects are asked for: an API server needs seconds to put 700 MB together. From then on a page has at
    most half as many as that answer: each one that comes too late costs seconds, and the version of the list is
    forgotten after some minutes. Raises what `ask` raises.
    """
    rest, count = "", most
    for _ in range(_PAGES_MOST):
        page, count, late = await _fitting(ask, count, rest)
        most = max(_FEW, late // 2) if late else most
        rest, count = page.rest, min(most, _following(page, count))
        yield page
        page.drop()
        if not rest:
            return
    raise ApiError(500, "TooManyPages", f"the list of {what} does not end")


async def _fitting(ask: Ask, count: int, rest: str) -> tuple[Page, int, int]:
    """The page after `rest`, how many objects were asked for in the end, and of how many there was no answer in time; 0
    if there was one. A single object may have any size."""
    late = 0
    while True:
        try:
            return await ask(most=count, after=rest, most_bytes=PAGE_BYTES if count > 1 else 0), count, late
        except LongAnswer:
            count = _FEW if count > _FEW else 1
        except TimeoutError as error:
            if count <= _FEW or isinstance(error, aiohttp.ConnectionTimeoutError):
                raise  # it is not for the objects
            count, late = _FEW, count


def _following(page: Page, asked: int) -> int:
    """How many objects to ask for after this page."""
    return max(1, min(_GROWTH * asked, _AIM_BYTES * max(1, len(page)) // page.size))
