"""What the cache makes of events and answers that come in an order of their own."""

from support.api_server.watch_server import WatchServer, following
from support.extender.cluster import job_object, key, node_object
from support.waiting import eventually

JOBS = "/apis/kube-synergy.dev/v1alpha1/namespaces/team/trainingjobs"


async def test_an_answer_that_comes_after_the_jobs_end_does_not_bring_it_back() -> None:
    server = WatchServer(job_object(uid="uid-old", resourceVersion="5"))
    async with following(server) as (_, cache):
        assert cache.jobs[key("j")].uid == "uid-old"
        await server.events.put({"type": "DELETED", "object": job_object(uid="uid-old", resourceVersion="12")})

        async def gone() -> bool:
            return not cache.jobs

        await eventually(gone, seconds=10, what="the job to be gone", every=0.02)
        cache.observe(job_object(uid="uid-old", resourceVersion="11"))
        assert not cache.jobs
        cache.observe(job_object(uid="uid-new", resourceVersion="13"))
        assert cache.jobs[key("j")].uid == "uid-new"


async def test_the_end_of_a_job_does_not_take_away_one_that_has_its_name_since() -> None:
    server = WatchServer(job_object(uid="uid-old", resourceVersion="5"))
    async with following(server) as (_, cache):
        cache.observe(job_object(uid="uid-new", resourceVersion="13"))
        await server.events.put({"type": "DELETED", "object": job_object(uid="uid-old", resourceVersion="12")})
        await server.events.put({"type": "ADDED", "object": job_object("marker", resourceVersion="14")})

        async def seen() -> bool:
            return key("marker") in cache.jobs

        await eventually(seen, seconds=10, what="the event after the deletion", every=0.02)
        assert cache.jobs[key("j")].uid == "uid-new"


async def test_of_a_watch_that_is_behind_the_jobs_that_changed_are_read_and_no_others() -> None:
    server = WatchServer(job_object("old", resourceVersion="5"), job_object("same", resourceVersion="6"))
    async with following(server) as (_, cache):
        cache.observe(job_object("answered", resourceVersion="13"))
        changed = job_object("old", resourceVersion="12")
        server.jobs = [
            changed,
            job_object("same", resourceVersion="6"),
            job_object("answered", resourceVersion="13"),
            job_object("gone", resourceVersion="11"),
        ]
        server.now[f"{JOBS}/old"] = changed
        await cache.refresh_jobs()
        assert cache.jobs[key("old")].resource_version == "12"
        assert server.asked == [f"{JOBS}/old", f"{JOBS}/gone"]
        assert key("gone") not in cache.jobs, "it was deleted after the list"


async def test_of_a_watch_that_is_far_behind_all_jobs_are_read() -> None:
    names = [f"j{number}" for number in range(40)]
    server = WatchServer(*(job_object(name, resourceVersion="5") for name in names))
    async with following(server) as (_, cache):
        server.jobs = [job_object(name, resourceVersion="15") for name in names]
        await cache.refresh_jobs()
        assert {view.resource_version for view in cache.jobs.values()} == {"15"}
        assert server.asked == []


async def test_a_job_of_another_controller_is_in_no_plan() -> None:
    other = job_object("theirs", spec={"managedBy": "kube-synergy.dev/clusters"})
    async with following(WatchServer(other, job_object("ours"))) as (_, cache):
        assert cache.jobs.keys() == {key("ours")}


async def test_a_node_is_the_same_object_until_more_than_its_version_changes() -> None:
    """Else the heartbeat of any node makes all that is known of jobs and nodes be worked out anew."""
    server = WatchServer()
    server.nodes = [node_with(version="5"), node_with("n2", version="6")]
    async with following(server) as (_, cache):
        first = cache.state().nodes

        async def seen(version: str) -> None:
            await server.node_events.put({"type": "MODIFIED", "object": node_with("n2", version=version)})

            async def watched() -> bool:
                return cache.objects("nodes")[-1]["metadata"]["resourceVersion"] == version

            await eventually(watched, seconds=10, what="the event", every=0.02)

        await server.node_events.put({"type": "MODIFIED", "object": node_with(version="12")})
        await seen("13")
        beating = cache.state().nodes
        assert [beating[name] is first[name] for name in ("n1", "n2")] == [True, True]
        await server.node_events.put({"type": "MODIFIED", "object": node_with(version="14", zone="b")})
        await seen("15")
        moved = cache.state().nodes
        assert moved["n1"]["metadata"]["labels"]["zone"] == "b"
        assert moved["n2"] is first["n2"]
        await server.node_events.put({"type": "DELETED", "object": node_with(version="16")})
        await seen("17")
        assert cache.state().nodes.keys() == {"n2"}


def node_with(name: str = "n1", *, version: str, zone: str = "a") -> dict[str, object]:
    item = node_object(name)
    labels = {**item["metadata"]["labels"], "zone": zone}
    return {**item, "metadata": {**item["metadata"], "labels": labels, "resourceVersion": version}}
