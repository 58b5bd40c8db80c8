"""The export can be simulated, and has only what the user may see."""

import asyncio
import io
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from support.dashboard.server import AskedClient, MemoryHistory, World, dashboard
from support.extender.cluster import NOW, job_object, node_object
from synergy_dashboard.api.past import amounts
from synergy_dashboard.facts import JobFact
from synergy_kube import ApiError
from synergy_kube.resources import GPU_POOLS, NODES, THROUGHPUT_PROFILES, TRAINING_JOBS
from synergy_simulator.inputs.clusters import read_cluster
from synergy_simulator.inputs.profiles import read_profiles
from synergy_simulator.inputs.traces import read_trace

GIB = 1 << 30
MATRIX = {
    "gpuType": "V100", "cpuMillis": [1000, 2000], "memoryBytes": [GIB, 2 * GIB], "stepsPerSecond": [[1, 1.5], [2, 2.5]]
}  # fmt: skip


def fact(name: str, age: float, namespace: str = "team", **more: Any) -> JobFact:
    known = {"uid": f"uid-{name}", "tenant": "vision", "gpus": 2, "gpu_types": (), "steps": 500, "weight": 2.0}
    return JobFact(namespace=namespace, name=name, created_s=NOW - age, **{**known, **more})


def cluster() -> AskedClient:
    client = AskedClient()
    client.holds(NODES, [node_object("n1"), node_object("n2"), node_object("n3", gpus=4, gpu_type="T4")])
    pool = {"gpuType": "V100", "nodeSelector": {"nvidia.com/gpu.product": "V100"}, "pricePerHour": 2.5}
    client.holds(GPU_POOLS, [{"metadata": {"name": "big"}, "spec": pool}])
    measured = {"profile": {"state": "Complete", "matrices": [MATRIX]}}
    provided = {"profile": {"mode": "Provided", "matrices": [MATRIX]}}
    client.holds(
        TRAINING_JOBS,
        [job_object("a", status=measured), job_object("b", spec=provided), job_object("bare"),
         job_object("late", spec={"slo": {"deadline": "some day"}}, status=measured, namespace="odd", uid="uid-late"),
         job_object("x", status=measured, namespace="other", uid="uid-x")],
    )  # fmt: skip
    spec = {"fingerprint": "f" * 16, "image": "i", "gpus": 2, "matrices": [{**MATRIX, "gpuType": "T4"}]}
    client.holds(THROUGHPUT_PROFILES, [{"metadata": {"name": "f"}, "spec": spec}])
    return client


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def download(world: World, folder: Path, user: str = "admin", query: str = "since_s=0") -> None:
    async with world.http(user) as http:
        answer = await http.get(f"/api/v1/export?{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip"), answer.text
    zipfile.ZipFile(io.BytesIO(answer.content)).extractall(folder)


async def test_the_export_is_what_the_simulator_reads(tmp_path: Path) -> None:
    async with dashboard(cluster()) as world:
        world.history.all_jobs = [
            fact("a", 100, fingerprint="e" * 16),
            fact("a", 150, uid="uid-before", fingerprint="f" * 16, deleted_s=NOW - 140),
            fact("gone", 90, uid="uid-gone", fingerprint="f" * 16, gpu_types=("T4",), deleted_s=NOW - 10),
            fact("lost", 80, uid="uid-lost", fingerprint="d" * 16, deleted_s=NOW - 10),
        ]
        await download(world, tmp_path)
    jobs = read_trace(tmp_path / "trace.csv")
    assert (NOW - 150) % 300 == 250, "second 0 is the begin of the first job's round"
    assert [(job.name, job.arrival_s, job.gpus, job.steps, job.tenant) for job in jobs] == [
        ("team/a", 250.0, 2, 500, "vision"),
        ("odd/late", 300.0, 1, 1000, "odd"),
        ("other/x", 300.0, 1, 1000, "other"),
        ("team/a#2", 300.0, 1, 1000, "team"),
        ("team/b", 300.0, 1, 1000, "team"),
        ("team/gone", 310.0, 2, 500, "vision"),
    ]
    profiles = read_profiles(tmp_path / "profiles.json")
    models = {job.name: job.model or "" for job in jobs}
    found = profiles.find(models["team/b"], "V100", 1)
    assert found is not None
    assert (found.cpu_millis, found.memory_bytes) == ((1000, 2000), (GIB, 2 * GIB))
    assert found.steps_per_s == ((1.0, 1.5), (2.0, 2.5))
    assert profiles.find(models["team/gone"], "T4", 2) is not None
    pools = {pool.gpu_type: pool for pool in read_cluster(tmp_path / "cluster.yaml").pools}
    assert (pools["V100"].nodes, pools["V100"].gpus_per_node, pools["V100"].cost_per_hour) == (2, 8, 2.5)
    assert (pools["T4"].nodes, pools["T4"].cpus_per_node, pools["T4"].memory_gib_per_node) == (1, 24.0, 96.0)
    left_out = (tmp_path / "notes.txt").read_text()
    assert "team/bare: is left out" in left_out
    assert "team/lost: is left out: it was deleted" in left_out


class _Counted(JobFact):
    """Counts how many of its kind are in memory."""

    alive = most = 0

    def __init__(self, **known: Any) -> None:
        super().__init__(**known)
        _Counted.alive += 1
        _Counted.most = max(_Counted.most, _Counted.alive)

    def __del__(self) -> None:
        _Counted.alive -= 1


async def test_of_jobs_that_are_gone_few_are_in_memory_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dashboard(cluster()) as world:
        # names go against uids, and several came at once, also at the end of a page
        gone = [
            fact(f"gone-{at % 40}", 900 - at // 3, uid=f"uid-{at:03}", fingerprint=("f" if at % 7 else "d") * 16)
            for at in range(100)
        ]
        world.history.all_jobs = gone
        await download(world, tmp_path / "whole")

        def made(*asked: Any) -> list[JobFact]:
            return [_Counted(**asdict(one)) for one in MemoryHistory(gone).jobs(*asked)]

        monkeypatch.setattr(world.history, "jobs", made)
        monkeypatch.setattr(amounts, "MOST_JOBS", 4)
        await download(world, tmp_path / "paged")
    assert 0 < _Counted.most < 20
    whole, paged = ({file.name: file.read_text() for file in _files(tmp_path / name)} for name in ("whole", "paged"))
    assert paged == whole
    jobs = read_trace(tmp_path / "paged" / "trace.csv")
    places = [(job.arrival_s, job.name.partition("#")[0]) for job in jobs]
    assert places == sorted(places)
    assert sum(name.startswith("team/gone-") for _, name in places) == sum(place % 7 > 0 for place in range(100))


async def test_the_export_has_only_visible_jobs_of_the_time(tmp_path: Path) -> None:
    async with dashboard(cluster()) as world:
        gone = {"fingerprint": "f" * 16}
        world.history.all_jobs = [
            fact("old", 900, **gone), fact("y", 50, "other", tenant="hidden", **gone), fact("new", 20, **gone)
        ]  # fmt: skip
        await download(world, tmp_path, "ann", f"since_s={NOW - 500}")
    assert [job.name for job in read_trace(tmp_path / "trace.csv")] == ["team/a", "team/b", "team/new"]
    text = "".join(file.read_text() for file in _files(tmp_path))
    assert "other" not in text
    assert "hidden" not in text


async def test_without_a_job_that_has_a_profile_there_is_nothing_to_export() -> None:
    async with dashboard(cluster()) as world:
        world.history.all_jobs = [fact("bare", 10)]
        assert "no job with a profile" in (await world.get(f"export?since_s={NOW - 50}", status=404))["error"]


async def test_an_api_server_that_fails_is_said() -> None:
    async with dashboard(cluster()) as world:
        world.history.all_jobs = [fact("a", 100)]

        async def broken(*_: Any, **__: Any) -> Any:
            raise ApiError(500, "InternalError", "down")

        world.client.page = broken  # type: ignore[method-assign]
        assert "down" in (await world.get("export", status=503))["error"]


async def test_a_job_whose_steps_are_not_known_is_left_out_so_that_the_rest_can_be_simulated(tmp_path: Path) -> None:
    client = AskedClient()
    status = {"profile": {"state": "Complete", "matrices": [MATRIX]}}
    timed = {"steps": None, "maxRunSeconds": 60}
    ended = {"phase": "Succeeded", "progress": {"run": 1, "steps": 70}}
    client.holds(
        TRAINING_JOBS,
        [job_object("a", status=status), job_object("timed", spec=timed, status=status, uid="uid-timed"),
         job_object("ended", spec=timed, status={**status, **ended}, uid="uid-ended")],
    )  # fmt: skip
    spec = {"fingerprint": "f" * 16, "image": "i", "gpus": 2, "matrices": [MATRIX]}
    client.holds(THROUGHPUT_PROFILES, [{"metadata": {"name": "f"}, "spec": spec}])
    gone = {"steps": 0, "fingerprint": "f" * 16, "deleted_s": NOW - 5}
    async with dashboard(client) as world:
        world.history.all_jobs = [
            fact("cut", 50, **gone), fact("done", 40, finished_s=NOW - 9, steps_done=30, **gone)
        ]  # fmt: skip
        await download(world, tmp_path)
    steps = {job.name: job.steps for job in read_trace(tmp_path / "trace.csv")}
    assert steps == {"team/a": 1000, "team/ended": 70, "team/done": 30}
    notes = (tmp_path / "notes.txt").read_text()
    assert "team/timed: is left out: the number of its steps is not known" in notes
    assert "team/cut: is left out: the number of its steps is not known" in notes


async def test_a_user_has_one_export_at_a_time_and_others_get_theirs() -> None:
    client, go_on = cluster(), asyncio.Event()
    page = client.page

    async def slow(*given: Any, **more: Any) -> Any:
        await go_on.wait()
        return await page(*given, **more)

    async with dashboard(client) as world:
        client.page = slow  # type: ignore[method-assign]

        async def asked(user: str) -> int:
            async with world.http(user) as http:
                return (await http.get("/api/v1/export?since_s=0")).status_code

        first = asyncio.create_task(asked("admin"))
        await asyncio.sleep(0.05)
        assert "being made for you" in (await world.get("export?since_s=0", status=429))["error"]
        other = asyncio.create_task(asked("ann"))
        await asyncio.sleep(0.05)
        go_on.set()
        assert (await first, await other, await asked("admin")) == (200, 200, 200)
