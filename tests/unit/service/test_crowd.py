"""One address that takes all the connections there are displaces itself, not the workers of others."""

import asyncio

from support.extender.servers import parts_alone, running
from synergy_service.crowd import Crowd
from synergy_service.operations import ops_app
from synergy_service.servers import Endpoint

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
FLOOD = "127.0.0.66"


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the server has closed the connection."""
    try:
        await asyncio.wait_for(reader.read(), 0.2)
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def test_an_address_displaces_its_own_oldest_connection() -> None:
    gone: list[int] = []
    crowd = Crowd(gone.append, most=100, per_address=3)
    for number in range(5):
        crowd.come("a", number)
    crowd.come("b", 99)
    assert gone == [0, 1]
    assert len(crowd) == 4


def test_a_full_port_loses_connections_of_the_address_that_has_the_most() -> None:
    gone: list[str] = []
    crowd = Crowd(gone.append, most=10, per_address=8)
    for number in range(2):
        crowd.come("worker", f"w{number}")
    for number in range(7):
        crowd.come("flood", f"f{number}")
    for number in range(4):
        crowd.come(f"other {number}", f"o{number}")
    assert gone == ["f0", "f1", "f2"]
    assert len(crowd) == 10


def test_a_connection_that_is_closed_no_longer_counts() -> None:
    gone: list[int] = []
    crowd = Crowd(gone.append, most=10, per_address=2)
    for number in range(20):
        crowd.come("a", number)
        crowd.leave("a", number)
        crowd.leave("a", number)
    assert (gone, len(crowd)) == ([], 0)


async def test_a_worker_keeps_its_connection_beside_a_flood_of_them() -> None:
    """They were answered with 503, the worker's report too, as long as somebody held all there are."""
    async with parts_alone() as parts:
        app = ops_app(parts.metrics.registry, lambda: "")
        async with running(Endpoint(app, 0, per_address=5)) as (port,):
            reader, worker = await asyncio.open_connection("127.0.0.1", port)
            flood = []
            for _ in range(12):
                strange, stranger = await asyncio.open_connection("127.0.0.1", port, local_addr=(FLOOD, 0))
                stranger.write(REQUEST)
                assert b"200 OK" in await strange.readuntil(b"ok")
                flood.append((strange, stranger))
            worker.write(REQUEST)
            assert b"200 OK" in await reader.readuntil(b"ok")
            closed = [await ended(strange) for strange, _ in flood]
            for _, stranger in flood:
                stranger.close()
            worker.close()
    assert closed == [True] * 7 + [False] * 5
