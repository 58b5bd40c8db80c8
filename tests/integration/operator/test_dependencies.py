"""Jobs that wait for others, on the real API server: each is reconciled when the one before changes."""

import pytest

from support.operator.stage import Stage, condition
from synergy_kube.resources import TRAINING_JOBS

pytestmark = pytest.mark.integration


async def ends(stage: Stage, name: str, phase: str) -> None:
    """What the operator writes at the end of a job."""
    await stage.kube.merge_patch(
        TRAINING_JOBS, name, {"status": {"phase": phase}}, stage.namespace, subresource="status"
    )


async def waits_for(stage: Stage, words: str) -> None:
    def told(status: dict[str, object]) -> bool:
        found = condition(status, "Running")
        return found.get("reason") == "WaitsForJobs" and words in found["message"]

    await stage.until(words, told)


async def test_a_job_goes_on_when_those_before_it_are_done(stage: Stage) -> None:
    await stage.submit(after=[{"job": "prepare"}, {"job": "sweep", "until": "Finished"}])
    await waits_for(stage, "prepare to succeed (there is no such job), sweep to end (there is no such job)")
    await stage.submit("prepare")
    await waits_for(stage, "prepare to succeed, sweep")
    await ends(stage, "prepare", "Succeeded")
    await waits_for(stage, "for sweep to end (there is no such job)")
    await stage.kube.delete(TRAINING_JOBS, "prepare", stage.namespace)
    await stage.submit("sweep")
    await ends(stage, "sweep", "Failed")
    status = await stage.phase("Queued")
    assert status["metDependencies"] == ["prepare", "sweep"]


async def test_a_chain_fails_as_a_whole(stage: Stage) -> None:
    await stage.submit("first")
    await stage.submit("second", after=[{"job": "first"}])
    await stage.submit(after=[{"job": "second"}])
    await waits_for(stage, "second to succeed")
    await ends(stage, "first", "Failed")
    status = await stage.phase("Failed")
    assert condition(status, "Finished")["reason"] == "DependencyFailed"
    assert status["problem"]["reason"] == "DependencyFailed"
