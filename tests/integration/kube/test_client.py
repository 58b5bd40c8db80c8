"""The client and the reflector against the real API server."""

import asyncio
from typing import Any

import pytest

from support.waiting import eventually
from synergy_kube import ApiError, Change, Conflict, KubeClient, NotFound, Reflector
from synergy_kube.resources import CONFIG_MAPS, PODS

pytestmark = pytest.mark.integration


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def test_what_is_created_is_read_changed_and_deleted(kube: KubeClient, namespace: str) -> None:
    created = await kube.create(CONFIG_MAPS, config_map("a", x="1"), namespace)
    await kube.merge_patch(CONFIG_MAPS, "a", {"data": {"x": None, "y": "2"}}, namespace)
    assert (await kube.get(CONFIG_MAPS, "a", namespace))["data"] == {"y": "2"}
    with pytest.raises(Conflict):
        await kube.delete(CONFIG_MAPS, "a", namespace, uid="00000000-0000-0000-0000-000000000000")
    await kube.delete(CONFIG_MAPS, "a", namespace, uid=created["metadata"]["uid"])
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAPS, "a", namespace)


async def test_an_unknown_field_is_refused_with_its_name(kube: KubeClient, namespace: str) -> None:
    with pytest.raises(ApiError, match=r"strict decoding error.*dat2"):
        await kube.create(CONFIG_MAPS, {"metadata": {"name": "a"}, "dat2": {}}, namespace)


async def test_two_managers_apply_their_own_fields(kube: KubeClient, namespace: str) -> None:
    await kube.apply(CONFIG_MAPS, "a", {"data": {"x": "1"}}, namespace, manager="first")
    await kube.apply(CONFIG_MAPS, "a", {"data": {"y": "1"}}, namespace, manager="second")
    await kube.apply(CONFIG_MAPS, "a", {"data": {"x": "2"}}, namespace, manager="first")
    assert (await kube.get(CONFIG_MAPS, "a", namespace))["data"] == {"x": "2", "y": "1"}


async def test_an_apply_from_an_old_version_is_a_conflict(kube: KubeClient, namespace: str) -> None:
    old = await kube.apply(CONFIG_MAPS, "a", {"data": {"x": "1"}}, namespace, manager="first")
    await kube.apply(CONFIG_MAPS, "a", {"data": {"x": "2"}}, namespace, manager="first")
    stale = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "data": {"x": "3"}}
    with pytest.raises(Conflict):
        await kube.apply(CONFIG_MAPS, "a", stale, namespace, manager="first")


async def test_the_versions_of_a_collection_are_those_of_its_objects(kube: KubeClient, namespace: str) -> None:
    assert await kube.versions(PODS, namespace) == {}
    for name in ("a", "b"):
        await kube.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": {"x": "1"}}, namespace)
    await kube.apply(CONFIG_MAPS, "b", {"data": {"y": "2"}}, namespace, manager="first")
    listed = (await kube.list(CONFIG_MAPS, namespace))["items"]
    wanted = {(namespace, one["metadata"]["name"]): one["metadata"]["resourceVersion"] for one in listed}
    assert {(namespace, "a"), (namespace, "b")} <= set(wanted)
    assert await kube.versions(CONFIG_MAPS, namespace) == wanted


async def test_the_reflector_follows_a_collection(kube: KubeClient, namespace: str) -> None:
    changes: list[Change] = []
    reflector = Reflector(kube, CONFIG_MAPS, namespace=namespace, label_selector="mine=yes", on_change=changes.append)
    await kube.create(CONFIG_MAPS, {"metadata": {"name": "early", "labels": {"mine": "yes"}}}, namespace)
    task = asyncio.create_task(reflector.run())
    try:
        await asyncio.wait_for(reflector.synced.wait(), 10)
        assert reflector.get(namespace, "early") is not None
        await kube.create(CONFIG_MAPS, {"metadata": {"name": "late", "labels": {"mine": "yes"}}}, namespace)
        await kube.create(CONFIG_MAPS, {"metadata": {"name": "other"}}, namespace)
        await kube.delete(CONFIG_MAPS, "early", namespace)

        async def followed() -> bool:
            return set(reflector.items) == {(namespace, "late")}

        await eventually(followed, seconds=10, what="the copy to follow")
        assert [(change.key[1], change.new is None) for change in changes] == [
            ("early", False),
            ("late", False),
            ("early", True),
        ]
    finally:
        task.cancel()


async def test_the_reflector_survives_a_restart_of_the_api_server(
    kube: KubeClient, namespace: str, devcluster: Any
) -> None:
    reflector = Reflector(kube, PODS, namespace=namespace)
    task = asyncio.create_task(reflector.run())
    try:
        await asyncio.wait_for(reflector.synced.wait(), 10)
        await asyncio.to_thread(devcluster.component("kube-apiserver").kill)
        await asyncio.to_thread(devcluster.component("kube-apiserver").start)

        async def created() -> bool:
            try:
                pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
                await kube.create(PODS, pod, namespace)
            except (ApiError, OSError):
                return False
            return True

        await eventually(created, seconds=60, what="the API server to take a pod")

        async def seen() -> bool:
            return (namespace, "p") in reflector.items

        await eventually(seen, seconds=30, what="the reflector to see the pod")
    finally:
        task.cancel()
