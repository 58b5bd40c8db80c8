"""Jobs whose namespace is gone: nothing can be written of them, and they hold no place."""

import logging
from typing import Any

import pytest

from support.api_server.watch_server import WatchServer, following, namespace_object
from support.extender.cluster import GI, NOW, allocation, job_object, node_object, pod_object, share, worker_labels
from support.waiting import eventually
from synergy_core.plan import plan
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.views import Key
from synergy_extender.planning.policy import PolicyInForce, plan_config
from synergy_extender.snapshot.snapshot import build_snapshot

ORPHAN, WAITING = Key("gone", "old"), Key("team", "new")


def orphan(**status: Any) -> dict[str, Any]:
    """It trains on all GPUs of n1, as its status has it."""
    place = allocation(share("n1", 8, 8000, 8 * GI))
    held = {"phase": "Running", "allocation": place, "service": {"run": 1}, **status}
    return job_object("old", gpus=8, status=held, namespace="gone")


def its_pod(**more: Any) -> dict[str, Any]:
    item = pod_object("old-1-0", gpus=8, cpu="8", memory="8Gi", labels=worker_labels("old"), **more)
    return {**item, "metadata": {**item["metadata"], "namespace": "gone"}}


def server_of(*pods: dict[str, Any], namespaces: tuple[str, ...] = ("team",)) -> WatchServer:
    server = WatchServer(orphan(), job_object("new", gpus=8))
    server.nodes, server.pods = [node_object("n1")], list(pods)
    server.namespaces = [namespace_object(name) for name in namespaces]
    return server


def placed(cache: ClusterCache) -> list[str]:
    """The jobs that have GPUs in the next round."""
    built = build_snapshot(cache.state(), mode="round", now=NOW, round_s=20)
    return [place.job for place in plan(built.snapshot, plan_config(PolicyInForce(), "round")).allocations]


async def test_the_place_of_a_job_whose_namespace_is_gone_is_free() -> None:
    async with following(server_of()) as (_, cache):
        assert cache.state().jobs.keys() == {WAITING}
        assert placed(cache) == ["team/new"]


async def test_a_job_without_a_namespace_holds_its_place_while_a_pod_of_it_is_on_a_node() -> None:
    async with following(server_of(its_pod(node="n1", phase="Running"))) as (_, cache):
        assert cache.state().jobs.keys() == {ORPHAN, WAITING}
        assert placed(cache) == ["gone/old"]


@pytest.mark.parametrize("pod", [{"node": ""}, {"node": "n1", "phase": "Succeeded"}])
async def test_a_pod_that_holds_nothing_on_a_node_keeps_no_place(pod: dict[str, Any]) -> None:
    async with following(server_of(its_pod(**pod))) as (_, cache):
        assert placed(cache) == ["team/new"]


async def test_a_job_counts_until_its_namespace_goes_and_when_it_comes_again() -> None:
    server = server_of(namespaces=("team", "gone"))
    async with following(server) as (_, cache):
        assert placed(cache) == ["gone/old"], "its pods may yet come"

        async def seen(kind: str, version: str, jobs: set[Key]) -> None:
            await server.namespace_events.put({"type": kind, "object": namespace_object("gone", version)})

            async def counted() -> bool:
                return cache.state().jobs.keys() == jobs

            await eventually(counted, seconds=10, what=f"the namespace to be {kind}", every=0.02)

        await seen("DELETED", "12", {WAITING})
        assert placed(cache) == ["team/new"]
        await seen("ADDED", "13", {ORPHAN, WAITING})


async def test_of_a_user_who_may_not_list_namespaces_no_job_is_left_out() -> None:
    async with following(server_of()) as (client, _):
        alone = ClusterCache(client, lambda: None)
        alone.observe(orphan())
        assert alone.state().jobs.keys() == {ORPHAN}


async def test_the_log_names_an_orphan_once(caplog: pytest.LogCaptureFixture) -> None:
    async with following(server_of()) as (_, cache):
        with caplog.at_level(logging.WARNING):
            cache.state()
            assert not caplog.messages, "the namespace may be so new that nothing is known of it"
            cache.state()
            cache.state()
    assert caplog.messages == ["TrainingJob gone/old is left out of plans: there is no namespace gone"]
