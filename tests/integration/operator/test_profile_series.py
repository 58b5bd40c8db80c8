"""Profile series on the real API server, with batch Jobs and the Job controller; fake nodes tell what was measured."""

import json
import signal

import pytest

from support.on_cluster.jobs import empties
from support.operator.stage import GIB, NODES, V100, OperatorProcess, Stage, condition, template
from support.waiting import eventually
from synergy_kube.resources import THROUGHPUT_PROFILES

pytestmark = pytest.mark.integration

MEASURED = json.dumps(
    {"outcome": "measured", "steps_per_second": 8.0, "relative_error": 0.01, "max_rss_bytes": 1 << 28}
)


def auto(
    stage: Stage, exit_code: str = "0", message: str = MEASURED, seconds: str = "1", **profile: object
) -> dict[str, object]:
    """A spec that is measured, like no other's; its pods end so."""
    pod = template(run_seconds=seconds, exit_code=exit_code, message=message)
    pod["spec"]["containers"][0]["args"] = [stage.namespace]
    return {"profile": {"mode": "Auto", **profile}, "template": pod}


async def granted(stage: Stage, run: int = 1) -> None:
    """Give the job the place it asks for."""
    job = await stage.until("a request", lambda s: (s.get("profile") or {}).get("request"))
    request = job["status"]["profile"]["request"]
    share = (NODES[0], request["gpus"], request["cpuMillis"], request["memoryBytes"] // GIB)
    await stage.grant(share, run=run, purpose="Profile", gpuType=request["gpuType"])


async def bind_until(stage: Stage, *phases: str) -> dict[str, object]:
    """Play the scheduler until the job is in one of the phases."""

    async def bound_or_done() -> dict[str, object] | None:
        for pod in await stage.pods():
            if not pod["spec"].get("nodeName") and not pod["spec"].get("schedulingGates"):
                await stage.bind_pod(pod)
        status = (await stage.job())["status"]
        return status if status["phase"] in phases else None

    return await eventually(bound_or_done, seconds=60, what=f"the series to end in {phases}", every=0.05)


async def test_a_series_of_jobs_fills_the_profile_and_shares_it(stage: Stage) -> None:
    await stage.submit(**auto(stage, cpuStep="2"))
    await granted(stage)
    status = await bind_until(stage, "Queued", "Failed")
    profile = status["profile"]
    assert isinstance(profile, dict)
    assert profile["state"] == "Complete"
    jobs = [job["metadata"]["name"] for job in await stage.batch_jobs()]
    assert sorted(point["job"] for point in profile["points"]) == jobs
    assert 2 <= len(jobs) <= 3
    assert all(point["stepsPerSecond"] == 8.0 for point in profile["points"])
    (matrix,) = profile["matrices"]
    assert matrix["gpuType"] == V100
    assert matrix["stepsPerSecond"][-1] == [8.0]
    assert profile["demand"][0]["gpus"] == 1
    service = status["service"]
    assert isinstance(service, dict)
    assert service["last"]["outcome"] == "Profiled"
    assert empties(status, "status") == []
    published = await stage.kube.get(THROUGHPUT_PROFILES, profile["fingerprint"])
    assert empties(published["spec"], "spec") == []
    try:
        assert published["spec"]["matrices"] == profile["matrices"]
        await stage.submit("twin", **auto(stage, cpuStep="2"))
        known = await stage.phase("Queued", name="twin")
        assert condition(known, "Profiled")["reason"] == "ProfileKnown"
        assert known["profile"]["demand"] == profile["demand"]
    finally:
        await stage.kube.delete(THROUGHPUT_PROFILES, profile["fingerprint"])


async def test_a_profile_run_that_crashes_twice_fails_the_job_with_the_harness_s_words(stage: Stage) -> None:
    message = json.dumps({"outcome": "failed", "reason": "Crashed", "message": "exit code 7", "log_tail": "KeyError"})
    await stage.submit(**auto(stage, "1", message))
    await granted(stage)
    status = await bind_until(stage, "Queued", "Failed")
    assert status["phase"] == "Failed"
    profiled = condition(status, "Profiled")
    assert profiled["reason"] == "ProfileCrashed"
    assert "exit code 7" in profiled["message"]
    assert "KeyError" in profiled["message"]
    jobs = await stage.batch_jobs()
    assert len(jobs) == 2, "the point was tried twice, and the Jobs stay for their logs"
    await stage.told("ProfileCrashed")


async def test_a_series_goes_on_after_the_operator_was_killed(stage: Stage, operator: OperatorProcess) -> None:
    await stage.submit(**auto(stage, cpuStep="3", seconds="2"))
    await granted(stage)
    await stage.bind(1)
    await operator.end(signal.SIGKILL)
    await stage.ended()
    await operator.start()
    status = await bind_until(stage, "Queued", "Failed")
    profile = status["profile"]
    assert isinstance(profile, dict)
    assert status["phase"] == "Queued"
    points = [point["cpuMillis"] for point in profile["points"]]
    assert len(points) == len(set(points)) == len(await stage.batch_jobs())
    await stage.kube.delete(THROUGHPUT_PROFILES, profile["fingerprint"])


async def test_a_revoked_series_leaves_nothing_behind(stage: Stage) -> None:
    await stage.submit(**auto(stage, seconds="600"))
    await granted(stage)
    await stage.bind(1)
    job = await stage.until("the first point", lambda s: s["profile"]["state"] == "Measuring")
    allocation = {**job["status"]["allocation"], "state": "Revoked"}
    until = allocation.pop("leaseUntil")
    assert until
    await stage.grant((NODES[0], 1, 3000, 8), purpose="Profile", state="Revoked", leaseUntil="2026-01-01T00:00:00Z")
    job = await stage.until("the run to end", lambda s: s.get("service", {}).get("endedRun") == 1)
    assert job["status"]["phase"] == "Profiling"
    assert job["status"]["service"]["last"]["outcome"] == "Yielded"
    assert await stage.batch_jobs() == []
    assert await stage.pods() == []
