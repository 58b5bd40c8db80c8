"""Questions about the future: who may ask what, how many at once, and what the answer names."""

import asyncio
import json
import signal
from dataclasses import asdict
from typing import Any

import pytest

from support.dashboard.server import AskedClient, World, dashboard
from support.extender.cluster import NOW, allocation, cluster, job, job_object, node_object, share
from synergy_dashboard.api.future import answer, helped, job_view
from synergy_dashboard.api.future_answers import WhatIfRequest
from synergy_dashboard.api.what_if import MOST_BYTES, Futures
from synergy_kube.resources import TRAINING_JOBS

GIB = 1 << 30
MATRIX = {"gpuType": "V100", "cpuMillis": [1000, 24000], "memoryBytes": [GIB], "stepsPerSecond": [[1.0], [2.0]]}
SPEC = {"gpus": 8, "steps": 1000, "template": {}, "profile": {"mode": "Provided", "matrices": [MATRIX]}}
POLICY = {"metadata": {"name": "default"}, "spec": {"policy": "fifo", "roundSeconds": 60}}
TOLD = {
    "as_is": {"avg_jct_s": 2.0, "makespan_s": 3.0, "gpu_utilization": 0.5},
    "what_if": {"avg_jct_s": 1.0, "makespan_s": 2.0, "gpu_utilization": 0.4},
    "jobs": [
        {"job": "team/j", "start_s": [1.0, None], "finish_s": [2.0, None]},
        {"job": "other/secret", "start_s": [1.0, 1.0], "finish_s": [2.0, 2.0]},
    ],
    "seconds": 0.1,
}


def jobs() -> AskedClient:
    client = AskedClient()
    client.holds(TRAINING_JOBS, [job_object("j"), job_object("secret", namespace="other", uid="o")])
    return client


def says(text: str, before: str = "pass") -> Futures:
    """Futures whose process answers with the text."""
    return Futures(None, program=("-c", f"import sys, time; sys.stdin.read(); {before}; print({text!r})"), seconds=20)


async def post(world: World, body: Any, user: str = "admin") -> tuple[int, Any]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with world.http(user) as http:
        response = await http.post("/api/v1/what-if", content=content)
    return response.status_code, response.json()


async def test_the_answer_names_only_visible_jobs() -> None:
    async with dashboard(jobs(), futures=says(json.dumps(TOLD))) as world:
        status, all_of_it = await post(world, {"policy": "las"})
        assert (status, [one["job"] for one in all_of_it["jobs"]]) == (200, ["team/j", "other/secret"])
        assert all_of_it["as_is"] == TOLD["as_is"]
        _, own = await post(world, {}, "ann")
        assert own["jobs"] == [TOLD["jobs"][0]]  # type: ignore[index]


async def test_an_error_of_the_future_is_the_answer() -> None:
    futures = says(json.dumps({"code": 422, "error": "remove_node: there is no node 'x'"}))
    async with dashboard(jobs(), futures=futures) as world:
        assert await post(world, {}) == (422, {"error": "remove_node: there is no node 'x'"})
    async with dashboard(jobs(), futures=says("no JSON")) as world:
        assert (await post(world, {}))[0] == 503


async def test_a_future_that_takes_too_long_is_stopped() -> None:
    futures = Futures(None, program=("-c", "import time; time.sleep(60)"), seconds=0.5)
    async with dashboard(jobs(), futures=futures) as world:
        status, told = await post(world, {})
        assert status == 503
        assert "takes more than" in told["error"]


async def test_few_wait_for_their_turn() -> None:
    async with dashboard(jobs(), futures=says(json.dumps(TOLD), "time.sleep(1)")) as world:
        world.reviewer.sees |= {f"user-{one}": {"*"} for one in range(8)}
        answers = await asyncio.gather(*(post(world, {}, f"user-{one}") for one in range(8)))
    statuses = sorted(status for status, _ in answers)
    assert statuses == [200] * 5 + [503] * 3


async def test_one_user_does_not_hold_the_turns_of_all() -> None:
    async with dashboard(jobs(), futures=says(json.dumps(TOLD), "time.sleep(0.5)")) as world:
        greedy = [asyncio.create_task(post(world, {})) for _ in range(6)]
        await asyncio.sleep(0.1)
        status, _ = await post(world, {}, "ann")
        refused = [told for code, told in await asyncio.gather(*greedy) if code == 429]
        again, _ = await post(world, {})
    assert (status, again, len(refused)) == (200, 200, 4)
    assert "2 questions of yours are being answered" in refused[0]["error"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "no JSON"), (b"[" * 100_000, "no JSON"), (b"[]", "body: "), ({"colour": 1}, "colour: unknown field"),
        ({"round_s": "soon"}, "round_s"), ({"add_nodes": {"V100": "many"}}, "add_nodes.V100"),
        ({"add_job": {"spec": {}}}, "metadata.name is missing"),
    ],
)  # fmt: skip
async def test_a_bad_request_is_named(body: Any, told: str) -> None:
    async with dashboard(jobs(), futures=says("{}")) as world:
        status, error = await post(world, body)
    assert status == 422
    assert told in error["error"]


async def test_a_request_that_is_too_large_is_refused() -> None:
    async with dashboard(jobs(), futures=says("{}")) as world:
        assert (await post(world, b" " * (MOST_BYTES + 1)))[0] == 413


async def test_a_job_is_added_in_visible_namespaces_only() -> None:
    async with dashboard(jobs(), futures=says(json.dumps(TOLD))) as world:
        added = {"metadata": {"name": "new", "namespace": "other"}, "spec": SPEC}
        assert (await post(world, {"add_job": added}, "ann"))[0] == 403
        assert (await post(world, {"add_job": added}))[0] == 200


def state() -> Any:
    held = allocation(share("n1", 8, 24_000, 90 * GIB), stepsPerSecond=2.0, proportionalStepsPerSecond=2.0)
    runs = {"phase": "Running", "allocation": held, "service": {"run": 1}}
    waits = job("waits", gpus=8, spec=SPEC)
    return cluster([node_object("n1")], [job("runs", gpus=8, spec=SPEC, status=runs), waits])


def ask(**wanted: Any) -> dict[str, Any]:
    return answer(asdict(WhatIfRequest(**wanted)), state(), POLICY, NOW)


def test_another_node_lets_the_waiting_job_start_at_once() -> None:
    told = ask(add_nodes={"V100": 1})
    waits = next(one for one in told["jobs"] if one["job"] == "team/waits")
    as_is, other = waits["start_s"]
    assert as_is > NOW + 400
    assert other < NOW + 120
    assert told["what_if"]["makespan_s"] < told["as_is"]["makespan_s"]


def test_a_job_that_is_added_is_planned_with_the_others() -> None:
    told = ask(add_job={"metadata": {"name": "new", "namespace": "team"}, "spec": SPEC})
    new = next(one for one in told["jobs"] if one["job"] == "team/new")
    assert new["start_s"][0] is None
    assert new["start_s"][1] > NOW


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"policy": "none"}, "policy: 'none' is not there"), ({"options": {"colour": "red"}}, "config.colour"),
        ({"remove_nodes": ["n9"]}, "remove_node: there is no node 'n9'"), ({"add_nodes": {"V100": 0}}, "add_nodes"),
        ({"add_nodes": {"V100": 15_000, "T4": 15_000}}, "30000 nodes are more than 20000"),
        ({"add_nodes": {"H100": 1}}, "H100"), ({"add_job": {"metadata": {"name": "a"}}}, "spec is missing"),
        ({"add_job": {"metadata": {"name": "waits", "namespace": "team"}, "spec": SPEC}}, "already"),
        ({"add_job": {"metadata": {"name": "a"}, "spec": {"gpus": 0, "template": {}}}}, "gpus"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_change_is_named(wanted: dict[str, Any], told: str) -> None:
    found = ask(**wanted)
    assert found["code"] == 422
    assert told in found["error"]


def test_a_manifest_becomes_a_job_in_the_queue() -> None:
    view = job_view({"metadata": {"name": "new"}, "spec": SPEC}, NOW)
    assert (view.key.namespace, view.status.phase, view.created) == ("default", "Queued", NOW)


HELPED = {"planned": True, "starts_anyway": False, "complete": True,
          "remedies": [{"kind": "node", "told": "one node more", "gets": "8 V100 GPUs", "step": ""}]}  # fmt: skip


async def help_for(world: World, job: str, user: str = "admin") -> tuple[int, Any]:
    async with world.http(user) as http:
        response = await http.get(f"/api/v1/jobs/{job}/help")
    return response.status_code, response.json()


async def test_who_may_see_a_job_is_told_what_would_help_it() -> None:
    async with dashboard(jobs(), futures=says(json.dumps(HELPED))) as world:
        assert await help_for(world, "team/j", "ann") == (200, HELPED)
        assert (await help_for(world, "other/secret", "ann"))[0] == 403
        assert (await help_for(world, "other/secret"))[0] == 200
        status, told = await help_for(world, "team/nobody")
        assert (status, told["error"]) == (404, "there is no TrainingJob team/nobody")


async def test_help_that_takes_too_long_is_stopped() -> None:
    futures = Futures(None, program=("-c", "import time; time.sleep(60)"), seconds=0.5)
    async with dashboard(jobs(), futures=futures) as world:
        assert (await help_for(world, "team/j"))[0] == 503


def test_a_node_more_helps_the_waiting_job_and_fewer_gpus_do_not() -> None:
    told = helped("team/waits", state(), POLICY, NOW)
    assert (told["planned"], told["starts_anyway"], told["complete"]) == (True, False, True)
    assert [one["kind"] for one in told["remedies"]] == ["node"]
    json.dumps(told)


def test_a_job_that_runs_needs_no_help() -> None:
    told = helped("team/runs", state(), POLICY, NOW)
    assert (told["planned"], told["remedies"]) == (False, ())


def test_a_cluster_that_takes_too_long_to_simulate_is_refused_before_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = [job(name, spec=SPEC, status={"phase": "Queued"}) for name in ("a", "b")]
    state = cluster([node_object("n")], waiting)
    asked = asdict(WhatIfRequest(policy="las"))
    assert "as_is" in answer(asked, state, POLICY, NOW)
    monkeypatch.setattr("synergy_dashboard.api.future._FIRST_SECONDS", 1e-6)
    told = answer(asked, state, POLICY, NOW)
    assert told["code"] == 503
    assert "the future of 2 jobs on 8 GPUs takes too long to simulate here; kubectl synergy what-if" in told["error"]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
