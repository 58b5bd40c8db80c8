"""What becomes of a run whose pod goes and is replaced."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from chaos.observer.book import Book
from chaos.played.player import Player
from support.api_server.told_client import ToldClient
from support.waiting import eventually
from synergy_api import names
from synergy_kube.resources import PODS


def pod(uid: str, *, node: str = "", deleting: bool = False) -> dict[str, Any]:
    """The only worker of run 1; with a node its container runs there."""
    labels = {names.LABEL_JOB: "j", names.LABEL_RUN: "1", names.LABEL_RANK: "0", names.LABEL_ROLE: names.ROLE_WORKER}
    metadata = {"name": "j-1-0", "namespace": "team", "uid": uid, "labels": labels}
    env = [{"name": "WORLD_SIZE", "value": "1"}]
    return {
        "metadata": metadata | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}),
        "spec": {"containers": [{"name": "train", "env": env}]} | ({"nodeName": node} if node else {}),
        "status": {"phase": "Running" if node else "Pending"},
    }


@pytest.fixture
def client() -> ToldClient:
    return ToldClient()


@pytest_asyncio.fixture
async def player(client: ToldClient, tmp_path: Path) -> AsyncIterator[Player]:
    async with Player(client, "team", Book(), tmp_path / "tokens", seed=1) as made:
        made.knows("j", 10**6, library=False)
        yield made


async def test_a_run_trains_in_the_pod_that_replaces_one_whose_container_never_ran(
    client: ToldClient, player: Player
) -> None:
    await client.tell(PODS, "ADDED", pod("first"))
    await client.tell(PODS, "MODIFIED", pod("first", deleting=True))
    await client.tell(PODS, "DELETED", pod("first", deleting=True))
    await client.tell(PODS, "ADDED", pod("second"))
    await client.tell(PODS, "MODIFIED", pod("second", node="n1"))

    async def trains() -> bool:
        return player.trainings["j"].live.get(1, 0) > 0

    await eventually(trains, seconds=30, what="the run to train")
