"""Which reference jobs a reconcile sees: the others of its namespace, as they are now, without parsing them."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.api_server.watch_server import WatchServer, connected
from support.operator.objects import GIB, Json, job_manifest
from support.waiting import eventually
from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME
from synergy_operator.edge.caches import references as cache
from synergy_operator.edge.caches.references import ReferenceJobs
from synergy_operator.edge.controller import Controller
from synergy_operator.edge.environment import Environment
from synergy_operator.edge.executor import Executor
from synergy_operator.profile.pairs import references as pairs
from synergy_operator.views import stored_job
from synergy_operator.views.job import MOST_TEMPLATE_BYTES
from synergy_operator.views.metadata import Key
from synergy_operator.views.stored_job import store_job

USAGE = {"gpuType": "V100", "compute": 0.4, "bandwidth": 0.2, "memory": "2Gi", "model": "Net"}
MATRIX = {
    "gpuType": "V100",
    "cpuMillis": [1000, 2000],
    "memoryBytes": [4 * GIB],
    "stepsPerSecond": [[9.0], [10.0]],
}
NEW = ("team", "new")


def _job(name: str, *, reference: bool = True, **spec: Any) -> Json:
    sharing = {"allowed": True, "reference": reference, "usage": [USAGE]}
    manifest = job_manifest(name, sharing=sharing, **spec)
    profile = {"state": "Complete", "fingerprint": "f", "matrices": [MATRIX]}
    return {**manifest, "status": {"phase": "Queued", "profile": profile}}


class _Known:
    """`tolerance` is the policy's."""

    def __init__(self) -> None:
        self.tolerance = 5
        self.jobs = ReferenceJobs(lambda: self.tolerance)

    def see(self, item: Json) -> None:
        stored = store_job(item)
        self.jobs.update(stored.key, stored, stored.view())

    def beside(self, key: Key = NEW) -> list[str]:
        return [one.name for one in self.jobs.beside(key)]


def test_references_come_and_go_with_what_the_jobs_say() -> None:
    known = _Known()
    for item in (_job("b"), _job("a"), _job("plain", reference=False)):
        known.see(item)
    assert known.beside() == ["a", "b"]
    assert known.beside(("team", "a")) == ["b"], "no job is its own reference"
    assert known.beside(("other", "new")) == []
    known.see(_job("a", reference=False))
    assert known.beside() == ["b"]
    known.see(_job("a"))
    assert known.beside() == ["a", "b"]
    going = _job("b")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    known.see(going)
    assert known.beside() == ["a"]
    known.jobs.update(("team", "a"), None, None)
    known.jobs.update(("team", "a"), None, None)
    assert known.beside() == []


def test_what_is_read_of_one_follows_its_spec_and_its_status() -> None:
    known = _Known()
    known.see(_job("r"))
    (one,) = known.jobs.beside(NEW)
    use = one.uses["V100"]
    assert (use.model, use.gpu_memory_bytes) == ("Net", 2 * GIB)
    assert use.needs.beside_gpus == (2000, 4 * GIB)
    changed = _job("r")
    changed["status"]["profile"]["matrices"] = [{**MATRIX, "stepsPerSecond": [[10.0], [10.0]]}]
    known.see(changed)
    (one,) = known.jobs.beside(NEW)
    assert one.uses["V100"].needs.cpu_millis == 1000
    for without in (_job("r", gpus=2), {**_job("r"), "status": {}}):
        known.see(without)
        (one,) = known.jobs.beside(NEW)
        assert one.uses == {}


def test_another_tolerance_asks_for_each_reference_once_more() -> None:
    known = _Known()
    for name in ("a", "b"):
        known.see(_job(name))
    assert known.jobs.outdated() == []
    known.tolerance = 10
    assert known.jobs.outdated() == [("team", "a"), ("team", "b")]
    known.see(_job("a"))
    assert known.jobs.outdated() == [("team", "b")]
    assert [one.uses["V100"].needs.cpu_millis for one in known.jobs.beside(NEW)] == [1000, 2000]


def _counted(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> list[str]:
    """Gets the function's name once for each call from now on."""
    calls: list[str] = []
    real = getattr(module, name)

    def counted(*given: Any) -> Any:
        calls.append(name)
        return real(*given)

    monkeypatch.setattr(module, name, counted)
    return calls


def _with_types(count: int) -> Json:
    """A reference with a matrix on each of so many GPU types."""
    kinds = [f"T{number}" for number in range(count)]
    item = _job("r")
    item["spec"]["sharing"]["usage"] = [{**USAGE, "gpuType": kind} for kind in kinds]
    item["status"]["profile"]["matrices"] = [{**MATRIX, "gpuType": kind} for kind in kinds]
    return item


def test_a_template_is_checked_once_for_all_gpu_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """For 16 types the check of a large template would hold up all jobs for most of a second."""
    checks = [_counted(monkeypatch, pairs, name) for name in ("template_problem", "least_requests")]
    known = _Known()
    known.see(_with_types(16))
    (one,) = known.jobs.beside(NEW)
    assert len(one.uses) == 16
    assert checks == [["template_problem"], ["least_requests"]]


def test_what_has_not_changed_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = _counted(monkeypatch, cache, "reference_of")
    known = _Known()
    for version in ("1", "2", "3"):
        item = _job("r")
        item["metadata"]["resourceVersion"] = version
        item["status"]["progress"] = {"step": int(version)}
        known.see(item)
    (one,) = known.jobs.beside(NEW)
    assert len(reads) == 1
    assert (one.stored.resource_version, one.uses["V100"].model) == ("3", "Net"), "a pair runs what the job is now"
    known.tolerance = 10
    known.see(_job("r"))
    assert len(reads) == 2
    known.see(_job("r", steps=200))
    assert len(reads) == 3


def test_a_status_that_is_out_of_range_on_one_type_makes_no_reference_there() -> None:
    """Also written by hand: an error would end the watch of all jobs."""
    item = _with_types(2)
    item["status"]["profile"]["usage"] = [{"gpuType": "T0", "compute": 0.4, "bandwidth": 0.2, "memoryBytes": 1 << 70}]
    known = _Known()
    known.see(item)
    (one,) = known.jobs.beside(NEW)
    assert list(one.uses) == ["T1"]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the jobs that are parsed from now on."""
    names: list[str] = []
    parse = stored_job.parse_job

    def counted(item: Json, **more: Any) -> Any:
        names.append(item["metadata"]["name"])
        return parse(item, **more)

    monkeypatch.setattr(stored_job, "parse_job", counted)
    return names


def test_none_is_parsed_to_be_looked_at_and_one_to_be_run(parsed: list[str]) -> None:
    """A template as large as a job may have takes 6 MB when it is parsed."""
    known = _Known()
    items = [_job(name) for name in ("a", "b", "c")]
    for item in items:
        item["spec"]["template"]["spec"]["x"] = [{}] * 80_000
        known.see(item)
    assert MOST_TEMPLATE_BYTES * 0.9 < len(msgspec.json.encode(items[0]["spec"]["template"])) < MOST_TEMPLATE_BYTES
    parsed.clear()
    a, *_ = known.jobs.beside(NEW)
    assert (parsed, a.uses["V100"].model) == ([], "Net")
    view = a.view()
    assert (parsed, view.name) == (["a"], "a")
    assert view.spec is not None
    assert len(view.spec.template["spec"]["x"]) == 80_000


def test_a_template_that_is_too_large_for_a_run_makes_no_reference() -> None:
    known = _Known()
    item = _job("r")
    item["spec"]["template"]["spec"]["x"] = ["x" * MOST_TEMPLATE_BYTES]
    known.see(item)
    assert known.beside() == []


async def test_a_policy_with_another_tolerance_brings_also_an_ended_reference_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def carry_out(*_: object) -> None: ...

    monkeypatch.setattr(Executor, "carry_out", carry_out)
    certificate = tmp_path / "ca.crt"
    certificate.write_text("pem")
    item = _job("r")
    item["status"] |= {"phase": "Succeeded"}
    policy = {"metadata": {"name": DEFAULT_POLICY_NAME}, "spec": {"profiling": {"demandTolerancePercent": 10}}}
    async with connected(WatchServer()) as client:
        controller = Controller(client, Environment("image", "https://extender", certificate), lambda: 0.0)
        controller._jobs.take(item)
        controller._update_indexes(("team", "r"))  # nothing is in the queue yet
        references = controller._references

        def needed() -> list[int]:
            return [one.uses["V100"].needs.cpu_millis for one in references.beside(NEW)]

        assert needed() == [2000]
        controller._policies.begin_with({("", DEFAULT_POLICY_NAME): policy}, "1")
        controller._settle()
        assert references.outdated() == [("team", "r")]
        work = asyncio.create_task(controller._queue.run())

        async def up_to_date() -> bool:
            return needed() == [1000]

        try:
            await eventually(up_to_date, seconds=10, what="the reference to be reconciled", every=0.01)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
