"""The clients of filter: what is told when they fail, and that their calls lie on the plan of a round."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import click
import pytest

from support.job.fixtures import authority
from support.job.lease_server import Authority, serve_leases
from support.job.process import free_port
from synergy_cli.bench.e2e.stages import planning
from synergy_cli.bench.e2e.stages.filtering import Caller
from synergy_extender.rounds import Rounds

__all__ = ["authority"]
ROUNDS = Rounds(1)


def caller(authority: Authority, address: str) -> Caller:
    product: Any = SimpleNamespace(authority=authority, client_certificate=authority)
    return Caller(product, address, b"{}", every_s=0.0)


async def test_a_client_that_reaches_nobody_says_so(authority: Authority) -> None:
    with pytest.raises(click.ClickException, match="did not connect"):
        await caller(authority, f"127.0.0.1:{free_port()}").ready()


async def test_a_client_that_dies_says_so(authority: Authority) -> None:
    with serve_leases(authority) as server:  # which knows no filter
        one = caller(authority, server.url.removeprefix("https://"))
        await one.ready()
        calls = one.start()
        with pytest.raises(click.ClickException, match="died"):
            await calls
        one.stop()


class Planner:
    """An extender that plans each round at its time, if it `plans`."""

    def __init__(self, *, plans: bool = True) -> None:
        self.plans = plans

    async def metrics(self) -> str:
        planned = ROUNDS.due(time.time()) if self.plans else 0
        return f"# TYPE {planning.ROUNDS}_total counter\n{planning.ROUNDS}_total {planned}\n"


class Client:
    """It notes when it is started and stopped."""

    def __init__(self) -> None:
        self.moments: list[float] = []

    async def ready(self) -> None:
        return None

    def start(self) -> "asyncio.Future[list[float]]":
        self.moments.append(time.time())
        called = asyncio.get_running_loop().create_future()
        called.set_result([0.5])
        return called

    def stop(self) -> None:
        self.moments.append(time.time())


async def through_a_round(planner: Planner, *clients: Client) -> list[list[float]]:
    of: Any = planner
    callers: Any = list(clients)
    return await planning._through_a_round(of, callers, ROUNDS)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(planning, "_WINDOW_SECONDS", 0.3)


async def test_all_are_called_while_a_round_is_planned() -> None:
    clients = [Client(), Client()]
    assert await through_a_round(Planner(), *clients) == [[0.5], [0.5]]
    for client in clients:
        begun, ended = client.moments
        assert ROUNDS.due(begun) < ROUNDS.due(ended), "a round was planned meanwhile"


async def test_clients_that_connect_too_late_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_CONNECT_SECONDS", 0.0)
    with pytest.raises(click.ClickException, match="took more than 0 s to connect"):
        await through_a_round(Planner(), Client())


async def test_without_a_plan_nothing_is_told_of_one() -> None:
    with pytest.raises(click.ClickException, match="in vain for a round to be planned"):
        await through_a_round(Planner(plans=False), Client())
