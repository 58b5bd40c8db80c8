"""What is followed of the cluster: jobs, nodes with their pools, and what is kept of each."""

import asyncio
from typing import Any

from support.dashboard.server import AskedClient, World, dashboard
from support.extender.cluster import NOW, job_object, node_object
from synergy_dashboard.live.scope import EVERYTHING
from synergy_dashboard.live.trims import job_of, said_by_node, trim_job, trim_node
from synergy_kube.resources import GPU_POOLS, NODES, SCHEDULING_POLICIES, TRAINING_JOBS
from synergy_view.queue import queue_row
from synergy_view.seen import read
from synergy_view.top import job_row
from synergy_view.why import why


def names(world: World) -> list[str]:
    world.live.refresh()
    return [row.node for row in world.live.rows.nodes(EVERYTHING)]


async def test_objects_that_go_while_the_watch_is_away_are_forgotten() -> None:
    client = AskedClient()
    client.holds(TRAINING_JOBS, [job_object("a"), job_object("b")])
    async with dashboard(client) as world:
        await client.relist(TRAINING_JOBS, [job_object("b")])
        assert set(world.live.rows.jobs) == {"team/b"}
        await client.tell(TRAINING_JOBS, "DELETED", job_object("b"))
        assert (world.live.rows.jobs, world.live.rows.namespaces) == ({}, set())
        assert world.live.past_namespaces == {"team"}


async def test_a_job_of_another_version_is_left_out_and_comes_back() -> None:
    client = AskedClient()
    odd = job_object("odd", spec={"colour": "red"})
    client.holds(TRAINING_JOBS, [odd, job_object("good")])
    async with dashboard(client) as world:
        assert set(world.live.rows.jobs) == {"team/good"}
        await client.tell(TRAINING_JOBS, "MODIFIED", job_object("odd"))
        assert set(world.live.rows.jobs) == {"team/good", "team/odd"}
        await client.tell(TRAINING_JOBS, "MODIFIED", odd)
        assert set(world.live.rows.jobs) == {"team/good"}


async def test_a_job_whose_times_cannot_be_read_is_left_out_alone() -> None:
    client = AskedClient()
    service = {"run": 1, "runningSince": "yesterday"}
    client.holds(TRAINING_JOBS, [job_object("odd", status={"service": service}), job_object("good")])
    async with dashboard(client) as world:
        assert set(world.live.rows.jobs) == {"team/good"}
        await client.tell(TRAINING_JOBS, "MODIFIED", job_object("odd"))
        assert set(world.live.rows.jobs) == {"team/good", "team/odd"}


async def test_nodes_follow_their_pools() -> None:
    client = AskedClient()
    client.holds(NODES, [node_object("n1")])
    async with dashboard(client) as world:
        assert names(world) == ["n1"]
        assert [row.gpu_type for row in world.live.rows.types(NOW)] == ["V100"]
        spec = {"gpuType": "gold", "nodeSelector": {"nvidia.com/gpu.product": "V100"}}
        await client.tell(GPU_POOLS, "ADDED", {"metadata": {"name": "p"}, "spec": spec})
        assert names(world) == ["n1"]
        assert [row.gpu_type for row in world.live.rows.types(NOW)] == ["gold"]
        await client.tell(NODES, "MODIFIED", node_object("n1", ready=False))
        world.live.refresh()
        assert world.live.rows.nodes(EVERYTHING)[0].open_to_new is False
        await client.tell(NODES, "DELETED", node_object("n1"))
        assert names(world) == []


async def test_nodes_whose_taint_jobs_may_tolerate_are_open() -> None:
    client = AskedClient()
    taint = {"key": "team", "effect": "NoSchedule"}
    sick = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    client.holds(NODES, [node_object("a", taints=[taint]), node_object("b", taints=[sick])])
    async with dashboard(client) as world:
        world.live.refresh()
        assert [row.open_to_new for row in world.live.rows.nodes(EVERYTHING)] == [True, False]


async def test_the_policy_that_the_extender_follows_is_shown() -> None:
    client = AskedClient()
    force = {"policy": "fifo", "mechanism": "greedy", "roundSeconds": 60}
    written = {"metadata": {"name": "default"}, "spec": {"policy": "nonsense"}, "status": {"inForce": force}}
    client.holds(SCHEDULING_POLICIES, [written])
    async with dashboard(client) as world:
        policy = (await world.get("cluster"))["policy"]
    assert (policy["name"], policy["mechanism"], policy["round_s"]) == ("fifo", "greedy", 60.0)
    assert policy["spec"] == {"policy": "nonsense"}


async def test_another_planned_round_is_no_news_of_the_policy() -> None:
    client = AskedClient()

    def written(**force: Any) -> dict[str, Any]:
        return {"metadata": {"name": "default"}, "spec": {}, "status": {"inForce": {"policy": "fifo", **force}}}

    client.holds(SCHEDULING_POLICIES, [written(round=7)])
    async with dashboard(client) as world, asyncio.timeout(20):
        with world.live.subscribed() as one:
            await client.tell(SCHEDULING_POLICIES, "MODIFIED", written(round=8))
            await client.tell(TRAINING_JOBS, "ADDED", job_object("a"))
            first = await one.next(10)
            await client.tell(SCHEDULING_POLICIES, "MODIFIED", written(round=8, mechanism="greedy"))
            second = await one.next(10)
    assert first is not None
    assert not first.policy
    assert second is not None
    assert second.policy


async def test_a_subscriber_that_is_gone_is_told_nothing() -> None:
    client = AskedClient()
    async with dashboard(client) as world:
        with world.live.subscribed() as one:
            pass
        await client.tell(TRAINING_JOBS, "ADDED", job_object("a"))
        await asyncio.sleep(0.3)
        assert await one.next(0.01) is None


def test_a_trimmed_job_gives_the_same_rows_as_the_whole() -> None:
    matrix = {"gpuType": "V100", "cpuMillis": [1], "memoryBytes": [1], "stepsPerSecond": [[1.0]]}
    profile = {"state": "Measuring", "matrices": [matrix], "points": []}
    status: dict[str, Any] = {"phase": "Profiling", "profile": profile, "marks": {}, "progress": {"gpuUUIDs": ["G"]}}
    item = job_object("j", status=status, spec={"profile": {"mode": "Provided", "matrices": [matrix]}})
    whole, job = read(item), job_of(trim_job(item))
    assert job is not None
    assert (job_row(job), queue_row(job, NOW), why(job, (), NOW)) == (
        job_row(whole), queue_row(whole, NOW), why(whole, (), NOW)
    )  # fmt: skip
    assert (job.spec.template, job.spec.profile.matrices) == ({}, [])
    assert job.status.profile is not None
    assert job.status.profile.matrices == []


def test_a_heartbeat_of_a_node_is_no_change() -> None:
    node = node_object("n1")
    beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "later"}
    later = {**node, "metadata": {**node["metadata"], "resourceVersion": "2"},
             "status": {**node["status"], "conditions": [beat], "images": ["x"]}}  # fmt: skip
    assert said_by_node(trim_node(node)) == said_by_node(trim_node(later))
    assert said_by_node(trim_node(node)) != said_by_node(trim_node(node_object("n1", unschedulable=True)))
    assert said_by_node(None) is None
