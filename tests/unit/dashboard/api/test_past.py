"""What `kubectl synergy history`, `rounds`, `usage` and `export` ask: what happened to jobs, also to those that are
gone, and only to those that the user may see."""

import asyncio
import io
import json
import threading
import zipfile
from dataclasses import replace
from typing import Any

import pytest

from support.dashboard.server import AskedClient, World, dashboard
from support.extender.cluster import NOW, job_object
from synergy_dashboard.facts import JobFact, ResizeFact, RunFact, Share, Usage, WaitFact
from synergy_kube.resources import EVENTS, TRAINING_JOBS

GIB = 1 << 30
NODE = Share(node="n1", gpus=2, cpu_millis=6000, memory_bytes=4 * GIB)


def job(name: str, namespace: str = "team", **more: Any) -> JobFact:
    known = {"uid": f"uid-{name}", "tenant": "vision", "gpus": 2, "gpu_types": (), "steps": 500, "weight": 1.0}
    return JobFact(namespace=namespace, name=name, **{"created_s": NOW - 1000, **known, **more})


def run(name: str, number: int, begin: float, end: float | None = None, **more: Any) -> RunFact:
    known = {"purpose": "Train", "gpu_type": "V100", "gpus": 2, "shares": (NODE,), "started_s": begin + 3}
    return RunFact(uid=f"uid-{name}", run=number, granted_s=begin, ended_s=end, **{**known, **more})


def past(world: World) -> None:
    """Of `gone`, which was preempted for a job of another namespace and shared its GPUs with one; and of `theirs`."""
    world.live.past_namespaces |= {"team", "other"}
    world.history.all_jobs = [
        job("gone", phase="Succeeded", preemptions=1, finished_s=NOW - 100, deleted_s=NOW - 50),
        job("theirs", "other", created_s=NOW - 900),
    ]
    world.history.all_runs = [
        run("gone", 1, NOW - 900, NOW - 700, outcome="Yielded", revoked_s=NOW - 710,
            revoked_reason="other/theirs gets its GPUs", partners=("other/theirs",)),
        run("theirs", 1, NOW - 690, None),
        run("gone", 2, NOW - 400, NOW - 100, outcome="Succeeded"),
    ]  # fmt: skip
    more = Share(node="n1", gpus=2, cpu_millis=8000, memory_bytes=6 * GIB)
    world.history.all_resizes = [ResizeFact(uid="uid-gone", run=2, at_s=NOW - 300, shares=(more,))]
    world.history.all_waits = [
        WaitFact(uid="uid-gone", since_s=NOW - 700, until_s=NOW - 400, reason="NoFreeGPU", message="m", position=1)
    ]


async def test_a_deleted_job_has_its_whole_history() -> None:
    async with dashboard() as world:
        past(world)
        found = await world.get("jobs/team/gone/history")
        assert [(one["at_s"] - NOW, one["what"]) for one in found["happenings"]] == [
            (-1000, "Created"), (-900, "Granted"), (-897, "Started"), (-710, "Revoked"), (-700, "NoFreeGPU"),
            (-700, "Yielded"), (-400, "Granted"), (-397, "Started"), (-300, "Resized"), (-100, "Succeeded"),
            (-100, "Succeeded"), (-50, "Deleted"),
        ]  # fmt: skip
        told = {one["what"]: one["message"] for one in found["happenings"]}
        assert told["Revoked"] == "run 1 is told to leave: other/theirs gets its GPUs"
        assert told["Resized"] == "run 2 has 8 CPU and 6Gi now"
        assert found["happenings"][1]["message"] == "run 1 gets 2 V100 GPUs on n1, shared with other/theirs"
        assert found["totals"] == [
            "2 runs, 1 preemption, 0 failures", "8m20s on V100", "5m in the queue", "shared GPUs with other/theirs",
        ]  # fmt: skip


async def test_partners_and_jobs_of_hidden_namespaces_are_not_named() -> None:
    async with dashboard() as world:
        past(world)
        found = await world.get("jobs/team/gone/history", user="ann")
        assert found["happenings"][1]["message"] == "run 1 gets 2 V100 GPUs on n1"
        assert not any("shared" in total for total in found["totals"])
        decided = await world.get("decisions?rounds=100", user="ann")
        named = {one["job"] for found in decided["rounds"] for one in found["decided"]}
        assert named == {"team/gone"}
        assert "shared" not in json.dumps(decided)
        assert (await world.get("jobs/other/theirs/history", user="ann", status=403))["error"]


async def test_events_that_the_history_has_too_are_not_told_twice() -> None:
    client = AskedClient()
    client.holds(TRAINING_JOBS, [job_object("runs", uid="uid-runs")])
    about = {"metadata": {"namespace": "team"}, "involvedObject": {"uid": "uid-runs"}}
    said = [{"reason": reason, "message": reason} for reason in ("WorkersStarting", "ProfileMeasured")]
    client.holds(EVENTS, [{**about, "lastTimestamp": "2023-11-14T22:13:00Z", **one} for one in said])
    async with dashboard(client) as world:
        unknown = await world.get("jobs/team/runs/history")
        assert "WorkersStarting" in [one["what"] for one in unknown["happenings"]]
        created = unknown["happenings"][0]["at_s"]
        page = await world.get("jobs/team/runs")
        world.history.all_jobs = [job("runs", created_s=page["created_s"])]
        world.history.all_runs = [run("runs", 1, created + 5)]
        told = [one["what"] for one in (await world.get("jobs/team/runs/history"))["happenings"]]
        assert "WorkersStarting" not in told
        assert {"Created", "ProfileMeasured", "Granted", "Started"} <= set(told)
        assert told.count("Created") == 1


async def test_rounds_go_back_until_there_are_enough() -> None:
    async with dashboard() as world:
        past(world)
        page = await world.get("decisions?rounds=3")
        assert len(page["rounds"]) == 3
        starts = [found["starts_s"] for found in page["rounds"]]
        assert starts == sorted(starts, reverse=True)
        every = [one for found in (await world.get("decisions?rounds=100"))["rounds"] for one in found["decided"]]
        assert {(one["job"], one["what"], one["reason"]) for one in every} == {
            ("team/gone", "started", "Train"), ("team/gone", "leaves", "Yielded"), ("team/gone", "waits", "NoFreeGPU"),
            ("team/gone", "resized", "Resized"), ("team/gone", "ended", "Succeeded"),
            ("other/theirs", "started", "Train"),
        }  # fmt: skip
        (newest,) = (await world.get("decisions?rounds=1&namespace=other"))["rounds"]
        assert [one["job"] for one in newest["decided"]] == ["other/theirs"]
        assert (await world.get("decisions?namespace=other", user="ann", status=403))["error"]
        assert (await world.get("decisions?rounds=0", status=422))["error"]


async def test_an_empty_history_has_no_rounds_and_no_usage() -> None:
    async with dashboard() as world:
        assert (await world.get("decisions"))["rounds"] == []
        assert (await world.get("usage"))["rows"] == []


async def test_usage_is_by_tenant_and_namespace() -> None:
    async with dashboard() as world:
        past(world)
        known = {"waiting_hours": 1.0, "runs": 2, "preemptions": 3, "jobs": 4, "finished": 1}
        world.history.all_usage = [
            Usage(tenant="vision", namespace="team", gpu_hours=4.0, gained_gpu_hours=1.0, **known),
            Usage(tenant="speech", namespace="other", gpu_hours=0.0, gained_gpu_hours=0.0, **known),
        ]
        page = await world.get("usage?since_s=5")
        assert (page["since_s"], page["recorded_since_s"]) == (5, NOW - 1000)
        assert [(row["tenant"], row["gain"], row["jobs"], row["preemptions"]) for row in page["rows"]] == [
            ("vision", 1.25, 4, 3), ("speech", None, 4, 3),
        ]  # fmt: skip
        rows = (await world.get("usage", user="ann"))["rows"]
        assert [row["namespace"] for row in rows] == ["team"]


@pytest.mark.parametrize("user", ["admin", "ann"])
async def test_the_export_tells_how_the_jobs_did(user: str) -> None:
    """Also of deleted jobs without a profile, of whose runs the speed is known."""
    async with dashboard() as world:
        past(world)
        world.history.all_jobs[0] = replace(world.history.all_jobs[0], steps=1215)  # 486 s of the runs' 500 s
        fast = {"steps_per_s": 2.5}
        world.history.all_resizes = []
        world.history.all_runs = [
            run("gone", 1, NOW - 900, NOW - 700, outcome="Yielded", **fast),
            run("gone", 2, NOW - 400, NOW - 100, outcome="Succeeded", started_s=NOW - 393, **fast),
        ]
        async with world.http(user) as http:
            answer = await http.get("/api/v1/export?since_s=0&namespace=team")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as content:
        measured = json.loads(content.read("measured.json"))
        models = json.loads(content.read("profiles.json"))["models"]
        notes = content.read("notes.txt").decode()
    assert measured == {"ended": 1, "avg_jct_s": 900.0, "start_s": 3.0, "restart_s": 11.0}
    assert models == {"team/gone": {"V100": {"2": {"cpus": [0.001], "memory_gib": [0.001], "steps_per_s": [[2.5]]}}}}
    assert "team/gone: the speed of its runs stands for all amounts of CPU and memory" in notes


async def test_the_token_may_come_in_a_header_of_its_own() -> None:
    """The API server's proxy takes the header Authorization for itself."""
    async with dashboard() as world, world.http("") as http:
        assert (await http.get("/api/v1/usage", headers={"X-Synergy-Token": "admin"})).status_code == 200
        assert (await http.get("/api/v1/usage", headers={"X-Synergy-Token": "nobody"})).status_code == 401
        assert (await http.get("/api/v1/usage")).status_code == 401


async def test_a_user_asks_for_decisions_once_at_a_time() -> None:
    """They may read the whole history."""
    async with dashboard() as world:
        past(world)
        waits, go_on = world.history.waits, threading.Event()

        def slow(*given: Any) -> Any:
            go_on.wait(20)
            return waits(*given)

        world.history.waits = slow  # type: ignore[method-assign]
        first = asyncio.create_task(world.get("decisions"))
        await asyncio.sleep(0.05)
        assert "being made for you" in (await world.get("decisions", status=429))["error"]
        go_on.set()
        assert (await first)["rounds"]
        assert (await world.get("decisions"))["rounds"]
